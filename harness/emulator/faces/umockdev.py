"""An emulated host's devices as a umockdev description, for programs that only ask udev and only read.

Whatever starts or steers an update is left out: umockdev's attributes are plain files, so that a flasher
would write to them, see no error and report a success that never was.
"""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Iterator, Mapping

from harness.emulator.faces.devices import devices
from harness.emulator.vfs import Attribute, Directory, Link, Vfs

_LEFT_OUT = {"firmware", "control"}
_BINARY = {"config"}
_OWN_LINKS = {"subsystem"}  # umockdev makes them itself


def description(files: Vfs) -> str:
    """Return every device of ``files``, parents first, in the form of `umockdev-record`."""
    shown = ((path, properties) for path, properties in devices(files).items() if is_shown(path))
    return "\n".join(device_description(files, path, properties) for path, properties in shown)


def device_description(files: Vfs, path: str, properties: Mapping[str, str]) -> str:
    """Return the description of the one device at ``path`` below ``/sys``."""
    lines = [f"P: {path}"]
    if "DEVNAME" in properties:
        lines.append(f"N: {properties['DEVNAME'].removeprefix('/dev/')}")
    lines += [f"E: {name}={value}" for name, value in properties.items() if name != "DEVNAME"]
    lines += _attributes(files, f"/sys{path}", "")
    return "\n".join(lines) + "\n"


def is_shown(path: str) -> bool:
    """Return whether the device at ``path`` is among those that are described."""
    return not _LEFT_OUT & set(path.split("/"))


def _attributes(files: Vfs, device: str, below: str) -> Iterator[str]:
    """Yield the attributes and links of ``device``, also from its directories that are no devices."""
    folder = posixpath.join(device, below) if below else device
    for name in files.listdir(folder):
        path, relative = f"{folder}/{name}", posixpath.join(below, name)
        node = files.node(path, follow=False)
        if isinstance(node, Directory):
            if (
                name not in _LEFT_OUT
                and not files.exists(f"{path}/uevent")
                and not _leads_to_devices(files, path)
            ):
                yield from _attributes(files, device, relative)
        elif isinstance(node, Link):
            if name not in _OWN_LINKS:
                yield f"L: {relative}={node.target}"
        elif isinstance(node, Attribute) and node.mode & stat.S_IRUSR and name != "uevent":
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


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
