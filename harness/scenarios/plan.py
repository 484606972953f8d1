"""What a run would do that wears cards or cannot be undone: said before, with nothing started or touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.cards.interlock import check
from harness.errors import ConfigurationError, RefusedError
from harness.scenarios.foreseen import Act, Foreseen

if TYPE_CHECKING:
    from harness.images.facts import ImageFacts
    from harness.inventory.model import Card

SCHEMA: Final = "hil-plan/1"
PERMITTED: Final = "permitted"
NOT_APPLICABLE: Final = "NOT_APPLICABLE"
NOT_REACHED: Final = "not reached"
_KINDS: Final = {"user-image": "a user image", "bmc-image": "a BMC image", "pr-image": "a PR image"}


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step that wears a card, or does what cannot be undone.

    ``decision``: ``permitted``, ``NOT_APPLICABLE`` (which ends the scenario), ``REFUSED`` or ``not reached``,
    and ``reason``; ``undecided`` for what a system is given: which cards get it shows while it runs.
    """

    act: Act
    effect: str
    irreversible: tuple[str, ...]
    sha256: str
    size: int
    decision: str
    reason: str = ""

    @property
    def wears(self) -> bool:
        """Whether the card's flash counter goes up by it."""
        return self.decision == PERMITTED

    def to_json(self) -> dict[str, Any]:
        """Return it as `-o json` has it."""
        return {
            "step": "flash" if self.act.way != "system" else "upload to the system",
            "image": self.act.image,
            "sha256": self.sha256,
            "size": self.size,
            "effect": self.effect,
            "irreversible": list(self.irreversible),
            "decision": self.decision,
            "reason": self.reason,
            "sure": self.act.sure,
            "often": self.act.often,
        }


