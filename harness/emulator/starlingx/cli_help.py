"""What `system` and `fm` say of themselves: their help, that of one command, their version.

The description of `system` is that of its public source. Inferred: the rest of the frame, the words about one
command, and the version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from harness.emulator.starlingx.cli_session import Command

#: Of both clients; what a release says is not known.
VERSION: Final = "1.0"
_OF: Final = {
    "system": "Command-line interface for System Inventory and Maintenance",
    "fm": "Command-line interface for Fault Management",
}
_HELP: Final = ("-h", "--help")
_COLUMN: Final = 36
#: Command -> its words, and what it does.
_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "alarm-list": ("", "List all active alarms."),
    "device-image-apply": ("<device_image_uuid> [<name=value> ...]", "Apply the device image."),
    "device-image-delete": ("<device_image_uuid>", "Delete a device image."),
    "device-image-list": ("", "List device images."),
    "device-image-remove": ("<device_image_uuid> [<name=value> ...]", "Remove the device image."),
    "device-image-show": ("<device_image_uuid>", "Show device image details."),
    "device-image-state-list": ("", "List image to device mapping with status."),
    "device-image-upload": (
        "<bitstream_file> <bitstream_type> <pci_vendor> <pci_device>",
        "Upload a device image.",
    ),
    "device-label-list": ("", "List all device labels."),
    "help": ("[<subcommand>]", "Display help about this program or one of its subcommands."),
    "host-device-image-update": ("<hostname or id>", "Update device image on a host."),
    "host-device-image-update-abort": ("<hostname or id>", "Abort device image update on a host."),
    "host-device-label-assign": (
        "<hostname or id> <pci device name or address> <name=value> [...]",
        "Assign a label to a device of a host.",
    ),
    "host-device-label-list": ("<hostname or id> <pci device name or address>", "List device labels."),
    "host-device-label-remove": (
        "<hostname or id> <pci device name or address> <name> [...]",
        "Remove a device label from a device of a host.",
    ),
    "host-device-list": ("<hostname or id>", "List devices."),
    "host-device-modify": ("<hostname or id> <pci device name or address>", "Modify device availability."),
    "host-device-show": ("<hostname or id> <pci device name or address>", "Show device attributes."),
    "host-list": ("", "List hosts."),
    "host-lock": ("<hostname or id>", "Lock a host."),
    "host-reboot": ("<hostname or id>", "Reboot a host."),
    "host-show": ("<hostname or id>", "Show host attributes."),
    "host-swact": ("<hostname or id>", "Switch activity away from this active host."),
    "host-unlock": ("<hostname or id>", "Unlock a host."),
    "registry-garbage-collect": ("", "Run the registry garbage collector."),
    "registry-image-delete": ("<image name and tag>", "Remove the specified container image."),
    "registry-image-list": ("", "List all container images in the local registry."),
    "registry-image-tags": ("<image name>", "List all tags of a container image."),
    "service-parameter-apply": ("<service>", "Apply the service parameters."),
}


class NoSuchCommand(Exception):
    """Help is asked for about a command that there is none of."""


def usage_of(client: str) -> str:
    """Return the line that also stands before complaints."""
    return f"usage: {client} [--version] [--debug] [-v] <subcommand> ...\n"


def help_asked(client: str, words: Sequence[str], commands: Mapping[str, Command]) -> str | None:
    """Return the help that ``words``, those behind global options, ask for; None where they ask for none.

    :raises NoSuchCommand: it is asked for about what is no command.
    """
    if not words or words[0] in _HELP or list(words) == ["help"]:
        return _help(client, commands)
    if words[0] in (*commands, "help") and any(word in _HELP for word in words[1:]):
        return _help_of(client, words[0], commands.get(words[0]))
    if words[0] == "help":
        if words[1] not in (*commands, "help"):
            raise NoSuchCommand(f"'{words[1]}' is not a valid subcommand")
        return _help_of(client, words[1], commands.get(words[1]))
    return None


def _help(client: str, commands: Mapping[str, Command]) -> str:
    names = sorted((*commands, "help"))
    return (
        f"{usage_of(client)}\n{_OF[client]}\n\nPositional arguments:\n  <subcommand>\n"
        + "".join(f"    {name:<{_COLUMN}}{_COMMANDS[name][1]}\n" for name in names)
        + "\nOptional arguments:\n"
        + f"  {'--version':<{_COLUMN}}  Show program's version number and exit.\n"
        + f"  {'--debug':<{_COLUMN}}  Print debugging output.\n"
        + f"  {'-v, --verbose':<{_COLUMN}}  Print more verbose output.\n"
        + f'\nSee "{client} help COMMAND" for help on a specific command.\n'
    )


def _help_of(client: str, name: str, command: Command | None) -> str:
    words, does = _COMMANDS[name]
    options = [f"--{option.rstrip('=')}{' VALUE' * option.endswith('=')}" for option in _options(command)]
    given = "".join(f" [{option}]" for option in options) + (f" {words}" if words else "")
    listed = "".join(f"  {option}\n" for option in options)
    return f"usage: {client} {name}{given}\n\n{does}\n" + (
        f"\nOptional arguments:\n{listed}" if listed else ""
    )


def _options(command: Command | None) -> tuple[str, ...]:
    return command.options if command else ()
