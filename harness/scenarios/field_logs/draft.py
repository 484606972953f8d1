"""The draft of a scenario, and its text: where each step was read, and what could not be recovered."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.judgement.model import VERDICT_RANK, Outcome
from harness.record.redaction import redact
from harness.report.printable import printable
from harness.scenarios.field_logs.contradictions import Contradiction
from harness.scenarios.field_logs.events import Event
from harness.scenarios.field_logs.moments import told_moment
from harness.scenarios.writing import scenario_text

#: Begins each comment about what the files do not say, so that it can be searched for.
OPEN: Final = "NOT RECOVERED"
_WIDTH: Final = 106
_LONGEST_TEXT: Final = 1000


@dataclass(frozen=True, slots=True)
class DraftStep:
    """A step as it stands in a scenario file, and the comments above it."""

    step: Any
    comments: tuple[str, ...] = ()


@dataclass(slots=True)
class Draft:
    """A scenario that is being drafted. ``open``: what is not recovered and belongs to no step."""

    about: str
    source: str
    given: dict[str, Any] = field(default_factory=dict)
    given_comments: list[str] = field(default_factory=list)
    steps: list[DraftStep] = field(default_factory=list)
    outcome: Outcome = Outcome.AS_INTENDED
    expect_comments: list[str] = field(default_factory=list)
    verdicts: dict[str, str] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def add(self, step: Any, *comments: str) -> None:
        """Add a step at the end."""
        self.steps.append(DraftStep(step, tuple(filter(None, comments))))

    def state(self, found: Iterable[Contradiction]) -> None:
        """State the verdicts that contradictions in the log come to: of each reporter the worst."""
        for each in found:
            if not each.stated:
                continue
            before = self.verdicts.get(each.reporter)
            worst = before is None or VERDICT_RANK[each.verdict] < _rank(before)
            if worst:
                self.verdicts[each.reporter] = each.verdict.value
                places = ", ".join(str(told.place) for told in each.claims)
                self.expect_comments.append(f"{each.reporter} is {each.verdict.value}: {each.why} ({places})")


def _rank(word: str) -> int:
    return next(rank for kind, rank in VERDICT_RANK.items() if kind.value == word)


def cited(*events: Event) -> str:
    """Return where something stands, and when it was."""
    told = []
    for event in events:
        moment = told_moment(event.time)
        told.append(f"{event.place}{f' ({moment})' if moment else ''}")
    return ", ".join(told)


def safe(text: str) -> str:
    """Return text of a log as a value of a scenario file: no reference, no secret, nothing unprintable."""
    plain = printable(redact(text), "")[:_LONGEST_TEXT]
    return f"${plain}" if plain.startswith("$") else plain


def draft_text(draft: Draft, files: Sequence[str], notes: Sequence[str]) -> str:
    """Return the text of a scenario file.

    :param files: what it was drafted from. :param notes: on them, for its head.
    """
    head = [
        "Drafted by `hil scenario from-log`. Comments cite file and line of what each step was drafted from.",
        f"{OPEN}: what the files do not say. Something legal stands there; set it right where it is not.",
        *(f"NOTE: {note}" for note in notes),
        *(f"{OPEN}: {what}" for what in draft.open),
    ]
    shown = _Comments(files)
    parts = [shown(head, 0), scenario_text({"about": draft.about, "source": draft.source}), "\n"]
    if draft.given:
        given = scenario_text({"given": draft.given})
        parts += [shown(draft.given_comments, 0), given, "\n"]
    parts.append("steps:\n")
    for each in draft.steps:
        parts += [shown(each.comments, 2), scenario_text({"steps": [each.step]}).partition("\n")[2]]
    parts += ["\n", shown(draft.expect_comments, 0)]
    if expected := _expect(draft):
        parts.append(scenario_text({"expect": expected}))
    else:
        parts.append(
            "# No claim contradicts another: as intended, and every report true, is what is stated.\n"
        )
    return "".join(parts)


def _expect(draft: Draft) -> Mapping[str, Any]:
    said: dict[str, Any] = {}
    if draft.outcome is not Outcome.AS_INTENDED:
        said["outcome"] = draft.outcome.value
    if draft.verdicts:
        said["verdicts"] = draft.verdicts
    return said


class _Comments:
    """Writes comments. Files are cited by their names alone, where no two have the same."""

    def __init__(self, files: Sequence[str]) -> None:
        names = [file.rpartition("/")[2] for file in files]
        unlike = len(set(names)) == len(names)
        self._short = dict(zip(files, names, strict=True)) if unlike else {}

    def __call__(self, lines: Iterable[str], indent: int) -> str:
        """Return ``lines`` as comments; what they were given of a log cannot end one."""
        told = ""
        for line in lines:
            for file, name in self._short.items():
                line = line.replace(f"{file}:", f"{name}:")
            mark = " " * indent + "# "
            plain = " ".join(printable(redact(line), "").split())
            for part in textwrap.wrap(plain, _WIDTH - indent, break_on_hyphens=False) or [""]:
                told += f"{mark}{part}\n"
                mark = " " * indent + "#   "
        return told
