"""Many hosts at once: a slow one holds no other, threads are bounded, each failure is that host's own."""

import threading
from contextlib import closing

import pytest

from harness.errors import UnreachableError
from harness.hosts.access import Access
from harness.hosts.many import ask_each
from harness.hosts.ssh import SshHost

NAMES = [f"host{number}" for number in range(50)]


def test_a_slow_one_holds_no_other() -> None:
    others = threading.Event()

    def ask(name: str) -> str:
        if name == "host0":
            assert others.wait(60)  # it answers only once all the others have
        return name

    found = []
    for name, answer in ask_each(NAMES, ask, at_once=4):
        found.append((name, answer))
        if len(found) == len(NAMES) - 1:
            others.set()
    assert found[-1] == ("host0", "host0")
    assert sorted(name for name, _ in found) == sorted(NAMES)


def test_threads_are_bounded() -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def ask(name: str) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        with lock:
            now[0] -= 1

    assert len(list(ask_each(NAMES, ask, at_once=4))) == 50
    assert 1 <= most[0] <= 4


def test_a_failure_is_that_hosts_own_and_a_bug_is_everybodys() -> None:
    def ask(name: str) -> int:
        if name == "b":
            raise UnreachableError("b is away.")
        if name == "d":
            raise ValueError("a bug")
        return 1

    found = dict(ask_each("abc", ask))
    assert (found["a"], found["c"]) == (1, 1) and isinstance(found["b"], UnreachableError)
    with pytest.raises(ValueError, match="a bug"):
        list(ask_each("ad", ask))


def test_many_real_logins_at_once(access: Access) -> None:
    def log_in(name: str) -> int:
        with closing(SshHost(name, access)) as host:
            return host.run(["true"]).exit_code

    assert {answer for _, answer in ask_each(NAMES[:16], log_in)} == {0}
