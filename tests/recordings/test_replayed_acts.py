"""A recorded flash is performed again, in lab time, for an image of its kind, once; its reset too."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from harness.cards.gate import Gate
from harness.cards.truth import CardTruth
from harness.errors import HarnessBug, InfrastructureError, RefusedError
from harness.hosts.protocol import CommandResult
from harness.images.recipes import build
from harness.judgement.records import Promise
from harness.recordings.acts import Watch, tool_command
from harness.recordings.model import Entry, Recording, Sample

LANDS = Promise("lands", source="test")


def statuses(recording: Recording) -> list[str]:
    """The words that the kernel's status showed in the recorded flash, each once."""
    found = [sample.values["status"].data.decode().strip() for sample in recording.acts[0].samples]
    return [word for at, word in enumerate(found) if word not in found[:at] or word == "idle"]


def test_the_phases_of_a_flash_are_recorded_with_their_times(flashed: Any) -> None:
    recording, _ = flashed
    flash, reset = recording.acts
    assert (flash.act, reset.act) == ("flash", "reset")
    assert flash.argv == ("fpgasupdate", "-y", "--log-level", "debug", "{image}", "0000:b2:00.0")
    assert reset.argv == ("rsu", "bmcimg", "0000:b2:00.0")
    # 20 s to erase, then the tool sees each phase at its next look, a second apart (n3000.md 4.6, 5.1).
    assert 22 < flash.ended < 30
    assert statuses(recording)[0] == statuses(recording)[-1] == "idle"
    assert "preparing" in statuses(recording)
    preparing = [s for s in flash.samples if s.values["status"].data == b"preparing\n"]
    assert preparing[0].at < 10
    assert 10 < preparing[-1].until < 21
    assert preparing[0].values["error"] == Entry("unreadable", text="EBUSY")
    assert preparing[0].values["remaining_size"].data == b"17408\n"
    assert flash.samples[-1].values["remaining_size"].data == b"0\n"
    gone = [s for s in reset.samples if s.values["device"].text == "ENOENT"]
    # The card is away for 4 s; `rsu` waits for 10 (n3000.md 4.6).
    assert 0 < gone[0].at <= gone[-1].until < 5
    assert 10 <= reset.ended < 12
    text = "".join(piece.text for piece in flash.output)
    assert "updating from file {image} with size 17408" in text
    assert text.endswith("Secure update OK\n" + text.splitlines()[-1] + "\n")
    assert "hil-pid" not in text
    assert "/tmp/hil-" not in text
    times = [piece.at for piece in flash.output]
    assert times == sorted(times)
    assert times[-1] > 20


def test_the_states_differ_by_what_the_flash_changed(flashed: Any) -> None:
    recording, _ = flashed
    assert [state.when for state in recording.states] == ["as found", "after the flash", "after the reset"]
    changed = [{path.rpartition("/")[2] for path in state.tree} for state in recording.states[1:]]
    assert "flash_count" in changed[0]
    assert "bitstream_id" not in changed[0]
    assert "bitstream_id" in changed[1]


def test_the_flash_is_performed_again(flashed: Any, replay: Any, image: Any) -> None:
    recording, history = flashed
    replayed = replay(recording)
    records = type(history)()
    driver = replayed.driver(history=records)
    before = replayed.truth()
    phases: list[str] = []
    begun = time.monotonic()
    started = replayed.lab.bench.lab_time()
    result = driver.flash(image("A/csk0"), "image", LANDS, at_phase=phases.append)
    passed = replayed.lab.bench.lab_time() - started
    assert phases == ["waiting", "preparing", "transferring", "programming"]
    assert (result.exit_code, result.statement.result) == (0, "done")
    assert result.after.flash_count == before.flash_count + 1 == 42
    assert result.after.bitstream_id == before.bitstream_id
    assert recording.acts[0].ended == pytest.approx(passed, abs=0.01)
    assert time.monotonic() - begun < recording.acts[0].ended / 2  # lab time, not the lab engineer's
    reset = driver.reset()
    assert reset.after.bitstream_id != before.bitstream_id
    for reporter in ("fpgasupdate", "rsu"):
        assert records.claims(reporter) == history.claims(reporter)
    observed = [dict(r.values) for r in history.records if r.kind == "observation"]
    assert [dict(r.values) for r in records.records if r.kind == "observation"] == observed
    assert replayed.unrecorded == []