@dataclass(frozen=True, slots=True)
class PlannedScenario:
    """A scenario on a device. ``given``: the state that its card is to be in.

    ``unknown``: what is decided while it runs (:class:`harness.scenarios.foreseen.Foreseen`).
    ``state`` and ``reason``: the run state that is known before, as the lab lacks something or the card is
    not permitted its first step; empty where it may begin.
    """

    name: str
    device: str
    real: bool
    given: Mapping[str, Any]
    steps: tuple[PlannedStep, ...] = ()
    unknown: tuple[str, ...] = ()
    state: str = ""
    reason: str = ""

    @property
    def matters(self) -> bool:
        """Whether it wears a card, or may."""
        return not self.state and bool(self.steps or self.unknown)

    def to_json(self) -> dict[str, Any]:
        """Return it as `-o json` has it."""
        return {
            "scenario": self.name,
            "device": self.device,
            "real": self.real,
            "given": dict(self.given),
            "steps": [step.to_json() for step in self.steps],
            "unknown": list(self.unknown),
            "state": self.state,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class CardWear:
    """What a run costs a card: ``updates`` that are known, and whether there may be ``more``."""

    card: str
    updates: int
    more: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """All scenarios of a run; of a campaign those of one round.

    ``rounds``: how many it has, where that is not one, or decided while it runs.
    """

    lab: str
    scenarios: tuple[PlannedScenario, ...]
    campaign: str = ""
    rounds: str = ""

    @property
    def complete(self) -> bool:
        """Whether nothing is decided only while it runs."""
        rounds_known = not self.rounds or self.rounds.isdecimal()
        return rounds_known and not any(each.unknown for each in self.scenarios if each.matters)

    @property
    def wear(self) -> list[CardWear]:
        """What it costs each card; scenarios of a system without a card of their own are under its name."""
        updates: dict[str, int] = {}
        more: dict[str, bool] = {}
        for scenario in self.scenarios:
            if scenario.matters and scenario.device:
                wearing = [step for step in scenario.steps if step.wears]
                updates[scenario.device] = updates.get(scenario.device, 0) + len(wearing)
                open_end = bool(scenario.unknown) or any(step.act.often for step in wearing)
                more[scenario.device] = more.get(scenario.device, False) or open_end
        return [CardWear(card, count, more[card]) for card, count in updates.items()]

    def to_json(self) -> dict[str, Any]:
        """Return it as `-o json` has it."""
        return {
            "schema": SCHEMA,
            "lab": self.lab,
            "campaign": self.campaign,
            "rounds": self.rounds,
            "complete": self.complete,
            "scenarios": [scenario.to_json() for scenario in self.scenarios],
            "wear": [{"card": w.card, "updates": w.updates, "more": w.more} for w in self.wear],
        }


@dataclass(frozen=True, slots=True)
class Target:
    """The device of a scenario. ``card``: its entry; None where it is a host, or a system."""

    device: str
    card: Card | None
    real: bool
    allowed: frozenset[str]


def planned(
    name: str,
    target: Target,
    given: Mapping[str, Any],
    foreseen: Foreseen,
    facts: Callable[[str], ImageFacts],
) -> PlannedScenario:
    """Return a scenario with its steps judged. :param facts: of the image of a recipe, by its bytes."""
    unknown = list(foreseen.unknown)
    steps: list[PlannedStep] = []
    ended = False
    for act in foreseen.acts:
        try:
            known = facts(act.image)
        except ConfigurationError as error:
            unknown.append(error.message)
            continue
        decision, reason = _decision(act, known, target, len(steps))
        if ended:
            decision, reason = NOT_REACHED, "the scenario ends before it"
        ended = ended or (act.sure and act.way == "flash" and decision == NOT_APPLICABLE)
        steps.append(
            PlannedStep(
                act,
                effect_of(known),
                tuple(sorted(known.irreversible)),
                known.sha256,
                known.size,
                decision,
                reason,
            )
        )
    state = reason = ""
    if steps and not unknown and steps[0].act.sure and steps[0].decision == NOT_APPLICABLE:
        state, reason = NOT_APPLICABLE, steps[0].reason
    named = (name, target.device, target.real, given)
    return PlannedScenario(*named, tuple(steps), tuple(unknown), state, reason)


def effect_of(facts: ImageFacts) -> str:
    """Return what flashing an image does to a card that takes it, in words."""
    if facts.effect == "root-key":
        return f"programs the root entry hash {facts.programs_root} of {facts.section}: cannot be undone"
    if facts.effect == "key-cancellation":
        return f"cancels CSK {facts.cancel_id} of {facts.section}: cannot be undone"
    if facts.effect == "unparsed":
        return f"cannot be told from its bytes ({facts.note.rstrip('.')}): counts as what cannot be undone"
    return f"writes {_KINDS[facts.effect]} ({facts.section})"


def _decision(act: Act, facts: ImageFacts, target: Target, nth: int) -> tuple[str, str]:
    if act.way == "system":
        return "undecided", "which of its cards get it is decided while it runs"
    card = target.card
    if card is None:
        return "undecided", "it is of no card of the inventory"
    permitted = frozenset(card.irreversible) & (
        target.allowed if target.real else frozenset(card.irreversible)
    )
    if act.way == "flash" and (missing := facts.irreversible - permitted):
        return NOT_APPLICABLE, f"{target.device} is not permitted {' and '.join(sorted(missing))}"
    try:
        check(card, facts, target.allowed, target.real)
    except RefusedError as refusal:
        return "REFUSED", refusal.message
    per_run = card.wear.per_run if card.wear else None
    if per_run is not None and nth >= per_run:
        why = f"its budget of {per_run} updates in a run is used up"
        return NOT_APPLICABLE if act.way == "flash" else "REFUSED", why
    return PERMITTED, ""


def told(plan: Plan) -> Iterable[str]:
    """Yield the lines by which a plan is told to people; the same on several devices is told once."""
    worn = [scenario for scenario in plan.scenarios if scenario.matters]
    of = f" of the campaign {plan.campaign}" if plan.campaign else ""
    yield (
        f"PLAN of {len(plan.scenarios)} scenarios{of} on the lab {plan.lab}; nothing was started, "
        f"nothing was touched. {len(worn)} of them wear a card, or may."
    )
    groups: dict[tuple[Any, ...], list[PlannedScenario]] = {}
    for scenario in worn:
        steps = tuple((step.act, step.decision, _same(step, scenario)) for step in scenario.steps)
        groups.setdefault((_bare(scenario), steps, scenario.unknown), []).append(scenario)
    for same in groups.values():
        yield ""
        yield from _told_scenario(same)
    yield from _told_kept(plan)
    yield ""
    for card in plan.wear:
        updates = f"{card.updates} update{'' if card.updates == 1 else 's'}"
        rest = ", and what is decided while it runs" if card.more else " at most"
        yield f"WEAR {card.card}: {updates}{rest}"
    if plan.rounds not in ("", "1"):
        yield f"This is one round; rounds of the campaign: {plan.rounds}."
    if any(scenario.matters and scenario.given and scenario.real for scenario in plan.scenarios):
        yield "No card was read: where one is not in the state that is given, the scenario does not apply."
    if not plan.complete:
        yield "This list is NOT complete: what is decided while a scenario runs has a question mark."


def _told_scenario(same: Sequence[PlannedScenario]) -> Iterable[str]:
    first = same[0]
    state = ", ".join(f"{name} {value}" for name, value in first.given.items())
    yield _bare(first) + (f"   (card given: {state})" if state else "")
    devices = [scenario.device for scenario in same if scenario.device]
    if devices:
        yield f"  on {', '.join(devices)}"
    for step in first.steps:
        how = "" if step.act.sure else " perhaps,"
        how += " maybe more than once," if step.act.often else ""
        what = "flash" if step.act.way != "system" else "upload to the system"
        yield f"  {what} {step.act.image}:{how} {step.effect}"
        if step.irreversible or step.decision != PERMITTED:
            yield f"    {step.decision}{f': {step.reason}' if step.reason else ''}"
    for why in first.unknown:
        yield f"  ? {why}"


def _told_kept(plan: Plan) -> Iterable[str]:
    """Yield what is known to give no result, by reason."""
    counts = Counter((scenario.state, scenario.reason) for scenario in plan.scenarios if scenario.state)
    if counts:
        yield ""
    for (state, reason), count in counts.items():
        yield f"{state} ({count}) {reason}"


def _bare(scenario: PlannedScenario) -> str:
    """Return the scenario's name without its device."""
    device = scenario.device
    for part in (f"[{device}]", f"-{device}]", f"[{device}-", f"-{device}-"):
        if device and part in scenario.name:
            keeps = {"[": "[", "-": "-"}
            head, _, tail = scenario.name.partition(part)
            inner = "]" if part.startswith("-") and part.endswith("]") else ""
            middle = keeps[part[0]] if part.endswith("-") else inner
            return f"{head}{middle}{tail}"
    return scenario.name


def _same(step: PlannedStep, scenario: PlannedScenario) -> str:
    return step.reason.replace(scenario.device, "") if scenario.device else step.reason
