"""Exploration: a thousand steps on cards in memory, with real signatures, and a hundred on one over SSH."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.rows import Row, in_turn
from harness.images.recipes import load_recipes
from harness.inventory.load import load_inventory
from harness.lab.card_exploration import explore_cards
from harness.plugin.exploring import opening
from harness.scenarios.exploration import Budget, explore

_CARD = "bench1/card0"
_IN_MEMORY, _OVER_SSH = 1000, 100


def measure(rounds: int) -> list[Row]:
    """Return both rows; every round has a seed of its own. What was passed over is no step."""
    project = Path(__file__).resolve().parents[1]
    recipes = load_recipes((project / "fixtures/images.yaml").read_text(encoding="utf-8"))
    inventory = load_inventory(project / "inventory.yaml")
    memory_seed, ssh_seed = count(1), count(1)

    def in_memory() -> None:
        budget = Budget(_IN_MEMORY, 600.0, _IN_MEMORY)
        _made(explore_cards(recipes, budget, seed=next(memory_seed)).steps, _IN_MEMORY)

    with TemporaryDirectory() as folder:
        opened = opening.card(inventory, None, _CARD, reports=Path(folder))
        with opened as explorable:
            over_ssh: Callable[[], object] = partial(_over_ssh, explorable, ssh_seed)
            quick, slow = in_turn((in_memory, over_ssh), rounds, warm_up=1)
    judged = "the card read, all that was said judged and both compared with the model after each"
    return [
        Row("explore, memory", f"{_IN_MEMORY} steps, signatures verified", "ms", quick, 250),
        Row("explore, SSH", f"{_OVER_SSH} steps, {judged}", "ms", slow, 1000),
    ]


def _over_ssh(explorable: opening.Explorable[Any], seeds: count[int]) -> None:
    budget = Budget(_OVER_SSH, 600.0, _OVER_SSH)
    found = explore(
        explorable.fresh,
        explorable.rules,
        budget,
        seed=next(seeds),
        length=explorable.length,
        burst=explorable.burst,
        all_kinds=True,  # as `hil explore cards --over ssh` does it
    )
    _made(found.steps, _OVER_SSH)


def _made(steps: int, wanted: int) -> None:
    if steps != wanted:
        raise AssertionError(f"{steps} steps were made, and {wanted} were to be measured")
