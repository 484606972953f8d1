"""The queue of a host's updates, its states, abort, audit and alarm (sections 3.6, 4.2 to 4.7)."""

from __future__ import annotations

import threading

import pytest
from support.starlingx_lab import CARD, Lab, MakeLab

IN_PROGRESS_TEXT = "The host controller-0 is already in the process of updating the device images."


def hold_flash(lab: Lab, phase: str = "programming") -> None:
    """Apply nothing more: begin the update and return while the card's ``phase`` is held."""
    card = lab.machine.card("card0")
    card.hold(phase)
    answer = lab.api("POST", f"/ihosts/{lab.sysinv_host['uuid']}/device_image_update")
    assert answer.status_code == 200
    reached = threading.Event()
    for _ in range(3000):
        if card.held() == phase:
            return
        reached.wait(0.005)
    raise AssertionError(f"the card did not come to {phase}")


def release(lab: Lab) -> None:
    lab.machine.card("card0").release()
    assert lab.system.settle()


def test_pending_host_and_alarm_follow_an_apply(lab: Lab) -> None:
    uuid = lab.upload()
    lab.apply(uuid)
    assert lab.statuses() == ["pending"]
    assert lab.sysinv_host["device_image_update"] == "pending"
    (alarm,) = lab.alarms()
    assert alarm["alarm_id"] == "900.006"
    assert alarm["reason_text"] == "Device image update operation in progress "
    assert alarm["severity"] == "minor"
    assert alarm["proposed_repair_action"] == "Complete reboots of affected hosts"
    assert alarm["entity_instance_id"].startswith("system=")
    # Section 4.4: the host stays pending with nothing to do.
    lab.change(uuid, "remove")
    assert lab.statuses() == []
    assert lab.sysinv_host["device_image_update"] == "pending"
    assert lab.alarms() == []


def test_answer_to_an_update_shows_what_was_before(lab: Lab) -> None:
    lab.apply(lab.upload("unsigned"))
    answer = lab.update()
    assert (answer.status_code, answer.json()["device_image_update"]) == (200, "pending")
    assert lab.sysinv_host["device_image_update"] == ""


def test_completed_needs_a_reboot_and_keeps_the_alarm_until_it(lab: Lab) -> None:
    lab.apply(lab.upload("unsigned"))
    lab.update()
    assert lab.statuses() == ["completed"]
    assert lab.sysinv_host["reboot_needed"] is True
    assert [alarm["alarm_id"] for alarm in lab.alarms()] == ["900.006"]
    lab.reboot()
    assert lab.sysinv_host["reboot_needed"] is False
    assert lab.alarms() == []
    assert lab.statuses() == ["completed"]


def test_types_are_written_in_order_over_all_devices(make_lab: MakeLab) -> None:
    # A root key is in force after a reset only, so that the card refuses the rest: it must be reported.
    lab = make_lab(cards=2, off=("failed-flash-not-reported",))
    for recipe, kind in [
        ("A/csk1", "functional"),
        ("cancel-A-csk0", "key-revocation"),
        ("root-key-A", "root-key"),
    ]:
        lab.apply(lab.upload(recipe, kind))
    kinds = {image["uuid"]: image["bitstream_type"] for image in lab.get("/device_images")["device_images"]}
    lab.update()
    states = lab.get("/device_image_state")["device_image_state"]
    assert {state["status"] for state in states} <= {"completed", "failed"}
    states.sort(key=lambda state: state["update_start_time"])
    assert [kinds[state["image_uuid"]] for state in states] == [
        "root-key",
        "root-key",
        "key-revocation",
        "key-revocation",
        "functional",
        "functional",
    ]
    # Stable by row within a type: the devices alternate in one order.
    places = [state["pcidevice_id"] for state in states]
    assert places[0:2] == places[2:4] == places[4:6]
    assert len(set(places)) == 2


def test_abort_lets_the_running_flash_end_and_begins_no_other(lab: Lab) -> None:
    lab.apply(lab.upload("root-key-A", "root-key"))
    lab.apply(lab.upload("A/csk0"))
    hold_flash(lab)
    host = f"/ihosts/{lab.sysinv_host['uuid']}"
    assert lab.statuses() == ["in-progress", "pending"]
    assert lab.sysinv_host["device_image_update"] == "in-progress"
    refused = lab.api("POST", f"{host}/device_image_update")
    assert (refused.status_code, lab.said(refused)) == (400, IN_PROGRESS_TEXT)
    assert lab.api("POST", f"{host}/device_image_update_abort").status_code == 200
    assert lab.system.casts.settle(10)
    assert lab.sysinv_host["device_image_update"] == "in-progress-aborted"
    release(lab)
    assert lab.statuses() == ["completed", "pending"]
    assert lab.sysinv_host["device_image_update"] == "pending"


def test_abort_of_the_last_one_leaves_nothing(lab: Lab) -> None:
    lab.apply(lab.upload("unsigned"))
    hold_flash(lab)
    lab.api("POST", f"/ihosts/{lab.sysinv_host['uuid']}/device_image_update_abort")
    assert lab.system.casts.settle(10)
    release(lab)
    assert lab.statuses() == ["completed"]
    assert lab.sysinv_host["device_image_update"] == ""


