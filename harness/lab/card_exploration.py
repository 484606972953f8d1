"""Explores cards: Hypothesis does to a card and to its model what it thinks of, until they disagree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.emulator.card import CardProfile
from harness.errors import BlockedError
from harness.lab.defective import OF_EQUIPMENT
from harness.lab.explored_card import Disagreement, ExploredCard, Step
from harness.scenarios.card_model import IMAGES

if TYPE_CHECKING:
    from harness.images.recipes import Recipe

#: Steps of one history; after so many of them a new card is taken.
_HISTORY: Final = 100
#: Histories between two looks at the clock.
_CHUNK: Final = 10
_PHASES: Final = ("preparing", "transferring", "authenticating", "copying", "keys")
_EARLY: Final = ("preparing", "transferring")


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exploration came to. ``steps``: that were made; ``flashes``: updates among them.

    ``counterexample``: the fewest steps after which card and model disagree, and ``reason`` how; empty
    where they never did. ``probes``: updates that show, after it, which keys hold.
    """

    steps: int
    flashes: int
    seconds: float
    seed: int
    counterexample: tuple[Step, ...] = ()
    reason: str = ""
    probes: tuple[Step, ...] = ()


@dataclass(slots=True)
class _Tally:
    """What is counted across the histories. ``last``: the steps of the history that failed last."""

    steps: int = 0
    flashes: int = 0
    last: tuple[Step, ...] = ()


