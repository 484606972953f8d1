"""The first field report, replayed on the default inventory: which verdict is on what, and why."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PLAN = "testplans/reproductions/device_image_out_of_sync"


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """What the report's two rounds, and the workaround, were judged to."""
    reports = tmp_path_factory.mktemp("reports")
    hil = Path(sys.executable).parent / "hil"
    command = [hil, "run", PLAN, "-k", "rest", "-o", "json", "--reports", reports]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture
def rounds(replayed):
    """Verdicts of the two rounds by reporter and the end of the subject's name."""
    said = [v for v in replayed["verdicts"] if "test_two_rounds" in v["scenario"]]
    return {(v["reporter"], v["subject"].removeprefix("system-controller/")): v for v in said}


def about(rounds, reporter, system, text):
    return next(
        v
        for (who, subject), v in rounds.items()
        if who == reporter and subject.startswith(f"{system}/") and text in v["claims"][0]
    )


def test_the_document_says_its_version(replayed) -> None:
    assert replayed["schema"] == "hil-results/2"
    assert {"subject", "verdict", "claims", "truth"} <= replayed["verdicts"][0].keys()


def test_the_controller_and_subcloud4_contradict_each_other_about_image_11(rounds) -> None:
    verdict = about(rounds, "controller-applied", "subcloud4", "bitstream_id 11 ")
    assert verdict["verdict"] == "CONTRADICTION"
    ours, theirs = verdict["claims"]
    assert ours.startswith("system-controller lists ")
    assert ours.endswith("applied True | applied_labels subcloud=abc, subcloud3=3, subcloud4=4")
    assert theirs.startswith("subcloud4 lists ")
    assert theirs.endswith("applied False | applied_labels none")
    assert "subcloud4/card0 at 0000:b4:00.0 does not hold report/11" in verdict["truth"]
    assert "holds report/2 (bitstream_id is 0x2 " in verdict["truth"]
    both_say = about(rounds, "controller-applied", "subcloud4", "bitstream_id 2 ")
    assert both_say["verdict"] == "MATCH"


def test_subcloud3_refused_an_unsigned_image_as_documents_say(rounds) -> None:
    step = rounds["dcmanager-step", "step/subcloud3"]
    assert (step["verdict"], step["outcome"]) == ("MATCH", "AS_INTENDED")
    assert step["claims"][0].startswith("the step of subcloud3 is failed")
    assert "refuses an unsigned image" in step["truth"]


def test_who_is_in_sync_and_who_is_not(rounds) -> None:
    verdicts = {n: rounds["dcmanager-sync", f"subcloud/subcloud{n}"] for n in (1, 2, 3, 4)}
    assert {n: v["verdict"] for n, v in verdicts.items()} == {
        1: "FALSE_SUCCESS",
        2: "FALSE_SUCCESS",
        3: "MATCH",
        4: "MATCH",
    }
    assert verdicts[1]["claims"] == ["the firmware of subcloud1 is in-sync"]
    assert "label subcloud=abc is gone, and nobody took it off" in verdicts[1]["truth"]
    assert verdicts[4]["claims"] == ["the firmware of subcloud4 is out-of-sync"]
    assert rounds["dcmanager-step", "step/subcloud4"]["verdict"] == "MATCH"


def test_the_workaround_leaves_nothing_that_is_not_true(replayed) -> None:
    found = [v for v in replayed["verdicts"] if "test_the_workaround" in v["scenario"]]
    assert {v["verdict"] for v in found} == {"MATCH"}
    assert len({v["subject"] for v in found if v["reporter"] == "dcmanager-sync"}) == 4
