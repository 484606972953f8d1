"""Reads what registries and engines log: logfmt, JSON, access lines, each within syslog or not."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Form = Literal["logfmt", "json", "access", "plain"]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of a log.

    ``time``: seconds since the epoch by the source's clock, where the line states a time with its zone.
    ``level``: in lower case; empty where none is stated. ``fields``: what else is stated, as text.
    ``host``, ``program``, ``pid``: of the syslog line around it. ``raw``: the line, verbatim.
    """

    message: str
    raw: str
    form: Form = "plain"
    time: float | None = None
    level: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    host: str = ""
    program: str = ""
    pid: int | None = None


#: Of RFC 3164 and of RFC 3339 with or without a zone, as rsyslog, journald and StarlingX write them. The
#: severity before the message is StarlingX's (second field report).
_SYSLOG = re.compile(
    r"(?:<\d{1,3}>)?"
    r"(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d)?) "
    r"(?P<host>\S+) (?P<program>[^\s:\[\]]+)(?:\[(?P<pid>\d{1,9})\])?: "
    r"(?:(?P<severity>debug|info|notice|warning|warn|err|error|crit|alert|emerg) )?(?P<rest>.*)",
    re.DOTALL,
)
_PAIR = re.compile(
    r'(?P<key>[^\s="]+)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s"]*))(?: +|$)', re.DOTALL
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SHORT = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", '"': '"'}
#: The Apache "combined" form that the registry's access log has.
_ACCESS = re.compile(
    r"(?P<remoteaddr>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] "
    r'"(?P<method>[A-Z]+) (?P<uri>\S+) (?P<protocol>HTTP/[\d.]+)" '
    r'(?P<status>\d{3}) (?P<written>\d+|-)(?: "(?P<referer>[^"]*)" "(?P<useragent>.*)")?'
)
_CLOCK = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)")


def parse_log(lines: Iterable[str]) -> Iterator[LogEntry]:
    """Yield an entry for each line that is not blank; a line of no known form is kept as it is."""
    for line in lines:
        if line.strip():
            yield parse_line(line)


def parse_line(line: str) -> LogEntry:
    """Return what ``line`` says; one of no known form is ``plain``, with all of it as the message."""
    raw = line.rstrip("\r\n")
    wrapped = _SYSLOG.fullmatch(raw)
    if wrapped is None:
        return _inner(raw, raw)
    around = _Around(
        wrapped["host"],
        wrapped["program"],
        int(wrapped["pid"]) if wrapped["pid"] else None,
        (wrapped["severity"] or "").lower(),
        _seconds(wrapped["time"]),
    )
    return _inner(wrapped["rest"], raw, around)


@dataclass(frozen=True, slots=True)
class _Around:
    """What the syslog line around an entry states."""

    host: str = ""
    program: str = ""
    pid: int | None = None
    level: str = ""
    time: float | None = None


def _inner(text: str, raw: str, around: _Around = _Around()) -> LogEntry:
    form: Form
    pairs: dict[str, str]
    if (found := _json(text)) is not None:
        form, pairs = "json", found
    elif (found := _logfmt(text)) is not None:
        form, pairs = "logfmt", found
    elif access := _ACCESS.fullmatch(text):
        form = "access"
        pairs = {key: value for key, value in access.groupdict().items() if value is not None}
        pairs["msg"] = text
    else:
        form = "plain"
        pairs = {"msg": text}
    seconds = _seconds(pairs.pop("time", "") or pairs.pop("@timestamp", ""))
    return LogEntry(
        message=pairs.pop("msg", "") or pairs.pop("message", ""),
        raw=raw,
        form=form,
        time=around.time if seconds is None else seconds,
        level=(pairs.pop("level", "") or around.level).lower(),
        fields=pairs,
        host=around.host,
        program=around.program,
        pid=around.pid,
    )


def _json(text: str) -> dict[str, str] | None:
    """Return the members of a log object as text; None where it is none."""
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not {"msg", "message"} & found.keys():
        return None
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in found.items()}


def _logfmt(text: str) -> dict[str, str] | None:
    """Return the pairs of a line that consists of pairs and states a message; None for any other."""
    pairs: dict[str, str] = {}
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            return None
        pairs[pair["key"]] = pair["bare"] if pair["quoted"] is None else _unquoted(pair["quoted"])
        at = pair.end()
    return pairs if "msg" in pairs else None


def _unquoted(text: str) -> str:
    """Return what Go's %q quoted. An escape that Go does not write stays, as does a byte of no character."""

    def plain(escape: re.Match[str]) -> str:
        byte, short, long, letter = escape.groups()
        if letter is not None:
            return _SHORT.get(letter, escape[0])
        code = int(byte or short or long, 16)
        printable = code < 0x80 if byte else code < 0x110000 and not 0xD800 <= code < 0xE000
        return chr(code) if printable else escape[0]

    return _ESCAPE.sub(plain, text) if "\\" in text else text


def _seconds(text: str) -> float | None:
    """Return a stated time as seconds since the epoch; None where it has no zone or is none."""
    clock = _CLOCK.fullmatch(text)
    try:
        if clock is None:
            return datetime.datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z").timestamp()
        zone = "+00:00" if clock[3] == "Z" else clock[3]
        whole = datetime.datetime.strptime(clock[1] + zone, "%Y-%m-%dT%H:%M:%S%z").timestamp()
    except (ValueError, OverflowError):
        return None
    return whole + (float(f"0.{clock[2]}") if clock[2] else 0.0)
