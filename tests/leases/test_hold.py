"""The hold on a card: one at a time, named, and gone with its process."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import InfrastructureError, RefusedError
from harness.hosts.local import LocalHost
from harness.hosts.permits import Authority
from harness.hosts.protocol import CommandResult
from harness.leases.hold import check_begun, held, lock_path

MAC = "64:4c:36:00:12:a0"
ADDRESS = "0000:b2:00.0"
HOST = LocalHost("bench")
CARDS = Authority("cards")


def run(folder: Path, *argv: str) -> CommandResult:
    words = held(argv, MAC, str(folder))
    return HOST.run(words, permit=CARDS.command("flash", "bench", words, "test"))


@contextmanager
def holding(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that holds the card and has its address in its command line, as `fpgasupdate` has."""
    argv = held(["sh", "-c", "echo here; read gone", "fpgasupdate", ADDRESS], MAC, str(folder))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "here\n"
        yield process
        process.kill()


def test_the_command_runs_when_nobody_holds_the_card(tmp_path: Path) -> None:
    result = run(tmp_path, "echo", "flashed")
    check_begun(HOST, result, "bench/card0", ADDRESS)
    assert (result.exit_code, result.stdout) == (0, "flashed\n")


def test_a_card_in_use_is_refused_and_its_holder_is_named(tmp_path: Path) -> None:
    with holding(tmp_path) as process:
        result = run(tmp_path, "touch", str(tmp_path / "flashed"))
        with pytest.raises(RefusedError, match=rf"process {process.pid} \(.*fpgasupdate {ADDRESS}.*\)"):
            check_begun(HOST, result, "bench/card0", ADDRESS)
    assert not (tmp_path / "flashed").exists()


def test_the_hold_dies_with_its_process(tmp_path: Path) -> None:
    with holding(tmp_path) as process:
        process.kill()
        process.wait()
        assert run(tmp_path, "true").exit_code == 0


def test_another_card_is_free_meanwhile(tmp_path: Path) -> None:
    with holding(tmp_path):
        words = held(["true"], "64:4c:36:00:12:b0", str(tmp_path))
        assert HOST.run(words, permit=CARDS.command("flash", "bench", words, "test")).exit_code == 0


def test_a_missing_tool_and_a_missing_lock_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match=r"no-such-tool.*No such file"):
        check_begun(HOST, run(tmp_path, "no-such-tool"), "bench/card0", ADDRESS)
    with pytest.raises(InfrastructureError, match="cannot open lock file"):
        check_begun(HOST, run(tmp_path / "missing", "true"), "bench/card0", ADDRESS)


def test_what_a_tool_itself_says_is_not_taken_for_a_start_that_failed() -> None:
    result = CommandResult(
        ("rsu",), 69, "", "PCIe address (0000:b3:00.0) does not identify a compatible device", 1
    )
    check_begun(HOST, result, "bench/card0", ADDRESS)


def test_the_lock_is_one_file_per_identity() -> None:
    assert lock_path(MAC) == "/run/lock/hil-64-4c-36-00-12-a0.lock"
    assert lock_path(MAC.upper()) == lock_path(MAC)
    assert "/" not in lock_path("../../etc/passwd").removeprefix("/run/lock/")
