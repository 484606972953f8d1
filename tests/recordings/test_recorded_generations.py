"""Every driver generation and tool era can be recorded, and its replay is the same card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.cards.discovery import discover
from harness.cards.driver import CardDriver
from harness.hosts.connect import connect
from harness.inventory.load import load_inventory
from harness.judgement.records import Promise
from harness.lab.running import RunningLab, start_lab
from harness.recordings.session import Session

KINDS = {"a": ("A", "docker"), "b": ("B", "containerd"), "c": ("C", "docker"), "d": ("D", "containerd")}
_HOST = """\
      {name}:
        emulated: {{generation: {generation}, era: {era}}}
        cards:
          card0: {{address: 0000:b2:00.0, identity: "64:4c:36:00:9{name}:00"}}
"""
INVENTORY = "version: 1\ndefault_lab: eras\nlabs:\n  eras:\n    hosts:\n" + "".join(
    _HOST.format(name=name, generation=generation, era=era) for name, (generation, era) in KINDS.items()
)


@pytest.fixture(scope="module")
def eras(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    file = tmp_path_factory.mktemp("eras") / "inventory.yaml"
    file.write_text(INVENTORY)
    with start_lab(load_inventory(file), scale=200.0) as lab:
        yield lab


class Records:
    def __init__(self) -> None:
        self.records: list[Any] = []

    def add(self, record: Any) -> Any:
        from dataclasses import replace

        self.records.append(replace(record, seq=len(self.records) + 1))
        return self.records[-1]

    def claims(self) -> list[tuple[str, Any]]:
        return [(r.reporter, r.statement) for r in self.records if r.kind == "claim"]

    def observed(self) -> list[Any]:
        return [dict(r.values) for r in self.records if r.kind == "observation"]


@pytest.mark.parametrize("name", KINDS)
def test_a_flash_is_recorded_and_performed_again(
    eras: RunningLab, replay: Any, image: Any, name: str
) -> None:
    host, card = eras.entry.card(f"{name}/card0")
    reached = connect(host, eras.access(name))
    data = image("unsigned")
    own, again = Records(), Records()
    try:
        session = Session(reached, [card], sysfs=host.sysfs, tools=host.tools.model_dump())
        driver = CardDriver(session.host, card, own, real=False, settle=2.0)
        session.begin()
        promise = Promise("lands", source="test")
        session.perform(driver, "card0", lambda: driver.flash(data, "image", promise), data)
        session.perform(driver, "card0", driver.reset)
        found = discover(reached)
    finally:
        reached.close()
    recording = session.recording()
    replayed = replay(recording)
    assert replayed.truth().values() == own.observed()[0]
    assert str(own.observed()[0]["generation"]) == KINDS[name][0]
    performer = replayed.driver(history=again)
    performer.flash(data, "image", promise)
    performer.reset()
    assert again.claims() == own.claims()
    assert again.observed() == own.observed()
    assert discover(replayed.host) == found
    assert replayed.unrecorded == []
