"""A card that a scenario did not apply to is not read again for the next, unless it may be another now."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.scenarios.excluding import GOOD_FOR, Excluding
from harness.scenarios.given import Given
from harness.scenarios.prepare import OtherState, prepare

CARD = "bench/card0"
NO_ROOT, ROOT = Given(sr_root=""), Given(sr_root="5f0c" * 16)


class Bench:
    """A real card without a root key, and how often it was read."""

    def __init__(self) -> None:
        self.reads = 0
        self.root = ""
        self.turn: int | None = 0
        self.now = 1000.0
        self.excluding = Excluding(lambda card: self.turn, lambda: self.now)

    def truth(self) -> Any:
        self.reads += 1
        return SimpleNamespace(
            sr_root=self.root, sr_cancelled=frozenset(), flash_count=3, bmc_root="77698e" * 10
        )

    def applies(self, given: Given, card: str = CARD) -> bool:
        driver: Any = SimpleNamespace(name=card, truth=self.truth)
        try:
            with self.excluding.watched(card, given):
                prepare(driver, given, None)
        except OtherState as other:
            assert str(other).startswith(f"{card}: SR root entry hash is "), "the reason is told each time"
            return False
        return True


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_excluded_one_scenario_excludes_the_next_without_a_reading(bench: Bench) -> None:
    assert [bench.applies(ROOT) for _ in range(5)] == [False] * 5
    assert bench.reads == 1


def test_a_scenario_begins_on_no_card_that_was_not_read_for_it(bench: Bench) -> None:
    assert not bench.applies(ROOT)
    bench.root = "b0b0" * 16  # by a hand that knows of no lease
    assert not bench.applies(NO_ROOT), "it seemed to apply, was read anew, and does not"
    assert bench.reads == 2
    assert not bench.applies(NO_ROOT)
    assert bench.reads == 2, "what was read last counts"


def test_a_card_is_read_again_once_it_may_have_been_written_to(bench: Bench) -> None:
    assert not bench.applies(ROOT)
    bench.root, bench.turn = "5f0c" * 16, 1
    assert bench.applies(ROOT)


def test_a_reading_during_which_it_may_have_been_written_to_is_not_kept(bench: Bench) -> None:
    driver: Any = SimpleNamespace(name=CARD, truth=bench.truth)
    with pytest.raises(OtherState), bench.excluding.watched(CARD, ROOT):
        bench.turn = 1
        prepare(driver, ROOT, None)
    assert not bench.applies(ROOT)
    assert bench.reads == 2


def test_a_reading_is_good_for_a_while_only(bench: Bench) -> None:
    assert not bench.applies(ROOT)
    bench.now += GOOD_FOR
    bench.root = "5f0c" * 16
    assert bench.applies(ROOT)


def test_where_nobody_knows_who_writes_a_card_is_read_each_time(bench: Bench) -> None:
    bench.turn = None
    assert not bench.applies(ROOT)
    assert not bench.applies(ROOT)
    assert bench.reads == 2


def test_each_card_is_read_for_itself(bench: Bench) -> None:
    assert not bench.applies(ROOT)
    bench.root = "5f0c" * 16
    assert bench.applies(ROOT, "bench/card1")
