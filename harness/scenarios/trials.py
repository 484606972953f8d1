"""Runs a scenario again and again in one warm process of pytest, and returns what each run found."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol

from harness.errors import ConfigurationError, InfrastructureError
from harness.judgement.model import VERDICT_RANK, Outcome, VerdictKind
from harness.registry.children import spawn
from harness.registry.folder import TemporaryFolder
from harness.scenarios.kill_matrix import NO_RESULT
from harness.scenarios.trial_process import QUIET, end_in_order, wait_for_end, wrong_plan

#: One trial may take so many seconds before it is ended.
TRIAL_SECONDS: Final = 600.0
_GOOD_OUTCOME: Final = Outcome.AS_INTENDED.value


@dataclass(frozen=True, slots=True, order=True)
class Sight:
    """An outcome, or a verdict on a reporter, that a scenario is looked at for; no reporter: on any."""

    word: str
    reporter: str = ""

    @classmethod
    def parse(cls, text: str) -> Sight:
        """Return what ``text`` says: ``FALSE_SUCCESS``, ``fpgasupdate=FALSE_SUCCESS`` or ``BREACH``.

        :raises ConfigurationError: there is no such word.
        """
        from harness.inventory.placed import guess

        reporter, _, word = text.rpartition("=")
        known = [each.value for each in (VerdictKind if reporter else (*Outcome, *VerdictKind))]
        if word not in known:
            raise ConfigurationError(
                f"{word!r} is no {'verdict' if reporter else 'outcome or verdict'}; {guess(word, known)}.",
                hint="Such as FALSE_SUCCESS, fpgasupdate=FALSE_SUCCESS or BREACH.",
            )
        return cls(word, reporter)

    def __str__(self) -> str:
        return f"{self.reporter}={self.word}" if self.reporter else self.word


@dataclass(frozen=True, slots=True)
class Found:
    """What one scenario found. ``asserted``: what it asserts itself, and was not so."""

    name: str
    device: str
    state: str
    why: str
    reasons: tuple[str, ...]
    asserted: str
    outcome: str | None
    verdicts: Mapping[str, str]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Found:
        """Return what the process of the trials tells."""
        return cls(**{**data, "reasons": tuple(data["reasons"])})

    @property
    def has_result(self) -> bool:
        """Whether it came to its end, so that it says something."""
        return self.state not in (*NO_RESULT, "NOT_APPLICABLE")

    def shows(self, sights: Sequence[Sight]) -> bool:
        """Whether it came to its end and all of ``sights`` are there."""
        return self.has_result and all(self._shows(sight) for sight in sights)

    def _shows(self, sight: Sight) -> bool:
        if sight.reporter:
            return self.verdicts.get(sight.reporter) == sight.word
        return sight.word == self.outcome or sight.word in self.verdicts.values()

    def worst(self) -> Sight | None:
        """Return the worst that it found; None where all is as intended, and every report true."""
        if self.outcome == Outcome.BREACH.value:
            return Sight(Outcome.BREACH.value)
        verdicts = [(VERDICT_RANK[VerdictKind(word)], word, name) for name, word in self.verdicts.items()]
        rank, word, reporter = min(verdicts, default=(VERDICT_RANK[VerdictKind.MATCH], "", ""))
        if rank < VERDICT_RANK[VerdictKind.UNVERIFIABLE]:
            return Sight(word, reporter)
        return Sight(self.outcome) if self.outcome not in (None, _GOOD_OUTCOME) else None


@dataclass(frozen=True, slots=True)
class Trial:
    """One run. ``trouble``: why nothing was found. ``flashes``: how many updates it has cost cards.

    ``meant_wrongly``: the trouble lies in what was asked for, such as a file that is no scenario.
    """

    scenarios: tuple[Found, ...]
    trouble: str = ""
    flashes: int = 0
    seconds: float = 0.0
    meant_wrongly: bool = False

    def showing(self, sights: Sequence[Sight]) -> Found | None:
        """Return the first scenario that shows all of ``sights``."""
        return next((each for each in self.scenarios if each.shows(sights)), None)

    def check(self) -> None:
        """Return if it could be run at all. :raises ConfigurationError: what was asked for is wrong."""
        if self.meant_wrongly:
            raise wrong_plan(self.trouble)

    @property
    def without_result(self) -> str:
        """Why it says nothing, where no scenario of it came to its end; empty otherwise."""
        if self.trouble or not self.scenarios:
            return self.trouble or "no scenario ran"
        lacking = [f"{each.state}: {each.why}" for each in self.scenarios if not each.has_result]
        return lacking[0] if len(lacking) == len(self.scenarios) else ""


class Runner(Protocol):
    """What runs trials (:class:`Trials`, or a stand-in in a test)."""

    def run(self, target: str, options: Sequence[str] = ()) -> Trial:
        """Run what is at ``target`` once."""
        ...


class Trials:
    """A warm process that runs trials. A context manager.

    :param options: of pytest, for all of them, such as ``--hil-lab=qualification``.
    """

    def __init__(self, options: Sequence[str] = (), *, seconds: float = TRIAL_SECONDS) -> None:
        self._options = list(options)
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._busy = False
        self._temporary: TemporaryFolder | None = None

    def __enter__(self) -> Trials:
        self._temporary = TemporaryFolder("hil-trials-")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(interrupted=self._busy)
        if self._temporary is not None:
            self._temporary.close()

    @property
    def folder(self) -> Path:
        """Where what is run may be written; it is there while this is entered."""
        assert self._temporary is not None
        return self._temporary.path

    def run(self, target: str, options: Sequence[str] = ()) -> Trial:
        """Run what is at ``target`` once, as `hil run` would; what it recorded is not kept.

        :raises InfrastructureError: the process cannot be started, or ends in the middle of it.
        """
        process = self._started()
        reports = self.folder / "reports"
        arguments = [
            *(target, f"--rootdir={Path.cwd()}", f"--basetemp={self.folder / 'tmp'}"),
            *(f"--hil-reports={reports}", "--hil-store=none", *QUIET),
            *(*self._options, *options),
        ]
        assert process.stdin is not None
        self._busy = True
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps({"arguments": arguments}).encode() + b"\n")
            process.stdin.flush()
        try:
            said = json.loads(self._answer(process))
        finally:
            shutil.rmtree(reports, ignore_errors=True)
        self._busy = False
        found = tuple(map(Found.from_json, said["scenarios"]))
        return Trial(found, said["trouble"], said["flashes"], said["seconds"], said["meant_wrongly"])

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "harness.plugin.trials", str(self._log)]
            pipe = subprocess.PIPE
            self._process = spawn(command, environ=os.environ, stdin=pipe, stdout=pipe)
        return self._process

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _answer(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], self._seconds)
        line = process.stdout.readline() if ready else b""
        if line.endswith(b"\n"):
            return line
        self._end(interrupted=True)
        said = self._log.read_text(encoding="utf-8", errors="replace").strip() if self._log.exists() else ""
        why = "ended in the middle of it" if ready else f"did not end within {self._seconds:g} s"
        raise InfrastructureError(f"A trial {why}. {said[-500:]}".strip())

    def _end(self, *, interrupted: bool) -> None:
        """End the process; one that runs a trial undoes first what it did."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        if interrupted:
            end_in_order([process])
        else:
            wait_for_end(process)
