"""Lines that share a shell on a real host: as each by itself, whatever becomes of that shell."""

import hashlib
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.openssh import OpenSsh

from harness.errors import DeadlineError
from harness.hosts import link as linking
from harness.hosts.access import Access
from harness.hosts.link import Link
from harness.hosts.permits import Authority
from harness.hosts.protocol import Asked
from harness.hosts.ran import Ran
from harness.hosts.ssh import SshHost
from harness.hosts.standing_shell import StandingShell


@pytest.fixture
def link(access: Access):
    """A link over which one line was run, so that the next one gets a shell that stays."""
    found = Link("bench", access)
    assert found.ask("true", 20).exit_code == 0
    yield found
    found.close()


@pytest.fixture
def channels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was begun on a channel of its own."""
    begun: list[str] = []
    session = Link.session

    def noted(link: Link, line: str, deadline: float):
        begun.append(line)
        return session(link, line, deadline)

    monkeypatch.setattr(Link, "session", noted)
    return begun


def test_from_the_second_on_lines_share_one_channel(access: Access, channels: list[str]) -> None:
    host = SshHost("bench", access)
    try:
        for _ in range(4):
            assert host.run(["uname", "-s"]).stdout == "Linux\n"
            assert host.read("/etc/os-release")
    finally:
        host.close()
    first, *rest = channels
    assert "uname" in first, "one look alone costs no shell that stays"
    assert rest == [linking.LOOP]


@pytest.mark.parametrize(
    "line",
    [
        *("echo out; echo err >&2; exit 3", "printf x; printf y >&2; (exit 7)", ""),
        *("echo out; exec sh -c 'kill -9 $$'", "echo out; exit 137"),
    ],
)
def test_it_ends_and_prints_as_on_a_channel_of_its_own(link: Link, line: str) -> None:
    for _ in range(2):
        assert link.ask(line, 20) == link.execute(line, 20)


def test_a_line_leaves_nothing_to_the_next_one(link: Link) -> None:
    assert link.ask("cd /; umask 0; left=over; set -e; exec 2>/dev/null", 20).exit_code == 0
    again = link.ask("pwd; umask; echo $left; echo said >&2; false; echo on", 20)
    alone = link.execute("pwd; umask; echo $left; echo said >&2; false; echo on", 20)
    assert again == alone


def test_a_line_reads_nothing_of_what_follows_it(link: Link) -> None:
    assert link.ask("cat", 20).out == b""
    assert link.ask("echo next", 20).out == b"next\n"


def test_more_than_a_window_on_both_streams(link: Link) -> None:
    ran = link.ask("head -c 5000000 /dev/zero >&2; head -c 5000000 /dev/zero; echo end", 20)
    assert (len(ran.err), len(ran.out), ran.out[-4:]) == (5_000_000, 5_000_004, b"end\n")


def test_what_does_not_end_in_time_is_told_and_the_next_line_has_another_shell(link: Link) -> None:
    with pytest.raises(DeadlineError, match=r"Waited 0\.3 s for .*sleep 3.* on bench .*half way"):
        link.ask("echo half way; sleep 3", 0.3)
    assert link.ask("echo next", 20).out == b"next\n"


def test_the_way_to_a_shell_is_within_the_deadline(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of it goes to each step: the connection, the channel, the line."""
    left: list[float] = []
    now = [1000.0]
    monkeypatch.setattr(linking, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def takes_three(self: Link, line: str, deadline: float):
        left.append(deadline)
        now[0] += 3
        return session(self, line, deadline)

    def noted(self: StandingShell, line: str, deadline: float) -> Ran:
        left.append(deadline)
        return Ran(0, b"", b"", lost=False)

    session = Link.session
    monkeypatch.setattr(Link, "session", takes_three)
    monkeypatch.setattr(StandingShell, "ask", noted)
    link.ask("true", 20)
    assert left == [20, 17]


def test_a_shell_that_was_killed_loses_its_line_and_the_host_is_asked_again(
    peer: SshHost, channels: list[str]
) -> None:
    for _ in range(2):
        assert peer.run(["uname", "-s"]).stdout == "Linux\n"
    (standing,) = peer._link._shells._resting
    assert standing.ask("kill -9 $$", 20).lost
    assert peer.run(["uname", "-s"]).stdout == "Linux\n"
    assert channels.count(linking.LOOP) == 2


def test_on_a_host_without_such_a_shell_each_line_has_its_channel(
    access: Access, channels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "LOOP", "echo this is no POSIX shell; exit 1")
    host = SshHost("bench", access)
    try:
        assert [host.run(["uname", "-s"]).stdout for _ in range(4)] == ["Linux\n"] * 4
    finally:
        host.close()
    assert channels.count(linking.LOOP) == 1, "it is tried once"


def test_what_must_not_run_twice_is_given_only_to_a_shell_that_has_answered(
    access: Access, channels: list[str], tmp_path: Path
) -> None:
    host = SshHost("bench", access)
    authority = Authority("cards")
    try:
        host.run(["uname", "-s"])
        for number in range(2):
            path = str(tmp_path / f"{number}")
            permit = authority.command("remove", "bench", ["touch", path], "card0")
            host.run_all([Asked(["touch", path], permit), Asked(["ls", path])])
            if number == 0:
                assert linking.LOOP not in channels
                host.run(["uname", "-s"])
    finally:
        host.close()
    assert [line for line in channels if "touch" in line and "/1" in line] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]


def test_threads_have_a_shell_each(link: Link) -> None:
    found: list[bytes] = []

    def ask(number: int) -> None:
        found.append(link.ask(f"echo {number}; sleep 0.01", 20).out)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [b"%d\n" % number for number in range(8)]


@pytest.mark.parametrize("line", ["echo 'two\nlines'", "printf '\\344'; echo ä", "echo 'a\tb'"])
def test_what_is_no_plain_line_has_a_channel_of_its_own(link: Link, channels: list[str], line: str) -> None:
    assert link.ask(line, 20) == link.execute(line, 20)
    assert linking.LOOP not in channels


def put(host: SshHost, data: bytes, path: Path) -> None:
    sha256 = hashlib.sha256(data).hexdigest()
    host.put(data, str(path), permit=Authority("cards").write("upload", "bench", str(path), sha256, "card0"))


def test_a_host_that_allows_one_channel_at_a_time_is_still_asked(access: Access, tmp_path: Path) -> None:
    """MaxSessions 1: a shell or an SFTP session that rests gives way to what needs a channel."""
    server = OpenSsh(tmp_path, settings="MaxSessions 1\n")
    server.start()
    mine = replace(
        access, port=server.port, known_hosts=Path(server.known_hosts), key_file=Path(server.key_file)
    )
    host = SshHost("bench", mine)
    try:
        for _ in range(2):
            assert [host.run(["uname", "-s"]).stdout for _ in range(3)] == ["Linux\n"] * 3
            argv = ("touch", str(tmp_path / "touched"))
            permit = Authority("cards").command("remove", "bench", argv, "card0")
            assert host.run(argv, permit=permit).exit_code == 0
            assert host.read("/etc/os-release")
            put(host, b"by SFTP", tmp_path / "sent")
            assert host.run(["uname", "-s"]).stdout == "Linux\n"
            put(host, b"again", tmp_path / "sent")
            assert (tmp_path / "sent").read_bytes() == b"again"
    finally:
        host.close()
        server.stop()
