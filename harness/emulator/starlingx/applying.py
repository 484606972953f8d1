"""What applying and removing an image does to labels and states (sections 4.2 to 4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from harness.emulator.starlingx.alarms import OPEN, Alarms
from harness.emulator.starlingx.answers import Refused
from harness.emulator.starlingx.database import Database, Row
from harness.emulator.starlingx.defects import Defects
from harness.emulator.starlingx.uploads import FUNCTIONAL, ROOT_KEY

PENDING: Final = "pending"
IN_PROGRESS: Final = "in-progress"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
#: The value of a host that has nothing to update any more; one that never had has NULL.
NOTHING: Final = ""

Labels = Sequence[Mapping[str, str]]


class Applying:
    """Applies and removes the images of one system."""

    def __init__(self, database: Database, defects: Defects, alarms: Alarms) -> None:
        self._database = database
        self._defects = defects
        self._alarms = alarms

    # -- apply ----------------------------------------------------------------------------------

    def apply(self, uuid: str, labels: Labels) -> Row:
        """Apply the image ``uuid`` to labels; without labels to every FPGA device. Return the image.

        :raises Refused: it must not be; what came before in ``labels`` is done all the same.
        """
        image = self._image(uuid, "apply")
        if labels:
            for key, value in _pairs(labels):
                self._apply_to_label(image, key, value)
        else:
            for device in self._fpga_devices():
                if self.takes(device, image, None):
                    self.owe(device, image)
            self._database.change("device_images", image["id"], applied=True)
            if not self._defects.on("old-flag-kept"):
                for old in self._rivals(image):
                    self._database.change("device_images", old["id"], applied=False)
        states = self._database.all("device_image_state", image_id=image["id"])
        if any(state["status"] in OPEN for state in states) or self._defects.on("alarm-without-update"):
            self._alarms.raise_update()
        return self._image(uuid, "apply")

    def _apply_to_label(self, image: Row, key: str, value: str) -> None:
        rows = self._database.all("device_labels", label_key=key, label_value=value)
        for label in rows or [self._database.add("device_labels", label_key=key, label_value=value)]:
            if label["pcidevice_id"] is not None:
                device = self._device(label["pcidevice_id"])
                if self.takes(device, image, label["id"]):
                    self.owe(device, image)
            self.tie(image, label)

    def tie(self, image: Row, label: Row) -> None:
        """Note that ``image`` is applied to ``label``."""
        if not self._defects.on("two-images-on-floating-label"):
            for old in self._rivals(image):
                self._untie(old["id"], label["id"])
        if self._database.one("device_image_labels", image_id=image["id"], label_id=label["id"]) is None:
            self._database.add("device_image_labels", image_id=image["id"], label_id=label["id"])

    def _untie(self, image_id: int, label_id: int) -> None:
        for entry in self._database.all("device_image_labels", image_id=image_id, label_id=label_id):
            self._database.remove("device_image_labels", entry["id"])

    def takes(self, device: Row, new: Row, label_id: int | None) -> bool:
        """Make room for an image on a device; return whether it is to be written there.

        :raises Refused: another one is in its way.
        """
        write = True
        for state in self._database.all("device_image_state", pcidevice_id=device["id"]):
            old = self._database.one("device_images", id=state["image_id"]) if state["image_id"] else None
            if old is None or old["bitstream_type"] != new["bitstream_type"]:
                continue
            same = old["id"] == new["id"]
            if new["bitstream_type"] == ROOT_KEY:
                if not same or self._defects.on("root-key-blocks-itself"):
                    raise self._root_key_there(old, device)
                write = state["status"] == FAILED
            elif new["bitstream_type"] == FUNCTIONAL:
                self._check_idle(state, device, new)
                if same:
                    done = state["status"] == COMPLETED and not self._defects.on("apply-again-resets")
                    write = not done and state["status"] != PENDING
                elif not self._coexist(old, new):
                    self._database.remove("device_image_state", state["id"])
                    if label_id is not None:
                        self._untie(old["id"], label_id)
            elif same:
                write = False
        return write

    def _coexist(self, old: Row, new: Row) -> bool:
        """Return whether an old functional image stays beside a new one."""
        if self._defects.on("bmc-drops-user-image"):
            return False
        return old["bmc"] != new["bmc"] or bool(
            new["bmc"] and not new["retimer_included"] and old["retimer_included"]
        )

    def _rivals(self, new: Row) -> list[Row]:
        """Return the functional images that ``new`` takes the place of."""
        if new["bitstream_type"] != FUNCTIONAL:
            return []
        found = self._database.all("device_images", bitstream_type=FUNCTIONAL)
        return [old for old in found if old["id"] != new["id"] and not self._coexist(old, new)]

    def _check_idle(self, state: Row, device: Row, new: Row) -> None:
        if state["status"] == IN_PROGRESS:
            raise Refused(
                400,
                f"Applying image {new['uuid']} for host {self._host_of(device)['hostname']} device "
                f"{device['pciaddr']} not allowed while device image update is in progress",
            )

    def _root_key_there(self, old: Row, device: Row) -> Refused:
        host = self._host_of(device)["hostname"]
        return Refused(
            400,
            f"Root-key image {old['uuid']} is already applied to host {host} device {device['pciaddr']}",
        )

    def owe(self, device: Row, image: Row) -> None:
        """Note that ``image`` is to be written to ``device``, and that its host has something to do."""
        state = self._only_state(device["id"], image["id"])
        if state is None:
            self._database.add(
                "device_image_state",
                host_id=device["host_id"],
                pcidevice_id=device["id"],
                image_id=image["id"],
                status=PENDING,
            )
        else:
            self._database.change("device_image_state", state["id"], status=PENDING)
        self.wake_host(device)

    def wake_host(self, device: Row) -> None:
        """Say at the device's host that there is something to update, unless it is at it."""
        host = self._host_of(device)
        if host["device_image_update"] != IN_PROGRESS:
            self._database.change("i_host", host["id"], device_image_update=PENDING)

    # -- remove ---------------------------------------------------------------------------------

    def remove(self, uuid: str, labels: Labels) -> Row:
        """Take the image ``uuid`` from labels, or from every FPGA device. Return the image.

        :raises Refused: there is no such image or label, or a device has two states of it.
        """
        image = self._image(uuid, "remove")
        for key, value in _pairs(labels):
            rows = self._database.all("device_labels", label_key=key, label_value=value)
            if not rows:
                raise Refused(400, f"Device image remove failed: label {key}={value} does not exist")
            for label in rows:
                self._untie(image["id"], label["id"])
                if label["pcidevice_id"] is not None:
                    self._forget_state(image, label["pcidevice_id"], label)
                elif self._database.one("device_image_labels", label_id=label["id"]) is None:
                    self._database.remove("device_labels", label["id"])
        if not labels:
            for device in self._fpga_devices():
                self._forget_state(image, device["id"], None)
            self._database.change("device_images", image["id"], applied=False)
        if not self._defects.on("alarm-without-update"):
            self._alarms.judge_update()
        return self._image(uuid, "remove")

    def _forget_state(self, image: Row, device_id: int, label: Row | None) -> None:
        state = self._only_state(device_id, image["id"])
        if state is None or image["id"] in self.owed_otherwise(device_id, label):
            return
        if state["status"] == IN_PROGRESS and not self._defects.on("remove-drops-running-state"):
            raise Refused(400, "Device image remove failed: the image is being written to a device")
        self._database.remove("device_image_state", state["id"])
        self.rest_host(state["host_id"])

    def owed_otherwise(self, device_id: int, label: Row | None) -> set[int]:
        """Return the images that a device has by another label than ``label``, or, but for None, by none.

        Nothing where whatever takes an image from it takes the whole state (sections 4.4 and 4.5).
        """
        if self._defects.on("label-removal-drops-all-states"):
            return set()
        kept = {image["id"] for image in self._database.all("device_images") if label and image["applied"]}
        for other in self._database.all("device_labels", pcidevice_id=device_id):
            if label and other["id"] == label["id"]:
                continue
            twins = self._database.all(
                "device_labels", label_key=other["label_key"], label_value=other["label_value"]
            )
            for twin in twins:
                kept |= {
                    e["image_id"] for e in self._database.all("device_image_labels", label_id=twin["id"])
                }
        return kept

    def rest_host(self, host_id: int) -> None:
        """Say at a host that has nothing left to update that it has nothing, where that is corrected."""
        host = self._database.one("i_host", id=host_id)
        left = self._database.all("device_image_state", host_id=host_id)
        if self._defects.on("remove-leaves-host-pending") or host is None:
            return
        if host["device_image_update"] == PENDING and not any(state["status"] in OPEN for state in left):
            self._database.change("i_host", host_id, device_image_update=NOTHING)

    def _only_state(self, device_id: int, image_id: int) -> Row | None:
        found = self._database.all("device_image_state", pcidevice_id=device_id, image_id=image_id)
        if len(found) > 1:
            raise Refused(500, "Multiple rows were found when exactly one was required", "Server")
        return found[0] if found else None

    # -- rows -----------------------------------------------------------------------------------

    def _image(self, uuid: str, verb: str) -> Row:
        image = self._database.one("device_images", uuid=uuid)
        if image is None:
            raise Refused(400, f"Device image {verb} failed: image does not exist")
        return image

    def _fpga_devices(self) -> Iterator[Row]:
        """Yield the devices that an inventory of FPGAs was reported of, host by host."""
        for host in self._database.all("i_host"):
            for fpga in self._database.all("fpga_devices", host_id=host["id"]):
                yield self._device(fpga["pci_id"])

    def _device(self, row_id: int) -> Row:
        device = self._database.one("pci_devices", id=row_id)
        assert device is not None, "the schema keeps what refers to a device from outliving it"
        return device

    def _host_of(self, device: Row) -> Row:
        host = self._database.one("i_host", id=device["host_id"])
        assert host is not None
        return host


def _pairs(labels: Labels) -> Iterator[tuple[str, str]]:
    for entry in labels:
        yield from entry.items()
