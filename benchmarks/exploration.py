"""Exploration: a thousand steps on cards in memory, with real signatures, and a hundred on cards over SSH."""

from __future__ import annotations

from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.rows import Row, in_turn
from harness.cli.explored import cores
from harness.images.recipes import load_recipes
from harness.inventory.load import load_inventory
from harness.lab.card_exploration import opened
from harness.plugin.exploring import opening
from harness.scenarios.exploration import Budget
from harness.scenarios.explored_at_once import ExploredAtOnce

_CARD = "bench1/card0"
_IN_MEMORY, _OVER_SSH = Budget(1000, 600.0, 1000), Budget(100, 600.0, 100)


def measure(rounds: int) -> list[Row]:
    """Return both rows; every round has a seed of its own. What was passed over is no step."""
    project = Path(__file__).resolve().parents[1]
    recipes = load_recipes((project / "fixtures/images.yaml").read_text(encoding="utf-8"))
    inventory = load_inventory(project / "inventory.yaml")
    memory_seed, ssh_seed, jobs_seed, jobs = count(1), count(1), count(1), cores()
    with TemporaryDirectory() as folder:
        opens = partial(opening.card, inventory, None, _CARD, reports=Path(folder))
        with opened(recipes) as in_memory, opens() as over_ssh, ExploredAtOnce(opens, jobs) as at_once:
            runs = (
                lambda: _made(_IN_MEMORY, in_memory.explored(_IN_MEMORY, seed=next(memory_seed)).steps),
                lambda: _made(_OVER_SSH, over_ssh.explored(_OVER_SSH, seed=next(ssh_seed)).steps),
                lambda: _made(_OVER_SSH, at_once.explore(_OVER_SSH, seed=next(jobs_seed)).steps),
            )
            quick, alone, all_cores = in_turn(runs, rounds, warm_up=1)
    what = f"{_IN_MEMORY.steps} steps, signatures verified"
    judged = "the card read, all that was said judged and both compared with the model after each"
    by_all = f"{_OVER_SSH.steps} steps by {jobs} jobs, {judged}"
    return [
        Row("explore, memory", what, "ms", quick, 250),
        Row("explore, SSH", by_all, "ms", all_cores, 1000, peer="one job", peer_result=alone),
    ]


def _made(wanted: Budget, steps: int) -> None:
    if steps != wanted.steps:
        raise AssertionError(f"{steps} steps were made, and {wanted.steps} were to be measured")
