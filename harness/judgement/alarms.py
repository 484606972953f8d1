"""An alarm in one look at a system, held to what it stands for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from harness.judgement.grouping import word
from harness.judgement.model import VerdictKind
from harness.judgement.records import Claim
from harness.judgement.system_story import Look


@dataclass(frozen=True, slots=True)
class AlarmSeen:
    """What was said of an alarm in a look. ``changed``: it came or went while the look was taken."""

    claims: list[Claim]
    changed: bool

    @property
    def told(self) -> str:
        """How it stands, in words that follow its number."""
        if self.changed:
            return "came or went amid the look"
        return "stands" if self.claims else "does not stand"

    def held_to(self, due: bool) -> VerdictKind:
        """Return the verdict on it where it is due, or is not: none against one that changed amid the look,
        since what else was said can be of before the change or of after it."""
        if self.changed or due == bool(self.claims):
            return VerdictKind.MATCH
        return VerdictKind.CONTRADICTION if due else VerdictKind.STALE


def alarm_in(look: Look, number: str, entity: str | None = None) -> AlarmSeen:
    """Return how an alarm stood in a look, of one entity or of any.

    Time goes on while a real system is looked at, so its alarms are asked for before all else and again after
    it (``asked`` has them twice then): one that was said once alone has changed meanwhile.
    """
    said = [claim for claim in look.said["alarm"] if claim.statement.get("alarm_id") == number]
    if entity is not None:
        said = [claim for claim in said if word(claim.statement, "entity_instance_id") == entity]
    times = Counter(word(claim.statement, "entity_instance_id") for claim in said)
    return AlarmSeen(said, bool(said) and max(times.values()) < look.asked.count("alarm"))
