"""dcmanager's audit: which subclouds are online, and when the firmware of each is audited (section 5.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from harness.emulator.distributed_cloud.firmware_audit import (
    IN_SYNC,
    OUT_OF_SYNC,
    UNKNOWN,
    FirmwareAudit,
    listed,
)
from harness.emulator.distributed_cloud.profile import CloudProfile
from harness.emulator.distributed_cloud.regions import Region
from harness.emulator.distributed_cloud.store import ENDPOINTS, FIRMWARE, MANAGED, OFFLINE, ONLINE, Store
from harness.emulator.distributed_cloud.timers import Timers
from harness.emulator.starlingx.alarms import Alarms
from harness.emulator.starlingx.database import Row
from harness.emulator.starlingx.defects import Defects

OUT_OF_SYNC_ALARM: Final = "280.002"
_REPAIR: Final = "If problem persists contact next level of support"


class Auditing:
    """The loop of the audit, and every change of a sync status. ``now``: lab time in seconds."""

    def __init__(
        self,
        store: Store,
        defects: Defects,
        profile: CloudProfile,
        timers: Timers,
        regions: Mapping[str, Region],
        central: Region,
        audit: FirmwareAudit,
        alarms: Alarms,
        now: Callable[[], float],
    ) -> None:
        self._store = store
        self._defects = defects
        self._profile = profile
        self._timers = timers
        self._regions = regions
        self._central = central
        self._audit = audit
        self._alarms = alarms
        self._now = now
        self._forced = False
        self._due = 0.0

    def begin(self) -> None:
        """Begin the loop; the first pass audits everything."""
        self._due = self._now()
        self._timers.after(self._profile.audit_pass_seconds, self._pass, background=True)

    def _pass(self) -> None:
        self._timers.after(self._profile.audit_pass_seconds, self._pass, background=True)
        self.look()

    def look(self) -> None:
        """Do one pass: look who is there, and audit the firmware of those whose turn it is."""
        due = self._now() >= self._due
        if due:
            self._due = self._now() + self._profile.firmware_audit_seconds
        everybody = due or self._forced
        self._forced = False
        for row in self._store.subclouds():
            self._look_for(row)
        turn = [row for row in self._store.subclouds() if everybody or row["firmware_audit_requested"]]
        if not turn:
            return
        images = listed(self._central, self._defects)
        for row in turn:
            self._store.rows.change("subclouds", row["id"], firmware_audit_requested=False)
            self._audit_one(row, images)

    def _audit_one(self, row: Row, images: list[dict[str, object]] | None) -> None:
        if row["availability_status"] != ONLINE:
            return
        if row["management_state"] != MANAGED:
            if self._defects.on("unmanaged-in-sync"):
                self._store.set_status(row["id"], FIRMWARE, IN_SYNC)
            return
        for endpoint, known in self._store.statuses(row["id"]).items():
            if endpoint != FIRMWARE and known == UNKNOWN:
                self._store.set_status(row["id"], endpoint, IN_SYNC)  # nothing else of it is emulated
        status = self._audit.status(self._regions[row["name"]], images)
        if status is not None:
            self.set_firmware(row, status)

    # -- availability ---------------------------------------------------------------------------

    def _look_for(self, row: Row) -> None:
        """Note whether a subcloud is there: offline once it was missed often enough, online at once."""
        there = not self._regions[row["name"]].offline
        online = row["availability_status"] == ONLINE
        if there and (not online or row["audit_fail_count"]):
            self._store.rows.change("subclouds", row["id"], availability_status=ONLINE, audit_fail_count=0)
            if not online:
                self.request(row)
        elif not there and online:
            missed = row["audit_fail_count"] + 1
            self._store.rows.change("subclouds", row["id"], audit_fail_count=missed)
            if missed >= self._profile.passes_to_offline:
                self._store.rows.change("subclouds", row["id"], availability_status=OFFLINE)
                self.forget(row)

    def manage(self, row: Row, state: str) -> None:
        """Have a subcloud managed, and audited then, or not managed any more."""
        self._store.rows.change("subclouds", row["id"], management_state=state)
        self.forget(row)
        if state == MANAGED and not self._defects.on("forced-audit-lost"):
            self.request(row)

    # -- requests -------------------------------------------------------------------------------

    def force(self) -> None:
        """Have the firmware of every subcloud audited in the next pass."""
        self._forced = True

    def request(self, row: Row) -> None:
        """Have the firmware of one subcloud audited in the next pass."""
        self._store.rows.change("subclouds", row["id"], firmware_audit_requested=True)

    def changed(self) -> None:
        """An image has changed on the controller: no status is known any more, and all are audited."""
        for row in self._store.subclouds():
            self.set_firmware(row, UNKNOWN)
        self.force()

    def forget(self, row: Row) -> None:
        """Nothing of a subcloud is known any more."""
        self.set_firmware(row, UNKNOWN)
        for endpoint in ENDPOINTS:
            self._store.set_status(row["id"], endpoint, UNKNOWN)

    # -- statuses -------------------------------------------------------------------------------

    def judge(self, row: Row) -> None:
        """Set the firmware status of a subcloud to what an audit finds now."""
        status = self._audit.status(self._regions[row["name"]], listed(self._central, self._defects))
        if status is not None:
            self.set_firmware(row, status)

    def set_firmware(self, row: Row, status: str) -> None:
        """Set the firmware status of a subcloud, with its alarm. in-sync is for those managed and online."""
        fresh = self._store.rows.one("subclouds", id=row["id"]) or row
        there = (fresh["management_state"], fresh["availability_status"]) == (MANAGED, ONLINE)
        if status == IN_SYNC and not there:
            return
        self._store.set_status(row["id"], FIRMWARE, status)
        entity = f"subcloud={row['name']}.resource={FIRMWARE}"
        if status == OUT_OF_SYNC:
            reason = f"{row['name']} {FIRMWARE} sync_status is out-of-sync"
            self._alarms.set(OUT_OF_SYNC_ALARM, entity, "major", reason, _REPAIR)
        else:
            self._alarms.clear(OUT_OF_SYNC_ALARM, entity)
