"""`hil engine`: one stays until it is stopped, however it was hurt; a folder of others is not touched."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.engine import short_folder
from support.mounted import blocked
from support.processes import alive, wait_until

from harness.errors import BlockedError
from harness.registry.engines.private import find_engine


def hil(*words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", "from harness.cli import main; main()", "engine", *words],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder for an engine; what runs there in the end is stopped."""
    with short_folder() as base:
        yield base / "engine"
        hil("down", "--folder", str(base / "engine"))


@pytest.fixture
def running(place: Path) -> dict[str, object]:
    """What `hil engine up` says of an engine that it has started."""
    try:
        find_engine(install=False)
    except BlockedError as error:
        blocked(str(error))
    done = hil("up", "--folder", str(place), "-o", "json")
    assert done.returncode == 0, done.stderr
    said: dict[str, object] = json.loads(done.stdout)
    return said


def status(place: Path) -> dict[str, object]:
    said: dict[str, object] = json.loads(hil("status", "-o", "json", HIL_ENGINE=str(place)).stdout)
    return said


def processes_of(place: Path) -> set[int]:
    """Return the living processes that name the engine's folder, but for those that ask about it."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if str(place).encode() in words and b"harness" not in words:
            found.add(int(path.parent.name))
    return {pid for pid in found if alive(pid)}


def test_it_stays_is_used_and_is_stopped(place: Path, running: dict[str, object]) -> None:
    assert status(place) == running
    assert hil("status", "--folder", str(place)).stdout.splitlines()[1:2] == [
        f"  export DOCKER_HOST=unix://{place}/docker.sock"
    ]
    asked = subprocess.run(
        ["docker", "version", "--format", "{{.Server.Version}}"],
        env=os.environ | {"DOCKER_HOST": str(running["url"])},
        capture_output=True,
        text=True,
    )
    assert asked.stdout.strip() == running["version"]
    assert "API listen on" in hil("logs", "--folder", str(place)).stdout
    last = json.loads(hil("logs", "--folder", str(place), "--last", "1", "-o", "json").stdout)
    assert [entry["level"] for entry in last] == ["info"]

    again = hil("up", "--folder", str(place))
    assert again.returncode == 2
    assert "runs already" in again.stderr
    assert status(place)["pid"] == running["pid"]

    assert hil("down", "--folder", str(place)).stdout == "private engine: stopped\n"
    assert not place.exists()
    assert not processes_of(place)
    assert hil("down", "--folder", str(place)).stdout == "private engine: was not running\n"


@pytest.mark.parametrize("victim", ["dockerd", "sh", "unshare"])
def test_a_kill_of_any_part_ends_all_and_down_removes_the_rest(
    place: Path, running: dict[str, object], victim: str
) -> None:
    everything = processes_of(place)
    named = {Path(f"/proc/{pid}/comm").read_text().strip(): pid for pid in everything}
    os.kill(named[victim], signal.SIGKILL)
    wait_until(lambda: not any(map(alive, everything)), "all of the engine to end")
    seen = status(place)
    assert (seen["running"], seen["left_behind"]) == (False, True)
    assert "was not running; what was left" in hil("down", "--folder", str(place)).stdout
    assert not place.exists()


def test_one_whose_files_were_damaged_is_seen_and_stopped(place: Path, running: dict[str, object]) -> None:
    for name in ("engine.lock", "docker.sock", "docker.pid"):
        (place / name).unlink()
    seen = status(place)
    assert seen["pid"] == running["pid"]
    assert "does not answer" in str(seen["error"])
    assert hil("down", "--folder", str(place)).stdout == "private engine: stopped\n"
    assert not processes_of(place)
    assert not place.exists()


@pytest.mark.parametrize("command", ["up", "status", "logs", "down"])
def test_a_folder_of_something_else_is_left_alone(place: Path, command: str) -> None:
    place.mkdir()
    (place / "data").mkdir()
    (place / "data" / "thesis").write_text("precious")
    if command == "up" and os.geteuid() != 0:
        blocked("an engine is only started by root")
    done = hil(command, "--folder", str(place))
    assert done.returncode == 2
    assert "left alone" in done.stderr
    assert (place / "data" / "thesis").read_text() == "precious"


def test_files_of_others_in_its_folder_survive_down(place: Path, running: dict[str, object]) -> None:
    (place / "notes").write_text("mine")
    assert hil("down", "--folder", str(place)).returncode == 0
    assert [path.name for path in place.iterdir()] == ["notes"]


def test_where_none_can_run_the_one_command_that_helps_is_named(place: Path, tmp_path: Path) -> None:
    """Not even root has an engine where it has no package; the machine's does not answer either."""
    probe = (
        "import os; os.geteuid = lambda: 1000\n"
        "from harness.cli import main; import sys\n"
        f"sys.argv = ['hil', 'engine', 'up', '--folder', {str(place)!r}]; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe],
        env=os.environ | {"DOCKER_HOST": f"unix://{tmp_path}/nobody.sock"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 3
    assert "needs root" in done.stderr
    assert "does not answer" in done.stderr
    assert "hint: Run it as root" in done.stderr
    assert "Traceback" not in done.stderr
