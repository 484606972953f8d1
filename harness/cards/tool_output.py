"""What `fpgasupdate` and `rsu` print -> what they state, and how far they have come."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from harness.cards.values import ERROR_WORDS, STATUS_WORDS
from harness.judgement.values import Unknown, Value

Result = Literal["done", "failed", "not-sent", "interrupted"]

#: Line with which a started tool's process id is announced (see :mod:`harness.cards.remote_tool`).
PID_MARK = "hil-pid:"

#: `fpgasupdate` names a phase in words of its own; kernel phases are the ones to compare with.
#: The last two are of the ioctl interface (2019-20).
_PHASES: tuple[tuple[str, str], ...] = (
    ("waiting for idle", "waiting"),
    ("preparing image file", "preparing"),
    ("writing image file", "transferring"),
    ("programming image file", "programming"),
    ("writing to staging area", "transferring"),
    ("applying update", "programming"),
)
#: The first that the tool of the block-wise ioctls (generation A) says: from here on the card is prepared.
_STARTED = ("updating from file", "preparing")
#: What an engine says when it could not run the tool at all.
_ENGINE_FAILED = re.compile(r"^(?:docker|ctr): .+$")
#: What the tool makes of wear-out that an ioctl reports (n3000.md 5.1).
_WORN = "Secure update is delayed due to excessive flash counts"
#: The tool stops before the card has seen anything (n3000.md 2.8, 5.1).
_NOT_SENT: tuple[str, ...] = (
    "Unknown file format",
    "does not meet the minimum file size",
    "Operation canceled by user",
    "No suitable PAC found",
    "More than one PAC found",
    "is not a valid PCIe address",
    "Failed to find PAC",
    "Failed to find secure device",
)
_INTERRUPTED: tuple[str, ...] = ("Interrupted", "Caught SIGTERM")
_IOCTL_ERRORS = {
    "hw_error": "hw-error",
    "canceled": "user-abort",
    "busy": "device-busy",
    "invalid_size": "invalid-file-size",
    "rw_error": "read-write-error",
    "flash_wearout": "flash-wearout",
}

#: What the tool still says when all is told.
_AFTERWARDS = "Total time"

_LOG = re.compile(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+\] \[(?P<level>[A-Z]+) *\] (?P<text>.*)$")
_PID = re.compile(rf"{PID_MARK}([0-9]{{1,10}})")
_BAR = re.compile(r"^\( *(?P<percent>[0-9]{1,4})%\)")
_ERROR = re.compile(
    rf"^(?:(?P<phase>{'|'.join(sorted(STATUS_WORDS))}):)?(?P<error>{'|'.join(sorted(ERROR_WORDS))})$"
)
_EXCEPTION = re.compile(r"^(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Interrupt|Exit)(?:: .*)?$")
_LONGEST_LINE = 4096


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a tool has come. ``percent``: 0..100 of the phase, None when it has just begun."""

    phase: str
    percent: int | None
    line: str


@dataclass(frozen=True, slots=True)
class Statement:
    """What a tool says became of its operation.

    ``phase``: kernel phase in which it failed, or the last it announced; ``error``: in the kernel's
    word where it is one, else the tool's own text; both empty where there is none.
    """

    result: Result
    phase: str = ""
    error: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the statement of a :class:`harness.judgement.records.Claim`."""
        return {"result": self.result, "phase": self.phase, "error": self.error}


class ToolOutput:
    """Follows a tool's output as it arrives.

    ``by_blocks``: the tool prepares the card by itself, and says so by nothing but that it begins.
    """

    def __init__(self, *, by_blocks: bool = False) -> None:
        self.phase = ""
        self._phases = (*_PHASES, _STARTED) if by_blocks else _PHASES
        self.pid: int | None = None
        self._rest = ""
        self._too_long = False

    def feed(self, text: str) -> list[Progress]:
        """Take the next piece of output, however it is cut; return what it adds to the progress."""
        # Progress bars are redrawn with a carriage return.
        *lines, rest = re.split(r"[\r\n]", self._rest + text)
        if lines and self._too_long:
            del lines[0]
            self._too_long = False
        # A line without an end must not grow for ever; nothing that is looked for is that long, and its
        # tail is no line.
        self._too_long |= len(rest) > _LONGEST_LINE
        self._rest = "" if self._too_long else rest
        return [
            progress
            for line in lines
            if len(line) <= _LONGEST_LINE and (progress := self._line(line.rstrip())) is not None
        ]

    def _line(self, line: str) -> Progress | None:
        if pid := _PID.fullmatch(line):
            self.pid = self.pid or int(pid[1])
            return None
        text = _message(line)  # at log level debug the bar is a message, too
        if bar := _BAR.match(text):
            # Some versions count beyond 100 % (opae-sdk #3078).
            return Progress(self.phase, min(100, int(bar["percent"])), line) if self.phase else None
        for words, phase in self._phases:
            if text.startswith(words):
                self.phase = phase
                return Progress(phase, None, line)
        return None


def without_pid(text: str) -> str:
    """Return a tool's output without the line that announced its process id."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(PID_MARK))