def test_what_comes_after_the_last_act_was_not_recorded(flashed: Any, replay: Any, image: Any) -> None:
    replayed = replay(flashed[0])
    driver = replayed.driver()
    driver.flash(image("A/csk0"), "image", LANDS)
    with pytest.raises(
        InfrastructureError, match=r"not in the recording: fpgasupdate .*recorded next is rsu"
    ):
        driver.flash(image("A/csk0"), "image", LANDS)
    driver.reset()
    with pytest.raises(InfrastructureError, match="nothing more was recorded"):
        driver.reset()
    assert replayed.truth().flash_count == 42
    assert [what[:15] for what in replayed.unrecorded] == ["run fpgasupdate", "run rsu bmcimg "]


def test_a_reset_before_the_flash_was_not_recorded(still: Any) -> None:
    with pytest.raises(InfrastructureError, match="recorded next is fpgasupdate"):
        still.driver().reset()
    assert still.truth().flash_count == 41


@pytest.mark.parametrize(
    ("recipe", "named"),
    [
        ("unsigned", "user-image of SR, unsigned"),
        ("A/csk1", "CSK 1"),
        ("B/csk0", "root "),
        ("root-key-A", "root-key of SR"),
        ("cancel-A-csk0", "cancels CSK 0"),
        ("damage/payload-bit", "wrong: payload-sha256"),
    ],
)
def test_an_image_of_another_kind_is_not_flashed(still: Any, image: Any, recipe: str, named: str) -> None:
    with pytest.raises(InfrastructureError, match="not in the recording: fpgasupdate") as caught:
        still.driver().flash(image(recipe), recipe, None)
    assert f"the image is {named}" in caught.value.message or named in caught.value.message
    assert "recorded next is one of user-image of SR, root" in caught.value.message
    assert still.truth().flash_count == 41


def test_an_image_of_the_same_kind_with_another_payload_is_flashed(
    flashed: Any, replay: Any, recipes: Any
) -> None:
    recipe = replace(recipes["A/csk0"], bitstream_id=0x23000410010399)
    replayed = replay(flashed[0])
    result = replayed.driver().flash(build(recipe), "other", LANDS)
    assert result.exit_code == 0
    assert result.facts.sha256 != flashed[0].acts[0].image["sha256"]


def test_a_refused_flash_and_a_card_that_moved(refused: Any, replay: Any, image: Any) -> None:
    recording, history = refused
    assert recording.states[2].addresses == {"card0": "0000:c4:00.0"}
    replayed = replay(recording)
    records = type(history)()
    driver = replayed.driver(history=records)
    result = driver.flash(image("unsigned"), "unsigned", Promise("unchanged", source="test"))
    assert (result.exit_code, result.statement.error, result.auth_code) == (1, "hw-error", "0x11")
    reset = driver.reset()
    assert reset.address == driver.address == "0000:c4:00.0"
    assert records.claims("kernel-log") == history.claims("kernel-log") != []
    old, new = "/sys/bus/pci/devices/0000:b2:00.0", "/sys/bus/pci/devices/0000:c4:00.0"
    with pytest.raises(FileNotFoundError):
        replayed.host.read(f"{old}/vendor")
    assert replayed.host.read(f"{new}/vendor") == b"0x8086\n"
    assert "0000:C4:00.0" in replayed.host.run(["fpgainfo", "fme", "c4:00.0"]).stdout
    assert replayed.unrecorded == []
    assert replayed.host.run(["fpgainfo", "fme", "b2:00.0"]).exit_code == 127


