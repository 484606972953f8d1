"""One emulated host: its files, processes, kernel log and services, its power, and the cards in it."""

from __future__ import annotations

import errno
import os
import signal
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from harness.emulator.card import Card, CardProfile, CardSpec, CardState, CardStore, Generation
from harness.emulator.clock import LabClock
from harness.emulator.containers import CUT_IN_CONTAINER, TOOL_IMAGES, Engine
from harness.emulator.kernel_log import KernelLog, LogDevice
from harness.emulator.process import Locks, Process, ProcessTable
from harness.emulator.programs import containers
from harness.emulator.programs.base import Executable, Main, Streams
from harness.emulator.programs.editions import LATEST
from harness.emulator.programs.registry import PROGRAMS, opae_tools
from harness.emulator.shell import Shell
from harness.emulator.sysfs_tree import PCI_DRIVERS, CardTree, Numbers
from harness.emulator.tool_defects import checked
from harness.emulator.vfs import Attribute, Device, Directory, Link, Vfs
from harness.errors import ConfigurationError
from harness.images.payload import PayloadTable

#: How the vendor's tools are there: on the host, or in an image that docker or containerd runs.
ToolEra = Literal["host", "docker", "containerd"]
#: Kernels that have the drivers of each generation; D: the one whose StarlingX patches offer
#: control/image_load (4.5).
KERNEL_RELEASES: dict[Generation, str] = {
    "A": "3.10.0-1127.rt56.1093",
    "B": "5.8.0-dfl",
    "C": "5.15.0-dfl",
    "D": "6.18.0-1-amd64",
}
#: Circumstances that a test can bring about on a host, besides ``missing-TOOL``.
CONDITIONS = {
    "no-image-load": "a mainline kernel: no control/image_load, so that rsu cannot work",
    "sysfs-unreadable": "every read of a card's attribute fails with EIO",
    CUT_IN_CONTAINER: "the power fails for a moment as soon as a container runs, once",
    "no-tool-image": "the tool image is gone, as after the kubelet's garbage collection",
    "bmc-ignores": "its management controller accepts what is asked, and does nothing",
    "bmc-slow": "its management controller shows the state in between for a while",
    "bmc-stuck": "its management controller shows the state in between for good, and the power stays",
    "bmc-locked-out": "its management controller takes no login",
    "bmc-busy": "its management controller answers 503",
    "disk-full": "no plain file can grow: ENOSPC",
    "disk-read-only": "nothing on the disk can be changed: EROFS; /run, /dev and kernel files can",
    "clock-ahead": "its clock was set an hour ahead",
    "clock-behind": "its clock was set a day back",
}
#: Seconds by which the wall clock is off meanwhile; nothing else of the host goes by it.
_OFF = {"clock-ahead": 3600.0, "clock-behind": -86400.0}
_AUTH_RESULT = "RSU auth result: "
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(eq=False)
class EmulatedHost:
    """A machine of the lab. Its SSH face is :mod:`harness.emulator.ssh_server`."""

    name: str
    clock: LabClock
    hostname: str = "controller-0"
    generation: Generation = "D"
    era: ToolEra = "host"
    services: dict[str, bool] = field(default_factory=lambda: {"hostw": True, "sshd": True, "pmon": True})
    powered: bool = False
    booted: float = 0.0
    #: What is wrong with its tools and its driver; names as in :data:`harness.emulator.tool_defects`.
    defects: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.vfs = Vfs(self.wall_clock)
        self.processes = ProcessTable(self.clock)
        self.locks = Locks()
        self.kernel_log = KernelLog(self.uptime)
        #: Called when sessions must end (power loss, reboot), and after each boot.
        self.on_down: list[Callable[[], None]] = []
        self.on_up: list[Callable[[], None]] = []
        #: Called with the name of a service that systemctl started, stopped or restarted, and which of them.
        self.on_service: list[Callable[[str, str], None]] = []
        #: What runs containers; None where the tools are on the host.
        self.engine = None if self.era == "host" else Engine(self, [TOOL_IMAGES[self.era]])
        tools = opae_tools(LATEST) if self.era == "host" else containers.programs(self.era)
        #: Name of every program -> its entry point.
        self.programs = PROGRAMS | tools
        self._power_lock = threading.RLock()
        self.tree_lock = threading.RLock()
        self.numbers = Numbers()
        self.trees: dict[str, CardTree] = {}
        self.conditions: set[str] = set()
        self.defects = checked(self.defects)
        #: Authentication result that the driver logged last: card -> line.
        self._last_codes: dict[str, str] = {}
        #: Flash count that a defective tool saw first since boot: address -> text.
        self.first_counts: dict[str, str] = {}
        self._build()

    @property
    def kernel_release(self) -> str:
        """What ``uname -r`` says."""
        return KERNEL_RELEASES[self.generation]

    def wall_clock(self) -> float:
        """Return what the host takes for the time (seconds since the epoch): lab time, unless it was set."""
        return self.clock.now() + sum(off for name, off in _OFF.items() if name in self.conditions)

    def uptime(self) -> float:
        """Return the lab seconds since boot."""
        return self.clock.now() - self.booted

    # -- cards ----------------------------------------------------------------------------------

    def add_card(
        self,
        spec: CardSpec,
        state: CardState,
        profile: CardProfile,
        store: CardStore | None = None,
        payloads: PayloadTable | None = None,
    ) -> Card:
        """Fit a card into this host."""
        card = Card(
            spec,
            state,
            profile,
            self.clock,
            lambda line: self._driver_log(spec.name, line),
            store,
            payloads,
            self.generation,
        )
        tree = self.trees[spec.name] = CardTree(self, card)
        card.on_change(tree.refresh)
        tree.refresh()
        return card

    def card(self, name: str) -> Card:
        """Return the card ``name``. :raises KeyError: there is none."""
        return self.trees[name].card

    def retimer_version(self, address: str) -> str:
        """Return the retimers' version of the card at ``address``, which tools read past /sys (debugfs)."""
        cards = [tree.card for tree in self.trees.values()]
        return next((card.retimer_version for card in cards if card.address == address), "")

    def _driver_log(self, name: str, line: str) -> None:
        if line.startswith(_AUTH_RESULT) and "driver-logs-code-of-before" in self.defects:
            last, self._last_codes[name] = self._last_codes.get(name, f"{_AUTH_RESULT}0x000000fe"), line
            line = last
        self.kernel_log.add(f"{self.trees[name].log_name}: {line}")

    # -- conditions -----------------------------------------------------------------------------

    @property
    def image_load(self) -> bool:
        """Whether this kernel has the ``control`` directory; mainline has none (4.1)."""
        return "no-image-load" not in self.conditions and "driver-without-control" not in self.defects

    def condition(self, name: str, on: bool) -> None:
        """Bring about a circumstance of :data:`CONDITIONS`, or end it.

        :raises ConfigurationError: there is no such circumstance.
        """
        tool = name.removeprefix("missing-")
        if name not in CONDITIONS and (tool == name or tool not in self.programs):
            raise ConfigurationError(
                f"An emulated host has no condition {name!r}.",
                hint=f"Conditions: {', '.join(CONDITIONS)}, missing-TOOL (such as missing-fpgasupdate).",
            )
        (self.conditions.add if on else self.conditions.discard)(name)
        if tool != name:
            if on:
                self.vfs.remove_tree(f"/usr/bin/{tool}")
            else:
                self.vfs.place(f"/usr/bin/{tool}", Executable(tool, self.programs[tool]))
        self.vfs.disk.full = "disk-full" in self.conditions
        self.vfs.disk.read_only = "disk-read-only" in self.conditions
        if name == "no-tool-image" and self.engine is not None:
            self.engine.images = [] if on else [TOOL_IMAGES[self.era]]
        for tree in self.trees.values():
            tree.refresh()

    def unrecorded(self) -> list[dict[str, object]]:
        """Return what was asked for that is not known of this host: nothing, unless it is replayed."""
        return []

    def check_readable(self) -> None:
        """:raises OSError: what is asked of a card cannot be read just now."""
        if "sysfs-unreadable" in self.conditions:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    # -- power ----------------------------------------------------------------------------------

    def power_on(self) -> None:
        """Give power to host and cards, and boot; nothing where it is on already."""
        with self._power_lock:
            if self.powered:
                return
            for tree in self.trees.values():
                tree.card.power_on()
            self._boot()

    def power_off(self) -> None:
        """Cut the power of host and cards: every process is gone at once."""
        with self._power_lock:
            if self.powered:
                self._stop()
                for tree in self.trees.values():
                    tree.card.power_off()

    def reboot(self) -> None:
        """Restart with the cards under power: their drivers start anew, they go on."""
        with self._power_lock:
            if self.powered:
                self._stop()
                for tree in self.trees.values():
                    tree.card.host_restarted()
                self._boot()

    def _boot(self) -> None:
        self.powered = True
        self.booted = self.clock.now()
        self.first_counts.clear()
        self.kernel_log.clear()
        self.kernel_log.add(f"Linux version {self.kernel_release} (emulated)")
        boot_id = f"{uuid.uuid4()}\n".encode()
        self.vfs.place("/proc/sys/kernel/random/boot_id", Attribute(lambda: boot_id), kernel=True)
        for volatile in ("/run", "/run/lock", "/tmp"):
            self.vfs.remove_tree(volatile)
            self.vfs.place(volatile, Directory())
        for called in self.on_up:
            called()

    def _stop(self) -> None:
        self.powered = False
        for called in self.on_down:
            called()
        for process in self.processes.all():
            process.send(signal.SIGKILL)

    # -- commands -------------------------------------------------------------------------------

    def stand_in(self, name: str) -> Main | None:
        """Return what runs as the program ``name`` that is not installed; None: there is no such program."""
        return None

    def login_environment(self) -> dict[str, str]:
        """Return what a login as root finds in its environment."""
        return {
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "LOGNAME": "root",
            "PATH": _PATH,
            "PWD": "/root",
            "SHELL": "/bin/bash",
            "USER": "root",
        }

    def start_shell(self, streams: Streams, env: dict[str, str] | None = None) -> Shell:
        """Return a login shell with a process of its own; :meth:`end` it."""
        process = self.processes.start(["bash"])
        return Shell(self, process, streams, self.login_environment() | (env or {}), cwd="/root")

    def end(self, process: Process) -> None:
        """``process`` is over."""
        self.processes.end(process)

    def run(self, command: str, streams: Streams, env: dict[str, str] | None = None) -> int:
        """Run ``command`` as the login shell does with ``-c``; negative where a signal ended it."""
        shell = self.start_shell(streams, env)
        shell.process.argv = ["bash", "-c", command]
        try:
            return shell.main(command)
        finally:
            self.end(shell.process)

    # -- building -------------------------------------------------------------------------------

    def _build(self) -> None:
        files = self.vfs
        for path in ("/bin", "/sbin"):
            files.place(path, Link(f"usr{path}"))
        files.place("/usr/lib/firmware", Directory())
        for directory in ("/usr/bin", "/usr/sbin", "/root", "/tmp", "/run/lock", "/var/lib", "/etc", "/opt"):
            files.place(directory, Directory())
        files.place("/var/lock", Link("/run/lock"))
        files.place("/dev/null", Device())
        files.place("/dev/kmsg", LogDevice(self.kernel_log))
        for name, main in self.programs.items():
            files.place(f"/usr/bin/{name}", Executable(name, main))
        files.write("/etc/platform/platform.conf", b"nodetype=controller\nhttp_port=8080\n")
        files.write("/etc/hostname", f"{self.hostname}\n".encode())
        files.write("/etc/os-release", b'NAME="Debian GNU/Linux"\nID=debian\n')
        proc = {
            "uptime": lambda: f"{self.uptime():.2f} {self.uptime():.2f}\n",
            "version": lambda: f"Linux version {self.kernel_release} (emulated)\n",
            "sys/kernel/osrelease": lambda: f"{self.kernel_release}\n",
            "sys/kernel/hostname": lambda: f"{self.hostname}\n",
        }
        for path, show in proc.items():
            files.place(f"/proc/{path}", Attribute(_text(show)), kernel=True)
        files.place("/sys/bus/pci/devices", Directory(kernel=True), kernel=True)
        driver = PCI_DRIVERS[self.generation]
        files.place(f"/sys/bus/pci/drivers/{driver}", Directory(kernel=True), kernel=True)
        files.place("/sys/bus/pci/rescan", Attribute(None, lambda data, offset: None), kernel=True)


def _text(show: Callable[[], str]) -> Callable[[], bytes]:
    return lambda: show().encode()
