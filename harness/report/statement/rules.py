"""GO or NO-GO: the rules, what deviates from each, and who has waived that until when. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from harness.judgement.judge import Judgement
from harness.judgement.model import RunState

#: Id -> what must hold for GO, but for what is waived. Listed in the order of the statement.
RULES: Final = {
    "as-stated": "Every scenario that gave a result is as it states, and nothing diverged beside them.",
    "gave-a-result": "Every scenario gave a result, or does not apply to its device; every run ended itself.",
    "requirements-proved": "Every requirement has a scenario that is as stated, and none that is not.",
    "defects-detected": "Every known defect is detected by a scenario when it is switched on.",
    "no-false-alarms": "Without any known defect, no scenario of the qualification diverges.",
    "waivers-in-force": "No waiver has expired.",
}
_NO_RESULT: Final = (RunState.INFRA, RunState.BLOCKED, RunState.REFUSED, RunState.BUG)


@dataclass(frozen=True, slots=True)
class Waiver:
    """Somebody answers for a deviation until a day. ``subject``: of the deviations, may have ``*``."""

    rule: str
    subject: str
    owner: str
    reason: str
    expires: datetime.date

    def covers(self, rule: str, subject: str) -> bool:
        """Whether a deviation is meant. A scenario's parameters stand in brackets, which mean themselves."""
        return self.rule == rule and fnmatchcase(subject, self.subject.replace("[", "[[]"))


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement, and the state of each scenario that is a proof of it."""

    id: str
    text: str
    proofs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something that is not as a rule says. ``waiver``: None, or who answers for it."""

    rule: str
    subject: str
    why: str
    waiver: Waiver | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """``go``: nothing deviates but what is waived. ``unused``: waivers that nothing needed."""

    deviations: tuple[Deviation, ...]
    unused: tuple[Waiver, ...]

    @property
    def go(self) -> bool:
        """Whether it is GO."""
        return all(deviation.waiver is not None for deviation in self.deviations)

    def of(self, rule: str) -> list[Deviation]:
        """Return what deviates from one rule."""
        return [deviation for deviation in self.deviations if deviation.rule == rule]


def decide(
    judgement: Judgement,
    requirements: Sequence[Requirement],
    kill_matrix: Mapping[str, Any] | None,
    waivers: Sequence[Waiver],
    today: datetime.date,
) -> Decision:
    """Hold a judgement and a kill matrix to the rules.

    :param kill_matrix: as `hil qualify -o json` has it; None: no qualification was made, which deviates.
    :param waivers: one that has expired waives nothing, and deviates itself.
    """
    in_force = [waiver for waiver in waivers if waiver.expires >= today]
    found = [
        *_of_scenarios(judgement),
        *_of_requirements(requirements),
        *_of_defects(kill_matrix),
    ]
    decided = tuple(_waived(deviation, in_force) for deviation in found)
    late = tuple(
        Deviation("waivers-in-force", waiver.subject, f"{waiver.owner}'s waiver expired on {waiver.expires}")
        for waiver in waivers
        if waiver not in in_force
    )
    used = {id(deviation.waiver) for deviation in decided}
    return Decision(decided + late, tuple(waiver for waiver in in_force if id(waiver) not in used))


def _waived(deviation: Deviation, waivers: Sequence[Waiver]) -> Deviation:
    found = next((w for w in waivers if w.covers(deviation.rule, deviation.subject)), None)
    return Deviation(deviation.rule, deviation.subject, deviation.why, found)


def _of_scenarios(judgement: Judgement) -> Iterator[Deviation]:
    if not judgement.scenarios:
        yield Deviation("gave-a-result", "the runs", "no scenario ran")
    for one in judgement.scenarios:
        if one.reasons and not one.as_stated:
            yield Deviation("as-stated", one.name, one.reasons[0])
        if one.interrupted or one.run_state in _NO_RESULT:
            why = one.state_reason.strip().partition("\n")[0]
            yield Deviation("gave-a-result", one.name, f"{one.state}: {why}")
    for verdict in judgement.outside_divergences:
        yield Deviation("as-stated", str(verdict.subject), str(verdict))
    if judgement.runs and not judgement.finished:
        yield Deviation("gave-a-result", "the runs", "a run did not come to its end")


def _of_requirements(requirements: Sequence[Requirement]) -> Iterator[Deviation]:
    for each in requirements:
        states = set(each.proofs.values())
        if "not-as-stated" in states:
            wrong = [name for name, state in each.proofs.items() if state == "not-as-stated"]
            yield Deviation("requirements-proved", each.id, f"not as stated: {', '.join(wrong)}")
        elif "as-stated" not in states:
            yield Deviation("requirements-proved", each.id, "no scenario of these runs proves it")


def _of_defects(kill_matrix: Mapping[str, Any] | None) -> Iterator[Deviation]:
    if kill_matrix is None:
        yield Deviation("defects-detected", "the kill matrix", "no qualification was made")
        return
    for defect in kill_matrix["defects"]:
        if not defect["detected_by"]:
            yield Deviation("defects-detected", defect["id"], f"no scenario shows {defect['predicts']}")
    for alarm in kill_matrix["false_alarms"]:
        yield Deviation("no-false-alarms", alarm["scenario"], ", ".join(alarm["unstated"]))