@pytest.fixture
def slow(flashed: Any, tmp_path: Any, reach: Any) -> Any:
    """A replay whose lab time passes as a clock's, ten times as fast."""
    from harness.lab.replay import replay_lab
    from harness.lab.running import start_lab
    from harness.recordings.files import write_recording

    file = tmp_path / "slow.json"
    write_recording(flashed[0], file)
    inventory, _ = replay_lab(file, tmp_path)
    with start_lab(inventory, scale=10.0) as lab:
        yield reach(lab, "node1")


def test_files_follow_the_time_of_the_flash(slow: Any, image: Any) -> None:
    """In the middle of the flash the kernel's files say what they said at that time of the recorded one."""
    driver = slow.driver()
    sources = slow.truth().sources
    folder = sources["update_status"].rpartition("/")[0]
    seen: dict[str, Any] = {}

    def look(phase: str) -> None:
        if phase != "preparing":
            return
        seen["early"] = slow.host.run(["cat", f"{folder}/status"])
        while slow.lab.bench.lab_time() < begun + 6:
            time.sleep(0.01)
        seen["status"] = slow.host.run(["cat", f"{folder}/status"])
        seen["error"] = slow.host.run(["cat", f"{folder}/error"])
        seen["count"] = slow.host.run(["cat", sources["flash_count"]])
        seen["info"] = slow.host.run(["fpgainfo", "security", "0000:b2:00.0"])
        seen["version"] = slow.truth().bmc_version

    begun = slow.lab.bench.lab_time()
    driver.flash(image("A/csk0"), "image", LANDS, at_phase=look)
    # A status that is still idle once the update has begun makes every flash look successful.
    assert seen["early"].stdout != "idle\n"
    assert seen["status"].stdout == "preparing\n"
    assert "Device or resource busy" in seen["error"].stderr
    # Nobody looked at these while the flash was recorded, and they changed by it.
    assert seen["count"].stderr.endswith(": Not in the recording\n")
    assert seen["count"].stdout == ""
    assert seen["info"].exit_code == 127
    assert seen["version"] == "D.2.0.6"
    named = {what.rpartition("/")[2] for what in slow.unrecorded}
    assert {"flash_count", "run fpgainfo security 0000:b2:00.0"} <= named


def test_what_a_signal_does_was_not_recorded(slow: Any, image: Any) -> None:
    driver = slow.driver()
    begun = slow.lab.bench.lab_time()

    def stop(phase: str) -> None:
        if phase == "preparing":
            while slow.lab.bench.lab_time() < begun + 6:  # the status of this time was recorded
                time.sleep(0.01)
            driver.signal("TERM")

    result = driver.flash(image("A/csk0"), "image", None, at_phase=stop, idle_deadline=2.0)
    assert result.exit_code == -1
    assert str(result.after.update_status) == "unknown (Not in the recording)"
    assert any(what.startswith("what SIGTERM does to fpgasupdate") for what in slow.unrecorded)
    with pytest.raises(InfrastructureError, match="another act goes on"):
        driver.reset()


def test_two_tools_at_once_are_not_performed(slow: Any, image: Any, flashed: Any, reach: Any) -> None:
    driver = slow.driver()
    other = reach(slow.lab, "node1").driver()
    begun = threading.Event()
    errors: list[str] = []

    def second() -> None:
        begun.wait(20)
        try:
            other.flash(image("A/csk0"), "image", None)
        except RefusedError as error:
            errors.append(error.message)

    thread = threading.Thread(target=second)
    thread.start()
    driver.flash(image("A/csk0"), "image", LANDS, at_phase=lambda phase: begun.set())
    thread.join()
    assert len(errors) == 1
    assert "is running (status" in errors[0] or "is in use" in errors[0]


