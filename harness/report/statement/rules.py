"""GO or NO-GO: the rules, what deviates from each, and who has waived that until when. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
#: Subjects of deviations that are about all of the evidence.
RUNS, REQUIREMENTS, MATRIX = "the runs", "the requirements", "the kill matrix"
WHOLES: Final = (RUNS, REQUIREMENTS, MATRIX)
_NO_RESULT: Final = (RunState.INFRA, RunState.BLOCKED, RunState.REFUSED, RunState.BUG)


@dataclass(frozen=True, slots=True)
class Waiver:
    """Somebody answers for a deviation until a day.

    ``subject``: of the deviations; ``*`` stands for anything but what concerns the evidence as a whole
    (:data:`WHOLES`), which is waived by its own words alone.
    """

    rule: str
    subject: str
    owner: str
    reason: str
    expires: datetime.date

    def covers(self, rule: str, subject: str) -> bool:
        """Whether a deviation is meant."""
        if self.rule != rule or subject in WHOLES:
            return self.rule == rule and self.subject == subject
        pattern = ".*".join(map(re.escape, self.subject.split("*")))
        return re.fullmatch(pattern, subject, re.DOTALL) is not None


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


@dataclass(frozen=True, slots=True)
class Basis:
    """What is held to the rules.

    ``unfinished``: runs that did not come to their end. ``lost``: scenarios that the results of a run list
    and its histories do not have. ``qualification``: what `hil qualify -o json` printed, None where none was
    made. ``known``: the defects that one has to try.
    """

    judgement: Judgement
    requirements: Sequence[Requirement] = ()
    qualification: Mapping[str, Any] | None = None
    known: Collection[str] = ()
    unfinished: Collection[str] = ()
    lost: Collection[str] = ()


def decide(basis: Basis, waivers: Sequence[Waiver], today: datetime.date) -> Decision:
    """Hold runs and a qualification to the rules; a waiver that has expired waives nothing, and deviates."""
    in_force = [waiver for waiver in waivers if waiver.expires >= today]
    found = [
        *_of_scenarios(basis),
        *_of_requirements(basis.requirements),
        *_of_qualification(basis.qualification, basis.known),
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


def _of_scenarios(basis: Basis) -> Iterator[Deviation]:
    judgement = basis.judgement
    if not judgement.scenarios:
        yield Deviation("gave-a-result", RUNS, "no scenario ran")
    for one in judgement.scenarios:
        if one.reasons and not one.as_stated:
            yield Deviation("as-stated", one.name, one.reasons[0])
        if one.interrupted or one.run_state in _NO_RESULT:
            why = one.state_reason.strip().partition("\n")[0]
            yield Deviation("gave-a-result", one.name, f"{one.state}: {why}")
    for verdict in judgement.outside_divergences:
        yield Deviation("as-stated", str(verdict.subject), str(verdict))
    for run in basis.unfinished:
        yield Deviation("gave-a-result", RUNS, f"{run} did not end by itself, or history is gone")
    for name in basis.lost:
        yield Deviation("gave-a-result", name, "its results are listed, and its history is gone")


def _of_requirements(requirements: Sequence[Requirement]) -> Iterator[Deviation]:
    if not requirements:
        yield Deviation("requirements-proved", REQUIREMENTS, "none were found: testplans/requirements.yaml")
    for each in requirements:
        states = set(each.proofs.values())
        if "not-as-stated" in states:
            wrong = [name for name, state in each.proofs.items() if state == "not-as-stated"]
            yield Deviation("requirements-proved", each.id, f"not as stated: {', '.join(wrong)}")
        elif "as-stated" not in states:
            yield Deviation("requirements-proved", each.id, "no scenario of these runs proves it")


def _of_qualification(made: Mapping[str, Any] | None, known: Collection[str]) -> Iterator[Deviation]:
    if made is None:
        yield Deviation("defects-detected", MATRIX, "no qualification was made")
        return
    if made.get("interrupted"):
        yield Deviation("defects-detected", MATRIX, "the qualification was interrupted")
    for trouble in made.get("troubles", ()):
        yield Deviation("no-false-alarms", MATRIX, f"a trial without any defect could not be run: {trouble}")
    for seen in made.get("without_result", ()):
        yield Deviation("no-false-alarms", str(seen["scenario"]), f"without any defect it is {seen['state']}")
    matrix = made["kill_matrix"]
    for defect in matrix["defects"]:
        if not defect["detected_by"]:
            yield Deviation("defects-detected", defect["id"], f"no scenario shows {defect['predicts']}")
    for name in sorted(set(known) - {defect["id"] for defect in matrix["defects"]}):
        yield Deviation("defects-detected", name, "it was not tried")
    for alarm in matrix["false_alarms"]:
        yield Deviation("no-false-alarms", alarm["scenario"], ", ".join(alarm["unstated"]))
