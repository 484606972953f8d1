"""The agent of one emulated host: reset at boot, inventory, and the update of one image (section 3)."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from harness.emulator.clock import LabClock
from harness.emulator.host import EmulatedHost
from harness.emulator.process import Process
from harness.emulator.starlingx.agent_inventory import Inventory
from harness.emulator.starlingx.agent_tools import CACHE, CommandFailed, SysinvError, Tools
from harness.emulator.starlingx.applying import COMPLETED, FAILED, IN_PROGRESS
from harness.emulator.starlingx.conductor import Conductor, Order
from harness.emulator.starlingx.defects import Defects
from harness.emulator.starlingx.mailbox import Mailbox, start_actor
from harness.emulator.starlingx.profile import SystemProfile
from harness.emulator.starlingx.troubles import Troubles
from harness.emulator.vfs import Link

RESET_FLAG: Final = "/var/run/.sysinv_n3000_reset"
RETIMER_FLAG: Final = "/etc/platform/.sysinv_n3000_retimer"
CONFIGURED_FLAG: Final = "/var/run/.worker_config_complete"
_DEFAULT_PORT: Final = 8080

_LOG = logging.getLogger(__name__)


class Fetch(Protocol):
    """Gets a file from the controller of the agent's system by HTTP."""

    def __call__(self, port: int, path: str) -> bytes:
        """Return the body. :raises OSError: it was not had; the error says why."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an agent has from its system.

    ``service``: name of its unit; ``to_conductor``: where its casts go.
    """

    clock: LabClock
    defects: Defects
    profile: SystemProfile
    conductor: Conductor
    to_conductor: Mailbox
    troubles: Troubles
    fetch: Fetch
    service: str


