"""With xdist each device is one worker's; a worker that dies leaves its device to another."""

import re

import pytest
from support.plans import lines_with

from harness.judgement.records import ScenarioStarted
from harness.record.history import read_history

PLAN = """
@pytest.mark.parametrize("number", range(3))
def test_reset(card, number):
    card.reset()
"""


def _cards_of(run) -> dict[str, set[str]]:
    """Worker -> the cards that its history has scenarios of."""
    return {
        path.stem: {
            r.subject.name for r in read_history(path) if isinstance(r, ScenarioStarted) and r.subject
        }
        for path in run.run_dir.glob("history-*.jsonl")
    }


def test_a_device_is_one_workers(plan) -> None:
    run = plan.run(PLAN, "-n", "2", plugins=("xdist",))
    assert set(run.states.values()) == {"as-stated"}
    assert len(run.states) == 6
    assert sorted(map(sorted, _cards_of(run).values())) == [["one/card0"], ["two/card0"]]


@pytest.mark.timeout(120)
def test_a_worker_that_dies_leaves_its_device_to_another(plan, real) -> None:
    real()
    run = plan.run(
        """
        import os, signal

        def test_first(card):
            card.reset()

        def test_dies(card):
            if card.name == "one/card0":
                os.kill(os.getpid(), signal.SIGKILL)
            card.reset()

        def test_last(card):
            card.reset()
        """,
        *("-n", "2"),
        plugins=("xdist",),
    )
    assert lines_with(run.stdout, "crashed while running 'test_plan.py::test_dies[one/card0]'")
    assert run.states.pop("test_dies[one/card0]") == "interrupted"
    others = {name for name in run.states if "dies[one" not in name}
    assert {run.states[name] for name in others} == {"as-stated"}
    assert len(others) == 5
    deaths = [cards for cards in _cards_of(run).values() if "one/card0" in cards]
    assert len(deaths) == 2, "its worker, and the one that took over"
    assert lines_with(run.stdout, "1 failed", "5 passed"), "what killed a worker is not tried again"


@pytest.mark.parametrize(
    ("words", "workers"),
    [(("--hil-lab=small",), 2), (("--hil-device=one",), 1), ((), None)],
    ids=["a lab", "a device", "elsewhere"],
)
def test_auto_is_a_worker_for_each_card_of_a_lab(plan, words, workers, monkeypatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "3")
    run = plan.run("def test_nothing():\n    pass\n", "-n", "auto", *words, plugins=("xdist",))
    assert run.code == 0
    (said,) = re.findall(r"(\d+) workers? \[", run.stdout)
    assert int(said) == (workers or 3)
