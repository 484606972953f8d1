"""What a scenario file may hold: its schema, that of each step, and the JSON Schema that editors read."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, Field, create_model

from harness.inventory.entries import Entry, unknown_name
from harness.inventory.forms import CskId
from harness.scenarios.kinds import (
    KINDS,
    Capability,
    Count,
    OutcomeWord,
    RootName,
    Text,
    Verdicts,
    listed,
)
from harness.scenarios.steps import STEPS, Step

#: Does the steps of another file in its place.
USE = "use"


def _nothing(given: Any) -> None:
    if given is not None:
        raise ValueError(f"takes nothing, and {given!r} stands beside it")


Names = Annotated[tuple[Text, ...], BeforeValidator(listed), Field(min_length=1)]


class CardState(Entry):
    """The state that the card is in, as :meth:`harness.scenarios.given.Given.parse` has it."""

    root: RootName | None = None
    cancelled: tuple[CskId, ...] | None = None
    flash_count: Count | None = None
    bmc_root: RootName | None = None


class ReleaseOf(Entry):
    """What an emulated system is: a release, with known defects besides, and without some of its own."""

    name: Text
    defects: Names = ()
    corrected_defects: Names = ()


class Given(Entry):
    """What there is before the first step; what is left out is left open.

    ``devices``: only these cards of the lab, as ``host/card``. ``needs``: what the lab must offer for the
    card's host. ``lab``, ``system``, ``release`` and ``way`` are about the StarlingX system of a scenario.
    """

    card: CardState | None = None
    devices: Names | None = None
    needs: Annotated[tuple[Capability, ...], BeforeValidator(listed)] = ()
    registry: Text | None = None
    lab: Text | None = None
    system: Text | None = None
    release: ReleaseOf | None = None
    way: Literal["rest", "cli"] | None = None


class Expect(Entry):
    """What the scenario states: the worst outcome of all it does, and the worst verdict on each reporter.

    A reporter that is not named is expected to say what is so.
    """

    outcome: OutcomeWord = "AS_INTENDED"
    verdicts: Verdicts = {}


class ScenarioModel(Entry):
    """A scenario file. ``source``: the documents that say what must happen; ``over``: a table of values."""

    about: Text
    source: Text
    requirements: Names = ()
    given: Given = Given()
    over: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)] | None = None
    steps: Annotated[tuple[Any, ...], Field(min_length=1)]
    expect: Expect = Expect()


class Use(Entry):
    """Does the steps of another file in place; ``with`` gives values to its parameters."""

    use: Text
    with_: dict[str, Any] = Field(default={}, alias="with")


@cache
def model_of(step: Step) -> type[BaseModel]:
    """Return what pydantic holds a step to: its name with what stands beside it, its arguments, ``as``.

    :raises ConfigurationError: who registered it named an argument, or a kind, that there is not.
    """
    _check(step)
    fields: dict[str, Any] = {
        argument: (
            KINDS[kind] if step.needs(argument) else KINDS[kind] | None,
            Field(
                default=... if step.needs(argument) else None,
                alias=step.name if argument == step.main else argument,
            ),
        )
        for argument, kind in step.kinds.items()
    }
    if not step.main:
        fields["main"] = (Annotated[None, BeforeValidator(_nothing)], Field(alias=step.name))
    fields["as_"] = (
        Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")] | None,
        Field(default=None, alias="as", description="names what the step returns, for $NAME"),
    )
    made = create_model(f"step {step.name}", __base__=Entry, __doc__=step.about, **fields)
    return cast("type[BaseModel]", made)


def _check(step: Step) -> None:
    for argument, kind in step.kinds.items():
        if argument not in step.parameters:
            raise unknown_name(
                "argument", argument, [*step.parameters], f"the step {step.name!r} ({step.place})"
            )
        if kind not in KINDS:
            raise unknown_name("kind of values", kind, list(KINDS), f"the step {step.name!r} ({step.place})")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file, with every step; a parameter may stand for any value."""
    schema = ScenarioModel.model_json_schema()
    definitions = schema.setdefault("$defs", {})
    bare = [name for name, step in STEPS.items() if not step.main or not step.needs(step.main)]
    steps: list[dict[str, Any]] = [{"enum": bare}]
    models: dict[str, type[BaseModel]] = {USE: Use}
    models |= {name: model_of(step) for name, step in STEPS.items()}
    for name, model in models.items():
        of_step = model.model_json_schema()
        definitions |= of_step.pop("$defs", {})
        for key, value in of_step["properties"].items():
            inner = {"type": "array", "items": {"$ref": "#/$defs/step"}} if _is_inner(name, key) else value
            of_step["properties"][key] = inner if key == "as" else _or_parameter(inner)
        of_step["required"] = sorted({name, *of_step.get("required", ())})
        steps.append(of_step)
    definitions["step"] = {"anyOf": steps}
    schema["properties"]["steps"]["items"] = {"$ref": "#/$defs/step"}
    for of_model in ("CardState", "Given", "Expect"):
        for key, value in definitions[of_model]["properties"].items():
            definitions[of_model]["properties"][key] = _or_parameter(value)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _is_inner(name: str, key: str) -> bool:
    step = STEPS.get(name)
    argument = step.main if step and key == name else key
    return step is not None and step.kinds.get(argument) == "steps"


def _or_parameter(schema: dict[str, Any]) -> dict[str, Any]:
    about: dict[str, Any] = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    rest = {key: value for key, value in schema.items() if key not in about}
    return {**about, "anyOf": [rest, {"type": "string", "pattern": r"^\$"}]}
