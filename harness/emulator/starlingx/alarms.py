"""The alarms of a system; when 900.006, an update of device images is in progress, stands (section 3.6)."""

from __future__ import annotations

from typing import Final

from harness.emulator.starlingx.database import Database

UPDATE_ALARM: Final = "900.006"
REASON: Final = "Device image update operation in progress "  # with a blank at its end
REPAIR: Final = "Complete reboots of affected hosts"
#: States that keep it.
OPEN: Final = ("pending", "failed", "in-progress")


class Alarms:
    """The alarms of one system. ``system_uuid``: of the entity that they stand at."""

    def __init__(self, database: Database, system_uuid: str) -> None:
        self._database = database
        self._entity = f"system={system_uuid}"

    def set(
        self,
        alarm_id: str,
        entity: str,
        severity: str,
        reason: str,
        repair: str = "",
        *,
        affects_management: bool = True,
    ) -> None:
        """Raise an alarm at ``entity``; nothing where it stands."""
        if self._database.one("alarms", alarm_id=alarm_id, entity_instance_id=entity) is None:
            self._database.add(
                "alarms",
                alarm_id=alarm_id,
                entity_instance_id=entity,
                severity=severity,
                reason_text=reason,
                repair=repair,
                mgmt_affecting=affects_management,
            )

    def clear(self, alarm_id: str, entity: str) -> None:
        """Clear an alarm at ``entity``, where it stands."""
        row = self._database.one("alarms", alarm_id=alarm_id, entity_instance_id=entity)
        if row is not None:
            self._database.remove("alarms", row["id"])

    def raise_update(self) -> None:
        """Raise 900.006; nothing where it stands."""
        self.set(UPDATE_ALARM, self._entity, "minor", REASON, REPAIR)

    def clear_update(self) -> None:
        """Clear 900.006, whatever there is."""
        self.clear(UPDATE_ALARM, self._entity)

    def judge_update(self) -> None:
        """Clear 900.006 where no state is open and no host needs a reboot."""
        states = self._database.all("device_image_state")
        hosts = self._database.all("i_host")
        if not any(state["status"] in OPEN for state in states) and not any(
            host["reboot_needed"] for host in hosts
        ):
            self.clear_update()
