""".ci/run with a stand-in for make: all steps run, the log ends with pytest's line, nothing stays behind."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
CLOSING = "===== 12 passed in 0.34s ====="


@pytest.fixture
def ci_run(tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run .ci/run where each target of make does what the test says (default: it succeeds)."""
    (tmp_path / "project/.ci").mkdir(parents=True)
    shutil.copy(PROJECT / ".ci/run", tmp_path / "project/.ci/run")
    (tmp_path / "bin").mkdir()

    def run(**targets: str) -> "subprocess.CompletedProcess[str]":
        does = {"setup": "true", "lint": "true", "regression": "true", "test": f"echo '{CLOSING}'"}
        does |= {"programs": "true"} | targets
        cases = "\n".join(f"{name}) {script} ;;" for name, script in does.items())
        make = tmp_path / "bin/make"
        make.write_text(
            f'#!/bin/sh\necho "$*" >>"{tmp_path}/calls"\ncase "$1" in\n{cases}\nesac\ncode=$?\n'
            '[ $code = 0 ] || echo "make: *** [Makefile:1: $1] Error $code" >&2\nexit $code\n'
        )
        make.chmod(0o755)
        return subprocess.run(
            [str(tmp_path / "project/.ci/run")],
            env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "CI": "true"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )

    return run


def test_all_steps_run_and_the_log_ends_with_pytests_closing_line(ci_run, tmp_path: Path) -> None:
    done = ci_run()
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == CLOSING
    setup, programs, *beside, test = [
        line.split()[0] for line in (tmp_path / "calls").read_text().splitlines()
    ]
    assert (setup, programs, test) == ("setup", "programs", "test")
    assert sorted(beside) == ["lint", "regression"]


@pytest.mark.parametrize("target", ["programs", "lint", "regression", "test"])
def test_one_failed_step_fails_the_run_and_stops_none_of_the_others(
    ci_run, tmp_path: Path, target: str
) -> None:
    done = ci_run(**{target: f"echo '{CLOSING}'; false"})
    assert done.returncode == 1
    assert len((tmp_path / "calls").read_text().splitlines()) == 5
    assert done.stdout.splitlines()[-2:] == [f"== failed: {'tests' if target == 'test' else target}", CLOSING]


def test_nothing_runs_where_the_set_up_fails(ci_run, tmp_path: Path) -> None:
    assert ci_run(setup="false").returncode == 2
    assert (tmp_path / "calls").read_text() == "setup\n"


def test_process_left_behind_fails_the_run_and_is_ended(ci_run, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    done = ci_run(regression=f"setsid sleep 300 >/dev/null 2>&1 & echo $! >{pid_file}")
    assert done.returncode == 1
    assert "sleep 300" in done.stdout
    assert "== failed: processes left behind" in done.stdout
    assert not any(
        Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x00300\x00"
        for pid in [pid_file.read_text().strip()]
        if Path(f"/proc/{pid}").exists()
    )


def test_lint_runs_beside_the_regression_and_is_told_after_it(ci_run, tmp_path: Path) -> None:
    met = f"until [ -e {tmp_path}/%s ]; do sleep 0.01; done"
    done = ci_run(
        lint=f"touch {tmp_path}/lint; {met % 'regression'}; echo all is clean",
        regression=f"touch {tmp_path}/regression; {met % 'lint'}; echo as stated",
    )
    told = [
        line
        for line in done.stdout.splitlines()
        if line in ("as stated", "== lint: make lint", "all is clean")
    ]
    assert told == ["as stated", "== lint: make lint", "all is clean"]


def test_steps_read_no_input(ci_run) -> None:
    assert ci_run(lint="! read -r line").returncode == 0
