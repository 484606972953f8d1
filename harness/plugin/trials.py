"""Runs scenarios again and again in one process, which is warm: what each run found is told in one line.

``python -m harness.plugin.trials LOG``: takes one JSON object a line, ``{"arguments": [...]}`` for pytest,
and answers with one; :mod:`harness.scenarios.trials` is who asks.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from harness.errors import EXIT_INTERRUPTED
from harness.judgement.records import Intent
from harness.plugin.session import SESSION

if TYPE_CHECKING:
    from harness.judgement.judge import ScenarioJudgement

#: A trouble is told with so many characters at most, from its end.
_TROUBLE = 2000
#: Ends of pytest whose cause lies in what was asked for, and what that is where nothing else says it.
_MEANT_WRONGLY: dict[int, str] = {
    pytest.ExitCode.USAGE_ERROR: "pytest does not take its arguments.",
    pytest.ExitCode.NO_TESTS_COLLECTED: "No scenario matches.\n  hint: Look at -k, and at the files named.",
}


class Told:
    """A pytest plugin that keeps what each scenario found."""

    def __init__(self) -> None:
        self.scenarios: list[dict[str, Any]] = []
        self.troubles: list[str] = []
        self.flashes = 0
        self.interrupted = False

    def pytest_hil_scenario_judged(self, item: pytest.Item, judgement: ScenarioJudgement) -> None:
        """Keep it."""
        subject = judgement.subject
        self.scenarios.append(
            {
                "name": judgement.name,
                "device": subject.name if subject is not None else "",
                "state": judgement.state,
                "why": judgement.state_reason if judgement.run_state or judgement.interrupted else "",
                "reasons": list(judgement.reasons),
                "asserted": judgement.state_reason if judgement.run_state is None else "",
                "outcome": judgement.outcome.value if judgement.outcome is not None else None,
                "verdicts": {name: kind.value for name, kind in judgement.verdicts.items()},
            }
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why a file cannot be read."""
        if report.failed:
            self.troubles.append(report.longreprtext.strip()[-_TROUBLE:])

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """See that somebody interrupted the run; pytest stops itself in this way, too."""
        self.interrupted |= not isinstance(excinfo.value, pytest.Session.Interrupted)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Count what the run has cost cards."""
        opened = session.config.stash[SESSION].opened
        records = opened.records if opened is not None else ()
        self.flashes = sum(isinstance(r, Intent) and r.operation == "flash" for r in records)


def run_once(arguments: list[str], log: Path) -> dict[str, Any]:
    """Run pytest with ``arguments``; return what was found, as plain data."""
    told, began = Told(), time.monotonic()
    log.write_bytes(b"")
    status = int(pytest.main(arguments, plugins=[told]))
    sys.stdout.flush()
    trouble = "; ".join(told.troubles)
    if not trouble and not told.scenarios:
        trouble = log.read_text(encoding="utf-8", errors="replace").strip()[-_TROUBLE:]
    return {
        "interrupted": told.interrupted,
        "scenarios": told.scenarios,
        "trouble": trouble or _MEANT_WRONGLY.get(status, ""),
        "meant_wrongly": bool(told.troubles) or status in _MEANT_WRONGLY,
        "flashes": told.flashes,
        "seconds": time.monotonic() - began,
    }


def serve(asked: IO[bytes], answers: IO[bytes], log: Path) -> int:
    """Answer until nothing more is asked, or an interruption has ended a run."""
    for line in iter(asked.readline, b""):
        said = run_once(json.loads(line)["arguments"], log)
        answers.write(json.dumps(said).encode() + b"\n")
        answers.flush()
        if said["interrupted"]:
            return EXIT_INTERRUPTED
    return 0


def main(log: Path) -> int:
    """Serve; what pytest prints goes to ``log``."""
    from harness.interruption import stopped_is_interrupted

    answers = os.fdopen(os.dup(1), "wb")
    with log.open("ab") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    with stopped_is_interrupted():
        try:
            return serve(sys.stdin.buffer, answers, log)
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
