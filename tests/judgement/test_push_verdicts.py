"""What a push client says, held to what the registry has: the table of docs/verdicts.md, row by row."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judgement.checkers.push import FALSE_STATES
from harness.judgement.judge import ScenarioJudgement, judge_scenario
from harness.judgement.model import Outcome, VerdictKind
from harness.judgement.records import (
    Claim,
    Completion,
    Evidence,
    Fault,
    Intent,
    Observation,
    Promise,
    Record,
    ScenarioEnded,
    ScenarioStarted,
    Subject,
    from_json,
    to_json,
)
from harness.judgement.values import Unknown
from harness.registry.truth import PRECEDENCE

IMAGE = Subject("registry-image", "registry.local:9001/a/b:1")
FIRST, SECOND = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
ABSENT = Unknown("ABSENT: manifest unknown")
#: The digest that each state goes with: what the tag leads to.
DIGEST = {"COMPLETE": FIRST, "PARTIAL": FIRST, "CORRUPT": FIRST, "WRONG": SECOND, "ABSENT": ABSENT}


class Story:
    """The records of pushes of one image, as the push driver writes them."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.add(ScenarioStarted(scenario="made-up", subject=IMAGE))

    def add(self, record: Any) -> Any:
        numbered = replace(record, seq=len(self.records) + 1, time=float(len(self.records)))
        self.records.append(numbered)
        return numbered

    def see(self, state: str, moment: str, intent: int | None = None, **values: Any) -> None:
        why = [] if state == "COMPLETE" else [finding(state)]
        read = {"state": state, "digest": DIGEST.get(state, Unknown("500")), "findings": why} | values
        self.add(
            Observation(probe="registry-truth", subject=IMAGE, moment=moment, values=read, intent=intent)
        )

    def begin(
        self, client: str = "oci-once", content: str = FIRST, promise: str = "lands", act: str = "push"
    ) -> int:
        parameters = {
            "client": client,
            "reporter": client,
            "content": {"digest": content, "config": content.replace("sha256:", "sha256:c"), "blobs": []},
            "compared_by": "digest",
        }
        promised = Promise(promise)  # type: ignore[arg-type]
        return int(
            self.add(Intent(operation=act, subject=IMAGE, parameters=parameters, promise=promised)).seq
        )

    def say(self, intent: int, result: str, digest: str = "", reporter: str = "oci-once") -> None:
        statement = {"result": result, "digest": digest, "error": "", "basis": ""}
        said = Evidence("what it said", reporter)
        self.add(Claim(reporter=reporter, subject=IMAGE, statement=statement, evidence=said, intent=intent))

    def push(self, state: str, result: str | None = "done", *, before: str = "", **options: Any) -> int:
        digest = options.pop("digest", "")
        restart = options.pop("after_restart", "")
        intent = self.begin(**options)
        if before:
            self.see(before, "before", intent)
        if result:
            self.say(intent, result, digest, options.get("client", "oci-once"))
        self.add(Completion(intent=intent, how="returned"))
        self.see(state, "after", intent)
        if restart:
            self.see(restart, "after-restart", intent)
        return intent

    def fault(self, action: str, intent: int | None = None, state: Any = "fired") -> None:
        self.add(Fault(point="before:blob-put", action=action, subject=IMAGE, state=state, intent=intent))

    def end(self, state: str = "finished") -> ScenarioJudgement:
        self.add(ScenarioEnded(scenario="made-up", state=state))
        return judge_scenario(self.records)


def finding(state: str, part: str = "layer") -> dict[str, str]:
    return {"state": state, "part": part, "which": "x", "reason": f"is {state}"}


@pytest.fixture
def story() -> Story:
    return Story()


def worst(judged: ScenarioJudgement, reporter: str = "oci-once") -> VerdictKind | None:
    return judged.verdicts.get(reporter)


def test_the_words_for_states_are_those_of_the_truth_walks() -> None:
    assert [state.value for state in PRECEDENCE] == [*FALSE_STATES, "UNREADABLE", "COMPLETE"]


