"""What is done of a qualification, on disk as each trial ends: what one that was cut off goes on from."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from harness.errors import ConfigurationError, InfrastructureError
from harness.record.runs import is_held, make_run_dir
from harness.record.whole_file import write_whole
from harness.scenarios.kill_matrix import Trial

_STATE: Final = "qualification.json"
_TRIALS: Final = "trials.jsonl"
_KILLERS: Final = "killers.json"


class QualificationJournal:
    """The trials that are done, by name, and ``killers``: defect -> the scenarios that noticed it last time.

    :param folder: where they are kept. :param fingerprint: of all that must be the same for a trial to count.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self._folder = folder
        self._fingerprint = fingerprint
        self.trials: dict[str, Trial] = {}
        self.killers: dict[str, list[str]] = {}

    @property
    def runs(self) -> Path:
        """The folder for what the trials record."""
        return self._folder / "runs"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other qualifications out of the folder meanwhile, at most as long as we live.

        :raises ConfigurationError: one is at work there. :raises InfrastructureError: it cannot be made.
        """
        if self._folder.exists() and is_held(self._folder):
            raise ConfigurationError(
                f"Another qualification is at work in {self._folder}.",
                hint="Let it end, or name another folder with --reports.",
            )
        held = make_run_dir(self._folder)
        try:
            yield
        finally:
            os.close(held)

    def take_up(self, noticed_first: Iterable[Path], *, fresh: bool) -> int:
        """Take what was done before a kill or Ctrl-C, and forget what was brought to its end.

        :param noticed_first: files as that of ``killers``, which says more.
        :returns: how many trials do not count any more, since what they were about has changed.
        :raises InfrastructureError: the folder cannot be written.
        """
        for path in (*noticed_first, self._folder / _KILLERS):
            self.killers |= {name: list(each) for name, each in _read(path).items()}
        state = _read(self._folder / _STATE)
        over = frozenset(state.get("finished") or ())
        known = [trial for trial in _trials(self._folder / _TRIALS) if trial.name not in over]
        same = state.get("fingerprint") == self._fingerprint
        self.trials = {trial.name: trial for trial in known} if same and not fresh else {}
        if not self.trials:
            shutil.rmtree(self.runs, ignore_errors=True)
        self._keep(_TRIALS, "".join(map(_line, self.trials.values())))
        self._write_state(finished=())
        return 0 if same or fresh else len(known)

    def add(self, trial: Trial, predicted: str) -> None:
        """Keep a trial. :param predicted: what the defect that it is about shows; empty: it is about none."""
        self.trials[trial.name] = trial
        if noticed_by := [each.scenario for each in trial.seen if each.shows(predicted)]:
            self.killers[trial.name] = noticed_by
        self._keep(_TRIALS, _line(trial), _append)
        self._keep(_KILLERS, json.dumps(self.killers, indent=1))

    def finish(self, names: Iterable[str]) -> None:
        """Note that these trials have been told: the next qualification makes them again."""
        self._write_state(finished=names)

    def _write_state(self, *, finished: Iterable[str]) -> None:
        self._keep(_STATE, json.dumps({"fingerprint": self._fingerprint, "finished": sorted(finished)}))

    def _keep(self, name: str, text: str, write: Callable[[Path, str], None] = write_whole) -> None:
        try:
            write(self._folder / name, text)
        except OSError as error:
            raise InfrastructureError(
                f"The state of the qualification in {self._folder} cannot be kept: {error.strerror}.",
                hint="Make room, or name a folder that can be written with --reports.",
            ) from None


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def _line(trial: Trial) -> str:
    return json.dumps(trial.to_json()) + "\n"


def _read(path: Path) -> dict[str, Any]:
    """Return the object in a file; an empty one where there is none, or it was cut short by a kill."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _trials(path: Path) -> Iterator[Trial]:
    """Yield the trials of a file; a line that was cut short by a kill is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        try:
            yield Trial.from_json(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue
