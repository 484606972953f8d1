"""An emulated host's devices as a umockdev description, for programs that only ask udev and only read.

What is there to be written to is left out, with all that stands beside it: umockdev's attributes are plain
files, so that a flasher would write to them, see no error and report a success that never was.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from harness.emulator.faces.devices import devices
from harness.emulator.vfs import Attribute, Directory, Link, Vfs

_BINARY = {"config"}
_OWN_LINKS = {"subsystem"}  # umockdev makes them itself


def description(files: Vfs) -> str:
    """Return every device of ``files``, parents first, in the form of `umockdev-record`."""
    found = (device_description(files, path, properties) for path, properties in devices(files).items())
    return "\n".join(filter(None, found))


def device_description(files: Vfs, path: str, properties: Mapping[str, str]) -> str:
    """Return the description of the one device at ``path`` below ``/sys``; empty where it is left out."""
    if _is_operated(files, f"/sys{path}"):
        return ""
    # No `N:` for a device's node: libumockdev ends the program when a device comes back to one.
    lines = [f"P: {path}", *(f"E: {name}={value}" for name, value in properties.items())]
    lines += _attributes(files, f"/sys{path}", "")
    return "\n".join(lines) + "\n"


def _attributes(files: Vfs, device: str, below: str) -> Iterator[str]:
    """Yield the attributes and links of ``device``, also from its directories that are no devices."""
    folder = posixpath.join(device, below) if below else device
    for name in files.listdir(folder):
        path, relative = f"{folder}/{name}", posixpath.join(below, name)
        node = files.node(path, follow=False)
        if isinstance(node, Directory):
            device_or_more = files.exists(f"{path}/uevent") or _leads_to_devices(files, path)
            if not device_or_more and not _is_operated(files, path):
                yield from _attributes(files, device, relative)
        elif isinstance(node, Link):
            if name not in _OWN_LINKS:
                yield f"L: {relative}={node.target}"
        elif (
            isinstance(node, Attribute) and node.show is not None and node.store is None and name != "uevent"
        ):
            try:
                content = node.text()
            except OSError:
                continue  # what cannot be read now is not there
            if name in _BINARY:
                yield f"H: {relative}={content.hex().upper()}"
            else:
                yield f"A: {relative}={_escaped(content.decode())}"


def _leads_to_devices(files: Vfs, path: str) -> bool:
    return any(files.exists(f"{path}/{name}/uevent") for name in files.listdir(path))


def _is_operated(files: Vfs, folder: str) -> bool:
    """Return whether programs write into ``folder`` to make a card do something (not so a PCI function)."""
    nodes = [files.node(f"{folder}/{name}", follow=False) for name in files.listdir(folder)]
    writable = any(isinstance(node, Attribute) and node.store is not None for node in nodes)
    return writable and not files.exists(f"{folder}/vendor")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
