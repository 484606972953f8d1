"""Feeds a reader of untrusted bytes with mutated inputs and holds each answer to the reader's invariants."""

from __future__ import annotations

import hashlib
import random
import re
import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from support.fuzz.mutate import Mutator

CORPUS = Path(__file__).parents[2] / "fuzz/corpus"
#: Seconds of processor time that one input may cost; processor time, because the machine may be busy.
CPU_SECONDS = 1.0
#: Seconds after which an input counts as one that hangs.
HANG_SECONDS = 20.0
#: How much one input may add to the most memory that the process ever had.
MEMORY = 64 << 20
#: Inputs that showed something new and are mutated further.
_POOL = 200


class Hang(BaseException):
    """An input was still being read after :data:`HANG_SECONDS`; no reader may catch this."""


@dataclass(frozen=True)
class Target:
    """One reader (or a few that belong together) and what must hold whatever it is given.

    ``seeds``: good inputs to begin from. ``check``: reads one input and returns a word for what became
    of it; raises for an invariant that does not hold. ``mutator``: makes the mutator that knows the
    structure. ``share``: of the inputs of a nightly run. ``short``: inputs of the short form.
    ``hard``: inputs too long for the corpus, which are read as they are.
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    check: Callable[[bytes], str]
    mutator: Callable[[], Mutator] = Mutator
    share: float = 1.0
    short: int = 400
    cpu_seconds: float = CPU_SECONDS
    hard: Callable[[], Sequence[bytes]] = tuple


@dataclass(frozen=True)
class Finding:
    """An input that broke an invariant, and how."""

    target: str
    data: bytes
    why: str

    @property
    def name(self) -> str:
        return f"found-{hashlib.sha256(self.data).hexdigest()[:12]}"

    def __str__(self) -> str:
        shown = repr(self.data if len(self.data) <= 300 else self.data[:300] + b"...")
        return f"{self.target}: {self.why}\n  {len(self.data)} bytes: {shown}"


@dataclass
class Report:
    """What a run of one target gave. ``outcomes``: the words of ``check`` -> how often."""

    target: str
    seed: int
    inputs: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


def corpus_of(target: Target) -> list[tuple[str, bytes]]:
    """Return the kept inputs of a target, by name."""
    folder = CORPUS / target.name
    return [(path.name, path.read_bytes()) for path in sorted(folder.glob("*"))] if folder.is_dir() else []


def examine(target: Target, data: bytes) -> tuple[str, float]:
    """Read one input; return what became of it and the processor seconds that it took.

    :raises AssertionError: an invariant does not hold, or the reader raised what it does not declare.
    """
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.thread_time()
    try:
        with _watched():
            outcome = target.check(data)
    except AssertionError:
        raise
    except Hang:
        raise AssertionError(f"still busy after {HANG_SECONDS:g} s") from None
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        raise AssertionError(f"undeclared {type(error).__name__} at {where}: {str(error)[:200]}") from error
    seconds = time.thread_time() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) << 10
    assert seconds <= target.cpu_seconds, f"took {seconds:.1f} s of processor time"
    assert grown <= MEMORY, f"took {grown >> 20} MiB of memory"
    return outcome, seconds


@contextmanager
def _watched() -> Iterator[None]:
    """Break off what hangs. The timer of whoever runs us (a test's time limit) goes on afterwards."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hang

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, ring)
    left, _ = signal.setitimer(signal.ITIMER_REAL, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 0.01) if left else 0.0)
        signal.signal(signal.SIGALRM, handler)


def fuzz(
    target: Target,
    inputs: int,
    seed: int,
    *,
    on_input: Callable[[bytes], None] = lambda data: None,
    stop_after: int = 20,
) -> Report:
    """Feed ``inputs`` mutated inputs to ``target``; the same ``seed`` gives the same ones on the same code.

    :param on_input: told of each input before it is read. :param stop_after: findings that are enough.
    """
    rng = random.Random(f"{seed} {target.name}")
    mutator = target.mutator()
    pool = [*target.seeds(), *(data for _, data in corpus_of(target))]
    first, longest = len(pool), max(4096, *map(len, pool))
    report = Report(target.name, seed)
    known: set[str] = set()
    began = time.monotonic()
    for _ in range(inputs):
        data = mutator.mutate(rng, rng.choice(pool), pool)
        on_input(data)
        report.inputs += 1
        try:
            outcome, seconds = examine(target, data)
        except AssertionError as broken:
            why = str(broken)
            if _kind(why) not in map(_kind, (finding.why for finding in report.findings)):
                report.findings.append(Finding(target.name, data, why))
            if len(report.findings) >= stop_after:
                break
            continue
        report.outcomes[outcome] += 1
        report.slowest = max(report.slowest, seconds)
        if outcome not in known and len(data) <= longest:
            known.add(outcome)
            if len(pool) >= first + _POOL:
                pool.pop(first)
            pool.append(data)
    report.seconds = time.monotonic() - began
    return report


def _kind(why: str) -> str:
    """Return what tells one kind of finding from another: its words without numbers and values."""
    return re.sub(r"[0-9]+|'[^']*'|\{[^}]*\}", "#", why)[:70]
