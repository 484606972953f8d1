"""The control plane's interlock attacked: by images, by words, by cards that are others than they were."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from safety.quota import Tries
from safety.test_gates import MAC, OTHER_MAC, PERMITS, card, done_by
from support.hostile import OPTIONS, TEXTS, VERBS, hostile_images, images

from harness.cards.truth import CardTruth
from harness.controlplane.changes import Change
from harness.controlplane.cloud_protocol import StrategyChange
from harness.controlplane.covered import COMMANDS, check_covered
from harness.controlplane.gate import Gate
from harness.controlplane.protocol import (
    DeviceImage,
    DeviceImageState,
    DeviceLabel,
    HostState,
    PciDevice,
    Upload,
)
from harness.errors import HarnessError, RefusedError
from harness.inventory.model import Wear
from harness.judgement.values import Unknown

HOST, ADDRESS = "controller-0", "0000:b2:00.0"


@dataclass
class System:
    """A system with one card, as its gate asks it."""

    owed: list[str] = field(default_factory=list)
    applied: list[DeviceImage] = field(default_factory=list)
    update: str | None = None
    asked: list[str] = field(default_factory=list)

    def images(self) -> list[DeviceImage]:
        return self.applied

    def states(self) -> list[DeviceImageState]:
        self.asked.append("states")
        return [DeviceImageState("pending", HOST, ADDRESS, uuid) for uuid in self.owed]

    def labels(self) -> list[DeviceLabel]:
        return []

    def hosts(self) -> list[HostState]:
        self.asked.append("hosts")
        return [HostState(HOST)]

    def host(self, hostname: str) -> HostState:
        return HostState(hostname, device_image_update=self.update or "")

    def devices(self, hostname: str) -> list[PciDevice]:
        return [PciDevice("pci_b2", ADDRESS, hostname, device_id="0b30")]

    def device(self, hostname: str, device: str) -> PciDevice:
        return self.devices(hostname)[0]


def test_no_image_comes_to_a_card_that_must_not_have_it() -> None:
    """Uploaded by the harness, or by somebody else and read back; applied, or owed by an update."""
    rng = Random("control plane")
    passed = through = 0
    with Tries("images for a control plane") as tries:
        for _, data in zip(tries, hostile_images(7), strict=False):
            permits, allowed, real = rng.choice(PERMITS), rng.choice(PERMITS), rng.random() < 0.5
            permitted = set(permits) & (set(allowed) if real else {"root-key", "key-cancellation"})
            gate = Gate("system1", {(HOST, ADDRESS): card(permits)}, real=real, allowed=allowed)
            system: Any = System(owed=["u"], applied=[DeviceImage("u", applied=True)])
            how = rng.choice(("learned", "read", "unread"))
            if how == "learned":
                gate.learn("u", data)
            elif how == "read":
                gate.read_with(lambda uuid: data)  # noqa: B023
            change = rng.choice(
                [
                    Change("image-upload", image=Upload(data, "harmless.bin", "functional")),
                    Change("image-apply", "u"),
                    Change("host-update", HOST),
                    Change("label-assign", HOST, ADDRESS, labels=(("k", "v"),)),
                ]
            )
            if change.act == "label-assign":
                system.applied = [DeviceImage("u", applied=True, applied_labels=(("k", "v"),))]
            try:
                gate.permits(change, system)
            except RefusedError:
                continue
            passed += 1
            unseen = how == "unread" and change.act != "image-upload"
            does = {"root-key", "key-cancellation"} if unseen else done_by(data)
            through += not does <= permitted
    assert through == 0
    assert passed > tries.made // 10, "an attack in which nothing passes shows nothing"


CHANGES: list[Any] = [
    *(Change(act, "7f1a") for act in COMMANDS if act not in ("image-upload", "label-assign")),  # type: ignore[arg-type]
    Change("label-assign", "7f1a", ADDRESS, labels=(("k", "v"),)),
    Change("image-upload", image=Upload(images()["A/csk0"], "a.bin", "functional")),
    StrategyChange("strategy-apply"),
    StrategyChange("strategy-create"),
]
_BEFORE = "source /etc/platform/openrc >&2; CLI_CONFIRMATIONS=disabled "
_PATHS = (
    "/device_images",
    "/device_images/7f1a",
    "/device_images/7f1a?action=apply",
    "/device_images/8e?action=apply",
    "/ihosts/7f1a",
    "/ihosts/7f1a/device_image_update",
    "/ihosts/7f1a/device_image_update?x=1",
    "/device_labels",
    "/device_labels/1",
    "/sw-update-strategy/",
    "/sw-update-strategy/actions?type=firmware",
    "/../v3/users",
    "*",
)
_BODIES = (
    "null",
    "{}",
    "[]",
    '{"action": "apply"}',
    '[{"op": "replace", "path": "/action", "value": "lock"}]',
    "x",
)


def words_of(rng: Random, act: str) -> list[Any]:
    own = COMMANDS.get(act, f"fw-update-strategy {act.removeprefix('strategy-')}")
    verb = rng.choice((*COMMANDS.values(), *VERBS, *[own] * 40))
    rest = [rng.choice(("8e02", *TEXTS, *OPTIONS, *["7f1a"] * 60)) for _ in range(rng.choice((0, 1, 1, 2)))]
    line = f"{rng.choice(('system', 'system', 'dcmanager', 'fpgasupdate', 'sudo'))} {verb} "
    line += shlex.join(rest) if rng.random() < 0.5 else " ".join(rest)
    return rng.choice(
        [
            ["bash", "-c", _BEFORE + line],
            ["bash", "-c", f"{_BEFORE}system {own} 7f1a"],
            ["bash", "-c", _BEFORE + "system host-lock 7f1a" + rng.choice(TEXTS)],
            ["bash", "-c", rng.choice(TEXTS) + _BEFORE + line],
            ["bash", "-c", line],
            ["sh", "-c", _BEFORE + line],
            ["rm", "-f", rng.choice(("/tmp/hil-0a.bin", *TEXTS))],
            ["rm", "-rf", "/tmp/hil-0a.bin"],
            [rng.choice(("POST", "PATCH", "DELETE", "PUT")), rng.choice(_PATHS), rng.choice(_BODIES)],
            [rng.choice((*VERBS, "fpgasupdate")), *rest],
        ]
    )


def test_no_permit_for_a_change_covers_another() -> None:
    rng = Random("covered")
    covered = 0
    with Tries("words for a control plane") as tries:
        for _ in tries:
            change = rng.choice(CHANGES)
            words = words_of(rng, change.act)
            try:
                check_covered(change, words)
            except RefusedError:
                continue
            covered += 1
            act = change.act
            if words[0] == "bash":
                said = shlex.split(words[2].removeprefix(_BEFORE))
                assert words[2].startswith(_BEFORE) and shlex.join(said) == words[2].removeprefix(_BEFORE)
                if isinstance(change, StrategyChange):
                    assert said[:3] == ["dcmanager", "fw-update-strategy", act.removeprefix("strategy-")]
                else:
                    assert said[:2] == ["system", COMMANDS[act]] and "7f1a" in said[2:]
            elif words[0] == "rm":
                assert (
                    act == "image-upload"
                    and words[1] == "-f"
                    and words[2] in ("/tmp/hil-0a.bin", "/tmp/hil-0011.bin")
                )
            else:
                assert words[0] in ("POST", "PATCH", "DELETE")
                json.loads(words[2])
                if act == "image-apply":
                    assert words[1] == "/device_images/7f1a?action=apply"
                elif act == "host-update":
                    assert words[1:] == ["/ihosts/7f1a/device_image_update", "null"]
                elif act == "strategy-apply":
                    assert words[1:] == ["/sw-update-strategy/actions?type=firmware", '{"action": "apply"}']
    assert covered > tries.made // 100, "an attack in which nothing passes shows nothing"


# -- cards as they are --------------------------------------------------------------------------------


def gate_seeing(seen: CardTruth | None, **more: Any) -> Gate:
    gate = Gate("system1", {(HOST, ADDRESS): card(**more)}, real=False)
    gate.learn("u", images()["A/csk0"])
    gate.look_with(lambda entry: seen)
    return gate


IDLE = CardTruth(address=ADDRESS, identity=MAC, update_status="idle", flash_count=12)
UNLIKE = {
    "another card": CardTruth(address=ADDRESS, identity=OTHER_MAC, update_status="idle"),
    "cannot be told": CardTruth(address=ADDRESS, identity=Unknown("EIO"), update_status="idle"),
    "updates": CardTruth(address=ADDRESS, identity=MAC, update_status="programming"),
}
APPLY, UPDATE = Change("image-apply", "u"), Change("host-update", HOST)


@pytest.mark.parametrize("seen", UNLIKE)
@pytest.mark.parametrize("change", [APPLY, UPDATE], ids=lambda change: change.act)
def test_nothing_is_brought_to_a_card_that_is_not_as_it_should_be(change: Change, seen: str) -> None:
    system: Any = System(owed=["u"])
    with pytest.raises(RefusedError, match="nothing was changed"):
        gate_seeing(UNLIKE[seen]).permits(change, system)
    assert gate_seeing(IDLE).permits(change, system)


def test_an_update_of_the_systems_own_is_its_own_to_refuse() -> None:
    system: Any = System(update="in-progress")
    assert gate_seeing(UNLIKE["updates"]).permits(UPDATE, system)
    with pytest.raises(RefusedError):
        gate_seeing(UNLIKE["another card"]).permits(UPDATE, system)


def test_a_system_whose_cards_are_well_is_asked_nothing_more() -> None:
    system: Any = System()
    gate_seeing(IDLE).permits(APPLY, system)
    assert system.asked == []


@pytest.mark.parametrize(
    ("wear", "owed", "passes"),
    [
        (Wear(flash_count=14), 2, True),
        (Wear(flash_count=13), 2, False),
        (Wear(flash_count=12), 1, False),
        (Wear(flash_count=12), 0, True),
        (Wear(per_run=1), 2, False),
        (Wear(per_run=2), 2, True),
    ],
)
def test_the_budget_of_a_card_counts_what_is_owed_to_it(wear: Wear, owed: int, passes: bool) -> None:
    system: Any = System(owed=["u"] * owed)
    ask: Callable[[], object] = lambda: gate_seeing(IDLE, wear=wear).permits(UPDATE, system)  # noqa: E731
    if passes:
        ask()
    else:
        with pytest.raises(RefusedError, match=f"is owed {owed} updates"):
            ask()


def test_a_budget_of_a_run_is_used_up_by_updates_before() -> None:
    gate, system = gate_seeing(IDLE, wear=Wear(per_run=2)), System(owed=["u"] * 2)
    gate.permits(UPDATE, system)  # type: ignore[arg-type]
    with pytest.raises(HarnessError):
        gate.permits(UPDATE, system)  # type: ignore[arg-type]
