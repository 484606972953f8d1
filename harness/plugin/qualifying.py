"""One trial of a qualification, in a process of its own: runs scenarios, tells what each found at once.

``python -m harness.plugin.qualifying ORDER``: the order is a JSON file that
:mod:`harness.scenarios.qualification` writes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.judgement.judge import Judgement, ScenarioJudgement

#: Why a file cannot be read is told with so many characters at most, from its end.
_WORDS = 2000


class Qualifying:
    """A pytest plugin that chooses scenarios by their fixtures, and tells what each found.

    :param told: where to, one JSON object a line. :param concerns: only scenarios that ask for this fixture;
        empty: all; such as ``!card,system``: only those that ask for none of these.
    :param first: node ids that are run before all others.
    :param until: the outcome or verdict at whose first sight the rest is left out; empty: none is.
    :param only: node ids, and none besides; empty: all that are concerned.
    """

    def __init__(
        self,
        told: Path,
        concerns: str = "",
        first: Sequence[str] = (),
        until: str = "",
        only: Sequence[str] = (),
    ) -> None:
        self._told = told
        self._concerns = concerns
        self._first = first
        self._until = until
        self._only = frozenset(only)

    def tell(self, **said: Any) -> None:
        """Append one line."""
        with self._told.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")

    # -- hooks ----------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Choose the scenarios that are concerned, and put first what is to be first."""
        chosen = [
            item
            for item in items
            if self._is_concerned(set(getattr(item, "fixturenames", ())))
            and (not self._only or item.nodeid in self._only)
        ]
        if len(chosen) < len(items):
            config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        rank = {name: place for place, name in enumerate(self._first)}
        items[:] = sorted(chosen, key=lambda item: rank.get(item.nodeid, len(rank)))

    def _is_concerned(self, fixtures: set[str]) -> bool:
        if self._concerns.startswith("!"):
            return not fixtures & set(self._concerns[1:].split(","))
        return not self._concerns or self._concerns in fixtures

    def pytest_hil_scenario_judged(self, item: pytest.Item, judgement: ScenarioJudgement) -> None:
        """Tell what a scenario found, and end the run where that was what it is for."""
        found = unstated(judgement)
        reasons = list(judgement.reasons) or ([judgement.state_reason] if judgement.run_state else [])
        self.tell(scenario=judgement.name, state=judgement.state, unstated=found, reasons=reasons)
        if self._until and judgement.run_state is None and self._until in found:
            item.session.shouldstop = f"{judgement.name} found {self._until}"

    def pytest_hil_run_judged(self, run_dir: Path, judgement: Judgement) -> None:
        """Tell what diverged between scenarios."""
        for verdict in judgement.outside_divergences:
            found, state = [verdict.kind.value], "not-as-stated"
            self.tell(scenario="between scenarios", state=state, unstated=found, reasons=[str(verdict)])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell of a file that cannot be read as scenarios."""
        if report.failed:
            self.tell(unreadable=report.longreprtext.strip()[-_WORDS:])


def unstated(judgement: ScenarioJudgement) -> list[str]:
    """Return the outcome and the verdicts that a scenario found and does not state."""
    found = [verdict.kind.value for verdict in judgement.divergences if not judgement.states(verdict)]
    outcomes = {each.outcome for each in judgement.outcomes} - {judgement.expected.outcome}
    found += [outcome.value for outcome in outcomes if outcome.value != "AS_INTENDED"]
    return sorted(set(found))


def main(order: Path) -> int:
    """Run the trial that the file ``order`` describes; return pytest's status."""
    from harness.interruption import stopped_is_interrupted

    said = json.loads(order.read_text(encoding="utf-8"))
    plugin = Qualifying(Path(said["told"]), said["concerns"], said["first"], said["until"], said["only"])
    with stopped_is_interrupted():
        status = int(pytest.main(said["arguments"], plugins=[plugin]))
    plugin.tell(ended=status)
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
