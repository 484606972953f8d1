"""What `hil status` keeps of its looks to judge the last one by: what was so before, and since when."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harness.record.clock import HARNESS_TIME

if TYPE_CHECKING:
    from harness.judgement.records import Record

R = TypeVar("R", bound="Record")
#: Records of earlier looks that are kept, so that one who watches for days is not slowed down by the first.
_KEPT: Final = 20_000


class Remembered:
    """The records of looks, nothing of which is written anywhere. Used by several threads.

    A look at all systems is judged anew each time, by its own records and by those of earlier looks. Of looks
    that found the same one after the other the first and the last are kept: they say since when it is so, and
    those between them no more.
    """

    def __init__(self, kept: int = _KEPT) -> None:
        self._most = kept
        self._looks: list[list[Record]] = []
        self._count = 0
        self._lock = threading.Lock()

    @property
    def records(self) -> list[Record]:
        """The records, in order."""
        return list(chain.from_iterable(self._looks))

    def add(self, record: R) -> R:
        """Keep ``record``; return it numbered, with its time."""
        with self._lock:
            self._count += 1
            numbered = replace(record, seq=self._count, time=HARNESS_TIME())
            if not self._looks:
                self._looks.append([])
            self._looks[-1].append(numbered)
        return numbered

    @contextmanager
    def look(self) -> Iterator[None]:
        """Have what is added meanwhile be one look at all systems."""
        self._looks.append([])
        yield
        if len(self._looks) > 2:
            before, middle, last = map(_found, self._looks[-3:])
            if before == middle == last:
                del self._looks[-2]
        while len(self._looks) > 1 and sum(map(len, self._looks[:-1])) > self._most:
            del self._looks[0]


def _found(look: list[Record]) -> dict[Hashable, list[Any]]:
    """Return what a look found, subject by subject: systems are asked at the same time, in no order."""
    from harness.judgement.records import Claim, Completion, Intent, Observation

    found: dict[Hashable, list[Any]] = {}
    asked: dict[int, Hashable] = {}
    for record in look:
        about: Hashable
        match record:
            case Intent():
                asked[record.seq] = about = record.subject
                said: Any = record.operation, record.parameters
            case Completion():
                about, said = asked.get(record.intent), (record.how, record.error)
            case Claim():
                about, said = record.subject, (record.reporter, record.statement)
            case Observation():
                about, said = record.subject, (record.probe, record.values)
            case _:
                about, said = None, record
        found.setdefault(about, []).append(said)
    return found
