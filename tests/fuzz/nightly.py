"""`make fuzz`: a million inputs for every reader of untrusted bytes, each reader in a process of its own.

A finding is written to the corpus, where the short form of `make test` meets it from then on. What a
process was reading when it hung or died is taken from a file that it shares with this one.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.fuzz.documents import clean_up
from support.fuzz.engine import CORPUS, HANG_SECONDS, Finding, fuzz
from support.fuzz.targets import ALL, BY_NAME

#: Room for an input and its number, shared with the process that reads it.
_SHARED = 1 << 22
#: A process that shows no new input for so long is stuck where its own alarm cannot reach.
_STUCK = 3 * HANG_SECONDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="in all (default: a million)")
    parser.add_argument("--seed", type=int, default=None, help="default: a new one, which is printed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--only", action="append", choices=sorted(BY_NAME), help="may be repeated")
    parser.add_argument("--worker", nargs=3, metavar=("TARGET", "INPUTS", "FILE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        return _work(asked.worker[0], int(asked.worker[1]), Path(asked.worker[2]), asked.seed)
    seed = random.SystemRandom().randrange(1 << 31) if asked.seed is None else asked.seed
    targets = [target for target in ALL if not asked.only or target.name in asked.only]
    shares = sum(target.share for target in targets)
    due = [(target.name, round(asked.inputs * target.share / shares)) for target in targets]
    again = f"make fuzz ARGS='--seed {seed} --inputs {asked.inputs}'"
    print(f"{asked.inputs} inputs for {len(due)} readers, seed {seed}; again: {again}", flush=True)
    began = time.monotonic()
    findings = _run(due, seed, asked.jobs)
    for finding in findings:
        folder = CORPUS / finding.target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / finding.name).write_bytes(finding.data)
        print(f"\n{finding}\n  kept as {(folder / finding.name).relative_to(CORPUS.parents[2])}")
    total = sum(inputs for _, inputs in due)
    print(f"\n{total} inputs in {time.monotonic() - began:.0f} s, {len(findings)} findings, seed {seed}")
    return 1 if findings else 0


@dataclass
class _Worker:
    """The process of one target."""

    name: str
    inputs: int
    seed: int
    folder: Path
    shared: mmap.mmap = field(init=False)
    process: subprocess.Popen[str] = field(init=False)
    seen: bytes = b""
    moved: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        path = self.folder / self.name
        path.write_bytes(bytes(_SHARED))
        with path.open("r+b") as file:
            self.shared = mmap.mmap(file.fileno(), _SHARED)
        words = ["--worker", self.name, str(self.inputs), str(path), "--seed", str(self.seed)]
        self.process = subprocess.Popen(
            [sys.executable, __file__, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def is_stuck(self) -> bool:
        """Return whether the same input has been read for too long."""
        if (now := self.shared[:8]) != self.seen:
            self.seen, self.moved = now, time.monotonic()
        return time.monotonic() - self.moved > _STUCK

    def findings(self, stuck: bool) -> list[Finding]:
        """Return what the process that has ended (or is stuck and ended now) has found."""
        if stuck:
            self.process.kill()
        out, err = self.process.communicate()
        if not stuck and self.process.returncode == 0:
            report = json.loads(out.splitlines()[-1])
            print(_row(report), flush=True)
            return [Finding(self.name, bytes.fromhex(data), why) for data, why in report["findings"]]
        last = self.shared[16 : 16 + int.from_bytes(self.shared[8:16], "little")]
        why = f"still busy after {_STUCK:g} s" if stuck else f"the process ended: {err.strip()[-300:]}"
        return [Finding(self.name, last, why)]


def _run(due: list[tuple[str, int]], seed: int, jobs: int) -> list[Finding]:
    findings: list[Finding] = []
    waiting = sorted(due, key=lambda pair: pair[1], reverse=True)
    running: list[_Worker] = []
    with tempfile.TemporaryDirectory(prefix="hil-fuzz-") as folder:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    running.append(_Worker(*waiting.pop(0), seed, Path(folder)))
                for worker in list(running):
                    stuck = worker.is_stuck()
                    if stuck or worker.process.poll() is not None:
                        running.remove(worker)
                        findings += worker.findings(stuck)
                time.sleep(0.1)  # between two looks at processes that take minutes
        finally:
            for worker in running:
                worker.process.kill()
                worker.process.communicate()
    return findings


def _row(report: dict[str, object]) -> str:
    inputs, seconds = int(str(report["inputs"])), float(str(report["seconds"]))
    return (
        f"{report['target']:14} {inputs:>8} inputs {seconds:7.1f} s {inputs / max(seconds, 0.001):>7.0f}/s"
        f"  slowest {report['slowest']:.2f} s  {report['outcomes']:>5} outcomes"
        f"  {len(list(report['findings']))} findings"  # type: ignore[call-overload]
    )


def _work(name: str, inputs: int, path: Path, seed: int) -> int:
    """Be the process of one target: print its report as one line of JSON."""
    with path.open("r+b") as file:
        shared = mmap.mmap(file.fileno(), _SHARED)
    number = 0

    def note(data: bytes) -> None:
        nonlocal number
        number += 1
        kept = data[: _SHARED - 16]
        shared[:16] = number.to_bytes(8, "little") + len(kept).to_bytes(8, "little")
        shared[16 : 16 + len(kept)] = kept

    try:
        report = fuzz(BY_NAME[name], inputs, seed, on_input=note)
    finally:
        clean_up()
    plain = {
        "target": name,
        "inputs": report.inputs,
        "seconds": report.seconds,
        "slowest": report.slowest,
        "outcomes": len(report.outcomes),
        "findings": [(finding.data.hex(), finding.why) for finding in report.findings],
    }
    print(json.dumps(plain))
    return 0


if __name__ == "__main__":
    sys.exit(main())
