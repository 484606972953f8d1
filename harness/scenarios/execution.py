"""Takes the steps of a scenario file: each is a call of a fixture's method, as a Python scenario makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.errors import ConfigurationError, HarnessError
from harness.scenarios.files import Call


@dataclass(slots=True)
class Execution:
    """One scenario while it runs. ``fixtures``: by name, as they were made for it."""

    fixtures: Mapping[str, Any]
    _results: dict[str, Any] = field(default_factory=dict)

    def run(self, calls: Sequence[Call]) -> Any:
        """Take the steps in order; return what the last one returned.

        :raises HarnessError: as the step does; the message of one about a value has the file and the line.
        """
        last: Any = None
        for call in calls:
            last = self._take(call)
        return last

    def _take(self, call: Call) -> Any:
        try:
            arguments = {name: self._value(call, name, value) for name, value in call.arguments.items()}
            result = call.step(self.fixtures[call.step.fixture], arguments)
        except AssertionError as error:
            raise AssertionError(f"{call.place}: {call.step.name}: {error}") from error
        except ConfigurationError as error:
            if not error.message.startswith(f"{call.place}: "):
                error.message = f"{call.place}: {call.step.name}: {error.message}"
            raise
        except HarnessError as error:
            error.add_note(f"in the step {call.step.name}, {call.place}")
            raise
        if call.result:
            self._results[call.result] = result
        return result

    def _value(self, call: Call, name: str, value: Any) -> Any:
        if call.step.kinds[name] == "steps":
            return self._act(value)
        match call.step.kinds[name]:
            case "result":
                return self._result(value)
            case "results":
                return [self._result(each) for each in value]
            case "value" if isinstance(value, str) and value[:1] == "$" and value[1:] in self._results:
                return self._results[value[1:]]
        return value

    def _result(self, reference: str) -> Any:
        if reference[1:] not in self._results:
            raise AssertionError(f"there is no {reference}: the step that gives it was refused")
        return self._results[reference[1:]]

    def _act(self, calls: Sequence[Call]) -> Callable[..., Any]:
        def act(**fixtures: Any) -> Any:
            return Execution({**self.fixtures, **fixtures}, self._results).run(calls)

        act.__name__ = ", ".join(call.step.name for call in calls)
        return act
