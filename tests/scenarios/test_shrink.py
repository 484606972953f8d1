"""Shrinking keeps the verdict, spends no more than its budget, and tells what is flaky."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import ConfigurationError, InfrastructureError
from harness.plugin import steps  # noqa: F401 -- it knows them all
from harness.scenarios.files import load_scenario
from harness.scenarios.plain import plain_variants
from harness.scenarios.shrink import Budget, Shrinking, count_steps
from harness.scenarios.trials import Found, Sight, Trial

LIES = Sight("FALSE_SUCCESS", "fpgasupdate")


def found(shows: bool, *, state: str = "", verdicts: dict[str, str] | None = None, **more: Any) -> Found:
    told = {"fpgasupdate": "FALSE_SUCCESS" if shows else "MATCH"} if verdicts is None else verdicts
    said = {"reasons": (), "asserted": "", "why": "", "outcome": "AS_INTENDED"} | more
    return Found(
        "x", "one/card0", state=state or ("not-as-stated" if shows else "as-stated"), verdicts=told, **said
    )


class Lab:
    """Runs a file: what it finds is decided by ``finds``, from what the file holds."""

    def __init__(self, finds: Callable[[dict[str, Any]], Found]) -> None:
        self._finds = finds
        self.options: list[Sequence[str]] = []

    def run(self, target: str, options: Sequence[str] = ()) -> Trial:
        self.options.append(options)
        (data,) = plain_variants(load_scenario(Path(target)))
        one = self._finds(data)
        stated = data["expect"].get("verdicts", {}) == {k: v for k, v in one.verdicts.items() if v != "MATCH"}
        if one.has_result and not one.asserted:
            one = Found(**{**_fields(one), "state": "as-stated" if stated else "not-as-stated"})
        return Trial((one,), flashes=2, seconds=0.01)


def _fields(one: Found) -> dict[str, Any]:
    return {name: getattr(one, name) for name in Found.__slots__}


STEPS: list[Any] = [
    {"flash": name, "promise": "lands"} for name in ("A/csk0", "unsigned", "A/csk1", "root-key-A")
]
DATA = {"about": "x", "source": "y", "given": {"card": {"root": "none"}}, "steps": STEPS, "expect": {}}


def shrinking(tmp_path: Path, lab: Lab, **budget: Any) -> Shrinking:
    return Shrinking(lab, tmp_path / "candidate.scenario.yaml", Budget(**budget))


def with_the_key(data: dict[str, Any]) -> Found:
    return found("root-key-A" in str(data["steps"]))


def test_what_is_left_is_what_shows_it_and_is_expected(tmp_path: Path) -> None:
    lab = Lab(with_the_key)
    made = shrinking(tmp_path, lab).run([DATA])
    assert made.data["steps"] == [{"flash": "root-key-A", "promise": "lands"}]
    assert made.data["given"] == {}
    assert made.data["expect"] == {"verdicts": {"fpgasupdate": "FALSE_SUCCESS"}}
    assert (made.kept, made.before, made.after, made.ended) == ((LIES,), 4, 1, "minimal")
    assert (made.shown, made.runs, made.flaky) == (2, 2, False)
    assert made.progress.flashes == 2 * made.progress.tries == 2 * len(lab.options)
    assert lab.options[0] == []  # any card at first, and then the one that showed it
    assert set(map(tuple, lab.options[1:])) == {("--hil-device=one/card0",)}


def test_a_candidate_is_run_once_however_often_it_comes(tmp_path: Path) -> None:
    made = shrinking(tmp_path, Lab(with_the_key)).run([DATA])
    assert made.progress.cached > 0


def test_the_first_row_that_shows_it_is_the_one(tmp_path: Path) -> None:
    other = {**DATA, "steps": STEPS[:1]}
    assert shrinking(tmp_path, Lab(with_the_key)).run([other, DATA]).data["steps"] == STEPS[3:]


def test_what_is_to_be_kept_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"does not show BREACH; it shows AS_INTENDED, fpgasupdate=FALSE"
    ):
        shrinking(tmp_path, Lab(with_the_key)).run([DATA], [Sight("BREACH")])
    with pytest.raises(
        ConfigurationError, match="not as intended and true; it shows AS_INTENDED, every report"
    ):
        shrinking(tmp_path, Lab(lambda data: found(shows=False))).run([DATA])


def test_a_fault_that_never_came_is_told_where_nothing_diverges(tmp_path: Path) -> None:
    """It is not as stated for that alone, which no verdict says."""
    never = found(shows=False, reasons=("the fault sigterm at copying was NOT_REACHED on one/card0",))
    with pytest.raises(ConfigurationError, match="every report true, the fault sigterm at copying was NOT_R"):
        shrinking(tmp_path, Lab(lambda data: never)).run([DATA])


def test_what_cannot_be_run_is_no_finding(tmp_path: Path) -> None:
    blocked = Lab(lambda data: found(shows=True, state="BLOCKED", why="no registry"))
    with pytest.raises(InfrastructureError, match="gave no result here: BLOCKED: no registry"):
        shrinking(tmp_path, blocked).run([DATA])


@pytest.mark.parametrize(
    "spoilt",
    [{"asserted": "it runs another"}, {"reasons": ("the fault x was NOT_REACHED",)}, {"state": "INFRA"}],
)
def test_a_candidate_that_shows_it_for_another_reason_is_not_taken(
    tmp_path: Path, spoilt: dict[str, Any]
) -> None:
    def finds(data: dict[str, Any]) -> Found:
        return found(shows=True, **({} if len(data["steps"]) > 2 else spoilt))

    assert shrinking(tmp_path, Lab(finds)).run([DATA]).after == 3


def test_the_budget_ends_it_with_the_best_so_far(tmp_path: Path) -> None:
    made = shrinking(tmp_path, Lab(with_the_key), tries=3, confirm=1).run([DATA])
    assert made.ended == "tries"
    assert 1 < made.after < 4
    assert "root-key-A" in str(made.data["steps"])


def test_an_interruption_leaves_the_best_so_far(tmp_path: Path) -> None:
    tries = iter(range(100))

    def finds(data: dict[str, Any]) -> Found:
        if next(tries) == 8:
            raise KeyboardInterrupt
        return with_the_key(data)

    made = shrinking(tmp_path, Lab(finds)).run([DATA])
    assert (made.ended, made.runs) == ("interrupted", 0)
    assert made.after < 4
    assert made.data["expect"] == {"verdicts": {"fpgasupdate": "FALSE_SUCCESS"}}


def test_what_comes_and_goes_is_told_with_its_rate(tmp_path: Path) -> None:
    seeded = random.Random(1)

    def finds(data: dict[str, Any]) -> Found:
        return found("root-key-A" in str(data["steps"]) and seeded.random() < 0.6)

    made = shrinking(tmp_path, Lab(finds)).run([DATA])
    assert made.data["steps"] == STEPS[3:]
    assert made.flaky
    assert 0 < made.shown < made.runs == 12


def test_the_worst_is_kept_where_nothing_is_said() -> None:
    assert found(shows=True, outcome="BREACH").worst() == Sight("BREACH")
    both = {"rsu": "STALE", "fpgasupdate": "LOST", "fpgainfo": "UNVERIFIABLE"}
    assert found(shows=True, verdicts=both).worst() == Sight("LOST", "fpgasupdate")
    assert found(shows=True, verdicts={"fpgainfo": "UNVERIFIABLE"}, outcome="FAILED").worst() == Sight(
        "FAILED"
    )
    assert found(shows=False).worst() is None


def test_sights_are_read_as_they_are_written() -> None:
    for text in ("BREACH", "FALSE_SUCCESS", "log:sysinv=FALSE_SUCCESS"):
        assert str(Sight.parse(text)) == text
    with pytest.raises(ConfigurationError, match="FALSE_SUCESS"):
        Sight.parse("FALSE_SUCESS")
    with pytest.raises(ConfigurationError, match="no verdict"):
        Sight.parse("fpgasupdate=BREACH")


def test_a_scenario_is_plain_again_with_its_row_and_other_files_in_place(tmp_path: Path) -> None:
    (tmp_path / "part.scenario.yaml").write_text(
        "about: p\nsource: s\nsteps:\n  - flash: $image\n    promise: unchanged 0x11\n", encoding="utf-8"
    )
    path = tmp_path / "all.scenario.yaml"
    path.write_text(
        "about: a\nsource: s\nover: [{image: unsigned}, {image: A/csk0}]\nsteps:\n"
        "  - use: part.scenario.yaml\n    with: {image: $image}\n  - reset\n"
        "  - refused: [{upload: $image, fields: {name: $$x}}]\n    as: it\n",
        encoding="utf-8",
    )
    first, second = plain_variants(load_scenario(path))
    assert first["steps"] == [
        {"flash": "unsigned", "promise": "unchanged 0x11"},
        "reset",
        {"refused": [{"upload": "unsigned", "fields": {"name": "$$x"}}], "as": "it"},
    ]
    assert second["steps"][0] == {"flash": "A/csk0", "promise": "unchanged 0x11"}
    assert count_steps(first["steps"]) == 4
