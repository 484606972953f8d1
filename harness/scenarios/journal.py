"""Records each step as it is taken, by a file or by Python alike, so that a run can be done again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Protocol

from harness.errors import InfrastructureError
from harness.judgement.records import Promise, Setting, StepEnded, StepTaken
from harness.record.operations import Recording, as_record

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

#: Kinds of arguments that can be what a step has returned.
_REFERENCES: Final = ("result", "results", "value")
#: A text that a step returns is taken for its result where it is as long as this: an identifier.
_IDENTIFIER: Final = 8
#: Of :attr:`Journal._within`: what is called now is part of the step that is taken, and no step of its own.
_PART_OF_STEP: Final = -1
#: Stands for what cannot be written down, with what it is.
UNNAMED: Final = "unnamed"
RESULT_OF: Final = "result_of"
#: The place of what a controller's own sysinv is asked past the vault; no step of a file goes there.
PAST_THE_VAULT: Final = "RegionOne"


class Described(Protocol):
    """What is known of a step (:class:`harness.scenarios.steps.Step`)."""

    @property
    def name(self) -> str:
        """As it is called in files."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """Argument -> the kind of its values."""


@dataclass
class Journal:
    """The steps of one scenario, in the history."""

    history: Recording
    #: The steps that are taken now, innermost last; 0: the scenario itself.
    _within: list[int] = field(default_factory=lambda: [0])
    _results: list[tuple[Any, int]] = field(default_factory=list)

    @contextmanager
    def step(self, step: Described, arguments: Mapping[str, Any], place: str = "") -> Iterator[int]:
        """Record that a step is taken in here, and that it is over; give its number, 0 for a part of another.

        :param arguments: as given; those that are steps themselves record what they do.
        """
        within = self._within[-1]
        if within == _PART_OF_STEP:
            yield 0
            return
        said = {name: self._plain(step.kinds.get(name, ""), value) for name, value in arguments.items()}
        taken = StepTaken(name=step.name, arguments=said, within=within or None, place=place)
        number = self.history.add(taken).seq
        self._within.append(_PART_OF_STEP)
        error: dict[str, str] = {}
        try:
            yield number
        except BaseException as raised:
            error = as_record(raised)
            raise
        finally:
            self._within.pop()
            with suppress(InfrastructureError):  # the history remembers that it could not be written
                self.history.add(StepEnded(step=number, error=error))

    @contextmanager
    def inner(self, number: int) -> Iterator[None]:
        """Record the steps that are taken in here as those of the step ``number``."""
        if not number:
            yield
            return
        self._within.append(number)
        try:
            yield
        finally:
            self._within.pop()

    def returned(self, number: int, result: Any) -> None:
        """Remember what a step returned, so that who takes it as an argument can be told."""
        known = isinstance(result, str) and len(result) < _IDENTIFIER
        if number and result is not None and not known:
            self._results.append((result, number))

    def acting(self, number: int, act: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``act``, whose steps are those of the step ``number`` whenever it is called."""

        @wraps(act)
        def acts(*arguments: Any, **options: Any) -> Any:
            with self.inner(number):
                return act(*arguments, **options)

        return acts

    def _plain(self, kind: str, value: Any) -> Any:
        """Return an argument as a record has it."""
        if kind in _REFERENCES and (step := self._step_that_returned(value)):
            return {RESULT_OF: step}
        if isinstance(value, Promise):
            return asdict(value)
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self._plain(kind, each) for each in value]
        if isinstance(value, Mapping):
            return {str(key): self._plain("", each) for key, each in value.items()}
        if value is None or isinstance(value, (str, int, float, bool)):
            return {UNNAMED: value} if kind in ("result", "results") else value
        name = getattr(value, "name", None)
        return name if kind == "image" and isinstance(name, str) else {UNNAMED: type(value).__name__}

    def _step_that_returned(self, value: Any) -> int:
        found = (
            number
            for result, number in self._results
            if result is value or (isinstance(value, str) and isinstance(result, str) and result == value)
        )
        return next(found, 0)


_journals: list[Journal] = []


def keep_journal(history: Recording) -> Journal:
    """Record the steps from here on to ``history``: a scenario begins."""
    _journals[:] = [Journal(history)]
    return _journals[0]


def end_journal() -> None:
    """Record no step from here on: the scenario is over, and what follows puts things back."""
    _journals.clear()


def note_setting(history: Recording, **values: Any) -> None:
    """Record what a scenario was given, as far as something was given."""
    said = {name: value for name, value in values.items() if value}
    if said and _journals:
        history.add(Setting(values=said))


@contextmanager
def taking(step: Described, arguments: Mapping[str, Any], place: str = "") -> Iterator[Callable[[], Any]]:
    """Take a step in here, by hand; give what its own steps are taken in."""
    if not _journals:
        yield nullcontext
        return
    journal = _journals[0]
    with journal.step(step, arguments, place) as number:

        def inner() -> AbstractContextManager[None]:
            return journal.inner(number)

        yield inner


def take(step: Described, call: Callable[..., Any], given: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call ``call``, which is a step: recorded where a scenario runs.

    :param given: what it is called with, the fixture first. :param options: the same, by name.
    """
    if not _journals:
        return call(*given, **options)
    journal = _journals[0]
    bound = inspect.signature(call).bind(*given, **options)
    acts = [name for name, kind in step.kinds.items() if kind == "steps"]
    with journal.step(step, _said(bound, acts), getattr(given[0], "place", "")) as number:
        for name in acts:
            if bound.arguments.get(name) is not None:
                bound.arguments[name] = journal.acting(number, bound.arguments[name])
        result = call(*bound.args, **bound.kwargs)
        journal.returned(number, result)
    return result


def _said(bound: inspect.BoundArguments, acts: list[str]) -> dict[str, Any]:
    """Return the arguments that say something; those that are for an act within say it there."""
    _, *parameters = bound.signature.parameters.values()
    said: dict[str, Any] = {}
    for each in parameters:
        value = bound.arguments.get(each.name, each.default)
        handed_on = bool(acts) and each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        if value is None or value is each.empty or each.name in acts or handed_on:
            continue
        if value != each.default:
            said[each.name] = value
    return said
