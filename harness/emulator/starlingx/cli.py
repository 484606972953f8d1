"""The `system` command of a controller, as far as images, labels and hosts go (section 2.7)."""

from __future__ import annotations

import getopt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.emulator.programs.base import Invocation
from harness.emulator.starlingx.cli_client import Client, CommandError, NotFound
from harness.emulator.starlingx.cli_tables import listing, properties, text_of
from harness.emulator.starlingx.views import FPGA_CLASSES

_TYPES: Final = ("root-key", "functional", "key-revocation")
_IMAGE: Final = (
    "uuid", "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature", "revoke_key_id",
    "name", "description", "image_version",
)  # fmt: skip
_BMC: Final = ("bmc", "retimer_included")
_APPLIED: Final = ("applied", "applied_labels")
_UPLOADED: Final = (
    "uuid", "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature", "revoke_key_id",
    "name", "description", "image_version", "bmc", "retimer_included",
)  # fmt: skip
#: Column of a device -> its field.
_DEVICE: Final = {
    "name": "name", "address": "pciaddr", "class id": "pclass_id", "vendor id": "pvendor_id",
    "device id": "pdevice_id", "class name": "pclass", "vendor name": "pvendor", "device name": "pdevice",
    "numa_node": "numa_node", "enabled": "enabled",
}  # fmt: skip
_DEVICE_MORE: Final = (
    "sriov_totalvfs", "sriov_numvfs", "sriov_vfs_pci_address", "sriov_vf_pdevice_id", "extra_info",
    "created_at", "updated_at",
)  # fmt: skip
_FPGA: Final = (
    "root_key", "revoked_key_ids", "boot_page", "bitstream_id", "bmc_build_version", "bmc_fw_version",
    "retimer_a_version", "retimer_b_version", "driver", "sriov_vf_driver",
)  # fmt: skip
_STATE_LABELS: Final = (
    "hostname", "PCI device address", "Device image uuid", "status", "Update start time", "updated_at",
)  # fmt: skip
_STATE_FIELDS: Final = (
    "hostname", "pciaddr", "image_uuid", "status", "update_start_time", "updated_at",
)  # fmt: skip
#: Of a terminal that does not say how wide it is.
_COLUMNS: Final = 80
_HOST_LIST: Final = ("id", "hostname", "personality", "administrative", "operational", "availability")
_GLOBAL: Final = {
    "--os-username": "OS_USERNAME",
    "--os-password": "OS_PASSWORD",
    "--os-auth-url": "OS_AUTH_URL",
    "--os-region-name": "OS_REGION_NAME",
    "--os-project-name": "OS_PROJECT_NAME",
    "--os-endpoint-type": "OS_ENDPOINT_TYPE",
}
Options = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Command:
    """One command: its long options, the least of its words, and what carries it out."""

    act: Callable[[_System, list[str], Options], str]
    least: int = 0
    options: tuple[str, ...] = ()
    short: str = ""


