"""What may be changed of a PCI device, and what else changes with it (section 2.6)."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any, Final

from harness.emulator.starlingx.answers import Refused, boolean
from harness.emulator.starlingx.database import Row

_FIELDS: Final = ("enabled", "name")
#: What could be changed besides, before static FEC configuration went (2026-06).
_STATIC: Final = ("driver", "sriov_numvfs", "sriov_vf_driver")
#: Devices that have SR-IOV for FEC: 8086:0d8f of the N3000's user image, and 8086:0d5c.
_FEC: Final = ("0d8f", "0d5c")
_PF_DRIVERS: Final = ("igb_uio", "vfio-pci", "none")
_VF_DRIVERS: Final = ("igb_uio", "vfio", "none")
#: Field -> its key in ``extra_info``: a report of the inventory may overwrite the field for a while.
_EXPECTED: Final = {
    "driver": "expected_driver", "sriov_vf_driver": "expected_vf_driver", "sriov_numvfs": "expected_numvfs",
}  # fmt: skip


def changes(device: Row, host: Row, patch: Iterable[Mapping[str, Any]], *, static: bool) -> Row:
    """Return the columns of ``device`` that a JSON patch changes. ``static``: FEC is configured by it.

    The order of the checks is that of the source: the host, SR-IOV, and at last which fields may change.

    :raises Refused: it may not.
    """
    if host["administrative"] != "locked":
        raise Refused(400, "Host must be locked.")
    if "worker" not in host["subfunctions"]:
        raise Refused(400, "Can only modify worker node cores.")
    values = {str(step["path"]).strip("/"): step.get("value") for step in patch}
    for name, read in (("enabled", boolean), ("sriov_numvfs", int)):
        if name in values:
            values[name] = _read(name, values[name], read)
    if static:
        _check_sriov({**device, **values}, device, host)
    for name in ("driver", "sriov_vf_driver"):
        if values.get(name) == "none":
            values[name] = None
    found = {name: value for name, value in values.items() if name not in device or device[name] != value}
    for name in found:
        if name not in (*_FIELDS, *(_STATIC if static else ())):
            raise Refused(400, f"Modifying {name} attribute restricted")
    if static:
        extra = ast.literal_eval(device["extra_info"]) if device["extra_info"] else {}
        extra |= {key: {**device, **found}[name] for name, key in _EXPECTED.items()}
        found["extra_info"] = str(extra)
    return found


def _read(name: str, value: Any, read: Any) -> Any:
    try:
        return read(value)
    except (TypeError, ValueError):
        raise Refused(400, f"Invalid input for field/attribute {name}. Value: '{value}'.") from None


def _check_sriov(wanted: Row, device: Row, host: Row) -> None:
    """:raises Refused: the device cannot be as ``wanted``."""
    vfs, vf_driver, driver = wanted["sriov_numvfs"], wanted["sriov_vf_driver"], wanted["driver"]
    if device["pdevice_id"] not in _FEC:
        unsupported = "but the device is not supported for SR-IOV"
        if vfs:
            raise Refused(400, f"The number of SR-IOV VFs is specified {unsupported}")
        if vf_driver:
            raise Refused(400, f"The SR-IOV VF driver is specified {unsupported}")
        return
    if host["invprovision"] not in ("upgrading", "provisioned"):
        raise Refused(
            400,
            f"Cannot configure device {device['uuid']} until host {host['hostname']} is unlocked for the "
            "first time.",
        )
    if driver and driver not in _PF_DRIVERS:
        raise Refused(400, f"Value for SR-IOV PF driver must be one of {', '.join(_PF_DRIVERS)}")
    if driver == "none" and (device["sriov_vf_driver"] is not None or device["sriov_numvfs"]):
        raise Refused(
            400,
            "The SR-IOV VF driver must first be set to none and the number of VFs set to 0 before setting "
            f"the PF driver to none.  Current values: sriov_vf_driver: {device['sriov_vf_driver']}, "
            f"sriov_numvfs: {device['sriov_numvfs']}",
        )
    _check_vfs(vfs, vf_driver, driver, wanted["sriov_totalvfs"])


def _check_vfs(vfs: int | None, vf_driver: str | None, driver: str | None, most: int | None) -> None:
    """:raises Refused: there cannot be so many virtual functions, or not with these drivers."""
    bound = vf_driver and vf_driver != "none"
    if bound and vfs is None:
        raise Refused(400, "Value for number of SR-IOV VFs must be specified.")
    if vfs and vfs < 0:
        raise Refused(400, "Value for number of SR-IOV VFs must be >= 0.")
    if bound and vfs == 0:
        raise Refused(
            400, f"The value for number of SR-IOV VFs must be > 0 when the VF driver is {vf_driver}"
        )
    if not driver and (vfs or 0) > 0:
        raise Refused(400, "The SR-IOV PF driver must not be None to set the number of VFs.")
    if not most:
        raise Refused(400, "SR-IOV cannot be configured on this interface")
    if vfs and vfs > most:
        raise Refused(400, f"The device supports a maximum of {most} VFs")
    if vf_driver is not None and vf_driver not in _VF_DRIVERS:
        raise Refused(400, f"Value for SR-IOV VF driver must be one of {', '.join(_VF_DRIVERS)}")
    if vf_driver == "none" and vfs != 0:
        raise Refused(
            400, f"The value for the SR-IOV number of VFs must be 0 when the SR-IOV VF driver is {vf_driver}"
        )
