"""Requirements: which scenarios are a proof of each, and how those went last."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ConfigurationError
from harness.inventory.entries import nearest
from harness.yaml_text import load_plain

FILE = Path("testplans/requirements.yaml")
_ROUND = re.compile(r"-?round\d+(?=\])")
#: Worst first: what stands for the cells of a scenario that went different ways.
_WORST = ("BUG", "not-as-stated", "REFUSED", "INFRA", "BLOCKED", "interrupted", "as-stated", "NOT_APPLICABLE")
UNKNOWN = "never run here"


@dataclass(frozen=True, slots=True)
class Last:
    """How a cell of a scenario went when it ran last. ``began``: seconds since the epoch."""

    state: str
    run: str
    began: float


@dataclass(frozen=True, slots=True)
class Proof:
    """A scenario that is a proof of a requirement. ``cells``: its node ids, one for each device and row."""

    scenario: str
    cells: tuple[str, ...]
    states: Mapping[str, int]
    run: str

    @property
    def state(self) -> str:
        """The worst of the last states of its cells."""
        return min(self.states, key=lambda s: _WORST.index(s) if s in _WORST else len(_WORST))


@dataclass(frozen=True, slots=True)
class Traced:
    """A requirement with its proofs; without any, nothing proves it."""

    id: str
    text: str
    proofs: tuple[Proof, ...]


def load_requirements(path: Path = FILE) -> dict[str, str]:
    """Return the requirements by their ids. :raises ConfigurationError: the file does not say them."""
    try:
        data = load_plain(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"Cannot read the requirements {path}: {error}") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{path} holds no requirements: {error.message}", hint=error.hint) from error
    if not isinstance(data, dict) or not all(isinstance(each, str) for pair in data.items() for each in pair):
        raise ConfigurationError(
            f"{path} holds no requirements.", hint="It maps ids to texts: FLASH-ROOT: A card takes ..."
        )
    return data


def trace(
    texts: Mapping[str, str], claimed: Mapping[str, Iterable[str]], last: Mapping[str, Last]
) -> list[Traced]:
    """Return every requirement with what proves it.

    :param claimed: node id -> the requirements that it says it proves. :param last: node id -> how it ended.
    :raises ConfigurationError: a scenario names a requirement that there is not.
    """
    by_requirement: dict[str, dict[str, list[str]]] = {each: {} for each in texts}
    unknown: dict[str, str] = {}
    for cell, ids in claimed.items():
        scenario = cell.partition("[")[0]
        for each in ids:
            if each in by_requirement:
                by_requirement[each].setdefault(scenario, []).append(cell)
            else:
                unknown.setdefault(each, scenario)
    if unknown:
        raise ConfigurationError(
            "\n".join(f"{where}: there is no requirement {each!r}." for each, where in unknown.items()),
            hint=" ".join(
                f"Did you mean {close!r}?" for each in unknown if (close := nearest(each, [*texts]))
            )
            or f"{FILE} lists them.",
        )
    return [
        Traced(each, texts[each], tuple(_proof(name, cells, last) for name, cells in by_scenario.items()))
        for each, by_scenario in by_requirement.items()
    ]


def cell_of(scenario: str) -> str:
    """Return the node id of a scenario without the round of a campaign."""
    return _ROUND.sub("", scenario).replace("[]", "")


def _proof(scenario: str, cells: list[str], last: Mapping[str, Last]) -> Proof:
    known = [last[cell] for cell in cells if cell in last]
    states = Counter(each.state for each in known)
    if len(known) < len(cells):
        states[UNKNOWN] = len(cells) - len(known)
    latest = max(known, key=lambda each: each.began, default=None)
    return Proof(scenario, tuple(cells), dict(states), latest.run if latest else "")
