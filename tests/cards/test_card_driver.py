"""A card's operations through /bin/sh and through a real SSH server: effects, records, refusals."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cards import FileCard, Programs, add_card

from harness.cards.driver import CardDriver
from harness.cards.tool_output import Progress
from harness.errors import (
    ConfigurationError,
    DeadlineError,
    InfrastructureError,
    RefusedError,
)
from harness.hosts.access import Access
from harness.hosts.local import LocalHost
from harness.hosts.protocol import Host
from harness.hosts.ssh import SshHost
from harness.images.recipes import build, load_recipes
from harness.judgement.records import Claim, Completion, Intent, Observation, Promise
from harness.judgement.values import Unknown
from harness.leases.hold import held

RECIPES = load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())
IMAGE = build(RECIPES["A/csk0"])
NEW_ID = 0x23000410010311
MAC = "64:4c:36:00:12:a0"
LANDS = Promise("lands", source="test")

Make = Callable[..., CardDriver]


@pytest.fixture(params=["sh", "openssh"])
def machine(request: pytest.FixtureRequest, programs: Programs) -> Iterator[Host]:
    """A host by each of the two ways."""
    if request.param == "sh":
        yield LocalHost("bench", tools=programs.tools)
        return
    access: Access = request.getfixturevalue("access")
    found = SshHost("bench", access, tools=programs.tools)
    yield found
    found.close()


@pytest.fixture
def uploads(tmp_path: Path) -> Path:
    folder = tmp_path / "uploads"
    folder.mkdir()
    return folder


@pytest.fixture
def make(
    machine: Host, kept: Any, entry: Any, programs: Programs, uploads: Path, file_card: FileCard
) -> Make:
    def driver(real: bool = False, allowed: frozenset[str] = frozenset(), **card: Any) -> CardDriver:
        return CardDriver(
            machine,
            entry(**card),
            kept,
            real=real,
            allowed=allowed,
            sysfs=str(file_card.sysfs),
            tools=programs.tools,
            upload_dir=str(uploads),
            locks=str(programs.folder),
            settle=0.1,
        )

    return driver


def story(kept: Any) -> list[str]:
    """What is recorded, in short."""
    told = []
    for record in kept.records:
        match record:
            case Intent():
                told.append(f"intent {record.operation}")
            case Observation():
                told.append(f"observed {record.moment}".strip())
            case Claim():
                told.append(f"{record.reporter}: {record.statement.get('result', 'state')}")
            case Completion():
                told.append(record.how)
    return told


def test_a_flash_and_a_reset_from_intent_to_truth(
    make: Make, kept: Any, programs: Programs, uploads: Path
) -> None:
    driver = make()
    result = driver.flash(IMAGE, "A/csk0", LANDS)
    reset = driver.reset()
    assert story(kept) == [
        "intent flash",
        "observed before",
        "fpgasupdate: done",
        "returned",
        "observed after",
        "intent reset",
        "observed before",
        "rsu: done",
        "returned",
        "observed after-reset",
    ]
    assert (result.before.flash_count, result.after.flash_count) == (12, 13)
    assert (result.after.bitstream_id, reset.after.bitstream_id) == (0x23000410010307, NEW_ID)
    assert reset.address == "0000:b2:00.0"
    flash, reset_intent = kept.of(Intent)
    assert flash.parameters["image"]["bitstream_id"] == NEW_ID
    assert flash.parameters["image"]["effect"] == "user-image"
    assert (flash.subject.name, flash.subject.identity) == ("bench/card0", MAC)
    assert {record.intent for record in kept.records[1:5]} == {flash.seq} == {result.intent}
    assert {record.intent for record in kept.records[6:]} == {reset_intent.seq}
    claim = kept.of(Claim)[0]
    assert claim.evidence.exit_code == 0 and "Secure update OK" in claim.evidence.text
    assert "hil-pid" not in claim.evidence.text
    assert not list(uploads.iterdir())


def test_the_tool_is_run_as_the_control_plane_runs_it(make: Make, programs: Programs, uploads: Path) -> None:
    import json

    make().flash(IMAGE, "A/csk0", LANDS)
    seen = json.loads((programs.folder / "seen.json").read_text())
    assert seen["argv"][:3] == ["-y", "--log-level", "debug"]
    assert seen["argv"][3].startswith(f"{uploads}/hil-") and seen["argv"][4] == "0000:b2:00.0"
    assert seen["lang"] == "C.UTF-8"


def test_progress_and_phases_come_while_the_tool_runs(make: Make) -> None:
    steps: list[Progress] = []
    phases: list[str] = []
    make().flash(IMAGE, "A/csk0", LANDS, on_progress=steps.append, at_phase=phases.append)
    assert phases == ["waiting", "preparing", "transferring", "programming"]
    assert ("transferring", 100) in [(step.phase, step.percent) for step in steps]


def test_a_file_is_flashed_like_bytes(make: Make, tmp_path: Path) -> None:
    (tmp_path / "image.bin").write_bytes(IMAGE)
    assert make().flash(tmp_path / "image.bin", "A/csk0", LANDS).facts.bitstream_id == NEW_ID
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        make().flash(tmp_path / "missing.bin", "A/csk0", LANDS)


def test_a_refusal_by_the_card_and_its_code_in_the_kernel_log(
    make: Make, kept: Any, programs: Programs
) -> None:
    programs.plan(update="refused")
    result = make().flash(IMAGE, "A/csk0", Promise("unchanged", ("0x11",)))
    assert result.statement.to_json() == {"result": "failed", "phase": "programming", "error": "hw-error"}
    assert (result.exit_code, result.auth_code) == (1, "0x11")
    log = next(claim for claim in kept.of(Claim) if claim.reporter == "kernel-log")
    assert log.statement == {"auth_code": "0x11"} and log.intent == result.intent
    again = make().flash(IMAGE, "A/csk0", LANDS)
    assert again.auth_code == "0x11"
    programs.plan(update="ok")
    assert make().flash(IMAGE, "A/csk0", LANDS).auth_code == ""


def test_a_tool_that_says_ok_and_did_nothing(make: Make, programs: Programs) -> None:
    programs.plan(update="ignored")
    result = make().flash(IMAGE, "A/csk0", LANDS)
    assert result.statement.result == "done"
    assert result.before.flash_count == result.after.flash_count == 12


def test_a_signal_reaches_the_tool_itself(make: Make, kept: Any, programs: Programs) -> None:
    programs.plan(update="hang")
    driver = make()

    def at_phase(phase: str) -> None:
        if phase == "programming":
            driver.signal("TERM")

    result = driver.flash(IMAGE, "A/csk0", LANDS, at_phase=at_phase)
    assert result.statement.to_json() == {
        "result": "interrupted",
        "phase": "programming",
        "error": "Caught SIGTERM",
    }
    assert result.exit_code == 1
    assert story(kept)[2:5] == ["intent signal", "returned", "fpgasupdate: interrupted"]
    with pytest.raises(ConfigurationError, match="No tool works on bench/card0"):
        driver.signal("TERM")


def test_the_truth_after_is_read_when_the_update_is_over(make: Make, file_card: FileCard) -> None:
    """The tool can end long before the card does: what lands meanwhile belongs to this flash."""
    import threading

    driver = make()
    status = "sec/firmware/secure-update0/status"
    programming = threading.Event()
    sightings: list[object] = []
    truth = driver.truth

    def watched(*args: Any, **options: Any) -> Any:
        found = truth(*args, **options)
        if found.update_status == "programming":
            sightings.append(found)
        if len(sightings) == 3:
            programming.set()
        return found

    driver.truth = watched  # type: ignore[method-assign]

    def card() -> None:
        programming.wait(20)
        file_card.write("fme/bitstream_id", "0x23000410010399\n")
        file_card.write(status, "idle\n")

    worker = threading.Thread(target=card)
    worker.start()
    result = driver.flash(
        IMAGE, "A/csk0", LANDS, at_phase=lambda phase: file_card.write(status, "programming\n")
    )
    worker.join()
    assert programming.is_set()
    assert (result.after.update_status, result.after.bitstream_id) == ("idle", 0x23000410010399)


def test_an_update_that_does_not_end_is_a_deadline_with_the_last_status(
    make: Make, kept: Any, file_card: FileCard
) -> None:
    def at_phase(phase: str) -> None:
        file_card.write("sec/firmware/secure-update0/status", "programming\n")

    with pytest.raises(DeadlineError, match=r"Waited 0\.1 s .* last status was 'programming'"):
        make().flash(IMAGE, "A/csk0", LANDS, at_phase=at_phase, idle_deadline=0.1)
    assert kept.of(Observation)[-1].values["update_status"] == "programming"


def test_a_tool_that_does_not_end_is_ended_and_recorded_as_timed_out(
    make: Make, kept: Any, programs: Programs, uploads: Path
) -> None:
    programs.plan(update="hang")
    driver = make()
    driver.truth()
    with pytest.raises(
        DeadlineError, match=r"Waited 2 s for .*the last that was seen of it: .*programming image"
    ):
        driver.flash(IMAGE, "A/csk0", LANDS, deadline=2)
    flash = kept.of(Intent)[0]
    (completion,) = [record for record in kept.of(Completion) if record.intent == flash.seq]
    assert (completion.how, completion.error["kind"]) == ("timed-out", "infrastructure")
    assert not list(uploads.iterdir())
    programs.plan(update="ok")
    assert driver.flash(IMAGE, "A/csk0", LANDS).statement.result == "done"


def test_ctrl_c_ends_the_tool_and_is_recorded(make: Make, kept: Any, programs: Programs) -> None:
    programs.plan(update="hang")

    def at_phase(phase: str) -> None:
        if phase == "programming":
            raise KeyboardInterrupt

    driver = make()
    with pytest.raises(KeyboardInterrupt):
        driver.flash(IMAGE, "A/csk0", LANDS, at_phase=at_phase)
    assert story(kept)[-1] == "raised"
    assert kept.of(Completion)[-1].error["kind"] == "KeyboardInterrupt"
    programs.plan(update="ok")
    assert driver.flash(IMAGE, "A/csk0", LANDS).statement.result == "done"


# -- where the card is --------------------------------------------------------------------------------


def test_a_card_that_moved_is_found_by_its_identity(make: Make, kept: Any, programs: Programs) -> None:
    programs.plan(moves_to="0000:b3:00.0")
    driver = make()
    driver.flash(IMAGE, "A/csk0", LANDS)
    reset = driver.reset()
    assert reset.address == driver.address == "0000:b3:00.0"
    assert reset.after.bitstream_id == NEW_ID
    intent, observed = kept.of(Intent)[-1], kept.of(Observation)[-1]
    assert intent.subject.address == "0000:b2:00.0"
    assert observed.subject.address == observed.values["address"] == "0000:b3:00.0"


def test_a_card_that_stays_away(make: Make, kept: Any, programs: Programs) -> None:
    programs.plan(stays_away=True)
    driver = make()
    reset = driver.reset()
    assert (reset.statement.result, reset.exit_code, reset.address) == ("done", 0, None)
    assert kept.of(Observation)[-1].moment == "after-reset"
    assert isinstance(reset.after.bitstream_id, Unknown) and not reset.after.on_bus
    with pytest.raises(InfrastructureError, match="is not on bench"):
        driver.locate()


def test_another_card_at_the_address_is_never_flashed(make: Make, kept: Any, file_card: FileCard) -> None:
    file_card.write("bmc/mac_address", "64:4c:36:00:99:99\n")
    with pytest.raises(RefusedError, match="64:4c:36:00:99:99 answers"):
        make().flash(IMAGE, "A/csk0", LANDS)
    assert file_card.file("sec/security/flash_count").read_text() == "12\n"


def test_two_cards_that_swapped_their_addresses(
    make: Make, kept: Any, file_card: FileCard, sysfs: Path
) -> None:
    other = add_card(sysfs, "0000:b3:00.0", "64:4c:36:00:12:b0")
    devices = sysfs / "bus/pci/devices"
    for name, target in (("0000:b2:00.0", "x"), ("0000:b3:00.0", "0000:b2:00.0"), ("x", "0000:b3:00.0")):
        (devices / name).rename(devices / target)
    driver = make()
    driver.flash(IMAGE, "A/csk0", LANDS)
    assert driver.address == "0000:b3:00.0"
    assert other.file("sec/security/flash_count").exists()
    counts = {
        name: (devices / name).glob("**/security/flash_count") for name in ("0000:b2:00.0", "0000:b3:00.0")
    }
    assert {name: next(files).read_text() for name, files in counts.items()} == {
        "0000:b2:00.0": "12\n",
        "0000:b3:00.0": "13\n",
    }


def test_without_an_identity_in_the_inventory_it_is_learned(make: Make, programs: Programs) -> None:
    programs.plan(moves_to="0000:b3:00.0")
    driver = make(identity=None)
    driver.reset()
    assert (driver.identity, driver.address) == (MAC, "0000:b3:00.0")


# -- refusals and failures ----------------------------------------------------------------------------


def test_what_cannot_be_undone_needs_a_card_that_can_be_told(
    make: Make, kept: Any, file_card: FileCard
) -> None:
    file_card.write("bmc/mac_address", "ff:ff:ff:ff:ff:ff\n")
    driver = make(irreversible=("root-key",))
    with pytest.raises(RefusedError, match="cannot be read"):
        driver.flash(build(RECIPES["root-key-A"]), "root-key-A", LANDS)
    assert file_card.file("sec/security/flash_count").read_text() == "12\n"
    assert kept.of(Completion)[-1].error["kind"] == "refused"


def test_on_real_hardware_the_option_must_name_it_too(make: Make, file_card: FileCard) -> None:
    image = build(RECIPES["root-key-A"])
    driver = make(real=True, irreversible=("root-key",))
    assert driver.permitted == frozenset()
    with pytest.raises(RefusedError, match="real hardware") as failure:
        driver.flash(image, "root-key-A", LANDS)
    assert "--hil-irreversible=root-key" in failure.value.hint
    assert file_card.file("sec/security/flash_count").read_text() == "12\n"
    named = make(real=True, allowed=frozenset({"root-key"}), irreversible=("root-key",))
    assert named.permitted == {"root-key"}
    assert named.flash(image, "root-key-A", LANDS).facts.effect == "root-key"


def test_two_processes_on_one_card(make: Make, kept: Any, programs: Programs, file_card: FileCard) -> None:
    argv = held(
        ["sh", "-c", "echo here; read gone", "fpgasupdate", "0000:b2:00.0"], MAC, str(programs.folder)
    )
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout and other.stdout.readline() == "here\n"
        for operation in (lambda: make().flash(IMAGE, "A/csk0", LANDS), lambda: make().reset()):
            with pytest.raises(RefusedError, match=rf"in use: process {other.pid} \("):
                operation()
        other.kill()
    assert file_card.file("sec/security/flash_count").read_text() == "12\n"
    assert not kept.of(Claim)
    assert {record.how for record in kept.of(Completion)} == {"raised"}


def test_a_missing_tool_is_named(make: Make, programs: Programs, kept: Any) -> None:
    (programs.folder / "fpgasupdate").unlink()
    (programs.folder / "rsu").unlink()
    driver = make()
    with pytest.raises(InfrastructureError, match="fpgasupdate: No such file"):
        driver.flash(IMAGE, "A/csk0", LANDS)
    with pytest.raises(InfrastructureError, match="rsu: No such file"):
        driver.reset()
    assert not kept.of(Claim)


def test_an_upload_folder_that_takes_nothing(
    make: Make, kept: Any, uploads: Path, file_card: FileCard
) -> None:
    uploads.rmdir()
    with pytest.raises(InfrastructureError, match="could not be written to"):
        make().flash(IMAGE, "A/csk0", LANDS)
    assert file_card.file("sec/security/flash_count").read_text() == "12\n"


def test_a_file_that_is_damaged_on_the_host_is_not_flashed(
    make: Make, machine: Host, monkeypatch: pytest.MonkeyPatch, file_card: FileCard, uploads: Path
) -> None:
    put = type(machine).put

    def damaging(self: Any, source: Any, path: str, **options: Any) -> None:
        put(self, source, path, **options)
        with Path(path).open("r+b") as file:
            file.write(b"x")

    monkeypatch.setattr(type(machine), "put", damaging)
    with pytest.raises(RefusedError, match="is not the image that was put there"):
        make().flash(IMAGE, "A/csk0", LANDS)
    assert file_card.file("sec/security/flash_count").read_text() == "12\n"
    assert not list(uploads.iterdir())


@pytest.mark.parametrize("operation", ["flash", "upload"])
def test_a_file_that_is_exchanged_after_it_was_looked_at_is_not_flashed(
    make: Make,
    machine: Host,
    monkeypatch: pytest.MonkeyPatch,
    file_card: FileCard,
    uploads: Path,
    operation: str,
) -> None:
    """Between our look at the file and the tool's, the host looks once more."""
    run_all = type(machine).run_all

    def exchanging(self: Any, commands: Any, **options: Any) -> Any:
        results = run_all(self, commands, **options)
        for asked in commands:
            if asked.argv[0] == "sha256sum":
                swapped = uploads / "swapped"
                swapped.write_bytes(build(RECIPES["root-key-A"]))
                swapped.replace(asked.argv[1])
        return results

    monkeypatch.setattr(type(machine), "run_all", exchanging)
    with pytest.raises(RefusedError, match="changed just before it was to be flashed"):
        getattr(make(), operation)(IMAGE, "A/csk0", LANDS)
    assert file_card.file("sec/security/flash_count").read_text() == "12\n"
    assert not list(uploads.iterdir())


