"""sysinv's conductor: queue and states of updates, their audit, the inventory (section 4.7)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from harness.emulator.starlingx.alarms import Alarms
from harness.emulator.starlingx.applying import COMPLETED, FAILED, IN_PROGRESS, NOTHING, PENDING
from harness.emulator.starlingx.database import Database, Row
from harness.emulator.starlingx.defects import Defects
from harness.emulator.starlingx.uploads import FUNCTIONAL, KEY_REVOCATION, ROOT_KEY, file_name

ABORTED: Final = "in-progress-aborted"
#: Written in this order, over all devices of a host.
_ORDER: Final = {ROOT_KEY: 0, KEY_REVOCATION: 1, FUNCTIONAL: 2}
AUDIT_SECONDS: Final = 300.0
#: How long an image may be in progress, in lab seconds.
_LONGEST: Final = {FUNCTIONAL: 3600.0}
_LONGEST_OTHER: Final = 300.0
#: What users change of a device, and no report of an agent takes back (inferred).
_OF_USERS: Final = ("enabled", "name")
#: N3000 FPGA, its FEC function and its default virtual device.
N3000_DEVICES: Final = ("0b30", "0d8f", "0b32")

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Order:
    """What the conductor asks an agent to do. ``transaction``: the integer id of the state's row."""

    transaction: int
    file: str
    address: str
    kind: str
    retimer_included: bool


class StateNotFound(Exception):
    """A state that an agent reports on is gone; a call that fails with it changes nothing more."""


