"""The kinds of values that scenario files hold: how each is written, checked, and shown to editors."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StrictBool,
    StrictInt,
    WithJsonSchema,
)
from pydantic import ValidationInfo as Info
from pydantic_core import core_schema

from harness.errors import ConfigurationError
from harness.faults.actions import ACTION_NAMES
from harness.faults.points import POINTS
from harness.faults.registry_actions import ACTIONS, registry_action
from harness.faults.registry_points import FaultPoint
from harness.inventory.entries import nearest
from harness.inventory.forms import CskId
from harness.inventory.placed import guess
from harness.judgement.model import Outcome, VerdictKind
from harness.judgement.records import Promise
from harness.lab.capabilities import CAPABILITIES
from harness.registry.clients.catalogue import PULL_CLIENTS, PUSH_CLIENTS
from harness.registry.recipes import RECIPES
from harness.registry.truth import TruthState
from harness.scenarios.conductor import STATES
from harness.scenarios.given import NOT_PROGRAMMED

#: What stands for a parameter, or for what a step that was named by ``as`` has returned.
REFERENCE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_-]*)")
#: Of an orchestration strategy (fact sheet of StarlingX, section 5.4).
_STRATEGY_STATES = (
    *("initial", "applying", "complete", "failed", "abort requested", "aborting", "aborted", "deleting"),
)
_CODES = r"(?: 0x[0-9A-Fa-f]{2})*"
_PROMISE = re.compile(rf"(lands|factory|returns|unchanged{_CODES})")


@dataclass(frozen=True, slots=True)
class Known:
    """What a file may name, as far as it is known where the file is read.

    ``images``: the recipes; None where there are none to compare with. ``source``: the document that the
    scenario's promises are from.
    """

    images: Collection[str] | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Among:
    """Holds a text to one of these words."""

    allowed: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return core_schema.no_info_before_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"enum": list(self.allowed)}

    def _check(self, given: Any) -> str:
        if given not in self.allowed:
            raise ValueError(f"{given!r} is not allowed; {guess(str(given), self.allowed)}")
        return str(given)


def _word(*allowed: str) -> Any:
    return Annotated[str, Among(allowed)]


def _checked(check: Callable[[str], object], **schema: Any) -> Any:
    """Return the kind of texts that ``check`` accepts, by which they are told apart from those it rejects."""

    def accept(given: str) -> str:
        try:
            check(given)
        except ConfigurationError as error:
            raise ValueError(" ".join(filter(None, (error.message, error.hint)))) from None
        return given

    return Annotated[str, AfterValidator(accept), WithJsonSchema({"type": "string", **schema})]


def _image(given: str, info: Info) -> str:
    images: Collection[str] | None = info.context.images if info.context else None
    if images is not None and given not in images:
        close = nearest(given, list(images))
        hint = f"did you mean {close!r}?" if close else "`hil image build --list` lists them"
        raise ValueError(f"no image recipe is called {given!r}; {hint}")
    return given


def _root(given: str, info: Info) -> str:
    images: Collection[str] | None = info.context.images if info.context else None
    if images is None or given == NOT_PROGRAMMED or re.fullmatch(r"[0-9a-fA-F]{64}|[0-9a-fA-F]{96}", given):
        return given
    names = [NOT_PROGRAMMED, *(n.removeprefix("root-key-") for n in images if n.startswith("root-key-"))]
    if given not in names and given not in images:
        raise ValueError(f"no root key is called {given!r}; {guess(given, names)}")
    return given


def _promise(given: Any, info: Info) -> Any:
    if isinstance(given, Promise):
        return given
    if not isinstance(given, str) or not _PROMISE.fullmatch(given):
        raise ValueError(
            f"{given!r} is no promise: lands, unchanged (with the codes that documents allow, such as "
            "unchanged 0x11), factory or returns"
        )
    effect, *codes = given.split()
    return Promise(effect, tuple(codes), info.context.source if info.context else "")  # type: ignore[arg-type]


def _texts(given: Any) -> Any:
    """Write numbers as the texts that they stand for: YAML takes ``4`` for one."""
    if isinstance(given, Mapping):
        return {str(key): _text(value) for key, value in given.items()}
    return [_text(value) for value in given] if isinstance(given, Sequence) and given != str(given) else given


def _text(given: Any) -> Any:
    return str(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else given


def listed(given: Any) -> Any:
    """Return a list where one text or mapping alone is given."""
    return [given] if isinstance(given, (str, Mapping)) else given


def _reference(given: str) -> str:
    if not REFERENCE.fullmatch(given):
        raise ValueError(f"{given!r} is no result: write $NAME, as a step before has it behind `as`")
    return given


Text = Annotated[
    str,
    BeforeValidator(_text),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, {"type": "number"}]}),
]
Flag = StrictBool
Count = Annotated[StrictInt, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_texts), Field(min_length=1)]
Labels = Annotated[dict[str, Text], BeforeValidator(_texts), Field(min_length=1)]
ImageName = Annotated[str, AfterValidator(_image)]
RootName = Annotated[str, AfterValidator(_root)]
Result = Annotated[str, AfterValidator(_reference)]
#: Steps within a step: a list as that of the scenario, checked in the same way.
Inner = Annotated[list[Any], Field(min_length=1)]
OutcomeWord = Annotated[str, Among(tuple(each.value for each in Outcome))]
VerdictWord = Annotated[str, Among(tuple(each.value for each in VerdictKind))]
Capability = Annotated[str, Among(CAPABILITIES)]
Verdicts = dict[str, VerdictWord]

#: The steps within a step; what reads files checks them as steps.
STEPS_KIND = "steps"
#: Kind -> what pydantic holds its values to; methods name them with :func:`harness.scenarios.steps.is_step`.
KINDS: Mapping[str, Any] = {
    "text": Text,
    "texts": Texts,
    "flag": Flag,
    "seconds": Seconds,
    "labels": Labels,
    "fields": dict[str, Any],
    "count": Count,
    "root": RootName,
    "csk-ids": Annotated[tuple[CskId, ...], BeforeValidator(listed)],
    "value": StrictInt | float | StrictBool | str,
    "result": Result,
    "results": Annotated[tuple[Result, ...], BeforeValidator(listed), Field(min_length=1)],
    STEPS_KIND: Inner,
    "image": ImageName,
    "promise": Annotated[
        Promise,
        BeforeValidator(_promise),
        WithJsonSchema({"type": "string", "pattern": f"^{_PROMISE.pattern}$"}),
    ],
    "effect": _word("lands", "unchanged"),
    "tool": _word("fpgasupdate", "firmware-upload"),
    "reset-kind": _word("bmcimg", "retimer"),
    "bmc-page": _word("user", "factory"),
    "flash-point": _word(*POINTS),
    "flash-action": _word(*ACTION_NAMES),
    "push-point": _checked(FaultPoint.parse, examples=["before:manifest-put", "mid@524288:blob-patch"]),
    "push-action": _checked(registry_action, examples=list(ACTIONS)),
    "content": _word(*RECIPES),
    "push-client": _word(*PUSH_CLIENTS),
    "pull-client": _word(*PULL_CLIENTS),
    "form": _word("historical", "current", "remedied"),
    "application-state": _word(*STATES),
    "verdicts": Annotated[Verdicts, Field(min_length=1)],
    "apply-type": _word("serial", "parallel"),
    "strategy-state": _word(*_STRATEGY_STATES),
    "truth": _word(*(each.value for each in TruthState)),
}
