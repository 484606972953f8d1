"""Opens what is explored: a registry, a system, a card behind its driver; each with what makes it anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from harness.errors import ConfigurationError
from harness.lab.releases import CORRECTED, Release, released
from harness.plugin.exploring.played import Recorded
from harness.scenarios.counterexample import about
from harness.scenarios.exploration import Disagreement, Explorable, Explored, Step

if TYPE_CHECKING:
    from pathlib import Path

    from harness.inventory.model import Inventory
    from harness.lab.system_bench import Way
    from harness.record.history import History

S = TypeVar("S", bound=Step)


def scenario_of(explored: Explorable[S], found: Explored[S], source: str) -> dict[str, Any]:
    """Return the scenario that does what was found, and states what came of it without any defect.

    That is tried: what nobody can tell then, nobody can tell at all.

    :raises HarnessError: as what is explored does.
    """
    done, _ = _played(explored.fresh, found.counterexample)
    expect = _played(explored.sound, found.counterexample)[1] if explored.sound else {}
    return {
        "about": about(found.counterexample, found.reason),
        "source": source,
        "given": dict(explored.given),
        "steps": done,
        "expect": expect,
    }


def _played(fresh: Callable[[], Any], steps: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Take steps; return how a scenario file says them, and what it states where nothing was found."""
    with closing(fresh()) as played:
        try:
            for step in steps:
                played.do(step)
        except Disagreement:
            return [*played.written, *played.last_look], {}
        return [*played.written, *played.last_look], played.expectation()


def registry(
    inventory: Inventory, lab: str | None, name: str | None, defects: Sequence[str]
) -> Explorable[Any]:
    """Return an emulated registry of a lab. :raises ConfigurationError: there is no such one, or defect."""
    from harness.plugin.exploring.registries import RULES, ExploredRegistry

    entry = inventory.lab(lab).registry(name)
    with_defects = released(inventory, lab, Release(None, tuple(defects))).lab(lab).registry(name)
    given = {"registry": name} if name else {}
    return Explorable(
        lambda: ExploredRegistry(with_defects), lambda: ExploredRegistry(entry), RULES, length=20, given=given
    )


def system(inventory: Inventory, lab: str, name: str | None, release: Release, way: Way) -> Explorable[Any]:
    """Return an emulated system with one card of a lab.

    :raises ConfigurationError: there is no such system, release or defect, or it has other cards than one.
    """
    from harness.lab.system_bench import systems_of
    from harness.plugin.exploring.systems import RULES, ExploredSystem

    entry = inventory.lab(lab)
    known = [each for each in systems_of(entry) if entry.controllers[each].emulated is not None]
    chosen = name or (known[0] if known else "")
    cards = [card for host in entry.hosts.values() if host.system == chosen for card in host.cards]
    if chosen not in known or len(cards) != 1:
        raise ConfigurationError(
            f"The lab {entry.name} has no emulated system {chosen or 'with a card'} of one card.",
            hint=f"Its emulated systems: {', '.join(known) or 'none'}.",
        )
    sound = released(inventory, lab, CORRECTED)
    mine = released(sound, lab, release)
    shelf, recipes = _images(inventory)
    given = {"lab": entry.name, "system": chosen, "release": {"name": "corrected"}, "way": way}
    return Explorable(
        lambda: ExploredSystem(mine, entry.name, chosen, shelf, recipes, way),
        lambda: ExploredSystem(sound, entry.name, chosen, shelf, recipes, way),
        RULES,
        length=30,
        given=given,
    )


@contextmanager
def opened(makes: Callable[[], Explorable[S]]) -> Iterator[Explorable[S]]:
    """Give what opens nothing before it is made anew. Errors as of ``makes``."""
    yield makes()


@contextmanager
def card(
    inventory: Inventory,
    lab: str | None,
    name: str,
    *,
    defects: Sequence[str] = (),
    allowed: frozenset[str] = frozenset(),
    wear: int = 0,
    reports: Path,
    kept: History | None = None,
) -> Iterator[Explorable[Any]]:
    """Give a card behind its driver, under its lease; a real one with what is permitted.

    :param name: as ``host/card``. :param allowed: the irreversible acts that the command line names.
    :param wear: updates that are allowed. :param reports: as :func:`harness.lab.card_bench.open_card` has it.
    :param kept: where the history of a real card is kept.
    :raises HarnessError: it cannot be reached, or somebody else has it.
    """
    from harness.lab.card_bench import open_card
    from harness.plugin.exploring.cards import RULES, ExploredHostCard, rules_on_real
    from harness.scenarios.card_model import IMAGES

    changed = released(inventory, lab, Release(None, tuple(defects)))
    shelf, recipes = _images(inventory)
    with open_card(changed, lab, name, allowed=allowed, reports=reports, reason="hil explore cards") as bench:
        permitted = bench.driver(Recorded("permits")).permitted
        images = [each for each in IMAGES if shelf[each].facts.irreversible <= permitted]
        known = frozenset(images)
        on_bench = bench.bench is not None
        yield Explorable(
            lambda: ExploredHostCard(bench, shelf, recipes, kept),
            None,
            [_within(rule, known) for rule in RULES] if on_bench else rules_on_real(images, wear),
            length=40,
            burst=5 if on_bench else 1,
            wears=not on_bench,
        )


def _within(rule: Sequence[Any], images: frozenset[str]) -> list[Any]:
    """Return the steps of a rule that need no other image; a reset where there is none."""
    from harness.scenarios.card_model import Step as CardStep

    return [step for step in rule if images.issuperset(step.images)] or [CardStep("reset", word="bmc_user")]


def _images(inventory: Inventory) -> tuple[Any, Any]:
    from harness.images.recipes import load_recipes
    from harness.lab.background import project_of
    from harness.plugin.images import ImageShelf

    project = project_of(inventory)
    shelf = ImageShelf.of(project)
    return shelf, load_recipes((project / "fixtures" / "images.yaml").read_text(encoding="utf-8"))
