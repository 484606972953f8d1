"""What the tests of the emulated card share: images, a card on instant lab time, and a host's way with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.emulator.card import Card, CardProfile, CardSpec, CardState, CardStore
from harness.emulator.clock import LabClock
from harness.images.recipes import Recipe, build, load_recipes

ROOT = Path(__file__).resolve().parents[3]
SPEC = CardSpec("card0", "64:4c:36:11:1b:a8", ("0000:b2:00.0",))


@cache
def _recipes() -> dict[str, Recipe]:
    return load_recipes((ROOT / "fixtures/images.yaml").read_text())


@cache
def _image(name: str) -> bytes:
    return build(_recipes()[name])


@cache
def _root_hash(name: str) -> str:
    digest = _recipes()[f"{name}/csk0"].root_entry_hash()
    assert digest is not None
    return digest


@dataclass
class Bench:
    """One card and the kernel log of its host; its methods do what a program on the host does."""

    card: Card
    clock: LabClock
    log: list[str] = field(default_factory=list)

    def start(self, data: bytes) -> None:
        """Start an update, as a shell would: 1, the file, 0."""
        self.card.upload.write_loading(b"1\n")
        self.card.upload.write_data(data, 0)
        self.card.upload.write_loading(b"0\n")

    def wait_idle(self) -> list[str]:
        """Watch the status once a lab second until it is idle; return the statuses seen."""
        seen = [self.card.upload.status()]
        while self.card.upload.status() != "idle":
            self.clock.sleep(1)
            if seen[-1] != self.card.upload.status():
                seen.append(self.card.upload.status())
        return seen

    def reach(self, phase: str) -> None:
        """Let lab time pass until the held phase has begun, without waiting in it: it stops there."""
        limit = time.monotonic() + 10
        with self.clock.waiting():
            while self.card.held() != phase:
                assert time.monotonic() < limit, f"{phase} never came"
                time.sleep(0.0002)

    def flash(self, data: bytes) -> str:
        """Update with ``data``; return the error, empty where there was none."""
        self.start(data)
        self.wait_idle()
        return self.card.upload.error()

    def reset(self, word: str = "bmc_user") -> None:
        """Reset, and wait as `rsu` does before it scans the bus again."""
        self.card.image_load(word)
        self.clock.sleep(10)

    def power_cycle(self) -> None:
        self.card.power_off()
        self.card.power_on()

    def auth_code(self) -> int | None:
        """The last authentication result in the kernel log."""
        codes = [line for line in self.log if line.startswith("RSU auth result: ")]
        return int(codes[-1].split()[-1], 16) if codes else None


MakeBench = Callable[..., Bench]


@pytest.fixture(scope="session")
def image() -> Callable[[str], bytes]:
    """Build the image of a recipe."""
    return _image


@pytest.fixture(scope="session")
def root_hash() -> Callable[[str], str]:
    """Root entry hash of root A or B."""
    return _root_hash


@pytest.fixture
def make_bench() -> Iterator[MakeBench]:
    clock = LabClock()

    def make(
        state: CardState | None = None,
        *,
        spec: CardSpec = SPEC,
        store: CardStore | None = None,
        payloads: Any = None,
        **profile: Any,
    ) -> Bench:
        log: list[str] = []
        values = CardProfile(**profile)
        card = Card(spec, state or CardState(), values, clock, log.append, store, payloads)
        return Bench(card, clock, log)

    with clock.actor():
        yield make
    clock.close()


@pytest.fixture
def bench(make_bench: MakeBench) -> Bench:
    """A card with root A."""
    return make_bench(CardState(sr_root=_root_hash("A")))
