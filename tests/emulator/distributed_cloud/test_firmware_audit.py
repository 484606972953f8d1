"""Which sync status the audit comes to, from which rows, and when it looks (sections 5.2 and 5.6)."""

from __future__ import annotations

from typing import Any

import pytest
from support.cloud_lab import CloudLab, MakeCloud, sync_of

from harness.emulator.card import CardState


@pytest.fixture
def lab(make_cloud: MakeCloud) -> CloudLab:
    """A subcloud of today's release whose card has a label."""
    made = make_cloud()
    made.assign("sub1", "k=v")
    return made


def status(lab: CloudLab) -> str:
    lab.cloud.audit_now()
    return lab.statuses()["sub1"]


def on_subcloud(lab: CloudLab, **fields: str) -> str:
    """Upload an image to the subcloud itself."""
    form = {"bitstream_type": "functional", "pci_vendor": "8086", "pci_device": "0b30", "bitstream_id": "2"}
    answer = lab.sub("sub1").api(
        "platform", "POST", "/v1/device_images", data=form | fields, files={"file": ("a", b"other bytes")}
    )
    return str(answer.json()["device_image"]["uuid"])


def change_there(lab: CloudLab, uuid: str, action: str, *pairs: dict[str, str]) -> None:
    answer = lab.sub("sub1").api(
        "platform", "PATCH", f"/v1/device_images/{uuid}", params={"action": action}, json=list(pairs)
    )
    assert answer.status_code == 200, answer.text


def set_state(lab: CloudLab, value: str) -> None:
    """Set the status of every state of the subcloud."""
    database = lab.system("sub1").database
    for state in database.all("device_image_state"):
        database.change("device_image_state", state["id"], status=value)


def test_nothing_applied_is_in_sync_without_asking_the_subcloud(make_cloud: MakeCloud) -> None:
    lab = make_cloud()
    lab.upload()
    assert status(lab) == "in-sync"
    assert lab.systems == {}


def test_image_without_a_state_is_out_of_sync(lab: CloudLab) -> None:
    lab.change(lab.upload(), "apply", "k=v")
    assert status(lab) == "out-of-sync"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("pending", "out-of-sync"),
        ("in-progress", "out-of-sync"),
        ("failed", "out-of-sync"),
        ("completed", "in-sync"),
    ],
)
def test_only_completed_is_in_sync(lab: CloudLab, value: str, expected: str) -> None:
    lab.change(lab.upload(), "apply", "k=v")
    change_there(lab, on_subcloud(lab), "apply", {"k": "v"})
    set_state(lab, value)
    assert status(lab) == expected  # of another file that has the same bitstream id


def test_other_bitstream_id_does_not_match(lab: CloudLab) -> None:
    lab.change(lab.upload(), "apply", "k=v")
    change_there(lab, on_subcloud(lab, bitstream_id="3"), "apply", {"k": "v"})
    set_state(lab, "completed")
    assert status(lab) == "out-of-sync"


def test_an_image_more_on_the_subcloud_does_not_matter(lab: CloudLab) -> None:
    lab.change(lab.upload(), "apply", "k=v")
    change_there(lab, on_subcloud(lab), "apply", {"k": "v"})
    set_state(lab, "completed")
    change_there(lab, on_subcloud(lab, bitstream_id="9", bmc="true"), "apply", {"other": "1"})
    assert status(lab) == "in-sync"


def test_a_label_that_no_device_has_is_for_nobody(lab: CloudLab) -> None:
    lab.change(lab.upload(), "apply", "other=1")
    assert status(lab) == "in-sync"


def test_image_without_labels_is_for_all(lab: CloudLab) -> None:
    lab.change(lab.upload(), "apply")
    assert status(lab) == "out-of-sync"


def test_a_subcloud_that_cannot_be_asked_keeps_its_status(lab: CloudLab) -> None:
    lab.change(lab.upload(), "apply", "k=v")
    assert status(lab) == "out-of-sync"
    change_there(lab, on_subcloud(lab), "apply", {"k": "v"})
    set_state(lab, "completed")
    lab.system("sub1").troubles.refuse_requests(1)
    assert status(lab) == "out-of-sync"
    assert status(lab) == "in-sync"


# -- when -------------------------------------------------------------------------------------------


def test_any_change_of_an_image_makes_all_unknown_until_the_next_pass(make_cloud: MakeCloud) -> None:
    lab = make_cloud(cards=(CardState(), CardState()))
    lab.audit()

    def after(change: Any) -> list[str]:
        change()
        unknown = set(lab.statuses().values())
        lab.audit()
        assert "unknown" not in lab.statuses().values()
        return sorted(unknown)

    uuid = lab.upload()
    lab.audit()
    assert after(lambda: lab.change(uuid, "apply", "k=v")) == ["unknown"]
    assert after(lambda: lab.change(uuid, "remove", "k=v")) == ["unknown"]
    delete = lambda: lab.central.api("proxy", "DELETE", f"/v1/device_images/{uuid}")  # noqa: E731
    assert after(delete) == ["unknown"]


def test_region_one_bypasses_vault_and_notification(lab: CloudLab) -> None:
    lab.audit()
    uuid = lab.upload(service="platform")
    assert lab.statuses() == {"sub1": "in-sync"}
    assert not lab.cloud.vault.lose(uuid)


def test_firmware_is_audited_about_hourly_otherwise(lab: CloudLab) -> None:
    lab.audit()
    uuid = lab.upload(service="platform")
    answer = lab.central.api(
        "platform", "PATCH", f"/v1/device_images/{uuid}", params={"action": "apply"}, json=[{"k": "v"}]
    )
    assert answer.status_code == 200
    lab.pass_time(3400)
    assert lab.statuses() == {"sub1": "in-sync"}
    lab.pass_time(260)
    assert lab.statuses() == {"sub1": "out-of-sync"}


def test_out_of_sync_has_an_alarm_until_it_is_not(lab: CloudLab) -> None:
    uuid = lab.upload()
    lab.change(uuid, "apply", "k=v")
    lab.audit()
    [alarm] = lab.central.api("faultmanagement", "GET", "/v1/alarms").json()["alarms"]
    assert (alarm["alarm_id"], alarm["entity_instance_id"], alarm["severity"], alarm["reason_text"]) == (
        "280.002",
        "subcloud=sub1.resource=firmware",
        "major",
        "sub1 firmware sync_status is out-of-sync",
    )
    lab.change(uuid, "remove", "k=v")
    lab.audit()
    assert lab.alarms() == []


def test_unmanaged_subcloud_is_unknown_and_audited_once_it_is_managed(lab: CloudLab) -> None:
    lab.change(lab.upload(), "apply", "k=v")
    lab.audit()
    for state, expected in (("unmanaged", "unknown"), ("managed", "out-of-sync")):
        body = {"management-state": state}
        answer = lab.central.api("dcmanager", "PATCH", "/v1.0/subclouds/sub1", json=body)
        assert answer.json()["management-state"] == state
        lab.audit()
        assert lab.statuses() == {"sub1": expected}
    [listed] = lab.central.get("/subclouds", "dcmanager")["subclouds"]
    assert sync_of(listed, "platform") == "in-sync"
