"""A card's operations on hosts of every driver generation and tool era, over the emulated lab's SSH face."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cards.discovery import FoundCard, discover
from harness.cards.driver import CardDriver
from harness.errors import LinkLostError, NotOfferedError, RefusedError
from harness.hosts.connect import connect
from harness.images.recipes import build, load_recipes
from harness.inventory.load import load_inventory
from harness.judgement.judge import judge_scenario
from harness.judgement.model import VerdictKind
from harness.judgement.records import Claim, Completion, Observation, Promise, ScenarioEnded, ScenarioStarted
from harness.judgement.values import NOT_EXPOSED, Unknown
from harness.lab.running import RunningLab, start_lab

RECIPES = load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())
IMAGE = build(RECIPES["A/csk0"])
NEW_ID = RECIPES["A/csk0"].bitstream_id
LANDS = Promise("lands", source="test")
GENERATIONS = "ABCD"
ERAS = ("host", "docker", "containerd")
ALL = [f"{generation.lower()}-{era}" for generation in GENERATIONS for era in ERAS]
IN_CONTAINERS = ["a-docker", "c-containerd"]
ADDRESS = "0000:b2:00.0"
ROOT_HASH = RECIPES["root-key-A"].root_entry_hash()


def inventory() -> str:
    """An inventory with one host and card of every generation and era."""
    lines = ["version: 1", "default_lab: all", "labs:", "  all:", "    hosts:"]
    for number, name in enumerate(ALL):
        generation, _, era = name.partition("-")
        lines += [
            f"      {name}:",
            f"        emulated: {{generation: {generation.upper()}, era: {era}}}",
            f"        cards: {{card0: {{address: '{ADDRESS}', identity: '64:4c:36:00:78:{number:02x}', "
            "irreversible: [root-key, key-cancellation], emulated: {}}}",
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    file = tmp_path_factory.mktemp("inventory") / "inventory.yaml"
    file.write_text(inventory())
    with start_lab(load_inventory(file)) as running:
        yield running


@pytest.fixture
def driver_of(lab: RunningLab, kept: Any) -> Iterator[Callable[[str], CardDriver]]:
    """Makes drivers of a card that is as it was shipped, by its host, each with a connection of its own."""
    assert lab.bench is not None
    bench = lab.bench
    made: list[CardDriver] = []

    def make(name: str) -> CardDriver:
        if not any(each.host.name == name for each in made):
            bench.fit(f"{name}/card0", {})
        entry = lab.entry.host(name)
        made.append(
            CardDriver(connect(entry, lab.access(name)), entry.card("card0"), kept, real=False, settle=0.5)
        )
        made[-1].locate()
        return made[-1]

    yield make
    for each in made:
        each.host.close()


def generation_of(name: str) -> str:
    return name[0].upper()


def in_phase(lab: RunningLab, name: str, phase: str, act: Callable[[], object]) -> Callable[[str], None]:
    """Hold ``phase`` of the next update of the card of host ``name``, and ``act`` while it is in it."""
    bench = lab.bench
    assert bench is not None
    card = f"{name}/card0"
    bench.hold(card, phase)

    def at_phase(seen: str) -> None:
        if seen == ("programming" if phase == "copying" else phase):
            bench.wait_held(card, phase)
            try:
                act()
            finally:
                bench.release(card)

    return at_phase


def judged(kept: Any) -> dict[str, VerdictKind]:
    """Judge what is recorded, as one scenario."""
    records = [ScenarioStarted(scenario="x"), *kept.records, ScenarioEnded(scenario="x")]
    return dict(judge_scenario(records).verdicts)


@pytest.mark.parametrize("name", ALL)
def test_flash_reset_and_report(
    driver_of: Callable[[str], CardDriver], lab: RunningLab, kept: Any, name: str
) -> None:
    card = driver_of(name)
    assert discover(card.host) == [FoundCard(ADDRESS, str(card.identity))]
    phases: list[str] = []
    result = card.flash(build(RECIPES["root-key-A"]), "root-key-A", LANDS, at_phase=phases.append)
    waits = [] if generation_of(name) == "A" else ["waiting"]
    assert phases == [*waits, "preparing", "transferring", "programming"]
    assert card.flash(IMAGE, "A/csk0", LANDS).statement.result == "done"
    truth = card.reset().after
    assert (result.before.generation, truth.generation) == (generation_of(name),) * 2
    assert (truth.sr_root, truth.flash_count, truth.bitstream_id) == (ROOT_HASH, 2, NEW_ID)
    assert truth.updates_by_attributes is (generation_of(name) in "BD")
    claimed = card.report()
    assert claimed.keys() >= {"bitstream_id", "sr_root", "sr_cancelled", "flash_count", "boot_page"}
    assert claimed["bitstream_id"] == NEW_ID
    assert set(judged(kept).values()) == {VerdictKind.MATCH}
    assert lab.bench is not None
    assert lab.bench.oracle(f"{name}/card0")["sr_root"] == ROOT_HASH


@pytest.mark.parametrize("name", ALL)
def test_a_refusal_has_its_code_in_the_kernel_log(
    driver_of: Callable[[str], CardDriver], kept: Any, name: str
) -> None:
    card = driver_of(name)
    card.flash(build(RECIPES["root-key-A"]), "root-key-A", LANDS)
    card.reset()
    result = card.flash(build(RECIPES["unsigned"]), "unsigned", Promise("unchanged", ("0x11",)))
    assert (result.statement.result, result.auth_code) == ("failed", "0x11")
    assert result.statement.error == ("Input/output error" if generation_of(name) == "A" else "hw-error")
    assert card.reset().after.bitstream_id == result.before.bitstream_id
    assert set(judged(kept).values()) == {VerdictKind.MATCH}


@pytest.mark.parametrize("name", ["a-host", "a-docker", "c-host", "c-containerd"])
def test_what_has_no_attributes_is_not_written_to(
    driver_of: Callable[[str], CardDriver], kept: Any, name: str
) -> None:
    card = driver_of(name)
    for act in (lambda: card.upload(IMAGE, "A/csk0", LANDS), card.cancel_update):
        with pytest.raises(NotOfferedError, match=f"is of generation {generation_of(name)}"):
            act()
    with pytest.raises(NotOfferedError):
        card.require_update_attributes()
    truth = card.truth()
    assert (truth.update_status, truth.update_error) == (NOT_EXPOSED, NOT_EXPOSED)
    assert truth.flash_count == 0
    assert [record.how for record in kept.of(Completion)] == ["raised", "raised"]


@pytest.mark.parametrize("name", ["b-host", "b-docker", "d-host", "d-containerd"])
def test_what_has_attributes_is_handed_images_without_the_tool(
    driver_of: Callable[[str], CardDriver], name: str
) -> None:
    card = driver_of(name)
    result = card.upload(IMAGE, "A/csk0", LANDS)
    assert (result.statement.result, result.after.flash_count) == ("done", 1)
    assert card.reset().after.bitstream_id == NEW_ID
    assert "hil-" not in card.host.run(["ls", "/usr/lib/firmware/", "/tmp/"]).stdout


def test_an_update_of_generation_b_is_cancelled(
    driver_of: Callable[[str], CardDriver], lab: RunningLab
) -> None:
    card = driver_of("b-host")
    codes: list[int] = []
    at_phase = in_phase(lab, "b-host", "transferring", lambda: codes.append(card.cancel_update().exit_code))
    result = card.flash(IMAGE, "A/csk0", LANDS, at_phase=at_phase)
    assert codes == [0]
    # What the driver says of it in its own word; the statement has the kernel's phase.
    assert (result.statement.result, result.statement.error) == ("failed", "user-abort")
    assert result.after.update_error == "writing:user-abort"
    assert isinstance(result.after.hw_errinfo, int)


# -- the tool image -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", IN_CONTAINERS)
def test_a_tool_image_that_is_gone_is_a_failure_and_nothing_was_attempted(
    driver_of: Callable[[str], CardDriver], lab: RunningLab, kept: Any, name: str
) -> None:
    card = driver_of(name)
    assert lab.bench is not None
    card.report()  # it has looked where the tools are
    kept.records.clear()
    lab.bench.condition(name, "no-tool-image", True)
    try:
        result = card.flash(IMAGE, "A/csk0", LANDS)
    finally:
        lab.bench.condition(name, "no-tool-image", False)
    assert result.statement.result == "failed"
    assert "not found" in result.statement.error
    assert result.exit_code == (125 if name == "a-docker" else 1)
    assert result.after.flash_count == 0
    assert judged(kept)["fpgasupdate"] is VerdictKind.NOT_ATTEMPTED
    assert card.flash(IMAGE, "A/csk0", LANDS).statement.result == "done"


def test_what_a_lost_host_has_left_of_a_container_is_removed(
    driver_of: Callable[[str], CardDriver], lab: RunningLab
) -> None:
    card = driver_of("c-containerd")
    at_phase = in_phase(
        lab, "c-containerd", "transferring", lambda: lab.power("c-containerd", "off", while_updating=True)
    )
    try:
        with pytest.raises(LinkLostError):
            card.flash(IMAGE, "A/csk0", LANDS, at_phase=at_phase)
    finally:
        lab.power("c-containerd", "on")
    card.locate()
    assert "n3000-opae" in card.host.run(["ctr", "-n=k8s.io", "containers", "list", "-q"]).stdout.split()
    assert card.flash(IMAGE, "A/csk0", LANDS).statement.result == "done"
    assert card.host.run(["ctr", "-n=k8s.io", "containers", "list", "-q"]).stdout == ""


@pytest.mark.parametrize("name", [*IN_CONTAINERS, "b-docker"])
def test_a_second_updater_is_kept_out_of_containers_too(
    driver_of: Callable[[str], CardDriver], lab: RunningLab, kept: Any, name: str
) -> None:
    card, other = driver_of(name), driver_of(name)

    def second() -> None:
        # Generations A and C show no update: there the hold of the tool tells.
        shown = r"is running \(status" if name.startswith("b") else "in use: process"
        with pytest.raises(RefusedError, match=shown):
            other.flash(build(RECIPES["A/csk1"]), "A/csk1", LANDS)

    result = card.flash(IMAGE, "A/csk0", LANDS, at_phase=in_phase(lab, name, "transferring", second))
    assert result.statement.result == "done"
    assert len(kept.of(Claim)) == 1
    assert card.reset().after.bitstream_id == NEW_ID


# -- interruptions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a-host", "a-docker", "b-host", "b-docker", "c-host", "c-containerd"])
def test_a_signal_while_it_programs(
    driver_of: Callable[[str], CardDriver], lab: RunningLab, name: str
) -> None:
    """The tool ends, the card goes on; generation A shows nothing of that, so that a reset is refused."""
    card = driver_of(name)
    at_phase = in_phase(lab, name, "copying", lambda: card.signal("TERM"))
    result = card.flash(IMAGE, "A/csk0", LANDS, at_phase=at_phase)
    assert (result.statement.result, result.exit_code) == ("interrupted", 1)
    if generation_of(name) != "A":
        assert card.reset().after.bitstream_id == NEW_ID
        return
    with pytest.raises(RefusedError, match="does not show whether that is over"):
        card.reset()
    assert card.reset(while_updating=True).address == ADDRESS


def test_a_new_boot_shows_that_an_unseen_update_is_over(
    driver_of: Callable[[str], CardDriver], lab: RunningLab
) -> None:
    card = driver_of("a-host")
    card.flash(
        IMAGE, "A/csk0", LANDS, at_phase=in_phase(lab, "a-host", "copying", lambda: card.signal("TERM"))
    )
    lab.power("a-host", "cycle")
    card.locate()
    assert card.reset().address == ADDRESS


def test_a_signal_before_it_programs_leaves_nothing_unseen_on_generation_a(
    driver_of: Callable[[str], CardDriver], lab: RunningLab
) -> None:
    card = driver_of("a-host")
    at_phase = in_phase(lab, "a-host", "transferring", lambda: card.signal("INT"))
    assert card.flash(IMAGE, "A/csk0", LANDS, at_phase=at_phase).statement.result == "interrupted"
    assert card.reset().after.bitstream_id != NEW_ID


@pytest.mark.parametrize("name", ["a-host", "b-host", "c-host"])
def test_a_card_off_the_bus_has_no_legal_value(
    driver_of: Callable[[str], CardDriver], lab: RunningLab, kept: Any, name: str
) -> None:
    card = driver_of(name)
    assert lab.bench is not None
    lab.bench.condition(f"{name}/card0", "all-ones", True)
    try:
        observed = card.observe().values()
    finally:
        lab.bench.condition(f"{name}/card0", "all-ones", False)
    assert len(kept.of(Observation)) == 1
    for field in ("bitstream_id", "sr_root", "sr_cancelled", "flash_count", "bmc_version", "identity"):
        assert isinstance(observed[field], Unknown), field
