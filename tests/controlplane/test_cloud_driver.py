"""dcmanager driven: what is said and asked is recorded, and what is waited for is told with what was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.controlplane.cloud_driver import CloudDriver
from harness.controlplane.cloud_protocol import Step, Strategy, StrategyOptions, Subcloud
from harness.controlplane.gate import Permits
from harness.errors import ConfigurationError, ControlPlaneError, DeadlineError, UnreachableError
from harness.judgement.records import Claim, Completion, Evidence, Intent
from harness.judgement.values import Unknown
from harness.record.history import History

Answer = list[Any] | Exception


@dataclass
class Scripted:
    """A dcmanager that answers what a test says, the last answer again and again."""

    answers: list[Answer]
    name: str = "central"
    reporter: str = "dcmanager"
    evidence: Evidence = field(default_factory=lambda: Evidence("raw", "GET /"))
    asked: int = 0

    def _next(self) -> list[Any]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    def progress(self) -> list[Any]:
        return self._next()

    def subclouds(self) -> list[Any]:
        return self._next()

    def strategy(self) -> Any:
        return next(iter(self._next()), None)

    def carry_out(self, change: Any, permits: Permits) -> Any:
        return self._next()[0]


class OpenGate:
    """An interlock that lets everything pass: it has tests of its own."""

    def strategy_permits(self, change: Any, system: object) -> Permits:
        return Permits(change, "a test")


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., tuple[CloudDriver, History]]]:
    opened: list[History] = []

    def give(*answers: Answer) -> tuple[CloudDriver, History]:
        history = History(tmp_path / f"history{len(opened)}.jsonl")
        opened.append(history)
        gate: Any = OpenGate()
        way: Any = Scripted(list(answers))
        return CloudDriver(way, gate, way, history), history

    yield give
    for history in opened:
        history.close()


def strategy(state: str) -> Strategy:
    return Strategy("firmware", state, "parallel", 2, False)


def at(state: str, *steps: Step) -> list[Any]:
    return [strategy(state), *steps]


def claims(history: History) -> list[Claim]:
    return [record for record in history.records if isinstance(record, Claim)]


# -- waiting -----------------------------------------------------------------------------------------------


def test_an_answer_of_before_is_waited_through(begin: Callable[..., Any]) -> None:
    """An apply is taken and carried out later: `initial` right after it says nothing."""
    driver, history = begin(
        at("initial"), at("initial"), at("applying", Step("s1", "importing firmware")), at("complete")
    )
    assert driver.wait_for_strategy("complete", deadline=30).state == "complete"
    states = [said.statement["state"] for said in claims(history) if "strategy" in said.subject.name]
    assert states == ["initial", "applying", "complete"], "each change is a claim, and no repetition is"


@pytest.mark.parametrize("ended", ["failed", "aborted", "complete"])
def test_without_a_state_every_end_is_one(begin: Callable[..., Any], ended: str) -> None:
    driver, _ = begin(at("applying"), at(ended))
    assert driver.wait_for_strategy(deadline=30).state == ended


def test_what_has_ended_otherwise_is_told_at_once_with_its_steps(begin: Callable[..., Any]) -> None:
    driver, _ = begin(at("failed", Step("s1", "complete"), Step("s2", "failed", details="no file")))
    with pytest.raises(ControlPlaneError) as error:
        driver.wait_for_strategy("complete", deadline=3600)
    assert "not complete: the strategy is failed; s1: complete; s2: failed: no file" in error.value.message


def test_a_deadline_tells_what_was_seen_last(begin: Callable[..., Any]) -> None:
    driver, history = begin(at("applying", Step("s1", "applying fw update strategy", details="50% complete")))
    with pytest.raises(DeadlineError) as error:
        driver.wait_for_strategy("complete", deadline=0.2)
    assert (
        "the strategy is complete; last seen: the strategy is applying; s1: applying fw"
        in error.value.message
    )
    assert "50% complete" in error.value.message
    (end,) = [record for record in history.records if isinstance(record, Completion)]
    assert end.how == "timed-out"


def test_a_dcmanager_that_is_away_meanwhile_is_asked_again(begin: Callable[..., Any]) -> None:
    driver, _ = begin(at("applying"), UnreachableError("It is away."), at("complete"))
    assert driver.wait_for_strategy(deadline=30).state == "complete"


def test_a_strategy_that_is_gone_is_no_end(begin: Callable[..., Any]) -> None:
    driver, _ = begin(at("applying"), [])
    with pytest.raises(ControlPlaneError, match="has no strategy"):
        driver.wait_for_strategy(deadline=3600)


def test_a_strategy_is_deleted_a_while_after_it_was_asked_for(begin: Callable[..., Any]) -> None:
    driver, _ = begin([strategy("deleting")], [strategy("deleting")], [])
    driver.wait_until_deleted(deadline=30)
    driver, _ = begin([strategy("deleting")])
    with pytest.raises(DeadlineError, match="last seen: the strategy is deleting"):
        driver.wait_until_deleted(deadline=0.2)


def test_unknown_is_not_in_sync(begin: Callable[..., Any]) -> None:
    """Nor is a subcloud that is not listed at all."""

    def firmware(status: Any, name: str = "s1") -> Subcloud:
        return Subcloud(name, firmware_sync_status=status)

    def in_sync(one: Subcloud) -> bool:
        return one.firmware_sync_status == "in-sync"

    answers: Sequence[Answer] = (
        [firmware("unknown"), firmware("in-sync", "s2")],
        [firmware(Unknown("not shown")), firmware("in-sync", "s2")],
        [firmware("in-sync", "s2")],
    )
    for answer in answers:
        driver, _ = begin(answer)
        with pytest.raises(DeadlineError):
            driver.wait_for_subclouds("they are in sync", in_sync, deadline=0.1, names=["s1", "s2"])
    driver, _ = begin(*answers, [firmware("in-sync"), firmware("in-sync", "s2")])
    driver.wait_for_subclouds("they are in sync", in_sync, deadline=30, names=["s1", "s2"])


# -- recording ---------------------------------------------------------------------------------------------


def test_what_is_asked_and_answered_is_in_the_history(begin: Callable[..., Any]) -> None:
    driver, history = begin([strategy("initial")])
    driver.create_strategy(StrategyOptions("serial", stop_on_failure=True, cloud_name="s1"))
    (intent,) = [record for record in history.records if isinstance(record, Intent)]
    assert (intent.operation, intent.subject.name) == ("strategy-create", "central/strategy/firmware")
    assert intent.parameters == {
        "subcloud_apply_type": "serial",
        "stop_on_failure": True,
        "cloud_name": "s1",
        "reporter": "dcmanager",
    }
    (said,) = claims(history)
    assert (said.reporter, said.subject.name, said.intent) == ("dcmanager", intent.subject.name, intent.seq)
    assert said.statement["state"] == "initial" and said.evidence.text == "raw"


def test_steps_and_subclouds_are_subjects_of_their_own(begin: Callable[..., Any]) -> None:
    driver, history = begin([Subcloud("s1"), Subcloud("s2")], at("applying", Step("s1", "initial")))
    driver.subclouds()
    driver.progress()
    assert [said.subject.name for said in claims(history)] == [
        "central/subcloud/s1",
        "central/subcloud/s2",
        "central/strategy/firmware",
        "central/step/s1",
    ]


@pytest.mark.parametrize(
    "options", [{"cloud_name": "s1"}, {"subcloud_apply_type": "serial"}, {"max_parallel": 2}]
)
def test_a_group_has_all_the_rest(begin: Callable[..., Any], options: dict[str, Any]) -> None:
    driver, history = begin([strategy("initial")])
    with pytest.raises(ConfigurationError, match="of the group"):
        driver.create_strategy(StrategyOptions(group="Default", **options))
    assert not history.records, "nothing was asked"