class _System:
    """One run of the command. ``python2``: of the release that had it, which knew no BMC images either."""

    def __init__(self, run: Invocation, client: Client, *, python2: bool, terminal: int | None) -> None:
        """``terminal``: how many characters lists are wrapped for; None: they are not."""
        self._run = run
        self._terminal = terminal
        self._client = client
        self._python2 = python2
        self._bmc = () if python2 else _BMC

    def _rows(self, names: Sequence[str], found: list[dict[str, Any]]) -> list[list[str]]:
        return [[self._text(entry.get(name, "")) for name in names] for entry in found]

    def _text(self, value: Any) -> str:
        return text_of(value, python2=self._python2)

    def _list(self, labels: Sequence[str], rows: Sequence[Sequence[str]], fields: Sequence[str] = ()) -> str:
        return listing(labels, fields or labels, rows, self._terminal)

    # -- images ---------------------------------------------------------------------------------

    def image_list(self, words: list[str], options: Options) -> str:
        names = (*_IMAGE, *self._bmc, *_APPLIED)
        found = self._client.ask("GET", "/device_images")["device_images"]
        found.sort(key=lambda image: image["bitstream_type"])
        return self._list(names, self._rows(names, found))

    def _image(self, image: Mapping[str, Any] | None) -> str:
        names = (*_IMAGE, *_APPLIED, *self._bmc)
        return properties((name, self._text((image or {}).get(name, ""))) for name in names)

    def image_show(self, words: list[str], options: Options) -> str:
        return self._image(self._client.ask("GET", f"/device_images/{words[0]}"))

    def image_upload(self, words: list[str], options: Options) -> str:
        file, kind, vendor, device = words[:4]
        if kind not in _TYPES:
            choices = ", ".join(map(repr, _TYPES))
            raise CommandError(f"argument <bitstream_type>: invalid choice: '{kind}' (choose from {choices})")
        try:
            content = self._run.vfs.read(self._run.path(file))
        except OSError as error:
            raise CommandError(f"Bitstream file does not exist: {file}") from error
        given: dict[str, str] = {"bitstream_type": kind, "pci_vendor": vendor, "pci_device": device}
        for name, value in options.items():
            key = {"-u": "uuid"}.get(name, name.removeprefix("--").replace("-", "_"))
            given[key] = value or "True"
        fields: dict[str, str] = {name: given[name] for name in _UPLOADED if name in given}
        failed = f"Device image not uploaded for {file}: "
        try:
            answer = self._client.upload(fields, file, content)
        except ValueError as error:
            text = "No JSON object could be decoded" if self._python2 else str(error)
            raise CommandError(failed + text) from error
        if answer.get("error"):
            raise CommandError(failed + answer["error"])
        return self._image(answer.get("device_image"))

    def _change(self, action: str, words: list[str]) -> str:
        labels = []
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if not equals:
                raise CommandError(f'Attributes must be a list of NAME=VALUE not "{word}"')
            labels.append({key: value})
        try:
            path = f"/device_images/{words[0]}?action={action}"
            return self._image(self._client.ask("PATCH", path, labels))
        except NotFound as error:
            raise CommandError(f"Device image {action} failed") from error

    def image_apply(self, words: list[str], options: Options) -> str:
        return self._change("apply", words)

    def image_remove(self, words: list[str], options: Options) -> str:
        return self._change("remove", words)

    def image_delete(self, words: list[str], options: Options) -> str:
        self._client.ask("DELETE", f"/device_images/{words[0]}")
        return f"Deleted device image: {words[0]}\n"

    def state_list(self, words: list[str], options: Options) -> str:
        rows = []
        for state in self._client.ask("GET", "/device_image_state")["device_image_state"]:
            device = self._client.ask("GET", f"/pci_devices/{state['pcidevice_uuid']}")
            host = self._client.ask("GET", f"/ihosts/{state['host_uuid']}")
            tail = [state[name] for name in ("image_uuid", "status", "update_start_time", "updated_at")]
            rows.append([self._text(cell) for cell in (host["hostname"], device["pciaddr"], *tail)])
        rows.sort(key=lambda row: row[1])
        return self._list(_STATE_LABELS, rows, _STATE_FIELDS)

    # -- labels ---------------------------------------------------------------------------------

    def _label_table(self, rows: list[list[str]]) -> str:
        return self._list(("hostname", "PCI device name", "label key", "label value"), rows)

    def label_list(self, words: list[str], options: Options) -> str:
        rows = []
        for label in self._client.ask("GET", "/device_labels")["device_labels"]:
            place = ["", ""]
            if label["pcidevice_uuid"]:
                device = self._client.ask("GET", f"/pci_devices/{label['pcidevice_uuid']}")
                place = [
                    self._client.ask("GET", f"/ihosts/{label['host_uuid']}")["hostname"],
                    device["name"],
                ]
            rows.append([*place, label["label_key"], label["label_value"]])
        return self._label_table(rows)

    def _labels_of(self, words: list[str]) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
        host, device = self._place(words, "PCI device not found: host {host} device {device}")
        labels = self._client.ask("GET", "/device_labels")["device_labels"]
        return host, device, [label for label in labels if label["pcidevice_uuid"] == device["uuid"]]

    def host_label_list(self, words: list[str], options: Options) -> str:
        host, device, labels = self._labels_of(words)
        place = [host["hostname"], device["name"]]
        return self._label_table([[*place, label["label_key"], label["label_value"]] for label in labels])

    def host_label_assign(self, words: list[str], options: Options) -> str:
        _, device = self._place(words, "PCI device not found: host {host} device {device}")
        body = []
        for word in words[2:]:
            key, equals, value = word.partition("=")
            if not equals:
                raise CommandError(f'Attributes must be a list of NAME=VALUE not "{word}"')
            body.append({key: value})
        body.append({"pcidevice_uuid": device["uuid"]})
        path = f"/device_labels?overwrite={'--overwrite' in options}"
        shown = []
        for label in self._client.ask("POST", path, body)["device_labels"]:
            found = self._client.ask("GET", f"/device_labels/{label['uuid']}")
            shown.append(properties((name, found[name]) for name in ("uuid", "label_key", "label_value")))
        return "".join(shown)

    def host_label_remove(self, words: list[str], options: Options) -> str:
        shown = []
        for key in words[2:]:
            _, _, labels = self._labels_of(words)
            for label in labels:
                if label["label_key"] == key:
                    self._client.ask("DELETE", f"/device_labels/{label['uuid']}")
                    shown.append(f"Deleted device label {key} for host {words[0]} device {words[1]}\n")
        return "".join(shown)

    # -- hosts ----------------------------------------------------------------------------------

    def _host(self, name: str) -> dict[str, Any]:
        for host in self._client.ask("GET", "/ihosts")["ihosts"]:
            if name in (host["hostname"], host["uuid"], str(host["id"])):
                return dict(host)
        raise CommandError(f"host not found: {name}")

    def _place(self, words: list[str], complaint: str) -> tuple[dict[str, Any], dict[str, Any]]:
        host = self._host(words[0])
        for device in self._client.ask("GET", f"/ihosts/{host['uuid']}/pci_devices")["pci_devices"]:
            if words[1] in (device["name"], device["pciaddr"]):
                return host, device
        raise CommandError(complaint.format(host=words[0], device=words[1], id=host["id"]))

    def device_list(self, words: list[str], options: Options) -> str:
        host = self._host(words[0])
        found = self._client.ask("GET", f"/ihosts/{host['uuid']}/pci_devices")["pci_devices"]
        shown = [device for device in found if device["enabled"] or options.keys() & {"-a", "--all"}]
        return self._list(tuple(_DEVICE), self._rows(tuple(_DEVICE.values()), shown))

    def device_show(self, words: list[str], options: Options) -> str:
        _, device = self._place(words, "PCI devices not found: host {id} device {device}")
        more = (*_DEVICE_MORE, *(_FPGA if device["pclass_id"] in FPGA_CLASSES else ()))
        names = {**_DEVICE, **dict(zip(more, more, strict=True))}
        return properties((label, self._text(device.get(name, ""))) for label, name in names.items())

    def host_list(self, words: list[str], options: Options) -> str:
        return self._list(_HOST_LIST, self._rows(_HOST_LIST, self._client.ask("GET", "/ihosts")["ihosts"]))

    def _host_table(self, host: Mapping[str, Any]) -> str:
        return properties((name, self._text(host[name])) for name in sorted(host))

    def host_show(self, words: list[str], options: Options) -> str:
        return self._host_table(self._host(words[0]))

    def _host_act(self, words: list[str], act: str) -> str:
        host = self._host(words[0])
        try:
            return self._host_table(self._client.ask("POST", f"/ihosts/{host['uuid']}/{act}"))
        except NotFound as error:
            raise CommandError(f"Device image update failed: host {words[0]}") from error

    def host_update(self, words: list[str], options: Options) -> str:
        return self._host_act(words, "device_image_update")

    def host_abort(self, words: list[str], options: Options) -> str:
        return self._host_act(words, "device_image_update_abort")

    def _host_patch(self, words: list[str], action: str) -> str:
        host = self._host(words[0])
        patch = [{"op": "replace", "path": "/action", "value": action}]
        return self._host_table(self._client.ask("PATCH", f"/ihosts/{host['uuid']}", patch))

    def host_lock(self, words: list[str], options: Options) -> str:
        return self._host_patch(words, "force-lock" if options.keys() & {"-f", "--force"} else "lock")

    def host_unlock(self, words: list[str], options: Options) -> str:
        return self._host_patch(words, "unlock")

    def host_reboot(self, words: list[str], options: Options) -> str:
        return self._host_patch(words, "reboot")


