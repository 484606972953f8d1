"""One emulated distributed cloud: a system controller with its dcmanager, and the subclouds of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from harness.emulator.distributed_cloud.auditing import Auditing
from harness.emulator.distributed_cloud.firmware_audit import IN_SYNC, FirmwareAudit
from harness.emulator.distributed_cloud.orchestrator import Orchestrator
from harness.emulator.distributed_cloud.profile import CloudProfile
from harness.emulator.distributed_cloud.regions import Region
from harness.emulator.distributed_cloud.store import MANAGED, UNMANAGED, Store
from harness.emulator.distributed_cloud.subcloud_steps import SubcloudSteps
from harness.emulator.distributed_cloud.timers import Timers
from harness.emulator.distributed_cloud.vault import Vault
from harness.emulator.starlingx.database import Row
from harness.emulator.starlingx.mailbox import Mailbox
from harness.emulator.starlingx.system import System
from harness.errors import ConfigurationError, DeadlineError
from harness.images.payload import PayloadTable

_SETTLE_SECONDS = 30.0


class Cloud:
    """The distributed cloud of ``controller``. Its lock is the controller's: held for every request and act.

    ``subclouds``: name -> gives the system, brought up; no subcloud is asked for before dcmanager needs it.
    ``folder``: where dcmanager's database and the vault are; what is there already is taken up again.
    ``payloads``: names payloads that do not say what they are.
    """

    def __init__(
        self,
        controller: System,
        subclouds: Mapping[str, Callable[[], System]],
        folder: Path,
        *,
        profile: CloudProfile | None = None,
        payloads: PayloadTable | None = None,
    ) -> None:
        self.controller = controller
        self.defects = controller.defects
        self.profile = profile or CloudProfile()
        now = controller.clock.now
        folder.mkdir(parents=True, exist_ok=True)
        self.store = Store(folder / "dcmanager.sqlite", now)
        self.store.enroll(subclouds, self.profile.default_group)
        self.vault = Vault(folder / "dc-vault" / "device_images", payloads)
        self.regions = {name: Region(name, fetch) for name, fetch in subclouds.items()}
        self._central = Region("RegionOne", lambda: controller)
        #: dcmanager's own work, one thing after the other.
        self.service = Mailbox(controller.clock, f"dcmanager-{controller.name}", controller.lock)
        self._timers = Timers(controller.clock, self.service)
        self.auditing = Auditing(
            self.store,
            self.defects,
            self.profile,
            self._timers,
            self.regions,
            self._central,
            FirmwareAudit(self.defects, self.vault),
            controller.alarms,
            now,
        )
        self.orchestrator = Orchestrator(
            self.store,
            self.defects,
            self.profile,
            self._timers,
            self.regions,
            self._steps,
            self.auditing.force,
        )

    def _steps(self, subcloud: Row) -> SubcloudSteps:
        return SubcloudSteps(
            self.regions[subcloud["name"]],
            self._central,
            self.defects,
            self.profile,
            self.vault,
            partial(self._say, subcloud["id"]),
            partial(self._finished, subcloud),
        )

    def _say(self, subcloud_id: int, details: str) -> None:
        step = self.store.step(subcloud_id)
        if step is not None:
            self.store.rows.change("strategy_steps", step["id"], details=details)

    def _finished(self, subcloud: Row) -> None:
        """All is done with a subcloud: since 82fa2e9b its status is set at once."""
        if self.defects.on("finishing-forces-in-sync"):
            self.auditing.set_firmware(subcloud, IN_SYNC)
        elif not self.defects.on("out-of-sync-until-all-finish"):
            self.auditing.judge(subcloud)

    # -- its service ----------------------------------------------------------------------------

    @property
    def runs(self) -> bool:
        """Whether dcmanager runs."""
        return self.service.up

    def activate(self) -> None:
        """Begin dcmanager: its audit, and a strategy that was under way."""
        with self.controller.lock:
            self.service.start()
            self.auditing.begin()
            self.orchestrator.resume()

    def stop(self) -> None:
        """End dcmanager, as if it were killed; what its subclouds do goes on."""
        with self.controller.lock:
            self.service.stop()
            self._timers.drop()
            self.orchestrator.rest()

    def close(self) -> None:
        """End dcmanager for good; the next one takes up what is on disk."""
        self.stop()
        self.service.settle(_SETTLE_SECONDS)
        self.store.rows.close()

    def settle(self, seconds: float = _SETTLE_SECONDS) -> bool:
        """Wait, real time, until dcmanager is at nothing; return whether it is."""
        return self.service.settle(seconds)

    # -- troubles -------------------------------------------------------------------------------

    def run(self, on: bool) -> None:
        """Have dcmanager run, or not."""
        if on != self.runs:
            (self.activate if on else self.stop)()

    def cut_off(self, name: str) -> None:
        """Cut the way to a subcloud; a name that begins with ``-`` opens it again.

        :raises ConfigurationError: there is no such subcloud.
        """
        self.regions[self._known(name)].offline = not name.startswith("-")

    def unmanage(self, name: str) -> None:
        """Have a subcloud not managed; one whose name begins with ``-`` managed again.

        :raises ConfigurationError: there is no such subcloud.
        """
        row = self.store.subcloud(self._known(name))
        assert row is not None
        self.auditing.manage(row, MANAGED if name.startswith("-") else UNMANAGED)

    def _known(self, name: str) -> str:
        """Return the name of a subcloud without the sign before it."""
        own = name.removeprefix("-")
        if own not in self.regions:
            raise ConfigurationError(
                f"The cloud of {self.controller.name} has no subcloud {own!r}.",
                hint=f"Known: {', '.join(self.regions)}.",
            )
        return own

    def lose_file(self, uuid: str) -> None:
        """Take the file of an image out of the vault. :raises ConfigurationError: there is none."""
        if not self.vault.lose(uuid):
            raise ConfigurationError(
                f"The vault of {self.controller.name} has no file of an image {uuid!r}.",
                hint="Upload it to the region SystemController first.",
            )

    def audit_now(self) -> None:
        """Do a pass of the audit at once, for every subcloud.

        :raises ConfigurationError: dcmanager does not run. :raises DeadlineError: it did not end.
        """
        if not self.runs:
            raise ConfigurationError(
                f"The dcmanager of {self.controller.name} does not run, and cannot audit.",
                hint="Have it run first: trouble `dcmanager`, true.",
            )
        self.auditing.force()
        self.service.cast(self.auditing.look)
        if not self.settle():
            raise DeadlineError(
                f"The dcmanager of {self.controller.name} was still at its audit after {_SETTLE_SECONDS:g} s."
            )
