"""What the runs below a folder are at, read from their histories as these grow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.record.runs import histories, is_held

#: What the end of a scenario may say; the verdicts on it are the index's.
_KINDS: Final = frozenset({"run-started", "scenario-started", "scenario-ended", "intent", "completion"})
_LINE: Final = 1 << 22


@dataclass
class Process:
    """One history as far as it was read: what is being done. ``since``: seconds since the epoch."""

    path: Path
    offset: int = 0
    scenario: str = ""
    device: str = ""
    operation: str = ""
    since: float = 0.0
    done: int = 0
    _intents: dict[int, str] = field(default_factory=dict)

    def read_on(self) -> Iterator[dict[str, Any]]:
        """Take what was written since; yield the records that matter, the last torn line not."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                while (line := file.readline(_LINE)).endswith(b"\n"):
                    self.offset += len(line)
                    if (record := _record(line)) is not None:
                        with suppress(
                            KeyError, TypeError, ValueError, AttributeError
                        ):  # it is odd, or damaged
                            self._take(record)
                            yield record
        except OSError:
            return  # pruned meanwhile

    def _take(self, record: dict[str, Any]) -> None:
        match record["kind"]:
            case "scenario-started":
                subject = record.get("subject") or {}
                self.scenario, self.device = str(record.get("scenario")), str(subject.get("name", ""))
                self.since, self.operation = float(record.get("time", 0.0)), ""
            case "scenario-ended":
                self.scenario = self.device = self.operation = ""
                self.done += 1
            case "intent":
                self.operation = self._intents[record["seq"]] = str(record.get("operation"))
            case "completion" if self._intents.pop(record.get("intent", -1), None) == self.operation:
                self.operation = ""


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get("kind") in _KINDS else None


@dataclass
class LiveRun:
    """One run that a process holds."""

    folder: Path
    lab: str = ""
    began: float = 0.0
    processes: dict[Path, Process] = field(default_factory=dict)

    def read_on(self) -> None:
        """Take what all of its histories have got since."""
        for path in histories(self.folder):
            for record in self.processes.setdefault(path, Process(path)).read_on():
                if record["kind"] == "run-started":
                    began = record.get("time")
                    self.lab = str(record.get("lab", ""))
                    self.began = float(began) if isinstance(began, (int, float)) else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return what a page shows of it."""
        doing = [
            {"scenario": p.scenario, "device": p.device, "operation": p.operation, "since": p.since}
            for p in self.processes.values()
            if p.scenario
        ]
        return {
            "run": self.folder.name,
            "lab": self.lab,
            "began": self.began,
            "done": sum(process.done for process in self.processes.values()),
            "doing": doing,
        }


class LiveRuns:
    """The runs below ``reports`` that somebody records now."""

    def __init__(self, reports: Path) -> None:
        self._reports = reports
        self._runs: dict[Path, LiveRun] = {}

    def look(self) -> list[LiveRun]:
        """Return them, each read as far as it has got; the latest first."""
        folders = {path for path in self._folders() if is_held(path)}
        self._runs = {path: self._runs.get(path) or LiveRun(path) for path in folders}
        for run in self._runs.values():
            run.read_on()
        return sorted(self._runs.values(), key=lambda run: run.began, reverse=True)

    def _folders(self) -> Iterator[Path]:
        try:
            found = list(self._reports.iterdir())
        except OSError:
            return
        yield from (path for path in found if path.is_dir() and not path.is_symlink() and histories(path))
