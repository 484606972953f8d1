"""The course of a campaign: which cell is next, made round by round, and what ends it. It knows no pytest."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from harness.scenarios.campaigns import Campaign

#: How the reason begins for which a soak ends as it should.
DURATION: Final = "the duration"
_STOPS: Final = {"not_as_stated": "are not as stated", "could_not_run": "could not run"}
#: Rounds that are under way at the same time at most: a worker need not wait for the others' last cells.
_OPEN: Final = 2


@dataclass(frozen=True, slots=True)
class Cell:
    """A scenario on a device. ``scenario``: without its parameters; ``device``: empty where it has none.

    ``card``: the real card that it wears, by ``cost`` updates; empty where it wears none.
    """

    scenario: str
    device: str = ""
    card: str = ""
    cost: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """One cell of one round. ``at``: the cell's place; ``number``: the round's, from 1."""

    number: int
    at: int


class Course:
    """Says what is next. No more than two rounds are in memory.

    A turn that was given is in hand until it is done, and comes to its end whatever happens. The updates of
    a real card are reserved before its turns can be given: its budget is never exceeded by turns that cost
    what they say.

    :param cells: of one round, in their order. :param seed: of a random order.
    :param clock: seconds that only grow.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        campaign: Campaign,
        seed: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cells = cells
        self._campaign = campaign
        self._seed = seed
        self._clock = clock
        self._numbers = iter(range(1, campaign.rounds + 1)) if campaign.rounds is not None else count(1)
        self._open: deque[deque[Turn]] = deque()
        self._opened = self._rounds = 0
        #: The first turn that was given of the newest round.
        self._first: Turn | None = None
        self._exhausted = not cells
        self._began: float | None = None
        self._counts: Counter[str] = Counter()
        self._reserved: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()

    # -- what is next ---------------------------------------------------------------------------------

    def next(self, may: Callable[[Cell], bool] = lambda cell: True) -> Turn | None:
        """Return the next turn; None: the campaign is over, or nothing of what is left may be begun now.

        :param may: whether a cell can be begun by who asks.
        """
        if self.over:
            return None
        at = 0
        while at < _OPEN:
            if at == len(self._open) and not self._open_round():
                return None
            turns = self._open[at]
            for turn in turns:
                if may(self._cells[turn.at]):
                    turns.remove(turn)
                    if turn.number > self._rounds:
                        self._rounds, self._first = turn.number, turn
                    return turn
            at += 0 if self._closed(at) else 1
        return None

    def give_back(self, turn: Turn) -> None:
        """Take back the turn that was given last, and was not begun."""
        self._rounds -= turn == self._first
        for turns in self._open:
            if turns and turns[0].number == turn.number:
                turns.appendleft(turn)
                return
        self._open.appendleft(deque([turn]))

    def _closed(self, at: int) -> bool:
        """Forget the round at that place where nothing of it is left."""
        if self._open[at]:
            return False
        del self._open[at]
        return True

    def _open_round(self) -> bool:
        """Make one more round; False where there is none, or nothing of it can be afforded."""
        number = None if self._exhausted else next(self._numbers, None)
        if number is None:
            self._exhausted = True
            return False
        self._opened += 1
        order = list(range(len(self._cells)))
        if self._campaign.order == "random":
            Random(f"{self._seed} {number}").shuffle(order)
        affordable = self._affordable(order)
        self._open.append(deque(Turn(number, at) for at in order if at in affordable))
        self._exhausted |= not affordable
        return bool(affordable)

    def _affordable(self, order: Sequence[int]) -> set[int]:
        """Reserve what the budget of updates allows: first one cell of every scenario, then their others."""
        most = self._campaign.budget.flashes
        nth: Counter[str] = Counter()
        by_need: list[tuple[int, int]] = []
        for at in order:
            scenario = self._cells[at].scenario
            by_need.append((nth[scenario], at))
            nth[scenario] += 1
        found = set()
        for _, at in sorted(by_need, key=lambda each: each[0]):
            cell = self._cells[at]
            if cell.card and most is not None:
                if self._reserved[cell.card] + cell.cost > most:
                    self._dropped[self._out_of_flashes] += 1
                    continue
                self._reserved[cell.card] += cell.cost
            found.add(at)
        return found

    # -- when it ends ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Note that the first scenario begins: from now on time counts."""
        self._began = self._clock() if self._began is None else self._began

    def counted(self, kind: str) -> None:
        """Count a scenario that is ``not_as_stated``, or ``could_not_run``."""
        self._counts[kind] += 1

    @property
    def over(self) -> str:
        """Why nothing more is begun; empty where nothing has ended it yet."""
        campaign, seconds = self._campaign, self.seconds
        for kind, most in campaign.stop.model_dump(exclude_none=True).items():
            if self._counts[kind] >= most:
                return f"it was to stop after {most} that {_STOPS[kind]}"
        if campaign.budget.time is not None and seconds >= campaign.budget.time:
            return f"the budget of {campaign.budget.time:g} s is used up"
        if campaign.duration is not None and seconds >= campaign.duration:
            return f"{DURATION} of {campaign.duration:g} s is over"
        return ""

    @property
    def ended(self) -> bool:
        """Whether no turn will be given any more."""
        return bool(self.over) or (self._exhausted and not any(self._open))

    @property
    def seconds(self) -> float:
        """How long it has gone on."""
        return 0.0 if self._began is None else self._clock() - self._began

    @property
    def rounds(self) -> int:
        """How many rounds were begun."""
        return self._rounds

    @property
    def planned(self) -> int:
        """How many turns there are in all rounds, or in those that were begun where nobody knows how many."""
        rounds = self._campaign.rounds
        return len(self._cells) * (self._rounds if rounds is None else rounds)

    def left(self, ran: int) -> dict[str, int]:
        """Return why turns were left out -> how many, where ``ran`` were not."""
        found = Counter(self._dropped)
        over = self.over
        if over:
            found[over] += self.planned - ran - self._dropped.total()
        elif self._exhausted and self._campaign.rounds is not None:
            # After one of which nothing could be afforded no other round was made.
            found[self._out_of_flashes] += (self._campaign.rounds - self._opened) * len(self._cells)
        return dict(+found)

    @property
    def _out_of_flashes(self) -> str:
        return f"the budget of {self._campaign.budget.flashes} updates of each real card is used up"
