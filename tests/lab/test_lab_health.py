"""Before a card of a real lab is written to: its health is asked, and it is looked at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.cards import FileCard, add_card

from harness.errors import BlockedError
from harness.health.states import Event, State
from harness.health.store import Cause, HealthStore, Place
from harness.hosts.local import LocalHost
from harness.inventory.load import load_inventory
from harness.lab.leasing import leases_of
from harness.lab.running import RunningLab
from harness.leases.store import LeaseStore

MAC = "64:4c:36:00:12:a0"
TOOLS = ("fpgasupdate", "rsu", "fpgainfo")
INVENTORY = """
version: 1
default_lab: bench
labs:
  bench:
    hosts:
      one:
        local: true
        sysfs: {folder}/sys
        upload_dir: {folder}
        tools: {{fpgasupdate: {folder}/fpgasupdate, rsu: {folder}/rsu, fpgainfo: {folder}/fpgainfo}}
        cards:
          card0: {{address: '0000:b2:00.0', identity: '64:4c:36:00:12:a0'}}
"""
CARD = Place(MAC, "one/card0", "bench")


class Site:
    """A lab with one card of files, and what the databases have of it."""

    def __init__(self, folder: Path, running: RunningLab, card: FileCard) -> None:
        self.running = running
        self.card = card
        self.folder = folder
        self.looks = 0
        running.leases.reach = self._reach

    @contextmanager
    def _reach(self, host: object) -> Iterator[LocalHost]:
        self.looks += 1
        yield LocalHost("one", tools={n: str(self.folder / n) for n in TOOLS})

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/leases.sqlite"

    def state(self) -> State:
        with HealthStore(self.url) as store:
            return store.of(CARD).state

    def note(self, event: Event, reason: str = "by hand") -> None:
        with HealthStore(self.url) as store:
            store.note(CARD, event, Cause("ada@desk", reason))

    def held(self) -> list[str]:
        with LeaseStore(self.url) as store:
            return [held.lease.name for held in store.all()]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    for name in TOOLS:
        (tmp_path / name).write_text("#!/bin/sh\necho 2.14.0\n")
        (tmp_path / name).chmod(0o755)
    card = add_card(tmp_path / "sys", "0000:b2:00.0", MAC)
    card.write("sec/control/image_load", "")
    (tmp_path / "inventory.yaml").write_text(INVENTORY.format(folder=tmp_path))
    entry = load_inventory(tmp_path / "inventory.yaml").lab()
    holder = leases_of("mine", said=f"sqlite:///{tmp_path}/leases.sqlite")
    with RunningLab(entry, leases=holder) as running:
        yield Site(tmp_path, running, card)
    holder.close()


def use(site: Site) -> None:
    with site.running.leases.leased("one/card0"):
        assert site.held() == ["one/card0"]


def test_a_card_that_is_well_is_used_and_looked_at_once(site: Site) -> None:
    use(site)
    looks = site.looks
    use(site)
    assert site.looks == looks
    assert site.held() == []


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Event.QUARANTINE, "one/card0 is quarantined since "),
        (Event.MAINTENANCE, "one/card0 is in maintenance since "),
    ],
)
def test_a_card_that_is_kept_from_runs_is_not_touched(site: Site, event: Event, words: str) -> None:
    site.note(event, "it smells")
    with pytest.raises(BlockedError) as told:
        use(site)
    assert told.value.message.startswith(words)
    assert told.value.message.endswith("by ada@desk: it smells")
    assert "hil card clear one/card0 --reason" in told.value.hint
    assert (site.looks, site.held()) == (0, [])


@pytest.mark.parametrize("act", ["power", "check"])
def test_nor_is_its_host_switched(site: Site, act: str) -> None:
    site.note(Event.QUARANTINE)
    with pytest.raises(BlockedError, match="is quarantined"):
        site.running.leases.check_host("one") if act == "power" else site.running.leases.check("one/card0")
    assert site.held() == []


def test_what_we_have_already_is_put_back_also_when_somebody_quarantines_it(site: Site) -> None:
    with site.running.leases.leased("one/card0"):
        site.note(Event.QUARANTINE)
        site.running.leases.check("one/card0")
    with pytest.raises(BlockedError):
        use(site)


def test_a_check_that_is_bad_blocks_gives_the_lease_back_and_is_made_again(site: Site) -> None:
    site.card.write("bmc/mac_address", "64:4c:36:00:12:b0\n")
    with pytest.raises(BlockedError, match="one/card0 is not used: card: another card") as told:
        use(site)
    assert told.value.hint
    assert (site.held(), site.state()) == ([], State.SUSPECT)
    site.card.write("bmc/mac_address", f"{MAC}\n")
    use(site)
    assert site.state() is State.GOOD, "a clean check ends a doubt"


def test_a_warning_leaves_a_doubt_and_the_card_is_used(site: Site) -> None:
    site.card.file("sec/control/image_load").unlink()
    use(site)
    assert site.state() is State.SUSPECT


def test_a_look_says_who_found_what(site: Site) -> None:
    site.card.file("sec/control/image_load").unlink()
    use(site)
    with HealthStore(site.url) as store:
        (step,) = store.changes(MAC)
    assert step.cause.run == "mine"
    assert step.cause.who.startswith("mine (process ")
    assert "LP 2160223" in step.cause.reason
