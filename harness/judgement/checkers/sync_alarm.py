"""Does alarm 280.002 stand for a subcloud exactly while its firmware is said to be out-of-sync?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.judgement.cloud_story import CloudLook, CloudStory
from harness.judgement.grouping import word
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim, Subject
from harness.judgement.values import Unknown

ALARM: Final = "280.002"
REPORTER: Final = f"alarm-{ALARM}"


def check_sync_alarms(cloud: CloudStory) -> Iterator[Verdict]:
    """Yield a verdict on the alarm of each subcloud in each look that asked for alarms."""
    for look in cloud.looks:
        if "alarm" in look.own.asked:
            standing = _standing(look)
            for name, claim in look.said("subcloud").items():
                status = claim.statement.get("firmware_sync_status", Unknown("not asked"))
                if not isinstance(status, Unknown):
                    yield _verdict(cloud, name, status, claim, standing.get(entity_of(name)))


def entity_of(subcloud: str) -> str:
    """Return what the alarm of a subcloud is about (fact sheet of StarlingX, section 3.6)."""
    return f"subcloud={subcloud}.resource=firmware"


def _standing(look: CloudLook) -> dict[str, Claim]:
    return {
        word(claim.statement, "entity_instance_id"): claim
        for claim in look.own.said["alarm"]
        if claim.statement.get("alarm_id") == ALARM
    }


def _verdict(cloud: CloudStory, name: str, status: str, claim: Claim, alarm: Claim | None) -> Verdict:
    due = status == "out-of-sync"
    subject = Subject("record", f"{cloud.controller.name}/alarm/{ALARM}/{entity_of(name)}")
    kind = VerdictKind.MATCH
    if alarm is not None and not due:
        kind = VerdictKind.STALE
    elif alarm is None and due:
        kind = VerdictKind.CONTRADICTION
    return Verdict(
        kind,
        "sync-alarm",
        REPORTER,
        alarm.subject if alarm else subject,
        f"{ALARM} {'stands' if alarm else 'does not stand'} for {name}",
        f"the firmware of {name} is said to be {status}",
        "the subclouds of the same look",
        None,
        (claim.seq, *((alarm.seq,) if alarm else ())),
    )
