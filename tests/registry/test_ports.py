"""Ports that are chosen: free at every address, and none that an outgoing connection may take meanwhile."""

import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.errors import InfrastructureError
from harness.registry.ports import free_port, listen, prove_free, reserve

BOTH = ("127.0.0.1", "::1")
#: For documentation only (RFC 5737), so that no machine has it.
NOBODYS = "192.0.2.1"


@pytest.fixture
def taken() -> Iterator[int]:
    """A port of ::1 alone on which somebody listens."""
    with socket.create_server(("::1", free_port("::1")), family=socket.AF_INET6) as holder:
        yield holder.getsockname()[1]


def test_no_chosen_port_is_one_for_outgoing_connections() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    chosen = {free_port() for _ in range(200)}
    assert not [port for port in chosen if first <= port <= last]
    assert min(chosen) > 1023
    assert len(chosen) > 150, "parallel runs would choose the same"


def test_it_is_free_at_every_address(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    free = free_port(*BOTH)
    offered = [free, taken]
    monkeypatch.setattr(random, "choice", lambda ports: offered.pop())
    assert free_port(*BOTH) == free
    assert not offered


def test_listening_is_at_every_address_at_one_port() -> None:
    opened = listen(BOTH)
    assert len({each.getsockname()[1] for each in opened}) == 1
    for address, each in zip(BOTH, opened, strict=True):
        with socket.create_connection((address, each.getsockname()[1]), timeout=10), each:
            pass


def test_a_port_that_is_taken_at_one_address_is_not_listened_on(taken: int) -> None:
    with pytest.raises(InfrastructureError, match=f"{taken} of 127.0.0.1 and ::1 cannot be used"):
        listen(BOTH, taken)
    prove_free("127.0.0.1", taken)  # nothing was left of the half of it
    with pytest.raises(InfrastructureError, match="listens there"):
        prove_free("::1", taken)


def test_who_has_a_port_that_cannot_be_reserved_is_told(taken: int) -> None:
    with pytest.raises(InfrastructureError, match=rf"in use\): process {os.getpid()} \(.+\) listens there\."):
        reserve("::1", taken)


def test_an_address_of_another_machine_is_told() -> None:
    with pytest.raises(InfrastructureError, match=f"at {NOBODYS}: Cannot assign requested address"):
        free_port(NOBODYS)


def test_a_port_of_ours_that_a_fork_still_holds_is_waited_for() -> None:
    """As where one thread starts a program while another one restarts a service."""
    (ours,) = listen(["127.0.0.1"])
    port = ours.getsockname()[1]
    forked, told = os.pipe()

    def slowly() -> None:
        os.write(told, b".")
        time.sleep(0.5)  # a busy machine

    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(subprocess.run, ["true"], preexec_fn=slowly, check=True)
        assert os.read(forked, 1) == b"."
        ours.close()
        began = time.monotonic()
        (again,) = listen(["127.0.0.1"], port)
        again.close()
        assert not started.done() or time.monotonic() - began > 0.1, "nobody held it"
        started.result()
    os.close(forked)
    os.close(told)
