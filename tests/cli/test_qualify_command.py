"""`hil qualify` on a small plan: what is detected, what is missed, a kill in the middle of it, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.plans import lay_out, write_plan
from support.processes import wait_until, with_environment

HIL = Path(sys.executable).with_name("hil")
MARK = "HIL_TEST_QUALIFY"
PLAN = """
    @pytest.mark.hil_given(root="A")
    def test_refused(flash) -> None:
        flash("unsigned", unchanged("0x11", source=DOC))

    def test_of_no_card() -> None:
        pass
"""
DETECTED, MISSED = "fpgasupdate-exits-0", "fpgainfo-root-of-bmc"
#: A scenario whose trial with the second defect ends only when it is ended.
ENDLESS = f"""
    import time

    def test_endless(card, request) -> None:
        while "{MISSED}" in str(request.config.getoption("hil_reports")):
            time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qualify")
    lay_out(folder)
    write_plan(folder, PLAN)
    return folder


def command(*words: str) -> list[str]:
    plan = ["test_plan.py", "--lab", "small", "--device", "one", "--jobs", "1"]
    return [str(HIL), "qualify", *plan, *words]


def environment(folder: Path, mark: str = "") -> dict[str, str]:
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    kept = {k: v for k, v in os.environ.items() if k != "HIL_INVENTORY"} | {"TMPDIR": str(temporary)}
    return kept | ({MARK: mark} if mark else {})


def assert_nothing_left(folder: Path, mark: str) -> None:
    wait_until(lambda: not with_environment(f"{MARK}={mark}"), "the end of what was started")
    assert not list((folder / "tmp").iterdir())


def qualify(folder: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    done = subprocess.run(
        command(*words, "-o", "json"),
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def named(*defects: str) -> list[str]:
    return [word for name in defects for word in ("--defect", name)]


def begin(folder: Path, mark: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*words),
        cwd=folder,
        env=environment(folder, mark),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def made(folder: Path) -> list[str]:
    """Return the trials that were kept, in their order."""
    try:
        lines = (folder / "reports/qualify/trials.jsonl").read_text().splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line)["trial"] for line in lines]


def test_a_defect_is_detected_or_missed_and_a_kill_costs_only_what_ran(project: Path) -> None:
    words = named(DETECTED, MISSED)
    first = begin(project, "killed", *words)
    wait_until(lambda: "corrected/card" in made(project), "the trial without a defect")
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    assert_nothing_left(project, "killed")
    before = made(project)

    code, said, told = qualify(project, *words)
    assert code == 1
    assert f"hil: goes on in reports/qualify: {len(before)} of 3 trials are done" in told
    assert "corrected/card:" not in told, "it goes on where it was"
    assert made(project)[: len(before)] == before
    detected, missed = said["kill_matrix"]["defects"]
    assert [each.rpartition("::")[2] for each in detected["detected_by"]] == ["test_refused[one/card0]"]
    assert detected["verdicts"][detected["detected_by"][0]] == ["CONTRADICTION", "FALSE_SUCCESS"]
    assert (missed["id"], missed["status"], missed["detected_by"]) == (MISSED, "missed", [])
    assert missed["scenarios"] == 1, "what does not concern a card is left out"
    assert said["kill_matrix"]["false_alarms"] == []


def test_what_diverges_without_a_defect_is_a_false_alarm(tmp_path: Path) -> None:
    lay_out(tmp_path)
    write_plan(tmp_path, PLAN.replace('unchanged("0x11", source=DOC)', "lands(DOC)"))
    code, said, _ = qualify(tmp_path, *named(DETECTED))
    (alarm,) = said["kill_matrix"]["false_alarms"]
    assert (code, alarm["unstated"]) == (1, ["BREACH"])


def test_ctrl_c_ends_in_order_with_the_matrix_so_far(tmp_path: Path) -> None:
    """The second one is that of an impatient person, or of a terminal and of who has started us."""
    lay_out(tmp_path)
    write_plan(tmp_path, PLAN + ENDLESS)
    running = begin(tmp_path, "stopped", *named(DETECTED, MISSED), "-o", "json")
    runs = tmp_path / "reports/qualify/runs"
    wait_until(lambda: list(runs.glob(f"{MISSED}/*/history*.jsonl")), "the second defect's trial")
    qualify_beside, _, told = qualify(tmp_path, *named(DETECTED))
    assert (qualify_beside, "Another qualification is at work" in told) == (2, True)
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    said = json.loads(out)
    assert said["interrupted"] is True
    status = {each["id"]: each["status"] for each in said["kill_matrix"]["defects"]}
    assert status == {DETECTED: "detected", MISSED: "not-tried"}
    assert_nothing_left(tmp_path, "stopped")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--defect", "fpgasupdate-exits"), "fpgasupdate-exits-0"),
        (("--kind", "crad"), "Did you mean 'card'"),
        (("--device", "three"), "three"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(project: Path, words: tuple[str, ...], told: str) -> None:
    code, _, text = qualify(project, *words)
    assert code == 2
    assert told in text


def test_a_plan_that_there_is_not_is_told(project: Path) -> None:
    done = subprocess.run(
        [str(HIL), "qualify", "qualifikation"], cwd=project, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "no campaign or plan 'qualifikation'" in done.stderr) == (2, True)
