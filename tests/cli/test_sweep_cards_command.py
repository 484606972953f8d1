"""`hil sweep flash` and `reset`: what they print, how they end, and that a killed one goes on."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from support.processes import wait_until

WORDS = ("sweep", "flash", "--device", "one", "--action", "power-cut,sigterm", "--repeat", "2")
POINTS = ("--point", "transferring", "--point", "copying")


def test_what_was_killed_goes_on_where_it_was(project) -> None:
    process = project.start(*WORDS, *POINTS, "-o", "json")
    lines = []
    while len(lines) < 2:
        line = process.stderr.readline()
        assert line, process.poll()
        lines += [line] if " one/card0 " in line else []
    process.send_signal(signal.SIGKILL)
    assert project.end(process).code == -signal.SIGKILL
    (run,) = (project.folder / "reports").iterdir()

    other = project.hil("sweep", "flash", "--device", "one", "--resume", f"reports/{run.name}")
    assert other.code == 2
    assert "what was asked for has other actions, points, repeat" in other.stderr

    ended = project.hil(*WORDS, *POINTS, "-o", "json")
    assert ended.code == 0, ended.stderr
    done = int(ended.stderr.partition(f"goes on in reports/{run.name}: ")[2].split()[0])
    assert 2 <= done < 8
    told = json.loads(ended.stdout)
    assert len(told["trials"]) == 8
    assert ended.stderr.count(" one/card0 ") == 8 - done, "none is tried twice"
    assert seen(told) == {
        ("power-cut", "transferring", "old", "LOST"),
        ("power-cut", "copying", "factory", "LOST"),
        ("sigterm", "transferring", "new", "FALSE_FAILURE"),
        ("sigterm", "copying", "new", "FALSE_FAILURE"),
    }
    assert json.loads((run / "sweep.json").read_text()) == told
    assert told["schema"] == "hil-sweep/1"
    assert told["devices"]["one/card0"]["points"]["A/csk0"][-1] == "copying"
    assert len([path for path in (project.folder / "reports").iterdir() if not path.is_symlink()]) == 1
    project.assert_nothing_left()


def seen(told: dict[str, Any]) -> set[tuple[str, ...]]:
    return {tuple(each[key] for key in ("action", "point", "truth", "verdict")) for each in told["trials"]}


def test_the_points_that_an_update_passes_can_be_listed(project) -> None:
    ended = project.hil("sweep", "flash", "--device", "one", "--generation", "B", "--list")
    assert ended.code == 0, ended.stderr
    points = "start, preparing, transferring, programming, authenticating, copying"
    assert ended.stdout == f"one/card0 B  A/csk0: {points}\n"
    assert not (project.folder / "reports").exists(), "nothing is kept of it"


def test_a_list_that_is_killed_leaves_nothing(project) -> None:
    process = project.start("sweep", "flash", "--device", "one", "--list")
    wait_until(lambda: list(project.runtime.glob("hil-sweep-*/history*.jsonl")), "an update that records")
    process.send_signal(signal.SIGKILL)
    assert project.end(process).code == -signal.SIGKILL
    project.assert_nothing_left()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("flash", "--image", "A/cks0"), "Did you mean 'A/csk0'?"),
        (("flash", "--image", "root-only"), "is not known from documents"),
        (("flash", "--action", "sigtrem"), "Did you mean 'sigterm'?"),
        (("flash", "--point", "copyng"), "Did you mean 'copying'?"),
        (("flash", "--generation", "E"), "They are A, B, C and D."),
        (("flash", "--device", "oen"), "Did you mean 'one'?"),
        (("flash", "--root", "C", "--device", "one"), "Unknown root key 'C'."),
        (("flash", "--resume", "fixtures"), "There is no sweep in fixtures that could go on."),
        (("reset", "--action", ","), "names with commas"),
    ],
)
def test_a_mistake_is_told_at_once(project, words, hint) -> None:
    ended = project.hil("sweep", *words)
    assert ended.code == 2, ended.text
    assert hint in ended.stderr
    assert not (project.folder / "reports").exists()
