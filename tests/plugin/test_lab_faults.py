"""What goes wrong in a lab, and the run after it: cards that cannot be read, that go, that change places."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from plugin.conftest import Plan
from support.plans import INVENTORY, LEAN, lay_out

from harness.inventory.load import load_inventory
from harness.lab.bench import Bench
from harness.lab.emulator import Doors
from harness.lab.running import start_lab

FLASH = """
def test_flash(card, images):
    card.flash(images[{image!r}].data, {image!r}, lands(DOC))
    card.reset()
"""
#: After its first reset an emulated card is where its slot is, and not where the host's boot had put it.
NO_RESET = """
@pytest.mark.hil_expects(outcome="UNKNOWN", verdicts={{"fpgasupdate": "UNVERIFIABLE"}})
def test_flash(card, images):
    card.flash(images[{image!r}].data, {image!r}, lands(DOC))
"""
ONE = "one/card0"
TWO_CARDS = f"""{INVENTORY.partition("      two:")[0]}\
          card1:
            address: 0000:1b:00.0
            identity: 64:4c:36:00:00:02
"""


def flashed(bench: Bench, card: str = ONE) -> int:
    return int(bench.oracle(card)["flash_count"])


@pytest.fixture
def bench(real: Callable[..., None], doors: Doors) -> Iterator[Bench]:
    """The bench behind the hosts that the plan takes for real."""
    real()
    behind = Bench(doors.control)
    yield behind
    behind.power("one", "cycle")
    behind.condition("one", "sysfs-unreadable", False)


def run(plan: Plan, image: str, source: str = FLASH) -> tuple[str, str]:
    """Flash an image that the card does not hold yet; return how that scenario ended, and why."""
    for left in (plan.folder / "reports").glob("2*"):
        left.rename(plan.folder / f"earlier-{left.name}")
    (found,) = plan.run(source.format(image=image), f"--hil-device={ONE}").scenarios.values()
    return found["state"], found["reason"]


def test_nothing_is_written_to_a_card_that_cannot_be_read(plan: Plan, bench: Bench) -> None:
    before = flashed(bench)
    bench.condition("one", "sysfs-unreadable", True)
    state, reason = run(plan, "unsigned")
    assert (state, flashed(bench)) == ("BLOCKED", before), reason
    assert "Input/output error" in reason
    bench.condition("one", "sysfs-unreadable", False)
    assert run(plan, "unsigned") == ("as-stated", "")
    assert flashed(bench) == before + 1


def test_a_card_that_vanishes_while_it_is_read_is_used_again_when_it_is_back(
    plan: Plan, bench: Bench
) -> None:
    before = flashed(bench)
    bench.condition(ONE, "vanishes", True)
    state, reason = run(plan, "A/csk0")
    assert (state, flashed(bench)) == ("BLOCKED", before), reason
    assert run(plan, "A/csk0")[0] == "BLOCKED", "it is still away"
    bench.power("one", "cycle")
    assert run(plan, "A/csk0") == ("as-stated", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "SIGKILL"])
def test_a_run_that_ends_in_the_middle_of_a_flash_leaves_the_card_to_the_next_one(
    plan: Plan, bench: Bench, number: signal.Signals
) -> None:
    plan.write(FLASH.format(image="A/csk0"))
    bench.hold(ONE, "programming")
    argv = [sys.executable, "-m", "pytest", *LEAN, "-p", "no:xdist", "test_plan.py", f"--hil-device={ONE}"]
    ended = subprocess.Popen(argv, cwd=plan.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        bench.wait_held(ONE, "programming", deadline=90)
        ended.send_signal(number)
        bench.release(ONE)
        ended.wait(90)
    finally:
        ended.kill()
        ended.wait()
    assert run(plan, "unsigned") == ("as-stated", "")


def test_cards_that_change_places_are_told_apart(plan: Plan, tmp_path: Path) -> None:
    (behind := tmp_path / "behind").mkdir()
    lay_out(behind, TWO_CARDS)
    with start_lab(load_inventory(behind / "inventory.yaml")) as lab:
        assert lab.bench is not None
        lab.bench.boots_at("one/card0", "0000:1b:00.0")
        lab.bench.boots_at("one/card1", "0000:b2:00.0")
        lab.bench.power("one", "cycle")
        door = lab.doors.hosts["one"]
        (plan.folder / "inventory.yaml").write_text(
            TWO_CARDS.replace(
                "emulated: {}",
                f"ssh: {{address: {door.address}, port: {door.port}, user: {door.user}, "
                f"known_hosts: {lab.doors.known_hosts}, credentials: {{key_file: {lab.doors.key_file}}}}}",
            )
        )
        assert run(plan, "unsigned", NO_RESET) == ("as-stated", "")
        assert (flashed(lab.bench, "one/card0"), flashed(lab.bench, "one/card1")) == (1, 0)
