"""A history becomes a scenario file: all that was done is in it, and what cannot be is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ConfigurationError
from harness.judgement.records import (
    Fault,
    Intent,
    Record,
    RunEnded,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
    Setting,
    StepEnded,
    StepTaken,
    Subject,
)
from harness.plugin import steps  # noqa: F401 -- it knows them all
from harness.scenarios.export import NotExportable, export
from harness.scenarios.writing import save_scenario

CARD = Subject("card", "one/card0", "one")
LANDS = {"effect": "lands", "codes": [], "source": "UG 683519"}


def history(*records: Record, **options: Any) -> list[Record]:
    """Number the records of a run."""
    all_of_them = [RunStarted(run="r1", lab="small", options=options), *records, RunEnded()]
    return [replace(record, seq=at) for at, record in enumerate(all_of_them, start=1)]


def scenario(name: str, *records: Record, card: bool = True) -> list[Record]:
    return [
        ScenarioStarted(scenario=name, subject=CARD if card else None),
        *records,
        ScenarioEnded(scenario=name),
    ]


def taken(at: int, name: str, within: int | None = None, place: str = "", **arguments: Any) -> StepTaken:
    return StepTaken(seq=at, name=name, arguments=arguments, within=within, place=place)


def run_of(*records: Record, given: dict[str, Any] | None = None, card: bool = True) -> list[Record]:
    """A run of one scenario whose step records keep the numbers that they refer to each other by."""
    setting = [Setting(values=given)] if given else []
    return history(*scenario("t.py::test_x", *setting, *records, card=card))


def flash(image: str = "A/csk0", **more: Any) -> list[Record]:
    """A flash by a step; its number is told by its place, which is filled in by `placed`."""
    return [StepTaken(name="flash", arguments={"image": image, "promise": LANDS, **more}), StepEnded(step=0)]


def placed(records: Iterable[Record]) -> list[Record]:
    """Let each end of a step name the step before it, once all are numbered."""
    done: list[Record] = []
    for record in records:
        last = [each.seq for each in done if isinstance(each, StepTaken)]
        done.append(replace(record, step=last[-1]) if isinstance(record, StepEnded) else record)
    return done


def test_steps_given_and_sources_are_in_the_file() -> None:
    found = export(
        placed(run_of(*flash(activate=False), given={"card": {"root": "A"}, "device": "one/card0"}))
    )
    assert found.data["steps"] == [{"flash": "A/csk0", "promise": "lands", "activate": False}]
    assert found.data["given"] == {"card": {"root": "A"}}  # by name only where the run named it
    assert found.data["source"] == "UG 683519"
    assert found.options == ("--lab", "small")
    assert "what Python asserted by itself is not exported: t.py::test_x" in found.remarks


def test_a_device_is_named_where_the_scenario_named_it() -> None:
    given = {"device": "one/card0", "named": True}
    assert export(placed(run_of(*flash(), given=given))).data["given"] == {"devices": ["one/card0"]}


def test_what_python_did_without_a_step_becomes_one_where_there_is_one() -> None:
    found = export(
        placed(
            run_of(
                Fault(point="programming", action="sigint", subject=CARD, state="armed"),
                *flash(),
                Fault(point="programming", action="sigint", subject=CARD, state="undone"),
                Intent(operation="reset", subject=CARD, parameters={"kind": "bmcimg"}),
                given={"device": "one/card0"},
            )
        )
    )
    assert found.data["steps"] == [
        {"fault": "sigint", "at": "programming"},
        {"flash": "A/csk0", "promise": "lands"},
        "end-faults",
        "reset",
    ]


@pytest.mark.parametrize(
    ("record", "lacks"),
    [
        (
            Intent(operation="cancel-update", subject=CARD),
            "no step is recorded for the operation: cancel-update",
        ),
        (StepTaken(name="flash", arguments={"image": "x", "promise": LANDS, "no": 1}), "the no of flash"),
        (
            StepTaken(name="push", arguments={"content": {"unnamed": "ImageRecipe"}}),
            "has no name that a file",
        ),
        (StepTaken(name="upload", arguments={"image": "[redacted]"}), "holds a secret"),
        (StepTaken(name="at", arguments={"point": "copying"}), "was done by no step, or never begun"),
        (StepTaken(name="apply", arguments={}, place="RegionOne"), "past its vault"),
        (StepTaken(name="of-tomorrow"), "this version has no step 'of-tomorrow'"),
    ],
)
def test_what_lacks_is_told(record: Record, lacks: str) -> None:
    with pytest.raises(NotExportable, match="It cannot be exported; what lacks:") as caught:
        export(run_of(record, given={"device": "one/card0"}))
    assert lacks in caught.value.message


def test_a_history_without_steps_is_told_to_be_of_another_version() -> None:
    with pytest.raises(NotExportable, match="recorded by a version of hil that did not record these"):
        export(run_of(Intent(operation="flash", subject=CARD)))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
VALUES = ANY | st.sampled_from([{"result_of": 4}, {"result_of": "x"}, {"result_of": 99}, {"unnamed": []}])
ARGUMENTS = st.sampled_from(["image", "promise", "act", "labels", "name", "content", "within"])
STRANGE = st.builds(
    StepTaken,
    name=st.sampled_from(["flash", "apply", "refused", "push", "subcloud", "at", "no-step"]),
    arguments=st.dictionaries(ARGUMENTS, VALUES, max_size=4),
    within=st.none() | st.integers(0, 8),
    place=st.text(max_size=3),
) | st.builds(Setting, values=st.dictionaries(st.sampled_from(["card", "needs", "release", "device"]), ANY))


@settings(max_examples=60, deadline=None)
@given(st.lists(STRANGE | st.builds(StepEnded, step=st.integers(0, 9)), max_size=6), ANY)
def test_whatever_stands_in_a_history_is_exported_or_told(records: list[Record], option: Any) -> None:
    run = history(*scenario("t.py::x", *records), defects=option, release=option, irreversible=option)
    try:
        assert export(run).text()
    except ConfigurationError as error:
        assert error.message


def test_nothing_can_be_made_of_nothing() -> None:
    with pytest.raises(NotExportable, match="no scenario took a step"):
        export(run_of())


def test_steps_of_subclouds_and_steps_within_steps_stand_where_they_were_taken() -> None:
    run = run_of(
        Setting(values={"way": "rest"}),
        taken(0, "label", place="near", labels={"site": "1"}),  # 4
        StepEnded(step=4),
        taken(0, "unlabel", place="near", keys=["site"]),  # 6
        StepEnded(step=6),
        taken(0, "upload", image="A/csk0"),  # 8
        StepEnded(step=8),
        taken(0, "apply", image={"result_of": 8}, labels={"$odd": "$x"}),  # 10
        StepEnded(step=10),
        taken(0, "refused"),  # 12
        taken(0, "create-strategy", within=12, max_parallel=4),  # 13
        StepEnded(step=13, error={"kind": "device", "message": "no"}),
        StepEnded(step=12),
        taken(0, "delete", image={"result_of": 8}),  # 16
        StepEnded(step=16, error={"kind": "device", "message": "in use"}),
        taken(0, "look"),  # 18
        StepEnded(step=18),
        card=False,
    )
    assert export(run).data["steps"] == [
        {"subcloud": "near", "do": [{"label": {"site": "1"}}, {"unlabel": ["site"]}]},
        {"upload": "A/csk0", "as": "result1"},
        {"apply": "$result1", "labels": {"$odd": "$$x"}},
        {"refused": [{"create-strategy": None, "max_parallel": 4}]},
        {"attempt": [{"delete": "$result1"}]},  # it raised, and the scenario went on
        "look",
    ]


def test_scenarios_of_one_card_become_one_and_each_begins_as_it_did() -> None:
    first = scenario("a.py::one", Setting(values={"device": "one/card0"}), *flash("unsigned"))
    second = scenario(
        "a.py::two",
        Setting(values={"device": "one/card0", "card": {"root": "A", "cancelled": [0]}}),
        *flash(),
    )
    found = export(placed(history(*first, *second, campaign="soak", seed=7)))
    assert found.data["steps"] == [
        {"flash": "unsigned", "promise": "lands"},
        {"fit": "A", "cancelled": [0]},
        {"flash": "A/csk0", "promise": "lands"},
    ]
    assert "the campaign soak, seed 7," in found.data["about"]
    only = export(placed(history(*first, *second)), scenario="::two")
    assert only.data["given"] == {"card": {"root": "A", "cancelled": [0]}}
    with pytest.raises(ConfigurationError, match="No scenario of the run is called 'three'"):
        export(placed(history(*first, *second)), scenario="three")


def ended(name: str, state: str, *records: Record) -> list[Record]:
    """A scenario about the card that stated no state of it, and ended so."""
    about = Setting(values={"device": "one/card0"})
    return [*scenario(name, about, *records)[:-1], ScenarioEnded(scenario=name, state=state, reason="why")]


def test_what_follows_a_failed_scenario_begins_with_a_fresh_card_as_it_did() -> None:
    run = placed(
        history(
            *ended("a.py::failed", "INFRA", *flash("unsigned")),
            *ended("a.py::after", "BLOCKED", *flash()),
            *ended("a.py::last", "BLOCKED", *flash("A/csk1")),
        )
    )
    landed = [{"flash": image, "promise": "lands"} for image in ("unsigned", "A/csk0", "A/csk1")]
    assert export(run).data["steps"] == [landed[0], "fit", *landed[1:]]
    assert export(run, scenario="::after").data["steps"] == ["fit", landed[1]]
    assert export(run, scenario="::last").data["steps"] == [landed[2]]


def test_a_state_that_others_left_is_told_not_to_be_in_the_file() -> None:
    run = placed(history(*ended("a.py::0", "BLOCKED", *flash()), *ended("a.py::1", "BLOCKED", *flash())))
    told = "the state that its card was left in by what ran before is not in it: a.py::1"
    assert told in export(run, scenario="::1").remarks
    for with_its_beginning in ("::0", ""):
        remarks = export(run, scenario=with_its_beginning).remarks
        assert not [remark for remark in remarks if "left in" in remark]


def test_a_fault_that_did_not_come_to_its_point_is_told_to_be_so_again() -> None:
    fault = Fault(point="copying", action="note", subject=CARD, state="not-reached")
    found = export(placed(run_of(fault, *flash(), given={"device": "one/card0"})))
    assert "a fault did not come to its point, so that it is not as stated again: t.py::test_x" in (
        found.remarks
    )
    fired = export(placed(run_of(replace(fault, state="fired"), *flash(), given={"device": "one/card0"})))
    assert not [remark for remark in fired.remarks if "its point" in remark]


def test_systems_of_two_scenarios_do_not_become_one() -> None:
    each = [[Setting(values={"way": "rest"}), StepTaken(name="boot"), StepEnded(step=0)] for _ in range(2)]
    runs = [scenario(f"s.py::{at}", *records, card=False) for at, records in enumerate(each)]
    with pytest.raises(NotExportable, match="began with a system of its own"):
        export(placed(history(*runs[0], *runs[1])))


def test_defects_that_were_switched_on_are_options_and_the_file_can_be_read(tmp_path: Path) -> None:
    run = placed(run_of(*flash(), given={"device": "one/card0"}))
    first = run[0]
    assert isinstance(first, RunStarted)
    started = replace(first, options={"defects": ["copy-dropped"], "irreversible": []})
    found = export([started, *run[1:]])
    assert found.options == ("--lab", "small", "--defect", "copy-dropped")
    path = tmp_path / "again.scenario.yaml"
    save_scenario(path, found.text())
    assert path.read_text(encoding="utf-8").splitlines()[0] == (
        "# Made of the run r1 by `hil export`; done again by: hil run FILE --lab small --defect copy-dropped"
    )
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ConfigurationError, match="no name of a scenario file"):
        save_scenario(tmp_path / "again.yaml", found.text())
