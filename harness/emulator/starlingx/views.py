"""What sysinv shows of its rows: the keys of sections 2.1 to 2.5, in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from harness.emulator.starlingx.answers import Refused
from harness.emulator.starlingx.database import Database, Row
from harness.emulator.starlingx.defects import Defects

#: Classes of PCI devices that have the fields of an FPGA (section 1.6).
FPGA_CLASSES: Final = ("120000", "120001")
FPGA_FIELDS: Final = (
    "bmc_build_version", "bmc_fw_version", "retimer_a_version", "retimer_b_version", "root_key",
    "revoked_key_ids", "boot_page", "bitstream_id",
)  # fmt: skip
_IMAGE_FIELDS: Final = (
    "uuid", "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature", "revoke_key_id",
    "name", "description", "image_version",
)  # fmt: skip
_PCI_FIELDS: Final = (
    "uuid", "name", "pciaddr", "pclass_id", "pvendor_id", "pdevice_id", "pclass", "pvendor", "pdevice",
    "psvendor", "psdevice", "numa_node", "sriov_totalvfs", "sriov_numvfs", "sriov_vfs_pci_address",
    "sriov_vf_driver", "sriov_vf_pdevice_id", "driver",
)  # fmt: skip
_HOST_FIELDS: Final = (
    "id", "uuid", "hostname", "personality", "subfunctions", "administrative", "operational", "availability",
    "invprovision", "task", "device_image_update", "reboot_needed",
)  # fmt: skip
_TIMES: Final = ("created_at", "updated_at")
SOFTWARE_VERSIONS: Final = {
    "stx-2020-07": "20.06", "stx-6": "21.12", "stx-8": "22.12", "head": "26.09", "corrected": "26.09",
}  # fmt: skip


def _pick(row: Row, names: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}


class Views:
    """Makes the JSON objects of one system's answers."""

    def __init__(self, database: Database, defects: Defects) -> None:
        self._database = database
        self._defects = defects

    def applied_labels(self, image: Row) -> list[dict[str, str]] | None:
        """Return the labels that an image is applied to; None: it is not applied (section 4.1).

        :raises Refused: one of them is gone, which fails the whole request.
        """
        found: list[dict[str, str]] = []
        for entry in self._database.all("device_image_labels", image_id=image["id"]):
            label = self._database.one("device_labels", id=entry["label_id"]) if entry["label_id"] else None
            if label is None:
                raise Refused(400, f"No device label entry found for {entry['label_id']}")
            pair = {label["label_key"]: label["label_value"]}
            if pair not in found or self._defects.on("duplicate-applied-labels"):
                found.append(pair)
        if image["applied"]:
            found.append({})
        return found or None

    def image(self, row: Row, *, detail: bool) -> dict[str, Any]:
        """Return an image. ``detail``: with its times, as only an image that is asked for alone has them."""
        labels = self.applied_labels(row)
        shown = _pick(row, _IMAGE_FIELDS) | {"applied": labels is not None, "applied_labels": labels}
        if not self._defects.on("bmc-drops-user-image"):  # the fields came with what corrected that
            shown |= _pick(row, ("bmc", "retimer_included"))
        return shown | (_pick(row, _TIMES) if detail else {})

    def uploaded(self, row: Row) -> dict[str, Any]:
        """Return an image as the answer to its upload has it."""
        own = _pick(row, ("id", *_IMAGE_FIELDS, "applied", "capabilities"))
        if not self._defects.on("bmc-drops-user-image"):
            own |= _pick(row, ("bmc", "retimer_included"))
        return own | _pick(row, _TIMES)

    def state(self, row: Row, *, detail: bool) -> dict[str, Any]:
        """Return the state of an image on a device."""
        return {
            "id": row["id"],
            "uuid": row["uuid"],
            "host_uuid": self._uuid("i_host", row["host_id"]),
            "pcidevice_id": row["pcidevice_id"],
            "pcidevice_uuid": self._uuid("pci_devices", row["pcidevice_id"]),
            "image_id": row["image_id"],
            "image_uuid": self._uuid("device_images", row["image_id"]),
            "status": row["status"],
            "update_start_time": row["update_start_time"],
            "updated_at": row["updated_at"],
        } | (_pick(row, ("created_at",)) if detail else {})

    def label(self, row: Row, *, detail: bool) -> dict[str, Any]:
        """Return a device label; one that no device carries has neither host nor device."""
        shown = {
            "uuid": row["uuid"],
            "host_uuid": self._uuid("i_host", row["host_id"]),
            "pcidevice_uuid": self._uuid("pci_devices", row["pcidevice_id"]),
            "label_key": row["label_key"],
            "label_value": row["label_value"],
        }
        return shown | (_pick(row, ("id", *_TIMES)) if detail else {})

    def device(self, row: Row, base: str) -> dict[str, Any]:
        """Return a PCI device; ``base``: URL of the API, for its links."""
        host = self._uuid("i_host", row["host_id"])
        shown = _pick(row, _PCI_FIELDS) | {"host_uuid": host} | _pick(row, ("enabled", "extra_info", *_TIMES))
        shown["links"] = [
            {"rel": "self", "href": f"{base}/v1/pci_devices/{row['uuid']}"},
            {"rel": "bookmark", "href": f"{base}/pci_devices/{row['uuid']}"},
        ]
        if row["pclass_id"] in FPGA_CLASSES:
            fpga = self._database.one("fpga_devices", pci_id=row["id"]) or dict.fromkeys(FPGA_FIELDS)
            shown |= _pick(fpga, FPGA_FIELDS)
        return shown

    def host(self, row: Row) -> dict[str, Any]:
        """Return a host, as far as the fact sheet names its keys."""
        return _pick(row, _HOST_FIELDS) | {
            "config_status": "",
            "peers": None,
            "install_state": None,
            "install_state_info": None,
            "sw_version": SOFTWARE_VERSIONS[self._defects.release],
            **_pick(row, _TIMES),
        }

    def _uuid(self, table: str, row_id: int | None) -> str | None:
        row = self._database.one(table, id=row_id) if row_id is not None else None
        return row["uuid"] if row else None
