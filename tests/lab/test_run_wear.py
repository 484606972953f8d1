"""Updates that a run has begun: its processes count together, for every gate of a card or of a system."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.inventory.load import load_inventory
from harness.inventory.model import Card
from harness.lab.leasing import leases_of
from harness.lab.running import RunningLab

INVENTORY = """
version: 1
default_lab: bench
labs:
  bench:
    hosts:
      one:
        ssh: {address: 127.0.0.1, port: 1, user: lab, credentials: {env: SECRET}}
        cards:
          card0: {address: '0000:b2:00.0', identity: '64:4c:36:00:00:01', wear: {per_run: 3}}
          card1: {address: '0000:3b:00.0', identity: '64:4c:36:00:00:02', wear: {flash_count: 900}}
"""


class Process:
    """One process of a run, as far as leases and counts go: an inventory and a holder of its own."""

    def __init__(self, folder: Path, run: str, open_: ExitStack) -> None:
        entry = load_inventory(folder / "inventory.yaml").lab()
        holder = leases_of("x", said=f"sqlite:///{folder}/leases.sqlite", folder=run)
        self.lab = open_.enter_context(RunningLab(entry, leases=holder))
        open_.callback(holder.close)
        self.updates = self.lab.leases.updates

    def card(self, name: str = "one/card0") -> Card:
        return self.lab.entry.card(name)[1]


@pytest.fixture
def open_(tmp_path: Path) -> Iterator[ExitStack]:
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    with ExitStack() as opened:
        yield opened


def test_processes_of_a_run_count_together_and_others_do_not(tmp_path: Path, open_: ExitStack) -> None:
    one, two = (Process(tmp_path, "20310203-040506-77", open_) for _ in range(2))
    other = Process(tmp_path, "20310203-040506-78", open_)
    alone = Process(tmp_path, "", open_)  # such as a sweep, which has no folder of a run
    one.updates.begin(one.card())
    two.updates.begin(two.card(), 2)
    assert [p.updates.begun(p.card()) for p in (one, two, other, alone)] == [3, 3, 0, 0]


def test_a_card_without_a_budget_of_a_run_asks_no_database(tmp_path: Path, open_: ExitStack) -> None:
    process = Process(tmp_path, "20310203-040506-77", open_)
    process.updates.begin(process.card("one/card1"))
    assert process.updates.begun(process.card("one/card1")) == 1
    assert not (tmp_path / "leases.sqlite").exists()


def test_an_emulated_card_of_a_lab_of_our_own_is_counted_here(tmp_path: Path, open_: ExitStack) -> None:
    text = INVENTORY.replace(
        "ssh: {address: 127.0.0.1, port: 1, user: lab, credentials: {env: SECRET}}", "emulated: {}"
    )
    (tmp_path / "inventory.yaml").write_text(text)
    one, two = (Process(tmp_path, "20310203-040506-77", open_) for _ in range(2))
    one.updates.begin(one.card())
    assert (one.updates.begun(one.card()), two.updates.begun(two.card())) == (1, 0), "they are two cards"
    assert not (tmp_path / "leases.sqlite").exists()
