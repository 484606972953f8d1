"""What a StarlingX system says of images, hosts, devices and alarms, held to its cards and to itself.

Expected values are those of the fact sheet of StarlingX, sections 1 to 4, and of the switches' predictions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judgement.judge import ScenarioJudgement, judge_scenario
from harness.judgement.model import Outcome, VerdictKind
from harness.judgement.records import (
    Claim,
    Completion,
    Evidence,
    Intent,
    Observation,
    Record,
    ScenarioEnded,
    ScenarioStarted,
    Subject,
    from_json,
    to_json,
)
from harness.judgement.values import NOT_EXPOSED, Unknown

SYSTEM, HOST, CARD, PLACE = "system1", "controller-0", "host1/card0", "0000:b2:00.0"
MAC, ELSEWHERE, DEVICE = "64:4c:36:10:01:00", "0000:b4:00.0", "pci_0000_b2_00_0"
OLD, NEW = 0x23000410010310, 0x23000410010311
ROOT = "ab" * 32
#: What each image is, by its bytes, in the words of the facts of images.
USER = {"name": "user", "effect": "user-image", "section": "SR", "bitstream_id": NEW}
OTHER = {"name": "other", "effect": "user-image", "section": "SR", "bitstream_id": NEW + 1}
BMC = {"name": "bmc", "effect": "bmc-image", "section": "BMC", "bmc_version": "D.2.0.20"}
KEY = {"name": "key", "effect": "root-key", "section": "SR", "programs_root": ROOT}
CANCEL = {"name": "cancel", "effect": "key-cancellation", "section": "SR", "cancel_id": 3}
TRUTH: dict[str, Any] = {
    "identity": MAC,
    "address": PLACE,
    "boot_id": "first",
    "bitstream_id": OLD,
    "sr_root": "",
    "sr_cancelled": [],
    "boot_page": "user",
    "bmc_version": "D.2.0.6",
    "bmcfw_version": "D.2.0.12",
    "flash_count": 5,
    "update_status": "idle",
}
SHOWN: dict[str, Any] = {
    "bitstream_id": f"{OLD:#x}",
    "root_key": "",
    "revoked_key_ids": "",
    "boot_page": "user",
    "bmc_build_version": "D.2.0.6",
    "bmc_fw_version": "D.2.0.12",
}
ASKED = ("image", "state", "label", "device", "host", "alarm")


class Story:
    """The records of one system with one card, as the driver and the fixture write them."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.now = 1000.0
        self.card = dict(TRUTH)
        self.device: dict[str, Any] = dict(SHOWN)
        self.states: dict[str, str] = {}
        self.images: dict[str, dict[str, Any]] = {}
        self.host: dict[str, Any] = {"device_image_update": "", "reboot_needed": False}
        self.alarm = False
        self.labels: list[tuple[str, str]] = []
        self.add(ScenarioStarted(scenario="made-up"))

    def add(self, record: Any) -> Any:
        numbered = replace(record, seq=len(self.records) + 1, time=1.0, source_time=self.now)
        self.records.append(numbered)
        return numbered

    def upload(self, facts: dict[str, Any], promise: str = "lands", **shown: Any) -> str:
        uuid = facts["name"]
        kind = {"root-key": "root-key", "key-cancellation": "key-revocation"}.get(
            facts["effect"], "functional"
        )
        said = {"uuid": uuid, "bitstream_type": kind, "bmc": facts["effect"] == "bmc-image"}
        self.images[uuid] = said | {"applied": True, "applied_labels": [["", ""]]} | shown
        subject = Subject("record", f"{SYSTEM}/image/{uuid}")
        self.add(Observation(probe="image", subject=subject, values={"image": facts, "promise": promise}))
        return str(uuid)

    def act(self, operation: str, how: Any = "returned", error: str = "", **parameters: Any) -> int:
        subject = Subject("record", f"{SYSTEM}/{parameters.get('target', '')}")
        intent = self.add(Intent(operation=operation, subject=subject, parameters=parameters)).seq
        self.add(Completion(intent=intent, how=how, error={"kind": error, "message": "no"} if error else {}))
        return int(intent)

    def say(self, kind: str, record: str, place: str = "", /, **statement: Any) -> None:
        subject = Subject("record", f"{SYSTEM}/{kind}/{record}", HOST, place)
        self.add(Claim(reporter="sysinv", subject=subject, statement=statement, evidence=Evidence("row")))

    def say_state(self, image: str, status: str, address: str = PLACE) -> None:
        said = {"hostname": HOST, "address": address, "image_uuid": image, "status": status}
        self.say("state", f"{HOST}/{address}/{image}", address, **said)

    def look(self, later: float = 1.0, address: str = PLACE) -> None:
        """Everything that the system says now, and the card."""
        self.now += later
        subject = Subject("record", SYSTEM)
        intent = self.add(Intent(operation="look", subject=subject, parameters={"asked": ASKED})).seq
        for uuid, shown in self.images.items():
            self.say("image", uuid, **shown)
        for image, status in self.states.items():
            self.say_state(image, status, address)
        self.say(
            "device", f"{HOST}/{address}", address, hostname=HOST, address=address, name=DEVICE, **self.device
        )
        for key, value in self.labels:
            self.say(
                "label", f"{key}={value}", hostname=HOST, device=DEVICE, label_key=key, label_value=value
            )
        self.say("host", HOST, hostname=HOST, **self.host)
        if self.alarm:
            self.say("alarm", "900.006/x", alarm_id="900.006")
        card = Subject("card", CARD, "host1", PLACE, MAC)
        values = self.card | {"system": SYSTEM, "hostname": HOST}
        self.add(Observation(probe="card", subject=card, values=values, intent=intent))
        self.add(Completion(intent=intent, how="returned"))

    def owe(self, *facts: dict[str, Any], promise: str = "lands") -> None:
        """Upload and apply images, which the system then owes to the card."""
        for each in facts:
            self.states[self.upload(each, promise)] = "pending"
        self.host["device_image_update"], self.alarm = "pending", True
        self.look()

    def update(self, *, count: int = 1, **statuses: str) -> None:
        """Write what is owed; each image ends as ``statuses`` say."""
        self.act("host-update", target=HOST)
        self.card["flash_count"] += count
        self.states |= statuses
        completed = "completed" in statuses.values()
        left = any(status != "completed" for status in self.states.values())
        self.host = {"device_image_update": "pending" if left else "", "reboot_needed": completed}
        self.look()

    def boot(self, **truth: Any) -> None:
        """Boot the host, which resets the card; what it shows afterwards the system shows too."""
        self.card |= {"boot_id": "second"} | truth
        self.device["bitstream_id"] = f"{self.card['bitstream_id']:#x}"
        self.device["bmc_build_version"] = self.card["bmc_version"]
        self.host["reboot_needed"] = False
        self.alarm = any(status != "completed" for status in self.states.values())
        self.look(600)

    def end(self, state: str = "finished") -> ScenarioJudgement:
        self.add(ScenarioEnded(scenario="made-up", state=state))
        return judge_scenario(self.records)


