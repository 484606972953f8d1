"""A fault's undo survives the harness: power comes back although whoever cut it was killed."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.processes import alive, wait_until

from harness.errors import InfrastructureError
from harness.faults import watchdog
from harness.faults.actions import action
from harness.faults.watchdog import Watchdog


def test_nothing_is_done_where_it_is_told_in_time(tmp_path: Path) -> None:
    dog = Watchdog(["touch", str(tmp_path / "undone")])
    pid = dog._process.pid
    dog.stand_down()
    dog.stand_down()
    assert not alive(pid)
    assert not (tmp_path / "undone").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_undo_is_done_where_the_harness_dies(tmp_path: Path, number: int) -> None:
    script = (
        "from harness.faults.watchdog import Watchdog; import sys\n"
        f"dog = Watchdog(['touch', {str(tmp_path / 'undone')!r}])\n"
        "print(dog._process.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        pid = int(harness.stdout.readline())
        assert not (tmp_path / "undone").exists()
        harness.send_signal(number)
    wait_until((tmp_path / "undone").exists, "the undo")
    wait_until(lambda: not alive(pid), "the watchdog's end")


def test_a_command_that_fails_is_tried_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = f"echo try >> {log}; test $(wc -l < {log}) = 3"
    dog = Watchdog(["sh", "-c", command])
    assert dog._process.stdin is not None
    dog._process.stdin.close()
    dog._process.wait(timeout=60)
    dog.stand_down()
    assert log.read_text() == "try\n" * 3


def test_without_a_watchdog_nothing_is_disturbed(fakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.power_on = ("true",)
    monkeypatch.setattr(watchdog.sys, "executable", "/bin/true")
    with pytest.raises(InfrastructureError, match="nothing was disturbed"):
        action("power-cut").fire(fakes, fakes.lab)
    assert fakes.asked == []


def test_the_power_of_a_real_host_is_watched_until_it_is_back(fakes: Any, tmp_path: Path) -> None:
    fakes.power_on = ("touch", str(tmp_path / "on"))
    cut = action("power-cut")
    cut.fire(fakes, fakes.lab)
    dog = cut._watchdog  # type: ignore[attr-defined]
    assert alive(dog._process.pid)
    fakes.failing = {"power"}
    with pytest.raises(InfrastructureError):
        cut.undo(fakes, fakes.lab)
    assert alive(dog._process.pid), "it is not on again"
    fakes.failing = set()
    cut.undo(fakes, fakes.lab)
    assert not alive(dog._process.pid)
    assert not (tmp_path / "on").exists()
