"""Are the states of a firmware strategy and of its steps true of what happened on the cards?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from harness.judgement.checkers.admission import promised_on
from harness.judgement.checkers.holding import Holding
from harness.judgement.checkers.resets import last_seen
from harness.judgement.checkers.standing import by_part, holding_in
from harness.judgement.checkers.sync_status import FORCED_SECONDS, OVER
from harness.judgement.cloud_story import CloudCard, CloudLook, CloudStory
from harness.judgement.grouping import word
from harness.judgement.model import Outcome, OutcomeOf, Verdict, VerdictKind, worst_outcome
from harness.judgement.records import Claim, Subject
from harness.judgement.values import Unknown, Value

STEP: Final = "dcmanager-step"
STRATEGY: Final = "dcmanager-strategy"
#: Lab seconds after which a step that does not move is given up: 60 polls of 60 s, and one (section 5.5).
STEP_SECONDS: Final = 3660.0
#: Lab seconds after which a step must be over once what it waits for has failed: a poll of its VIM and one of
#: its own, 60 s each (section 5.5), and one more of both for what the VIM does then.
FAILED_SECONDS: Final = 240.0
#: States in which nothing is being done yet, or not any more.
_IDLE: Final = ("initial", *OVER)


class Due(NamedTuple):
    """An image that a strategy owes to a card: what is promised of it, why, and whether the card holds it."""

    promise: Value[str]
    why: str
    held: Holding


class _Clock:
    """Since when what is said of steps and the strategy is the same."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[object, float]] = {}

    def lasts(self, what: str, said: object, now: float) -> float:
        """Take what is said now of ``what``; return for how many lab seconds it has been so."""
        before, since = self._since.get(what, (None, now))
        since = since if before == said else now
        self._since[what] = said, since
        return now - since


def check_orchestration(cloud: CloudStory, *, ended: bool) -> Iterator[Verdict]:
    """Yield a verdict on each step and on the strategy in each look.

    :param ended: whether the scenario came to its end, so that silence means something.
    """
    clock = _Clock()
    for look in cloud.looks:
        now = look.own.moment
        strategy = next(iter(look.own.said["strategy"]), None)
        state = word(strategy.statement, "state") if strategy else ""
        steps = look.said("step")
        last = ended and look is cloud.looks[-1]
        due = {name: due_of(cloud, look, name) for name in steps}
        for name, claim in steps.items():
            said = claim.statement
            lasts = clock.lasts(name, (said.get("state"), said.get("details")), now)
            failed = _has_failed(look, name)
            failed_for = clock.lasts(f"{name} failed", (said.get("state"), failed), now) if failed else 0.0
            yield _of_step(claim, name, state, due[name], (lasts, failed_for), last=last)
        if strategy is not None:
            over = all(word(claim.statement, "state") in OVER for claim in steps.values())
            lasts = clock.lasts("", (state, over), now)
            yield _of_strategy(strategy, state, steps, due, lasts if over else 0.0)


def _has_failed(look: CloudLook, subcloud: str) -> bool:
    """Whether a subcloud says that an image failed on a card, and that none is still to be written."""
    own = look.subclouds.get(subcloud)
    statuses = {word(claim.statement, "status") for claim in own.said["state"]} if own else set()
    return "failed" in statuses and not statuses & {"pending", "in-progress"}


def strategy_outcomes(cloud: CloudStory, intent: int) -> list[OutcomeOf]:
    """Return how a strategy that was applied turned out for each subcloud of it: each image that it owed to a
    card is there, or was refused, as documents promise."""
    after = [look for look in cloud.looks if look.own.seq > intent]
    look = next((each for each in after if _is_over(each)), None)
    if look is None:
        subject = Subject("record", f"{cloud.controller.name}/strategy/firmware")
        why = "it was not over when it was last looked at" if after else "nothing was looked at after it"
        return [OutcomeOf(Outcome.UNKNOWN, intent, subject, why, (intent,))]
    found = []
    for name, claim in look.said("step").items():
        told = [_turned_out(each) for each in due_of(cloud, look, name)]
        worst = worst_outcome([outcome for outcome, _, _ in told]) if told else Outcome.AS_INTENDED
        outcome, reason, records = next(
            (each for each in told if each[0] is worst), (worst, "nothing was owed to it", ())
        )
        found.append(OutcomeOf(outcome, intent, claim.subject, reason, (intent, claim.seq, *records)))
    return found


def due_of(cloud: CloudStory, look: CloudLook, subcloud: str) -> list[Due]:
    """Return what the last strategy before a look owes to the cards of a subcloud.

    Of functional images for one part of a card it is the one that was applied last; where that is not known,
    any of them that the card holds. What was applied after the strategy is for the next one.
    """
    until = look.strategy or look.own.seq
    found = []
    for card in look.cards.get(subcloud, ()):
        rows = [
            row
            for row in look.listed_for(card)
            if not cloud.applied_before(uuid := word(row.statement, "uuid"), look.own.seq)
            or cloud.applied_before(uuid, until)
        ]
        before = last_seen(cloud.subclouds[subcloud], card.name, until) or card.seen
        wanted = list(_wanted(cloud, look, card, rows, until))
        facts = {row.seq: cloud.facts(word(row.statement, "uuid")) for row in wanted}
        programmed = next(filter(None, (word(each, "programs_root") for each in facts.values())), "")
        for row in wanted:
            promise, why = promised_on(facts[row.seq], before, programmed)
            held = holding_in(cloud, look, card, word(row.statement, "uuid"))
            found.append(Due(promise, f"{cloud.name_of(row)} on {card.name}: {why}", held))
    if not look.cards.get(subcloud) or look.unread[subcloud]:
        unread = Unknown(f"a card of {subcloud} was not read")
        found.append(Due(unread, str(unread), Holding(unread, "what it holds is not known", "nothing", ())))
    return found