@pytest.fixture
def story() -> Story:
    return Story()


def worst(story: Story, reporter: str) -> str:
    return story.end().verdicts[reporter].value


def diverged(judged: ScenarioJudgement) -> list[str]:
    return [str(verdict) for verdict in judged.divergences if verdict.kind is not VerdictKind.UNVERIFIABLE]


# -- an image on a card (sections 1.4, 3.2, 3.4, 4.7) ----------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "status", "count", "truth", "verdict"),
    [
        (USER, "completed", 1, {"bitstream_id": NEW}, "MATCH"),
        (USER, "completed", 1, {}, "FALSE_SUCCESS"),
        (USER, "completed", 1, {"bitstream_id": Unknown("I/O error")}, "UNVERIFIABLE"),
        (USER, "failed", 1, {}, "MATCH"),
        (USER, "failed", 0, {}, "NOT_ATTEMPTED"),
        (USER, "failed", 1, {"bitstream_id": NEW}, "FALSE_FAILURE"),
        (BMC, "completed", 1, {"bmc_version": "D.2.0.20"}, "MATCH"),
        (BMC, "completed", 1, {}, "FALSE_SUCCESS"),
        (BMC, "failed", 1, {}, "MATCH"),
        (KEY, "completed", 1, {"sr_root": ROOT}, "MATCH"),
        (KEY, "completed", 1, {}, "FALSE_SUCCESS"),
        (KEY, "failed", 1, {"sr_root": ROOT}, "FALSE_FAILURE"),
        (CANCEL, "completed", 1, {"sr_cancelled": [1, 3]}, "MATCH"),
        (CANCEL, "completed", 1, {"sr_cancelled": [1]}, "FALSE_SUCCESS"),
    ],
)
def test_a_status_is_held_to_the_card(
    story: Story, facts: dict[str, Any], status: str, count: int, truth: dict[str, Any], verdict: str
) -> None:
    story.owe(facts)
    if facts["effect"] in ("root-key", "key-cancellation"):
        story.card |= truth
    story.update(count=count, **{facts["name"]: status})
    if isinstance(truth.get("bitstream_id"), Unknown):
        story.card |= truth | {"boot_id": "second"}
        story.look(600)
    else:
        story.boot(**truth)
    assert worst(story, "sysinv-image-state") == verdict


