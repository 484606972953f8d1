"""Writes the steps that a history records as a scenario file has them, and says what cannot be written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.judgement.grouping import listed
from harness.judgement.records import Claim, Fault, Intent, Record, StepEnded, StepTaken
from harness.record.redaction import MASK
from harness.scenarios.journal import PAST_THE_VAULT, RESULT_OF, UNNAMED
from harness.scenarios.kinds import STEPS_KIND
from harness.scenarios.steps import STEPS, Step

#: Steps that take what raises within them for an answer.
_TAKES_ANSWERS: Final = ("refused", "taken", "attempt")
#: Real seconds that Python scenarios may give to a step; files do not say them, and no verdict rests on them.
_LEFT_OUT: Final = ("deadline",)
#: Operations that only read.
_READS: Final = ("look",)
#: Fixtures whose steps can be an attempt.
_OF_SYSTEMS: Final = ("system", "cloud")


@dataclass
class WrittenSteps:
    """The steps of one scenario. ``lacks``: why it cannot be done again; ``remarks``: what is not written."""

    records: Sequence[Record]
    steps: list[Any] = field(default_factory=list)
    fixtures: set[str] = field(default_factory=set)
    sources: dict[str, None] = field(default_factory=dict)
    lacks: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _children: dict[int, list[StepTaken]] = field(default_factory=lambda: defaultdict(list))
    _ended: dict[int, StepEnded] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = [record for record in self.records if isinstance(record, StepTaken)]
        self._ended = {r.step: r for r in self.records if isinstance(r, StepEnded)}
        for each in taken:
            self._children[each.within or 0].append(each)
        for number in sorted({number for each in taken for number in _references(each.arguments)}):
            self._names[number] = f"result{len(self._names) + 1}"
        self.steps = self._written(self._in_order(), "")

    # -- what was done --------------------------------------------------------------------------------

    def _in_order(self) -> list[StepTaken | Record]:
        """Return the steps, and in their order what was done by none of them."""
        top = self._children[0]
        spans = [(each.seq, end.seq if (end := self._ended.get(each.seq)) else 1 << 62) for each in top]
        beside: list[Record] = [
            record
            for record in self.records
            if _is_act(record) and not any(begin < record.seq < end for begin, end in spans)
        ]
        return sorted([*top, *beside], key=lambda record: record.seq)

    def _written(self, nodes: Sequence[Record], place: str, *, answers: bool = False) -> list[Any]:
        written: list[Any] = []
        here = place
        for at, node in enumerate(nodes):
            made = self._one(node, last=at == len(nodes) - 1, answers=answers)
            if made is None:
                continue
            own = node.place if isinstance(node, StepTaken) and _is_of_system(node) else place
            if own == place:
                written.append(made)
            elif own == here and written:
                written[-1]["do"].append(made)
            else:
                written.append({"subcloud": own, "do": [made]})
            here = own
        return written

    def _one(self, node: Record, *, last: bool, answers: bool) -> Any:
        if not isinstance(node, StepTaken):
            return self._act(node)
        step = STEPS.get(node.name)
        if step is None:
            self.lacks.append(f"this version has no step {node.name!r} (record {node.seq})")
            return None
        if node.place == PAST_THE_VAULT:
            self.lacks.append(f"{node.name} was asked of the controller past its vault (record {node.seq})")
        self.fixtures.add(step.fixture)
        made = self._step(step, node)
        ended = self._ended.get(node.seq)
        if ended is None or not ended.error or last or answers:
            return made
        if ended.error.get("kind") == "device" and step.fixture in _OF_SYSTEMS:
            return {"attempt": [made]}
        self.lacks.append(
            f"{node.name} (record {node.seq}) raised, and the scenario went on, which a file cannot: "
            f"{ended.error.get('message', '')}"
        )
        return made

    def _act(self, record: Record) -> Any:
        """Return the step that does what Python did by itself; None where there is none."""
        match record:
            case Fault(state="armed"):
                return {"fault": record.action, "at": record.point}
            case Fault(state="undone"):
                return "end-faults"
            case Claim():
                return "report"
            case Intent(operation="reset") if record.parameters in ({}, {"kind": "bmcimg"}):
                return "reset"
            case Intent():
                what = f"{record.operation} of {record.subject.name}"
                self.lacks.append(f"no step is recorded for the operation: {what} (record {record.seq})")
        return None

    # -- how it is written ----------------------------------------------------------------------------

    def _step(self, step: Step, node: StepTaken) -> Any:
        said = {name: value for name, value in node.arguments.items() if name in step.kinds}
        for name in node.arguments.keys() - said.keys():
            told = f"the {name} of {node.name} (record {node.seq})"
            (self.remarks if name in _LEFT_OUT else self.lacks).append(f"{told} cannot be said in a file")
        data: dict[str, Any] = {step.name: None}
        for name, kind in step.kinds.items():
            key = step.name if name == step.main else name
            if kind == STEPS_KIND:
                inner = self._inner(node)
                if inner or step.needs(name):
                    data[key] = inner
            elif name in said:
                data[key] = self._value(kind, said[name], f"the {name} of {node.name} (record {node.seq})")
        if node.seq in self._names:
            data["as"] = self._names[node.seq]
        return step.name if data == {step.name: None} else data

    def _inner(self, node: StepTaken) -> list[Any]:
        place = str(node.arguments.get("name", "")) if node.name == "subcloud" else node.place
        inner = self._written(self._children[node.seq], place, answers=node.name in _TAKES_ANSWERS)
        if not inner:
            self.lacks.append(
                f"what was to be done by {node.name} (record {node.seq}) was done by no step, or never begun"
            )
        return inner

    def _value(self, kind: str, value: Any, what: str) -> Any:
        if isinstance(value, str):
            if MASK in value:
                self.lacks.append(f"{what} holds a secret, which no history has")
            return f"${value}" if value.startswith("$") else value
        if isinstance(value, Mapping):
            if value.keys() == {RESULT_OF}:
                return self._reference(value[RESULT_OF], what)
            if value.keys() == {UNNAMED}:
                self.lacks.append(f"{what} has no name that a file could say: {value[UNNAMED]}")
                return ""
            if kind == "promise":
                return self._promise(value)
            return {key: self._value("", each, what) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._value(kind, each, what) for each in value]
        return value

    def _reference(self, number: object, what: str) -> str:
        name = self._names.get(number) if isinstance(number, int) else None
        if name is None or number not in self._ended:
            self.lacks.append(f"{what} is what a step returned that is not recorded")
        return f"${name}"

    def _promise(self, value: Mapping[str, Any]) -> str:
        if source := value.get("source"):
            self.sources[str(source)] = None
        return " ".join([str(value.get("effect", "")), *listed(value, "codes")])


def _is_act(record: Record) -> bool:
    """Whether a record tells that something was done, or asked, which a step could have."""
    if isinstance(record, Fault):
        return record.subject.kind == "card" and record.state in ("armed", "undone")
    if isinstance(record, Claim):
        return record.reporter == "fpgainfo"
    return isinstance(record, Intent) and record.operation not in _READS


def _is_of_system(node: StepTaken) -> bool:
    return node.name in STEPS and STEPS[node.name].fixture == "system"


def _references(value: Any) -> Iterator[int]:
    if isinstance(value, Mapping):
        if value.keys() == {RESULT_OF} and isinstance(value[RESULT_OF], int):
            yield value[RESULT_OF]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _references(each)
