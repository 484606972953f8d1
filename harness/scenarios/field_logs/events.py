"""What a pasted log holds, piece by piece: commands, claims, things that happened; and who reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from harness.judgement.records import Claim
from harness.scenarios.field_logs.lines import Line
from harness.scenarios.field_logs.moments import NO_YEAR

#: The system controller of a distributed cloud, whatever it is called in the field.
CENTRAL: Final = "system-controller"
#: What can be seen to have happened, beside what somebody claims.
What = Literal[
    "download-started",  # sysinv begins to bring an image into its registry
    "push-over",  # the image that was pushed is not needed any more
    "certificate",  # a certificate for the registry is installed
    "restart",  # a service is being restarted
    "restarted",  # it was
    "application",  # in which state the control plane has an application
    "root-key",  # a card is said to have a root key
    "round",  # a strategy is said to have ended
    "bug",  # a bug of a public tracker is named
    "dated",  # when it was
    "unended",  # a tool's output that does not tell how it ended
]


@dataclass(frozen=True, slots=True)
class Place:
    """Where it stands."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One piece. ``time``: seconds since the epoch by its source; None where the line states none.

    ``assumed``: what had to be assumed of the time: ``zone``, ``year``.
    """

    place: Place
    time: float | None = None
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Event):
    """A command line. ``system``: where it was given, as far as that is said; ``words``: split by the shell.

    ``text``: the line as it was, without secrets.
    """

    words: tuple[str, ...]
    text: str
    system: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Event):
    """A claim. ``hearsay``: the writer of the report says that a reporter said so.

    ``system``: whose it is. ``times``: how often the same was said; ``last``: where, for the last time.
    """

    claim: Claim
    system: str = ""
    hearsay: bool = False
    times: int = 1
    last: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened(Event):
    """Something that happened. ``subject``: what to; ``detail``: more of it, such as a state."""

    what: What
    subject: str = ""
    detail: str = ""


@dataclass(slots=True)
class Context:
    """What is spoken of where a line stands. ``system``: whose tables and commands follow.

    ``command``: the last command line, whose output follows. ``year``: the last that was stated.
    """

    system: str = ""
    command: str = ""
    year: int = NO_YEAR
    #: The last line that a reader has made something of.
    heard: int = 0


class Reader(Protocol):
    """Reads artefacts of one kind. It gets lines with one of its ``hints``, and all while it is ``busy``."""

    hints: tuple[str, ...]

    @property
    def busy(self) -> bool:
        """Whether it is in the middle of something, so that it wants the next line whatever it is."""
        ...

    def take(self, line: Line, context: Context) -> Iterator[Event]:
        """Yield what the line, or what ends with it, holds."""
        ...

    def end(self, context: Context) -> Iterator[Event]:
        """Yield what was begun; the file is over."""
        ...


@dataclass
class LineReader:
    """Base of readers to which each line is one thing by itself."""

    hints: tuple[str, ...] = field(default=(), init=False)
    busy: bool = field(default=False, init=False)

    def end(self, context: Context) -> Iterator[Event]:
        """Yield nothing: nothing was begun."""
        return iter(())


def place_of(line: Line) -> Place:
    """Return where a line stands."""
    return Place(line.file, line.number)
