"""The fixtures of scenarios about a control plane: system, and the way it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import pytest

from harness.errors import ConfigurationError
from harness.plugin.markers import given_of
from harness.plugin.releases import release_of
from harness.plugin.scenario import Scenario, step
from harness.plugin.session import HilSession
from harness.scenarios.journal import note_setting

if TYPE_CHECKING:
    from harness.inventory.model import Inventory, Lab
    from harness.lab.releases import Release
    from harness.lab.system_bench import SystemBench, Way
    from harness.plugin.images import ImageShelf
    from harness.plugin.systems import System


Kind = Literal["system", "cloud"]


@pytest.fixture
def hil_way(request: pytest.FixtureRequest) -> Way:
    """How the system is asked: ``rest`` or ``cli``; what ``--hil-way`` says, where no scenario says it."""
    return way_of_run(request.config)


def way_of_run(config: pytest.Config) -> Way:
    """Return how systems are asked of which no scenario says it."""
    way: Way = config.getoption("hil_way") or "rest"
    return way


@pytest.fixture
def system(
    request: pytest.FixtureRequest,
    hil: HilSession,
    hil_scenario: Scenario,
    hil_way: Way,
    images: ImageShelf,
) -> Iterator[System]:
    """One StarlingX system with its hosts and cards; an emulated one is started anew for each scenario.

    :raises NotApplicable: the lab has no such system, or another way was asked for.
    """
    from harness.lab.releases import released
    from harness.lab.running import start_lab
    from harness.lab.system_bench import SystemBench, narrowed
    from harness.plugin.systems import System

    lab_name, name, release = chosen(request.node, hil, hil_way, "system")
    lab = hil.inventory.lab(lab_name)
    own = released(narrowed(hil.inventory, lab_name, name), lab.name, release)
    with (
        start_lab(own, lab.name, leases=hil.leases) as running,
        SystemBench(running, name, hil.history, way=hil_way, allowed=hil.allowed_on_real) as bench,
    ):
        made = System(hil, bench, images)
        _prepare(request.node, hil, bench)
        note_settings(request, hil, own, hil_way, system=name)
        hil_scenario.before_end.append(made.faults.settle)
        bench.look()
        yield made


def _prepare(item: pytest.Item, hil: HilSession, bench: SystemBench) -> None:
    """Let the first card be as the marker ``hil_given`` has it, before the system is asked anything."""
    given = given_of(item)
    if not given:
        return
    from harness.plugin.images import RootHashes
    from harness.scenarios.given import Given
    from harness.scenarios.prepare import prepare

    card = next(iter(bench.cards.values())).driver
    words = ", ".join(f"{name} {value}" for name, value in given.items())
    with step(hil, card.name, f"prepare: {words}"):
        prepare(card, Given.parse(given, RootHashes(hil.images)), bench.bench)


def chosen(item: pytest.Item, hil: HilSession, hil_way: Way, kind: Kind) -> tuple[str | None, str, Release]:
    """Return the lab of a scenario, its system or cloud there, and the release that it is emulated at.

    Asks the inventory alone.

    :raises NotApplicable: the lab has none, another way was asked for, or a real one is what it is.
    """
    from harness.lab.releases import CORRECTED
    from harness.scenarios.prepare import NotApplicable

    if hil_way != (item.config.getoption("hil_way") or hil_way):
        raise NotApplicable(f"--hil-way asks for another way than {hil_way}")
    lab_name = lab_of(item, hil)
    lab = hil.inventory.lab(lab_name)
    known, what_one_has = _known_in(lab, kind)
    callspec = getattr(item, "callspec", None)
    name: str = (callspec.params if callspec else {}).get(kind, known[0] if known else "")
    if name not in known:
        raise NotApplicable(f"the lab {lab.name} has no {kind} {name or what_one_has}")
    release = release_of(item)
    if release == CORRECTED and lab.controllers[name].emulated is None:
        raise NotApplicable(f"{name} is real, and no real {kind} is without known defects")
    return lab_name, name, release


def _known_in(lab: Lab, kind: Kind) -> tuple[list[str], str]:
    """Return the systems or clouds of a lab that scenarios can be about, and what one of them has."""
    from harness.lab.cloud_bench import clouds_of
    from harness.lab.system_bench import systems_of

    if kind == "system":
        return systems_of(lab), "with a card"
    return list(clouds_of(lab)), "of subclouds with cards"


def note_settings(
    request: pytest.FixtureRequest, hil: HilSession, own: Inventory, way: Way, **name: str
) -> None:
    """Record what the system or cloud of a scenario is, and by which way it is asked.

    Its lab and name only where the scenario itself says them.
    """
    lab = own.lab(None)
    marker = request.node.get_closest_marker("hil_lab")
    note_setting(
        hil.history,
        lab=str(marker.args[0]) if marker is not None and marker.args else "",
        way=way,
        release=_release_of(lab, release_of(request.node)),
        card=given_of(request.node),
        **(name if hasattr(request, "param") else {}),
    )


def _release_of(lab: Lab, said: Release) -> dict[str, Any]:
    """Return the release of the emulated systems of a lab, with what else was said of its defects.

    Empty where they are real, or differ and nothing was said.
    """
    emulated = {
        (each.emulated.release, each.emulated.defects, each.emulated.corrected_defects)
        for each in lab.controllers.values()
        if each.emulated is not None
    }
    if len(emulated) != 1:
        return {"name": said.name, **said.to_json()} if said.name else {}
    ((name, defects, corrected),) = emulated
    besides = [defect for defect in said.defects if defect not in defects]
    without = [defect for defect in said.without if defect not in corrected]
    found = {"name": name, "defects": [*defects, *besides], "corrected_defects": [*corrected, *without]}
    return {key: value for key, value in found.items() if value}


def lab_of(node: pytest.Item, hil: HilSession) -> str | None:
    """Return the lab of a scenario's system: that of ``--hil-lab``, else of its marker ``hil_lab``.

    An inventory that somebody named, by option or by variable, need not have the lab of the marker: it is
    the inventory's default then.

    :raises ConfigurationError: the marker names none, or not one.
    """
    from harness.inventory.load import named_inventory

    chosen: str | None = node.config.getoption("hil_lab")
    marker = node.get_closest_marker("hil_lab")
    named = node.config.getoption("hil_inventory") or named_inventory()
    if chosen is not None or marker is None or named:
        return chosen
    if len(marker.args) != 1 or marker.kwargs:
        raise ConfigurationError(
            f"{node.nodeid}: the marker hil_lab names one lab.", hint="Such as hil_lab('device-images')."
        )
    return str(marker.args[0])
