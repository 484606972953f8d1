"""A subject of exploration whose steps are those of scenario files: taken, recorded, judged one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harness.errors import ControlPlaneError, HarnessBug, NoSuchRecordError
from harness.judgement.judge import ScenarioJudgement, judge_scenario
from harness.judgement.model import Expectation, Outcome, Verdict, VerdictKind
from harness.judgement.records import Intent, Record, ScenarioEnded, ScenarioStarted
from harness.plugin import steps as _steps  # noqa: F401 -- it knows them all
from harness.record.redaction import redact
from harness.scenarios.execution import Execution
from harness.scenarios.exploration import Disagreement
from harness.scenarios.files import read_steps

if TYPE_CHECKING:
    from harness.lab.bench import Bench
    from harness.lab.running import RunningLab
    from harness.plugin.acting import Remembering
    from harness.plugin.images import ImageShelf
    from harness.record.history import History

R = TypeVar("R", bound=Record)
#: What is no finding: it is so, or nobody can tell.
MILD: Final = (VerdictKind.MATCH, VerdictKind.UNVERIFIABLE)


@dataclass
class Recorded:
    """The records of one history of an exploration, in memory, as a scenario of this name.

    ``kept``: where they are kept besides; what is done to real equipment is.
    """

    name: str
    kept: History | None = None
    records: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.add(ScenarioStarted(scenario=self.name))

    def add(self, record: R) -> R:
        """Keep ``record``; return it with its number."""
        kept = replace(record, seq=len(self.records) + 1) if self.kept is None else self.kept.add(record)
        self.records.append(kept)
        return kept

    def judged(self) -> ScenarioJudgement:
        """Judge it as if it ended here."""
        return judge_scenario([*self.records, ScenarioEnded(scenario=self.name)])


@dataclass
class Run:
    """The run that an exploration or a sweep is, to the operations of scenarios."""

    lab: RunningLab | None
    history: Remembering
    shelf: ImageShelf | None = None
    allure: bool = False

    @property
    def images(self) -> ImageShelf:
        """The images that can be flashed. :raises HarnessBug: nothing is flashed here."""
        if self.shelf is None:
            raise HarnessBug("An exploration that flashes nothing was asked for an image.")
        return self.shelf

    def progress(self, device: str, doing: str) -> None:
        """Show nothing: the number of steps is shown."""

    def bench_of(self, host: str) -> Bench | None:
        """Return the bench of a host; None where it is real."""
        return self.lab.bench if self.lab is not None and self.lab.offers(host, "bench") else None


class Played:
    """Takes steps of scenario files by fixtures, and finds what is not as documents have it.

    :param fixtures: by name, as the steps want them. :param source: the documents.
    """

    def __init__(self, recorded: Recorded, fixtures: Mapping[str, Any], source: str) -> None:
        self.recorded = recorded
        #: What was done, as a scenario file says it.
        self.written: list[Any] = []
        self._execution = Execution(fixtures)
        self._source = source
        self._results: set[str] = set()
        #: The operations that may fail.
        self._may_fail: set[int] = set()
        #: Those that nothing need be heard of.
        self._silent: set[int] = set()

    def take(
        self, steps: Sequence[Any], *, may_fail: bool = False, silent: bool = False, written: bool = True
    ) -> None:
        """Take steps. :raises Disagreement: what comes of them is not as documents have it.

        :param may_fail: what they do may come to nothing, if that is told. :param silent: nor need it be:
            they take away who would tell. :param written: False: a scenario of all this does without them.
        """
        self.written += steps if written else ()
        refused, first = "", len(self.recorded.records)
        try:
            self._execution.run(read_steps(steps, self._results, self._source))
        except AssertionError as error:
            raise Disagreement(redact(str(error))) from None
        except (ControlPlaneError, NoSuchRecordError) as error:  # it may have lost what there must be
            refused = error.message
        begun = {each.seq for each in self.recorded.records[first:] if isinstance(each, Intent)}
        self._may_fail |= begun if may_fail else set()
        self._silent |= begun if silent else set()
        if found := self.found() or refused:
            raise Disagreement(redact(found))

    def found(self) -> str:
        """Return what is not as it should be; empty where all is."""
        judged = self.recorded.judged()
        for outcome in judged.outcomes:
            failed = outcome.outcome is Outcome.FAILED and outcome.intent not in self._may_fail
            if failed or outcome.outcome is Outcome.BREACH:
                return f"{outcome.outcome.value}: {outcome.reason}"
        for verdict in judged.judged:
            lost = verdict.kind is VerdictKind.LOST and verdict.intent in self._silent
            if verdict.kind not in MILD and not lost and not self.tolerates(verdict):
                return str(verdict)
        return ""

    def tolerates(self, verdict: Verdict) -> bool:
        """Whether a divergence is so by what was done, and no finding."""
        return False

    @property
    def last_look(self) -> list[Any]:
        """What a scenario of all this does at its end."""
        return []

    def expectation(self) -> dict[str, Any]:
        """Return what a scenario with these steps states where nothing is wrong: what nobody can tell."""
        judged = self.recorded.judged()
        others = {name: kind for name, kind in judged.verdicts.items() if kind is not VerdictKind.MATCH}
        found = Expectation(judged.outcome or Outcome.AS_INTENDED, others)
        return {name: value for name, value in found.to_json().items() if value}
