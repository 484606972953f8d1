"""Recordings for tests: of an emulated card, of a tree of files behind OpenSSH; and their replays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.cards import FileCard, Programs, add_card
from support.ssh_peer import access, openssh, peer

from harness.cards.driver import CardDriver
from harness.cards.truth import CardTruth, read_truth
from harness.hosts.connect import connect
from harness.hosts.protocol import Host
from harness.images.recipes import build, load_recipes
from harness.inventory.load import load_inventory
from harness.judgement.records import Promise
from harness.lab.replay import replay_lab
from harness.lab.running import RunningLab, start_lab
from harness.recordings.files import write_recording
from harness.recordings.model import Act, Entry, Output, Piece, RecordedCard, Recording, Sample, State
from harness.recordings.session import Session

__all__ = ["access", "openssh", "peer"]

RECIPES = load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())
#: Lab seconds in a real one: a flash of 25 s takes about one, and is looked at 25 times.
SCALE = 20.0
INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    hosts:
      node1:
        emulated: {hostname: controller-0}
        cards:
          card0: &card
            address: 0000:b2:00.0
            identity: 64:4c:36:00:88:00
            irreversible: [root-key, key-cancellation]
            emulated: {flash_count: 41}
          card1: {address: 0000:3b:00.0, identity: "64:4c:36:00:89:00"}
      mover:
        emulated: {}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:00:8a:00
            emulated: {moves_to: 0000:c4:00.0, flash_count: 7}
"""


class Records:
    """A history in memory."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def add(self, record: Any) -> Any:
        self.records.append(replace(record, seq=len(self.records) + 1, time=float(len(self.records))))
        return self.records[-1]

    def claims(self, reporter: str) -> list[dict[str, Any]]:
        return [r.statement for r in self.records if r.kind == "claim" and r.reporter == reporter]


@dataclass
class Reached:
    """A host of a running lab, and what was recorded of it."""

    lab: RunningLab
    host: Host
    name: str

    def driver(self, card: str = "card0", history: Records | None = None) -> CardDriver:
        entry = self.lab.entry.host(self.name)
        settings = {
            "real": False,
            "settle": 0.5,
            "sysfs": entry.sysfs,
            "tools": entry.tools.model_dump(),
            "upload_dir": entry.upload_dir,
        }
        return CardDriver(self.host, entry.card(card), history or Records(), **settings)  # type: ignore[arg-type]

    def truth(self, card: str = "card0") -> CardTruth:
        entry = self.lab.entry.host(self.name)
        return read_truth(self.host, entry.card(card).address, sysfs=entry.sysfs)

    @property
    def unrecorded(self) -> list[str]:
        assert self.lab.bench is not None
        return [missed["what"] for missed in self.lab.bench.unrecorded()[self.name]]


@pytest.fixture(scope="session")
def image() -> Callable[[str], bytes]:
    """Returns the image of a recipe."""
    return lambda name: build(RECIPES[name])


@pytest.fixture(scope="session")
def recipes() -> Any:
    return RECIPES


@pytest.fixture(scope="session")
def inventory_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "inventory.yaml"
    path.write_text(INVENTORY)
    return path


@pytest.fixture(scope="session")
def original(inventory_file: Path) -> Iterator[RunningLab]:
    """The emulated lab that is recorded."""
    with start_lab(load_inventory(inventory_file), scale=SCALE) as lab:
        yield lab


@pytest.fixture
def reach() -> Iterator[Callable[[RunningLab, str], Reached]]:
    """Returns a host of a running lab, with a connection of its own."""
    with ExitStack() as stack:

        def reached(lab: RunningLab, name: str) -> Reached:
            host = connect(lab.entry.host(name), lab.access(name))
            stack.callback(host.close)
            return Reached(lab, host, name)

        yield reached


@pytest.fixture
def replay(tmp_path: Path, reach: Any) -> Iterator[Callable[[Recording], Reached]]:
    """Starts a lab that replays a recording, and returns its host."""
    with ExitStack() as stack:

        def replayed(recording: Recording) -> Reached:
            file = tmp_path / f"replay{len(list(tmp_path.iterdir()))}.json"
            write_recording(recording, file)
            inventory, _ = replay_lab(file, tmp_path)
            lab = stack.enter_context(start_lab(inventory))
            reached: Reached = reach(lab, recording.host["name"])
            return reached

        yield replayed


def _recorded_flash(lab: RunningLab, name: str, data: bytes, promise: Promise) -> tuple[Recording, Records]:
    host, card = lab.entry.card(f"{name}/card0")
    reached = connect(host, lab.access(name))
    history = Records()
    try:
        session = Session(reached, [card], sysfs=host.sysfs)
        driver = CardDriver(session.host, card, history, real=False, settle=2.0)
        session.begin()
        session.perform(driver, "card0", lambda: driver.flash(data, "image", promise), data)
        session.perform(driver, "card0", driver.reset)
        return session.recording(), history
    finally:
        reached.close()


@pytest.fixture(scope="session")
def flashed(original: RunningLab, image: Any) -> tuple[Recording, Records]:
    """A recording of a flash that lands and of the reset after it; and the history of that."""
    assert original.bench is not None
    original.bench.fit("node1/card0", {"flash_count": 41})
    return _recorded_flash(original, "node1", image("A/csk0"), Promise("lands", source="test"))


@pytest.fixture(scope="session")
def refused(original: RunningLab, image: Any) -> tuple[Recording, Records]:
    """A recording of a flash that the card refuses, and of a reset from which it comes back elsewhere."""
    assert original.bench is not None
    original.bench.fit("mover/card0", {"sr_root": "ab" * 32, "flash_count": 7})
    original.bench.moves_to("mover/card0", "0000:c4:00.0")
    return _recorded_flash(original, "mover", image("unsigned"), Promise("unchanged", source="test"))


@pytest.fixture(scope="session")
def still_lab(flashed: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    folder = tmp_path_factory.mktemp("still")
    write_recording(flashed[0], folder / "still.json")
    with start_lab(replay_lab(folder / "still.json", folder)[0]) as lab:
        yield lab


@pytest.fixture
def still(still_lab: RunningLab, reach: Any) -> Reached:
    """A replay of the recorded flash that tests share: none of them performs it."""
    reached: Reached = reach(still_lab, "node1")
    return reached


@pytest.fixture
def as_found(original: RunningLab, reach: Any) -> Callable[..., Recording]:
    """Records some cards of the original as they are."""

    def recorded(name: str, *cards: str, **how: Any) -> Recording:
        entry = original.entry.host(name)
        session = Session(reach(original, name).host, [entry.card(c) for c in cards], sysfs=entry.sysfs)
        session.begin()
        return session.recording(**how)

    return recorded


@pytest.fixture
def file_card(tmp_path: Path) -> FileCard:
    return add_card(tmp_path / "sys")


@pytest.fixture
def programs(tmp_path: Path, file_card: FileCard) -> Programs:
    return Programs(tmp_path / "programs", file_card.sysfs)


@pytest.fixture
def tiny() -> Recording:
    """A small recording with an entry of every kind, and one act."""
    tree: dict[str, Entry | None] = {
        "/sys/a": Entry("directory"),
        "/sys/a/text": Entry("content", "ä\n".encode()),
        "/sys/a/empty": Entry("content"),
        "/sys/a/blob": Entry("content", b"\xff\x00"),
        "/sys/a/busy": Entry("unreadable", text="EBUSY"),
        "/sys/a/wo": Entry("write-only"),
        "/sys/a/link": Entry("link", text="text"),
        "/sys/a/gone": Entry("left-out", text="file: reading it acts on the device"),
        "/sys/b": Entry("absent"),
    }
    commands: dict[str, Output | None] = {
        "hostname": Output(0, "node\n"),
        "fpgainfo fme 0000:b2:00.0": Output(1, "", "no\nend"),
    }
    value = Entry("content", b"idle\n")
    busy = Entry("unreadable", text="EBUSY")
    act = Act(
        "reset",
        "card0",
        ("rsu", "bmcimg", "0000:b2:00.0"),
        0,
        4.0,
        4.5,
        watched={"status": "/sys/a/text"},
        samples=(Sample(0.0, 1.0, {"status": value}), Sample(4.5, 4.5, {"status": busy})),
        output=(Piece(0.5, "stdout", "one\n"), Piece(4.0, "stderr", "two\n")),
    )
    return Recording(
        {"at": "2026-11-30T09:00:00Z", "by": "hil test", "macs": "kept"},
        {"name": "node1", "hostname": "controller-0", "sysfs": "/sys"},
        (RecordedCard("card0", "0000:b2:00.0", "64:4c:36:00:88:00"),),
        (
            State("as found", {"card0": "0000:b2:00.0"}, tree, commands),
            State("after the reset", {"card0": None}, {"/sys/a/text": None}, {"hostname": Output(0, "x\n")}),
        ),
        (act,),
    )