@pytest.mark.parametrize(("count", "verdict"), [(1, "NOT_ATTEMPTED"), (2, "MATCH")])
def test_what_was_written_for_another_image_is_no_attempt_at_this_one(
    story: Story, count: int, verdict: str
) -> None:
    story.owe(KEY, USER)
    story.card["sr_root"] = ROOT
    story.update(count=count, key="completed", user="failed")
    story.boot()
    assert worst(story, "sysinv-image-state") == verdict


def test_a_status_that_documents_do_not_know_is_a_misreport(story: Story) -> None:
    story.owe(USER)
    story.update(user="done")
    assert worst(story, "sysinv-image-state") == "MISREPORT"


def test_a_completed_user_image_is_not_active_before_a_reset(story: Story) -> None:
    """`completed` is: written (section 3.4). Without a boot of the host the card shows nothing of it."""
    story.owe(USER)
    story.update(user="completed")
    assert worst(story, "sysinv-image-state") == "UNVERIFIABLE"


def test_an_image_that_was_written_over_before_the_reset_is_no_false_success(story: Story) -> None:
    story.owe(USER)
    story.update(user="completed")
    del story.states["user"]
    story.act("image-apply", target="other")
    story.images["user"] |= {"applied": False, "applied_labels": None}
    story.owe(OTHER)
    story.update(other="completed")
    story.boot(bitstream_id=NEW + 1)
    assert worst(story, "sysinv-image-state") == "UNVERIFIABLE"


@pytest.mark.parametrize(
    ("seconds", "status", "state", "verdict"),
    [
        (30, "idle", "finished", "MATCH"),
        (600, "program", "finished", "MATCH"),
        (600, "idle", "finished", "LOST"),
        (600, "idle", "interrupted", "STALE"),
        (600, Unknown("Input/output error"), "finished", "UNVERIFIABLE"),
    ],
)
def test_in_progress_while_the_card_is_idle_is_lost(
    story: Story, seconds: float, status: Any, state: str, verdict: str
) -> None:
    """An agent's word is cast as soon as its tool ends (section 3.2); one that never comes is lost."""
    story.owe(USER)
    story.update(user="in-progress")
    story.card["update_status"] = status
    story.look(seconds)
    assert story.end(state).verdicts["sysinv-image-state"].value == verdict


