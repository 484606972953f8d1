"""Hooks that other plugins and conftest files may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from harness.cards.driver import CardDriver
    from harness.judgement.judge import Judgement, ScenarioJudgement
    from harness.lab.running import RunningLab
    from harness.scenarios.given import Given


@pytest.hookspec
def pytest_hil_lab_started(lab: RunningLab) -> None:
    """Called once per process, after the lab of this run answers."""


@pytest.hookspec
def pytest_hil_card_prepare(card: CardDriver, given: Given) -> None:
    """Called before a card is brought into the state that a scenario wants."""


@pytest.hookspec
def pytest_hil_scenario_judged(item: pytest.Item, judgement: ScenarioJudgement) -> None:
    """Called when a scenario was judged, before its teardown."""


@pytest.hookspec
def pytest_hil_run_judged(run_dir: Path, judgement: Judgement) -> None:
    """Called in the controlling process when the whole run was judged and its results are on disk."""
