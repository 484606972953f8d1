"""The fixtures that scenarios ask for: lab, host, card, images, flash, faults, history, judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from harness.errors import BlockedError
from harness.plugin.health import health_noted
from harness.plugin.judging import FAILURE, Failure
from harness.plugin.markers import given_of, parametrizes, required_by
from harness.plugin.operations import Flash, Wait, have, restored_after_failure
from harness.plugin.scenario import Scenario, device_of, new_scenario
from harness.plugin.session import SESSION, HilSession
from harness.scenarios.journal import note_setting

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.faults.injector import Injector
    from harness.hosts.protocol import Host
    from harness.judgement.judge import ScenarioJudgement
    from harness.lab.running import RunningLab
    from harness.plugin.images import ImageShelf
    from harness.record.history import History


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
    item: pytest.Item = request.node
    scenario = new_scenario(item, hil)
    if hil.allure and (device := device_of(item)):
        import allure

        allure.dynamic.parameter("device", device)
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
def wait(request: pytest.FixtureRequest, hil: HilSession) -> Wait:
    """Lets time pass: ``wait(600)``. Lab time where the lab is emulated; a scenario's system is looked at."""
    for name in ("cloud", "system"):
        if name in request.fixturenames:
            return Wait(request.getfixturevalue(name).pass_time)
    return Wait(time.sleep if hil.lab.bench is None else hil.lab.bench.pass_time)


@pytest.fixture
def host(request: pytest.FixtureRequest, hil: HilSession) -> Iterator[Host]:
    """A host of the lab; the card's host where the test asks for a card too.

    A test that asks for a host alone has no operation that could be judged: it is held to its assertions.

    :raises BlockedError: the lab lacks what the scenario requires.
    :raises NotOfferedError: it can never have that.
    """
    if not hasattr(request, "param"):
        card: CardDriver = request.getfixturevalue("card")
        yield card.host
        return
    name: str = request.param
    with hil.devices.turn(name, real=hil.is_real(name)):
        hil.lab.require(name, *required_by(request.node))
        yield hil.host(name)


@pytest.fixture
def card(request: pytest.FixtureRequest, hil: HilSession, hil_scenario: Scenario) -> Iterator[CardDriver]:
    """A card of the lab, in the state that the scenario starts from; the node id names the device.

    :raises BlockedError: its health or a check keeps the card from runs, somebody else has its lease, or the
        lab lacks what the scenario requires.
    :raises NotApplicable: the card is in another state, and the lab cannot fit one that is.
    :raises NotOfferedError: the lab can never have what the scenario requires.
    """
    name: str = request.param
    hil.require_card(name)
    host = name.split("/", 1)[0]
    with hil.devices.turn(host, real=hil.is_real(host)):
        hil.lab.require(host, *required_by(request.node))
        hil.lab.leases.health.require(name)
        if reason := hil.devices.quarantined(name):
            raise BlockedError(f"{name} is quarantined: {reason}.")
        failure = request.node.stash.setdefault(FAILURE, Failure())
        hil.lab.leases.reason = request.node.nodeid
        with hil.lab.leases.leased(name):
            driver = hil.card(name)
            with health_noted(hil, request.node, name), restored_after_failure(hil, driver, failure):
                _prepare(request.node, hil, driver)
                needs = required_by(request.node)
                named = parametrizes(request.node, "card")
                given = given_of(request.node)
                note_setting(hil.history, card=given, needs=needs, device=name, named=named)
                yield driver


def _prepare(item: pytest.Item, hil: HilSession, driver: CardDriver) -> None:
    given = given_of(item)
    if not given:
        return
    from harness.plugin.images import RootHashes
    from harness.scenarios.given import Given

    wanted = Given.parse(given, RootHashes(hil.images))
    item.config.hook.pytest_hil_card_prepare(card=driver, given=wanted)
    with hil.excluding.watched(driver.name, wanted):
        have(hil, driver, given)


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
