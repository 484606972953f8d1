"""Power, tools and control planes of a real lab ask for the leases of all cards that they reach."""

import hashlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cards.gate import Gate as CardGate
from harness.cards.truth import CardTruth
from harness.controlplane.changes import Change
from harness.controlplane.gate import Gate as SystemGate
from harness.errors import LeasedError, LeaseLostError
from harness.inventory.load import load_inventory
from harness.inventory.model import Card
from harness.lab.leasing import lease_key, leases_of
from harness.lab.running import RunningLab
from harness.leases.owner import Owner
from harness.leases.store import LeaseStore

ADDRESS = "0000:b2:00.0"
INVENTORY = """
version: 1
default_lab: bench
labs:
  bench:
    controllers:
      central: {{role: system-controller, url: "http://127.0.0.1:1", credentials: {{env: SECRET}}}}
      sub: {{role: subcloud, parent: central, url: "http://127.0.0.1:1", credentials: {{env: SECRET}}}}
    hosts:
      one:
        system: sub
        ssh:
          {{address: 127.0.0.1, port: {port}, user: lab, known_hosts: {folder}/known,
            credentials: {{env: SECRET}}}}
        power: {{command: {{off: [touch, {folder}/off], on: [touch, {folder}/on]}}}}
        cards:
          card0: {{address: '0000:b2:00.0', identity: '64:4c:36:00:00:01'}}
          card1: {{address: '0000:3b:00.0'}}
"""
BOB = Owner("run-of-bob", "bench8", 4712, "2", "elsewhere")
IMAGE = b"\0" * 2048
SHA256 = hashlib.sha256(IMAGE).hexdigest()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningLab]:
    """A lab whose host does not answer: nobody listens at its port."""
    monkeypatch.setenv("SECRET", "not a secret")
    (tmp_path / "known").touch()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        text = INVENTORY.format(port=taken.getsockname()[1], folder=tmp_path)
        (tmp_path / "inventory.yaml").write_text(text)
        entry = load_inventory(tmp_path / "inventory.yaml").lab()
        holder = leases_of("mine", said=f"sqlite:///{tmp_path}/leases.sqlite")
        with RunningLab(entry, leases=holder) as running:
            yield running
        holder.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LeaseStore]:
    with LeaseStore(f"sqlite:///{tmp_path}/leases.sqlite") as opened:
        yield opened


def key(lab: RunningLab, card: str) -> str:
    return lease_key(*lab.entry.card(f"one/{card}"))


def test_a_card_is_told_by_its_identity_else_by_its_place(lab: RunningLab) -> None:
    assert key(lab, "card0") == "64:4c:36:00:00:01"
    host, _ = lab.entry.card("one/card1")
    assert host.ssh
    assert key(lab, "card1") == f"127.0.0.1:{host.ssh.port}/0000:3b:00.0"


def test_power_needs_every_card_of_the_host(lab: RunningLab, store: LeaseStore, tmp_path: Path) -> None:
    theirs = store.acquire(key(lab, "card1"), "one/card1", BOB, "soak", 60)
    with pytest.raises(LeasedError, match="run-of-bob"):
        lab.power("one", "off")
    assert not (tmp_path / "off").exists()
    store.release(theirs)
    lab.power("one", "cycle")  # the host does not answer, and its power is what brings it back
    assert (tmp_path / "off").exists()
    assert {held.lease.name for held in store.all()} == {"one/card0", "one/card1"}
    (tmp_path / "off").unlink()
    assert store.broken(key(lab, "card0"), "eve", "now")
    with pytest.raises(LeaseLostError, match="eve broke it"):
        lab.power("one", "off")
    assert not (tmp_path / "off").exists()
    lab.close()
    assert store.all() == []


def test_a_card_has_another_turn_once_anybody_may_have_written_to_it(
    lab: RunningLab, store: LeaseStore
) -> None:
    def turns() -> list[int | None]:
        return [lab.leases.turn(f"one/{card}") for card in ("card0", "card1")]

    def had_again() -> None:
        lab.leases.hold("one/card0", at_rest=False)
        lab.close()

    lab.power("one", "off")
    first = turns()
    lab.power("one", "on")  # we have the leases already
    after_power = turns()
    assert [turn != before for turn, before in zip(after_power, first, strict=True)] == [True, True]
    lab.close()
    had_again()
    assert turns() == after_power, "nobody had it in between"
    store.release(store.acquire(key(lab, "card0"), "one/card0", BOB, "soak", 60))
    had_again()
    assert [turn != before for turn, before in zip(turns(), after_power, strict=True)] == [True, False]


@pytest.mark.parametrize("system", ["sub", "central"])
def test_a_change_of_a_system_needs_every_card_of_it(lab: RunningLab, store: LeaseStore, system: str) -> None:
    store.acquire(key(lab, "card1"), "one/card1", BOB, "soak", 60)
    # No host answers here.
    lab.leases._wait_until_idle = lambda *_: None  # type: ignore[method-assign]
    lab.leases.health.check = lambda *_: None  # type: ignore[method-assign]
    gate = SystemGate(system, {}, real=True, fence=lambda: lab.leases.check_system(system))
    reading: Any = None
    permits = gate.permits(Change("host-lock", "controller-0"), reading)
    words = ("PATCH", "/ihosts/0a1b", '[{"op": "replace", "path": "/action", "value": "lock"}]')
    with pytest.raises(LeasedError, match="run-of-bob"):
        permits.command(system, words)
    assert store.broken(key(lab, "card1"), "eve", "now")
    assert permits.command(system, words).act == "host-lock"


FORM = f"/sys/bus/pci/devices/{ADDRESS}/firmware/secure-update1"
SEEN = CardTruth(
    address=ADDRESS, identity="64:4c:36:00:00:01", update_status="idle",
    sources={"update_status": f"{FORM}/status"},
)  # fmt: skip
WRITES: dict[str, Callable[[CardGate], object]] = {
    "upload": lambda gate: gate.upload(IMAGE, "/tmp/hil-1.bin"),
    "flash": lambda gate: gate.flash(IMAGE, SHA256, "/tmp/hil-1.bin", SEEN),
    "kernel upload": lambda gate: gate.kernel_upload(IMAGE, SHA256, "/tmp/hil-1.bin", SEEN),
    "reset": lambda gate: gate.reset("bmcimg", SEEN),
    "cancel": lambda gate: gate.cancel(f"{FORM}/cancel"),
}


@pytest.mark.parametrize("act", WRITES)
def test_no_write_to_a_card_is_permitted_without_its_lease(act: str) -> None:
    asked: list[str] = []
    card = Card(name="card0", address=ADDRESS, irreversible=("root-key", "key-cancellation"))

    def fence() -> None:
        asked.append(act)
        if len(asked) > 1:
            raise LeaseLostError("lost")

    gate = CardGate("one", card, real=False, allowed=(), fence=fence)
    WRITES[act](gate)
    with pytest.raises(LeaseLostError):
        WRITES[act](gate)
    assert asked == [act, act]
