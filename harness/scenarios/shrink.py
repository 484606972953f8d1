"""Makes a scenario smaller while it still shows what is kept: each candidate is run, on an emulated lab."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.errors import ConfigurationError, InfrastructureError
from harness.scenarios.reductions import Data, shrunk, without_unused_names
from harness.scenarios.trials import Found, Runner, Sight, Trial

#: A candidate of a scenario that shows what is kept only at times is tried until it would have been seen with
#: this probability, but no more often than so.
_SEEN: Final = 0.95
_MOST_TRIES: Final = 12
_NOT_REACHED: Final = "NOT_REACHED"


class Spent(Exception):
    """The budget of tries or seconds is used up."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be tried. ``confirm``: so often a candidate must show what is kept to be taken."""

    tries: int = 500
    seconds: float = 900.0
    confirm: int = 2


@dataclass(frozen=True, slots=True)
class Progress:
    """Where shrinking is: what it has cost, and how large the best so far is."""

    tries: int
    cached: int
    steps: int
    flashes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The least that was found. ``data``: a scenario file's content, whose ``expect`` is what it shows.

    ``before``, ``after``: steps, those within others counted too. ``shown`` of ``runs`` of the result showed
    what is kept. ``ended``: ``minimal``, ``tries``, ``seconds`` or ``interrupted``.
    """

    data: Data
    kept: tuple[Sight, ...]
    before: int
    after: int
    shown: int
    runs: int
    ended: str
    progress: Progress
    device: str = ""

    @property
    def flaky(self) -> bool:
        """Whether the result does not show it in every run."""
        return self.shown < self.runs


@dataclass
class Shrinking:
    """One scenario that is shrunk.

    :param runner: runs a file. :param path: of the file that candidates are written to.
    :param told: is called after each try.
    """

    runner: Runner
    path: Path
    budget: Budget = Budget()
    told: Callable[[Progress], None] = lambda progress: None
    kept: tuple[Sight, ...] = ()
    device: str = ""
    _tries: int = 0
    _cached: int = 0
    _flashes: int = 0
    _began: float = field(default_factory=time.monotonic)
    _rate: float = 1.0
    _best: Data = field(default_factory=dict)
    _seen: Found | None = None
    _known: dict[str, bool] = field(default_factory=dict)

    def run(self, variants: Sequence[Data], kept: Sequence[Sight] = ()) -> Shrunk:
        """Shrink the first of ``variants`` that shows all of ``kept``; without any: the worst that it shows.

        :raises ConfigurationError: none shows it, or nothing diverges.
        :raises InfrastructureError: it cannot be run here at all.
        """
        self._begin(variants, tuple(kept))
        before, ended = count_steps(self._best["steps"]), "minimal"
        try:
            self._measure(self._best)
            shrunk(self._best, self._accepts)
        except Spent as spent:
            ended = str(spent)
        except KeyboardInterrupt:
            ended = "interrupted"
        assert self._seen is not None
        result = without_unused_names({**self._best, "expect": _expectation(self._seen)})
        shown, runs = (0, 0) if ended == "interrupted" else self._confirmed(result)
        after = count_steps(result["steps"])
        return Shrunk(result, self.kept, before, after, shown, runs, ended, self._progress(), self.device)

    # -- the beginning --------------------------------------------------------------------------------

    def _begin(self, variants: Sequence[Data], kept: tuple[Sight, ...]) -> None:
        """Find the variant and the device that show it, and how often they do."""
        lacking: list[str] = []
        seen: list[str] = []
        for data in [*variants] * self.budget.confirm:  # it may come and go
            trial = self._trial(data)
            trial.check()
            lacking += filter(None, [trial.without_result])
            seen += [_shown(each) for each in trial.scenarios if each.has_result]
            found = trial.showing(kept) if kept else _worst_of(trial)
            if found is None:
                continue
            worst = found.worst()
            self.kept = kept or ((worst,) if worst is not None else ())
            self._best, self._seen, self.device = data, found, found.device
            self._known[_key(data)] = True
            return
        words = " and ".join(map(str, kept)) or "anything that is not as intended and true"
        if lacking and not seen:
            raise InfrastructureError(f"It gave no result here: {lacking[0]}", hint="`hil run` says more.")
        raise ConfigurationError(
            f"It does not show {words}; it shows {'; '.join(dict.fromkeys(seen))}.",
            hint="Name what is to be kept with --keep, such as --keep fpgasupdate=FALSE_SUCCESS.",
        )

    def _measure(self, data: Data) -> None:
        """Learn how often the scenario shows what is kept."""
        more = max(self.budget.confirm, 2) - 1
        shown = 1 + sum(self._shows(data) for _ in range(more))
        if shown <= more:  # not in every run: look more often, since all that follows rests on it
            more += _MOST_TRIES - 2
            shown += sum(self._shows(data) for _ in range(_MOST_TRIES - 2))
        self._rate = shown / (more + 1)

    # -- candidates -----------------------------------------------------------------------------------

    def _accepts(self, data: Data) -> bool:
        key = _key(data)
        if key in self._known:
            self._cached += 1
            return self._known[key]
        known = self._is_scenario(data) and self._is_seen(data)
        self._known[key] = known
        if known:
            self._best = data
        return known

    def _is_seen(self, data: Data) -> bool:
        """Whether a candidate shows it: always, or, where that comes and goes, in some run of enough."""
        if self._rate == 1.0:
            return all(self._shows(data) for _ in range(self.budget.confirm))
        tries = min(_MOST_TRIES, math.ceil(math.log(1 - _SEEN) / math.log(1 - self._rate)))
        return any(self._shows(data) for _ in range(tries))

    def _shows(self, data: Data) -> bool:
        if self._tries >= self.budget.tries:
            raise Spent("tries")
        if time.monotonic() - self._began > self.budget.seconds:
            raise Spent("seconds")
        found = self._trial(data).showing(self.kept)
        if found is None or found.asserted or any(_NOT_REACHED in each for each in found.reasons):
            return False
        self._seen = found
        return True

    def _is_scenario(self, data: Data) -> bool:
        from harness.scenarios.files import load_scenario

        self._write(data)
        try:
            load_scenario(self.path)
        except ConfigurationError:
            return False
        return True

    def _trial(self, data: Data) -> Trial:
        self._write(data)
        trial = self.runner.run(str(self.path), [f"--hil-device={self.device}"] if self.device else [])
        self._tries += 1
        self._flashes += trial.flashes
        self.told(self._progress())
        return trial

    def _write(self, data: Data) -> None:
        from harness.scenarios.writing import scenario_text

        self.path.write_text(scenario_text(data), encoding="utf-8")

    # -- the end --------------------------------------------------------------------------------------

    def _confirmed(self, result: Data) -> tuple[int, int]:
        """Run the result as it will be kept; return how often it was as stated, and of how many runs.

        One that is not so each time is run more often, so that its rate is known.
        """
        shown = runs = 0
        while runs < (self.budget.confirm if shown == runs and self._rate == 1.0 else _MOST_TRIES):
            try:
                trial = self._trial(result)
            except KeyboardInterrupt:
                break
            runs += 1
            found = trial.showing(self.kept)
            shown += found is not None and found.state == "as-stated"
        return shown, runs

    def _progress(self) -> Progress:
        steps = count_steps(self._best.get("steps", ()))
        return Progress(self._tries, self._cached, steps, self._flashes, time.monotonic() - self._began)


def count_steps(steps: Sequence[Any]) -> int:
    """Return how many steps there are, those within steps counted too."""
    from harness.scenarios.reductions import step_lists

    inner = sum(len(_list_at(steps, place[1:])) for place in step_lists({"steps": list(steps)}))
    return len(steps) + inner


def _list_at(steps: Any, place: Sequence[str | int]) -> list[Any]:
    for key in place:
        steps = steps[key]
    return list(steps)


def _worst_of(trial: Trial) -> Found | None:
    """Return the scenario that is shrunk where nobody says what is kept: the first that diverges."""
    return next((each for each in trial.scenarios if each.has_result and each.worst() is not None), None)


def _expectation(found: Found) -> dict[str, Any]:
    verdicts = {name: word for name, word in found.verdicts.items() if word != "MATCH"}
    outcome = found.outcome if found.outcome not in (None, "AS_INTENDED") else None
    return {**({"outcome": outcome} if outcome else {}), **({"verdicts": verdicts} if verdicts else {})}


def _shown(found: Found) -> str:
    told = [f"{name}={word}" for name, word in sorted(found.verdicts.items()) if word != "MATCH"]
    never = [reason.partition(" on ")[0] for reason in found.reasons if _NOT_REACHED in reason]
    return ", ".join([found.outcome or "no outcome", *(told or ["every report true"]), *never])


def _key(data: Data) -> str:
    return json.dumps({key: data.get(key) for key in ("given", "steps")}, sort_keys=True, default=str)
