"""Device labels: assigning and removing them, and what that does to states (sections 2.3 and 4.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.emulator.starlingx.alarms import Alarms
from harness.emulator.starlingx.answers import Refused
from harness.emulator.starlingx.applying import IN_PROGRESS, PENDING, Applying
from harness.emulator.starlingx.database import Database, Row
from harness.emulator.starlingx.defects import Defects
from harness.emulator.starlingx.uploads import DEVICE


class DeviceLabels:
    """The labels of one system's devices."""

    def __init__(self, database: Database, defects: Defects, applying: Applying, alarms: Alarms) -> None:
        self._database = database
        self._defects = defects
        self._applying = applying
        self._alarms = alarms

    def assign(self, entries: Sequence[Mapping[str, str]], *, overwrite: bool) -> list[Row]:
        """Give a device labels; one of ``entries`` names it. Return the labels' rows.

        :raises Refused: unknown device, or a label that cannot be.
        """
        wanted = dict(pair for entry in entries for pair in entry.items())
        uuid = wanted.pop("pcidevice_uuid", None)
        device = self._database.one("pci_devices", uuid=uuid) if uuid else None
        if device is None:
            raise Refused(404, f"Server {uuid} could not be found.")
        if device["pdevice_id"] != DEVICE and not self._defects.on("any-device-labelled"):
            raise Refused(400, f"Device {device['pciaddr']} is no FPGA whose image can be updated")
        done = []
        for entry in entries:
            for key, value in entry.items():
                if key != "pcidevice_uuid":
                    label = self._assign(device, key, value, overwrite)
                    self._owe_images(device, label)
                    done.append(label)
        return done

    def _assign(self, device: Row, key: str, value: str, overwrite: bool) -> Row:
        there = self._database.all("device_labels", pcidevice_id=device["id"], label_key=key)
        if overwrite and there:
            if len(there) > 1:
                raise Refused(
                    400,
                    "Cannot overwrite label value as multiple device labels exist with "
                    f"label key {key} for this device",
                )
            self._database.change("device_labels", there[0]["id"], label_value=value)
            return self._database.one("device_labels", id=there[0]["id"]) or there[0]
        looked_at = there if len(there) == 1 or not self._defects.on("third-identical-label") else []
        if any(label["label_value"] == value for label in looked_at):
            raise Refused(400, f"Device label ({key}, {value}) already exists for this device")
        return self._database.add(
            "device_labels",
            host_id=device["host_id"],
            pcidevice_id=device["id"],
            label_key=key,
            label_value=value,
        )

    def _owe_images(self, device: Row, label: Row) -> None:
        """Owe the device every image of the first label with this key and value."""
        first = self._database.one(
            "device_labels", label_key=label["label_key"], label_value=label["label_value"]
        )
        assert first is not None
        for entry in self._database.all("device_image_labels", label_id=first["id"]):
            image = self._database.one("device_images", id=entry["image_id"])
            assert image is not None
            both = self._defects.on("label-assign-keeps-both-images")
            again = self._defects.on("duplicate-states")
            if not both and not self._applying.takes(device, image, first["id"]) and not again:
                continue
            known = self._database.one("device_image_state", pcidevice_id=device["id"], image_id=image["id"])
            if known is None or again:
                self._database.add(
                    "device_image_state",
                    host_id=device["host_id"],
                    pcidevice_id=device["id"],
                    image_id=image["id"],
                    status=PENDING,
                )
            if not self._defects.on("label-assign-leaves-host-alone"):
                self._applying.wake_host(device)
                self._applying.tie(image, label)
                self._alarms.raise_update()

    def remove(self, uuid: str) -> None:
        """Take a label from its device, and from the device the states that go with it.

        :raises Refused: there is none, no device carries it, or its host is at an update.
        """
        label = self._database.one("device_labels", uuid=uuid)
        if label is None:
            raise Refused(400, f"No device label entry found for {uuid}")
        host = self._database.one("i_host", id=label["host_id"]) if label["host_id"] else None
        if host is None:
            raise Refused(404, "Server None could not be found.")
        if host["device_image_update"] == IN_PROGRESS:
            raise Refused(
                400, f"Command rejected: Device image update is in progress for host {host['hostname']}"
            )
        kept = self._applying.owed_otherwise(label["pcidevice_id"], label)
        for state in self._database.all("device_image_state", pcidevice_id=label["pcidevice_id"]):
            if state["image_id"] not in kept:
                self._database.remove("device_image_state", state["id"])
        if self._defects.on("label-removal-breaks-list"):
            for entry in self._database.all("device_image_labels", label_id=label["id"]):
                self._database.change("device_image_labels", entry["id"], label_id=None)
        self._database.remove("device_labels", label["id"])
        self._applying.rest_host(host["id"])
        if not self._defects.on("label-removal-drops-all-states"):
            self._alarms.judge_update()
