"""Runs a command where an emulated host's /sys, /dev, /run and some of /proc replace this machine's.

Started by `hil lab mount` with a JSON object as its only argument. It leaves for namespaces of its own
(mounts, processes, names, and the network, where udev's events are forged), mounts the host there and
becomes the first process of it: whatever ends it ends all that runs there, and the mounts go with them.
Nothing is put on a disk.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from harness.emulator.faces import linux
from harness.emulator.faces.supervise import Lab, supervise
from harness.emulator.faces.udev_messages import UDEV_GROUP, udev_message

#: This machine's own devices that programs need; everything else of its /dev is out of reach.
_OWN_DEVICES: Final = (
    *("null", "zero", "full", "random", "urandom", "tty", "console", "ptmx"),
    *("pts", "shm", "mqueue", "fd", "stdin", "stdout", "stderr"),
)
#: What of the host is mounted besides /sys, /dev and files of /proc. An older driver is given the name of a
#: file in the folder for firmware.
_FOLDERS: Final = ("/run", "/usr/lib/firmware")
#: libudev listens only where it sees that an udevd runs.
_UDEV: Final = {"/run/udev/control": "file", "/run/udev/data": "directory"}
_FUSE: Final = "/dev/fuse"
_KOBJECT_UEVENT: Final = 15  # protocol of netlink
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


class _Blocked(Exception):
    """What is missing on this machine, and what helps."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def main() -> NoReturn:
    """Run the command that the argument names; exit as it does."""
    config = json.loads(sys.argv[1])
    for descriptor in (config["report"], config["lifeline"]):
        os.set_inheritable(descriptor, False)
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # who started us waits for them in a way of its own
    try:
        _leave(private_network=config["private_network"])
    except _Blocked as problem:
        _report(config, {"error": str(problem), "hint": problem.hint})
        sys.exit(1)
    first = os.fork()
    if first == 0:
        os._exit(_first_process(config))
    os.close(config["report"])
    _, status = os.waitpid(first, 0)
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


def _report(config: dict[str, Any], message: dict[str, Any]) -> None:
    os.write(config["report"], json.dumps(message).encode() + b"\n")
    os.close(config["report"])


def _first_process(config: dict[str, Any]) -> int:
    try:
        lab = _mount(config)
        events = _EventSource() if config["private_network"] else None
    except _Blocked as problem:
        _report(config, {"error": str(problem), "hint": problem.hint})
        return 1
    _report(config, {"ready": True})
    # libudev asks whether /sys is the kernel's own; this one is not.
    environment = {**os.environ, "SYSTEMD_DEVICE_VERIFY_SYSFS": "0", "HIL_MOUNTED_HOST": config["host"]}
    with suppress(OSError):
        os.chdir(Path.cwd())  # again, through the mounts as they are now
    tell = events.tell if events else lambda event: None
    return supervise(config["command"], environment, lab, config["lifeline"], tell)


# -- namespaces ---------------------------------------------------------------------------------