def test_nothing_is_known_where_nobody_looked_for_long(flashed: Any) -> None:
    flash = flashed[0].acts[0]
    idle, busy = flash.samples[0].values, flash.samples[1].values

    def act(*samples: tuple[float, float, Any]) -> Any:
        return replace(flash, samples=tuple(Sample(*sample) for sample in samples))

    sparse = act((0.0, 0.0, idle), (1.0, 2.0, busy), (9.0, 12.0, idle))
    assert sparse.sample(0.0) == idle
    assert sparse.sample(0.5) is None  # the tool has begun, and nobody has looked yet
    assert sparse.sample(1.5) == busy
    assert sparse.sample(5.0) is None
    assert sparse.sample(10.0) == idle
    assert sparse.sample(12.5) is None
    close = act((0.0, 0.0, idle), (1.0, 2.0, busy), (6.5, 12.0, idle))
    assert close.sample(6.0) == busy
    steady = act((0.0, 2.0, idle), (3.0, 4.0, busy))  # looks that saw the same are one
    assert steady.sample(1.5) == idle
    assert steady.sample(2.5) is None


def test_the_tool_is_told_from_what_holds_the_card(entry: Any) -> None:
    gate = Gate("h", entry, real=False, allowed=(), tools={"rsu": "/opt/x y/rsu"})
    permit = gate.reset("bmcimg", CardTruth(address="0000:b2:00.0", identity="64:4c:36:00:88:00"), "factory")
    assert tool_command(permit.argv) == ["/opt/x y/rsu", "bmcimg", "0000:b2:00.0", "-p", "factory"]
    with pytest.raises(HarnessBug):
        tool_command(["sh", "-c", "fpgasupdate x"])
    with pytest.raises(HarnessBug):
        tool_command(["fpgasupdate", "x"])


@pytest.fixture
def entry(original: Any) -> Any:
    return original.entry.host("node1").card("card0")


def test_every_field_of_the_truth_is_in_a_recording(still: Any) -> None:
    truth = still.truth()
    assert len(truth.values()) > 20
    unknown = {name for name, value in truth.values().items() if str(value).startswith("unknown")}
    assert unknown == {"retimer_a_version", "retimer_b_version", "hw_errinfo"}  # of other generations


class Stepping:
    """A host whose clock and files are as told, look by look."""

    name = "node1"

    def __init__(self, looks: list[tuple[float, str]]) -> None:
        self._looks = iter(looks)

    def run(self, argv: Any, **how: Any) -> Any:
        uptime, status = next(self._looks)
        text = f"==> /proc/uptime <==\n{uptime:.2f} 1.00\n\n==> /s <==\n{status}\n"
        return CommandResult(tuple(argv), 0, text, "", 0.0)


@pytest.mark.parametrize(
    ("looks", "seen"),
    [
        ([(10, "idle"), (11, "idle"), (15, "idle")], [(0.0, 5.0)]),
        ([(10, "idle"), (20, "idle")], [(0.0, 0.0), (10.0, 10.0)]),  # it may have gone and come back
        ([(10, "idle"), (11, "busy"), (12, "busy"), (13, "idle")], [(0.0, 0.0), (1.0, 2.0), (3.0, 3.0)]),
    ],
)
def test_looks_that_saw_the_same_are_one_only_where_they_are_close(
    looks: list[tuple[float, str]], seen: list[tuple[float, float]]
) -> None:
    host: Any = Stepping(looks)
    watch = Watch(host, {"status": "/s"})
    for _ in looks:
        watch._look()
    assert [(sample.at, sample.until) for sample in watch._merged()] == seen


def test_a_host_that_booted_meanwhile_is_told() -> None:
    host: Any = Stepping([(100, "idle"), (5, "idle")])
    watch = Watch(host, {"status": "/s"})
    watch._look()
    with pytest.raises(InfrastructureError, match="node1 booted while a tool worked"):
        watch._look()