def _wanted(
    cloud: CloudStory, look: CloudLook, card: CloudCard, rows: Iterable[Claim], until: int
) -> Iterator[Claim]:
    for part, rivals in by_part(cloud, rows).items():
        if part is None or len(rivals) == 1:
            yield from rivals
            continue
        order = {cloud.applied_before(word(row.statement, "uuid"), until): row for row in rivals}
        if len(order) == len(rivals) and 0 not in order:
            yield order[max(order)]
            continue
        held = (r for r in rivals if holding_in(cloud, look, card, word(r.statement, "uuid")).holds is True)
        yield next(held, rivals[-1])


def _turned_out(due: Due) -> tuple[Outcome, str, tuple[int, ...]]:
    reason = f"{due.why}; {due.held.truth}"
    if isinstance(due.held.holds, Unknown) or (isinstance(due.promise, Unknown) and not due.held.holds):
        return Outcome.UNKNOWN, reason, due.held.records
    if due.promise == "unchanged":
        return (Outcome.BREACH if due.held.holds else Outcome.AS_INTENDED), reason, due.held.records
    return (Outcome.AS_INTENDED if due.held.holds else Outcome.FAILED), reason, due.held.records


def _is_over(look: CloudLook) -> bool:
    states = [word(claim.statement, "state") for claim in look.own.said["step"]]
    return bool(states) and all(state in OVER for state in states)


def _of_step(
    claim: Claim, name: str, strategy: str, due: list[Due], times: tuple[float, float], *, last: bool
) -> Verdict:
    """``times``: for how many lab seconds it says the same, and its subcloud that an image has failed."""
    state = word(claim.statement, "state")
    missing = [each for each in due if each.held.holds is False]
    unknown = [each for each in due if isinstance(each.held.holds, Unknown)]
    truth = "; ".join(f"{each.why}; {each.held.truth}" for each in (missing or unknown or due))
    kind = VerdictKind.MATCH
    if state == "complete":
        kind = VerdictKind.FALSE_SUCCESS if missing else _unless(unknown)
    elif state in ("failed", "aborted"):
        if due and not missing:
            kind = VerdictKind.FALSE_FAILURE if state == "failed" and not unknown else _unless(unknown)
    elif strategy in OVER:
        kind, truth = VerdictKind.CONTRADICTION, f"the strategy is {strategy}; {truth}"
    elif state not in _IDLE and times[1] > FAILED_SECONDS:
        kind, truth = (
            VerdictKind.STALE,
            f"for {times[1]:.0f} s an image has failed there; {truth}",
        )
    elif state not in _IDLE and times[0] > STEP_SECONDS:
        kind = VerdictKind.LOST if last else VerdictKind.STALE
        truth = f"for {times[0]:.0f} s, and a step is given up after {STEP_SECONDS:.0f} s; {truth}"
    details = word(claim.statement, "details")
    said = f"the step of {name} is {state}" + (f" ({details})" if details else "")
    return _told(kind, STEP, claim, said, truth or "no image is owed to it", due)


def _unless(unknown: list[Due]) -> VerdictKind:
    return VerdictKind.UNVERIFIABLE if unknown else VerdictKind.MATCH


def _of_strategy(
    claim: Claim, state: str, steps: dict[str, Claim], due: dict[str, list[Due]], ready: float
) -> Verdict:
    states = {name: word(step.statement, "state") for name, step in steps.items()}
    missing = sorted({n for n, dues in due.items() for each in dues if each.held.holds is False})
    unknown = [each for dues in due.values() for each in dues if isinstance(each.held.holds, Unknown)]
    all_due = [each for dues in due.values() for each in dues]
    truth = ", ".join(f"{name} {step}" for name, step in sorted(states.items())) or "it has no step"
    truth = f"its steps: {truth}" + (f"; {', '.join(missing)} did not get what it owed" if missing else "")
    kind = VerdictKind.MATCH
    if state == "complete":
        if missing:
            kind = VerdictKind.FALSE_SUCCESS
        elif any(step != "complete" for step in states.values()):
            kind = VerdictKind.CONTRADICTION
        else:
            kind = _unless(unknown)
    elif state == "failed" and not any(step == "failed" for step in states.values()):
        kind = (
            VerdictKind.FALSE_FAILURE if states and not missing and not unknown else VerdictKind.CONTRADICTION
        )
    elif state not in _IDLE and ready > FORCED_SECONDS:
        kind, truth = VerdictKind.STALE, f"every step is over for {ready:.0f} s; {truth}"
    return _told(kind, STRATEGY, claim, f"the firmware strategy is {state}", truth, all_due)


def _told(kind: VerdictKind, reporter: str, claim: Claim, said: str, truth: str, due: list[Due]) -> Verdict:
    how_read = ", ".join(dict.fromkeys(each.held.how_read for each in due)) or "the steps of the same look"
    records: tuple[Any, ...] = tuple(seq for each in due for seq in each.held.records)
    return Verdict(
        kind, "orchestration", reporter, claim.subject, said, truth, how_read, None, (claim.seq, *records)
    )