def test_a_completion_that_comes_late_is_stale(story: Story) -> None:
    story.owe(USER)
    story.update(user="in-progress")
    story.look(600)
    story.states["user"] = "completed"
    story.look()
    story.boot(bitstream_id=NEW)
    assert worst(story, "sysinv-image-state") == "STALE"


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (None, "LOST"),
        (("image-remove", {"target": "user"}), "MATCH"),
        (("image-delete", {"target": "user"}), "MATCH"),
        (("image-apply", {"target": "other"}), "MATCH"),
        (("image-apply", {"target": "bmc"}), "LOST"),
        (("label-remove", {"target": HOST, "keys": ["k"]}), "MATCH"),
        (("label-remove", {"target": HOST, "keys": ["another"]}), "LOST"),
        (("host-reboot", {"target": HOST}), "LOST"),
    ],
)
def test_a_state_goes_only_when_somebody_takes_it(story: Story, change: Any, verdict: str) -> None:
    """LP 1890296, 1951602, and the states that a label's removal takes along (sections 4.2 to 4.5)."""
    story.upload(OTHER, applied=False, applied_labels=None)
    story.upload(BMC, applied=False, applied_labels=None)
    story.states[story.upload(USER, applied_labels=[["k", "v"]])] = "pending"
    story.labels = [("k", "v")]
    story.look()
    if change is not None:
        story.act(change[0], **change[1])
    story.states.clear()
    story.look()
    assert worst(story, "sysinv-image-state") == verdict


@pytest.mark.parametrize(("applied", "verdict"), [("bmc", "LOST"), ("other", "MATCH")])
def test_where_no_bmc_flag_is_shown_the_bytes_tell(story: Story, applied: str, verdict: str) -> None:
    """LP 1951602, on a release before 2021-11, whose lists have no such column (section 2.7)."""
    hidden = Unknown("not shown by this way in")
    for facts in (OTHER, BMC):
        story.upload(facts, applied=False, applied_labels=None, bmc=hidden)
    story.states[story.upload(USER, bmc=hidden)] = "pending"
    story.look()
    story.act("image-apply", target=applied)
    story.states.clear()
    story.look()
    assert worst(story, "sysinv-image-state") == verdict


def test_a_card_that_moved_keeps_its_states_by_its_identity(story: Story) -> None:
    story.owe(USER)
    story.card["address"] = ELSEWHERE
    story.look(600, address=ELSEWHERE)
    assert worst(story, "sysinv-image-state") == "MATCH"


def test_what_was_completed_is_not_pending_again_by_itself(story: Story) -> None:
    """LP 1890340."""
    story.owe(KEY)
    story.card["sr_root"] = ROOT
    story.update(key="completed")
    story.act("image-apply", target="key")
    story.states["key"] = "pending"
    story.look()
    assert worst(story, "sysinv-image-state") == "MISREPORT"


def test_one_image_is_said_once_of_a_device(story: Story) -> None:
    """Section 4.6: two rows for the same image and device."""
    story.states[story.upload(USER)] = "pending"
    story.look()
    first = next(r for r in story.records if isinstance(r, Claim) and "/state/" in r.subject.name)
    story.records.insert(story.records.index(first) + 1, replace(first, seq=first.seq))
    assert worst(story, "sysinv-image-state") == "MISREPORT"


# -- a host (sections 1.5, 3.4, 4.7) ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "statuses", "verdict"),
    [
        ("", ["completed"], "MATCH"),
        (None, [], "MATCH"),
        ("", ["failed"], "FALSE_SUCCESS"),
        (None, ["pending"], "CONTRADICTION"),
        ("", ["in-progress"], "CONTRADICTION"),
        ("pending", ["failed"], "MATCH"),
        ("pending", ["pending"], "MATCH"),
        ("pending", [], "STALE"),
        ("pending", ["completed"], "STALE"),
        ("in-progress", ["in-progress"], "MATCH"),
        ("in-progress", ["pending"], "MATCH"),
        (Unknown("not shown"), ["failed"], "UNVERIFIABLE"),
    ],
)
def test_a_host_is_held_to_the_states_of_its_devices(
    story: Story, value: Any, statuses: list[str], verdict: str
) -> None:
    for number, status in enumerate(statuses):
        story.states[story.upload(USER | {"name": f"image{number}"})] = status
    story.host = {"device_image_update": value}
    story.look()
    assert worst(story, "sysinv-host") == verdict


