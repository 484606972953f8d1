"""Explorations at once: parts of one budget, seeds of their own, one end for all, nothing left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from support.processes import alive, wait_until, with_environment
from support.sums import ENDS, FAILS, STAYS, opened

from harness.errors import ConfigurationError, InfrastructureError
from harness.scenarios.exploration import Budget, Interrupted
from harness.scenarios.explored_at_once import SEEDS_APART, ExploredAtOnce

TESTS = Path(__file__).parents[1]
#: More than can be used up in a test.
ENDLESS = Budget(1 << 40, 3600.0, 1 << 40)


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where processes find what they explore, and have their temporary folders."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    return tmp_path


@pytest.fixture
def logs(place: Path) -> Path:
    """What was added by each process."""
    folder = place / "logs"
    folder.mkdir()
    return folder


def added(logs: Path) -> dict[str, list[str]]:
    """Return what each process added."""
    return {log.name: log.read_text().splitlines() for log in logs.glob("[0-9]*")}


def none_left(place: Path) -> bool:
    return not list((place / "tmp").iterdir())


def test_each_has_a_process_of_its_own_and_a_part_of_the_budget(place: Path, logs: Path) -> None:
    with ExploredAtOnce(partial(opened, logs), 3) as at_once:
        found = at_once.explore(Budget(200, 60.0, 31), seed=5)
    done = added(logs)
    assert len(done) == 3
    assert str(os.getpid()) not in done
    numbers = [number for each in done.values() for number in each]
    assert (found.steps, found.updates) == (len(numbers), numbers.count("3"))
    assert found.updates == 31, "the wear is used up, and not exceeded"
    assert max(each.count("3") for each in done.values()) == 11
    assert (found.reason, found.seed, found.jobs, found.interrupted) == ("", 5, 3, False)
    assert not any(alive(int(pid)) for pid in done)
    assert none_left(place)


def test_the_seeds_are_apart_and_do_the_same_once_more(place: Path, logs: Path) -> None:
    with ExploredAtOnce(partial(opened, logs), 2) as at_once:
        at_once.explore(Budget(100, 60.0, 100), seed=5)
    at_once_did = sorted(added(logs).values())
    for log in logs.iterdir():
        log.unlink()
    alone = []
    for seed in (5, 5 + SEEDS_APART):
        with opened(logs) as explorable:
            explorable.explored(Budget(50, 60.0, 50), seed=seed)
        alone += added(logs).values()
        (logs / str(os.getpid())).unlink()
    assert at_once_did == sorted(alone)
    assert alone[0] != alone[1]


def test_they_can_explore_again(logs: Path) -> None:
    with ExploredAtOnce(partial(opened, logs), 2) as at_once:
        assert [at_once.explore(Budget(some, 60.0, some), seed=1).steps for some in (20, 31)] == [20, 31]
    assert len(added(logs)) == 2


def test_what_one_finds_ends_the_others_and_its_seed_finds_it_again(place: Path, logs: Path) -> None:
    told: list[int] = []
    with ExploredAtOnce(partial(opened, logs, limit=43, only_one=True), 2) as at_once:
        found = at_once.explore(ENDLESS, seed=5, told=told.append)
    assert found.reason == "the sum is more than 43"
    made = sum(map(len, added(logs).values()))
    assert found.steps in (made - 1, made, made + 1), "what the other did is counted; it ended amid a step"
    assert found.seed in (5, 5 + SEEDS_APART)
    assert told == sorted(told)
    assert none_left(place)
    with opened(logs, limit=43) as explorable:
        again = explorable.explored(ENDLESS, seed=found.seed)
    assert (again.counterexample, again.reason) == (found.counterexample, found.reason)


def test_the_seed_that_is_told_is_that_of_who_found_it(logs: Path) -> None:
    """With its part of the steps the first finds nothing."""
    limit, part, wear = 43, 400, 10_000

    def alone(seed: int) -> str:
        with opened(logs, limit=limit) as explorable:
            return explorable.explored(Budget(part, 60.0, wear), seed=seed).reason

    seed = next(seed for seed in range(1, 50) if alone(seed + SEEDS_APART) and not alone(seed))
    with ExploredAtOnce(partial(opened, logs, limit=limit), 2) as at_once:
        found = at_once.explore(Budget(2 * part, 60.0, 2 * wear), seed=seed)
    assert (found.seed, found.reason) == (seed + SEEDS_APART, f"the sum is more than {limit}")


def test_an_error_of_one_ends_all_and_is_as_it_was(place: Path, logs: Path) -> None:
    with (
        pytest.raises(InfrastructureError, match="the lab is gone") as error,
        ExploredAtOnce(partial(opened, logs, number=FAILS), 2) as at_once,
    ):
        at_once.explore(ENDLESS, seed=5)
    assert (error.value.hint, error.value.exit_code) == ("look for it", 3)
    assert none_left(place)


def test_what_cannot_be_opened_is_told_before_anything_is_explored(place: Path) -> None:
    with (
        pytest.raises(ConfigurationError, match="there is no logs") as error,
        ExploredAtOnce(partial(opened, place / "logs"), 2),
    ):
        pytest.fail("it was entered")
    assert (error.value.hint, error.value.exit_code) == ("make it", 2)
    assert none_left(place)


def test_one_that_ends_by_itself_is_an_error_with_its_last_words(place: Path, logs: Path) -> None:
    with (
        pytest.raises(InfrastructureError, match=r"ended in the middle of it\. these are its last words"),
        ExploredAtOnce(partial(opened, logs, number=ENDS), 2) as at_once,
    ):
        at_once.explore(ENDLESS, seed=5)
    assert none_left(place)


def test_ctrl_c_ends_all_with_what_they_have_come_to(place: Path, logs: Path) -> None:
    def ctrl_c(steps: int) -> None:
        if steps > 100:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted) as end, ExploredAtOnce(partial(opened, logs), 2) as at_once:
        at_once.explore(ENDLESS, seed=5, told=ctrl_c)
    found, done = end.value.found, added(logs)
    numbers = [number for each in done.values() for number in each]
    assert found.interrupted
    assert (found.steps, found.updates, found.reason) == (len(numbers), numbers.count("3"), "")
    assert not any(alive(int(pid)) for pid in done)
    assert none_left(place)


def test_nothing_is_left_of_them_where_who_started_them_is_killed(place: Path, logs: Path) -> None:
    script = (
        "import sys, pathlib, functools\n"
        "from support.sums import STAYS, opened\n"
        "from harness.scenarios.exploration import Budget\n"
        "from harness.scenarios.explored_at_once import ExploredAtOnce\n"
        "logs = pathlib.Path(sys.argv[1])\n"
        "with ExploredAtOnce(functools.partial(opened, logs, number=STAYS), 2) as at_once:\n"
        "    at_once.explore(Budget(1 << 40, 3600.0, 1 << 40), seed=1)\n"
    )
    mark = f"TMPDIR={place / 'tmp'}"
    parent = subprocess.Popen([sys.executable, "-c", script, str(logs)])
    try:
        wait_until(
            lambda: sum(str(STAYS) in each for each in added(logs).values()) == 2, "two that do not look up"
        )
    finally:
        parent.kill()
        assert parent.wait() == -signal.SIGKILL
    wait_until(lambda: not with_environment(mark), "all processes to end")
    wait_until(lambda: none_left(place), "the folder to be removed")
