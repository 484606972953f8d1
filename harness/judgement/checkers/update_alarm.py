"""Does alarm 900.006 stand exactly while an image is to be written or a host is to be booted?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.judgement.alarms import alarm_in
from harness.judgement.grouping import word
from harness.judgement.model import Verdict
from harness.judgement.records import Claim, Subject
from harness.judgement.system_story import SystemStory

ALARM: Final = "900.006"
REPORTER: Final = f"alarm-{ALARM}"
#: Statuses that keep it (section 3.6).
_OPEN: Final = ("pending", "failed", "in-progress")


def check_update_alarm(story: SystemStory) -> Iterator[Verdict]:
    """Yield a verdict on the alarm in each look that asked for alarms.

    It goes with the last image, also where a host is still to be booted, and comes again with an image that a
    device is to be given.
    """
    gone = False
    for look in story.whole_looks:
        is_open = [c for c in look.said["state"] if c.statement.get("status") in _OPEN]
        gone = not look.said["state"] and (gone or ("image" in look.asked and not look.said["image"]))
        if "alarm" not in look.asked:
            continue
        alarm = alarm_in(look, ALARM)
        to_boot = [c for c in look.said["host"] if c.statement.get("reboot_needed") is True]
        reasons = is_open if gone else [*is_open, *to_boot]
        yield Verdict(
            alarm.held_to(bool(reasons)),
            "update-alarm",
            REPORTER,
            alarm.claims[0].subject if alarm.claims else Subject("record", f"{story.name}/alarm/{ALARM}"),
            f"{ALARM} {alarm.told}",
            "; ".join(_told(story, reason) for reason in reasons)
            or "no image is to be written, no host to be booted",
            "states and hosts of the same look",
            None,
            (look.seq, *(claim.seq for claim in (*alarm.claims, *reasons))),
        )


def _told(story: SystemStory, claim: Claim) -> str:
    said = claim.statement
    if "status" in said:
        return f"{story.image_name(word(said, 'image_uuid'))} is {said['status']}"
    return f"{said.get('hostname')} is to be booted"
