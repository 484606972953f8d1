"""What sysinv's other routes answer: keys, status codes, texts (sections 2.1 to 2.6 and 4.8)."""

from __future__ import annotations

from typing import Any

import pytest
from support.starlingx_lab import CARD, Lab, MakeLab

NOBODY = "00000000-0000-4000-8000-000000000000"
LIST_KEYS = [
    "uuid", "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature", "revoke_key_id",
    "name", "description", "image_version", "applied", "applied_labels", "bmc", "retimer_included",
]  # fmt: skip
DEVICE_KEYS = {
    "uuid", "name", "pciaddr", "pclass_id", "pvendor_id", "pdevice_id", "pclass", "pvendor", "pdevice",
    "psvendor", "psdevice", "numa_node", "sriov_totalvfs", "sriov_numvfs", "sriov_vfs_pci_address",
    "sriov_vf_driver", "sriov_vf_pdevice_id", "driver", "host_uuid", "enabled", "extra_info", "created_at",
    "updated_at", "links",
}  # fmt: skip
FPGA_KEYS = {
    "bmc_build_version", "bmc_fw_version", "retimer_a_version", "retimer_b_version", "root_key",
    "revoked_key_ids", "boot_page", "bitstream_id",
}  # fmt: skip


def refused(lab: Lab, answer: Any, status: int, text: str) -> None:
    assert (answer.status_code, lab.said(answer)) == (status, text)
    assert answer.headers["Content-Type"] == "application/json"


# -- images ---------------------------------------------------------------------------------------


def test_image_list_has_its_keys_and_pages(lab: Lab) -> None:
    uuids = [lab.upload(bitstream_id=number) for number in "123"]
    images = lab.get("/device_images")["device_images"]
    assert set(images[0]) == set(LIST_KEYS)
    assert [image["uuid"] for image in images] == uuids
    page = lab.get(f"/device_images?limit=1&marker={uuids[0]}")["device_images"]
    assert [image["uuid"] for image in page] == uuids[1:2]
    backwards = lab.get("/device_images?sort_key=bitstream_id&sort_dir=desc")["device_images"]
    assert [image["uuid"] for image in backwards] == uuids[::-1]


def test_image_is_found_by_uuid_integer_id_and_name(lab: Lab) -> None:
    uuid = lab.upload(name="first")
    for ident in (uuid, "1", "first"):
        image = lab.get(f"/device_images/{ident}")
        assert image["uuid"] == uuid
        assert set(image) == {*LIST_KEYS, "created_at", "updated_at"}
    refused(lab, lab.api("GET", "/device_images/none"), 404, "Device image none could not be found.")
    lab.upload(name="first")
    refused(lab, lab.api("GET", "/device_images/first"), 400, "Multiple entries found for deviceimage first")


def test_refusals_of_patch(lab: Lab) -> None:
    uuid = lab.upload()
    refused(lab, lab.change(uuid, "other"), 403, "Operation not permitted.")
    for action in ("apply", "remove"):
        text = f"Device image {action} failed: image does not exist"
        refused(lab, lab.change(NOBODY, action), 400, text)
    text = "Device image remove failed: label k=v does not exist"
    refused(lab, lab.change(uuid, "remove", "k=v"), 400, text)


def test_delete_answers_202_with_the_image(lab: Lab) -> None:
    uuid = lab.upload()
    answer = lab.api("DELETE", f"/device_images/{uuid}")
    assert (answer.status_code, answer.json()["uuid"]) == (202, uuid)
    refused(
        lab,
        lab.api("DELETE", f"/device_images/{uuid}"),
        404,
        f"Device image {uuid} could not be found.",
    )


def test_written_image_is_not_deleted_before_it_is_removed(lab: Lab) -> None:
    uuid = lab.upload("unsigned")
    lab.apply(uuid)
    lab.update()
    assert lab.statuses() == ["completed"]
    text = "Delete failed: device image is being written to or has already been written to devices"
    refused(lab, lab.api("DELETE", f"/device_images/{uuid}"), 400, text)
    assert lab.change(uuid, "remove").status_code == 200
    assert lab.api("DELETE", f"/device_images/{uuid}").status_code == 202