@pytest.mark.parametrize(
    ("seconds", "statuses", "verdict"),
    [
        (299, ["failed"], "MATCH"),
        (300, ["failed"], "STALE"),
        (300, [], "LOST"),
        (9999, ["in-progress"], "MATCH"),
    ],
)
def test_a_host_that_is_busy_with_nothing(
    story: Story, seconds: float, statuses: list[str], verdict: str
) -> None:
    """The audit of every 300 s fails what has timed out and leaves the host in progress (section 4.7)."""
    for status in statuses:
        story.states[story.upload(USER)] = status
    story.host["device_image_update"] = "in-progress"
    story.look()
    story.look(seconds)
    assert worst(story, "sysinv-host") == verdict


def test_a_completed_image_needs_a_reboot(story: Story) -> None:
    story.owe(USER)
    story.update(user="completed")
    story.host["reboot_needed"] = False
    story.look()
    assert worst(story, "sysinv-host") == "FALSE_SUCCESS"


def test_a_host_that_has_booted_needs_none(story: Story) -> None:
    story.owe(USER)
    story.update(user="completed")
    story.card |= {"boot_id": "second", "bitstream_id": NEW}
    story.look(600)
    assert worst(story, "sysinv-host") == "STALE"


# -- the fields of a device (sections 1.6, 3.1) ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown", "truth", "verdict"),
    [
        ("bitstream_id", f"{OLD:#x}", {}, "MATCH"),
        ("bitstream_id", f"{OLD:x}".upper(), {}, "MATCH"),
        ("bitstream_id", f"{NEW:#x}", {}, "MISREPORT"),
        ("bitstream_id", "", {}, "UNKNOWN_AS_VALUE"),
        ("bitstream_id", "", {"bitstream_id": Unknown("Input/output error")}, "UNKNOWN_AS_VALUE"),
        ("bitstream_id", None, {"bitstream_id": Unknown("Input/output error")}, "UNKNOWN_AS_VALUE"),
        ("bitstream_id", f"{OLD:#x}", {"bitstream_id": Unknown("Input/output error")}, "UNVERIFIABLE"),
        ("root_key", "", {}, "MATCH"),
        ("root_key", "", {"sr_root": ROOT}, "MISREPORT"),
        ("root_key", f"0x{ROOT.upper()}", {"sr_root": ROOT}, "MATCH"),
        ("root_key", "", {"sr_root": Unknown("all ones")}, "UNKNOWN_AS_VALUE"),
        ("revoked_key_ids", "0-2,5", {"sr_cancelled": [0, 1, 2, 5]}, "MATCH"),
        ("revoked_key_ids", "0-2", {"sr_cancelled": [0, 1]}, "MISREPORT"),
        ("revoked_key_ids", "garbage", {}, "MISREPORT"),
        ("boot_page", "factory", {}, "MISREPORT"),
        ("bmc_fw_version", "D.2.0.12", {"bmcfw_version": NOT_EXPOSED}, "MATCH"),
        ("bmc_build_version", "D.2.0.7", {}, "MISREPORT"),
    ],
)
def test_a_field_is_held_to_the_card(
    story: Story, name: str, shown: Any, truth: dict[str, Any], verdict: str
) -> None:
    story.device[name] = shown
    story.card |= truth
    story.look()
    assert worst(story, "sysinv-device") == verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(60, "MATCH"), (1200, "STALE")])
