"""Whatever is done to a card in whatever order, it agrees with a model of the documents' rules.

The model knows recipes ("signed by root A with CSK 1"), never bytes; the card knows bytes only.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harness.emulator.card import Card, CardProfile, CardSpec, CardState
from harness.emulator.clock import LabClock
from harness.images.recipes import build, load_recipes
from harness.scenarios.card_model import IMAGES, CardModel

RECIPES = load_recipes((Path(__file__).resolve().parents[3] / "fixtures/images.yaml").read_text())
FACTORY_ID = 0x23001410010310
PHASES = ("preparing", "transferring", "authenticating", "copying", "keys")


@cache
def image(name: str) -> bytes:
    return build(RECIPES[name])


class CardHistory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = LabClock()
        self.actor = self.clock.actor()
        self.actor.__enter__()
        self.log: list[str] = []
        self.card = Card(
            CardSpec("card0", "64:4c:36:11:1b:a8", ("0000:b2:00.0",)),
            CardState(),
            CardProfile(),
            self.clock,
            self.log.append,
        )
        self.model = CardModel(RECIPES, "0000:b2:00.0")

    def teardown(self) -> None:
        self.actor.__exit__(None, None, None)
        self.clock.close()

    def start(self, name: str) -> None:
        upload = self.card.upload
        upload.write_loading(b"1")
        upload.write_data(image(name), 0)
        upload.write_loading(b"0")
        assert upload.status() == "receiving"

    def wait_idle(self) -> None:
        for _ in range(200):
            if self.card.upload.status() == "idle":
                return
            self.clock.sleep(1)
        raise AssertionError("the update never ended")

    def reach(self, phase: str) -> None:
        """Let lab time pass, without waiting in it: it does not go past the withheld end."""
        limit = time.monotonic() + 10
        with self.clock.waiting():
            while self.card.held() != phase:
                assert time.monotonic() < limit, f"{phase} never came"
                time.sleep(0.0002)

    @rule(name=st.sampled_from(IMAGES))
    def flash(self, name: str) -> None:
        code = self.model.code(name)
        self.log.clear()
        self.start(name)
        self.wait_idle()
        assert self.card.upload.error() == ("programming:hw-error" if code else "")
        assert self.log[1:] == ([f"RSU auth result: 0x{code:08x}"] if code else [])
        self.model = replace(self.model, count=self.model.count + 1)
        if not code:
            self.model = self.model.landed(name)

    @rule(name=st.sampled_from(IMAGES), phase=st.sampled_from(PHASES))
    def power_cut(self, name: str, phase: str) -> None:
        if phase not in self.model.phases(name):
            return
        self.card.hold(phase)
        self.start(name)
        self.reach(phase)
        self.card.power_off()
        assert self.card.address is None
        self.card.power_on()
        self.model = replace(self.model, count=self.model.count + 1)
        if phase == "copying":
            self.model = replace(self.model, page=None)
        self.model = self.model.reset()

    @rule(name=st.sampled_from(IMAGES), phase=st.sampled_from(("preparing", "transferring")))
    def cancel(self, name: str, phase: str) -> None:
        self.card.hold(phase)
        self.start(name)
        self.reach(phase)
        self.card.upload.cancel(b"1")
        self.card.release()
        self.wait_idle()
        assert self.card.upload.error() == f"{phase}:user-abort"
        self.model = replace(self.model, count=self.model.count + 1)

    @rule(name=st.sampled_from(IMAGES), phase=st.sampled_from(PHASES))
    def host_reboot(self, name: str, phase: str) -> None:
        code = self.model.code(name)
        if phase not in self.model.phases(name):
            return
        self.card.hold(phase)
        self.start(name)
        self.reach(phase)
        self.card.host_restarted()
        self.card.release()
        self.clock.sleep(300)  # the card finishes, or gives up on its host
        self.model = replace(self.model, count=self.model.count + 1)
        if not code and phase not in ("preparing", "transferring"):
            self.model = self.model.landed(name)

    @rule(word=st.sampled_from(("bmc_user", "bmc_factory")))
    def reset(self, word: str) -> None:
        self.card.image_load(word)
        self.clock.sleep(10)
        self.model = self.model.reset()

    @rule()
    def power_cycle(self) -> None:
        self.card.power_off()
        self.card.power_on()
        self.model = self.model.reset()

    @precondition(lambda self: self.model.page is not None)
    @rule()
    def busy(self) -> None:
        self.card.condition("busy", True)
        self.start("unsigned")
        self.wait_idle()
        assert self.card.upload.error() == "preparing:device-busy"
        self.card.condition("busy", False)

    @invariant()
    def card_agrees_with_the_model(self) -> None:
        card, model = self.card, self.model
        running = RECIPES[model.running].bitstream_id if model.running else FACTORY_ID
        assert card.bitstream_id == running
        root = RECIPES[f"{model.root}/csk0"].root_entry_hash() if model.root else None
        assert card.root_entry_hash("SR") == root
        assert card.cancelled("SR") == model.cancelled
        assert card.flash_count == model.count
        page = image(model.page)[0x400:] if model.page else None
        assert card.state.user_page == page or (page is None and card.running_page == "factory")
        assert CardState.from_json(card.state.to_json()) == card.state
        assert card.upload.status() == "idle"


CardHistory.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.timeout(60)
class TestCardHistories(CardHistory.TestCase):
    """Runs the histories."""
