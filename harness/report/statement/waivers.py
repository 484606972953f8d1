"""Reads the file of waivers: who answers for which deviation, why, and until when."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from harness.inventory.placed import Form, problems_of, read_placed
from harness.report.statement.rules import RULES, Waiver

_FORM: Final = Form(
    what="file of waivers",
    begins="`version: 1` and `waivers:`",
    schema="docs/qualification-statement.md shows one.",
    another="It begins with `version: 1` and `waivers:`; docs/qualification-statement.md shows one.",
)


class _Waiver(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    rule: str
    subject: str = Field(min_length=1)
    owner: str = Field(min_length=1)
    reason: str = Field(min_length=1)
    expires: datetime.date

    @field_validator("rule")
    @classmethod
    def _known(cls, rule: str) -> str:
        if rule not in RULES or rule == "waivers-in-force":
            raise ValueError(f"there is no such rule to waive; there are {', '.join(list(RULES)[:-1])}")
        return rule

    @field_validator("expires", mode="before")
    @classmethod
    def _a_day(cls, expires: object) -> object:
        if isinstance(expires, datetime.datetime) or not isinstance(expires, datetime.date):
            raise ValueError("it is no day, such as 2026-12-31")  # noqa: TRY004 -- what pydantic takes
        return expires


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1]
    waivers: tuple[_Waiver, ...] = ()


def read_waivers(path: Path) -> list[Waiver]:
    """Return the waivers in ``path``, also those that have expired.

    :raises ConfigurationError: it cannot be read, or says what there is not; with line and key.
    """
    tree = read_placed(path, _FORM)
    try:
        read = _File.model_validate(tree)
    except ValidationError as error:
        raise _FORM.rejected(path, tree, problems_of(error, _File)) from None
    return [Waiver(**each.model_dump()) for each in read.waivers]
