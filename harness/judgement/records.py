"""The history's records: intents, completions, claims, observations and faults, as plain data.

A record is one line of a history file. :func:`to_json` and :func:`from_json` are exact inverses,
so that a stored history is judged to the same result as a live one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from harness.judgement.values import Unknown


@dataclass(frozen=True, slots=True)
class Subject:
    """What a statement is about.

    ``kind`` is ``card`` (``name`` is the card's inventory name such as ``subcloud1/card0``; ``host``,
    ``address`` and ``identity`` as observed), ``registry-image`` or ``record`` (of a control plane).
    """

    kind: Literal["card", "registry-image", "record"]
    name: str
    host: str = ""
    address: str = ""
    identity: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.address})" if self.address else self.name


@dataclass(frozen=True, slots=True)
class Promise:
    """What documents promise for an intent.

    ``effect``: ``lands`` (the new content takes effect), ``unchanged`` (the old content stays),
    ``factory`` (the card falls back to its factory page), ``returns`` (a reset: the card comes back).
    ``codes``: the card's authentication codes that documents allow, such as ``("0x11",)``; empty
    where none is due or none is documented. ``source``: document and section.
    """

    effect: Literal["lands", "unchanged", "factory", "returns"]
    codes: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The raw material of a claim, as captured after redaction.

    ``command``: the command line or request; ``exit_code`` of the command or None; ``text``: output,
    log line, JSON or table row, verbatim.
    """

    text: str
    command: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What every record has: sequence number and harness time; source time and skew where known.

    ``time``: seconds since the epoch by the harness's clock. ``source_time``: the same by the clock
    of the source. ``skew``: source clock minus harness clock in seconds, where it was measured.
    """

    seq: int = 0
    time: float = 0.0
    source_time: float | None = None
    skew: float | None = None

    kind: ClassVar[str] = "record"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Record):
    """First line of a history: which run, on which lab, with which versions and options."""

    kind: ClassVar[str] = "run-started"
    run: str
    lab: str
    versions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioStarted(Record):
    """A scenario begins; ``expects``: what it states, as :meth:`.model.Expectation.to_json` has it."""

    kind: ClassVar[str] = "scenario-started"
    scenario: str
    subject: Subject | None = None
    expects: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioEnded(Record):
    """A scenario ends. ``state``: ``finished``, ``interrupted``, or a run state (INFRA, BLOCKED,
    REFUSED, NOT_APPLICABLE, BUG) with its ``reason``."""

    kind: ClassVar[str] = "scenario-ended"
    scenario: str
    state: str = "finished"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent(Record):
    """An operation that the harness asked for. Its ``seq`` is its identity.

    ``operation``: ``flash``, ``reset``, ``power-cycle``, ``push``, ``pull``, ... ``parameters`` of a
    ``flash`` hold ``image`` (see :meth:`harness.images.facts.ImageFacts.to_json`); of a ``push`` or
    ``pull`` its ``client`` (and ``reporter``, the same), ``content`` (``digest``, ``config``, ``blobs``:
    what it is given) and ``compared_by`` (``digest`` or ``config``: what must be under its reference).
    """

    kind: ClassVar[str] = "intent"
    operation: str
    subject: Subject
    parameters: Mapping[str, Any] = field(default_factory=dict)
    promise: Promise | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion(Record):
    """How an intent returned to the harness. ``error`` of a raised one: kind, message, hint."""

    kind: ClassVar[str] = "completion"
    intent: int
    how: Literal["returned", "raised", "timed-out", "never"]
    error: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Record):
    """What a reporter said about a subject.

    ``statement`` of an operation's reporter (``fpgasupdate``, ``rsu``): ``result`` (``done``,
    ``failed``, ``not-sent``, ``interrupted``), ``phase``, ``error``. Of a state reporter
    (``fpgainfo``): field name -> value, the names of :class:`harness.cards.truth.CardTruth`. Of a push or
    pull client: ``result``, ``digest``, ``error``, ``basis``, each empty where it states none; of a log
    that speaks of a push (``log:sysinv``, ``log:dockerd``, ``log:registry``): the same.
    """

    kind: ClassVar[str] = "claim"
    reporter: str
    subject: Subject
    statement: Mapping[str, Any]
    evidence: Evidence
    intent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation(Record):
    """What a probe read from the device or the store itself.

    ``moment``: ``before``, ``after`` (the operation), ``after-reset`` (of a card), ``after-restart`` (of a
    registry), or empty. ``values``: field -> value or :class:`Unknown`; ``sources``: field -> path or
    command that it was read by. Of an image: ``state``, ``digest``, ``config``, ``findings`` and
    ``disagreement``, and the first four of each way, ``api`` and ``store``.
    """

    kind: ClassVar[str] = "observation"
    probe: str
    subject: Subject
    moment: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    intent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Record):
    """A deliberate disturbance bound to a fault point, and what became of it."""

    kind: ClassVar[str] = "fault"
    point: str
    action: str
    subject: Subject
    state: Literal["armed", "fired", "undone", "not-reached"]
    intent: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment(Record):
    """What a part of the lab says that it is made of, such as the versions of kernel and tools of a host.

    ``part``: the host or registry, by its name in the inventory. ``values``: name -> version, or Unknown;
    ``sources``: name -> path or command that it was read by. No verdict rests on it.
    """

    kind: ClassVar[str] = "environment"
    part: str
    values: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Record):
    """What a scenario was given before its first step. No verdict rests on it: it is there for a replay.

    ``values``: by the keys of ``given`` in a scenario file, ``device`` and ``cloud`` besides.
    """

    kind: ClassVar[str] = "setting"
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTaken(Record):
    """A step of a scenario begins, called by a file or by Python. Its ``seq`` is its identity.

    ``name``, ``arguments``: as in a scenario file; ``{"result_of": seq}`` stands for what another step
    returned. ``within``: the step that takes it, where one takes steps. ``place``: the subcloud whose system
    takes it. No verdict rests on it.
    """

    kind: ClassVar[str] = "step"
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    within: int | None = None
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded(Record):
    """A step is over. ``error``: kind, message and hint of what it raised; empty where it returned."""

    kind: ClassVar[str] = "step-ended"
    step: int
    error: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Record):
    """Last line of a history that ended by itself. ``how``: ``finished`` or ``interrupted``."""

    kind: ClassVar[str] = "run-ended"
    how: Literal["finished", "interrupted"] = "finished"


KINDS: dict[str, type[Record]] = {
    cls.kind: cls
    for cls in (
        RunStarted,
        ScenarioStarted,
        ScenarioEnded,
        Intent,
        Completion,
        Claim,
        Observation,
        Fault,
        Environment,
        Setting,
        StepTaken,
        StepEnded,
        RunEnded,
    )
}

_NESTED: dict[str, type[Subject] | type[Promise] | type[Evidence]] = {
    "subject": Subject,
    "promise": Promise,
    "evidence": Evidence,
}


_PLAIN = frozenset({str, int, float, bool, type(None)})


def _encode(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if isinstance(value, (Subject, Promise, Evidence)):
        return {name: _encode(getattr(value, name)) for name in value.__slots__}
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(_encode(item) for item in value)
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        # Also where a producer wrote this form itself, as ImageFacts.to_json does: it means the same.
        if value.keys() == {"unknown"} and isinstance(value["unknown"], str):
            return Unknown(value["unknown"])
        return {key: _decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decode(item) for item in value]
    return value


def to_json(record: Record) -> dict[str, Any]:
    """Return ``record`` as a JSON object; ``kind`` names its class."""
    return {"kind": record.kind} | {
        name: _encode(value) for name in _TYPES[type(record)] if (value := getattr(record, name)) is not None
    }


def from_json(line: Mapping[str, Any]) -> Record:
    """Return the record that :func:`to_json` wrote.

    :raises ValueError: the object is not a record of a known kind, lacks a field, or a field of it is of
        another type than the record's: what judges it relies on that.
    """
    kind = line.get("kind")
    cls = KINDS.get(str(kind))
    if cls is None:
        raise ValueError(f"unknown record kind {kind!r}; known: {', '.join(KINDS)}")
    values: dict[str, Any] = {}
    try:
        for name, hint in _TYPES[cls].items():
            if name not in line:
                continue
            value = _decode(line[name])
            nested = _NESTED.get(name)
            if nested is not None and value is not None:
                if nested is Promise:
                    value = value | {"codes": tuple(value.get("codes", ()))}
                value = nested(**value)
                for part, part_hint in _TYPES[nested].items():
                    _check(f"{name}.{part}", getattr(value, part), part_hint)
            _check(name, value, hint)
            values[name] = value
        return cls(**values)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"not a {kind} record: {error}") from error


def _types(cls: type[Any]) -> dict[str, Any]:
    """Return the fields of a record, or of a part of one, with their types."""
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls)}


_TYPES: dict[Any, dict[str, Any]] = {
    cls: _types(cls) for cls in (*KINDS.values(), Subject, Promise, Evidence)
}


def _check(name: str, value: Any, hint: Any) -> None:
    """:raises TypeError: ``value`` is not of the type ``hint``."""
    if not _fits(value, hint):
        shown = repr(value)
        raise TypeError(f"{name} is {shown if len(shown) <= 60 else f'{shown[:60]}...'}, which it cannot be")


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if isinstance(hint, type):
        if hint is float:
            return type(value) in (int, float) and isfinite(value)
        return type(value) is int if hint is int else isinstance(value, hint)
    form, parts = get_origin(hint), get_args(hint)
    if form is Literal:
        return isinstance(value, str) and value in parts
    if form is Mapping:
        return isinstance(value, Mapping) and all(_fits(item, parts[1]) for item in value.values())
    if form is tuple:
        return isinstance(value, tuple) and all(_fits(item, parts[0]) for item in value)
    return any(_fits(value, part) for part in parts)
