"""Is what a system's VIM says of its own firmware strategy true of its hosts and their cards?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from harness.judgement.checkers.holding import AFTER_RESET, holding_of
from harness.judgement.checkers.standing import status_of
from harness.judgement.grouping import field_of, listed, word
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim
from harness.judgement.system_story import Look, SystemStory
from harness.judgement.values import Unknown, Value

REPORTER: Final = "vim-strategy"
#: Lab seconds within which the VIM knows that the update of a host is over: it asks every 60 s (section 5.5),
#: and may have asked just before.
KNOWN_SECONDS: Final = 120.0
_AT_WORK: Final = ("wait", "inprogress")
_FAILURES: Final = ("failed", "timed-out")


class _Update(NamedTuple):
    """How the update of some hosts stands: ``over``; and whether all was ``written`` that was owed."""

    over: bool
    written: Value[bool]
    truth: str
    records: tuple[int, ...]


def check_vim_strategy(story: SystemStory) -> Iterator[Verdict]:
    """Yield a verdict on each update of hosts of the VIM's strategy, while it lasts, and where it has ended.

    How it ended is judged in the first look that shows so: later ones may show what came after it.
    """
    since: dict[str, float] = {}
    ended: set[tuple[str, str, str]] = set()
    for look in story.whole_looks:
        for claim in look.said["vim-strategy"]:
            for step in _updates(claim):
                hosts, result = listed(step, "hosts"), word(step, "result")
                name = ", ".join(hosts)
                key = word(claim.statement, "uuid"), name, result
                update = _update_of(story, look, hosts)
                if not (update.over and result in _AT_WORK):
                    since.pop(name, None)
                if result in _AT_WORK:
                    began = since.setdefault(name, look.moment) if update.over else look.moment
                    yield _lasting(claim, name, update, look.moment - began)
                elif key not in ended and result in ("success", *_FAILURES):
                    ended.add(key)
                    yield _over(claim, name, step, update)


def _updates(claim: Claim) -> list[Mapping[str, Any]]:
    told = claim.statement.get("updates")
    return [step for step in told if isinstance(step, Mapping)] if isinstance(told, (list, tuple)) else []


def _lasting(claim: Claim, name: str, update: _Update, lasts: float) -> Verdict:
    """The VIM waits for the update of hosts, and that is ``over`` for so many lab seconds."""
    stale = update.over and lasts > KNOWN_SECONDS
    why = f"it is over for {lasts:.0f} s, and the VIM asks every 60 s; " if stale else ""
    kind = VerdictKind.STALE if stale else VerdictKind.MATCH
    return _verdict(kind, claim, f"the update of {name} goes on", why + update.truth, update)


def _over(claim: Claim, name: str, step: Mapping[str, Any], update: _Update) -> Verdict:
    reason = word(step, "reason")
    said = f"the update of {name} is {word(step, 'result')}" + (f" ({reason})" if reason else "")
    good = word(step, "result") == "success"
    if isinstance(update.written, Unknown):
        kind = VerdictKind.UNVERIFIABLE
    elif update.written is good:
        kind = VerdictKind.MATCH
    else:
        kind = VerdictKind.FALSE_SUCCESS if good else VerdictKind.FALSE_FAILURE
    return _verdict(kind, claim, said, update.truth, update)


def _verdict(kind: VerdictKind, claim: Claim, claimed: str, truth: str, update: _Update) -> Verdict:
    return Verdict(
        kind,
        "vim-strategy",
        REPORTER,
        claim.subject,
        f"{claimed}; the strategy is {word(claim.statement, 'state')}",
        truth,
        "the states of its devices in the same look, and its cards",
        claim.intent,
        (claim.seq, *update.records),
    )


def _update_of(story: SystemStory, look: Look, hosts: list[str]) -> _Update:
    """Return how the update of some hosts stands, by the states of their images and by their cards."""
    states = [state for host in hosts for state in look.states_of(host)]
    statuses = [word(state.statement, "status") for state in states]
    told = [f"{_image(story, state)} is {status}" for state, status in zip(states, statuses, strict=True)]
    truth = "; ".join(told) or "no image of its devices has a state"
    over = "in-progress" not in statuses and ("failed" in statuses or set(statuses) == {"completed"})
    written: Value[bool] = Unknown("no image of its devices has a state")
    if states and set(statuses) != {"completed"}:
        written = False
    elif states:
        found = [_is_written(story, look, state) for state in states]
        written = next((each for each in found if each is False), True)
        written = next((each for each in found if written and isinstance(each, Unknown)), written)
        truth += (
            f"; written to the cards: {'yes' if written is True else 'no' if written is False else written}"
        )
    return _Update(over, written, truth, tuple(state.seq for state in states))


def _image(story: SystemStory, state: Claim) -> str:
    return story.image_name(word(state.statement, "image_uuid"))


def _is_written(story: SystemStory, look: Look, state: Claim) -> Value[bool]:
    """Return whether a card shows that an image was written to it: it holds it, or, where that shows only
    after a reset, its flash counter has risen since the image was not said to be completed."""
    image, said = word(state.statement, "image_uuid"), state.statement
    card = look.card_at(said.get("hostname"), said.get("address"))
    if not card:
        return Unknown("its card was not read")
    facts, seen = story.facts(image), look.cards[card]
    held = holding_of(facts, seen)
    if held.holds is not False or word(facts, "effect") not in AFTER_RESET:
        return held.holds
    before = next(
        (
            earlier.cards[card]
            for earlier in reversed(story.whole_looks)
            if earlier.seq < look.seq
            and card in earlier.cards
            and status_of(earlier, card, image) != "completed"
        ),
        None,
    )
    was, count = field_of(before, "flash_count"), field_of(seen, "flash_count")
    if isinstance(was, Unknown) or isinstance(count, Unknown):
        return Unknown("its flash counter was not read before and after")
    return bool(count > was)
