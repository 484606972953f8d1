"""Temporary folders: gone with who made them, however that ends."""

import signal
import subprocess
import sys

import pytest
from support.processes import wait_until

from harness.errors import BlockedError, InfrastructureError
from harness.registry import assembled
from harness.registry.folder import TemporaryFolder

MADE = """
import sys, time
from harness.registry.folder import TemporaryFolder
folder = TemporaryFolder("hil-test-")
(folder.path / "held" / "deep").mkdir(parents=True)
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_it_goes_with_all_that_is_in_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = TemporaryFolder("hil-test-")
    (folder.path / "file").write_text("")
    folder.close()
    folder.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "Ctrl-C"])
def test_it_goes_when_who_made_it_does_not_close_it(tmp_path, monkeypatch, number) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    maker = subprocess.Popen(
        [sys.executable, "-c", MADE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with maker:
        assert maker.stdout is not None
        assert maker.stdout.readline().strip().decode() == str(next(tmp_path.iterdir()))
        maker.send_signal(number)
        maker.kill()
    wait_until(lambda: not list(tmp_path.iterdir()), "the folder to go")


def test_no_room_for_it_is_said_with_what_helps(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(InfrastructureError, match="No such file or directory") as told:
        TemporaryFolder("hil-test-")
    assert "TMPDIR" in told.value.hint


def test_a_lab_that_cannot_be_made_leaves_none(tmp_path, monkeypatch) -> None:
    def missing() -> None:
        raise BlockedError("There is no docker-registry.")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("harness.registry.process.find_registry", missing)
    monkeypatch.setattr(assembled, "find_registry", missing, raising=False)
    with pytest.raises(BlockedError):
        assembled.RegistryLab()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_filled_is_no_bug(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match=r"cannot be filled: .*Not a directory"):
        assembled.RegistryLab(tmp_path / "file")