def test_a_reset_in_the_middle_of_an_update_is_refused(make: Make, kept: Any, file_card: FileCard) -> None:
    file_card.write("sec/firmware/secure-update0/status", "transferring\n")
    with pytest.raises(RefusedError, match="status transferring"):
        make().reset()
    assert not kept.of(Claim)
    assert make().reset(while_updating=True).statement.result == "done"


def test_cancelling_writes_to_this_cards_update(make: Make, kept: Any, file_card: FileCard) -> None:
    result = make().cancel_update()
    assert result.exit_code == 0
    assert file_card.file("sec/firmware/secure-update0/cancel").read_text() == "1\n"
    assert story(kept) == ["intent cancel-update", "returned"]


def test_a_kernel_log_that_may_not_be_read_is_said(make: Make, kept: Any, programs: Programs) -> None:
    (programs.folder / "dmesg").write_text("#!/bin/sh\necho 'dmesg: Operation not permitted' >&2; exit 1\n")
    assert make().flash(IMAGE, "A/csk0", LANDS).auth_code == ""
    log = next(claim for claim in kept.of(Claim) if claim.reporter == "kernel-log")
    assert log.statement == {"auth_code": Unknown("dmesg: Operation not permitted")}


# -- what is reported ---------------------------------------------------------------------------------


def test_a_report_is_recorded_beside_the_truth(make: Make, kept: Any, programs: Programs) -> None:
    programs.say("fme", "PCIe s:b:d.f : 0000:B2:00.0\nBitstream Id : 0x23000410010307\n")
    programs.say("security", "PCIe s:b:d.f : 0000:B2:00.0\nFIM CSK IDs canceled: None\n")
    claimed = make().report()
    assert claimed == {"address": "0000:b2:00.0", "bitstream_id": 0x23000410010307, "sr_cancelled": []}
    assert story(kept) == ["observed", "fpgainfo: state", "fpgainfo: state"]
    assert kept.of(Observation)[0].values["sr_cancelled"] == [0, 1, 2, 5]
