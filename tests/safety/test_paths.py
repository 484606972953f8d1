"""The interlock attacked on its paths: driver, fixture, scenario file, campaign, raw calls and command line.

A card tells by itself whether something irreversible happened to it: by what its flash holds.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from safety.quota import Tries
from safety.test_gates import done_by
from support.hostile import hostile_images, images
from support.memory_host import MAC, MemoryHost
from support.plans import lay_out, write_plan

from harness.cards.driver import CardDriver
from harness.emulator.card import CardState
from harness.emulator.clock import LabClock
from harness.errors import HarnessError, RefusedError
from harness.inventory.model import Card
from harness.judgement.records import Completion, Intent
from harness.record.history import History, read_history
from harness.record.runs import histories

ROOT_A = "a625d632af900462bfba55ed5053debbdbb41ff5d9328837b6059c6ee12f2234"


@pytest.fixture
def clock() -> Iterator[LabClock]:
    found = LabClock(start=1796029200.0)
    yield found
    found.close()


@pytest.mark.parametrize("generation", ["B", "D"])
def test_no_image_does_to_a_card_what_its_entry_does_not_permit(
    generation: Any, clock: LabClock, tmp_path: Path
) -> None:
    """By the vendor's tool and by the kernel's interface, on a card with root A; all of it in memory."""
    rng = Random(f"memory {generation}")
    host = MemoryHost(clock, generation=generation, state=CardState(sr_root=ROOT_A))
    refused = through = landed = 0
    with (
        History(tmp_path / "history.jsonl") as history,
        Tries("images to a card in memory", parts=2) as tries,
    ):
        for _, data in zip(tries, hostile_images(11), strict=False):
            permits = rng.choice([(), (), ("root-key",)])
            entry = Card(name="card0", address="0000:b2:00.0", identity=MAC, irreversible=permits)
            driver = CardDriver(host, entry, history, real=False, settle=0.1)
            before, count, lines = host.irreversible, host.card.flash_count, len(host.lines)
            act = rng.choice([driver.flash, driver.upload])
            try:
                act(data, rng.choice(("harmless", "A/csk0\n", "../x")), None)
            except RefusedError:
                refused += 1
                assert len(host.lines) == lines, "something of what was refused reached the host"
            except HarnessError:
                pass
            through += host.irreversible != before and not done_by(data) <= set(permits)
            landed += host.card.flash_count > count
    assert through == 0 and refused and landed
    kept = read_history(tmp_path / "history.jsonl")
    kinds = [record.error.get("kind") for record in kept if isinstance(record, Completion)]
    assert kinds.count("refused") == refused, "a refusal that is not in the history"


def test_the_oracle_in_memory_sees_what_happens(clock: LabClock, tmp_path: Path) -> None:
    """Permitted, the same path does it: an oracle that sees nothing would let everything pass."""
    host = MemoryHost(clock)
    entry = Card(name="card0", address="0000:b2:00.0", identity=MAC, irreversible=("root-key",))
    with History(tmp_path / "history.jsonl") as history:
        before = host.irreversible
        CardDriver(host, entry, history, real=False).flash(images()["root-key-A"], "key", None)
    assert host.irreversible != before and host.card.root_entry_hash("SR") == ROOT_A


# -- a whole run --------------------------------------------------------------------------------------

#: What a scenario has at hand, used to get a root key onto a card that permits nothing.
SCENARIOS = """
    import copy, dataclasses, pathlib, pickle
    from contextlib import suppress
    from harness.errors import HarnessError, RefusedError
    from harness.hosts.protocol import Asked
    from harness.scenarios.prepare import NotApplicable

    CARD = "two/card0"

    @pytest.fixture(autouse=True)
    def untouched(lab):
        yield
        after = lab.bench.oracle(CARD)
        with (pathlib.Path(__file__).parent / "oracle.txt").open("a") as kept:
            print(after["sr_root"], after["sr_cancelled"], file=kept)

    def test_fixture(flash):
        flash("root-key-A", lands(DOC))

    def test_driver(card, images):
        for act in (card.flash, card.upload):
            with pytest.raises(RefusedError):
                act(images["root-key-A"].data, "A/csk0", None, facts=images["A/csk0"].facts)
        card.flash(images["cancel-A-csk0"].data, "harmless", None)

    def test_file(card, images, tmp_path):
        path = tmp_path / "A-csk0.bin"
        path.write_bytes(images["root-key-A"].data)
        card.flash(path, "A/csk0", None)

    def test_raw_host(host, card, images, tmp_path):
        address = card.address
        for argv in (
            ["fpgasupdate", "-y", "/tmp/x", address],
            ["sh", "-c", f"fpgasupdate -y /tmp/x {address}"],
            ["find", "/sys", "-exec", "sh", "-c", "reboot", ";"],
            ["cat", "/proc/self/root/dev/watchdog"],
        ):
            for call in (lambda: host.run(argv), lambda: host.run_all([Asked(argv)])):
                with pytest.raises(RefusedError):
                    call()
        with pytest.raises(RefusedError):
            host.put(images["root-key-A"].data, "/tmp/hil-0.bin", permit=object())
        host.read("/dev/watchdog")

    def test_second_updater_and_faults(flash, card, images, faults):
        tried = []
        def second(phase):
            with suppress(HarnessError):
                card.flash(images["root-key-A"].data, "second", None)
            tried.append(phase)
        card.flash(images["A/csk0"].data, "A/csk0", None, at_phase=second)
        assert tried
        faults.arm("start", "busy")
        flash("cancel-A-csk0", lands(DOC))
"""
FILE = """
about: A root key, by a file.
source: a document
given:
  card: {root: none}
steps:
  - flash: root-key-A
    promise: lands
"""
CAMPAIGN = """
about: All of them.
scenarios:
  - key.scenario.yaml
  - test_plan.py
devices: two
"""


def test_no_scenario_does_to_a_card_what_its_entry_does_not_permit(tmp_path: Path) -> None:
    """A campaign of scenarios in Python and in a file, over SSH; each refusal is in the history."""
    lay_out(tmp_path)
    write_plan(tmp_path, SCENARIOS)
    (tmp_path / "key.scenario.yaml").write_text(FILE)
    (tmp_path / "all.campaign.yaml").write_text(CAMPAIGN)

    def hil(*words: str) -> subprocess.CompletedProcess[str]:
        command = [Path(sys.executable).with_name("hil"), *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)

    ended = hil("run", "all.campaign.yaml", "--store", "none", "-o", "json")
    oracle = (tmp_path / "oracle.txt").read_text().splitlines()
    assert oracle == ["None []"] * 5, ended.stderr
    records = [r for path in histories(tmp_path / "reports/latest") for r in read_history(path)]
    refused = {r.intent for r in records if isinstance(r, Completion) and r.error.get("kind") == "refused"}
    asked = [r.operation for r in records if isinstance(r, Intent) and r.seq in refused]
    assert asked.count("host-call") >= 9, "raw calls that were refused"
    assert asked.count("flash") >= 4
    assert ended.returncode == 4, ended.stdout + ended.stderr
    by_hand = hil("card", "flash", "two/card0", "root-key-A")
    assert by_hand.returncode == 4 and "cannot be undone" in by_hand.stderr
