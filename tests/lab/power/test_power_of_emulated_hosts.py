"""A power cut all the way: fault, Redfish, emulated host, card; and back, though the harness is killed."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness.cards.driver import CardDriver
from harness.errors import DeadlineError, LinkLostError, UnreachableError
from harness.faults.injector import Injector
from harness.hosts.connect import connect
from harness.images.recipes import build, load_recipes
from harness.inventory.load import load_inventory
from harness.judgement.records import Fault
from harness.lab.power.access import PowerAccess, emulated_access
from harness.lab.running import RunningLab, start_lab
from harness.record.history import History
from harness.scenarios.promises import lands

INVENTORY = """\
version: 1
default_lab: rack7
labs:
  rack7:
    hosts:
      worker:
        emulated: {bmc: redfish}
        cards:
          card0: {address: 0000:b2:00.0, identity: 64:4c:36:00:00:01}
      bare:
        emulated:
"""
FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    path = tmp_path_factory.mktemp("bmc") / "inventory.yaml"
    path.write_text(INVENTORY)
    with start_lab(load_inventory(path)) as running:
        yield running


def by_redfish(lab: RunningLab) -> PowerAccess:
    bmc = lab.doors.hosts["worker"].bmc
    assert bmc is not None
    return emulated_access("worker", bmc.url, bmc.user, bmc.password)


def test_the_power_is_what_the_controller_says(lab: RunningLab) -> None:
    assert lab.bench is not None
    for host in ("worker", "bare"):
        lab.power(host, "off")
        assert (lab.power_state(host), lab.bench.powered(host)) == ("off", False)
        lab.power(host, "on")
        assert (lab.power_state(host), lab.bench.powered(host)) == ("on", True)
        lab.power(host, "cycle")
        lab.power(host, "reboot")
        assert lab.power_state(host) == "on"


def test_a_controller_that_does_nothing_is_found_out(
    lab: RunningLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lab.bench is not None
    monkeypatch.setattr("harness.lab.power.access.EMULATED_DEADLINE", 0.5)
    lab.bench.condition("worker", "bmc-ignores", True)
    try:
        with pytest.raises(DeadlineError, match=r"power of worker to be off.* 'On'"):
            lab.power("worker", "off")
    finally:
        lab.bench.condition("worker", "bmc-ignores", False)
    assert lab.bench.powered("worker")


def test_a_power_cut_in_the_middle_of_a_flash(lab: RunningLab, tmp_path: Path) -> None:
    entry, card_entry = lab.entry.card("worker/card0")
    host = connect(entry, lab.access("worker"))
    image = build(load_recipes((FIXTURES / "images.yaml").read_text())["A/csk0"])
    with History(tmp_path / "history.jsonl") as history:
        card = CardDriver(host, card_entry, history, real=False, settle=0.2)
        injector = Injector(card, lab, history)
        injector.arm("programming", "power-cut")
        try:
            with pytest.raises((LinkLostError, UnreachableError)):
                card.flash(image, "A/csk0", lands("a document"), at_phase=injector.reached)
            assert lab.power_state("worker") == "off"
        finally:
            injector.undo_all()
            seen = card.truth()
            host.close()
        states = [(record.action, record.state) for record in history.records if isinstance(record, Fault)]
    assert lab.power_state("worker") == "on"
    assert seen.update_status == "idle"
    assert states == [("power-cut", "armed"), ("power-cut", "fired"), ("power-cut", "undone")]


KILLED = """\
import os, signal, sys
from harness.faults.watchdog import Watchdog
from harness.lab.power.access import PowerAccess
from harness.lab.power.acts import carry_out, on_command
access = PowerAccess.from_text(sys.stdin.read())
watchdog = Watchdog(*on_command(access))
carry_out(access, "off")
print("off", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_watchdog_switches_it_on_where_the_harness_was_killed(lab: RunningLab) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED],
        input=by_redfish(lab).to_text(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.stdout == "off\n", killed.stderr
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with suppress(UnreachableError):
            if lab.power_state("worker") == "on":
                return
        time.sleep(0.05)
    pytest.fail("the host stayed off")
