"""The search finds the change as often as it says, whatever flakes; and what it goes over is in order."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ConfigurationError, InfrastructureError
from harness.lab.known_defects import known_defects
from harness.scenarios.bisected import Bisected, Point, alone, builds, defects, releases
from harness.scenarios.bisection import APART, Count, Search, bisect, certainly_more, measure_ends
from harness.scenarios.trials import Found, Sight, Trial


def searched(
    size: int, change: int, low: float, high: float, confidence: float, rng: random.Random
) -> Search | None:
    """Search with a flaky oracle; None where its ends could not be told apart."""

    def look(at: int) -> bool:
        return rng.random() < (high if at >= change else low)

    search = Search(size)
    for _ in measure_ends(search, look, 3):
        pass
    if certainly_more(search.counts[-1], search.counts[0]) < APART:
        return None
    for _ in bisect(search, look, confidence=confidence, runs=150):
        pass
    return search


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(1, size - 1))))
def test_without_flakes_it_always_finds_the_change_in_few_runs(drawn: tuple[int, int]) -> None:
    size, change = drawn
    search = searched(size, change, 0.0, 1.0, 0.99, random.Random(1))
    assert search is not None
    assert search.likeliest()[0] == change
    assert search.likeliest()[1] >= 0.99
    between = sum(count.runs for count in search.counts[1:-1])
    assert between <= 12 + size.bit_length()


def test_it_is_right_as_often_as_it_says() -> None:
    """Rates as its prior has them; 80 searches with a confidence of 0.9 may be wrong in some 8.

    Were each right with a probability of 0.9 only, more than 17 wrong ones would come once in a thousand
    times; the seed is fixed, so that it either holds or does not.
    """
    rng = random.Random(20)
    wrong = done = 0
    claimed = 0.0
    while done < 80:
        low, high = sorted((rng.betavariate(0.5, 0.5), rng.betavariate(0.5, 0.5)))
        change = rng.randrange(1, 6)
        search = searched(6, change, low, high, 0.9, rng)
        if search is None or search.likeliest()[1] < 0.9:
            continue
        done += 1
        claimed += search.likeliest()[1]
        wrong += search.likeliest()[0] != change
    assert wrong <= 17
    assert claimed / done >= 0.9


def test_ends_are_run_more_often_while_they_cannot_be_told_apart() -> None:
    rng = random.Random(3)
    search = Search(2)
    steps = list(measure_ends(search, lambda at: rng.random() < (0.5 if at else 0.0), 3))
    assert 6 < len(steps) <= 48
    assert certainly_more(search.counts[1], search.counts[0]) >= APART
    same = Search(2)
    assert len(list(measure_ends(same, lambda at: True, 3))) == 48
    assert certainly_more(same.counts[1], same.counts[0]) < APART


def test_points_without_a_result_are_passed_over_and_the_answer_says_among_what() -> None:
    search = Search(6)
    for _ in measure_ends(search, lambda at: at > 0, 5):
        pass
    for _ in bisect(search, lambda at: None if at in (2, 3) else at >= 3, confidence=0.99, runs=200):
        pass
    assert search.untestable == {2, 3}
    assert search.range_of(0.9) == [2, 3, 4]
    assert search.likeliest()[1] < 0.9


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        (Count(0, 10), 0.0, 0.278),
        (Count(5, 10), 0.237, 0.763),
        (Count(10, 10), 0.722, 1.0),
        (Count(), 0.0, 1.0),
    ],
)
def test_intervals_are_those_of_wilson(count: Count, low: float, high: float) -> None:
    """From tables of the score interval for ten tries."""
    assert count.interval == pytest.approx((low, high), abs=0.001)


def test_releases_are_in_their_order_or_against_it() -> None:
    assert [point.name for point in releases("corrected", "stx-8")] == ["corrected", "head", "stx-8"]
    assert [point.name for point in releases("stx-8", "head")] == ["stx-8", "head"]
    assert releases("stx-8", "head")[1].options == ("--hil-release=head",)
    with pytest.raises(ConfigurationError, match="release"):
        releases("stx-9", "head")
    with pytest.raises(ConfigurationError, match="good and bad"):
        releases("head", "head")


def test_defects_are_those_that_the_bad_release_has_and_the_good_one_has_not() -> None:
    first, second = ({d["name"] for d in known_defects(name)} for name in ("stx-8", "stx-2020-07"))
    points = defects("stx-8", "stx-2020-07+copy-dropped")
    assert {point.name for point in points[1:]} == (second - first) | {"copy-dropped"}
    assert points[0] == Point("stx-8", ("--hil-release=stx-8",))
    assert points[2].options == (*points[1].options, f"--hil-defect={points[2].name}")
    assert alone(points, 2).options == ("--hil-release=stx-8", f"--hil-defect={points[2].name}")
    with pytest.raises(ConfigurationError, match="no known defect that stx-8 has not"):
        defects("stx-8", "stx-8")
    with pytest.raises(ConfigurationError, match="no known defect 'copy-droped'"):
        defects("stx-8", "stx-8+copy-droped")


def test_builds_are_the_lines_of_a_list_or_the_files_of_a_folder(tmp_path: Path) -> None:
    for name in ("1.bin", "2.bin", "3.bin"):
        (tmp_path / name).touch()
    flashed = builds(tmp_path, "1.bin", "3.bin", "", "build")
    assert [point.options for point in flashed] == [
        (f"--hil-image=build={tmp_path / name}",) for name in ("1.bin", "2.bin", "3.bin")
    ]
    listed = tmp_path / "list.txt"
    listed.write_text("# oldest first\nv1\nv2\n\nv3\n", encoding="utf-8")
    points = builds(listed, "v3", "v2", "deploy --to 'lab 7' {}", "build")
    assert [point.command for point in points] == [
        ("deploy", "--to", "lab 7", "v3"),
        ("deploy", "--to", "lab 7", "v2"),
    ]
    assert points[0].options == ()
    with pytest.raises(ConfigurationError, match="does not say where a build goes"):
        builds(listed, "v1", "v3", "deploy", "build")
    with pytest.raises(ConfigurationError, match="build"):
        builds(listed, "v1", "v4", "", "build")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        builds(tmp_path / "none.txt", "v1", "v3", "", "build")


class Lab:
    """Tells of each run by its options what ``finds`` says: a state."""

    def __init__(self, finds: Callable[[str], str]) -> None:
        self._finds = finds

    def run(self, target: str, options: Sequence[str] = ()) -> Trial:
        state = self._finds(options[-1] if options else "")
        verdicts = {"rsu": "STALE"} if state == "not-as-stated" else {}
        return Trial((Found("x", "", state, "why", (), "", "AS_INTENDED", verdicts),))


ROW = [Point(str(at), (str(at),)) for at in range(9)]


@pytest.mark.parametrize("sights", [[], [Sight("STALE", "rsu")]])
def test_a_bisection_finds_the_point(sights: list[Sight]) -> None:
    told: list[int] = []
    lab = Lab(lambda at: "not-as-stated" if int(at) >= 6 else "as-stated")
    work = Bisected(lab, "x", ROW, sights, lambda step, count: told.append(count.runs))
    work.run(runs=3, confidence=0.99, tries=100)
    assert work.search.likeliest()[0] == 6
    assert len(told) == len(work.steps) > 6


@pytest.mark.parametrize(
    ("finds", "why"),
    [
        (
            lambda at: "not-as-stated",
            r"the good end, 0, shows something .* \(24 of 24 runs of 0, 24 of 24 of 8\)",
        ),
        (lambda at: "as-stated", r"the bad end, 8, does not show something"),
        (lambda at: "not-as-stated" if at == "0" else "as-stated", "the bad end, 8, does not show"),
    ],
)
def test_ends_that_do_not_show_what_they_should_are_told(finds: Callable[[str], str], why: str) -> None:
    with pytest.raises(ConfigurationError, match=f"There is nothing to bisect: {why}"):
        Bisected(Lab(finds), "x", ROW).run(runs=3, confidence=0.99, tries=100)


def test_an_end_without_a_result_is_told_once_it_was_tried_again() -> None:
    silent = Bisected(Lab(lambda at: "INFRA"), "x", ROW)
    with pytest.raises(InfrastructureError, match="0 gave no result: INFRA: why"):
        silent.run(runs=3, confidence=0.99, tries=100)
    states = iter(["INFRA"])
    once = Lab(lambda at: next(states, "not-as-stated" if int(at) >= 2 else "as-stated"))
    work = Bisected(once, "x", ROW)
    work.run(runs=3, confidence=0.99, tries=100)
    assert work.search.likeliest()[0] == 2


def test_a_build_is_put_into_effect_before_it_is_looked_at_and_once_in_a_row(tmp_path: Path) -> None:
    log, now = tmp_path / "log", tmp_path / "now"
    command = f"sh -c 'echo {{}} >> {log}; echo {{}} > {now}'"
    listed = tmp_path / "list"
    listed.write_text("1\n2\n3\n", encoding="utf-8")
    lab = Lab(lambda at: "not-as-stated" if int(now.read_text()) >= 2 else "as-stated")
    work = Bisected(lab, "x", builds(listed, "1", "3", command, "build"))
    work.run(runs=2, confidence=0.9, tries=50)
    assert work.search.likeliest()[0] == 1
    put = log.read_text(encoding="utf-8").split()
    assert all(one != other for one, other in pairwise(put))
    listed.write_text("1\n2\n", encoding="utf-8")
    failing = Bisected(lab, "x", builds(listed, "1", "2", "sh -c 'echo no {} >&2; exit 3'", "build"))
    with pytest.raises(InfrastructureError, match="ended with 3: no 1"):
        failing.run(runs=2, confidence=0.9, tries=50)
