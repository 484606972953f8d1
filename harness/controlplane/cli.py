"""The way into a StarlingX system by its own command over SSH (fact sheet of StarlingX, section 2.7).

The command's exit code is no success: an upload that was refused can exit with 0 and an empty table, and any
command can exit with 0 and say nothing.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from harness.controlplane.active import Controllers
from harness.controlplane.changes import Change, PermitMaker
from harness.controlplane.command import Command
from harness.controlplane.covered import COMMANDS
from harness.controlplane.protocol import (
    Alarm,
    DeviceImage,
    DeviceImageState,
    DeviceLabel,
    HostState,
    PciDevice,
    Said,
    Upload,
)
from harness.controlplane.reading import from_table
from harness.controlplane.tables import Row, only_table, parse_tables
from harness.controlplane.vim import SHOW, VimStrategy, from_output
from harness.errors import (
    ControlPlaneError,
    HarnessBug,
    NoSuchRecordError,
)
from harness.hosts.protocol import Host
from harness.judgement.records import Evidence

#: The file that is to be uploaded is another one by now.
_CHANGED: Final = 76
_UPLOAD_DEADLINE: Final = 600.0


class CliWay:
    """Asks one system by its command on a controller.

    :param name: the controller's name in the inventory. :param hosts: of which one is the active controller.
    :param region: of the system, where it is not the one of the controller's own login.
    :param deadline: seconds for one command.
    """

    reporter: Final = "system"

    def __init__(self, name: str, *hosts: Host, region: str = "", deadline: float = 60.0) -> None:
        self.name = name
        controllers = Controllers(name, hosts)
        program = ("system", *(("--os-region-name", region) if region else ()))
        self._system = Command(name, controllers, program, deadline=deadline)
        self._fm = Command(name, controllers, ("fm",), deadline=deadline)
        self._sw_manager = Command(name, controllers, ("sw-manager",), deadline=deadline)
        self._asked = self._system

    @property
    def evidence(self) -> Evidence:
        """The last answer, raw."""
        return self._asked.evidence

    def one_look(self) -> AbstractContextManager[None]:
        """Each thing is one command, and none is asked twice."""
        return nullcontext()

    def close(self) -> None:
        """Release the connections to the controllers; may be called twice."""
        self._system.close()

    # -- reading --------------------------------------------------------------------------------------

    def images(self) -> list[DeviceImage]:
        """Return all images."""
        return [from_table(DeviceImage, row) for row in self._listing("device-image-list")]

    def image(self, ident: str) -> DeviceImage:
        """Return one image by uuid, id or name."""
        return from_table(DeviceImage, self._properties("device-image-show", ident))

    def states(self) -> list[DeviceImageState]:
        """Return what became of each image on each device."""
        return [from_table(DeviceImageState, row) for row in self._listing("device-image-state-list")]

    def labels(self) -> list[DeviceLabel]:
        """Return all labels."""
        return [_label(row) for row in self._listing("device-label-list")]

    def devices(self, hostname: str) -> list[PciDevice]:
        """Return the PCI devices of a host, disabled ones too."""
        rows = self._listing("host-device-list", "-a", hostname)
        return [from_table(PciDevice, row, hostname=hostname) for row in rows]

    def device(self, hostname: str, device: str) -> PciDevice:
        """Return one PCI device of a host by name or address."""
        shown = self._properties("host-device-show", hostname, device)
        return from_table(PciDevice, shown, hostname=hostname)

    def hosts(self) -> list[HostState]:
        """Return all hosts; a list shows less of them than :meth:`host`."""
        return [from_table(HostState, row) for row in self._listing("host-list")]

    def host(self, hostname: str) -> HostState:
        """Return one host by its hostname."""
        return from_table(HostState, self._properties("host-show", hostname))

    def alarms(self) -> list[Alarm]:
        """Return the alarms that are set, as `fm` shows them: without blanks at the end of a text."""
        self._asked = self._fm
        shown = self._fm.ask("alarm-list", "--nowrap", "--uuid")
        return [from_table(Alarm, row) for row in only_table(shown).rows] if shown.strip() else []

    def vim_strategy(self) -> list[VimStrategy]:
        """Return the firmware strategy of the system's VIM, as `sw-manager` shows it; nothing for none."""
        self._asked = self._sw_manager
        return from_output(self._sw_manager.ask(*SHOW))

    # -- changing -------------------------------------------------------------------------------------

    def carry_out(self, change: Change, permits: PermitMaker) -> list[Said]:
        """Carry out a change once, by the one command that its permit covers."""
        self._asked = self._system
        if change.act == "image-upload":
            return [self._upload(change.image, permits)]
        if change.act == "label-remove":
            self._remove_labels(change, permits)
            return []
        command = [COMMANDS[change.act], *(("--overwrite",) if change.overwrite else ())]
        command += ["--force"] if change.force else []
        command += [change.target, *((change.device,) if change.device else ())]
        command += [f"{key}={value}" for key, value in change.labels]
        command += [] if change.enabled is None else ["--enabled", str(change.enabled).lower()]
        shown = self._system.change(command, permits)
        if change.act == "image-delete":
            if f"Deleted device image: {change.target}" not in shown.splitlines():
                raise self._system.no_success(command, shown)
            return []
        if change.act == "label-assign":
            return self._assigned(change, command, shown)
        row = only_table(shown).properties()
        if change.act in ("image-apply", "image-remove"):
            if row.get("uuid") != change.target:
                raise self._system.no_success(command, shown)
            return [from_table(DeviceImage, row)]
        if change.act == "device-modify":
            if row.get("enabled") != str(change.enabled):
                raise self._system.no_success(command, shown)
            return [from_table(PciDevice, row, hostname=change.target)]
        if row.get("hostname") != change.target:
            raise self._system.no_success(command, shown)
        return [from_table(HostState, row)]

    def _upload(self, image: Upload | None, permits: PermitMaker) -> DeviceImage:
        """Put the image on the controller, upload it from there, and remove it again.

        What was refused can exit with 0 and show a table without a uuid.
        """
        if image is None:
            raise HarnessBug("An upload without an image was to be carried out.")
        path = f"/tmp/hil-{uuid.uuid4()}.bin"
        digest = hashlib.sha256(image.content).hexdigest()
        form = image.form()
        command = [COMMANDS["image-upload"], path]
        command += [form.pop(name) for name in ("bitstream_type", "pci_vendor", "pci_device")]
        for name, value in form.items():
            option = f"--{name.replace('_', '-')}"
            if name in ("bmc", "retimer_included"):
                command += [option] if value == "True" else []
            else:
                command.append(f"{option}={value}")
        unchanged = f'[ "$(sha256sum <{path})" = "{digest}  -" ] || exit {_CHANGED}; '

        def upload(host: Host) -> str:
            host.put(image.content, path, permit=permits.write(host.name, path), deadline=_UPLOAD_DEADLINE)
            try:
                return self._system.change(
                    command, permits, host=host, before=unchanged, deadline=_UPLOAD_DEADLINE
                )
            finally:
                words = ["rm", "-f", path]
                host.run(words, permit=permits.command(host.name, words))

        tables = parse_tables(self._system.controllers.on_active(upload))
        row = tables[0].properties() if len(tables) == 1 else {}
        if row.get("uuid", "") in ("", "None"):
            raise ControlPlaneError(
                f"{self.name} did not take {image.filename}: the command ended well, and showed no uuid.",
                hint="The API refused it, and the command does not say why; ask the API itself.",
            )
        return from_table(DeviceImage, row)

    def _assigned(self, change: Change, command: Sequence[str], shown: str) -> list[Said]:
        """Return the new labels, of which each has a table of its own."""
        rows = [table.properties() for table in parse_tables(shown)]
        pairs = [(str(row.get("label_key")), str(row.get("label_value"))) for row in rows]
        if sorted(pairs) != sorted(change.labels):
            raise self._system.no_success(command, shown)
        return [
            from_table(DeviceLabel, {**row, "label key": row["label_key"], "label value": row["label_value"]})
            for row in rows
        ]

    def _remove_labels(self, change: Change, permits: PermitMaker) -> None:
        """Remove labels; one that was not there is passed over in silence, and one that stays may be, too."""
        here = (change.target, change.device)
        keys = [label.label_key for label in map(_label, self._listing("host-device-label-list", *here))]
        if missing := [key for key in change.keys if key not in keys]:
            raise NoSuchRecordError(
                f"{self.name}: {change.device} of {change.target} has no label {', '.join(missing)}.",
                hint=f"It has {', '.join(keys) or 'none'}.",
            )
        command = [COMMANDS[change.act], *here, *change.keys]
        shown = self._system.change(command, permits, silent=True)
        left = [label.label_key for label in map(_label, self._listing("host-device-label-list", *here))]
        if set(left) & set(change.keys):
            raise self._system.no_success(command, shown)

    # -- asking ---------------------------------------------------------------------------------------

    def _listing(self, *words: str) -> Sequence[Row]:
        self._asked = self._system
        shown = self._system.ask(words[0], "--nowrap", *words[1:])
        return only_table(shown).rows if shown.strip() else ()

    def _properties(self, *words: str) -> Row:
        self._asked = self._system
        return only_table(self._system.ask(*words)).properties()


def _label(row: Row) -> DeviceLabel:
    """Return the label of a row; a floating one has neither host nor device."""
    floating = {} if row.get("hostname") or row.get("PCI device name") else {"hostname": None, "device": None}
    return from_table(DeviceLabel, row, **floating)