@pytest.mark.parametrize(
    ("result", "state", "outcome", "verdict"),
    [
        ("done", "COMPLETE", "AS_INTENDED", "MATCH"),
        ("done", "ABSENT", "FAILED", "FALSE_SUCCESS"),
        ("done", "PARTIAL", "FAILED", "FALSE_SUCCESS"),
        ("done", "CORRUPT", "FAILED", "FALSE_SUCCESS"),
        ("done", "WRONG", "FAILED", "FALSE_SUCCESS"),
        ("done", "UNREADABLE", "UNKNOWN", "UNVERIFIABLE"),
        ("failed", "COMPLETE", "AS_INTENDED", "FALSE_FAILURE"),
        ("failed", "ABSENT", "FAILED", "MATCH"),
        ("failed", "PARTIAL", "FAILED", "MATCH"),
        ("failed", "UNREADABLE", "UNKNOWN", "UNVERIFIABLE"),
        ("unknown", "COMPLETE", "AS_INTENDED", "UNVERIFIABLE"),
        ("unknown", "ABSENT", "FAILED", "UNVERIFIABLE"),
        ("unknown", "UNREADABLE", "UNKNOWN", "UNVERIFIABLE"),
        ("interrupted", "ABSENT", "FAILED", "LOST"),
        ("interrupted", "COMPLETE", "AS_INTENDED", "LOST"),
        (None, "COMPLETE", "AS_INTENDED", "LOST"),
    ],
)
def test_a_report_is_held_to_what_is_there(story, result, state, outcome, verdict) -> None:
    story.push(state, result)
    judged = story.end()
    assert (judged.outcome, worst(judged)) == (Outcome(outcome), VerdictKind(verdict))


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ("ABSENT", "COMPLETE", "BREACH"),
        ("ABSENT", "ABSENT", "AS_INTENDED"),
        ("WRONG", "WRONG", "AS_INTENDED"),
        ("WRONG", "COMPLETE", "BREACH"),
        ("COMPLETE", "COMPLETE", "AS_INTENDED"),
        ("COMPLETE", "ABSENT", "BREACH"),
        ("ABSENT", "UNREADABLE", "UNKNOWN"),
        ("", "COMPLETE", "BREACH"),
    ],
)
def test_a_push_that_must_not_land(story, before, after, outcome) -> None:
    story.push(after, "failed", before=before, promise="unchanged")
    assert story.end().outcome is Outcome(outcome)


def test_another_digest_than_the_true_one_is_a_misreport(story) -> None:
    story.push("COMPLETE", digest=SECOND)
    judged = story.end()
    assert worst(judged) is VerdictKind.MISREPORT
    assert FIRST in judged.divergences[0].truth


def test_a_wrong_digest_does_not_hide_that_nothing_is_there(story) -> None:
    story.push("ABSENT", digest=SECOND)
    assert worst(story.end()) is VerdictKind.FALSE_SUCCESS


def test_a_client_that_says_that_it_does_not_know_is_quoted(story) -> None:
    story.push("COMPLETE", "unknown")
    verdict = next(v for v in story.end().judged if v.reporter == "oci-once")
    assert verdict.claimed.startswith(f"whether {IMAGE.name} was pushed is not known")
    assert verdict.truth.endswith("it says neither that it is there nor that it is not")


def test_a_failed_push_of_what_was_there_before_proves_nothing(story) -> None:
    story.push("COMPLETE", "failed", before="COMPLETE")
    assert worst(story.end()) is VerdictKind.UNVERIFIABLE


def test_a_failed_push_over_what_could_not_be_read_proves_nothing(story) -> None:
    story.push("COMPLETE", "failed", before="UNREADABLE")
    judged = story.end()
    assert worst(judged) is VerdictKind.UNVERIFIABLE
    assert "what was there before could not be read" in judged.divergences[0].truth


def test_what_could_not_be_read_before_is_no_change(story) -> None:
    story.push("COMPLETE", before="UNREADABLE", promise="unchanged")
    judged = story.end()
    assert judged.outcome is Outcome.UNKNOWN
    assert "what was there before could not be read" in judged.outcomes[0].reason


def test_what_could_not_be_read_after_a_restart_is_no_change(story) -> None:
    story.push("ABSENT", "failed", before="ABSENT", after_restart="UNREADABLE", promise="unchanged")
    assert story.end().outcome is Outcome.AS_INTENDED


def test_what_a_restart_takes_away_was_never_safe(story) -> None:
    story.push("COMPLETE", after_restart="ABSENT")
    judged = story.end()
    assert (judged.outcome, worst(judged)) == (Outcome.FAILED, VerdictKind.FALSE_SUCCESS)
    assert "after a restart of the registry" in judged.divergences[0].truth


