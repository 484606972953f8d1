"""The devices of an emulated host as udev has them, and what it is told when one comes or goes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.emulator.host import EmulatedHost
from harness.emulator.vfs import Vfs


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """One event. ``path``: of the device below ``/sys``; ``properties``: what udev knows of it."""

    action: str
    path: str
    properties: Mapping[str, str]


def devices(files: Vfs) -> dict[str, dict[str, str]]:
    """Return path below ``/sys`` and properties of every device that ``files`` has, parents first."""
    found = {}
    for link in [*files.glob("/sys/bus/*/devices/*"), *files.glob("/sys/class/*/*")]:
        try:
            path = files.realpath(link).removeprefix("/sys")
            text = files.read(f"/sys{path}/uevent").decode()
        except OSError:
            continue  # it went while we looked
        properties = dict(line.split("=", 1) for line in text.splitlines())
        if "DEVNAME" in properties:
            properties["DEVNAME"] = f"/dev/{properties['DEVNAME']}"
        found[path] = {"SUBSYSTEM": link.split("/")[3], **properties}
    return dict(sorted(found.items()))


class Hotplug:
    """Tells subscribers which devices of ``host`` have come and gone whenever one of its cards moves."""

    def __init__(self, host: EmulatedHost) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, str]] = {}
        self._subscribers: list[Callable[[DeviceEvent], None]] = []
        for tree in host.trees.values():
            tree.card.on_change(self._changed)

    def subscribe(self, callback: Callable[[DeviceEvent], None]) -> None:
        """Have ``callback`` called for what happens from now on; it may not wait."""
        with self._lock:
            if not self._subscribers:
                self._known = devices(self._host.vfs)
            self._subscribers.append(callback)

    def unsubscribe(self, callback: Callable[[DeviceEvent], None]) -> None:
        """``callback`` is called no more."""
        with self._lock:
            self._subscribers.remove(callback)

    def _changed(self) -> None:
        with self._lock:
            if not self._subscribers:
                return
            before, self._known = self._known, devices(self._host.vfs)
            for path in reversed([path for path in before if path not in self._known]):
                self._tell(("unbind", "remove"), path, before[path])
            for path in [path for path in self._known if path not in before]:
                self._tell(("add", "bind"), path, self._known[path])

    def _tell(self, actions: tuple[str, ...], path: str, properties: dict[str, str]) -> None:
        for action in actions:
            if action in ("bind", "unbind") and "DRIVER" not in properties:
                continue
            for subscriber in self._subscribers:
                subscriber(DeviceEvent(action, path, properties))