def test_second_root_key_is_refused(lab: Lab) -> None:
    first = lab.upload(kind="root-key", key_signature="a1")
    second = lab.upload(kind="root-key", key_signature="b2")
    lab.apply(first)
    text = f"Root-key image {first} is already applied to host controller-0 device {CARD}"
    refused(lab, lab.change(second, "apply"), 400, text)


def test_refusal_in_the_middle_leaves_what_came_before(lab: Lab) -> None:
    lab.assign("k=v")
    lab.apply(lab.upload(kind="root-key", key_signature="a1"), "k=v")
    second = lab.upload(kind="root-key", key_signature="b2")
    assert lab.change(second, "apply", "floating=1", "k=v", "never=1").status_code == 400
    image = lab.get(f"/device_images/{second}")
    assert (image["applied"], image["applied_labels"]) == (True, [{"floating": "1"}])


def test_state_has_its_keys(lab: Lab) -> None:
    uuid = lab.upload()
    lab.apply(uuid)
    state = lab.get("/device_image_state")["device_image_state"][0]
    assert state == {
        "id": 1,
        "uuid": state["uuid"],
        "host_uuid": lab.sysinv_host["uuid"],
        "pcidevice_id": 1,
        "pcidevice_uuid": lab.device["uuid"],
        "image_id": 1,
        "image_uuid": uuid,
        "status": "pending",
        "update_start_time": None,
        "updated_at": None,
    }
    alone = lab.get(f"/device_image_state/{state['uuid']}")
    assert set(alone) == {*state, "created_at"}


# -- labels ---------------------------------------------------------------------------------------


def test_labels_are_assigned_listed_and_removed(lab: Lab) -> None:
    answer = lab.assign("k=v", "k=w")
    assert answer.status_code == 200
    labels = answer.json()["device_labels"]
    device, machine = lab.device["uuid"], lab.sysinv_host["uuid"]
    assert labels == [
        {
            "uuid": label["uuid"],
            "host_uuid": machine,
            "pcidevice_uuid": device,
            "label_key": "k",
            "label_value": value,
        }
        for label, value in zip(labels, "vw", strict=True)
    ]
    assert lab.get("/device_labels") == {"device_labels": labels}
    alone = lab.get(f"/device_labels/{labels[0]['uuid']}")
    assert set(alone) == {*labels[0], "id", "created_at", "updated_at"}
    assert lab.api("DELETE", f"/device_labels/{labels[0]['uuid']}").status_code == 204
    assert lab.get("/device_labels") == {"device_labels": labels[1:]}


def test_refusals_of_labels(lab: Lab) -> None:
    lab.assign("k=v")
    refused(lab, lab.assign("k=v"), 400, "Device label (k, v) already exists for this device")
    unknown = lab.assign("k=v", device=NOBODY)
    refused(lab, unknown, 404, f"Server {NOBODY} could not be found.")
    lab.assign("k=w")
    text = "Cannot overwrite label value as multiple device labels exist with label key k for this device"
    refused(lab, lab.assign("k=x", overwrite=True), 400, text)
    text = f"No device label found for {NOBODY}"
    refused(lab, lab.api("GET", f"/device_labels/{NOBODY}"), 400, text)
    text = f"No device label entry found for {NOBODY}"
    refused(lab, lab.api("DELETE", f"/device_labels/{NOBODY}"), 400, text)
    refused(lab, lab.api("PATCH", f"/device_labels/{NOBODY}", json=[]), 403, "Operation not permitted.")


def test_overwrite_changes_the_value(lab: Lab) -> None:
    before = lab.assign("k=v").json()["device_labels"][0]
    after = lab.assign("k=w", overwrite=True).json()["device_labels"][0]
    assert after == before | {"label_value": "w"}


