"""Reads what the writer of a report says in so many words: of which system, its status, its card."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.judgement.records import Claim, Evidence, Subject
from harness.record.redaction import redact
from harness.scenarios.field_logs.events import (
    CENTRAL,
    Context,
    Event,
    Happened,
    LineReader,
    Place,
    Told,
    place_of,
)
from harness.scenarios.field_logs.lines import Line
from harness.scenarios.field_logs.moments import stamp_of

_ABOUT: Final = re.compile(
    r"\b(?:on|in|at) (?:the )?(?:(?P<central>system ?-?controller)|(?P<name>subcloud[\w-]*))\b", re.IGNORECASE
)
#: Names of subclouds, also several with one word for all, and what is said of them.
_SAID: Final = re.compile(
    r"\b(?P<name>subcloud[-_]?(?:\d+|[a-z][\w-]*)?)(?P<more>(?: *(?:&|,|and|/) *\d+)*)(?=\b|$)"
    r"|(?P<all>\ball (?:the )?subclouds\b)"
    r"|(?P<out>\bout[- ]of[- ]sync\b)|(?P<good>\bin-? ?sync\b)|(?P<unknown>\bstatus (?:is |of )?unknown\b)",
    re.IGNORECASE,
)
_KEYED: Final = re.compile(
    r"(?:flashed with|programmed with|has|had|carries) (?:already )?(?:a |the )?root[- ]?key", re.IGNORECASE
)
_STATES: Final = re.compile(
    r"device[- ]image[- ]states? (?:shows?|says?|is|are|was) (?:\w+ )?(completed|failed|pending|in-progress)",
    re.IGNORECASE,
)
_ROUND: Final = re.compile(
    r"\b(?:round|orchestration|strategy)\b.{0,40}?\b(?:finished|passed|completed|failed|ended)\b(?P<rest>.*)",
    re.IGNORECASE,
)
_COMPLETE: Final = re.compile(r"\ball subclouds complete|\ball passed|\bstrategy (?:is )?complete", re.I)
_BUG: Final = re.compile(
    r"\bLP[-: #]{0,2}(\d{6,8})\b|bugs\.launchpad\.net/\S{0,60}/(\d{6,8})\b", re.IGNORECASE
)
_DATED: Final = re.compile(r"\b(20\d\d)-(\d\d)-(\d\d)\b")
_APPLICATION: Final = re.compile(
    r"'(?P<state>restore-requested|applying|updating|uploading)' state ?"
    r"\((?:both )?(?P<names>[\w ,.-]{1,200})\)"
)
_WORDS_LONG: Final = 400
#: A line that is longer is no sentence; nor is a line of a log or of a table.
_LONGEST: Final = 4096
_LOGGED: Final = re.compile(
    r"\s*(?:[+|\[{<]|(?:\S{1,20} )?20\d\d-\d\d-\d\d[T ]\d\d:|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d|time=|$)"
)


@dataclass
class ProseReader(LineReader):
    """Yields what a sentence says; it also says of which system the tables after it are."""

    def __post_init__(self) -> None:
        self.hints = ("ubcloud", "ontroller", "sync", "round", "LP", "launchpad", "20", "' state", "root")

    def take(self, line: Line, context: Context) -> Iterator[Event]:
        """Yield what the line says."""
        if context.heard == line.number or len(line.text) > _LONGEST or _LOGGED.match(line.text):
            return
        text = line.text.strip()
        place = place_of(line)
        for found in _BUG.finditer(text):
            yield Happened(place=place, what="bug", subject=found[1] or found[2])
        if (date := _DATED.search(text)) and not stamp_of(text):
            yield Happened(place=place, what="dated", detail=date[0])
        if states := _APPLICATION.search(text):
            for name in re.split(r",| and ", states["names"]):
                if name.strip():
                    yield Happened(
                        place=place, what="application", subject=name.strip(), detail=states["state"]
                    )
        if about := _ABOUT.search(text) if text.endswith(":") else _ABOUT.match(text):
            context.system = CENTRAL if about["central"] else about["name"].lower()
            context.command = ""
        yield from self._statuses(line, text)

    def _statuses(self, line: Line, text: str) -> Iterator[Event]:
        place, quote = place_of(line), redact(text)[:_WORDS_LONG]
        if found := _ROUND.search(text):
            state = "complete" if _COMPLETE.search(text) else ""
            yield Happened(place=place, what="round", detail=state)
        last: list[str] = []
        told: list[str] = []
        for found in _SAID.finditer(text):
            if found["name"] or found["all"]:
                last = (last if not told else []) + _named(found)
                told = []
                continue
            out = found["out"] or text[: found.start()].endswith("not ")
            status = "out-of-sync" if out else "in-sync" if found["good"] else "unknown"
            for name in last:
                yield _synced(place, name, status, quote)
            told = last
        subject = (last or [""])[-1]
        if subject and _KEYED.search(text):
            yield Happened(place=place, what="root-key", subject=subject)
        if subject and (found := _STATES.search(text)):
            yield Told(
                place=place,
                claim=Claim(
                    reporter="system",
                    subject=Subject("record", f"{subject}/state"),
                    statement={"status": found[1].lower()},
                    evidence=Evidence(quote),
                ),
                system=subject,
                hearsay=True,
            )


def _named(found: re.Match[str]) -> list[str]:
    if found["all"]:
        return ["all subclouds"]
    name = found["name"].lower()
    stem = name.rstrip("0123456789")
    return (
        []
        if name in ("subcloud", "subclouds")
        else [name, *(stem + number for number in re.findall(r"\d+", found["more"]))]
    )


def _synced(place: Place, name: str, status: str, quote: str) -> Told:
    return Told(
        place=place,
        claim=Claim(
            reporter="dcmanager",
            subject=Subject("record", f"{CENTRAL}/subcloud/{name}"),
            statement={"name": name, "firmware_sync_status": status},
            evidence=Evidence(quote),
        ),
        system=CENTRAL,
        hearsay=True,
    )