def test_a_push_that_was_never_read_back_is_unverifiable(story) -> None:
    intent = story.begin()
    story.say(intent, "done")
    story.add(Completion(intent=intent, how="returned"))
    judged = story.end()
    assert (judged.outcome, worst(judged)) == (Outcome.UNKNOWN, VerdictKind.UNVERIFIABLE)


def test_nobody_was_there_to_listen_when_the_run_ended(story) -> None:
    intent = story.begin()
    story.add(Completion(intent=intent, how="raised", error={"kind": "KeyboardInterrupt"}))
    assert worst(story.end("interrupted")) is VerdictKind.UNVERIFIABLE


@pytest.mark.parametrize(
    ("after", "words"), [("COMPLETE", "the push healed it"), ("CORRUPT", "did not heal it")]
)
def test_a_push_over_a_damaged_image_heals_it_or_says_so(story, after, words) -> None:
    story.push(after, before="CORRUPT")
    judged = story.end()
    assert words in judged.judged[0].truth
    assert worst(judged) is (VerdictKind.MATCH if after == "COMPLETE" else VerdictKind.FALSE_SUCCESS)


@pytest.mark.parametrize("state", ["ABSENT", "CORRUPT", "PARTIAL"])
def test_what_the_registry_lost_makes_the_older_report_false(story, state) -> None:
    first = story.push("COMPLETE")
    story.see(state, "after")
    judged = story.end()
    (lost,) = judged.divergences
    assert (lost.kind, lost.intent) == (VerdictKind.FALSE_SUCCESS, first)
    assert "nobody removed it" in lost.truth


def test_what_we_damaged_ourselves_is_stale(story) -> None:
    story.push("COMPLETE")
    story.fault("truncate-blob")
    story.see("CORRUPT", "")
    assert worst(story.end()) is VerdictKind.STALE


def test_damage_that_was_brought_back_excuses_no_later_loss(story) -> None:
    story.push("COMPLETE")
    story.fault("truncate-blob")
    story.fault("truncate-blob", state="undone")
    story.see("COMPLETE", "")
    story.see("CORRUPT", "")
    assert worst(story.end()) is VerdictKind.FALSE_SUCCESS


def test_what_was_removed_on_purpose_was_not_lost(story) -> None:
    story.push("COMPLETE")
    story.begin(act="remove")
    story.see("ABSENT", "")
    assert worst(story.end()) is VerdictKind.MATCH


def test_a_failed_push_over_an_old_image_leaves_it_under_the_tag(story) -> None:
    story.push("COMPLETE")
    second = story.begin(client="other", content=SECOND)
    story.say(second, "failed", reporter="other")
    story.see("WRONG", "after", second, digest=FIRST)
    judged = story.end()
    assert (worst(judged), worst(judged, "other")) == (VerdictKind.MATCH, VerdictKind.MATCH)


def test_a_failed_push_that_takes_the_old_image_with_it(story) -> None:
    """Killed while the tag's link was written: 2.8.2 leaves it empty, and both images are gone."""
    first = story.push("COMPLETE")
    second = story.begin(client="other", content=SECOND)
    story.say(second, "failed", reporter="other")
    story.see("CORRUPT", "after", second, digest=Unknown("500"))
    judged = story.end()
    (lost,) = judged.divergences
    assert (lost.kind, lost.reporter, lost.intent) == (VerdictKind.FALSE_SUCCESS, "oci-once", first)


def test_an_image_that_another_replaced_was_not_lost(story) -> None:
    story.push("COMPLETE")
    second = story.begin(client="other", content=SECOND)
    story.say(second, "done", reporter="other")
    story.see("COMPLETE", "after", second, digest=SECOND)
    assert worst(story.end()) is VerdictKind.MATCH


def test_a_tag_that_moved_by_itself_lost_its_image(story) -> None:
    story.push("COMPLETE")
    story.see("WRONG", "", digest=SECOND)
    assert worst(story.end()) is VerdictKind.FALSE_SUCCESS


def test_what_cannot_be_read_later_takes_nothing_back(story) -> None:
    story.push("COMPLETE")
    story.see("UNREADABLE", "")
    assert worst(story.end()) is VerdictKind.MATCH


