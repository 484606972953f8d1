"""Everything that the page shows at one moment, from running histories and from the index."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from harness.dashboard.live import LiveRuns
from harness.errors import HarnessError
from harness.lab.standing import kept_health
from harness.leases.store import leases_url
from harness.store.index import Index
from harness.store.opening import missing_file
from harness.store.trends import devices_of, newest_divergences, results_by_day

_DIVERGENCES: Final = 20
_DAYS: Final = 14


class State:
    """Looks at a folder of runs and at the index, again and again.

    :param url: of the index; None: there is none, and only running runs are shown. :param leases: of the
        leases, beside which the health of cards is kept; by default as for runs.
    """

    def __init__(self, reports: Path, url: str | None, leases: str | None = None) -> None:
        self._live = LiveRuns(reports)
        self._url = url
        self._leases = leases or leases_url(reports, index=url)
        self._index: Index | None = None

    def look(self) -> dict[str, Any]:
        """Return the state as plain data; an index that cannot be had is told as ``trouble``."""
        runs = [run.to_json() for run in self._live.look()]
        holds = {doing["device"]: run["run"] for run in runs for doing in run["doing"] if doing["device"]}
        said: dict[str, Any] = {"runs": runs, "devices": [], "divergences": [], "days": [], "trouble": ""}
        if self._url is not None and missing_file(self._url) is None:
            try:
                said |= self._indexed(self._url)
            except HarnessError as error:
                self.close()
                said["trouble"] = error.message
        known = {device["device"] for device in said["devices"]}
        said["devices"] += [
            {"device": name, "course": [], "lab": ""} for name in sorted(holds.keys() - known)
        ]
        for device in said["devices"]:
            device["held_by"] = holds.get(device["device"], "")
        return said

    def _indexed(self, url: str) -> dict[str, Any]:
        if self._index is None:
            self._index = Index(url)
        engine = self._index.engine
        return {
            "devices": [asdict(device) for device in devices_of(engine, kept_health(self._leases))],
            "divergences": [asdict(found) for found in newest_divergences(engine, _DIVERGENCES)],
            "days": [asdict(day) for day in results_by_day(engine, _DAYS, time.time())],
        }

    def close(self) -> None:
        """Let go of the index."""
        if self._index is not None:
            self._index.close()
            self._index = None
