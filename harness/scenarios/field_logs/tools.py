"""Reads what `fpgasupdate`, `rsu`, `fpgainfo` and `sw-manager` print, and what the kernel logs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from harness.cards.kernel_log import auth_report
from harness.cards.parsers import parse_fpgainfo
from harness.cards.tool_output import Statement, fpgasupdate_statement, rsu_statement
from harness.controlplane.told import subject_of
from harness.controlplane.vim import from_output
from harness.errors import ControlPlaneError
from harness.judgement.records import Claim, Evidence, Subject
from harness.judgement.values import Unknown
from harness.record.redaction import redact
from harness.scenarios.field_logs.events import (
    Context,
    Event,
    Happened,
    LineReader,
    Place,
    Told,
    place_of,
)
from harness.scenarios.field_logs.lines import Line
from harness.scenarios.field_logs.tables import shown_fields

#: Lines that one output may have, and letters that are kept of it as evidence.
_LONGEST: Final = 400
_EVIDENCE: Final = 800
_ADDRESS: Final = re.compile(r"\b(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b")
_LOGGED: Final = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+\] \[(?P<level>[A-Z]+) *\] (?P<text>.*)")
_BEGINS: Final = re.compile(r"updating from file (?P<file>\S{1,300})")
_BAR: Final = re.compile(r"\( *\d{1,4}%\)")
_DONE: Final = ("Secure update OK",)
#: What the tool says outside its log where it does not begin at all (n3000.md 2.8, 5.1), or is interrupted.
_FAILED: Final = re.compile(
    r"Unknown file format|does not meet the minimum file size|No suitable PAC found|More than one PAC found"
    r"|^Interrupted|^Caught SIGTERM|Secure update (?:timed out|is delayed)"
)
_RSU_DONE: Final = "RSU operation complete"
_RSU_FAILED: Final = re.compile(
    r"RSU operation failed|No compatible devices found|does not identify a compatible device"
    r"|rsu not supported by this|is not supported by this \(0x"
)
_INFO: Final = re.compile(r"Board Management Controller|//\*+ (?:FME|BMC SENSORS|SEC|PHY|PORT) \*+//")


@dataclass
class FlashReader:
    """Gathers the output of `fpgasupdate`, and yields what it states."""

    hints: tuple[str, ...] = ("] [", "Unknown file format", "minimum file size", "PAC found", "Secure update")
    _lines: list[str] = field(default_factory=list)
    _place: Place | None = None
    _last: Place | None = None
    _address: str = ""
    _file: str = ""
    _failed: bool = False

    @property
    def busy(self) -> bool:
        """Whether an update goes on."""
        return bool(self._lines)

    def take(self, line: Line, context: Context) -> Iterator[Event]:
        """Yield what an output states that ends with, or before, this line."""
        text = line.text.strip()
        logged = _LOGGED.match(text)
        message = logged["text"].strip() if logged else text
        begins = _BEGINS.search(message)
        mine = bool(logged or _BAR.match(text) or _FAILED.search(text)) or (not text and self.busy)
        if self._lines and (begins or not mine or len(self._lines) >= _LONGEST):
            yield from self.end(context)
        if not self._lines:
            if not begins and not (logged and logged["level"] == "ERROR") and not _FAILED.search(text):
                return
            self._place, self._file, self._failed = place_of(line), "", False
            self._address = _address(context.command)
        if not mine:
            return
        context.heard = line.number
        self._lines.append(text)
        self._last = place_of(line)
        self._file = begins["file"] if begins else self._file
        self._address = (_address(message) if "update of" in message else "") or self._address
        self._failed |= bool(logged and logged["level"] == "ERROR") or bool(_FAILED.search(text))
        if message.startswith(_DONE):
            yield from self.end(context)

    def end(self, context: Context) -> Iterator[Event]:
        """Yield what the output states that was begun; that it does not tell how it ended."""
        lines, self._lines = self._lines, []
        if not lines or self._place is None or self._last is None:
            return
        text = redact("\n".join(lines))
        done = any(word in text for word in _DONE)
        subject = _card(context.system, self._address)
        if not done and not self._failed:
            yield Happened(place=self._place, what="unended", subject=subject.name, detail=redact(self._file))
            return
        stated = fpgasupdate_statement(text, 0 if done else 1)
        told = _told("fpgasupdate", subject, stated, text, self._last, context)
        said = {**told.claim.statement, **({"image": redact(self._file)} if self._file else {})}
        yield replace(told, claim=replace(told.claim, statement=said))


@dataclass
class ResetReader(LineReader):
    """Yields what `rsu` states, and the kernel's codes of an update."""

    def __post_init__(self) -> None:
        self.hints = ("RSU ", "compatible device", "not supported by this", "Doorbell")

    def take(self, line: Line, context: Context) -> Iterator[Event]:
        """Yield what the line says."""
        text = redact(line.text.strip())
        address = _address(text) or _address(context.command)
        if report := auth_report([text], ()):
            context.heard = line.number
            evidence = Evidence(text[:_EVIDENCE])
            claim = Claim(
                reporter="kernel-log",
                subject=_card(context.system, _address(text)),
                statement=report.statement(),
                evidence=evidence,
            )
            yield Told(place=place_of(line), claim=claim, system=context.system)
        elif _RSU_DONE in text or _RSU_FAILED.search(text):
            context.heard = line.number
            stated = rsu_statement(text, 0 if _RSU_DONE in text else 1)
            yield _told("rsu", _card(context.system, address), stated, text, place_of(line), context)