def explore(
    recipes: Mapping[str, Recipe],
    *,
    steps: int,
    seconds: float,
    wear: int,
    seed: int,
    defects: Sequence[str] = (),
    told: Callable[[int], None] = lambda steps: None,
) -> Explored:
    """Explore until one of the budgets is used up, or card and model disagree.

    :param steps: at most about so many. :param seconds: at most about so long. :param wear: updates.
    :param defects: known ones that the card has. :param told: how many steps were made.
    :raises BlockedError: Hypothesis is not installed. :raises ConfigurationError: there is no such defect.
    """
    from harness.images.recipes import build

    _needed()
    images = {name: build(recipes[name]) for name in IMAGES}
    hashes = {name: recipes[f"{name}/csk0"].root_entry_hash() for name in ("A", "B")}
    roots = {name: value for name, value in hashes.items() if value is not None}
    tally, profile, began = _Tally(), profile_with(defects), time.monotonic()

    def fresh() -> ExploredCard:
        return ExploredCard(recipes, images, roots, profile)

    machine = _machine(fresh, tally)
    chunk = 0
    while tally.steps < steps and tally.flashes < wear and time.monotonic() - began < seconds:
        reason = _run(machine, seed + chunk, min(_CHUNK, -(-(steps - tally.steps) // _HISTORY)))
        chunk += 1
        told(tally.steps)
        if reason:
            fewest, reason = shrunk(tally.last, reason, fresh)
            fewest, probes = _with_codes(fewest, fresh)
            taken = time.monotonic() - began
            return Explored(tally.steps, tally.flashes, taken, seed, fewest, reason, probes)
    return Explored(tally.steps, tally.flashes, time.monotonic() - began, seed)


def profile_with(defects: Sequence[str]) -> CardProfile:
    """Return the profile of a card that has known defects.

    :raises ConfigurationError: there is no such defect, or it is not one of a card.
    """
    from harness.inventory.entries import unknown_name

    cards = {name: each.switch for name, each in OF_EQUIPMENT.items() if each.kind == "card"}
    profile: dict[str, list[str]] = {}
    for name in defects:
        if name not in cards:
            raise unknown_name("known defect", name, list(cards), "cards (`hil defects list --kind card`)")
        for key, value in cards[name].items():
            profile.setdefault(key, []).append(value)
    return CardProfile.from_mapping(profile)


def shrunk(
    steps: tuple[Step, ...], reason: str, fresh: Callable[[], ExploredCard]
) -> tuple[tuple[Step, ...], str]:
    """Return the fewest of ``steps`` after which card and model still disagree, and how they do then.

    No step of what is returned can be left out, and no disturbance of an update.
    """
    tried = True
    while tried:
        tried = False
        for fewer in _simpler(steps):
            if found := _replayed(fewer, fresh):
                reason, count = found
                steps, tried = fewer[:count], True
                break
    return steps, reason


def _with_codes(
    steps: tuple[Step, ...], fresh: Callable[[], ExploredCard]
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return ``steps`` with what the model says of each, now that others are gone, and what shows keys."""
    card = fresh()
    try:
        with suppress(Disagreement):
            for step in steps:
                card.do(step)
        model = card.model
        names = ("unsigned", f"{model.root}/csk0") if model.root_in_force else ()
        return tuple(card.steps), tuple(Step("flash", name, code=model.code(name)) for name in names)
    finally:
        card.close()


def _simpler(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Yield what is one step shorter, then what has one step replaced by a plain one."""
    for at in range(len(steps)):
        yield steps[:at] + steps[at + 1 :]
    for at, step in enumerate(steps):
        if step.image and step.name != "flash":
            yield (*steps[:at], Step("flash", step.image), *steps[at + 1 :])
        if step.name in ("cut", "power-cycle"):
            yield (*steps[:at], Step("reset", word="bmc_user"), *steps[at + 1 :])


def _replayed(steps: tuple[Step, ...], fresh: Callable[[], ExploredCard]) -> tuple[str, int] | None:
    """Do ``steps`` to a new card; return how card and model disagree, and after how many; None: never.

    A step that a card without those before it does not take at all makes it no counterexample.
    """
    card = fresh()
    try:
        for count, step in enumerate(steps, start=1):
            try:
                card.do(step)
            except Disagreement as found:
                return str(found.args[0]), count
            except OSError:
                return None
        return None
    finally:
        card.close()


def _run(machine: Any, seed: int, histories: int) -> str:
    """Run so many histories; return how card and model came to disagree; empty where they never did."""
    import hypothesis
    from hypothesis.stateful import run_state_machine_as_test

    quiet = hypothesis.settings(
        max_examples=histories,
        stateful_step_count=_HISTORY,
        deadline=None,
        database=None,
        verbosity=hypothesis.Verbosity.quiet,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],  # the steps themselves are shrunk: see `shrunk`
        report_multiple_bugs=False,
        print_blob=False,
    )
    try:
        run_state_machine_as_test(hypothesis.seed(seed)(machine), settings=quiet)
    except Disagreement as found:
        return str(found.args[0])
    return ""


def _needed() -> None:
    """:raises BlockedError: Hypothesis is not installed."""
    try:
        import hypothesis  # noqa: F401
    except ImportError:
        raise BlockedError(
            "Exploration needs Hypothesis, which is not installed.", hint="pip install 'hypothesis>=6.130'"
        ) from None


def _machine(fresh: Callable[[], ExploredCard], tally: _Tally) -> Any:
    """Return the class of the state machine."""
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, rule

    images, phases, early = map(st.sampled_from, (IMAGES, _PHASES, _EARLY))

    class Cards(RuleBasedStateMachine):
        """What can be done to a card."""

        def __init__(self) -> None:
            super().__init__()
            self.card = fresh()

        def teardown(self) -> None:
            self.card.close()

        def did(self, act: Callable[..., None], *arguments: Any) -> None:
            tally.steps, before = tally.steps + 1, self.card.model.count
            try:
                act(*arguments)
            except Disagreement:
                tally.last = tuple(self.card.steps)
                raise
            finally:
                tally.flashes += self.card.model.count - before

        @rule(image=images)
        def flash(self, image: str) -> None:
            self.did(self.card.flash, image)

        @rule(image=images, other=images)
        def second_updater(self, image: str, other: str) -> None:
            self.did(self.card.second_updater, image, other)

        @rule(image=images, phase=phases)
        def power_cut(self, image: str, phase: str) -> None:
            self.did(self.card.power_cut, image, phase)

        @rule(image=images, phase=early)
        def cancel(self, image: str, phase: str) -> None:
            self.did(self.card.cancel, image, phase)

        @rule(image=images, phase=phases)
        def host_reboot(self, image: str, phase: str) -> None:
            self.did(self.card.host_reboot, image, phase)

        @rule(word=st.sampled_from(("bmc_user", "bmc_factory")))
        def reset(self, word: str) -> None:
            self.did(self.card.reset, word)

        @rule()
        def power_cycle(self) -> None:
            self.did(self.card.power_cycle)

        @rule()
        def move(self) -> None:
            self.did(self.card.move)

    return Cards
