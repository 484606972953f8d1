"""Scenario files as pytest sees them: a module with one test, which asks for the fixtures of its steps."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import ConfigurationError
from harness.plugin.markers import EXPECTS, GIVEN, REGISTRY, REQUIRES, WEAR
from harness.plugin.releases import RELEASE
from harness.plugin.session import SESSION, HilSession

if TYPE_CHECKING:
    from harness.scenarios.files import ScenarioFile, Variant

_VARIANT = "hil_variant"


class ScenarioModule(pytest.Module):
    """A scenario file: collected, chosen, parametrized and run as a module of Python is."""

    def _getobj(self) -> ModuleType:
        session = self.config.stash[SESSION]
        try:
            found = read_scenario(self.path, session)
        except ConfigurationError as error:
            raise self.CollectError(str(error)) from None
        module = ModuleType(found.name, found.about)
        setattr(module, found.name, _function(found, session))
        return module

    def funcnamefilter(self, name: str) -> bool:
        """Return True: the name of a scenario is its file's, whatever tests are called elsewhere."""
        return True


def read_scenario(path: Path, session: HilSession) -> ScenarioFile:
    """Return the scenario in ``path``. :raises ConfigurationError: it is wrong, in words for its author."""
    from harness.plugin import steps  # noqa: F401 -- it knows them all
    from harness.scenarios.files import load_scenario

    try:
        images = list(session.images)
    except ConfigurationError:  # told by the first scenario that flashes one
        images = None
    return load_scenario(path, images)


def variant_of(item: pytest.Item) -> Variant | None:
    """Return what an item takes of a scenario file; None for one of Python."""
    first: Variant | None = getattr(getattr(item, "function", None), "hil_first", None)
    callspec = getattr(item, "callspec", None)
    return first if first is None or callspec is None else callspec.params.get(_VARIANT, first)


def _function(scenario: ScenarioFile, session: HilSession) -> Callable[..., None]:
    """Return the test: it asks for the fixtures of the steps, and takes them."""
    first = scenario.variants[0]

    def run(**values: Any) -> None:
        __tracebackhide__ = True
        from harness.scenarios.execution import Execution

        variant: Variant = values.pop(_VARIANT, first)
        if "cloud" in values:
            values.setdefault("system", values["cloud"].controller)
        try:
            Execution(values).run(variant.calls)
        except AssertionError as error:  # says where in the file; no line of Python says more
            pytest.fail(str(error), pytrace=False)

    # Where the test is, for what lists tests by file and line.
    code = run.__code__.replace(co_filename=str(scenario.path), co_firstlineno=1)
    made = FunctionType(code, run.__globals__, scenario.name, None, run.__closure__)
    made.__doc__ = scenario.about
    made.__module__ = __name__
    made.hil_first = first  # type: ignore[attr-defined]
    columns = [_VARIANT, *_columns(scenario)]
    asked = sorted({*_fixtures(scenario), *columns[1:], *([_VARIANT] if first.id else [])})
    made.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in asked]
    )
    marks = [pytest.mark.hil_requirement(*scenario.requirements)] if scenario.requirements else []
    if not first.id:
        marks += _marks(first)
        columns.remove(_VARIANT)
    if columns:
        rows = [row for variant in scenario.variants for row in _rows(variant, columns, session)]
        indirect = [name for name in columns if name in ("system", "card")]
        marks.append(pytest.mark.parametrize(columns, rows, indirect=indirect))
    made.pytestmark = marks  # type: ignore[attr-defined]
    return made


def _fixtures(scenario: ScenarioFile) -> set[str]:
    fixtures = set(scenario.fixtures)
    for given in (variant.given for variant in scenario.variants):
        # The card of a system's scenario is the system's own.
        if given.needs or given.devices or (given.card is not None and "system" not in fixtures):
            fixtures.add("card")
    return fixtures


def _columns(scenario: ScenarioFile) -> list[str]:
    """Return what the scenario itself says of its fixtures, so that nothing else chooses it."""
    given = [variant.given for variant in scenario.variants]
    says = {
        "system": any(each.system for each in given),
        "hil_way": any(each.way for each in given),
        "card": any(each.devices for each in given),
    }
    return [name for name, said in says.items() if said]


def _rows(variant: Variant, columns: list[str], session: HilSession) -> Iterator[Any]:
    given = variant.given
    wanted = session.chosen(given.devices) if given.devices else [""]
    for card in wanted or [""]:
        values = {_VARIANT: variant, "system": given.system, "hil_way": given.way, "card": card}
        row = [values[name] for name in columns]
        words = [variant.id, *(str(values[name]) for name in columns if name not in (_VARIANT, "hil_way"))]
        marks = _marks(variant) if variant.id else []
        if given.devices and not wanted:
            marks.append(pytest.mark.skip(reason="--hil-device leaves none of the scenario's devices"))
        yield pytest.param(*row, id="-".join(filter(None, words)) or str(given.way), marks=marks)


def _marks(variant: Variant) -> list[pytest.MarkDecorator]:
    """Return the markers that say in Python what ``variant`` says."""
    given, expect = variant.given, variant.expect
    card = given.card.model_dump(exclude_unset=True) if given.card else {}
    flashes = sum(call.step.name == "flash" for call in variant.calls)
    said: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        (WEAR, (flashes,), {}),
        (EXPECTS, (), expect.model_dump()),
        (GIVEN, (), card),
        (REQUIRES, given.needs, {}),
        ("hil_lab", (given.lab,) if given.lab else (), {}),
        (REGISTRY, (given.registry,) if given.registry else (), {}),
    ]
    if given.release is not None:
        said.append((RELEASE, (given.release.name,), given.release.model_dump(exclude={"name"})))
    return [getattr(pytest.mark, name)(*args, **kwargs) for name, args, kwargs in said if args or kwargs]
