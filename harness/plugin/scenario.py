"""One scenario while it runs: what it states, its records, and how it is judged before teardown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from harness.errors import InfrastructureError
from harness.judgement.model import Expectation
from harness.judgement.records import ScenarioEnded, ScenarioStarted, Subject
from harness.plugin.markers import expectation_of
from harness.scenarios.journal import end_journal, keep_journal

if TYPE_CHECKING:
    from harness.judgement.judge import ScenarioJudgement
    from harness.plugin.acting import Acting
    from harness.plugin.session import HilSession


@dataclass
class Scenario:
    """The scenario of one pytest item."""

    session: HilSession
    name: str
    subject: Subject | None
    expects: Expectation
    first_record: int = 0
    #: Called before the scenario ends, so that what they record is judged with it.
    before_end: list[Callable[[], None]] = field(default_factory=list)
    _ended: bool = field(default=False, repr=False)

    @property
    def begun(self) -> bool:
        """Whether its first record is in the history, be it only in memory."""
        return self.first_record > 0

    def begin(self) -> None:
        """Write the scenario's first record. :raises InfrastructureError: it cannot be written."""
        history = self.session.history
        # Set first: what cannot be written is kept in memory, and judged.
        self.first_record = len(history.records) + 1
        keep_journal(history)
        history.add(ScenarioStarted(scenario=self.name, subject=self.subject, expects=self.expects.to_json()))

    def end(self, state: str = "finished", reason: str = "") -> None:
        """Write the scenario's last record, once. What cannot be written is judged from memory."""
        if self._ended or not self.begun:
            return
        self._ended = True
        end_journal()
        for callback in self.before_end:
            with suppress(InfrastructureError):  # the history remembers that it could not be written
                callback()
        with suppress(InfrastructureError):
            self.session.history.add(ScenarioEnded(scenario=self.name, state=state, reason=reason))

    def judge(self) -> ScenarioJudgement:
        """Judge what is recorded of this scenario so far; pure, so it may be asked at any time."""
        from harness.judgement.judge import judge_scenario

        return judge_scenario(self.session.history.records[self.first_record - 1 :])


SCENARIO = pytest.StashKey[Scenario]()


def new_scenario(item: pytest.Item, session: HilSession) -> Scenario:
    """Return the scenario of ``item``, not begun yet.

    :raises ConfigurationError: its marker states what there is not.
    """
    device = device_of(item)
    subject = Subject("card", device, host=device.split("/", 1)[0]) if "/" in device else None
    scenario = item.stash[SCENARIO] = Scenario(session, item.nodeid, subject, expectation_of(item))
    return scenario


def device_of(item: pytest.Item) -> str:
    """Return the card (``host/card``) or host for which ``item`` runs; empty where it is for none."""
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec else {}
    device = params.get("card", params.get("host", ""))
    return device if isinstance(device, str) else ""


@contextmanager
def step(session: Acting, device: str, title: str) -> Iterator[None]:
    """Show an operation on ``device`` as progress, and as a step of the Allure report if one is written."""
    session.progress(device, title)
    if session.allure:
        import allure

        with allure.step(f"{title} on {device}"):
            yield
    else:
        yield
