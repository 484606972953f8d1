"""Reads scenario files: parameters put in, other files' steps put in place, each step held to its schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml.comments import CommentedMap

from harness.errors import ConfigurationError, HarnessBug
from harness.inventory.entries import nearest
from harness.inventory.placed import Form, Keys, Problem, guess, line_of, problems_of, read_placed
from harness.scenarios.file_model import USE, Expect, Given, ScenarioModel, Use, model_of
from harness.scenarios.kinds import REFERENCE, STEPS_KIND, Known
from harness.scenarios.steps import STEPS, Step

SUFFIX = ".scenario.yaml"
_FORM = Form(
    "scenario file",
    "about, source and steps",
    "`hil scenario schema` prints every key and step; `hil scenario new NAME` writes a file to begin with.",
    f"A scenario file is called NAME{SUFFIX}; `hil scenario new NAME` writes one.",
)
#: The fixtures of StarlingX systems, which parts of ``given`` are about.
_SYSTEMS = frozenset({"system", "cloud"})


@dataclass(frozen=True, slots=True)
class Call:
    """A step to be taken. ``result``: what its result is called. ``place``: file and line, for messages.

    An argument that is a tuple of calls stands for what takes these steps; a text that begins with ``$`` of
    the kind ``result`` for the result of that name.
    """

    step: Step
    arguments: Mapping[str, Any]
    result: str
    place: str


@dataclass(frozen=True, slots=True)
class Variant:
    """A scenario for one row of its table of values; ``id``: empty where it has none."""

    id: str
    given: Given
    expect: Expect
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class ScenarioFile:
    """A scenario file that was read, with nothing wrong in it."""

    path: Path
    about: str
    requirements: tuple[str, ...]
    variants: tuple[Variant, ...]
    source: str = ""

    @property
    def name(self) -> str:
        """The scenario's name: the file's."""
        return self.path.name.removesuffix(SUFFIX)

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """Every step of every variant, those within steps too."""
        return tuple(_all_calls(call for variant in self.variants for call in variant.calls))

    @cached_property
    def fixtures(self) -> frozenset[str]:
        """What the steps are done by. What a system does in a scenario about a cloud, its controller does."""
        found = frozenset(call.step.fixture for call in self.calls)
        return found - {"system"} if "cloud" in found else found


def load_scenario(path: Path, images: Sequence[str] | None = None) -> ScenarioFile:
    """Read and check the scenario file ``path``; the modules that fill the steps must be imported.

    :param images: the names of the recipes; None: they are not compared.
    :raises ConfigurationError: what is wrong, all of it, each with file, line and key.
    """
    return _Reader(path, Known(images)).scenario()


def read_steps(steps: Sequence[Any], results: set[str], source: str = "") -> tuple[Call, ...]:
    """Return steps that stand in no file, as one would be read; ``results``: the names there are.

    :param source: the document that their promises are from.
    :raises HarnessBug: they are wrong.
    """
    reader = _Reader(Path("steps"), Known(source=source), results=results)
    reader.__dict__["tree"] = CommentedMap()
    calls = reader._calls(steps, ("steps",))
    if reader.problems:
        raise HarnessBug(f"These are no steps: {steps}: {reader.problems}")
    return calls


def _all_calls(calls: Any) -> Iterator[Call]:
    for call in calls:
        yield call
        for value in call.arguments.values():
            if isinstance(value, tuple) and _are_calls(value):
                yield from _all_calls(value)


def _are_calls(values: tuple[Any, ...]) -> bool:
    return bool(values) and isinstance(values[0], Call)


@dataclass
class _Reader:
    """Reads one file. ``chain``: the files that use it, outermost first."""

    path: Path
    known: Known
    chain: tuple[Path, ...] = ()
    problems: list[Problem] = field(default_factory=list)
    #: What is wrong in files that this one uses.
    elsewhere: list[str] = field(default_factory=list)
    #: The names of results, in the variant that is read.
    results: set[str] = field(default_factory=set)

    @cached_property
    def tree(self) -> CommentedMap:
        """The file, with the lines of its keys."""
        return read_placed(self.path, _FORM)

    def scenario(self) -> ScenarioFile:
        """Return what the file holds. :raises ConfigurationError: what is wrong with it."""
        read = [(name, *self._variant(row)) for name, row in self._rows()]
        self._raise()
        model = read[0][1]
        assert model is not None
        variants = tuple(
            Variant(name, each.given, each.expect, calls) for name, each, calls in read if each is not None
        )
        made = ScenarioFile(self.path, model.about, model.requirements, variants, model.source)
        self._check_given(made)
        self._raise()
        return made

    def calls(self, parameters: Mapping[str, Any], results: set[str]) -> tuple[Call, ...]:
        """Return the steps alone, with ``parameters`` put in.

        :raises ConfigurationError: as for a scenario.
        """
        self.results = results
        _, calls = self._variant(parameters)
        self._raise()
        return calls

    def _raise(self) -> None:
        own = [_FORM.rejected(self.path, self.tree, dict.fromkeys(self.problems))] if self.problems else []
        lines = [*(error.message for error in own), *dict.fromkeys(self.elsewhere)]
        if lines:
            raise ConfigurationError("\n".join(lines), hint=_FORM.schema)

    # -- parameters -----------------------------------------------------------------------------------

    def _rows(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the rows of the table of values, each with its id."""
        over = self.tree.get("over")
        if over is None:
            return [("", {})]
        if not isinstance(over, list) or not over:
            self.problems.append((("over",), "should be a list of rows such as {image: unsigned}"))
            return [("", {})]
        rows: dict[str, Mapping[str, Any]] = {}
        for at, row in enumerate(over):
            name = _row_id(row) if isinstance(row, Mapping) and row else ""
            if not name or not all(REFERENCE.fullmatch(f"${key}") for key in row):
                self.problems.append((("over", at), "is no row of values such as {image: unsigned}"))
            elif name in rows:
                self.problems.append((("over", at), f"has the id {name!r} as another row; give it an `id`"))
            else:
                rows[name] = row
        return list(rows.items()) or [("", {})]

    def _variant(self, row: Mapping[str, Any]) -> tuple[ScenarioModel | None, tuple[Call, ...]]:
        plain = {key: _put_in(value, row) for key, value in self.tree.items() if key != "over"}
        if not self.chain:
            self.results = set()
        self._unknown_references({key: plain.get(key) for key in plain if key != "steps"}, ())
        model = None
        try:
            model = ScenarioModel.model_validate(plain, context=self.known)
        except ValidationError as error:
            self.problems += problems_of(error, ScenarioModel)
        source = plain.get("source")
        self.known = Known(self.known.images, source if isinstance(source, str) else self.known.source)
        steps = plain.get("steps")
        return model, self._calls(steps, ("steps",)) if isinstance(steps, list) else ()

    # -- steps ----------------------------------------------------------------------------------------

    def _calls(self, steps: Sequence[Any], keys: Keys) -> tuple[Call, ...]:
        calls: list[Call] = []
        for at, raw in enumerate(steps):
            here = (*keys, at)
            data = {raw: None} if isinstance(raw, str) else raw
            name = next(iter(data), "") if isinstance(data, Mapping) else ""
            if not isinstance(name, str) or not name:
                self.problems.append((here, "is no step: write its name, a colon, and what it takes"))
            elif name == USE:
                calls += self._used(data, here)
            elif name in STEPS:
                calls += self._call(STEPS[name], data, here)
            else:
                later = next((f"the name of a step stands first: {key}" for key in data if key in STEPS), "")
                close = nearest(name, [*STEPS, USE])
                why = later or (f"did you mean {close!r}?" if close else "`hil scenario schema` lists them")
                self.problems.append(((*here, name), f"unknown step; {why}"))
        return tuple(calls)

    def _call(self, step: Step, data: Mapping[str, Any], here: Keys) -> list[Call]:
        inner = {_key(step, name): name for name, kind in step.kinds.items() if kind == STEPS_KIND}
        if self._unknown_references({key: value for key, value in data.items() if key not in inner}, here):
            return []
        model = model_of(step)
        try:
            held = model.model_validate(data, context=self.known)
        except ValidationError as error:
            self.problems += [((*here, *keys), text) for keys, text in problems_of(error, model)]
            return []
        arguments = {name: getattr(held, name) for name in step.kinds if name in held.model_fields_set}
        arguments = {name: value for name, value in arguments.items() if value is not None}
        for key, name in inner.items():
            if name in arguments:
                arguments[name] = self._calls(arguments[name], (*here, key))
        result: str = getattr(held, "as_", None) or ""
        self.results |= {result} if result else set()
        return [Call(step, arguments, result, f"{_shown(self.path)}:{line_of(self.tree, here)}")]

    def _used(self, data: Mapping[str, Any], here: Keys) -> tuple[Call, ...]:
        try:
            use = Use.model_validate(data)
        except ValidationError as error:
            self.problems += [((*here, *keys), text) for keys, text in problems_of(error, Use)]
            return ()
        target = self.path.parent / use.use
        chain = (*self.chain, self.path)
        if target.resolve() in [each.resolve() for each in chain]:
            names = " uses ".join(each.name for each in (*chain, target))
            self.problems.append(((*here, USE), f"the files go in a circle: {names}"))
            return ()
        try:
            return _Reader(target, self.known, chain).calls(use.with_, self.results)
        except ConfigurationError as error:
            self.elsewhere += error.message.splitlines()
            return ()

    def _unknown_references(self, node: Any, keys: Keys) -> bool:
        """Find what stands for a value that there is not; return whether any does."""
        if isinstance(node, Mapping):
            # All of them are looked at, so that all are told.
            return (
                sum(self._unknown_references(part, (*keys, key)) for key in node for part in (key, node[key]))
                > 0
            )
        if isinstance(node, list):
            return sum(self._unknown_references(value, (*keys, at)) for at, value in enumerate(node)) > 0
        found = REFERENCE.fullmatch(node) if isinstance(node, str) else None
        if found is None or found[1] in self.results or isinstance(node, _Literal):
            return False
        close = f"; {guess(found[1], sorted(self.results))}" if self.results else ""
        text = f"{node} is neither a value of `over` or `with`, nor named by a step before with `as`{close}"
        self.problems.append((keys, text))
        return True

    # -- what is given --------------------------------------------------------------------------------

    def _check_given(self, made: ScenarioFile) -> None:
        about_systems = ("lab", "system", "release", "way")
        for key in {key for variant in made.variants for key in variant.given.model_fields_set}:
            if key in about_systems and not made.fixtures & _SYSTEMS:
                self.problems.append((("given", key), "is about a StarlingX system, and no step is"))


class _Literal(str):
    """A text that begins with ``$`` and stands for itself: in the file it begins with ``$$``."""

    __slots__ = ()


def _row_id(row: Mapping[str, Any]) -> str:
    return str(row["id"]) if "id" in row else "-".join(map(str, row.values()))


def _put_in(node: Any, row: Mapping[str, Any]) -> Any:
    """Return plain data, with the values of ``row`` in place of what stands for them."""
    if isinstance(node, Mapping):
        return {_put_in(key, row): _put_in(value, row) for key, value in node.items()}
    if isinstance(node, list):
        return [_put_in(value, row) for value in node]
    if not isinstance(node, str):
        return node
    found = REFERENCE.fullmatch(node)
    if found and found[1] in row:
        return _put_in(row[found[1]], {})
    return _Literal(node[1:]) if node.startswith("$$") else node


def _key(step: Step, argument: str) -> str:
    return step.name if argument == step.main else argument


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
