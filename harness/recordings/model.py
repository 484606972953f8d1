"""What a recording holds: states of a host's cards, and the acts that led from one to the next.

The form in JSON is that of ``docs/recordings.md``. Everything here is data: no host, no clock, no files.
"""

from __future__ import annotations

import base64
import binascii
import errno
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeVar

from harness.recordings.reader import Place, start

FORMAT = "hil-recording"
SCHEMA = 1
#: What stands for the image's path on the host in an act's command line and output; for its folder and its
#: name alone, where a container is given these.
IMAGE_WORD, FOLDER_WORD, NAME_WORD = "{image}", "{image-folder}", "{image-name}"
#: More paths than any host with its cards shows; beyond it a file is hostile.
MAX_ENTRIES = 200_000
#: A look at a running act counts until the next one, unless that came later than this (s).
RESOLUTION = 5.0

Kind = Literal["content", "unreadable", "write-only", "link", "directory", "left-out", "absent"]
Stream = Literal["stdout", "stderr"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """What stood at one path.

    ``content``: a file with ``data``. ``unreadable``: reading it failed, ``text`` is the errno's name.
    ``write-only``: no one may read it. ``link``: ``text`` is its target. ``directory``: one whose names
    are all in the recording. ``left-out``: it was there, and ``text`` says why it was not captured.
    ``absent``: there was nothing.
    """

    kind: Kind
    data: bytes = b""
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the entry as JSON."""
        if self.kind == "content":
            try:
                return {"text": self.data.decode()}
            except UnicodeDecodeError:
                return {"base64": base64.b64encode(self.data).decode()}
        if self.kind in _WORDS:
            return {_WORDS[self.kind]: self.text}
        return {self.kind: True}

    @classmethod
    def from_json(cls, place: Place) -> Entry:
        """Return the entry at ``place``. :raises ValueError: it is none."""
        keys = sorted(place.mapping())
        key = keys[0] if len(keys) == 1 else ""
        if key == "text":
            return cls("content", place.text("text").encode())
        if key == "base64":
            try:
                return cls("content", base64.b64decode(place.text("base64"), validate=True))
            except (binascii.Error, ValueError):
                raise place.wrong("its base64 is damaged") from None
        for kind, word in _WORDS.items():
            if key == word:
                text = place.text(word)
                if kind == "unreadable" and text not in _ERRNOS:
                    raise place.wrong(f"{text[:80]!r} is no errno")
                if kind == "link" and (not text or "\0" in text):
                    raise place.wrong("a link leads nowhere")
                return cls(kind, text=text)
        for plain in _PLAIN:
            if key == plain and place.mapping()[plain] is True:
                return cls(plain)
        known = ", ".join(("text", "base64", *_WORDS.values(), *_PLAIN))
        raise place.wrong(f"{', '.join(keys)[:200] or 'nothing'} where one of {known} is due")


_WORDS: dict[Kind, str] = {"unreadable": "errno", "link": "link", "left-out": "left-out"}
#: Where a host shows its cards and itself, besides its sysfs; and where that cannot be.
_SHOWN = ("sys", "proc", "dev", "etc")
_OF_PROGRAMS = frozenset({"bin", "sbin", "usr", "run", "root", "var", "lib", "proc", "dev", "etc"})
_ERRNOS = frozenset(errno.errorcode.values())
_PLAIN: tuple[Kind, ...] = ("write-only", "directory", "absent")


@dataclass(frozen=True, slots=True)
class Output:
    """What a command printed, and its exit code; negative: a signal ended it."""

    exit: int
    stdout: str = ""
    stderr: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON: texts as lists of lines, so that they can be compared."""
        streams = {"stdout": self.stdout, "stderr": self.stderr}
        lines = {name: text.splitlines(keepends=True) for name, text in streams.items() if text}
        return {"exit": self.exit, **lines}

    @classmethod
    def from_json(cls, place: Place) -> Output:
        """Return the output at ``place``. :raises ValueError: it is none."""
        place.only("exit", "stdout", "stderr")
        return cls(place.integer("exit"), place.lines("stdout"), place.lines("stderr"))


@dataclass(frozen=True, slots=True)
class Sample:
    """What the watched files of an act showed from ``at`` until ``until`` (s since it began), by name."""

    at: float
    until: float
    values: Mapping[str, Entry]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        values = {name: entry.to_json() for name, entry in self.values.items()}
        return {"at": self.at, "until": self.until, **values}


@dataclass(frozen=True, slots=True)
class Piece:
    """What a tool printed at one moment of an act (s since it began)."""

    at: float
    stream: Stream
    text: str


@dataclass(frozen=True, slots=True)
class Act:
    """One flash or reset of ``card``, from the start of its tool.

    ``argv``: the tool's command line, with :data:`IMAGE_WORD` for the image's path. ``image``: what was
    flashed (``size``, ``sha256``, and its ``kind``). ``watched``: name -> file.
    ``ended``: when the tool ended. ``settled``: when the next state had come about.
    """

    act: Literal["flash", "reset"]
    card: str
    argv: tuple[str, ...]
    exit: int
    ended: float
    settled: float
    image: Mapping[str, Any] = field(default_factory=dict)
    watched: Mapping[str, str] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    output: tuple[Piece, ...] = ()

    def sample(self, at: float) -> Mapping[str, Entry] | None:
        """Return what the watched files showed at ``at`` s; None where nobody looked.

        Between two looks the earlier one counts, unless the later one came much later. The first is made
        before the tool begins and says nothing of what it does: "idle" must not outlast the start.
        """
        last: Sample | None = None
        for number, sample in enumerate(self.samples):
            if sample.at > at:
                held = last is not None and number > 1 and sample.at - last.until <= RESOLUTION
                return last.values if last is not None and held else None
            last = sample
            if at <= sample.until:
                return sample.values
        return None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        found: dict[str, Any] = {"act": self.act, "card": self.card, "argv": list(self.argv)}
        if self.image:
            found["image"] = dict(self.image)
        return found | {
            "exit": self.exit,
            "ended": self.ended,
            "settled": self.settled,
            "watched": dict(self.watched),
            "samples": [sample.to_json() for sample in self.samples],
            "output": [{"at": p.at, p.stream: p.text} for p in self.output],
        }

    @classmethod
    def from_json(cls, place: Place) -> Act:
        """Return the act at ``place``. :raises ValueError: it is none."""
        place.only(
            *("act", "card", "argv", "image", "exit", "ended", "settled", "watched", "samples", "output")
        )
        watched = {name: _path(place.child("watched", name)) for name in place.mapping("watched")}
        argv = tuple(item.as_text() for item in place.items("argv"))
        if not argv:
            raise place.wrong("an act without a command line")
        found = cls(
            act=place.choice("act", ("flash", "reset")),
            card=place.text("card"),
            argv=argv,
            exit=place.integer("exit"),
            ended=place.number("ended"),
            settled=place.number("settled"),
            image=place.mapping("image") if "image" in place.mapping() else {},
            watched=watched,
            samples=tuple(_sample(item, watched) for item in place.items("samples")),
            output=tuple(_piece(item) for item in place.items("output")),
        )
        if found.act == "flash" and not isinstance(found.image.get("kind"), dict):
            raise place.wrong("a flash that does not say which kind of image it wrote")
        _ascending(place, [at for sample in found.samples for at in (sample.at, sample.until)], "samples")
        _ascending(place, [piece.at for piece in found.output], "output")
        if found.settled < found.ended:
            raise place.wrong("it settled before its tool had ended")
        return found


@dataclass(frozen=True, slots=True)
class State:
    """What the host showed while nothing happened.

    In all but the first state of a recording, ``tree`` and ``commands`` hold what differs from the one
    before; None: it is gone. ``addresses``: where each card was; None: nowhere.
    """

    when: str
    addresses: Mapping[str, str | None]
    tree: Mapping[str, Entry | None]
    commands: Mapping[str, Output | None]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, sorted."""
        return {
            "when": self.when,
            "addresses": dict(self.addresses),
            "tree": {path: entry and entry.to_json() for path, entry in sorted(self.tree.items())},
            "commands": {line: out and out.to_json() for line, out in sorted(self.commands.items())},
        }

    @classmethod
    def from_json(cls, place: Place, *, first: bool) -> State:
        """Return the state at ``place``. :raises ValueError: it is none."""
        place.only("when", "addresses", "tree", "commands")
        addresses = {
            name: None if address is None else place.child("addresses", name).as_text()
            for name, address in place.mapping("addresses").items()
        }
        if len(place.mapping("tree")) > MAX_ENTRIES:
            raise place.wrong(f"its tree has more than {MAX_ENTRIES} paths")
        tree: dict[str, Entry | None] = {}
        for path, raw in place.mapping("tree").items():
            entry = place.child("tree", path)
            check_path(entry, path)
            tree[path] = None if raw is None and not first else Entry.from_json(entry)
        commands: dict[str, Output | None] = {}
        for line, raw in place.mapping("commands").items():
            output = place.child("commands", line)
            _words(output, line)
            commands[line] = None if raw is None and not first else Output.from_json(output)
        return cls(place.text("when"), addresses, tree, commands)


@dataclass(frozen=True, slots=True)
class RecordedCard:
    """One card, as it was found first. ``identity``: its first MAC; None where it was not readable."""

    name: str
    address: str
    identity: str | None


@dataclass(frozen=True, slots=True)
class Recording:
    """A host's cards over time: ``acts[i]`` led from ``states[i]`` to ``states[i + 1]``.

    ``made``: when (``at``), by which harness (``by``), and whether MAC addresses were ``kept``
    (``macs``). ``host``: ``name``, ``hostname``, ``sysfs``. ``tools``: where the inventory said that the
    host has its tools.
    """

    made: Mapping[str, str]
    host: Mapping[str, str]
    cards: tuple[RecordedCard, ...]
    states: tuple[State, ...]
    acts: tuple[Act, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "made": dict(self.made),
            "host": {**self.host, "tools": dict(self.tools)},
            "cards": [{"name": c.name, "address": c.address, "identity": c.identity} for c in self.cards],
            "states": [state.to_json() for state in self.states],
            "acts": [act.to_json() for act in self.acts],
        }

    @classmethod
    def from_json(cls, value: Any) -> Recording:
        """Return the recording that ``value``, plain data, is.

        :raises ValueError: it is none, with the place of the first thing that is wrong.
        """
        place = start(value)
        if place.mapping().get("format") != FORMAT:
            raise place.wrong(f"it does not begin with the format {FORMAT!r}")
        if place.mapping().get("schema") != SCHEMA:
            raise OtherSchema(f"it is of schema {place.mapping().get('schema')!r}, this is schema {SCHEMA}")
        place.only("format", "schema", "made", "host", "cards", "states", "acts")
        states, host = place.items("states"), place.child("host")
        host.only("name", "hostname", "sysfs", "tools")
        found = cls(
            made={name: place.child("made", name).as_text() for name in place.mapping("made")},
            host={name: host.text(name) for name in ("name", "hostname", "sysfs")},
            cards=tuple(_card(item) for item in place.items("cards")),
            states=tuple(State.from_json(item, first=not at) for at, item in enumerate(states)),
            acts=tuple(Act.from_json(item) for item in place.items("acts")),
            tools={name: host.child("tools").text(name) for name in host.mapping("tools")},
        )
        if len(found.states) != len(found.acts) + 1:
            raise place.wrong(f"{len(found.acts)} acts need one state more, not {len(found.states)}")
        sysfs = found.host["sysfs"]
        check_path(place.child("host", "sysfs"), sysfs)
        if sysfs.split("/")[1] in _OF_PROGRAMS:
            raise place.child("host", "sysfs").wrong(f"{sysfs!r} is where programs are")
        for number in range(len(found.states)):
            state = place.child("states", number)
            _consistent(state, found.tree(number))
            _in_place(state, found.states[number].tree, sysfs)
        return found

    def tree(self, number: int) -> dict[str, Entry]:
        """Return everything that stood at any path in state ``number``."""
        return _accumulated([state.tree for state in self.states[: number + 1]])

    def commands(self, number: int) -> dict[str, Output]:
        """Return every command line of state ``number`` with what it printed."""
        return _accumulated([state.commands for state in self.states[: number + 1]])


class OtherSchema(ValueError):
    """A recording, but of another version of the schema."""


def difference(before: Mapping[str, T], after: Mapping[str, T]) -> dict[str, T | None]:
    """Return what has to be put over ``before`` to make it ``after``; None where a key is gone."""
    gone: dict[str, T | None] = dict.fromkeys(before.keys() - after.keys())
    return gone | {key: value for key, value in after.items() if before.get(key) != value}


def check_path(place: Place, path: str) -> None:
    """:raises ValueError: ``path`` is not absolute and canonical, so that it could stand for another."""
    parts = path.split("/")
    if parts[0] or len(parts) < 2 or len(parts) > 200 or any(part in ("", ".", "..") for part in parts[1:]):
        raise place.wrong(f"{path[:200]!r} is not an absolute, canonical path")
    if "\0" in path or len(path) > 4000:
        raise place.wrong(f"{path[:200]!r} cannot be a path")


def _path(place: Place) -> str:
    path = place.as_text()
    check_path(place, path)
    return path


def _words(place: Place, line: str) -> None:
    try:
        if shlex.split(line):
            return
    except ValueError:
        pass
    raise place.wrong(f"{line[:200]!r} is no command line")


def _card(place: Place) -> RecordedCard:
    place.only("name", "address", "identity")
    identity = place.mapping().get("identity")
    return RecordedCard(
        place.text("name"), place.text("address"), None if identity is None else place.text("identity")
    )


def _sample(place: Place, watched: Mapping[str, str]) -> Sample:
    place.only("at", "until", *watched)
    values = {name: Entry.from_json(place.child(name)) for name in watched}
    return Sample(place.number("at"), place.number("until"), values)


def _piece(place: Place) -> Piece:
    streams: tuple[Stream, ...] = ("stdout", "stderr")
    for stream in streams:
        if place.mapping().keys() == {"at", stream}:
            return Piece(place.number("at"), stream, place.text(stream))
    raise place.wrong("a piece of output has at, and stdout or stderr")


def _ascending(place: Place, moments: Sequence[float], what: str) -> None:
    if any(later < earlier for earlier, later in pairwise(moments)):
        raise place.wrong(f"its {what} are not in the order of time")


def _consistent(place: Place, tree: Mapping[str, Entry]) -> None:
    """:raises ValueError: something stands below a path that is no directory."""
    solid = {path for path, entry in tree.items() if entry.kind != "directory"}
    for path in tree:
        above = path.rpartition("/")[0]
        while above:
            if above in solid:
                raise place.wrong(f"{path[:200]!r} lies below what is no directory")
            above = above.rpartition("/")[0]


def _in_place(place: Place, tree: Mapping[str, Entry | None], sysfs: str) -> None:
    """:raises ValueError: something stands where no host shows its cards."""
    for path in tree:
        if path.split("/")[1] not in _SHOWN and not f"{path}/".startswith(f"{sysfs}/"):
            raise place.wrong(f"{path[:200]!r} is neither below {sysfs} nor below /{', /'.join(_SHOWN)}")


def _accumulated(changes: Sequence[Mapping[str, T | None]]) -> dict[str, T]:
    found: dict[str, T] = {}
    for change in changes:
        for key, value in change.items():
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
    return found
