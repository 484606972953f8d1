"""Hooks that other plugins and conftest files may implement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from harness.cards.driver import CardDriver
    from harness.errors import HarnessError
    from harness.judgement.judge import Judgement, ScenarioJudgement
    from harness.lab.running import RunningLab
    from harness.scenarios.given import Given
    from harness.scenarios.plan import Plan


@pytest.hookspec
def pytest_hil_lab_started(lab: RunningLab) -> None:
    """Called once per process, after the lab of this run answers."""


@pytest.hookspec
def pytest_hil_run_started() -> None:
    """Called once per process, when its history has begun."""


@pytest.hookspec
def pytest_hil_card_prepare(card: CardDriver, given: Given) -> None:
    """Called before a card is brought into the state that a scenario wants."""


@pytest.hookspec
def pytest_hil_progress(device: str, doing: str) -> None:
    """Called when an operation on ``device`` begins or gets on: what it does now, in a few words."""


@pytest.hookspec
def pytest_hil_scenario_judged(item: pytest.Item, judgement: ScenarioJudgement) -> None:
    """Called when a scenario was judged, before its teardown."""


@pytest.hookspec
def pytest_hil_run_judged(run_dir: Path, judgement: Judgement) -> None:
    """Called in the controlling process when the whole run was judged, and its results were written."""


@pytest.hookspec
def pytest_hil_campaign_begun(told: str, rounds: int | None) -> None:
    """Called when the scenarios of a campaign are chosen: its order, seed and rounds in words.

    ``rounds``: how often each runs at most; None: nobody knows.
    """


@pytest.hookspec
def pytest_hil_campaign_over(campaign: Mapping[str, Any]) -> None:
    """Called at the end of a campaign: its name, order and seed, what ran, and what was left out and why."""


@pytest.hookspec(firstresult=True)
def pytest_hil_planned(plan: Plan) -> bool | None:
    """Called instead of running, with what the collected scenarios would do. Who tells it returns True."""


@pytest.hookspec
def pytest_hil_run_trouble(error: HarnessError) -> None:
    """Called at the end of a run for each error that belongs to none of its scenarios."""