def fpgasupdate_statement(text: str, exit_code: int) -> Statement:
    """Return what `fpgasupdate` states by its ``text`` and ``exit_code`` (-1: a signal ended it).

    An exit code of 0 is a statement of success, whatever the text says: that is what its users go by.
    """
    follow = ToolOutput(by_blocks=True)
    follow.feed(text + "\n")
    messages = [_message(line.rstrip()) for line in re.split(r"[\r\n]+", text) if line.strip()]
    if exit_code == 0:
        return Statement("done", follow.phase)
    for message in reversed(messages):
        if any(words in message for words in _NOT_SENT):
            return Statement("not-sent", error=message)
        if message.startswith(_INTERRUPTED):
            return Statement("interrupted", follow.phase, message)
    if exit_code == -1:
        return Statement("interrupted", follow.phase, "ended without an exit code")
    for message in reversed(messages):
        if match := _ERROR.match(message):
            return Statement("failed", match["phase"] or follow.phase, match["error"])
        if message in _IOCTL_ERRORS:
            return Statement("failed", follow.phase, _IOCTL_ERRORS[message])
        if message.startswith("Secure update timed out"):
            return Statement("failed", follow.phase, "timeout")
        if message.startswith(_WORN):
            return Statement("failed", follow.phase, "flash-wearout")
        if _ENGINE_FAILED.match(message):
            return Statement("failed", error=message)
        if _EXCEPTION.match(message):
            return Statement("failed", follow.phase, message)
    said = [message for message in messages if not message.startswith(_AFTERWARDS)]
    return Statement("failed", follow.phase, _last(said, exit_code))


def rsu_statement(text: str, exit_code: int) -> Statement:
    """Return what `rsu` states by its ``text`` and ``exit_code`` (-1: a signal ended it).

    0 does not prove that the card came back (n3000.md 5.2); it is what `rsu` claims.
    """
    if exit_code == 0:
        return Statement("done")
    messages = [_message(line.strip()) for line in text.splitlines() if line.strip()]
    if exit_code == -1:
        return Statement("interrupted", error="ended without an exit code")
    if exit_code in (64, 69):
        return Statement("not-sent", error=_last(messages, exit_code))
    if failed := [message for message in messages if _ENGINE_FAILED.match(message)]:
        return Statement("failed", error=failed[-1])
    return Statement("failed", error=_last(messages, exit_code))


def upload_statement(error: Value[str], text: str, exit_code: int) -> Statement:
    """Return what the kernel's firmware-upload interface states of an update that is over.

    :param error: its ``error`` attribute, empty for none.
    :param text: what the three writes printed. :param exit_code: of the writes; not 0: one was refused.
    """
    if exit_code != 0:
        return Statement("not-sent", error=text.strip() or f"exit code {exit_code} without a word")
    if isinstance(error, Unknown):
        return Statement("failed", error=str(error))
    if error == "":
        return Statement("done")
    match = _ERROR.match(error)
    return Statement("failed", (match["phase"] or "") if match else "", match["error"] if match else error)


def _last(messages: list[str], exit_code: int) -> str:
    return messages[-1] if messages else f"exit code {exit_code} without a word"


def _message(line: str) -> str:
    """Return a line without time and level: ``[date] [LEVEL] text``, or rsu's ``date - text``."""
    if match := _LOG.match(line):
        return match["text"].strip()
    return re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+ - ", "", line).strip()
