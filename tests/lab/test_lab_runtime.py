"""The directory of a running lab: gone with it, however lab and starter end, and whenever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.emulator.runtime import make_runtime
from harness.errors import InfrastructureError
from harness.lab import emulator
from harness.lab.running import start_lab

PREFIX = "hil-lab-"


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary files of labs started here lie in a folder of the test's own."""
    folder = tmp_path / "t"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def start_serving() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "harness.emulator.serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


@pytest.mark.parametrize(
    "said", [b"", b'{"name": "x"', json.dumps({"runtime_prefix": PREFIX}).encode() + b"\n"]
)
def test_starter_that_dies_before_the_lab_is_ready_leaves_nothing(temp: Path, said: bytes) -> None:
    lab = start_serving()
    assert lab.stdin is not None
    assert lab.stdout is not None
    lab.stdout.close()  # nobody reads any more
    lab.stdin.write(said)
    lab.stdin.close()
    lab.wait(20)
    assert list(temp.iterdir()) == []


def test_starter_that_dies_while_the_lab_starts_leaves_nothing(temp: Path) -> None:
    lab = start_serving()
    assert lab.stdin is not None
    assert lab.stdout is not None
    lab.stdout.close()
    hosts = [{"name": f"h{n}", "hostname": "h", "cards": []} for n in range(3)]
    lab.stdin.write(json.dumps({"name": "x", "runtime_prefix": PREFIX, "hosts": hosts}).encode() + b"\n")
    lab.stdin.close()
    assert lab.wait(20) == 0
    assert list(temp.iterdir()) == []


def test_killed_lab_is_cleaned_up_by_its_starter(inventory: Any, temp: Path) -> None:
    with start_lab(inventory) as lab:
        assert len(list(temp.glob(f"{PREFIX}*"))) == 1
        os.kill(lab.process_id or 0, signal.SIGKILL)
    assert list(temp.iterdir()) == []


def test_what_killed_labs_left_is_removed_by_the_next_and_nothing_else(inventory: Any, temp: Path) -> None:
    old = time.time() - 3600
    left, link, file, fresh = (temp / f"{PREFIX}{name}" for name in ("left", "link", "file", "fresh"))
    for folder in (left, fresh, temp / "other"):
        folder.mkdir()
        (folder / "client_key").write_text("key")
    link.symlink_to(temp / "other")
    file.write_text("no folder")
    for path in (left, file, temp / "other"):
        os.utime(path, (old, old))
    with start_lab(inventory) as lab:
        access = lab.access("left")
        assert access is not None
        assert access.key_file is not None
        runtime = access.key_file.parent
        os.utime(runtime, (old, old))
        made = make_runtime(PREFIX)  # as another lab does, beside the one that runs
        assert runtime.is_dir()
        made.rmdir()
    names = {path.name.removeprefix(PREFIX) for path in temp.iterdir()}
    assert names == {"link", "file", "fresh", "other"}
    assert (temp / "other/client_key").exists()


def test_no_room_for_temporary_files_is_an_error_of_the_lab(
    inventory: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(emulator.tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(InfrastructureError, match=r"log of the emulated lab cannot be made in .*/missing"):
        start_lab(inventory)
