"""Groups the records of one scenario around its operations, in one pass, for the checkers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.judgement.records import Claim, Completion, Fault, Intent, Observation, Record
from harness.judgement.values import Unknown

#: The reporter whose words are evidence of what the card decided, not a report of the operation.
KERNEL_LOG = "kernel-log"
#: The kind of subject that an image in a registry is.
_IMAGE = "registry-image"
#: The kind of subject that a record of a control plane is.
_RECORD = "record"
#: The effect of an update whose image is to be lost: the card is to come up from its factory page.
_FACTORY = "factory"
#: What a reporter says while it works, not about a state.
_PROGRESS_WORDS = frozenset({"phase", "progress", "error", "percent"})

NOT_OBSERVED = Unknown("not observed")

#: Fields that checkers calculate with. A record may come from another program, or be damaged.
_TYPES: dict[str, tuple[type, ...]] = (
    dict.fromkeys(("flash_count", "bitstream_id"), (int, Unknown))
    | dict.fromkeys(("sr_cancelled", "bmc_cancelled", "pr_cancelled"), (list, tuple, frozenset, Unknown))
    | dict.fromkeys(("address", "boot_page", "sr_root", "bmc_root", "pr_root"), (str, Unknown))
)


@dataclass(slots=True, eq=False)
class Operation:
    """An intent and what belongs to it.

    ``image``: the facts of the image that is flashed, empty for other operations; ``image_name``: for
    people. ``overlapped``: another update of the card ran meanwhile.
    """

    intent: Intent
    image: Mapping[str, Any]
    image_name: str
    completion: Completion | None = None
    claims: list[Claim] = field(default_factory=list)
    kernel_log: list[Claim] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    before: Observation | None = None
    after: Observation | None = None
    after_reset: Observation | None = None
    after_restart: Observation | None = None
    overlapped: bool = False

    @property
    def auth_code(self) -> int | None:
        """The last authentication code other than 0 that the kernel logged for it."""
        if not self.kernel_log:
            return None
        codes = [number(claim.statement.get("auth_code")) for claim in self.kernel_log]
        return next((code for code in reversed(codes) if code), None)

    @property
    def never_began(self) -> bool:
        """Whether the harness itself kept the operation from beginning: refused, or wrongly asked for."""
        done = self.completion
        return (
            done is not None
            and done.how == "raised"
            and not self.claims
            and done.error.get("kind") in ("refused", "configuration")
        )


@dataclass(slots=True, eq=False)
class StateClaim:
    """A claim about a state and the observations that it can be held to: the nearest on both sides,
    with no operation or fault between them and the claim."""

    claim: Claim
    truths: list[Observation]


#: What happens to one image of a registry, in order.
ImageEvent = Operation | Observation | Fault


class Block:
    """The records of one scenario (or of what lies between two), grouped.

    :param ended: whether the scenario came to its own end, so that silence means something.
    """

    def __init__(self, records: Iterable[Record], *, ended: bool = True) -> None:
        self.ended = ended
        self.operations: list[Operation] = []
        self.state_claims: list[StateClaim] = []
        self.faults: list[Fault] = []
        self.image_events: dict[str, list[ImageEvent]] = defaultdict(list)
        #: What control planes were asked and said, and what was read of their cards meanwhile.
        self.system_records: list[Record] = []
        self._by_intent: dict[int, Operation] = {}
        self._open_updates: dict[str, list[Operation]] = {}
        self._resets: dict[str, list[Observation]] = defaultdict(list)
        self._readable_resets: dict[str, list[Observation]] = defaultdict(list)
        self._not_made: set[int] = set()
        self._updates: dict[tuple[str, Any], list[int]] = defaultdict(list)
        self._nearest: dict[str, Observation] = {}
        self._waiting: dict[str, list[StateClaim]] = {}
        for record in records:
            if (take := _TAKE.get(type(record))) is not None:
                take(self, record)

    def reset_after(self, operation: Operation) -> Observation | None:
        """Return what was observed after the first reset that follows an operation.

        A later reset stands in where the running image could not be read after the first; and for an image
        that is said to be flashed, where the first was not made, so that it could not become active.
        """
        own = operation.after_reset
        if own is not None and _readable(own):
            return own
        name, seq = operation.intent.subject.name, operation.intent.seq
        readable, all_ = self._readable_resets.get(name, []), self._resets.get(name, [])
        if self._not_made and any(word(claim.statement, "result") == "done" for claim in operation.claims):
            readable, all_ = ([o for o in seen if o.seq not in self._not_made] for seen in (readable, all_))
        return _first_after(readable, seq) or own or _first_after(all_, seq)

    def flashed_between(self, operation: Operation, later: Record, bitstream_id: Any) -> bool:
        """Return whether an image with that id was flashed to the card after ``operation``.

        Or one that was to be lost in its page: the factory image runs then, whatever its id.
        """
        card = operation.intent.subject.name
        return any(
            bisect_right(seqs, operation.intent.seq) < bisect_left(seqs, later.seq)
            for seqs in (self._updates.get((card, bitstream_id), []), self._updates.get((card, _FACTORY), []))
        )

    def flashed_besides(self, operation: Operation, later: Record, bitstream_id: Any) -> Iterator[Operation]:
        """Yield other flashes of an image with that id to the card, from the reset before ``operation`` on
        to the one after it, which ``later`` shows.
        """
        card, seq = operation.intent.subject.name, operation.intent.seq
        resets = self._resets.get(card, [])
        before = bisect_left(resets, seq, key=lambda reset: reset.seq)
        since = resets[before - 1].seq if before else 0
        seqs = self._updates.get((card, bitstream_id), [])
        for other in seqs[bisect_right(seqs, since) : bisect_left(seqs, later.seq)]:
            if other != seq:
                yield self._by_intent[other]

    def _intent(self, intent: Intent) -> None:
        image = intent.parameters.get("image")
        facts = image if isinstance(image, dict) else {}
        operation = Operation(intent, facts, word(facts, "name") or "the image")
        self.operations.append(operation)
        self._by_intent[intent.seq] = operation
        self._separate()
        if intent.subject.kind == _IMAGE:
            self.image_events[intent.subject.name].append(operation)
        elif intent.subject.kind == _RECORD:
            self.system_records.append(intent)
        if intent.operation == "flash":
            name = intent.subject.name
            running = self._open_updates.setdefault(name, [])
            for other in running:
                other.overlapped = operation.overlapped = True
            running.append(operation)
            wanted = fact(operation.image, "bitstream_id")
            if not isinstance(wanted, Unknown):
                self._updates[name, wanted].append(intent.seq)
            if intent.promise is not None and intent.promise.effect == _FACTORY:
                self._updates[name, _FACTORY].append(intent.seq)

    def _completion(self, completion: Completion) -> None:
        operation = self._by_intent.get(completion.intent)
        if operation is not None:
            operation.completion = completion
            if operation.intent.subject.kind == _RECORD:
                self.system_records.append(completion)
            running = self._open_updates.get(operation.intent.subject.name)
            if running and operation in running:
                running.remove(operation)

    def _claim(self, claim: Claim) -> None:
        if claim.subject.kind == _RECORD:
            self.system_records.append(claim)
            return
        statement = claim.statement
        operation = self._by_intent.get(claim.intent) if claim.intent is not None else None
        if claim.reporter == KERNEL_LOG or "auth_code" in statement:
            if operation is not None:
                operation.kernel_log.append(claim)
        elif "result" in statement:
            if operation is not None:
                operation.claims.append(claim)
        elif not statement.keys() <= _PROGRESS_WORDS:
            nearest = self._nearest.get(claim.subject.name)
            held = StateClaim(claim, [nearest] if nearest is not None else [])
            self.state_claims.append(held)
            self._waiting.setdefault(claim.subject.name, []).append(held)

    def _observation(self, observation: Observation) -> None:
        name = observation.subject.name
        if observation.subject.kind == _RECORD or "system" in observation.values:
            self.system_records.append(observation)
            return
        self._nearest[name] = observation
        if name in self._waiting:
            for held in self._waiting.pop(name):
                held.truths.append(observation)
        moment = observation.moment
        operation = self._by_intent.get(observation.intent) if observation.intent is not None else None
        if moment == "after-reset":
            self._resets[name].append(observation)
            if _readable(observation):
                self._readable_resets[name].append(observation)
            if operation is not None and was_not_made(operation, observation):
                self._not_made.add(observation.seq)
            if operation is not None:
                operation.after_reset = observation
        elif operation is not None and moment == "before":
            operation.before = operation.before or observation
        elif operation is not None and moment == "after":
            operation.after = observation
        elif operation is not None and moment == "after-restart":
            operation.after_restart = observation
        if observation.subject.kind == _IMAGE:
            self.image_events[name].append(observation)

    def _fault(self, fault: Fault) -> None:
        self.faults.append(fault)
        if fault.state in ("fired", "undone"):
            self._separate()
        if fault.state == "fired":
            for operation in self._open_updates.get(fault.subject.name, ()):
                operation.faults.append(fault)
        if fault.subject.kind == _RECORD:
            self.system_records.append(fault)
        if fault.subject.kind == _IMAGE:
            self.image_events[fault.subject.name].append(fault)
            pushed = self._by_intent.get(fault.intent) if fault.intent is not None else None
            if pushed is not None and fault.state == "fired":
                pushed.faults.append(fault)

    def _separate(self) -> None:
        """What was read before says nothing about what is claimed from here on."""
        self._nearest.clear()
        self._waiting.clear()


_TAKE: dict[type[Record], Callable[[Block, Any], None]] = {
    Observation: Block._observation,
    Claim: Block._claim,
    Intent: Block._intent,
    Completion: Block._completion,
    Fault: Block._fault,
}


def was_not_made(reset: Operation, seen: Observation | None) -> bool:
    """Whether the tool says that it did not reset the card, and the card runs what it ran."""
    running = field_of(seen, "bitstream_id")
    same = not isinstance(running, Unknown) and running == field_of(reset.before, "bitstream_id")
    return same and bool(reset.claims) and all(word(c.statement, "result") != "done" for c in reset.claims)


def _readable(observation: Observation) -> bool:
    return not isinstance(observation.values.get("bitstream_id", NOT_OBSERVED), Unknown)


def _first_after(observations: list[Observation], seq: int) -> Observation | None:
    index = bisect_right(observations, seq, key=lambda observation: observation.seq)
    return observations[index] if index < len(observations) else None


def word(content: Mapping[str, Any], name: str) -> str:
    """Return a word of a statement or of image facts; empty where there is none."""
    value = content.get(name)
    return value if isinstance(value, str) else ""


def field_of(observation: Observation | None, name: str) -> Any:
    """Return a field of an observation: a value or :class:`Unknown`, also where nothing was observed."""
    if observation is None:
        return NOT_OBSERVED
    value = observation.values.get(name, NOT_OBSERVED)
    wanted = _TYPES.get(name)
    if wanted is None or (isinstance(value, wanted) and _is_plain(value)):
        return value
    return Unknown(f"not a value of {name}: {value!r}")


def _is_plain(value: Any) -> bool:
    """Whether a value that is a list is one of numbers."""
    return not isinstance(value, (list, tuple)) or all(isinstance(each, int) for each in value)


def listed(content: Mapping[str, Any], name: str) -> list[str]:
    """Return the words of a list in a statement or in parameters; none where there is no list."""
    value = content.get(name)
    return [each for each in value if isinstance(each, str)] if isinstance(value, (list, tuple)) else []


def fact(image: Mapping[str, Any], name: str) -> Any:
    """Return a fact of an image: a value, or :class:`Unknown` where it is not known or not stated."""
    value = image.get(name)
    if value is None:
        return Unknown("not stated")
    if isinstance(value, Mapping):
        return Unknown(str(value.get("unknown", "not stated")))
    if name in ("bitstream_id", "cancel_id"):
        code = number(value)
        return Unknown(f"not a number: {value!r}") if code is None else code
    return digits(value) if name == "programs_root" and isinstance(value, str) else value


def number(value: Any) -> int | None:
    """Return an integer, also from text such as ``0x11``; None for anything else."""
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        try:
            return int(value, 0)
        except ValueError:
            return None
    return None


def digits(text: str) -> str:
    """Return hexadecimal digits in the spelling that is compared: small letters, without a prefix."""
    return text.strip().lower().removeprefix("0x")


def show(name: str, value: Any) -> str:
    """Return a field's value as people read it: ids in hex, sets as lists, hashes shortened."""
    if isinstance(value, Unknown):
        return str(value)
    if (name.startswith("bitstream_") or name == "device_id") and isinstance(value, int):
        return f"{value:#x}"
    if name.endswith("_root"):
        text = str(value)
        return f"{text[:16]}..." if len(text) > 16 else (text or "not programmed")
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(map(str, value)) or "none"
    return str(value) if value != "" else "empty"


def source_of(observation: Observation | None, name: str) -> str:
    """Return where a field of an observation was read: path or command."""
    if observation is None:
        return "nothing"
    return observation.sources.get(name) or f"probe {observation.probe}"