_UPLOAD_OPTIONS: Final = (
    "bitstream-id=", "key-signature=", "revoke-key-id=", "name=", "description=", "image-version=", "uuid=",
)  # fmt: skip
_COMMANDS: Final = {
    "device-image-list": _Command(_System.image_list),
    "device-image-show": _Command(_System.image_show, 1),
    "device-image-upload": _Command(
        _System.image_upload, 4, (*_UPLOAD_OPTIONS, "bmc", "retimer-included"), "u:"
    ),
    "device-image-apply": _Command(_System.image_apply, 1),
    "device-image-remove": _Command(_System.image_remove, 1),
    "device-image-delete": _Command(_System.image_delete, 1),
    "device-image-state-list": _Command(_System.state_list),
    "device-label-list": _Command(_System.label_list),
    "host-device-label-list": _Command(_System.host_label_list, 2),
    "host-device-label-assign": _Command(_System.host_label_assign, 3, ("overwrite",)),
    "host-device-label-remove": _Command(_System.host_label_remove, 3),
    "host-device-list": _Command(_System.device_list, 1, ("all",), "a"),
    "host-device-show": _Command(_System.device_show, 2),
    "host-device-image-update": _Command(_System.host_update, 1),
    "host-device-image-update-abort": _Command(_System.host_abort, 1),
    "host-list": _Command(_System.host_list),
    "host-show": _Command(_System.host_show, 1),
    "host-lock": _Command(_System.host_lock, 1, ("force",), "f"),
    "host-unlock": _Command(_System.host_unlock, 1),
    "host-reboot": _Command(_System.host_reboot, 1),
}


