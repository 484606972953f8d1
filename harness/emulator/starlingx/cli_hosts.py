"""The commands of `system` about hosts and their PCI devices (section 2.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.emulator.starlingx.cli_client import CommandError, NotFound
from harness.emulator.starlingx.cli_session import Command, Given, Session
from harness.emulator.starlingx.views import FPGA_CLASSES

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
_HOST_LIST: Final = ("id", "hostname", "personality", "administrative", "operational", "availability")
#: What is shown of a host, from the public source of the command; what is not emulated of it is empty.
_HOST: Final = (
    "id", "uuid", "personality", "hostname", "invprovision", "administrative", "operational", "availability",
    "task", "action", "mgmt_mac", "mgmt_ip", "serialid", "capabilities", "bm_type", "bm_username", "bm_ip",
    "config_applied", "config_target", "config_status", "location", "uptime", "reserved", "created_at",
    "updated_at", "boot_device", "rootfs_device", "install_output", "console", "tboot",
    "vim_progress_status", "sw_version", "install_state", "install_state_info", "inv_state",
    "clock_synchronization", "device_image_update", "reboot_needed",
)  # fmt: skip
_FORMAT: Final = ("column=", "format=")
_UUID_LENGTH: Final = 36


def host_of(session: Session, name: str) -> dict[str, Any]:
    """Return a host by its name, id or uuid. :raises CommandError: there is none."""
    if name.isdecimal() or (len(name) == _UUID_LENGTH and name.count("-") == 4):
        try:
            return dict(session.ask("GET", "ihosts", name))
        except NotFound as error:
            raise CommandError(f"host not found: {name}") from error
    for host in session.ask("GET", "ihosts")["ihosts"]:
        if name == host["hostname"]:
            return dict(host)
    raise CommandError(f"host not found: {name}")


def place_of(session: Session, host: Mapping[str, Any], given: Given, complaint: str) -> dict[str, Any]:
    """Return the device of ``host`` that the second word names. :raises CommandError: there is none."""
    name = given.words[1]
    for device in session.ask("GET", "ihosts", host["uuid"], "pci_devices")["pci_devices"]:
        if name in (device["name"], device["pciaddr"]):
            return dict(device)
    raise CommandError(complaint.format(host=given.words[0], device=name, id=host["id"]))


# -- devices --------------------------------------------------------------------------------------

_NO_DEVICE: Final = "PCI devices not found: host {id} device {device}"


def _device_list(session: Session, given: Given) -> str:
    host = host_of(session, given.words[0])
    found = session.ask("GET", "ihosts", host["uuid"], "pci_devices")["pci_devices"]
    shown = [device for device in found if device["enabled"] or given.has("-a", "--all")]
    shown.sort(key=lambda device: str(device["pciaddr"]))
    return session.table(tuple(_DEVICE), [[device[name] for name in _DEVICE.values()] for device in shown])


def _device_table(session: Session, device: Mapping[str, Any]) -> str:
    more = (*_DEVICE_MORE, *(_FPGA if device["pclass_id"] in FPGA_CLASSES else ()))
    names = {**_DEVICE, **dict(zip(more, more, strict=True))}
    return session.properties((label, device.get(name, "")) for label, name in names.items())


def _device_show(session: Session, given: Given) -> str:
    host = host_of(session, given.words[0])
    return _device_table(session, place_of(session, host, given, _NO_DEVICE))


#: Option of host-device-modify -> the field that it is for.
_MODIFIED: Final = {
    "--name": "name", "-n": "name", "--enabled": "enabled", "-e": "enabled",
    "--driver": "driver", "-d": "driver", "--vf-driver": "sriov_vf_driver", "-v": "sriov_vf_driver",
    "--num-vfs": "sriov_numvfs", "-N": "sriov_numvfs",
}  # fmt: skip


def _device_modify(session: Session, given: Given) -> str:
    """Change a device; where nothing is to be changed, say nothing at all. All values are sent as text."""
    host = host_of(session, given.words[0])
    device = place_of(session, host, given, _NO_DEVICE)
    values = {_MODIFIED[option]: given_values[-1] for option, given_values in given.options.items()}
    patch = [{"op": "replace", "path": f"/{name}", "value": value} for name, value in values.items()]
    if not patch:
        return ""
    try:
        return _device_table(session, session.ask("PATCH", "pci_devices", device["uuid"], body=patch))
    except NotFound as error:
        place = f"host {given.words[0]} device {given.words[1]}"
        raise CommandError(f"Device update failed: {place} : update {patch}") from error


# -- hosts ----------------------------------------------------------------------------------------


def _host_list(session: Session, given: Given) -> str:
    return session.several(session.ask("GET", "ihosts")["ihosts"], _HOST_LIST, given)


def _host_fields(host: Mapping[str, Any]) -> tuple[str, ...]:
    subfunctions = () if host["subfunctions"] == host["personality"] else ("subfunctions",)
    return (*_HOST, *subfunctions, *(("peers",) if host["peers"] else ()))


def _host_show(session: Session, given: Given) -> str:
    host = host_of(session, given.words[0])
    return session.one(host, _host_fields(host), given)


def _answered(session: Session, host: Mapping[str, Any]) -> str:
    """Return the table of a host that was the answer to a change.

    It is asked for again, by its integer id, where it lacks something that is shown: no such object counts
    as a whole one (section 2.7).
    """
    fields = _host_fields(host)
    shown = dict(host)
    if any(name not in host for name in fields):
        shown |= session.ask("GET", "ihosts", str(host["id"]))
    return session.one(shown, fields)


def _update(session: Session, given: Given, act: str) -> str:
    host = host_of(session, given.words[0])
    try:
        return _answered(session, session.ask("POST", "ihosts", host["uuid"], act))
    except NotFound as error:
        raise CommandError(f"Device image update failed: host {given.words[0]}") from error


def _image_update(session: Session, given: Given) -> str:
    return _update(session, given, "device_image_update")


def _image_update_abort(session: Session, given: Given) -> str:
    return _update(session, given, "device_image_update_abort")


def _action(session: Session, given: Given, action: str) -> str:
    host = host_of(session, given.words[0])
    name = f"force-{action}" if given.has("-f", "--force") else action
    patch = [{"op": "replace", "path": "/action", "value": name}]
    try:
        return _answered(session, session.ask("PATCH", "ihosts", str(host["id"]), body=patch))
    except NotFound as error:
        raise CommandError(f"host not found: {given.words[0]}") from error


def _lock(session: Session, given: Given) -> str:
    return _action(session, given, "lock")


def _unlock(session: Session, given: Given) -> str:
    return _action(session, given, "unlock")


def _swact(session: Session, given: Given) -> str:
    return _action(session, given, "swact")


def _reboot(session: Session, given: Given) -> str:
    return _action(session, given, "reboot")


_FORCE: Final = (("force",), "f")
HOST_COMMANDS: Final = {
    "host-device-list": Command(_device_list, 1, ("all",), "a"),
    "host-device-show": Command(_device_show, 2),
    "host-device-modify": Command(
        _device_modify,
        2,
        ("name=", "enabled="),
        "n:e:",
        earlier=("driver=", "vf-driver=", "num-vfs="),
        earlier_short="d:v:N:",
    ),
    "host-device-image-update": Command(_image_update, 1),
    "host-device-image-update-abort": Command(_image_update_abort, 1),
    "host-list": Command(_host_list, 0, _FORMAT),
    "host-show": Command(_host_show, 1, _FORMAT),
    "host-lock": Command(_lock, 1, *_FORCE),
    "host-unlock": Command(_unlock, 1, *_FORCE),
    "host-swact": Command(_swact, 1, *_FORCE),
    "host-reboot": Command(_reboot, 1),
}
