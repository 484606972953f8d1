"""A scenario that was read as plain data again: a row's values put in, the steps of other files in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.judgement.records import Promise
from harness.scenarios.files import Call, ScenarioFile, Variant
from harness.scenarios.kinds import REFERENCE, STEPS_KIND

#: Kinds whose texts stand for results of steps.
_REFERENCES = ("result", "results", "value")


def plain_variants(scenario: ScenarioFile) -> list[dict[str, Any]]:
    """Return the content of a scenario file for each row of ``scenario``, which needs no other file."""
    told = {"about": scenario.about, "source": scenario.source}
    return [{**told, **_plain(each)} for each in scenario.variants]


def _plain(variant: Variant) -> dict[str, Any]:
    given = variant.given.model_dump(exclude_unset=True, exclude_none=True, mode="json")
    expect = variant.expect.model_dump(exclude_defaults=True, mode="json")
    return {"given": given, "steps": _steps(variant.calls), "expect": expect}


def _steps(calls: Sequence[Call]) -> list[Any]:
    return [_step(call) for call in calls]


def _step(call: Call) -> Any:
    step = call.step
    data: dict[str, Any] = {step.name: None}
    for name, kind in step.kinds.items():
        if name in call.arguments:
            key = step.name if name == step.main else name
            data[key] = _value(kind, call.arguments[name])
    if call.result:
        data["as"] = call.result
    return step.name if data == {step.name: None} else data


def _value(kind: str, value: Any) -> Any:
    if kind == STEPS_KIND:
        return _steps(value)
    if isinstance(value, Promise):
        return " ".join([value.effect, *value.codes])
    if isinstance(value, str):
        literal = value.startswith("$") and not (kind in _REFERENCES and REFERENCE.fullmatch(value))
        return f"${value}" if literal else value
    if isinstance(value, dict):
        return {key: _value(kind, each) for key, each in value.items()}
    return [_value(kind, each) for each in value] if isinstance(value, (list, tuple)) else value
