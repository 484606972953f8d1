"""sysinv's API as functions: what each route answers, without a word of HTTP's (sections 2.1 to 2.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.emulator.starlingx.alarms import UPDATE_ALARM
from harness.emulator.starlingx.answers import NOT_AUTHORIZED, Refused, boolean
from harness.emulator.starlingx.applying import COMPLETED, IN_PROGRESS
from harness.emulator.starlingx.database import Row
from harness.emulator.starlingx.device_changes import changes
from harness.emulator.starlingx.identity import Caller
from harness.emulator.starlingx.system import System
from harness.emulator.starlingx.uploads import file_name

_NOT_PERMITTED: Final = "Operation not permitted."


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks. ``filename``, ``content``: of the part `file` of a multipart body."""

    caller: Caller
    base: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    fields: Mapping[str, str] = field(default_factory=dict)
    filename: str | None = None
    content: bytes | None = None


Answer = tuple[int, Any]


class Sysinv:
    """The API of one system. Every method takes a request and what its path names."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._database = system.database
        self._views = system.views

    @staticmethod
    def authorize(caller: Caller, method: str) -> None:
        """:raises Refused: the caller's roles do not let it do this (section 2)."""
        if method == "GET":
            allowed = set(caller.roles) & {"admin", "reader", "operator", "configurator"}
        else:
            allowed = set(caller.roles) & {"admin", "configurator"}
            if caller.project not in ("admin", "services"):
                allowed = set()
        if not allowed:
            raise Refused(403, NOT_AUTHORIZED)

    # -- images ---------------------------------------------------------------------------------

    def images(self, request: Request) -> Answer:
        """GET device_images."""
        rows = _page(self._database.all("device_images"), request.query)
        return 200, {"device_images": [self._views.image(row, detail=False) for row in rows]}

    def image(self, request: Request, ident: str) -> Answer:
        """GET device_images/{uuid, integer id or name}."""
        return 200, self._views.image(self._image(ident), detail=True)

    def _image(self, ident: str) -> Row:
        found = self._database.all("device_images", uuid=ident)
        if not found and ident.isdecimal():
            found = self._database.all("device_images", id=int(ident))
        elif not found:
            found = self._database.all("device_images", name=ident)
        if len(found) > 1:
            raise Refused(400, f"Multiple entries found for deviceimage {ident}")
        if not found:
            raise Refused(404, f"Device image {ident} could not be found.")
        return found[0]

    def upload_image(self, request: Request) -> Answer:
        """POST device_images: 200 whatever was wrong.

        :raises Unhandled: what it does not look for was wrong.
        """
        return 200, self._system.uploads.upload(request.fields, request.filename, request.content)

    def change_image(self, request: Request, uuid: str) -> Answer:
        """PATCH device_images/{uuid}?action=apply|remove."""
        action = request.query.get("action")
        if action not in ("apply", "remove"):
            raise Refused(403, _NOT_PERMITTED)
        labels = _label_list(request.body)
        applying = self._system.applying
        row = (applying.apply if action == "apply" else applying.remove)(uuid, labels)
        return 200, self._views.image(row, detail=True)

    def delete_image(self, request: Request, uuid: str) -> Answer:
        """DELETE device_images/{uuid}."""
        row = self._database.one("device_images", uuid=uuid)
        if row is None:
            raise Refused(404, f"Device image {uuid} could not be found.")
        states = self._database.all("device_image_state", image_id=row["id"])
        if any(state["status"] in (COMPLETED, IN_PROGRESS) for state in states):
            raise Refused(
                400,
                "Delete failed: device image is being written to or has already been written to devices",
            )
        shown = self._views.image(row, detail=True)
        defects = self._system.defects
        labels = [
            entry["label_id"] for entry in self._database.all("device_image_labels", image_id=row["id"])
        ]
        if not defects.on("delete-orphans-states"):
            for state in states:
                self._database.remove("device_image_state", state["id"])
                self._system.applying.rest_host(state["host_id"])
        self._database.remove("device_images", row["id"])
        if not defects.on("floating-labels-left"):
            self._remove_floating(labels)
        (self._system.images_folder / file_name(row)).unlink(missing_ok=True)
        if not defects.on("alarm-without-update"):
            if self._database.all("device_images"):
                self._system.alarms.judge_update()
            else:
                self._system.alarms.clear_update()
        return 202, shown

    def _remove_floating(self, label_ids: Sequence[int | None]) -> None:
        for label_id in label_ids:
            label = self._database.one("device_labels", id=label_id) if label_id else None
            unused = self._database.one("device_image_labels", label_id=label_id) is None
            if label is not None and label["pcidevice_id"] is None and unused:
                self._database.remove("device_labels", label["id"])

    # -- states and labels ----------------------------------------------------------------------

    def states(self, request: Request) -> Answer:
        """GET device_image_state."""
        rows = self._database.all("device_image_state")
        return 200, {"device_image_state": [self._views.state(row, detail=False) for row in rows]}

    def state(self, request: Request, uuid: str) -> Answer:
        """GET device_image_state/{uuid}."""
        row = self._database.one("device_image_state", uuid=uuid)
        if row is None:
            raise Refused(404, f"Device image state {uuid} could not be found.")
        return 200, self._views.state(row, detail=True)

    def labels(self, request: Request) -> Answer:
        """GET device_labels."""
        rows = self._database.all("device_labels")
        return 200, {"device_labels": [self._views.label(row, detail=False) for row in rows]}

    def label(self, request: Request, uuid: str) -> Answer:
        """GET device_labels/{uuid}; one that is not there is the client's fault, not a 404."""
        row = self._database.one("device_labels", uuid=uuid)
        if row is None:
            raise Refused(400, f"No device label found for {uuid}")
        return 200, self._views.label(row, detail=True)

    def assign_labels(self, request: Request) -> Answer:
        """POST device_labels?overwrite=True|False."""
        overwrite = _boolean_query(request.query, "overwrite")
        rows = self._system.labels.assign(_label_list(request.body), overwrite=overwrite)
        return 200, {"device_labels": [self._views.label(row, detail=False) for row in rows]}

    def remove_label(self, request: Request, uuid: str) -> Answer:
        """DELETE device_labels/{uuid}."""
        self._system.labels.remove(uuid)
        return 204, None

    def change_label(self, request: Request, uuid: str) -> Answer:
        """PATCH device_labels: there is no such thing."""
        raise Refused(403, _NOT_PERMITTED)

    # -- devices --------------------------------------------------------------------------------

    def devices(self, request: Request) -> Answer:
        """GET pci_devices."""
        rows = self._database.all("pci_devices")
        return 200, {"pci_devices": [self._views.device(row, request.base) for row in rows]}

    def host_devices(self, request: Request, ident: str) -> Answer:
        """GET ihosts/{uuid or id}/pci_devices."""
        rows = self._database.all("pci_devices", host_id=self._host(ident)["id"])
        return 200, {"pci_devices": [self._views.device(row, request.base) for row in rows]}

    def device(self, request: Request, uuid: str) -> Answer:
        """GET pci_devices/{uuid}."""
        return 200, self._views.device(self._device(uuid), request.base)

    def _device(self, uuid: str) -> Row:
        row = self._database.one("pci_devices", uuid=uuid)
        if row is None:
            raise Refused(404, f"Server {uuid} could not be found.")
        return row

    def change_device(self, request: Request, uuid: str) -> Answer:
        """PATCH pci_devices/{uuid}: a JSON patch. Only in a locked host."""
        row = self._device(uuid)
        host = self._host(str(row["host_id"]))
        static = self._system.defects.release not in ("head", "corrected")
        found = changes(row, host, request.body or (), static=static)
        self._database.change("pci_devices", row["id"], **found)
        return 200, self._views.device(self._device(uuid), request.base)

    # -- hosts ----------------------------------------------------------------------------------

    def hosts(self, request: Request) -> Answer:
        """GET ihosts."""
        return 200, {"ihosts": [self._views.host(row) for row in self._database.all("i_host")]}

    def host(self, request: Request, ident: str) -> Answer:
        """GET ihosts/{uuid or id}."""
        return 200, self._views.host(self._host(ident))

    def _host(self, ident: str) -> Row:
        where = {"id": int(ident)} if ident.isdecimal() else {"uuid": ident}
        row = self._database.one("i_host", **where)
        if row is None:
            raise Refused(404, f"Server {ident} could not be found.")
        return row

    def update_host(self, request: Request, ident: str) -> Answer:
        """POST ihosts/{uuid}/device_image_update: the answer has the value of before."""
        host = self._host(ident)
        if self._system.defects.on("custom-actions-denied"):
            raise Refused(403, NOT_AUTHORIZED)
        if host["device_image_update"] == IN_PROGRESS:
            raise Refused(
                400,
                f"The host {host['hostname']} is already in the process of updating the device images.",
            )
        if (host["administrative"], host["operational"]) != ("unlocked", "enabled"):
            raise Refused(
                400,
                f"The host {host['hostname']} must be unlocked and enabled to update the device images.",
            )
        self._system.casts.cast(lambda: self._system.conductor.update_host(host["id"]))
        return 200, self._views.host(host)

    def abort_host(self, request: Request, ident: str) -> Answer:
        """POST ihosts/{uuid}/device_image_update_abort."""
        host = self._host(ident)
        if host["device_image_update"] != IN_PROGRESS:
            raise Refused(
                400,
                f"Abort rejected. The host {host['hostname']} is not in the process of updating the "
                "device images.",
            )
        self._system.casts.cast(lambda: self._system.conductor.abort_host(host["id"]))
        return 200, self._views.host(host)

    def change_host(self, request: Request, ident: str) -> Answer:
        """PATCH ihosts/{uuid}: a JSON patch of `action` (inferred: the fact sheet has only its refusals)."""
        host = self._host(ident)
        steps = request.body or ()
        action = next((step.get("value") for step in steps if step.get("path") == "/action"), None)
        acts: dict[Any, Callable[[Row], None]] = {
            "lock": self._lock,
            "force-lock": self._force_lock,
            "unlock": self._unlock,
            "swact": self._swact,
            "force-swact": self._force_swact,
            "reboot": self._reboot,
        }
        if action not in acts:
            raise Refused(400, f"Host action {action} not supported")
        acts[action](host)
        return 200, self._views.host(self._host(ident))

    def _lock(self, host: Row) -> None:
        worker = "worker" in host["subfunctions"]
        if worker and host["device_image_update"] == IN_PROGRESS:
            raise Refused(
                400,
                f"Rejected: Cannot lock {host['hostname']} while device image update is in progress.",
            )
        self._force_lock(host)

    def _force_lock(self, host: Row) -> None:
        if host["administrative"] == "locked":
            raise Refused(400, f"Avoiding 'lock' action on already 'locked' host {host['hostname']}")
        self._system.lock_host(host["hostname"])

    def _unlock(self, host: Row) -> None:
        if host["administrative"] == "unlocked":
            raise Refused(400, f"Avoiding 'unlock' action on already 'unlocked' host {host['hostname']}")
        self._system.unlock_host(host["hostname"])

    def _swact(self, host: Row) -> None:
        other = self._system.activity.other(host["hostname"])
        to = self._database.one("i_host", hostname=other.hostname) if other else None
        for entry in (host, to):
            if entry is not None and entry["device_image_update"] == IN_PROGRESS:
                raise Refused(
                    400,
                    f"Rejected: Cannot swact {host['hostname']} while {entry['hostname']} is updating device "
                    "images.",
                )
        self._force_swact(host)

    def _force_swact(self, host: Row) -> None:
        if not self._system.activity.move(host["hostname"]):
            raise Refused(
                400, f"Swact action not allowed: {host['hostname']} is not active, or has no standby."
            )

    def _reboot(self, host: Row) -> None:
        if host["administrative"] != "locked":
            raise Refused(400, f"Can not 'Reboot' an 'unlocked' host {host['hostname']}; Please 'Lock' first")
        self._system.reboot_host(host["hostname"])

    # -- alarms and the local registry ----------------------------------------------------------

    def alarms(self, request: Request) -> Answer:
        """GET alarms, of the fault manager; the form is inferred, the fact sheet has none."""
        rows = self._database.all("alarms")
        keys = ("uuid", "alarm_id", "entity_instance_id", "severity", "reason_text")
        shown = [
            {key: row[key] for key in keys}
            | {"alarm_type": "environmental", "alarm_state": "set", "timestamp": row["created_at"]}
            | {"proposed_repair_action": row["repair"]}
            for row in rows
        ]
        return 200, {"alarms": shown}

    def registry_images(self, request: Request) -> Answer:
        """GET registry_image: names, or with `image_name` the tags of one; the keys are inferred."""
        rows = self._database.all("registry_images")
        name = request.query.get("image_name")
        if name is not None:
            tags = [row["tag"] for row in rows if row["name"] == name]
            return 200, {"registry_images": [{"name": None, "tag": tag} for tag in tags]}
        names = sorted({row["name"] for row in rows})
        return 200, {"registry_images": [{"name": name, "tag": None} for name in names]}

    def delete_registry_image(self, request: Request) -> Answer:
        """DELETE registry_image?image_name_and_tag=N:T."""
        name, _, tag = request.query.get("image_name_and_tag", "").partition(":")
        if not tag or ":" in tag:
            raise Refused(400, "Image name and tag must be of form name:tag")
        row = self._database.one("registry_images", name=name, tag=tag)
        if row is None:
            raise Refused(400, f"Image {name}:{tag} could not be found in the registry")
        self._database.remove("registry_images", row["id"])
        return 204, None

    def collect_garbage(self, request: Request) -> Answer:
        """POST registry_image?garbage_collect=True."""
        if not _boolean_query(request.query, "garbage_collect"):
            raise Refused(400, "Invalid request")
        return 200, {}

    # -- service parameters ---------------------------------------------------------------------

    def apply_parameters(self, request: Request) -> Answer:
        """POST service_parameter/apply. Nothing emulated depends on a parameter: it is refused, or done."""
        service = request.body.get("service") if isinstance(request.body, Mapping) else None
        updating = self._database.one("alarms", alarm_id=UPDATE_ALARM) is not None
        if service == "http" and updating:
            raise Refused(
                400,
                "Unable to apply http service parameters. A device image update operation is in progress. "
                "Please try again later when the operation is complete.",
            )
        return 200, None