def run_system(run: Invocation, release: str) -> int:
    """Run the command as a release has it; return its exit code."""
    python2 = release == "stx-2020-07"
    env, words = dict(run.env), run.argv[1:]
    while words and words[0].startswith("--"):
        name, equals, value = words.pop(0).partition("=")
        if name in _GLOBAL and (equals or words):
            env[_GLOBAL[name]] = value if equals else words.pop(0)
    command = _COMMANDS.get(words[0]) if words else None
    if command is None:
        return _usage(run, f"argument <subcommand>: invalid choice: '{(words or [''])[0]}'")
    try:
        long = [*command.options, "nowrap", *(() if python2 else ("yes",))]
        pairs, rest = getopt.gnu_getopt(words[1:], command.short, long)
    except getopt.GetoptError as error:
        return _usage(run, str(error))
    if len(rest) < command.least:
        return _usage(run, "too few arguments")
    options = {name: value for name, value in pairs if name not in ("--nowrap", "--yes")}
    columns = env.get("COLUMNS", "")
    wide = int(columns) if columns.isdecimal() else _COLUMNS
    terminal = None if any(name == "--nowrap" for name, _ in pairs) else wide
    try:
        session = _System(run, Client(env), python2=python2, terminal=terminal)
        shown = command.act(session, rest, options)
    except CommandError as error:
        run.err(f"{error}\n")
        return 1
    run.out(shown)
    return 0


def _usage(run: Invocation, problem: str) -> int:
    run.err(f"usage: system [--version] [--debug] [-v] <subcommand> ...\nsystem: error: {problem}\n")
    return 2
