"""The command `fm`: the alarms that are set, as public documents and its source show them."""

from __future__ import annotations

from typing import Final

from harness.emulator.starlingx.cli_session import Command, Given, Session

_LABELS: Final = ("Alarm ID", "Reason Text", "Entity ID", "Severity", "Time Stamp")
_FIELDS: Final = ("alarm_id", "reason_text", "entity_instance_id", "severity", "timestamp")


def _alarm_list(session: Session, given: Given) -> str:
    """Show the alarms, the latest first."""
    found = session.ask("GET", "v1", "alarms")["alarms"]
    found.sort(key=lambda alarm: str(alarm["timestamp"]), reverse=True)
    uuid = given.has("--uuid")
    fields = (*(("uuid",) if uuid else ()), *_FIELDS)
    rows = [[alarm[name] for name in fields] for alarm in found]
    return session.table((*(("UUID",) if uuid else ()), *_LABELS), rows, fields)


ALARM_COMMANDS: Final = {"alarm-list": Command(_alarm_list, 0, ("uuid",))}
