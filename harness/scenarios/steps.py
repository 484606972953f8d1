"""The steps of scenario files: each is a method of a fixture, so that both forms have one executor."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from harness.errors import HarnessBug
from harness.scenarios.journal import take, taking

F = TypeVar("F", bound=Callable[..., Any])
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step, by its name in files.

    ``fixture``: what it is done by; ``call`` takes that first. ``kinds``: argument -> the kind of its values
    (:data:`harness.scenarios.kinds.KINDS`). The first argument stands beside the step's name.
    """

    name: str
    fixture: str
    call: Callable[..., Any]
    kinds: Mapping[str, str]

    @property
    def about(self) -> str:
        """What it does, in one line."""
        return (inspect.getdoc(self.call) or "").partition("\n")[0]

    @property
    def parameters(self) -> Collection[str]:
        """The names of all that the call takes, the fixture apart."""
        return [*inspect.signature(self.call).parameters][1:]

    @property
    def place(self) -> str:
        """File and line of who registered it, for messages."""
        code = inspect.unwrap(self.call).__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    @property
    def main(self) -> str:
        """The argument that stands beside the name; empty where it takes none."""
        return next(iter(self.kinds), "")

    def needs(self, argument: str) -> bool:
        """Return whether it cannot be left out."""
        parameter = inspect.signature(self.call).parameters[argument]
        if parameter.kind in _VARIADIC:
            return argument == self.main
        return parameter.default is inspect.Parameter.empty

    def default(self, argument: str) -> Any:
        """Return what holds where an argument is left out; None for those that are required."""
        default = inspect.signature(self.call).parameters[argument].default
        return None if default is inspect.Parameter.empty else default

    def __call__(self, fixture: Any, arguments: Mapping[str, Any]) -> Any:
        """Take the step, as a Python scenario would by calling the method; return what that returns."""
        positional: list[Any] = [fixture]
        named: dict[str, Any] = {}
        _, *parameters = inspect.signature(self.call).parameters.values()
        for each in parameters:
            value = arguments.get(each.name, each.default)
            if each.kind is inspect.Parameter.POSITIONAL_ONLY:
                positional.append(value)
            elif each.name in arguments:
                if each.kind is inspect.Parameter.VAR_POSITIONAL:
                    positional += value
                else:
                    named |= value if each.kind is inspect.Parameter.VAR_KEYWORD else {each.name: value}
        return self.call(*positional, **named)


#: Name -> step; filled as the modules of the plugin's fixtures are imported.
STEPS: dict[str, Step] = {}


def is_step(name: str, /, *, of: str, **kinds: str) -> Callable[[F], F]:
    """Let a method, or a function that takes a fixture first, be the step ``name`` of scenario files.

    :param of: the name of the fixture. :param kinds: argument -> kind; those that are not named cannot be
        given in a file. The first is the one that stands beside the step's name.
    """

    def register(call: F) -> F:
        known = STEPS.get(name)
        if known is not None and known.call.__qualname__ != call.__qualname__:
            raise HarnessBug(f"Two methods are the step {name!r}: {known.call} and {call}.")

        @wraps(call)
        def taken(*given: Any, **options: Any) -> Any:
            return take(step, call, given, options)

        STEPS[name] = step = Step(name, of, taken, kinds)
        return cast("F", taken)

    return register


def taken_as(name: str, /, **renamed: str) -> Callable[[F], F]:
    """Let a method that Python scenarios call be recorded as the step ``name``, which is another function.

    :param renamed: argument of the method -> that of the step. Keywords without a name of their own are
        arguments of the step; a list of one stands for what is in it.
    """

    def register(call: F) -> F:
        @wraps(call)
        def taken(fixture: Any, *given: Any, **options: Any) -> Any:
            said = _as_step(inspect.signature(call).bind(fixture, *given, **options), renamed)
            with taking(STEPS[name], said, getattr(fixture, "place", "")):
                return call(fixture, *given, **options)

        return cast("F", taken)

    return register


def _as_step(bound: inspect.BoundArguments, renamed: Mapping[str, str]) -> dict[str, Any]:
    _, *parameters = bound.signature.parameters.values()
    said: dict[str, Any] = {}
    for each in parameters:
        value = bound.arguments.get(each.name)
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            said |= value or {}
        elif each.kind is inspect.Parameter.VAR_POSITIONAL and value and len(value) == 1:
            said[renamed.get(each.name, each.name)] = value[0]
        else:
            said[renamed.get(each.name, each.name)] = value
    return {name: value for name, value in said.items() if value is not None and value != ()}
