"""`python -m benchmarks.detection AREA`: the known defects that explorations find, and what sound ones find.

One defect at a time, within a budget of steps; a line for each as it is tried, and the summary at the
end. Areas: cards, cards-ssh, registry, system. `--sound STEPS` explores without any defect instead.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.errors import HarnessError
from harness.images.recipes import load_recipes
from harness.inventory.load import load_inventory
from harness.lab.card_exploration import opened
from harness.lab.known_defects import known_defects
from harness.lab.releases import CORRECTED, Release
from harness.plugin.exploring import opening
from harness.scenarios.exploration import Budget, Explorable, Explored

_PROJECT = Path(__file__).resolve().parents[1]
_CARD = "bench1/card0"
#: Area -> the kinds of defects that it may have, and the steps after which one counts as not found.
_AREAS = {
    "cards": (("card",), 4000),
    "cards-ssh": (("card", "tool"), 200),
    "registry": (("registry", "client"), 60),
    "system": (("system",), 150),
}
_SECONDS = 3600.0


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description=__doc__)
    parser.add_argument("area", choices=_AREAS)
    parser.add_argument("--sound", type=int, metavar="STEPS", help="explore so far without any defect")
    parser.add_argument("--steps", type=int, help="for each defect; default: " + _defaults())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="DEFECT", help="default: all of the area")
    options = parser.parse_args()
    if options.sound:
        print(_told("sound", options.area, (), options.sound, options.seed)[0])
        return
    kinds, budget = _AREAS[options.area]
    names = options.names or [each["name"] for each in known_defects() if each["kind"] in kinds]
    steps = options.steps or budget
    came = {name: _told(name, options.area, (name,), steps, options.seed) for name in names}
    for said in ("found", "not found", "not tried"):
        some = [name for name, (_, how) in came.items() if how == said]
        print(f"{said} within {steps} steps, seed {options.seed}: {len(some)}: {', '.join(some)}")


def _defaults() -> str:
    return ", ".join(f"{area} {steps}" for area, (_, steps) in _AREAS.items())


def _told(what: str, area: str, defects: Sequence[str], steps: int, seed: int) -> tuple[str, str]:
    """Explore; print and return what is told of it, and how it ended."""
    began, cpu = time.monotonic(), time.process_time()
    try:
        found = _explored(area, defects, Budget(steps, _SECONDS, 1_000_000), seed)
    except HarnessError as error:
        line, how = f"{what}: not tried: {error.message}", "not tried"
    else:
        seconds, used = time.monotonic() - began, time.process_time() - cpu
        how = "found" if found.reason else "not found"
        line = (
            f"{what}: {how}, {found.steps} steps, {seconds:.1f} s, {used:.1f} s of a core here, load "
            f"{os.getloadavg()[0]:.1f}: {found.reason[:160]}"
        )
    print(line, flush=True)
    return line, how


def _explored(area: str, defects: Sequence[str], budget: Budget, seed: int) -> Explored[Any]:
    """Explore as `hil explore` does; what is found is not shrunk."""
    with _OPENED[area](defects) as explorable:
        return explorable.explored(budget, seed=seed)


def _in_memory(defects: Sequence[str]) -> AbstractContextManager[Explorable[Any]]:
    recipes = load_recipes((_PROJECT / "fixtures/images.yaml").read_text(encoding="utf-8"))
    return opened(recipes, defects)


@contextmanager
def _card(defects: Sequence[str]) -> Iterator[Explorable[Any]]:
    with TemporaryDirectory() as folder:
        inventory = load_inventory(_PROJECT / "inventory.yaml")
        with opening.card(inventory, None, _CARD, defects=defects, reports=Path(folder)) as found:
            yield found


@contextmanager
def _registry(defects: Sequence[str]) -> Iterator[Explorable[Any]]:
    yield opening.registry(load_inventory(_PROJECT / "inventory.yaml"), None, None, defects)


@contextmanager
def _system(defects: Sequence[str]) -> Iterator[Explorable[Any]]:
    release = CORRECTED.then(Release(None, tuple(defects)))
    inventory = load_inventory(_PROJECT / "inventory.yaml")
    yield opening.system(inventory, "device-images", None, release, "rest")


_OPENED: dict[str, Callable[[Sequence[str]], AbstractContextManager[Explorable[Any]]]] = {
    "cards": _in_memory,
    "cards-ssh": _card,
    "registry": _registry,
    "system": _system,
}

if __name__ == "__main__":
    main()