@dataclass
class InfoReader:
    """Gathers the output of `fpgainfo`, and yields what it shows of each card."""

    hints: tuple[str, ...] = ("Board Management Controller", "//****")
    _lines: list[str] = field(default_factory=list)
    _place: Place | None = None

    @property
    def busy(self) -> bool:
        """Whether an output goes on."""
        return bool(self._lines)

    def take(self, line: Line, context: Context) -> Iterator[Event]:
        """Yield what an output shows that ends before this line."""
        text = line.text.rstrip()
        if self._lines and ((":" not in text and "//***" not in text) or len(self._lines) >= _LONGEST):
            yield from self.end(context)
        if not self._lines and not _INFO.search(text):
            return
        self._place = self._place if self._lines else place_of(line)
        self._lines.append(text)
        context.heard = line.number

    def end(self, context: Context) -> Iterator[Event]:
        """Yield what the output shows that was begun."""
        lines, self._lines = self._lines, []
        if not lines or self._place is None:
            return
        text = redact("\n".join(lines))
        for info in parse_fpgainfo(text):
            shown = {k: v for k, v in info.statement().items() if not isinstance(v, Unknown)}
            if shown:
                claim = Claim(
                    reporter="fpgainfo",
                    subject=_card(context.system, str(shown.get("address", ""))),
                    statement=shown,
                    evidence=Evidence(text[:_EVIDENCE], context.command),
                )
                yield Told(place=self._place, claim=claim, system=context.system)


@dataclass
class VimReader:
    """Gathers what `sw-manager fw-update-strategy show` prints, and yields what it says of the strategy."""

    hints: tuple[str, ...] = ("Strategy Firmware Update Strategy:",)
    _lines: list[str] = field(default_factory=list)
    _place: Place | None = None

    @property
    def busy(self) -> bool:
        """Whether an output goes on."""
        return bool(self._lines)

    def take(self, line: Line, context: Context) -> Iterator[Event]:
        """Yield what an output says that ends before this line."""
        text = line.text.rstrip()
        if self._lines and text.startswith("  ") and len(self._lines) < _LONGEST:
            self._lines.append(text)
            context.heard = line.number
            return
        yield from self.end(context)
        if text.strip() in self.hints:
            self._place, self._lines = place_of(line), [text.strip()]
            context.heard = line.number

    def end(self, context: Context) -> Iterator[Event]:
        """Yield what the output says that was begun."""
        lines, self._lines = self._lines, []
        if not lines or self._place is None:
            return
        text = redact("\n".join(lines))
        try:
            strategies = from_output(text)
        except ControlPlaneError:  # one without a state, as where the paste is cut off
            return
        for strategy in strategies:
            claim = Claim(
                reporter="system",
                subject=subject_of(context.system or "system", strategy),
                statement=shown_fields(strategy),
                evidence=Evidence(text[:_EVIDENCE], context.command),
            )
            yield Told(place=self._place, claim=claim, system=context.system)


def _told(
    reporter: str, subject: Subject, stated: Statement, text: str, place: Place, context: Context
) -> Told:
    return Told(
        place=place,
        claim=Claim(
            reporter=reporter,
            subject=subject,
            statement=stated.to_json(),
            evidence=Evidence(text[-_EVIDENCE:], context.command),
        ),
        system=context.system,
    )


def _address(text: str) -> str:
    found = _ADDRESS.search(text)
    if found is None:
        return ""
    return found[0].lower() if found[0].count(":") == 2 else f"0000:{found[0].lower()}"


def _card(system: str, address: str) -> Subject:
    """Return the card that is spoken of, as far as that is said."""
    return Subject("card", "/".join(filter(None, (system, address))) or "a card", address=address)
