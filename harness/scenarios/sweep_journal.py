"""Which trials of a sweep are done, on disk as each ends: what a sweep that was cut off goes on from."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import ConfigurationError
from harness.judgement.model import VerdictKind, worst_verdict
from harness.record.history import read_history
from harness.record.runs import is_held
from harness.record.whole_file import write_whole
from harness.scenarios.sweep_results import Trial

if TYPE_CHECKING:
    from harness.judgement.judge import Judgement

JOURNAL = "sweep.jsonl"
RESULT = "sweep.json"
_SCHEMA = "hil-sweep-journal/1"
_FIELDS = frozenset(each.name for each in fields(Trial))


@dataclass(frozen=True, slots=True)
class Entry:
    """A trial that is done. ``history``: the file with its records; ``intent``: its operation's there.

    ``scenario``: the one there that is the trial as a whole; empty: the operation alone is.
    """

    trial: Trial
    history: str
    intent: int | None
    scenario: str = ""


class Journal:
    """The journal of the sweep in ``run_dir``: its operation and options first, then a line for each trial.

    A line that was cut off in the middle is none. What cannot be written is not there to go on from; the
    sweep itself does not end by it.

    :param options: all that decides which trials there are, as plain data.
    """

    def __init__(self, run_dir: Path, operation: str, options: Mapping[str, Any]) -> None:
        self._path = run_dir / JOURNAL
        self._head = {"schema": _SCHEMA, "operation": operation, "options": dict(options)}
        self._lock = threading.Lock()

    def entries(self) -> list[Entry]:
        """Return what is done so far. :raises ConfigurationError: a line is none of a journal."""
        return [_entry(self._path, line) for line in _lines(self._path)[1:]]

    def begin(self) -> None:
        """Write the first line, unless it is there; and end a line that was cut off."""
        lines = _lines(self._path)
        whole = "".join(f"{json.dumps(line)}\n" for line in lines or [self._head])
        with suppress(OSError):
            write_whole(self._path, whole)

    def add(self, entry: Entry) -> None:
        """Write one more; may be called by any thread."""
        line = json.dumps(asdict(entry))
        with self._lock, suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def judged_entries(run_dir: Path, entries: Sequence[Entry]) -> list[Trial]:
    """Return the trials of ``entries``, with the judge's words from their histories in ``run_dir``.

    :raises ConfigurationError: a history is not there any more, or is damaged.
    """
    from harness.judgement.judge import judge

    found = {name: judge(read_history(run_dir / name)) for name in {each.history for each in entries}}
    return [judged(each, found[each.history]) for each in entries]


def judged(entry: Entry, judgement: Judgement) -> Trial:
    """Return a trial with the judge's words on it; as it is where its fault did not strike."""
    trial, intent = entry.trial, entry.intent
    if entry.scenario:
        return _judged_whole(trial, entry.scenario, judgement)
    if intent is None:
        return trial
    outcome = next((each for each in judgement.outcomes if each.intent == intent), None)
    if outcome is None:
        return trial
    kinds: dict[str, list[VerdictKind]] = {}
    for verdict in judgement.verdicts:
        if verdict.intent == intent:
            kinds.setdefault(verdict.reporter, []).append(verdict.kind)
    worst = {reporter: worst_verdict(found).value for reporter, found in kinds.items()}
    own = worst.pop(trial.by or trial.lane, VerdictKind.UNVERIFIABLE.value)
    return replace(trial, outcome=outcome.outcome.value, verdict=own, others=worst)


def _judged_whole(trial: Trial, scenario: str, judgement: Judgement) -> Trial:
    """Return a trial with the worst of all outcomes of a scenario, and of what each reporter said in it."""
    found = next((each for each in judgement.scenarios if each.name == scenario), None)
    if found is None or found.outcome is None:
        return trial
    worst = {reporter: kind.value for reporter, kind in found.verdicts.items()}
    own = worst.pop(trial.by or trial.lane, VerdictKind.UNVERIFIABLE.value)
    return replace(trial, outcome=found.outcome.value, verdict=own, others=worst)


def unfinished(reports: Path, operation: str, options: Mapping[str, Any]) -> Path | None:
    """Return the newest folder below ``reports`` with a sweep like this one that did not come to its end.

    One that a process still works on is none.
    """
    if not reports.is_dir():
        return None
    for folder in sorted(reports.iterdir(), reverse=True):
        if folder.is_symlink() or not (folder / JOURNAL).is_file() or _is_over(folder):
            continue
        with suppress(ConfigurationError):
            head = read_head(folder)
            same = (head["operation"], head["options"]) == (operation, json.loads(json.dumps(dict(options))))
            if same and not is_held(folder):
                return folder
    return None


def read_head(folder: Path) -> dict[str, Any]:
    """Return operation and options of the sweep in ``folder``.

    :raises ConfigurationError: there is none, or it can not be read.
    """
    lines = _lines(folder / JOURNAL)
    if not lines or lines[0].get("schema") != _SCHEMA or not {"operation", "options"} <= lines[0].keys():
        raise ConfigurationError(
            f"There is no sweep in {folder} that could go on.",
            hint=f"The folder of a sweep has the file {JOURNAL}; `hil sweep ... --fresh` begins a new one.",
        )
    return lines[0]


def _is_over(folder: Path) -> bool:
    """Whether the sweep in ``folder`` has tried all that it was to."""
    try:
        return not json.loads((folder / RESULT).read_text(encoding="utf-8"))["interrupted"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a journal; none where there is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found = []
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        try:
            data = json.loads(line)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise ConfigurationError(
                f"{path}:{number}: this is no line of a sweep's journal.", hint="Begin anew: --fresh."
            )
        found.append(data)
    return found


def _entry(path: Path, line: dict[str, Any]) -> Entry:
    try:
        trial, history, intent = line["trial"], line["history"], line["intent"]
        scenario = line.get("scenario", "")
        known = {name: value for name, value in trial.items() if name in _FIELDS}
        if Path(history).name != history or not isinstance(intent, int | None):
            raise ValueError("it names no history beside it")
        return Entry(Trial(**known), history, intent, str(scenario))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(
            f"{path}: a line is no trial of a sweep: {error}", hint="Begin anew: --fresh."
        ) from None