def test_a_field_that_was_true_may_lag_within_its_bound(story: Story, seconds: float, verdict: str) -> None:
    """A card is reported once in an agent's life (section 3.1): a key that was programmed is not shown."""
    story.look()
    story.card["sr_root"] = ROOT
    story.look()
    story.look(seconds)
    assert worst(story, "sysinv-device") == verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(60, "UNVERIFIABLE"), (1200, "LOST")])
def test_fields_that_nobody_reports_are_lost(story: Story, seconds: float, verdict: str) -> None:
    """LP 1981824: the agent is not installed."""
    story.device = dict.fromkeys(story.device)
    story.look()
    story.look(seconds)
    assert worst(story, "sysinv-device") == verdict


def test_a_device_at_the_address_that_a_card_has_left_is_stale(story: Story) -> None:
    story.look()
    story.card["address"] = ELSEWHERE
    story.look()
    assert worst(story, "sysinv-device") == "STALE"


# -- applied and labels (sections 4.1, 4.3, 4.6) ---------------------------------------------------------

FLOAT = [["k", "v"]]


@pytest.mark.parametrize(
    ("user", "other", "states", "verdict"),
    [
        ((True, FLOAT), (False, None), [], "MATCH"),
        ((True, FLOAT), (True, FLOAT), [], "CONTRADICTION"),
        ((True, [["", ""]]), (True, [["", ""]]), ["other"], "MISREPORT"),
        ((True, FLOAT + FLOAT), (False, None), [], "MISREPORT"),
        ((False, FLOAT), (False, None), [], "CONTRADICTION"),
        ((True, [["", ""]]), (False, None), [], "CONTRADICTION"),
        ((False, None), (False, None), ["user"], "CONTRADICTION"),
        ((Unknown("not shown"), Unknown("not shown")), (False, None), ["user"], None),
    ],
)
def test_applied_is_held_to_labels_and_states(
    story: Story, user: Any, other: Any, states: list[str], verdict: str | None
) -> None:
    story.upload(USER, applied=user[0], applied_labels=user[1])
    story.upload(OTHER, applied=other[0], applied_labels=other[1])
    story.states = dict.fromkeys(states, "pending")
    story.look()
    judged = story.end()
    assert judged.verdicts["sysinv-applied"].value == (verdict or "MATCH")


def test_an_image_of_a_label_that_a_card_carries_is_owed_to_it(story: Story) -> None:
    story.labels = [("k", "v")]
    story.upload(USER, applied_labels=FLOAT)
    story.look()
    assert worst(story, "sysinv-applied") == "CONTRADICTION"


# -- alarm 900.006 (section 3.6) -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stands", "statuses", "reboot", "verdict"),
    [
        (False, [], False, "MATCH"),
        (False, ["completed"], False, "MATCH"),
        (True, ["pending"], False, "MATCH"),
        (True, ["failed"], False, "MATCH"),
        (True, ["in-progress"], False, "MATCH"),
        (True, ["completed"], True, "MATCH"),
        (True, ["completed"], False, "STALE"),
        (True, [], False, "STALE"),
        (False, ["pending"], False, "CONTRADICTION"),
    ],
)
def test_the_alarm_stands_while_something_is_to_be_done(
    story: Story, stands: bool, statuses: list[str], reboot: bool, verdict: str
) -> None:
    for status in statuses:
        story.states[story.upload(USER)] = status
    story.host["reboot_needed"] = reboot
    story.alarm = stands
    story.look()
    assert worst(story, "alarm-900.006") == verdict


# -- what was asked --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("promise", "truth", "outcome"),
    [
        ("lands", {"bitstream_id": NEW}, "AS_INTENDED"),
        ("lands", {}, "FAILED"),
        ("unchanged", {}, "AS_INTENDED"),
        ("unchanged", {"bitstream_id": NEW}, "BREACH"),
    ],
)
def test_an_update_is_held_to_what_is_promised_of_its_images(
    story: Story, promise: str, truth: dict[str, Any], outcome: str
) -> None:
    story.owe(USER, promise=promise)
    story.update(user="failed" if promise == "unchanged" else "completed")
    story.boot(**truth)
    judged = story.end()
    assert judged.outcome is Outcome(outcome)


