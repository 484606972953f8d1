"""Does alarm 280.002 stand for a subcloud exactly while its firmware is said to be out-of-sync?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.judgement.alarms import AlarmSeen, alarm_in
from harness.judgement.cloud_story import CloudStory
from harness.judgement.model import Verdict
from harness.judgement.records import Claim, Subject
from harness.judgement.values import Unknown

ALARM: Final = "280.002"
REPORTER: Final = f"alarm-{ALARM}"


def check_sync_alarms(cloud: CloudStory) -> Iterator[Verdict]:
    """Yield a verdict on the alarm of each subcloud in each look that asked for alarms."""
    for look in cloud.looks:
        if "alarm" in look.own.asked:
            for name, claim in look.said("subcloud").items():
                status = claim.statement.get("firmware_sync_status", Unknown("not asked"))
                if not isinstance(status, Unknown):
                    alarm = alarm_in(look.own, ALARM, entity_of(name))
                    yield _verdict(cloud, name, status, claim, alarm)


def entity_of(subcloud: str) -> str:
    """Return what the alarm of a subcloud is about (fact sheet of StarlingX, section 3.6)."""
    return f"subcloud={subcloud}.resource=firmware"


def _verdict(cloud: CloudStory, name: str, status: str, claim: Claim, alarm: AlarmSeen) -> Verdict:
    subject = Subject("record", f"{cloud.controller.name}/alarm/{ALARM}/{entity_of(name)}")
    return Verdict(
        alarm.held_to(status == "out-of-sync"),
        "sync-alarm",
        REPORTER,
        alarm.claims[0].subject if alarm.claims else subject,
        f"{ALARM} {alarm.told} for {name}",
        f"the firmware of {name} is said to be {status}",
        "the subclouds of the same look",
        None,
        (claim.seq, *(said.seq for said in alarm.claims)),
    )