def _page(rows: list[Row], query: Mapping[str, str]) -> list[Row]:
    """Return the part of ``rows`` that marker, limit, sort_key and sort_dir ask for."""
    key = query.get("sort_key", "id")
    if rows and key not in rows[0]:
        raise Refused(400, f"Sort key {key} is invalid")
    rows = sorted(rows, key=lambda row: (row[key] is not None, row[key]))
    if query.get("sort_dir", "asc") == "desc":
        rows.reverse()
    marker = query.get("marker")
    if marker is not None:
        place = next((index for index, row in enumerate(rows) if row["uuid"] == marker), None)
        if place is None:
            raise Refused(404, f"Device image {marker} could not be found.")
        rows = rows[place + 1 :]
    limit = query.get("limit", "")
    if limit and not limit.isdecimal():
        raise Refused(400, f"Invalid input for field/attribute limit. Value: '{limit}'.")
    return rows[: int(limit)] if limit and int(limit) else rows


def _label_list(body: Any) -> list[Mapping[str, str]]:
    if body is None:
        return []
    if not isinstance(body, list) or not all(isinstance(entry, dict) for entry in body):
        raise Refused(400, "Invalid input for field/attribute body: a list of labels is expected.")
    return [{str(key): str(value) for key, value in entry.items()} for entry in body]


def _boolean_query(query: Mapping[str, str], name: str) -> bool:
    try:
        return boolean(query.get(name, "False"))
    except ValueError:
        raise Refused(400, f"Invalid input for field/attribute {name}. Value: '{query[name]}'.") from None
