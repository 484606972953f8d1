"""What a journal has of trials that are done outlives a disk that is full when they are gone on from."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import InfrastructureError
from harness.scenarios.kill_matrix import Trial
from harness.scenarios.qualification_journal import QualificationJournal
from harness.scenarios.sweep_journal import JOURNAL, Journal


@contextmanager
def full() -> Iterator[None]:
    """Have files take 4 bytes at most, as a disk of which so many are free; Python ignores SIGXFSZ."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_of_a_qualification(tmp_path: Path) -> None:
    trial = Trial("stale", ())
    begun = QualificationJournal(tmp_path, "same")
    begun.take_up([], fresh=False)
    begun.add(trial, "")
    with full(), pytest.raises(InfrastructureError, match="cannot be kept"):
        QualificationJournal(tmp_path, "same").take_up([], fresh=False)
    again = QualificationJournal(tmp_path, "same")
    again.take_up([], fresh=False)
    assert again.trials == {"stale": trial}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "killers.json",
        "qualification.json",
        "trials.jsonl",
    ]


def test_of_a_sweep(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "update", {})
    journal.begin()
    with (tmp_path / JOURNAL).open("a") as file:
        file.write(f'{json.dumps({"trial": 1})}\n{{"cut off')
    with full():
        journal.begin()
    journal.begin()
    _, trial = (tmp_path / JOURNAL).read_text().splitlines()
    assert json.loads(trial) == {"trial": 1}
    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL]
