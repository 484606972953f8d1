"""Changing a PCI device: what may be changed, by release, and what SR-IOV is held to (section 2.6)."""

from __future__ import annotations

from typing import Any

import pytest
from support.starlingx_lab import Lab, MakeLab

OLD = {"era": "docker", "generation": "A"}


def locked(make_lab: MakeLab, release: str, **more: Any) -> Lab:
    lab = make_lab(release, **more)
    assert lab.host_action("lock").status_code == 200
    return lab


def patch(lab: Lab, uuid: str, **values: str) -> Any:
    steps = [{"op": "replace", "path": f"/{name}", "value": value} for name, value in values.items()]
    return lab.api("PATCH", f"/pci_devices/{uuid}", json=steps)


def fec_device(lab: Lab, **columns: Any) -> str:
    """Give the host the second function of an N3000 with the user image: 8 virtual functions at most."""
    row = {
        "host_id": 1, "name": "pci_0000_b4_00_0", "pciaddr": "0000:b4:00.0", "pclass_id": "120001",
        "pvendor_id": "8086", "pdevice_id": "0d8f", "sriov_totalvfs": 8, "sriov_numvfs": 0, "enabled": True,
        "sriov_vfs_pci_address": "",
    }  # fmt: skip
    return str(lab.system.database.add("pci_devices", **(row | columns))["uuid"])


@pytest.mark.parametrize("release", ["head", "corrected"])
def test_only_name_and_enabled_may_change_today(make_lab: MakeLab, release: str) -> None:
    lab = locked(make_lab, release)
    for name, value in (("driver", "igb_uio"), ("sriov_numvfs", "2"), ("numa_node", "1")):
        answer = patch(lab, lab.device["uuid"], **{name: value})
        assert (answer.status_code, lab.said(answer)) == (400, f"Modifying {name} attribute restricted")
    answer = patch(lab, lab.device["uuid"], enabled="false", name="card")
    assert (answer.status_code, answer.json()["enabled"], answer.json()["name"]) == (200, False, "card")
    assert answer.json()["extra_info"] is None


@pytest.mark.parametrize(
    ("release", "more"), [("stx-2020-07", OLD), ("stx-6", {"era": "containerd", "generation": "A"})]
)
def test_drivers_and_vfs_could_be_changed_before(make_lab: MakeLab, release: str, more: Any) -> None:
    lab = locked(make_lab, release, **more)
    uuid = fec_device(lab)
    answer = patch(lab, uuid, driver="igb_uio", sriov_vf_driver="vfio", sriov_numvfs="2")
    shown = answer.json()
    assert (answer.status_code, shown["driver"], shown["sriov_vf_driver"]) == (200, "igb_uio", "vfio")
    assert shown["sriov_numvfs"] == 2
    assert shown["extra_info"] == (
        "{'expected_driver': 'igb_uio', 'expected_vf_driver': 'vfio', 'expected_numvfs': 2}"
    )
    answer = patch(lab, uuid, sriov_vf_driver="none", sriov_numvfs="0")
    assert (answer.status_code, answer.json()["sriov_vf_driver"]) == (200, None)
    answer = patch(lab, uuid, driver="none")
    assert (answer.status_code, answer.json()["driver"]) == (200, None)
    answer = patch(lab, uuid, numa_node="1")
    assert lab.said(answer) == "Modifying numa_node attribute restricted"


@pytest.mark.parametrize(
    ("columns", "values", "text"),
    [
        ({}, {"driver": "e1000"}, "Value for SR-IOV PF driver must be one of igb_uio, vfio-pci, none"),
        (
            {"driver": "igb_uio"},
            {"sriov_vf_driver": "e1000", "sriov_numvfs": "1"},
            "Value for SR-IOV VF driver must be one of igb_uio, vfio, none",
        ),
        ({"driver": "igb_uio"}, {"sriov_numvfs": "9"}, "The device supports a maximum of 8 VFs"),
        ({"driver": "igb_uio"}, {"sriov_numvfs": "-1"}, "Value for number of SR-IOV VFs must be >= 0."),
        (
            {"driver": "igb_uio"},
            {"sriov_vf_driver": "vfio"},
            "The value for number of SR-IOV VFs must be > 0 when the VF driver is vfio",
        ),
        ({}, {"sriov_numvfs": "1"}, "The SR-IOV PF driver must not be None to set the number of VFs."),
        (
            {"driver": "igb_uio", "sriov_totalvfs": None},
            {"sriov_numvfs": "1"},
            "SR-IOV cannot be configured on this interface",
        ),
        (
            {"driver": "igb_uio", "sriov_vf_driver": "vfio", "sriov_numvfs": 2},
            {"driver": "none"},
            "The SR-IOV VF driver must first be set to none and the number of VFs set to 0 before setting "
            "the PF driver to none.  Current values: sriov_vf_driver: vfio, sriov_numvfs: 2",
        ),
        (
            {"pdevice_id": "0b32"},
            {"sriov_numvfs": "1"},
            "The number of SR-IOV VFs is specified but the device is not supported for SR-IOV",
        ),
        (
            {"pdevice_id": "0b32"},
            {"sriov_vf_driver": "vfio"},
            "The SR-IOV VF driver is specified but the device is not supported for SR-IOV",
        ),
        ({}, {"sriov_numvfs": "many"}, "Invalid input for field/attribute sriov_numvfs. Value: 'many'."),
    ],
)
def test_what_sriov_is_held_to(old: Lab, columns: dict[str, Any], values: dict[str, str], text: str) -> None:
    uuid = fec_device(old, **columns)
    before = old.get(f"/pci_devices/{uuid}")
    answer = patch(old, uuid, **values)
    assert (answer.status_code, old.said(answer)) == (400, text)
    assert old.get(f"/pci_devices/{uuid}") == before


@pytest.fixture
def old(make_lab: MakeLab) -> Lab:
    return locked(make_lab, "stx-2020-07", **OLD)


def test_a_host_that_was_never_unlocked_has_no_vfs(old: Lab) -> None:
    uuid = fec_device(old)
    old.system.database.change("i_host", 1, invprovision="provisioning")
    assert old.said(patch(old, uuid, driver="igb_uio")) == (
        f"Cannot configure device {uuid} until host controller-0 is unlocked for the first time."
    )


def test_a_host_that_is_no_worker_keeps_its_devices(old: Lab) -> None:
    old.system.database.change("i_host", 1, subfunctions="controller")
    answer = patch(old, old.device["uuid"], enabled="false")
    assert old.said(answer) == "Can only modify worker node cores."