def _leave(*, private_network: bool) -> None:
    """Enter new namespaces, as root of them where we are not root. :raises _Blocked: the kernel refuses."""
    flags = linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWUTS
    if private_network:
        flags |= linux.CLONE_NEWNET
    user, group = os.geteuid(), os.getegid()
    try:
        if user == 0:
            with suppress(PermissionError):  # root of a container: perhaps as root of a user namespace
                linux.unshare(flags)
                return
        linux.unshare(flags | linux.CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    except OSError as problem:
        raise _Blocked(
            f"The kernel does not let you make namespaces of your own: {problem.strerror}.",
            "Run it as root, or let every user do so: on Debian "
            "sudo sysctl -w kernel.unprivileged_userns_clone=1, on Ubuntu "
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; a container needs --privileged.",
        ) from None


# -- mounts -------------------------------------------------------------------------------------


def _mount(config: dict[str, Any]) -> Lab:
    """Mount the host. :raises _Blocked: this machine does not let us, or the lab does not."""
    own = _own_devices()
    try:
        linux.mount("", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
        with suppress(PermissionError):  # where parts of /proc are masked: the outer one serves, too
            linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        lab, hostname = _mount_fuse(config, {f"/dev/{name}": kind for name, (kind, _) in own.items()} | _UDEV)
        socket.sethostname(hostname)
        linux.mount("/sys/dev", "/dev", flags=linux.MS_BIND)
        for name, (_, descriptor) in own.items():
            if descriptor is not None:
                linux.mount(f"/proc/self/fd/{descriptor}", f"/dev/{name}", flags=linux.MS_BIND | linux.MS_REC)
                os.close(descriptor)
        for folder in _FOLDERS:
            if Path(f"/sys{folder}").is_dir() and Path(folder).is_dir():
                linux.mount(f"/sys{folder}", folder, flags=linux.MS_BIND)
        for path in Path("/sys/proc").rglob("*"):
            target = path.relative_to("/sys").as_posix()
            if path.is_file() and Path(f"/{target}").exists():
                linux.mount(str(path), f"/{target}", flags=linux.MS_BIND)
        linux.mount("/sys/sys", "/sys", flags=linux.MS_BIND)  # last, over what showed all of it
    except OSError as problem:
        raise _Blocked(
            f"The kernel does not let you mount at {problem.filename}: {problem.strerror}.",
            "Run it as root of the machine; a container needs --privileged.",
        ) from None
    return lab


def _own_devices() -> dict[str, tuple[str, int | None]]:
    """Return what stands for each of this machine's devices that stay, and a descriptor of it to mount."""
    found: dict[str, tuple[str, int | None]] = {}
    for name in _OWN_DEVICES:
        path = Path("/dev", name)
        if path.is_symlink():
            found[name] = f"link:{path.readlink()}", None
        elif path.exists():
            kind = "directory" if path.is_dir() else "file"
            found[name] = kind, os.open(path, os.O_PATH | os.O_CLOEXEC)
    return found


def _mount_fuse(config: dict[str, Any], stand_ins: dict[str, str]) -> tuple[Lab, str]:
    """Mount all of the host's files at /sys, and have the lab serve them; return it and the host's name."""
    try:
        device = os.open(_FUSE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as problem:
        if problem.errno in (errno.EACCES, errno.EPERM):
            hint = (
                f"Run it as root, or open the device to all as the package fuse3 does: sudo chmod 666 {_FUSE}"
            )
        else:
            hint = "Load it: sudo modprobe fuse; a container needs --device /dev/fuse."
        raise _Blocked(f"The kernel's FUSE cannot be used: {_FUSE}: {problem.strerror}.", hint) from None
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    linux.mount(f"hil-{config['host']}", "/sys", "fuse", linux.MS_NOSUID | linux.MS_NODEV, options)
    lab = Lab(config["door"])
    answer = lab.ask({"host": config["host"], "stand_ins": stand_ins}, [device])
    os.close(device)
    if "error" in answer:
        raise _Blocked(answer["error"], answer["hint"])
    return lab, str(answer["ready"]["hostname"])


# -- events -------------------------------------------------------------------------------------


class _EventSource:
    """Speaks in the place of udev in our own network, where nobody of this machine listens."""

    def __init__(self) -> None:
        _raise_loopback()
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _KOBJECT_UEVENT)
        self._count = 0

    def tell(self, event: dict[str, Any]) -> None:
        """Send one event to whoever listens."""
        self._count += 1
        message = udev_message(event["action"], event["path"], event["properties"], self._count)
        with suppress(ConnectionRefusedError):  # nobody does
            self._socket.sendto(message, (0, UDEV_GROUP))


def _raise_loopback() -> None:
    """Bring the loopback interface of a new network up, so that local services work in it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(anything, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(anything, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


if __name__ == "__main__":
    main()
