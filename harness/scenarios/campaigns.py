"""Campaigns: which scenarios run on which devices, how often, in which order, and when that ends."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, ValidationError, WithJsonSchema
from pydantic import ValidationInfo as Info

from harness.errors import ConfigurationError
from harness.inventory.entries import Entry, unknown_name
from harness.inventory.placed import Form, problems_of, read_placed
from harness.scenarios.kinds import Count, Text, listed

SUFFIX = ".campaign.yaml"
#: Where campaigns are looked for by their name.
PLANS = Path("testplans")
_FORM = Form(
    "campaign",
    "about and scenarios",
    "docs/writing-a-plan.md shows a campaign with all its keys.",
    f"A campaign is called NAME{SUFFIX}.",
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|h)")
_SECONDS = {"s": 1, "min": 60, "h": 3600}


def _seconds(given: Any) -> Any:
    found = _DURATION.fullmatch(given) if isinstance(given, str) else None
    if found is None or float(found[1]) == 0:
        raise ValueError(f"{given!r} is no time: write it as 90 s, 30 min or 2 h")
    return float(found[1]) * _SECONDS[found[2]]


def _path(given: Path, info: Info) -> Path:
    assert info.context is not None
    path = Path(os.path.normpath(info.context["base"] / given))
    if not os.path.exists(path):  # noqa: PTH110 -- a name that is too long is none, either
        raise ValueError(f"there is no {given} beside the campaign")
    return path


def _keyword(given: str) -> str:
    from _pytest.mark.expression import Expression

    try:
        Expression.compile(given)
    except SyntaxError as error:
        raise ValueError(
            f"{given!r} is no keyword expression such as `reset and not wear`: {error}"
        ) from None
    return given


def _chosen(given: Any) -> Any:
    return {"path": given} if isinstance(given, str) else given


Duration = Annotated[float, BeforeValidator(_seconds), WithJsonSchema({"type": "string"})]
Names = Annotated[tuple[Text, ...], BeforeValidator(listed), Field(min_length=1)]


class Selection(Entry):
    """Scenarios of a file or folder: all, those that ``keyword`` matches (as `-k`), or those of ``ids``.

    Another campaign stands for its scenarios, and for which of them may be blocked.

    ``path`` counts from the campaign's folder. ``ids``: what stands behind ``::`` of a node id, with or
    without its parameters. ``requirements``: those that are a proof of one of these.
    """

    path: Annotated[Path, AfterValidator(_path)]
    keyword: Annotated[str, AfterValidator(_keyword)] = ""
    ids: Names = ()
    requirements: Names = ()


class Stop(Entry):
    """After how many scenarios of a kind the campaign ends."""

    not_as_stated: Count | None = None
    could_not_run: Count | None = None


class Budget(Entry):
    """What the campaign may cost: a time, and updates of each real card. Used up, the rest is left out."""

    time: Duration | None = None
    flashes: Annotated[StrictInt, Field(ge=0)] | None = None


class Campaign(Entry):
    """A campaign file. ``duration``: it goes on for so long, or for ``repeat`` rounds if those end before."""

    about: Text
    scenarios: Annotated[
        tuple[Annotated[Selection, BeforeValidator(_chosen)], ...],
        Field(min_length=1),
        BeforeValidator(listed),
    ]
    lab: Text | None = None
    devices: Names = ()
    allow_blocked: Annotated[tuple[Annotated[Path, AfterValidator(_path)], ...], BeforeValidator(listed)] = ()
    repeat: Count | None = None
    duration: Duration | None = None
    order: Literal["fixed", "random"] = "fixed"
    seed: StrictInt | None = None
    stop: Stop = Stop()
    budget: Budget = Budget()
    path: Path

    @property
    def name(self) -> str:
        """The campaign's name: the file's."""
        return self.path.name.removesuffix(SUFFIX)

    @property
    def rounds(self) -> int | None:
        """How often each scenario runs at most; None: as often as its duration allows."""
        return self.repeat if self.repeat is not None or self.duration is not None else 1


def seconds_of(text: str, what: str) -> float:
    """Return the seconds of a time such as ``30 min``. :raises ConfigurationError: it is none."""
    try:
        found: float = _seconds(text)
    except ValueError as error:
        raise ConfigurationError(f"{what} {error}.", hint="Such as 10 s, 30 min or 2 h.") from None
    return found


def load_campaign(path: Path) -> Campaign:
    """Read and check a campaign.

    :raises ConfigurationError: all that is wrong with it, each with file, line and key.
    """
    return _loaded(path, ())


def _loaded(path: Path, chain: tuple[Path, ...]) -> Campaign:
    """Read a campaign. :param chain: those that it is named by, outermost first."""
    tree = read_placed(path, _FORM)
    try:
        plain = {key: value for key, value in tree.items() if key != "path"}
        campaign = Campaign.model_validate({**plain, "path": path}, context={"base": path.parent})
    except ValidationError as error:
        raise _FORM.rejected(path, tree, problems_of(error, Campaign)) from None
    chosen: list[Selection] = []
    may_be_blocked = list(campaign.allow_blocked)
    for at, selection in enumerate(campaign.scenarios):
        if not selection.path.name.endswith(SUFFIX):
            chosen.append(selection)
            continue
        if why := _unfit(selection, (*chain, path)):
            raise _FORM.rejected(path, tree, [(("scenarios", at), why)])
        other = _loaded(selection.path, (*chain, path))
        chosen += other.scenarios
        may_be_blocked += other.allow_blocked
    return campaign.model_copy(
        update={"scenarios": tuple(chosen), "allow_blocked": tuple(dict.fromkeys(may_be_blocked))}
    )


def _unfit(selection: Selection, chain: tuple[Path, ...]) -> str:
    """Return why a campaign cannot stand in another one; empty where it can."""
    if selection.path.resolve() in [each.resolve() for each in chain]:
        names = " names ".join(each.name for each in (*chain, selection.path))
        return f"the campaigns go in a circle: {names}"
    if selection.keyword or selection.ids or selection.requirements:
        return "a campaign stands for all of its scenarios: choose among them where they are"
    return ""


def find_campaign(target: str) -> Path | None:
    """Return the campaign that ``target`` is the file or the name of; None where it is another path.

    :raises ConfigurationError: it is neither, or several campaigns have the name.
    """
    path = Path(target)
    if target.endswith(SUFFIX):
        return path
    if os.path.exists(path) or "::" in target or "/" in target:  # noqa: PTH110 -- as above
        return None
    known = {found.name.removesuffix(SUFFIX): found for found in campaign_files()}
    named = [found for found in campaign_files() if found.name == f"{target}{SUFFIX}"]
    if not named:
        return None if not known else _unknown(target, known)
    if len(named) > 1:
        raise ConfigurationError(
            f"Several campaigns are called {target}: {', '.join(map(str, named))}.",
            hint="Name one by its file.",
        )
    return named[0]


def campaign_files() -> list[Path]:
    """Return the campaigns below ``testplans``."""
    return sorted(PLANS.rglob(f"*{SUFFIX}"))


def _unknown(target: str, known: Iterable[str]) -> Path:
    raise unknown_name("file, folder or campaign", target, sorted(known), str(PLANS))