def test_what_is_refused_during_a_flash(lab: Lab) -> None:
    label = lab.assign("k=v").json()["device_labels"][0]
    first = lab.upload("unsigned")
    other = lab.upload()
    lab.apply(first, "k=v")
    hold_flash(lab)
    for uuid in (first, other):
        answer = lab.change(uuid, "apply", "k=v")
        assert lab.said(answer) == (
            f"Applying image {uuid} for host controller-0 device {CARD} not allowed while device image "
            "update is in progress"
        )
    answer = lab.api("DELETE", f"/device_labels/{label['uuid']}")
    assert answer.status_code == 400
    assert lab.said(answer) == "Command rejected: Device image update is in progress for host controller-0"
    answer = lab.host_action("lock")
    assert answer.status_code == 400
    assert lab.said(answer) == "Rejected: Cannot lock controller-0 while device image update is in progress."
    text = "Delete failed: device image is being written to or has already been written to devices"
    assert lab.said(lab.api("DELETE", f"/device_images/{first}")) == text
    assert "hostw" in lab.machine.services
    assert lab.machine.services["hostw"] is False
    release(lab)
    assert lab.machine.services["hostw"] is True


def lose_completion(lab: Lab, recipe: str, kind: str) -> None:
    """Have an image in progress whose agent is gone."""
    lab.apply(lab.upload(recipe, kind))
    hold_flash(lab)
    lab.run("kill -9 $(pgrep -f sysinv-agent)")
    release(lab)
    assert lab.statuses() == ["in-progress"]


@pytest.mark.parametrize(
    ("recipe", "kind", "bound"),
    [("unsigned", "functional", 3600), ("root-key-A", "root-key", 300)],
)
def test_audit_fails_what_takes_too_long(lab: Lab, recipe: str, kind: str, bound: int) -> None:
    lose_completion(lab, recipe, kind)
    lab.pass_time(bound - 60)
    assert lab.statuses() == ["in-progress"]
    lab.pass_time(60 + 301)
    lab.login()
    assert lab.statuses() == ["failed"]
    assert lab.sysinv_host["device_image_update"] == "in-progress"


def test_way_out_of_a_timeout_is_abort_and_update(lab: Lab) -> None:
    lose_completion(lab, "unsigned", "functional")
    lab.pass_time(3600 + 301)
    lab.login()
    machine = f"/ihosts/{lab.sysinv_host['uuid']}"
    assert lab.api("POST", f"{machine}/device_image_update").status_code == 400
    assert lab.api("POST", f"{machine}/device_image_update_abort").status_code == 200
    lab.run("systemctl start sysinv-agent")
    assert lab.system.settle()
    assert lab.update().status_code == 200
    assert lab.statuses() == ["completed"]


def test_order_to_a_dead_agent_is_lost(lab: Lab) -> None:
    lab.run("systemctl stop sysinv-agent")
    lab.apply(lab.upload("unsigned"))
    lab.update()
    assert lab.statuses() == ["pending"]
    assert lab.sysinv_host["device_image_update"] == "in-progress"


def test_failed_is_written_again_by_the_next_update(make_lab: MakeLab) -> None:
    lab = make_lab(off=("failed-flash-not-reported",))
    lab.run("systemctl stop sysinv-agent; systemctl start sysinv-agent")
    lab.machine.condition("missing-fpgasupdate", True)
    lab.apply(lab.upload("unsigned"))
    lab.update()
    assert lab.statuses() == ["failed"]
    assert lab.sysinv_host["device_image_update"] == "pending"
    assert lab.alarms() != []
    lab.machine.condition("missing-fpgasupdate", False)
    lab.update()
    assert lab.statuses() == ["completed"]


@pytest.mark.parametrize(("release", "left"), [("head", []), ("corrected", ["pending"])])
def test_an_image_taken_from_one_of_two_labels(make_lab: MakeLab, release: str, left: list[str]) -> None:
    """Section 4.4: the state is destroyed regardless of other labels of the device; corrected, it stays."""
    lab = make_lab(release)
    lab.assign("site=lab", "rack=one")
    image = lab.upload()
    lab.apply(image, "site=lab", "rack=one")
    assert lab.change(image, "remove", "site=lab").status_code == 200
    assert lab.statuses() == left
    assert len(lab.alarms()) == len(left)
    assert lab.change(image, "remove", "rack=one").status_code == 200
    assert (lab.statuses(), lab.alarms()) == ([], [])


def test_corrected_an_image_with_and_without_a_label_is_owed_until_it_is_taken_from_both(
    make_lab: MakeLab,
) -> None:
    lab = make_lab("corrected")
    lab.assign("site=lab")
    image = lab.upload()
    for first, second in ((("site=lab",), ()), ((), ("site=lab",))):
        lab.apply(image)
        lab.apply(image, "site=lab")
        lab.change(image, "remove", *first)
        assert lab.statuses() == ["pending"]
        lab.change(image, "remove", *second)
        assert (lab.statuses(), lab.alarms()) == ([], [])
        assert lab.sysinv_host["device_image_update"] == ""


def test_corrected_no_alarm_outlives_the_label_of_the_only_image(make_lab: MakeLab) -> None:
    lab = make_lab("corrected")
    lab.assign("site=lab")
    lab.apply(lab.upload(), "site=lab")
    assert len(lab.alarms()) == 1
    (label,) = lab.get("/device_labels")["device_labels"]
    assert lab.api("DELETE", f"/device_labels/{label['uuid']}").status_code == 204
    assert (lab.statuses(), lab.alarms()) == ([], [])
