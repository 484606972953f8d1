"""The fixtures that scenarios ask for: lab, host, card, images, flash, faults, history, judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import BlockedError
from harness.plugin.operations import FailureProbe, Flash, restored_after_failure
from harness.plugin.scenario import SCENARIO, Scenario, expectation_of, step
from harness.plugin.session import SESSION, HilSession

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.faults.injector import Injector
    from harness.hosts.protocol import Host
    from harness.judgement.judge import ScenarioJudgement
    from harness.lab.running import RunningLab
    from harness.plugin.images import ImageShelf
    from harness.record.history import History

FAILURE = pytest.StashKey[FailureProbe]()


@pytest.fixture(scope="session")
def hil(request: pytest.FixtureRequest) -> HilSession:
    """The run: inventory, lab and history behind the other fixtures."""
    return request.config.stash[SESSION]


@pytest.fixture(scope="session")
def lab(hil: HilSession) -> RunningLab:
    """The lab of the inventory, started if it is an emulated one."""
    return hil.lab


@pytest.fixture(scope="session")
def images(hil: HilSession) -> ImageShelf:
    """Images by recipe name: ``images["A/csk0"]``."""
    return hil.images


@pytest.fixture
def hil_scenario(request: pytest.FixtureRequest, hil: HilSession) -> Scenario:
    """The scenario of this test: its records, from here to the end of its call."""
    from harness.judgement.records import Subject

    item: pytest.Item = request.node
    callspec = getattr(item, "callspec", None)
    device = callspec.params.get("card") if callspec else None
    subject = Subject("card", device, host=device.split("/", 1)[0]) if isinstance(device, str) else None
    scenario = Scenario(hil, item.nodeid, subject, expectation_of(item))
    item.stash[SCENARIO] = scenario
    scenario.begin()
    return scenario


@pytest.fixture
def history(hil: HilSession, hil_scenario: Scenario) -> History:
    """The append-only record of this run."""
    return hil.history


@pytest.fixture
def judge(hil_scenario: Scenario) -> Callable[[], ScenarioJudgement]:
    """Judges what is recorded of this scenario so far."""
    return hil_scenario.judge


@pytest.fixture
def host(request: pytest.FixtureRequest, hil: HilSession, hil_scenario: Scenario) -> Host:
    """A host of the lab; the card's host where the test asks for a card too."""
    if "card" in request.fixturenames:
        card: CardDriver = request.getfixturevalue("card")
        return card.host
    return hil.host(request.param)


@pytest.fixture
def card(request: pytest.FixtureRequest, hil: HilSession, hil_scenario: Scenario) -> Iterator[CardDriver]:
    """A card of the lab, in the state that the scenario starts from; the node id names the device.

    :raises BlockedError: the card is quarantined, or the lab lacks what the scenario requires.
    :raises NotApplicable: the card is in another state, and the lab cannot fit one that is.
    """
    name: str = request.param
    if name in hil.quarantined:
        raise BlockedError(f"{name} is quarantined: {hil.quarantined[name]}.")
    _require(request.node, hil, name.split("/", 1)[0])
    driver = hil.card(name)
    from harness.plugin.images import RootHashes
    from harness.scenarios.given import Given
    from harness.scenarios.prepare import prepare

    failure = request.node.stash.setdefault(FAILURE, FailureProbe())
    given = _given(request.node)
    with restored_after_failure(hil, driver, failure):
        if given:
            with step(hil, f"prepare {name}: {given}"):
                prepare(driver, Given.parse(given, RootHashes(hil.images)), hil.lab.bench)
        yield driver


def _require(item: pytest.Item, hil: HilSession, host: str) -> None:
    for marker in item.iter_markers("hil_requires"):
        for capability in marker.args:
            if not hil.lab.offers(host, capability):
                raise BlockedError(
                    f"The scenario needs {capability!r}, which the lab does not offer for {host}.",
                    hint=f"Give {host} the capability {capability!r} in the inventory.",
                )


@pytest.fixture
def faults(hil: HilSession, card: CardDriver, hil_scenario: Scenario) -> Iterator[Injector]:
    """Arms disturbances at named points of an operation; undone at the latest when the test ends."""
    from harness.faults.injector import Injector

    injector = Injector(card, hil.lab, hil.history)
    hil_scenario.before_end.append(injector.settle)
    try:
        yield injector
    finally:
        injector.undo_all()


@pytest.fixture
def flash(
    hil: HilSession,
    card: CardDriver,
    images: ImageShelf,
    faults: Injector,
) -> Flash:
    """Flashes an image and activates it: ``flash("A/csk0", lands("UG 683519"))``."""
    return Flash(hil, card, images, faults)


def _given(item: pytest.Item) -> dict[str, Any]:
    """Return the state that the test's parameter ``given`` or its marker ``hil_given`` names."""
    callspec = getattr(item, "callspec", None)
    if callspec and "given" in callspec.params:
        return dict(callspec.params["given"])
    marker = item.get_closest_marker("hil_given")
    return dict(marker.kwargs) if marker else {}