def test_one_content_with_two_digests_is_a_contradiction(story) -> None:
    story.push("COMPLETE", digest=FIRST)
    intent = story.begin()
    story.say(intent, "done", SECOND)
    story.see("COMPLETE", "after", intent, digest=SECOND)
    assert worst(story.end()) is VerdictKind.CONTRADICTION


def test_a_registry_that_answers_from_its_cache_overstates(story) -> None:
    intent = story.push("PARTIAL", "failed")
    ways = {
        "api": {"state": "COMPLETE", "findings": []},
        "store": {"state": "PARTIAL", "findings": [finding("PARTIAL")]},
    }
    story.see("PARTIAL", "after", intent, **ways)
    assert worst(story.end(), "registry-api") is VerdictKind.FALSE_SUCCESS


def test_a_line_of_a_log_is_held_to_the_same_truth(story) -> None:
    intent = story.begin()
    story.say(intent, "failed")
    story.say(intent, "done", reporter="log:sysinv")
    story.see("ABSENT", "after", intent)
    judged = story.end()
    assert worst(judged) is VerdictKind.MATCH
    assert worst(judged, "log:sysinv") is VerdictKind.FALSE_SUCCESS


@pytest.mark.parametrize(
    ("result", "state", "outcome", "verdict"),
    [
        ("done", "COMPLETE", "AS_INTENDED", "MATCH"),
        ("done", "CORRUPT", "FAILED", "FALSE_SUCCESS"),
        ("failed", "COMPLETE", "FAILED", "MATCH"),
        ("failed", "ABSENT", "FAILED", "MATCH"),
        ("done", "UNREADABLE", "UNKNOWN", "UNVERIFIABLE"),
    ],
)
def test_a_pull_is_held_to_what_was_to_be_had(story, result, state, outcome, verdict) -> None:
    story.push(state, result, act="pull")
    judged = story.end()
    assert (judged.outcome, worst(judged)) == (Outcome(outcome), VerdictKind(verdict))


STATES = st.sampled_from([*FALSE_STATES, "UNREADABLE", "COMPLETE"])
RESULTS = st.sampled_from(["done", "failed", "interrupted", None])
PUSHES = st.lists(st.tuples(STATES, RESULTS, st.sampled_from(["", "ABSENT", "COMPLETE"])), max_size=5)


def told(pushes: list[tuple[str, str | None, str]], name: Callable[[int], str]) -> Story:
    story = Story()
    for number, (state, result, before) in enumerate(pushes):
        story.push(state, result, before=before, client=name(number))
    story.add(ScenarioEnded(scenario="made-up"))
    return story


@given(PUSHES)
def test_judging_a_stored_history_gives_the_same(pushes) -> None:
    story = told(pushes, lambda number: f"client{number % 2}")
    stored = [from_json(json.loads(json.dumps(to_json(record)))) for record in story.records]
    assert judge_scenario(stored) == judge_scenario(story.records)


@given(PUSHES)
def test_done_is_never_believed_of_what_is_not_there(pushes) -> None:
    judged = judge_scenario(told(pushes, lambda number: f"client{number}").records)
    for number, (state, result, _) in enumerate(pushes):
        if result == "done" and state in FALSE_STATES:
            assert judged.verdicts[f"client{number}"] is VerdictKind.FALSE_SUCCESS
        if result is None or result == "interrupted":
            assert judged.verdicts[f"client{number}"] is VerdictKind.LOST


@given(PUSHES, st.randoms())
def test_the_order_of_what_is_said_and_seen_of_a_push_does_not_matter(pushes, random) -> None:
    """A log is read after the registry, or before: between intent and end of a push all is one."""
    story = told(pushes, lambda number: f"client{number}")
    shuffled = [
        record for record in story.records if not isinstance(record, Claim | Completion | Observation)
    ]
    rest = [record for record in story.records if isinstance(record, Claim | Completion)]
    random.shuffle(rest)
    end = shuffled.pop()
    seen = [record for record in story.records if isinstance(record, Observation)]
    mixed = judge_scenario([*shuffled, *rest, *seen, end])
    plain = judge_scenario(story.records)
    assert [outcome.outcome for outcome in mixed.outcomes] == [each.outcome for each in plain.outcomes]
    assert {v.reporter: v.kind for v in mixed.judged if v.checker in ("push", "silence")} == {
        v.reporter: v.kind for v in plain.judged if v.checker in ("push", "silence")
    }
