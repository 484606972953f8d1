"""The engine of exploration: Hypothesis draws steps, a subject takes them, until its model disagrees."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, Final, Generic, Protocol, TypeVar

from harness.errors import BlockedError, HarnessError

#: Histories between two looks at the budgets.
_CHUNK: Final = 25
#: Bytes by which one step is drawn: one for its kind, two for which of that kind.
_DRAWN: Final = 3
#: Of the bytes that Hypothesis knows as common mistakes, and now and then draws, none are so many.
_LONGER_THAN_CONSTANTS: Final = 51


class Disagreement(AssertionError):
    """The subject is not as its model says."""


class Step(Protocol):
    """One thing that can be done. ``str`` tells it to people."""

    @property
    def wear(self) -> int:
        """The updates of a card that it costs at most."""


S = TypeVar("S", bound=Step)


class Subject(Protocol[S]):
    """What is explored, beside its model, from one beginning on.

    ``steps``: what was done to it so far; a step that makes no sense then is passed over, and is not among
    them. ``updates``: how many updates of cards have begun.
    """

    steps: list[S]

    @property
    def updates(self) -> int:
        """Updates of cards so far."""

    def do(self, step: S) -> None:
        """Take a step. :raises Disagreement: afterwards it is not as the model says."""

    def close(self) -> None:
        """End it."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What an exploration may use up; none is exceeded. ``wear``: updates of cards."""

    steps: int
    seconds: float
    wear: int

    def shares(self, jobs: int) -> list[Budget]:
        """Return the budgets of so many explorations at once: fewer where one would have none of it.

        Their steps and wear are parts of these; their time runs at once.
        """
        count = max(1, min(jobs, self.steps, self.wear))
        return [
            replace(self, steps=(self.steps + job) // count, wear=(self.wear + job) // count)
            for job in reversed(range(count))
        ]


@dataclass(frozen=True, slots=True)
class Explored(Generic[S]):
    """What an exploration came to. ``steps``: that were made; ``updates``: of cards among them.

    ``seed``: of what was found, if anything was. ``counterexample``: the steps after which subject and model
    disagree, and ``reason`` how; empty where they never did. ``interrupted``: before it was over, or before
    the counterexample was shrunk. ``jobs``: explorations at once.
    """

    steps: int
    updates: int
    seconds: float
    seed: int
    counterexample: tuple[S, ...] = ()
    reason: str = ""
    interrupted: bool = False
    jobs: int = 1


class Interrupted(KeyboardInterrupt):
    """An exploration was interrupted. ``found``: what it came to until then."""

    def __init__(self, found: Explored[Any]) -> None:
        super().__init__()
        self.found = found


class _Over(BaseException):
    """Ends the run of Hypothesis: it takes no other exception for a finding, and would draw on."""


@dataclass(slots=True)
class _Tally(Generic[S]):
    """What was used up across the histories, and what ended them."""

    budget: Budget
    seed: int
    told: Callable[[int], None]
    began: float = field(default_factory=time.monotonic)
    steps: int = 0
    updates: int = 0
    found: tuple[S, ...] = ()
    reason: str = ""
    error: HarnessError | None = None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def over(self) -> bool:
        """Whether nothing more is to be done."""
        return bool(
            self.reason
            or self.error is not None
            or self.steps >= self.budget.steps
            or self.updates >= self.budget.wear
            or self.seconds >= self.budget.seconds
        )

    def explored(self, *, interrupted: bool = False) -> Explored[S]:
        """Return what it has come to."""
        return Explored(
            self.steps, self.updates, self.seconds, self.seed, self.found, self.reason, interrupted
        )

    def allows(self, step: S) -> bool:
        return self.updates + step.wear <= self.budget.wear

    def take(self, subject: Subject[S], step: S) -> None:
        """Have a subject take a step, and count it."""
        steps, updates = len(subject.steps), subject.updates
        try:
            subject.do(step)
        except Disagreement as found:
            self.found, self.reason = tuple(subject.steps), str(found)
        finally:
            self.steps += len(subject.steps) - steps
            self.updates += subject.updates - updates


@dataclass(frozen=True)
class Explorable(Generic[S]):
    """Something to be explored.

    ``fresh``: makes it at its beginning; ``sound``: the same without any defect, None where there is no such.
    ``rules``, ``length``, ``burst``, ``all_kinds``: as :func:`explore` has them; ``simpler``: as
    :func:`shrunk` has it. ``given``: what a scenario about it says there is. ``wears``: it is real, so that
    nothing is tried twice.
    """

    fresh: Callable[[], Any]
    sound: Callable[[], Any] | None
    rules: Sequence[Sequence[S]]
    length: int
    given: Mapping[str, Any] = field(default_factory=dict)
    burst: int = 5
    all_kinds: bool = True
    simpler: Callable[[tuple[S, ...]], Iterator[tuple[S, ...]]] = lambda steps: iter(())
    wears: bool = False

    def explored(
        self, budget: Budget, *, seed: int, told: Callable[[int], None] = lambda steps: None
    ) -> Explored[S]:
        """Explore it. The rest as of :func:`explore`."""
        return explore(
            self.fresh,
            self.rules,
            budget,
            seed=seed,
            length=self.length,
            burst=self.burst,
            all_kinds=self.all_kinds,
            told=told,
        )

    def shrunk(self, found: Explored[S]) -> Explored[S]:
        """Return what was found, if anything was, with the fewest steps. :raises Interrupted: by Ctrl-C."""
        return shrunk(found, self.fresh, self.simpler) if found.reason and not self.wears else found


def explore(
    fresh: Callable[[], Subject[S]],
    rules: Sequence[Sequence[S]],
    budget: Budget,
    *,
    seed: int,
    length: int = 100,
    burst: int = 10,
    all_kinds: bool = False,
    told: Callable[[int], None] = lambda steps: None,
) -> Explored[S]:
    """Explore until one of the budgets is used up, or a subject disagrees with its model.

    :param fresh: makes a subject at its beginning. :param rules: kinds of steps, which are drawn evenly; of
        each kind the steps, which are too.
    :param length: steps of one history; after so many a new subject is made. :param burst: steps that are
        drawn at once: the fewer, the longer Hypothesis takes.
    :param all_kinds: in every history; else some are left out of each, so that others follow upon each other
        more often, which is worth it where there are many histories.
    :param told: how many steps were made. :raises BlockedError: Hypothesis is not installed.
    :raises HarnessError: as the subject does. :raises Interrupted: by Ctrl-C.
    """
    _needed()
    tally: _Tally[S] = _Tally(budget, seed, told)
    machine, chunk = _machine(fresh, rules, tally, burst, all_kinds=all_kinds), 0
    try:
        while not tally.over:
            before = tally.steps, tally.updates
            with suppress(_Over), _ended_as_told():
                _run(machine, seed + chunk, max(1, length // burst))
            chunk += 1
            free = any(step.wear == 0 for rule in rules for step in rule)
            if before == (tally.steps, tally.updates) and not free:
                break  # what is left of the wear is enough for none of the steps
    except KeyboardInterrupt:
        raise Interrupted(tally.explored(interrupted=True)) from None
    if tally.error is not None:
        raise tally.error
    return tally.explored()


def shrunk(
    found: Explored[S],
    fresh: Callable[[], Subject[S]],
    simpler: Callable[[tuple[S, ...]], Iterator[tuple[S, ...]]] = lambda steps: iter(()),
    *,
    seconds: float = 60.0,
) -> Explored[S]:
    """Return what was found with the fewest steps after which subject and model still disagree.

    No step of it can be left out, unless the time did not allow to try it.

    :param simpler: other sequences to be tried, not longer ones. :param seconds: at most about so long.
    :raises Interrupted: by Ctrl-C; with the fewest until then.
    """
    ends, tried = time.monotonic() + seconds, True
    try:
        while tried:
            tried = False
            for fewer in (*_shorter(found.counterexample), *simpler(found.counterexample)):
                if time.monotonic() > ends:
                    return found
                if less := replayed(fewer, fresh):
                    found = replace(found, counterexample=less[0], reason=less[1])
                    tried = True
                    break
    except KeyboardInterrupt:
        raise Interrupted(replace(found, interrupted=True)) from None
    return found


def replayed(steps: Sequence[S], fresh: Callable[[], Subject[S]]) -> tuple[tuple[S, ...], str] | None:
    """Do ``steps`` to a new subject; return those until it disagrees with its model, and how; None: never.

    A step that a subject does not take at all without those before it makes no counterexample.
    """
    subject = fresh()
    try:
        for step in steps:
            try:
                subject.do(step)
            except Disagreement as found:
                return tuple(subject.steps), str(found)
            except OSError:
                return None
        return None
    finally:
        subject.close()


def _shorter(steps: tuple[S, ...]) -> Iterator[tuple[S, ...]]:
    """Yield ``steps`` without a part of them, long parts first."""
    length = len(steps) // 2
    while length:
        for at in range(len(steps) - length, -1, -length):
            if length < len(steps):
                yield steps[:at] + steps[at + length :]
        length //= 2


def _needed() -> None:
    """:raises BlockedError: Hypothesis is not installed."""
    try:
        import hypothesis  # noqa: F401
    except ImportError:
        raise BlockedError(
            "Exploration needs Hypothesis, which is not installed.", hint="pip install 'hypothesis>=6.130'"
        ) from None


@contextmanager
def _ended_as_told() -> Iterator[None]:
    """Raise what has ended Hypothesis, which may complain of that: what it drew was shorter than before."""
    from hypothesis.errors import HypothesisException

    try:
        yield
    except HypothesisException as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, _Over | KeyboardInterrupt):
            cause = cause.__context__
        raise cause or error from None


def _run(machine: Any, seed: int, bursts: int) -> None:
    """Run some histories of so many bursts."""
    import hypothesis
    from hypothesis.stateful import run_state_machine_as_test

    quiet = hypothesis.settings(
        max_examples=_CHUNK,
        stateful_step_count=bursts,
        deadline=None,
        database=None,
        verbosity=hypothesis.Verbosity.quiet,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],  # the steps themselves are shrunk: see `shrunk`
        print_blob=False,
    )
    with _no_constants_of_code():
        run_state_machine_as_test(hypothesis.seed(seed)(machine), settings=quiet)


@contextmanager
def _no_constants_of_code() -> Iterator[None]:
    """Keep Hypothesis from drawing what stands in the code that is loaded: a seed would decide otherwise in
    each process. It has no setting for that; where a version has not what is replaced here, it draws it."""
    from unittest.mock import patch

    from hypothesis.internal.conjecture import providers
    from hypothesis.internal.constants_ast import Constants

    with ExitStack() as replaced:
        if hasattr(providers, "_get_local_constants"):
            replaced.enter_context(patch.object(providers, "_get_local_constants", Constants))
            # What was drawn from before, such as by a test of this process, is kept here.
            empty = type(providers.CONSTANTS_CACHE)(1024)
            replaced.enter_context(patch.object(providers, "CONSTANTS_CACHE", empty))
        yield


def _machine(
    fresh: Callable[[], Subject[S]],
    rules: Sequence[Sequence[S]],
    tally: _Tally[S],
    burst: int,
    *,
    all_kinds: bool,
) -> Any:
    """Return the class of the state machine.

    Nothing that was found is raised out of a rule: Hypothesis would do all of that history once more, to a
    card that wears.
    """
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

    size = max(_DRAWN * burst, _LONGER_THAN_CONSTANTS)
    bytes_of_steps = st.binary(min_size=size, max_size=size)  # by far the quickest to draw
    subsets = st.tuples(*(st.just(True) if all_kinds else st.booleans() for _ in rules))

    class Exploration(RuleBasedStateMachine):
        """One history."""

        def __init__(self) -> None:
            super().__init__()
            self.subject: Subject[S] | None = None
            self.kinds = rules

        @initialize(kept=subsets)
        def begin(self, kept: tuple[bool, ...]) -> None:
            self.kinds = list(compress(rules, kept)) or rules

        @rule(drawn=bytes_of_steps)
        def take(self, drawn: bytes) -> None:
            for at in range(0, _DRAWN * burst, _DRAWN):
                steps = self.kinds[drawn[at] * len(self.kinds) >> 8]
                self.take_one(steps[(drawn[at + 1] << 8 | drawn[at + 2]) * len(steps) >> 16])

        def take_one(self, step: S) -> None:
            if tally.over:
                raise _Over
            if not tally.allows(step):
                return
            try:
                if self.subject is None:
                    self.subject = fresh()
                tally.take(self.subject, step)
            except HarnessError as error:
                tally.error = error

        def teardown(self) -> None:
            if self.subject is not None:
                self.subject.close()
                tally.told(tally.steps)

    return Exploration
