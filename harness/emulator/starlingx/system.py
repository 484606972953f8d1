"""One emulated StarlingX system: its parts, its hosts' states, and what happens to them."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.emulator.clock import LabClock
from harness.emulator.host import EmulatedHost
from harness.emulator.starlingx.agent import Agent, Fetch, Surroundings
from harness.emulator.starlingx.alarms import Alarms
from harness.emulator.starlingx.applying import NOTHING, Applying
from harness.emulator.starlingx.conductor import AUDIT_SECONDS, Conductor, Order, show_time
from harness.emulator.starlingx.controllers import Activity, controllers_of
from harness.emulator.starlingx.database import Database, Row
from harness.emulator.starlingx.defects import Defects
from harness.emulator.starlingx.identity import Identity
from harness.emulator.starlingx.labels import DeviceLabels
from harness.emulator.starlingx.mailbox import Mailbox, start_actor
from harness.emulator.starlingx.profile import SystemProfile
from harness.emulator.starlingx.troubles import Troubles
from harness.emulator.starlingx.uploads import Uploads
from harness.emulator.starlingx.views import Views

if TYPE_CHECKING:
    from harness.emulator.distributed_cloud.vim import Vim

#: Unit of the agent that sees to the cards: one of its own until June 2022 (section 0.1).
_AGENTS: Final = {"stx-2020-07": "sysinv-fpga-agent", "stx-6": "sysinv-fpga-agent"}
_SETTLE_SECONDS: Final = 30.0
#: Tasks of a host until its boot manifest has ended.
_BOOTING: Final = ("Unlocking", "Rebooting")


class System:
    """A system and its hosts. Nothing happens on them before :meth:`activate`.

    ``folder``: where database and images are kept; what is there already is taken up again.
    ``password``: of every user of the system. ``fetch``: how agents get files from the controller.
    """

    def __init__(
        self,
        name: str,
        hosts: Sequence[EmulatedHost],
        clock: LabClock,
        folder: Path,
        *,
        fetch: Fetch,
        password: str,
        defects: Defects | None = None,
        regions: tuple[str, ...] = ("RegionOne",),
        profile: SystemProfile | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self.defects = defects or Defects("head")
        self.profile = profile or SystemProfile()
        #: Held for the whole of every request and every call to the conductor.
        self.lock = threading.RLock()
        self.images_folder = folder / "device_images"
        self.images_folder.mkdir(parents=True, exist_ok=True)
        self.database = Database(folder / "sysinv.sqlite", self._moment, lambda: str(uuid.uuid4()))
        self.troubles = Troubles()
        self.identity = Identity(self.database, regions, password, self.profile.token_seconds)
        self.views = Views(self.database, self.defects)
        self.alarms = Alarms(self.database, str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.system")))
        self.applying = Applying(self.database, self.defects, self.alarms)
        self.labels = DeviceLabels(self.database, self.defects, self.applying, self.alarms)
        self.uploads = Uploads(self.database, self.defects, self.views, self.images_folder)
        self.conductor = Conductor(
            self.database,
            self.defects,
            self.alarms,
            clock.now,
            self._send,
            lambda: None if self.troubles.says_null else NOTHING,
        )
        #: The calls that nobody waits for, to the conductor.
        self.casts = Mailbox(clock, f"sysinv-conductor-{name}", self.lock)
        #: Hostname -> agent.
        self.agents: dict[str, Agent] = {}
        self._fetch = fetch
        self._hosts = {host.hostname: host for host in hosts}
        self.activity = Activity(hosts)
        self._hooks: list[tuple[list[Callable[[], None]], Callable[[], None]]] = []
        self._active = False
        self._vim_path = folder / "vim.json"
        self._vim: Vim | None = None

    @property
    def vim(self) -> Vim:
        """The system's VIM, begun by whoever asks for it first."""
        from harness.emulator.distributed_cloud.vim import Vim  # which needs this module

        with self.lock:
            if self._vim is None:
                self._vim = Vim(self, self._vim_path)
            return self._vim

    def restart_vim(self) -> None:
        """End the VIM alone, and begin it anew with the strategy that is on disk."""
        with self.lock:
            if self._vim is not None:
                self._vim.close()
                self._vim = None
            if self._vim_path.exists():
                _ = self.vim

    def _moment(self) -> str:
        return show_time(self.clock.now())

    # -- coming up ------------------------------------------------------------------------------

    def activate(self) -> None:
        """Bring the system up: its hosts become known, and their agents report. May be called again."""
        with self.lock:
            if self._active:
                return
            self._active = True
            for hostname, host in self._hosts.items():
                self.agents[hostname] = self._adopt(host)
            if not self._hosts:
                self._host_row("controller-0", powered=True)
        for hostname, agent in self.agents.items():
            row = self.database.one("i_host", hostname=hostname)
            if agent.host.powered and row is not None and row["task"] in _BOOTING:
                self._host_up(hostname)  # the services were restarted while it booted
            elif agent.host.powered:
                agent.settle_in()
        self._audit_later()
        if self._vim_path.exists():
            _ = self.vim  # a strategy that was under way goes on
        self.settle()

    def _adopt(self, host: EmulatedHost) -> Agent:
        if self.database.one("i_host", hostname=host.hostname) is None:
            self._keep_tool_image(host)
        row = self._host_row(host.hostname, powered=host.powered)
        around = Surroundings(
            self.clock,
            self.defects,
            self.profile,
            self.conductor,
            self.casts,
            self.troubles,
            self._fetch,
            _AGENTS.get(self.defects.release, "sysinv-agent"),
        )
        down, up = partial(self._host_down, host.hostname), partial(self._host_up, host.hostname)
        host.on_down.append(down)
        host.on_up.append(up)
        self._hooks += [(host.on_down, down), (host.on_up, up)]
        return Agent(host, row["uuid"], around)

    def close(self) -> None:
        """End the service; what is on disk is taken up by the next one, and hosts go on as they are."""
        with self.lock:
            self._active = False
            if self._vim is not None:
                self._vim.close()
            self.casts.stop()
            for agent in self.agents.values():
                agent.leave()
            for hooks, hook in self._hooks:
                hooks.remove(hook)
        self.casts.settle(_SETTLE_SECONDS)  # what agents still do on their hosts, nobody hears of any more
        with self.lock:
            self.database.close()

    def _host_row(self, hostname: str, *, powered: bool) -> Row:
        """Return the row of a host; a new one is all-in-one, controller and worker, or a worker alone."""
        row = self.database.one("i_host", hostname=hostname)
        if row is not None:
            return row
        controllers = [host.hostname for host in controllers_of(list(self._hosts.values()))]
        worker = hostname in self._hosts and hostname not in controllers
        return self.database.add(
            "i_host",
            hostname=hostname,
            personality="worker" if worker else "controller",
            subfunctions="worker" if worker else "controller,worker",
            administrative="unlocked",
            operational="enabled" if powered else "disabled",
            availability="available" if powered else "offline",
            invprovision="provisioned",
            task="",
        )

    def _keep_tool_image(self, host: EmulatedHost) -> None:
        """Put the image that a host's tools are run from into the local registry, where they are."""
        for image in host.engine.images if host.engine is not None else ():
            _, _, place = image.partition("/")
            name, _, tag = place.partition(":")
            if self.database.one("registry_images", name=name, tag=tag) is None:
                self.database.add("registry_images", name=name, tag=tag)

    def settle(self, seconds: float = _SETTLE_SECONDS) -> bool:
        """Wait, real time, until no agent has anything to do and the conductor no call; return whether so."""
        deadline = time.monotonic() + seconds
        boxes = [*(agent.orders for agent in self.agents.values()), self.casts]
        while (left := deadline - time.monotonic()) > 0:
            taken = [box.taken for box in boxes]  # what one of them is asked by another counts as well
            idle = all(agent.settled(left) for agent in self.agents.values())
            if not (idle and all(box.settle(left) for box in boxes)):
                return False
            if taken == [box.taken for box in boxes]:
                return True
        return False

    def _audit_later(self) -> None:
        def due() -> None:
            if self._active:
                self._audit_later()
                self.casts.cast(self.conductor.audit)

        self.clock.at(self.clock.now() + AUDIT_SECONDS, due, background=True)

    def _send(self, hostname: str, order: Order) -> None:
        agent = self.agents.get(hostname)
        if agent is not None:
            agent.order(order)

    # -- hosts ----------------------------------------------------------------------------------

    def run_agents(self, run: bool) -> None:
        """Start the agents of all hosts, or end them; what they have begun there goes on by itself."""
        for agent in self.agents.values():
            (agent.start if run else agent.stop)()

    def _set_host(self, hostname: str, **values: object) -> None:
        with self.lock:
            row = self.database.one("i_host", hostname=hostname)
            if row is not None:
                self.database.change("i_host", row["id"], **values)

    def _host_down(self, hostname: str) -> None:
        self.agents[hostname].stop()
        self.activity.move(hostname)  # its standby, if there is one, takes over
        self._set_host(hostname, operational="disabled", availability="offline")

    def _host_up(self, hostname: str) -> None:
        agent = self.agents[hostname]
        start_actor(self.clock, lambda: agent.boot(lambda good: self._came_up(hostname, good)), "host-boot")

    def _came_up(self, hostname: str, good: bool) -> None:
        """The boot manifest of a host has ended; a failed one leaves the host locked (LP 2160223)."""
        row = self.database.one("i_host", hostname=hostname)
        unlocking = row is not None and row["task"] == "Unlocking"
        locked = row is not None and row["administrative"] == "locked" and not unlocking
        if unlocking:
            self.troubles.unlocked(self.clock.now())
        if not good:
            availability = self.profile.availability_after_failed_reset
            self._set_host(
                hostname, administrative="locked", operational="disabled", availability=availability, task=""
            )
        elif locked:
            self._set_host(hostname, operational="disabled", availability="online", task="")
        else:
            self._set_host(
                hostname, administrative="unlocked", operational="enabled", availability="available", task=""
            )

    def lock_host(self, hostname: str) -> None:
        """Lock a host: after a while it is locked, and only the platform runs on it."""
        self._set_host(hostname, task="Locking")

        def locked() -> None:
            self._set_host(
                hostname, administrative="locked", operational="disabled", availability="online", task=""
            )

        self.clock.at(
            self.clock.now() + self.profile.lock_seconds * self.troubles.slow,
            lambda: self.casts.cast(locked),
            background=False,
        )

    def unlock_host(self, hostname: str) -> None:
        """Unlock a host, which reboots it; it is unlocked once its boot manifest has succeeded."""
        self._set_host(hostname, task="Unlocking")
        self._reboot(hostname)

    def reboot_host(self, hostname: str) -> None:
        """Reboot a locked host."""
        self._set_host(hostname, task="Rebooting")
        self._reboot(hostname)

    def _reboot(self, hostname: str) -> None:
        host = self._hosts.get(hostname)
        if host is not None:
            start_actor(self.clock, host.reboot, "host-reboot")
