"""The commands of `system` about device images, what became of them, and labels (section 2.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.emulator.starlingx.cli_client import CommandError, NotFound
from harness.emulator.starlingx.cli_hosts import host_of, place_of
from harness.emulator.starlingx.cli_session import Command, Given, Session

_TYPES: Final = ("root-key", "functional", "key-revocation")
_IMAGE: Final = (
    "uuid", "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature", "revoke_key_id",
    "name", "description", "image_version",
)  # fmt: skip
#: The release that ran with Python 2 did not know them.
_BMC: Final = ("bmc", "retimer_included")
_APPLIED: Final = ("applied", "applied_labels")
#: Fields of an upload, in their order.
_UPLOADED: Final = (
    "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature", "revoke_key_id", "name",
    "description", "image_version", "uuid", "bmc", "retimer_included",
)  # fmt: skip
_UPLOAD_OPTIONS: Final = (
    "bitstream-id=", "key-signature=", "revoke-key-id=", "name=", "description=", "image-version=", "uuid=",
    "bmc", "retimer-included",
)  # fmt: skip
_STATE_LABELS: Final = (
    "hostname", "PCI device address", "Device image uuid", "status", "Update start time", "updated_at",
)  # fmt: skip
_STATE_FIELDS: Final = ("hostname", "pciaddr", "image_uuid", "status", "update_start_time", "updated_at")
_LABEL_COLUMNS: Final = ("hostname", "PCI device name", "label key", "label value")
_NO_DEVICE: Final = "PCI device not found: host {host} device {device}"


def _image_list(session: Session, given: Given) -> str:
    names = (*_IMAGE, *(() if session.python2 else _BMC), *_APPLIED)
    found = session.ask("GET", "device_images")["device_images"]
    found.sort(key=lambda image: image["bitstream_type"])
    return session.table(names, [[image.get(name, "") for name in names] for image in found])


def _shown(session: Session, image: Mapping[str, Any] | None) -> str:
    names = (*_IMAGE, *_APPLIED, *(() if session.python2 else _BMC))
    return session.properties((name, (image or {}).get(name, "")) for name in names)


def _image_show(session: Session, given: Given) -> str:
    return _shown(session, session.ask("GET", "device_images", given.words[0]))


def _image_upload(session: Session, given: Given) -> str:
    """Upload a file. The status of the answer is not looked at: without an object, the table is empty."""
    file, kind, vendor, device = given.words[:4]
    if kind not in _TYPES:
        choices = ", ".join(map(repr, _TYPES))
        raise CommandError(f"argument <bitstream_type>: invalid choice: '{kind}' (choose from {choices})")
    try:
        content = session.run.vfs.read(session.run.path(file))
    except OSError as error:
        raise CommandError(f"Bitstream file does not exist: {file}") from error
    told: dict[str, str] = {"bitstream_type": kind, "pci_vendor": vendor, "pci_device": device}
    for name, values in given.options.items():
        key = {"-u": "uuid"}.get(name, name.removeprefix("--").replace("-", "_"))
        told[key] = values[-1] or "True"
    failed = f"Device image not uploaded for {file}: "
    try:
        answer = session.upload({name: told[name] for name in _UPLOADED if name in told}, file, content)
    except ValueError as error:
        text = "No JSON object could be decoded" if session.python2 else str(error)
        raise CommandError(failed + text) from error
    if answer.get("error"):
        raise CommandError(failed + answer["error"])
    return _shown(session, answer.get("device_image"))


def _changed(session: Session, given: Given, action: str) -> str:
    labels = given.labels(1)
    try:
        image = session.ask("PATCH", "device_images", given.words[0], query={"action": action}, body=labels)
    except NotFound as error:
        raise CommandError(f"Device image {action} failed") from error
    return _shown(session, image)


def _image_apply(session: Session, given: Given) -> str:
    return _changed(session, given, "apply")


def _image_remove(session: Session, given: Given) -> str:
    return _changed(session, given, "remove")


def _image_delete(session: Session, given: Given) -> str:
    session.ask("DELETE", "device_images", given.words[0])
    return f"Deleted device image: {given.words[0]}\n"


def _state_list(session: Session, given: Given) -> str:
    rows = []
    for state in session.ask("GET", "device_image_state")["device_image_state"]:
        device = session.ask("GET", "pci_devices", str(state["pcidevice_uuid"]))
        host = session.ask("GET", "ihosts", str(state["host_uuid"]))
        tail = [state[name] for name in _STATE_FIELDS[2:]]
        rows.append([host["hostname"], device["pciaddr"], *tail])
    rows.sort(key=lambda row: str(row[1]))
    return session.table(_STATE_LABELS, rows, _STATE_FIELDS)


# -- labels ---------------------------------------------------------------------------------------


def _label_list(session: Session, given: Given) -> str:
    rows = []
    for label in session.ask("GET", "device_labels")["device_labels"]:
        device = host = ""
        if label["pcidevice_uuid"]:
            device = session.ask("GET", "pci_devices", label["pcidevice_uuid"])["name"]
            host = session.ask("GET", "ihosts", label["host_uuid"])["hostname"]
        rows.append([host, device, label["label_key"], label["label_value"]])
    return session.table(_LABEL_COLUMNS, rows)


def _labels_of(session: Session, device: Mapping[str, Any]) -> list[dict[str, Any]]:
    labels = session.ask("GET", "device_labels")["device_labels"]
    return [label for label in labels if label["pcidevice_uuid"] == device["uuid"]]


def _host_label_list(session: Session, given: Given) -> str:
    host = host_of(session, given.words[0])
    device = place_of(session, host, given, _NO_DEVICE)
    place = (host["hostname"], device["name"])
    labels = _labels_of(session, device)
    return session.table(
        _LABEL_COLUMNS, [[*place, label["label_key"], label["label_value"]] for label in labels]
    )


def _host_label_assign(session: Session, given: Given) -> str:
    host = host_of(session, given.words[0])
    device = place_of(session, host, given, _NO_DEVICE)
    body = [*given.labels(2), {"pcidevice_uuid": device["uuid"]}]
    query = {"overwrite": str(given.has("--overwrite"))}
    shown = []
    for label in session.ask("POST", "device_labels", query=query, body=body)["device_labels"]:
        found = session.ask("GET", "device_labels", label["uuid"])
        shown.append(session.properties((name, found[name]) for name in ("uuid", "label_key", "label_value")))
    return "".join(shown)


def _host_label_remove(session: Session, given: Given) -> str:
    host = host_of(session, given.words[0])
    device = place_of(session, host, given, _NO_DEVICE)
    shown = []
    for key in given.words[2:]:
        for label in _labels_of(session, device):
            if label["label_key"] == key:
                session.ask("DELETE", "device_labels", label["uuid"])
                shown.append(
                    f"Deleted device label {key} for host {given.words[0]} device {given.words[1]}\n"
                )
    return "".join(shown)


IMAGE_COMMANDS: Final = {
    "device-image-list": Command(_image_list),
    "device-image-show": Command(_image_show, 1),
    "device-image-upload": Command(_image_upload, 4, _UPLOAD_OPTIONS, "u:"),
    "device-image-apply": Command(_image_apply, 1),
    "device-image-remove": Command(_image_remove, 1),
    "device-image-delete": Command(_image_delete, 1),
    "device-image-state-list": Command(_state_list),
    "device-label-list": Command(_label_list),
    "host-device-label-list": Command(_host_label_list, 2),
    "host-device-label-assign": Command(_host_label_assign, 3, ("overwrite",)),
    "host-device-label-remove": Command(_host_label_remove, 3),
}
