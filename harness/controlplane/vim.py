"""What a system's VIM says of its own firmware strategy, from its API and from what `sw-manager` prints.

Fact sheet of StarlingX, section 5.5. The command's output has a line for each field, indented by what it is
part of; a value may hold colons.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.controlplane.protocol import NOT_SHOWN, Text
from harness.errors import ControlPlaneError
from harness.judgement.values import Value

#: The step that has hosts write what is owed to their devices.
UPDATE_STEP: Final = "fw-update-hosts"
PATH: Final = "/api/orchestration/fw-update/strategy"
#: The words of `sw-manager` that ask for it.
SHOW: Final = ("fw-update-strategy", "show", "--details")
_NONE: Final = "No strategy available"
_TITLE: Final = "Strategy Firmware Update Strategy:"
_LINE: Final = re.compile(r"( *)([a-z][a-z-]*):(?: +(.*))?")
_NAME: Final = re.compile(r"'([^']*)'")
_APPLY: Final = "apply"
#: How far the fields of the strategy, of a phase and of a step are indented.
_INDENTS: Final = (2, 4, 12)


@dataclass(frozen=True, slots=True)
class VimStrategy:
    """The firmware strategy of one system's VIM: there is one at most.

    ``result``, ``reason``: of its apply phase. ``updates``: each step that updates hosts, as a mapping with
    the ``hosts`` (their names), the ``result`` and the ``reason``.
    """

    state: str
    uuid: Text = NOT_SHOWN
    current_phase: Text = NOT_SHOWN
    result: Text = NOT_SHOWN
    reason: Text = NOT_SHOWN
    updates: Value[tuple[Mapping[str, Any], ...]] = NOT_SHOWN


def from_answer(answer: Any) -> list[VimStrategy]:
    """Return the strategy that the API answers; nothing where there is none.

    :raises ControlPlaneError: it answers something else.
    """
    shown = answer.get("strategy", answer) if isinstance(answer, Mapping) else answer
    if shown is None and isinstance(answer, Mapping):
        return []
    if not isinstance(shown, Mapping) or not isinstance(shown.get("state"), str):
        raise ControlPlaneError(f"The VIM answers no firmware strategy: {str(answer)[:120]}.")
    phase = _mapping(shown.get(f"{_APPLY}-phase"))
    stages = [_mapping(stage) for stage in _sequence(phase.get("stages"))]
    steps = [_mapping(step) for stage in stages for step in _sequence(stage.get("steps"))]
    return [
        VimStrategy(
            shown["state"],
            _text(shown.get("uuid")),
            _text(shown.get("current-phase")),
            _text(phase.get("result")),
            _text(phase.get("reason")),
            tuple(_update(step, [str(name) for name in _sequence(step.get("entity-names"))])
                  for step in steps if step.get("step-name") == UPDATE_STEP),
        )
    ]  # fmt: skip


def from_output(text: str) -> list[VimStrategy]:
    """Return the strategy that `sw-manager fw-update-strategy show --details` prints; nothing for none.

    :raises ControlPlaneError: it prints something else.
    """
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if lines == [_NONE]:
        return []
    if _TITLE not in lines:
        raise ControlPlaneError(
            f"What `sw-manager` printed is no firmware strategy: {' '.join(text.split())[:120] or 'nothing'}."
        )
    own: dict[str, str] = {}
    phases: dict[str, dict[str, str]] = {}
    steps: list[tuple[str, dict[str, str]]] = []
    current = ""
    for indent, name, value in _fields(lines[lines.index(_TITLE) + 1 :]):
        if indent == _INDENTS[0] and name.endswith("-phase") and not value:
            current = name.removesuffix("-phase")
            phases[current] = {}
        elif indent == _INDENTS[0]:
            own[name] = value
        elif indent == _INDENTS[1] and current:
            phases[current].setdefault(name, value)
        elif indent == _INDENTS[2] and name == "step-id":
            steps.append((current, {}))
        elif indent == _INDENTS[2] and steps:
            steps[-1][1][name] = value
    if not own.get("state"):
        raise ControlPlaneError("What `sw-manager` printed is a firmware strategy without a state.")
    phase = phases.get(_APPLY, {})
    updates = [step for of, step in steps if of == _APPLY and step.get("step-name") == UPDATE_STEP]
    return [
        VimStrategy(
            own["state"],
            _text(own.get("strategy-uuid")),
            _text(own.get("current-phase")),
            # Without --details, or where its phase has not begun, the phase's own lines are not there.
            _text(phase.get("result", own.get(f"{_APPLY}-result"))),
            _text(phase.get("reason", own.get(f"{_APPLY}-reason"))),
            tuple(_update(step, _NAME.findall(step.get("entity-names", ""))) for step in updates),
        )
    ]


def _fields(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the indent, the name and the value of each line that has a field."""
    for line in lines:
        if found := _LINE.fullmatch(line):
            yield len(found[1]), found[2], found[3] or ""


def _update(step: Mapping[str, Any], hosts: list[str]) -> Mapping[str, Any]:
    return {"hosts": hosts, "result": str(step.get("result", "")), "reason": str(step.get("reason") or "")}


def _text(value: Any) -> Text:
    return NOT_SHOWN if value is None else str(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()