def test_floating_label_cannot_be_removed(lab: Lab) -> None:
    lab.apply(lab.upload(), "nobody=1")
    label = lab.get("/device_labels")["device_labels"][0]
    assert (label["host_uuid"], label["pcidevice_uuid"]) == (None, None)
    answer = lab.api("DELETE", f"/device_labels/{label['uuid']}")
    refused(lab, answer, 404, "Server None could not be found.")


def test_floating_label_goes_with_the_last_image_that_is_removed_from_it(lab: Lab) -> None:
    first, second = lab.upload(), lab.upload(kind="key-revocation")
    for uuid in (first, second):
        lab.apply(uuid, "nobody=1")
    lab.change(first, "remove", "nobody=1")
    assert len(lab.get("/device_labels")["device_labels"]) == 1
    lab.change(second, "remove", "nobody=1")
    assert lab.get("/device_labels") == {"device_labels": []}


# -- devices and hosts ----------------------------------------------------------------------------


def test_devices_have_their_keys(lab: Lab) -> None:
    devices = lab.get(f"/ihosts/{lab.sysinv_host['uuid']}/pci_devices")["pci_devices"]
    assert {d["pdevice_id"] for d in devices} == {"0b30", "0b32"}
    assert all(set(d) == DEVICE_KEYS | FPGA_KEYS for d in devices)
    card = lab.device
    assert lab.get(f"/pci_devices/{card['uuid']}") == card
    shown = {name: card[name] for name in ("name", "pciaddr", "pclass_id", "pvendor_id", "pclass")}
    assert shown == {
        "name": "pci_0000_b2_00_0",
        "pciaddr": "0000:b2:00.0",
        "pclass_id": "120000",
        "pvendor_id": "8086",
        "pclass": "Processing accelerators",
    }


def test_device_is_changed_in_a_locked_host_only(lab: Lab) -> None:
    path = f"/pci_devices/{lab.device['uuid']}"

    def patch(field: str, value: str) -> Any:
        return lab.api("PATCH", path, json=[{"op": "replace", "path": f"/{field}", "value": value}])

    refused(lab, patch("enabled", "false"), 400, "Host must be locked.")
    assert lab.host_action("lock").status_code == 200
    answer = patch("enabled", "false")
    assert (answer.status_code, answer.json()["enabled"]) == (200, False)


@pytest.mark.parametrize("key", ["uuid", "id"])
def test_host_is_found_by_uuid_and_integer_id(lab: Lab, key: str) -> None:
    machine = lab.sysinv_host
    assert lab.get(f"/ihosts/{machine[key]}") == machine
    assert machine.keys() >= {
        "id", "uuid", "hostname", "personality", "subfunctions", "administrative", "operational",
        "availability", "invprovision", "task", "device_image_update", "reboot_needed", "config_status",
        "peers", "install_state", "install_state_info", "sw_version",
    }  # fmt: skip


def test_update_and_abort_are_refused_with_their_texts(lab: Lab) -> None:
    path = f"/ihosts/{lab.sysinv_host['uuid']}/device_image_update"
    text = "Abort rejected. The host controller-0 is not in the process of updating the device images."
    refused(lab, lab.api("POST", f"{path}_abort"), 400, text)
    lab.host_action("lock")
    text = "The host controller-0 must be unlocked and enabled to update the device images."
    refused(lab, lab.api("POST", path), 400, text)


def test_database_survives_a_restart(make_lab: MakeLab) -> None:
    lab = make_lab()
    lab.assign("k=v")
    uuid = lab.upload("unsigned")
    lab.apply(uuid, "k=v")
    before = [lab.get(path) for path in ("/device_images", "/device_labels", "/device_image_state")]
    again = lab.restarted()
    after = [again.get(path) for path in ("/device_images", "/device_labels", "/device_image_state")]
    assert after == before
    again.update()
    assert again.statuses() == ["completed"]
