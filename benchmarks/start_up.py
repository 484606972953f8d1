"""What every start costs: `hil --help`, an emulated lab, the idle plugin, a test that asks for no lab."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.labs import started
from benchmarks.rows import Row, in_turn, processor_note

HIL = str(Path(sys.executable).with_name("hil"))
IDLE_TESTS = 2000
#: Other plugins cost more than ours and only add noise.
_PYTEST = (
    *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:allure_pytest"),
    *("-p", "no:hypothesispytest", "-p", "no:xdist", "-p", "no:xdist.looponfail", "-p", "no:timeout"),
)


def measure(rounds: int) -> list[Row]:
    """Return the rows of `--help`, of a lab's start, of pytest's start and of an idle test."""
    with tempfile.TemporaryDirectory() as folder:
        return [_help(rounds), _lab(rounds), *_plugin(Path(folder), rounds)]


def _run(command: Sequence[str], folder: Path | None = None) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def _help(rounds: int) -> Row:
    acts = (lambda: _run([HIL, "--help"]), lambda: _run([sys.executable, "-c", "import typer"]))
    hil, typer = in_turn(acts, rounds)
    return Row(
        "hil --help",
        "the whole command",
        "ms",
        hil,
        150,
        peer="python -c 'import typer'",
        peer_result=typer,
        note=processor_note(acts[0]),
    )


def _lab(rounds: int) -> Row:
    def start_and_end() -> None:
        with started():
            pass

    lab, python = in_turn((start_and_end, lambda: _run([sys.executable, "-c", "pass"])), rounds)
    return Row(
        "lab start",
        "an emulated lab of one host and one card, started and ended",
        "ms",
        lab,
        1000,
        peer="python -c pass",
        peer_result=python,
    )


def _plugin(folder: Path, rounds: int) -> list[Row]:
    (folder / "test_one.py").write_text("def test_one(): pass\n", encoding="utf-8")
    many = "import pytest\n@pytest.mark.parametrize('n', range({}))\ndef test_many(n): pass\n"
    (folder / "test_many.py").write_text(many.format(IDLE_TESTS), encoding="utf-8")
    runs = [
        [*_PYTEST, *options, name]
        for name in ("test_one.py", "test_many.py")
        for options in ((), ("-p", "no:hil"))
    ]
    acts = [lambda command=command: _run(command, folder) for command in runs]
    with_one, bare_one, with_many, bare_many = in_turn(acts, rounds)
    start = with_one.minus(bare_one)
    idle = with_many.minus(bare_many).minus(start).scaled(1 / IDLE_TESTS)
    return [
        Row(
            "plugin, start",
            "what the idle plugin adds to pytest's start (difference of paired runs)",
            "ms",
            start,
            50,
            peer="pytest without it",
            peer_result=bare_one,
        ),
        Row(
            "plugin, idle test",
            f"what the plugin adds to a test that asks for no lab ({IDLE_TESTS} of them, paired runs)",
            "ms",
            idle,
            0.1,
            peer="the test without it",
            peer_result=bare_many.minus(bare_one).scaled(1 / IDLE_TESTS),
        ),
    ]
