"""Runs a command that sees an emulated host's devices by umockdev, where FUSE is not to be had.

Started by `hil lab mount --face umockdev` with a JSON object as its only argument. libumockdev-preload, which
is loaded into every program that is run, leads what they open below /sys and /dev into a tree of plain files.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from harness.emulator.faces.supervise import Lab, supervise

_LIBRARY: Final = "libumockdev.so.0"
_PRELOAD: Final = "libumockdev-preload.so.0"
#: How long a listener that does not read is waited for.
_LISTENER_SECONDS: Final = 10.0


class _Testbed:
    """The tree of plain files, by the functions of libumockdev."""

    def __init__(self) -> None:
        self._library = library = ctypes.CDLL(_LIBRARY)
        text, pointer = ctypes.c_char_p, ctypes.c_void_p
        library.umockdev_testbed_new.restype = pointer
        library.umockdev_testbed_get_root_dir.argtypes = (pointer,)
        library.umockdev_testbed_get_root_dir.restype = text
        library.umockdev_testbed_add_from_string.argtypes = (pointer, text, pointer)
        library.umockdev_testbed_uevent.argtypes = (pointer, text, text)
        library.umockdev_testbed_remove_device.argtypes = (pointer, text)
        self._object = library.umockdev_testbed_new()
        self._shown: set[str] = set()
        self.root = Path(library.umockdev_testbed_get_root_dir(self._object).decode())
        (self.root / "dev").mkdir(exist_ok=True)

    def add(self, description: str) -> None:
        """Add devices, in the form of `umockdev-record`; make their nodes and bind them to their drivers."""
        self._library.umockdev_testbed_add_from_string(self._object, description.encode(), None)
        path = ""
        for line in description.splitlines():
            if line.startswith("P: "):
                path = line[3:]
                self._shown.add(path)
            elif line.startswith("E: DEVNAME="):
                Path(f"{self.root}{line.partition('=')[2]}").touch()
            elif line.startswith("L: driver="):
                link = self._driver_link(path)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(os.path.relpath(f"{self.root}/sys{path}", link.parent))

    def event(self, event: dict[str, Any]) -> None:
        """Let a device come or go, and tell who listens to udev."""
        path = event["path"]
        self._wait_for_listeners()
        if event["action"] == "add":
            self.add(event["description"])  # libumockdev tells of it
            return
        if path not in self._shown:
            return
        if event["action"] == "unbind" and (self.root / f"sys{path}" / "driver").is_symlink():
            self._driver_link(path).unlink(missing_ok=True)
        device = f"/sys{path}".encode()
        self._library.umockdev_testbed_uevent(self._object, device, event["action"].encode())
        if event["action"] == "remove":
            self._library.umockdev_testbed_remove_device(self._object, device)
            self._shown.discard(path)
            if "DEVNAME" in event["properties"]:
                Path(f"{self.root}{event['properties']['DEVNAME']}").unlink(missing_ok=True)

    def _wait_for_listeners(self) -> None:
        """Return when everybody who listens can take a message.

        The kernel queues few of them for a socket (net.unix.max_dgram_qlen: 10), and libumockdev ends the
        program that sends one more.
        """
        for path in self.root.glob("event[0-9]*"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener, suppress(OSError):
                listener.connect(str(path))  # refused where its owner has gone
                select.select([], [listener], [], _LISTENER_SECONDS)

    def close(self) -> None:
        """Remove the tree."""
        unref = ctypes.CDLL("libgobject-2.0.so.0").g_object_unref
        unref.argtypes = (ctypes.c_void_p,)
        unref(self._object)

    def _driver_link(self, path: str) -> Path:
        """Return the link from the driver of the device at ``path`` to it."""
        driver = (self.root / f"sys{path}" / "driver").readlink()
        return self.root / "sys" / Path(*driver.parts[driver.parts.index("bus") :]) / Path(path).name


def main() -> NoReturn:
    """Run the command that the argument names; exit as it does."""
    config = json.loads(sys.argv[1])
    if _PRELOAD not in os.environ.get("LD_PRELOAD", ""):
        _load_again(config)
    for descriptor in (config["report"], config["lifeline"]):
        os.set_inheritable(descriptor, False)
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # who started us waits for them in a way of its own
    lab = Lab(config["door"])
    answer = lab.ask({"host": config["host"]})
    if "error" in answer:
        _refuse(config, answer)
    os.environ["TMPDIR"] = config["scratch"]  # it goes with the lab, should we be killed
    testbed = _Testbed()
    try:
        testbed.add(answer["ready"]["description"])
        os.write(config["report"], b'{"ready": true}\n')
        os.close(config["report"])
        environment = {
            **os.environ,
            "UMOCKDEV_DIR": str(testbed.root),  # libumockdev sets it for itself alone
            "HIL_MOUNTED_HOST": config["host"],
        }
        code = supervise(config["command"], environment, lab, config["lifeline"], testbed.event)
    finally:
        testbed.close()
    sys.exit(code)


def _load_again(config: dict[str, Any]) -> NoReturn:
    """Start this program anew with umockdev in it, if this machine has it."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        _refuse(
            config,
            {
                "error": f"umockdev is not installed here: there is no {_LIBRARY}.",
                "hint": "Install it: sudo apt-get install umockdev",
            },
        )
    preload = " ".join(filter(None, [_PRELOAD, os.environ.get("LD_PRELOAD")]))
    os.execve(
        sys.executable, [sys.executable, "-m", _module(), sys.argv[1]], os.environ | {"LD_PRELOAD": preload}
    )


def _refuse(config: dict[str, Any], answer: dict[str, Any]) -> NoReturn:
    os.write(config["report"], json.dumps(answer).encode() + b"\n")
    sys.exit(1)


def _module() -> str:
    assert __spec__ is not None
    return __spec__.name


if __name__ == "__main__":
    main()
