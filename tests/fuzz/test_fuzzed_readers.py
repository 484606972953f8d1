"""Every reader of untrusted bytes, short form: kept inputs and a few hundred mutated ones for each.

`make fuzz` runs the same with a million. HIL_FUZZ_SEED chooses other inputs; a failure names its seed.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

import pytest
from support.fuzz.documents import clean_up
from support.fuzz.engine import CORPUS, Target, corpus_of, examine, fuzz
from support.fuzz.mutate import JsonMutator, Mutator, TextMutator
from support.fuzz.targets import ALL, BY_NAME

SEED = int(os.environ.get("HIL_FUZZ_SEED", "1"))


@pytest.fixture(scope="session", autouse=True)
def without_files() -> Iterator[None]:
    """Remove the files that readers were given."""
    yield
    clean_up()


targets = pytest.mark.parametrize("target", ALL, ids=lambda target: target.name)


@targets
def test_kept_inputs_are_read_as_they_should_be(target: Target) -> None:
    """Good inputs, every input that once broke the reader, and those that are too long to keep."""
    for name, data in [("good", seed) for seed in target.seeds()] + corpus_of(target):
        try:
            examine(target, data)
        except AssertionError as broken:
            raise AssertionError(f"{target.name}, {name}: {broken}") from broken
    for data in target.hard():
        examine(target, data)


@targets
def test_mutated_inputs_break_no_reader(target: Target) -> None:
    report = fuzz(target, target.short, SEED)
    found = "\n".join(map(str, report.findings))
    assert not report.findings, f"HIL_FUZZ_SEED={SEED}: {found}"
    assert len(report.outcomes) > 1, "whatever it is given, the same becomes of it: nothing is tested"


def test_kept_inputs_belong_to_a_reader_and_are_small() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} <= BY_NAME.keys()
    assert all(file.stat().st_size <= 1 << 16 for file in CORPUS.rglob("*") if file.is_file())


def test_same_seed_gives_the_same_inputs() -> None:
    seen: list[list[bytes]] = []
    for seed in (5, 5, 6):
        seen.append([])
        fuzz(BY_NAME["kernel-log"], 50, seed, on_input=seen[-1].append)
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.parametrize("mutator", [Mutator([b"word"]), TextMutator(["word"]), JsonMutator(["word"])])
def test_mutators_change_what_they_are_given(mutator: Mutator) -> None:
    good = b'{"a": [1, {"word": "b"}]}\nline: 12\n'
    rng = random.Random(SEED)
    assert sum(mutator.mutate(rng, good, [good]) != good for _ in range(200)) > 100


def test_engine_finds_what_is_wrong_with_a_reader() -> None:
    """Undeclared exceptions, broken invariants, and what takes too long, each told once."""

    def careless(data: bytes) -> str:
        text = data.decode("latin-1")
        if "\x80" in text:
            raise KeyError(text[:9])
        assert "\xff" not in text, "a byte of all ones was taken for a letter"
        end = time.process_time() + (0.03 if "\x7f" in text else 0.0)
        while time.process_time() < end:
            pass
        return "read"

    target = Target("careless", lambda: [b"good"], careless, cpu_seconds=0.02)
    found = sorted(finding.why for finding in fuzz(target, 600, SEED).findings)
    assert [why.split()[0] for why in found] == ["a", "took", "undeclared"]
    assert "KeyError at test_fuzzed_readers.py" in found[2]