class Conductor:
    """The conductor of one system. ``send``: hands an order to the agent of the host of that name.

    ``nothing``: what a host says of its update once it is owed nothing: the empty status, or NULL.
    """

    def __init__(
        self,
        database: Database,
        defects: Defects,
        alarms: Alarms,
        now: Callable[[], float],
        send: Callable[[str, Order], None],
        nothing: Callable[[], str | None] = lambda: NOTHING,
    ) -> None:
        self._database = database
        self._defects = defects
        self._alarms = alarms
        self._now = now
        self._send = send
        self._nothing = nothing
        #: What the log of the conductor says of updates, the last line last.
        self.log: list[str] = []

    # -- updates --------------------------------------------------------------------------------

    def update_host(self, host_id: int) -> None:
        """Begin to write all that is pending or has failed on a host."""
        for state in self._states(host_id, FAILED):
            self._database.change("device_image_state", state["id"], status=PENDING, update_start_time=None)
        self._set_host(host_id, IN_PROGRESS)
        self._next(host_id)

    def abort_host(self, host_id: int) -> None:
        """Begin nothing more on a host; what is being written goes on."""
        host = self._host(host_id)
        if host["device_image_update"] == IN_PROGRESS:
            self._set_host(host_id, ABORTED)

    def report_status(self, host_uuid: str, transaction: int, status: str, progress: str = "") -> None:
        """Take an agent's word about one image.

        ``progress``: where the text of an agent's error ends up: in the log, and nowhere else.
        :raises StateNotFound: the state is gone.
        """
        self._say(f"device_update_image_status: {status}, progress: {progress or None}, err: None")
        host = self._database.one("i_host", uuid=host_uuid)
        state = self._database.one("device_image_state", id=transaction)
        if state is None or host is None:
            raise StateNotFound(f"Device image state {transaction} could not be found.")
        started = {"update_start_time": show_time(self._now())} if status == IN_PROGRESS else {}
        self._database.change("device_image_state", transaction, status=status, **started)
        if status == COMPLETED:
            self._database.change("i_host", host["id"], reboot_needed=True)
        if status in (COMPLETED, FAILED):
            self._next(host["id"])

    def _next(self, host_id: int) -> None:
        """Have the next image of a host written, or say that there is none."""
        host = self._host(host_id)
        pending = self._states(host_id, PENDING)
        if pending and host["device_image_update"] == ABORTED:
            self._set_host(host_id, PENDING)
            return
        if not self._defects.on("failure-not-propagated"):
            spoilt = {state["pcidevice_id"] for state in self._states(host_id, FAILED)}
            ready = [state for state in pending if state["pcidevice_id"] not in spoilt]
        else:
            ready = pending
        if not ready:
            failed = bool(self._states(host_id, FAILED)) and not self._defects.on(
                "host-not-pending-after-failure"
            )
            self._set_host(host_id, PENDING if failed or pending else self._nothing())
            return
        images = {state["id"]: self._image(state) for state in ready}
        first = min(ready, key=lambda state: _ORDER[images[state["id"]]["bitstream_type"]])
        image = images[first["id"]]
        device = self._database.one("pci_devices", id=first["pcidevice_id"])
        assert device is not None
        order = Order(
            transaction=first["id"],
            file=file_name(image),
            address=device["pciaddr"],
            kind=image["bitstream_type"],
            retimer_included=bool(image["retimer_included"]),
        )
        self._send(host["hostname"], order)

    def audit(self) -> None:
        """Take what has been in progress for too long as failed."""
        for state in self._database.all("device_image_state", status=IN_PROGRESS):
            image = self._database.one("device_images", id=state["image_id"]) if state["image_id"] else None
            kind = image["bitstream_type"] if image else ""
            started = state["update_start_time"]
            if started is None or self._now() - seconds(started) < _LONGEST.get(kind, _LONGEST_OTHER):
                continue
            self._database.change("device_image_state", state["id"], status=FAILED)
            self._say(
                f"Device image update timed out host={state['host_id']} device={state['pcidevice_id']} "
                f"image={state['image_id']}"
            )
            if not self._defects.on("audit-leaves-host-in-progress"):
                self._next(state["host_id"])

    # -- inventory ------------------------------------------------------------------------------

    @property
    def inventory_changes(self) -> int:
        """How often a row of a device was changed so far."""
        return self._database.changes("pci_devices") + self._database.changes("fpga_devices")

    def report_devices(
        self, host_uuid: str, devices: Sequence[Mapping[str, Any]], *, was_reset: bool, cleanup: bool
    ) -> None:
        """Take an agent's list of the PCI devices of a host.

        ``was_reset``: its cards were, since it booted: before that, what they show is not believed.
        ``cleanup``: what is not in the list is gone, and its labels and states with it.
        """
        host = self._database.one("i_host", uuid=host_uuid)
        if host is None:
            return
        known = {row["pciaddr"]: row for row in self._database.all("pci_devices", host_id=host["id"])}
        believed = [
            device for device in devices if was_reset or str(device["pdevice_id"]) not in N3000_DEVICES
        ]
        gone = [
            row
            for address, row in known.items()
            if address not in {device["pciaddr"] for device in devices} and row["pdevice_id"] in N3000_DEVICES
        ]
        for device in believed:
            row = known.get(device["pciaddr"])
            if row is not None:
                found = {name: value for name, value in device.items() if name not in _OF_USERS}
                self._update("pci_devices", row, found)
                continue
            moved = self._moved_from(device, gone)
            if moved is not None:
                gone.remove(moved)
                self._database.change("pci_devices", moved["id"], **device)
            else:
                self._database.add("pci_devices", host_id=host["id"], **device)
        if cleanup:
            for row in gone:
                self._database.remove("pci_devices", row["id"])

    def _moved_from(self, device: Mapping[str, Any], gone: list[Row]) -> Row | None:
        """Return the row that a device had before its address changed, where that is corrected."""
        if self._defects.on("labels-lost-on-move"):
            return None
        return next((row for row in gone if row["pdevice_id"] == device["pdevice_id"]), None)

    def forget_others(self, host_uuid: str, addresses: Container[str]) -> None:
        """Take the cards of a host that do not stand at one of ``addresses`` as gone, and their labels."""
        host = self._database.one("i_host", uuid=host_uuid)
        for row in self._database.all("pci_devices", host_id=host["id"] if host else None):
            if row["pdevice_id"] in N3000_DEVICES and row["pciaddr"] not in addresses:
                self._database.remove("pci_devices", row["id"])

    def report_fpgas(self, host_uuid: str, fpgas: Sequence[Mapping[str, Any]]) -> None:
        """Take an agent's report of the cards of a host; a device that is not known yet ends it."""
        host = self._database.one("i_host", uuid=host_uuid)
        if host is None:
            return
        for fpga in fpgas:
            device = self._database.one("pci_devices", host_id=host["id"], pciaddr=fpga["pciaddr"])
            if device is None:
                self._say(f"no PCI device {fpga['pciaddr']} of host {host['hostname']}")
                return
            row = self._database.one("fpga_devices", pci_id=device["id"])
            if row is None:
                self._database.add("fpga_devices", host_id=host["id"], pci_id=device["id"], **fpga)
            else:
                self._update("fpga_devices", row, fpga)

    def _update(self, table: str, row: Row, values: Mapping[str, Any]) -> None:
        changed = {name: value for name, value in values.items() if row[name] != value}
        if changed:
            self._database.change(table, row["id"], **changed)

    def first_report(self, host_uuid: str) -> None:
        """A host's agent reports for the first time since its host booted."""
        host = self._database.one("i_host", uuid=host_uuid)
        if host is not None and host["availability"] == "available":
            if host["reboot_needed"]:
                self._database.change("i_host", host["id"], reboot_needed=False)
            self._alarms.judge_update()

    # -- rows -----------------------------------------------------------------------------------

    def _states(self, host_id: int, status: str) -> list[Row]:
        return self._database.all("device_image_state", host_id=host_id, status=status)

    def _image(self, state: Row) -> Row:
        image = self._database.one("device_images", id=state["image_id"]) if state["image_id"] else None
        if image is None:
            raise LookupError(f"Device image {state['image_id']} could not be found.")
        return image

    def _host(self, host_id: int) -> Row:
        host = self._database.one("i_host", id=host_id)
        if host is None:
            raise LookupError(f"Server {host_id} could not be found.")
        return host

    def _set_host(self, host_id: int, value: str | None) -> None:
        self._database.change("i_host", host_id, device_image_update=value)

    def _say(self, line: str) -> None:
        self.log.append(line)
        _LOG.info("%s", line)


def show_time(now: float) -> str:
    """Return a lab time as sysinv shows times: microseconds, and the zone of naive UTC."""
    return datetime.fromtimestamp(round(now, 6), UTC).isoformat(timespec="microseconds")


def seconds(text: str) -> float:
    """Return the lab time that :func:`show_time` wrote."""
    return datetime.fromisoformat(text).timestamp()