def test_an_image_that_is_written_after_a_failed_root_key_is_a_breach(story: Story) -> None:
    """Section 4.7: no failure is passed on."""
    story.owe(KEY, USER, promise="unchanged")
    story.update(count=2, key="failed", user="completed")
    story.boot(bitstream_id=NEW)
    judged = story.end()
    assert judged.outcome is Outcome.BREACH


@pytest.mark.parametrize(
    ("how", "kind", "outcome"),
    [
        ("returned", "", "AS_INTENDED"),
        ("raised", "device", "FAILED"),
        ("raised", "infrastructure", "UNKNOWN"),
        ("timed-out", "infrastructure", "UNKNOWN"),
    ],
)
def test_a_change_that_the_system_refuses_has_failed(story: Story, how: str, kind: str, outcome: str) -> None:
    story.act("image-upload", how, kind)
    assert story.end().outcome is Outcome(outcome)


def test_what_the_interlock_refuses_is_no_outcome(story: Story) -> None:
    story.act("image-apply", "raised", "refused", target="user")
    assert story.end().outcomes == ()


@pytest.mark.parametrize(("administrative", "outcome"), [("unlocked", "AS_INTENDED"), ("locked", "FAILED")])
def test_a_host_that_was_unlocked_must_come_up(story: Story, administrative: str, outcome: str) -> None:
    """LP 2160223: where the reset of the cards fails, the host stays locked (section 3.3)."""
    story.act("host-unlock", target=HOST)
    up = administrative == "unlocked"
    story.host |= {
        "administrative": administrative,
        "operational": "enabled" if up else "disabled",
        "availability": "available" if up else "online",
    }
    story.look(600)
    assert story.end().outcome is Outcome(outcome)


# -- all of it -------------------------------------------------------------------------------------------


def whole_life(story: Story) -> None:
    story.look()
    story.owe(KEY, USER)
    story.device["root_key"] = story.card["sr_root"] = ROOT
    story.update(count=2, key="completed", user="completed")
    story.boot(bitstream_id=NEW)
    for image in list(story.states):
        story.act("image-remove", target=image)
        del story.states[image]
        story.images[image] |= {"applied": False, "applied_labels": None}
    story.look()


def test_a_life_as_documents_have_it_diverges_nowhere(story: Story) -> None:
    whole_life(story)
    judged = story.end()
    assert diverged(judged) == []
    assert judged.outcome is Outcome.AS_INTENDED
    assert set(judged.verdicts) == {
        "sysinv-image-state",
        "sysinv-applied",
        "sysinv-host",
        "sysinv-device",
        "alarm-900.006",
    }


def test_a_stored_history_is_judged_to_the_same_result(story: Story) -> None:
    whole_life(story)
    live = story.end()
    assert judge_scenario([from_json(to_json(record)) for record in story.records]) == live


@given(st.integers(0, 60), st.data())
def test_a_history_that_breaks_off_is_judged_all_the_same(cut: int, data: st.DataObject) -> None:
    """Whatever records are missing, nothing is raised, and nothing is found that the whole story has not."""
    story = Story()
    whole_life(story)
    kept = story.records[: 1 + cut]
    missing = data.draw(st.sets(st.integers(1, max(1, len(kept) - 1)), max_size=3))
    left = [record for number, record in enumerate(kept) if number not in missing or number == 0]
    judged = judge_scenario(left)
    if not missing:
        assert [v for v in judged.divergences if v.kind is not VerdictKind.UNVERIFIABLE] == []


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x, max_size=2)))
def test_no_value_that_a_system_shows_breaks_the_judge(value: Any) -> None:
    story = Story()
    story.states[story.upload(USER, applied=value, applied_labels=value)] = "completed"
    story.device = dict.fromkeys(story.device, value)
    story.host = {"device_image_update": value, "reboot_needed": value}
    story.look()
    story.look()
    story.end()
