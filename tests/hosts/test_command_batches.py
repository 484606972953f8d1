"""Several commands in one exchange: each as if it ran alone, on this machine and behind a real SSH server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.openssh import OpenSsh

from harness.errors import DeadlineError, HarnessBug, LinkLostError, RefusedError
from harness.hosts.access import Access
from harness.hosts.link import Link
from harness.hosts.local import LocalHost
from harness.hosts.permits import Authority, Permit
from harness.hosts.protocol import Asked, Host
from harness.hosts.ssh import SshHost

CARDS = Authority("cards")


def permit(*argv: str) -> Permit:
    return CARDS.command("remove", "bench", argv, "test")


@pytest.fixture(params=["local", "ssh"])
def host(request: pytest.FixtureRequest) -> Host:
    return LocalHost("bench") if request.param == "local" else request.getfixturevalue("peer")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "one").write_text("first\nlast, without its end")
    (tmp_path / "two").write_text("")
    (tmp_path / "three").write_text("third\n")
    return tmp_path


def test_each_has_its_own_streams_and_code(host: Host, files: Path) -> None:
    asked = [["cat", str(files / name)] for name in ("one", "none", "two", "three")]
    results = host.run_all([Asked(argv) for argv in asked])
    assert [list(result.argv) for result in results] == asked
    assert [result.exit_code for result in results] == [0, 1, 0, 0]
    assert [result.stdout for result in results] == ["first\nlast, without its end", "", "", "third\n"]
    assert [bool(result.stderr) for result in results] == [False, True, False, False]
    assert "No such file" in results[1].stderr
    alone = [host.run(argv) for argv in asked]
    assert [(r.exit_code, r.stdout, r.stderr) for r in alone] == [
        (r.exit_code, r.stdout, r.stderr) for r in results
    ]


def test_globs_are_expanded_and_other_words_are_not(host: Host, files: Path) -> None:
    listed, quoted = host.run_all(
        [Asked(["ls", f"{files}/t*"]), Asked(["grep", "-c", "$(id) *", f"{files}/one"])]
    )
    assert listed.stdout.split() == [f"{files}/three", f"{files}/two"]
    assert quoted.stdout == "0\n"


@pytest.mark.parametrize("word, run", [("third", True), ("fourth", False)])
def test_what_comes_after_a_guard_is_run_only_if_it_succeeds(
    host: Host, files: Path, word: str, run: bool
) -> None:
    guard = Asked(["grep", word, str(files / "three")], guard=True)
    results = host.run_all([Asked(["true"]), guard, Asked(["uname"])])
    assert len(results) == (3 if run else 2)
    assert results[1].exit_code == (0 if run else 1)


def test_a_permitted_command_has_its_place(host: Host, files: Path) -> None:
    remove = permit("rm", "-f", str(files / "one"))
    removed, listed = host.run_all([Asked(remove.argv, remove), Asked(["ls", str(files)])])
    assert removed.exit_code == 0
    assert listed.stdout.split() == ["three", "two"]


def test_one_that_is_not_allowed_keeps_all_from_running(host: Host, files: Path) -> None:
    remove = permit("rm", "-f", str(files / "one"))
    for bad in (
        Asked(["rm", "-f", str(files / "two")]),
        Asked(["rm", "-f", str(files / "two")], remove),
        Asked(["cat", "/dev/null"]),
    ):
        with pytest.raises(RefusedError):
            host.run_all([bad, Asked(remove.argv, remove)])
    assert len(list(files.iterdir())) == 3


def test_a_script_would_end_the_shell_of_the_others(peer: SshHost) -> None:
    argv = ("sh", "-c", "exit 0")
    with pytest.raises(HarnessBug, match="alone"):
        peer.run_all([Asked(argv, permit(*argv)), Asked(["true"])])


def test_a_deadline_is_that_of_all_together(host: Host) -> None:
    sleep = permit("sleep", "5")
    with pytest.raises(DeadlineError):
        host.run_all([Asked(["true"]), Asked(sleep.argv, sleep)], deadline=0.3)


def test_what_did_not_come_to_its_end_is_an_error(peer: SshHost) -> None:
    kill = permit("kill", "-KILL", "0")  # of the whole process group, the shell's too
    with pytest.raises(LinkLostError, match="broke while"):
        peer.run_all([Asked(["true"]), Asked(kill.argv, kill), Asked(["uname"])])


@pytest.fixture
def cut_once(access: Access, openssh: OpenSsh, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshHost]:
    """A host whose link breaks in the middle of the first command."""
    host = SshHost("bench", access)
    session = Link.session
    cuts = []

    def cut(self: Link, line: str, deadline: float) -> object:
        channel = session(self, line, deadline)
        if not cuts:
            cuts.append(line)
            channel.get_transport().close()
        return channel

    monkeypatch.setattr(Link, "session", cut)
    yield host
    host.close()


def test_reads_are_asked_again_over_a_new_connection(cut_once: SshHost, files: Path) -> None:
    results = cut_once.run_all([Asked(["cat", str(files / "three")]), Asked(["true"])])
    assert [result.stdout for result in results] == ["third\n", ""]


def test_with_a_permit_among_them_nothing_is_run_again(cut_once: SshHost, files: Path) -> None:
    remove = permit("rm", "-f", str(files / "none"))
    with pytest.raises(LinkLostError):
        cut_once.run_all([Asked(remove.argv, remove), Asked(["true"])])