class Agent:
    """Acts for one system on one host, by the host's own files and programs."""

    def __init__(self, host: EmulatedHost, host_uuid: str, around: Surroundings) -> None:
        self.host = host
        self._uuid = host_uuid
        self._around = around
        self._clock = around.clock
        self._defects = around.defects
        self._tools = Tools(host)
        legacy = host.era != "host" or around.defects.on("kernel-unknown-to-tools")
        self._inventory = Inventory(self._tools, around.profile.unreadable, legacy)
        self._lock = threading.RLock()
        self._process: Process | None = None
        self._reported = False
        #: What it last looked at for a report, and how often rows had changed by then.
        self._seen: tuple[object, ...] | None = None
        self._left = False
        self._idle = threading.Condition()
        self._reporting = 0
        #: The orders of the conductor, one at a time.
        self.orders = Mailbox(around.clock, f"{around.service}-{host.name}")
        #: What its log says, the last line last.
        self.log: list[str] = []
        host.services[around.service] = False
        host.on_service.append(self._service)
        if not host.vfs.exists("/var/run"):
            host.vfs.place("/var/run", Link("/run"))
        for folder in ("/var/local", "/var/local/share", "/var/local/share/applications"):
            if not host.vfs.exists(folder):
                host.vfs.mkdir(folder)

    # -- its process ----------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._process is not None

    def start(self, *, after_boot: bool = False) -> None:
        """Start the agent, which reports what the host has; nothing where it runs."""
        with self._lock:
            if self._process is not None or self._left or not self.host.powered:
                return
            process = self.host.processes.start([f"/usr/bin/{self._around.service}"])
            process.on_signal = self._signalled
            self._process = process
            self._reported = False
            self.host.services[self._around.service] = True
            self.orders.start()
        self._audit_later(process)
        self._report(process, after_boot, "agent-start")

    def settled(self, seconds: float) -> bool:
        """Wait, real time, until no report of the agent is being made; return whether so."""
        with self._idle:
            return self._idle.wait_for(lambda: self._reporting == 0, seconds)

    def _report(self, process: Process, after_boot: bool, name: str) -> None:
        with self._idle:
            self._reporting += 1

        def body() -> None:
            try:
                self._audit(process, after_boot)
            finally:
                with self._idle:
                    self._reporting -= 1
                    self._idle.notify_all()

        start_actor(self._clock, body, name)

    def stop(self) -> None:
        """End the agent; what it has started on the host goes on, and nobody waits for it."""
        with self._lock:
            process, self._process = self._process, None
            self.host.services[self._around.service] = False
            self.orders.stop()
        if process is not None:
            self.host.end(process)

    def leave(self) -> None:
        """End the agent for good: nothing of the host refers to it any more."""
        self._left = True
        self.stop()
        self.host.on_service.remove(self._service)

    def _signalled(self, number: int) -> bool:
        if number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            self.stop()
        return True

    def _service(self, name: str, action: str) -> None:
        if name != self._around.service:
            return
        if action != "start":
            self.stop()
        if action != "stop":
            self.start()

    def _cast(self, process: Process | None, call: Callable[[], None]) -> None:
        """Tell the conductor something, unless the agent that had it to say is gone."""
        if process is not None and process is self._process:
            self._around.to_conductor.cast(call)

    def _say(self, line: str) -> None:
        self.log.append(line)
        _LOG.info("%s: %s", self.host.name, line)

    # -- inventory ------------------------------------------------------------------------------

    def _audit_later(self, process: Process) -> None:
        def due() -> None:
            if process is self._process:
                self._audit_later(process)
                if self._may_have_news():
                    self._report(process, False, "agent-audit")

        when = self._clock.now() + self._around.profile.agent_audit_seconds
        self._clock.at(when, due, background=True)

    def _may_have_news(self) -> bool:
        """Return whether a report may say anything else than the last one, or find other rows than it.

        A report takes milliseconds, and a lab of hundreds of hosts lets hours pass.
        """
        host, conductor = self.host, self._around.conductor
        cards = [tree.card for tree in host.trees.values()]
        sight = (
            [(card.state, card.address, card.running_page, frozenset(card.conditions)) for card in cards],
            frozenset(host.conditions),
            [host.vfs.exists(flag) for flag in (RESET_FLAG, CONFIGURED_FLAG)],
            conductor.inventory_changes,
        )
        news = sight != self._seen
        self._seen = sight if self._around.to_conductor.up else None
        return news

    def _audit(self, process: Process, after_boot: bool) -> None:
        """Report devices; the cards once in the life of the process (section 3.1)."""
        conductor = self._around.conductor
        if after_boot:
            self._cast(process, lambda: conductor.first_report(self._uuid))
        files = self.host.vfs
        if not files.exists(RESET_FLAG):
            return
        cleanup = files.exists(CONFIGURED_FLAG)
        try:
            devices = self._inventory.devices()
            self._cast(
                process,
                lambda: conductor.report_devices(self._uuid, devices, was_reset=True, cleanup=cleanup),
            )
            again = not self._defects.on("inventory-reported-once")
            if (self._reported and not again) or self._defects.on("agent-not-installed"):
                return
            fpgas = self._inventory.fpgas()
            self._cast(process, lambda: conductor.report_fpgas(self._uuid, fpgas))
            self._reported = True
        except CommandFailed as error:
            self._say(f"agent_audit: {error}")

    def read_cards(self) -> list[dict[str, Any]]:
        """Return what the host's cards show now. :raises CommandFailed: a tool failed."""
        return self._inventory.fpgas()

    # -- reset ----------------------------------------------------------------------------------

    def reset_cards(self) -> bool:
        """Do what ``sysinv-reset-n3000-fpgas`` does; return whether every card was reset (section 3.3)."""
        files = self.host.vfs
        if files.exists(RESET_FLAG):
            return True
        try:
            if self.host.era == "containerd" and not self._defects.on("leftover-container"):
                self._tools.remove_container("v1")
            for address in self._tools.cards():
                self._tools.reset(address)
            if files.exists(RETIMER_FLAG):
                for address in self._tools.cards():
                    self._tools.reset_retimer(address)
                for address in self._tools.cards():
                    self._tools.reset(address)
        except CommandFailed as error:
            self._say(f"reset of the cards: {error} {error.text.strip()}")
            return False
        self._put(RESET_FLAG, b"")
        if files.exists(RETIMER_FLAG):
            files.unlink(RETIMER_FLAG)
        return True

    def boot(self, came_up: Callable[[bool], None]) -> None:
        """Do what the host's boot does for its cards: reset them, then start the agent.

        ``came_up``: called before the agent starts, with whether the boot manifest succeeded.
        """
        profile = self._around.profile
        booted = self.host.booted
        self._clock.sleep(profile.boot_seconds * self._around.troubles.slow)
        if self._defects.on("labels-lost-at-boot"):
            self._forget_moved()
        good = True
        if self._has_cards():
            for attempt in range(profile.reset_tries):
                if not self._is_booting(booted):
                    return
                good = self.reset_cards()
                if good:
                    break
                if attempt + 1 < profile.reset_tries:
                    self._clock.sleep(profile.reset_wait_seconds)
        if not self._is_booting(booted):
            return
        if good:
            self._put(CONFIGURED_FLAG, b"")
        came_up(good)
        self.start(after_boot=True)

    def _forget_moved(self) -> None:
        """Have cards that stand elsewhere before their reset taken as gone, as it was before 046f98f93."""
        try:
            there = {device["pciaddr"] for device in self._inventory.devices()}
        except CommandFailed as error:
            self._say(f"inventory before the reset: {error}")
            return
        self._around.to_conductor.cast(lambda: self._around.conductor.forget_others(self._uuid, there))

    def _is_booting(self, booted: float) -> bool:
        """Whether the host has not gone down since, and this agent is still its agent."""
        return self.host.booted == booted and self.host.powered and not self._left

    def settle_in(self) -> None:
        """Begin on a host that has been up for long: its cards were reset, its agent starts."""
        self._put(RESET_FLAG, b"")
        self._put(CONFIGURED_FLAG, b"")
        self.start()

    def _has_cards(self) -> bool:
        try:
            listing = self._tools.run(["lspci", "-Dm", "-d", "8086:0b30"])
        except CommandFailed:
            return False
        return "accelerator" in listing.lower()

    # -- update ---------------------------------------------------------------------------------

    def order(self, order: Order) -> None:
        """Take the conductor's order; lost where no agent runs."""
        self.orders.cast(lambda: self._update(order))

    def _update(self, order: Order) -> None:
        process = self._process
        try:
            self._write(process, order)
        except SysinvError as error:
            text = str(error)
            self._say(text)
            self._status(process, order, FAILED, text)
        except CommandFailed as error:
            # Section 3.2: on Python 3 the agent's own handler names another class than what is raised.
            self._say(f"{error}")
            if not self._defects.on("failed-flash-not-reported"):
                self._status(process, order, FAILED, str(error))

    def _write(self, process: Process | None, order: Order) -> None:
        files = self.host.vfs
        cached = f"{CACHE}/{order.file}"
        self._download(order.file, cached)
        self._status(process, order, IN_PROGRESS)
        self._tools.run(["systemctl", "stop", "hostw"])
        flashed = False
        try:
            self._tools.flash(order.file, order.address)
            flashed = True
        finally:
            # A killed agent does none of this: its process is gone before the tool ends.
            if process is not None and process is self._process:
                if files.exists(cached):
                    files.unlink(cached)
                self._tools.run(["systemctl", "start", "hostw"])
                if order.retimer_included and (flashed or self._defects.on("retimer-flag-after-failure")):
                    self._put(RETIMER_FLAG, b"")
        self._status(process, order, COMPLETED)

    def _download(self, file: str, cached: str) -> None:
        files = self.host.vfs
        try:
            if not files.exists(CACHE):
                files.mkdir(CACHE)
            data = self._around.fetch(self._port(), f"/device_images/{file}")
            self._clock.sleep(self._around.profile.download_seconds * self._around.troubles.slow)
            self._put(cached, data)
        except OSError as error:
            raise SysinvError(f"Failed to download the image {file}: {error}") from error

    def _put(self, path: str, data: bytes) -> None:
        self.host.vfs.open(path, read=False, write=True, create=True, truncate=True).write(data)

    def _port(self) -> int:
        text = self.host.vfs.read("/etc/platform/platform.conf").decode()
        values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        return int(values.get("http_port", _DEFAULT_PORT))

    def _status(self, process: Process | None, order: Order, status: str, text: str = "") -> None:
        conductor = self._around.conductor
        delay = 0.0 if status == IN_PROGRESS else self._around.troubles.delay

        def tell() -> None:
            self._cast(
                process,
                lambda: conductor.report_status(self._uuid, order.transaction, status, progress=text),
            )

        if delay is not None and delay > 0:
            # Nobody waits for it: a look that is being taken is of the moment before it.
            self._clock.at(self._clock.now() + delay, tell, background=True)
        elif delay is not None:
            tell()
