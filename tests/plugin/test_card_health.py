"""What the end of a scenario says of its card's health, and what later runs make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from support.plans import Ended

from harness.errors import (
    BlockedError,
    CardHangsError,
    CardLostError,
    DeviceError,
    InfrastructureError,
    RefusedError,
)
from harness.health.states import Event, State
from harness.health.store import HealthStore, Place
from harness.judgement.model import Outcome
from harness.plugin.health import said_by
from harness.plugin.judging import state_of
from harness.scenarios.prepare import NotApplicable


@dataclass
class Judged:
    """As much of a judgement as matters."""

    outcome: Outcome | None
    as_stated: bool


WELL = Judged(Outcome.AS_INTENDED, as_stated=True)
UNSTATED = Judged(Outcome.FAILED, as_stated=False)


@pytest.mark.parametrize(
    ("error", "judged", "event"),
    [
        (None, WELL, Event.CLEAN),
        (None, Judged(None, as_stated=True), Event.CLEAN),
        (None, Judged(Outcome.FAILED, as_stated=True), Event.CLEAN),
        (None, UNSTATED, None),
        (AssertionError("it is not so"), UNSTATED, None),
        (AssertionError("it is not so"), WELL, None),
        (DeviceError("the card said no"), UNSTATED, None),
        (None, Judged(Outcome.UNKNOWN, as_stated=True), None),
        (None, Judged(Outcome.UNKNOWN, as_stated=False), Event.DOUBT),
        (InfrastructureError("the host is gone"), UNSTATED, Event.DOUBT),
        (ValueError("a bug"), UNSTATED, Event.DOUBT),
        (KeyboardInterrupt(), UNSTATED, Event.DOUBT),
        (CardLostError("nowhere"), UNSTATED, Event.FAILURE),
        (CardHangsError("waited in vain"), UNSTATED, Event.FAILURE),
        (BlockedError("no power switch"), WELL, None),
        (NotApplicable("another state"), WELL, None),
        (RefusedError("cannot be undone"), WELL, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_an_end_says(error: BaseException | None, judged: Any, event: Event | None) -> None:
    state, reason = state_of(error)
    said = said_by(error, state, reason, judged)
    assert (said[0] if said else None) == event


FIRST = """
import pytest

@pytest.fixture
def shaky(card):
    yield
    raise RuntimeError("the cable is loose")

def test_first(card, shaky):
    card.reset()
"""
SECOND = """
def test_second(card):
    card.reset()
"""


def test_a_card_that_a_run_could_not_put_back_is_kept_from_the_next_one(plan: Any, real: Any) -> None:
    real()
    leases = f"sqlite:///{plan.folder}/leases.sqlite"
    words = (f"--hil-leases={leases}", "--hil-device=one", "-p", "no:xdist")
    plan.run(FIRST, *words, "--hil-reports=first")
    card = Place("64:4c:36:00:00:01", "one/card0", "small")
    with HealthStore(leases) as store:
        found = store.of(card)
        assert found.state is State.QUARANTINED
        assert "the cable is loose" in found.cause.reason
        assert found.cause.evidence.endswith("test_plan.py::test_first[one/card0]")
        assert str(plan.folder / "first") in found.cause.evidence
    run: Ended = plan.run(SECOND, *words)
    (scenario,) = run.results["scenarios"]
    assert scenario["state"] == "BLOCKED"
    assert "one/card0 is quarantined since " in scenario["reason"]
    assert f"by {found.cause.who}: " in scenario["reason"]
    assert "hil card clear one/card0" in scenario["reason"]
    assert not [record for record in run.records if type(record).__name__ in ("Intent", "Observation")]


def test_auto_means_a_worker_for_each_healthy_card(
    plan: Any, real: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.inventory.load import load_inventory
    from harness.plugin.scheduling import workers

    real()
    lab = load_inventory(plan.folder / "inventory.yaml").lab()
    leases = f"sqlite:///{plan.folder}/leases.sqlite"
    options: dict[str, Any] = {
        "hil_inventory": str(plan.folder / "inventory.yaml"),
        "hil_reports": str(plan.folder / "r"),
    }
    options |= {"hil_leases": leases, "hil_lease_wait": 0.0, "hil_defect": (), "hil_without_defect": ()}
    config: Any = Config(options)
    assert workers(config) == 2
    with HealthStore(leases) as store:
        for number, (host, _) in enumerate(lab.cards(), start=1):
            place = Place(f"64:4c:36:00:00:0{number}", f"{host.name}/card0", "small")
            store.note(place, Event.MAINTENANCE, found("new cable"))
            assert workers(config) == 1, "one is healthy; and where none is, one worker tells why"


def found(reason: str) -> Any:
    from harness.health.store import Cause

    return Cause("ada@desk", reason)


class Config:
    """As much of pytest's configuration as matters here."""

    args: tuple[str, ...] = ()

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self.pluginmanager = self

    def getoption(self, name: str, default: Any = None) -> Any:
        return self._options.get(name, default)

    def get_plugins(self) -> list[Any]:
        return []
