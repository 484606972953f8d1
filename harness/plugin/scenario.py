"""One scenario while it runs: what it states, its records, and how it is judged before teardown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import BlockedError, ConfigurationError, HarnessError, Kind
from harness.judgement.model import Expectation, RunState
from harness.judgement.records import ScenarioEnded, ScenarioStarted, Subject

if TYPE_CHECKING:
    from harness.judgement.judge import ScenarioJudgement
    from harness.plugin.session import HilSession


@dataclass
class Scenario:
    """The scenario of one pytest item."""

    session: HilSession
    name: str
    subject: Subject | None
    expects: Expectation
    first_record: int = 0
    judged: ScenarioJudgement | None = None
    #: Called before the scenario ends, so that what they record is judged with it.
    before_end: list[Callable[[], None]] = field(default_factory=list)
    _ended: bool = field(default=False, repr=False)

    def begin(self) -> None:
        """Write the scenario's first record."""
        started = self.session.history.add(
            ScenarioStarted(scenario=self.name, subject=self.subject, expects=self.expects.to_json())
        )
        self.first_record = started.seq

    def end(self, state: str = "finished", reason: str = "") -> None:
        """Write the scenario's last record, once."""
        if not self._ended:
            self._ended = True
            for callback in self.before_end:
                callback()
            self.session.history.add(ScenarioEnded(scenario=self.name, state=state, reason=reason))

    def judge(self) -> ScenarioJudgement:
        """Judge what is recorded of this scenario so far; pure, so it may be asked at any time."""
        from harness.judgement.judge import judge_scenario

        records = [r for r in self.session.history.records if r.seq >= self.first_record]
        return judge_scenario(records)


SCENARIO = pytest.StashKey[Scenario]()


def expectation_of(item: pytest.Item) -> Expectation:
    """Return what the ``hil_expects`` marker of ``item`` states.

    :raises ConfigurationError: it names an unknown outcome or verdict.
    """
    marker = item.get_closest_marker("hil_expects")
    if marker is None:
        return Expectation()
    values: Mapping[str, Any] = marker.kwargs
    try:
        return Expectation.from_json(
            {"outcome": values.get("outcome", "AS_INTENDED"), "verdicts": values.get("verdicts", {})}
        )
    except ValueError as error:
        raise ConfigurationError(
            f"{item.nodeid}: the marker hil_expects says {error}.",
            hint="It takes outcome='AS_INTENDED' and verdicts={'fpgasupdate': 'FALSE_SUCCESS'}.",
        ) from error


def state_of(error: BaseException) -> tuple[str, str]:
    """Return the run state and the reason that an exception of a scenario stands for."""
    from harness.scenarios.prepare import NotApplicable

    reason = str(error)
    if isinstance(error, NotApplicable):
        return RunState.NOT_APPLICABLE.value, reason
    if isinstance(error, BlockedError):
        return RunState.BLOCKED.value, reason
    if isinstance(error, (KeyboardInterrupt, pytest.exit.Exception)):
        return "interrupted", "the run was interrupted"
    if isinstance(error, HarnessError):
        states = {
            Kind.INFRASTRUCTURE: RunState.INFRA,
            Kind.CONFIGURATION: RunState.BLOCKED,
            Kind.REFUSED: RunState.REFUSED,
            Kind.BUG: RunState.BUG,
        }
        state = states.get(error.kind)
        return (state.value if state else "finished"), reason
    if isinstance(error, (AssertionError, pytest.fail.Exception)):
        return "finished", ""
    return RunState.BUG.value, f"{type(error).__name__}: {reason}"


@contextmanager
def step(session: HilSession, title: str) -> Iterator[None]:
    """Show an operation as a step of the Allure report, where one is written."""
    if session.allure:
        import allure

        with allure.step(title):
            yield
    else:
        yield
