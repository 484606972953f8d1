"""Scenario files as data: what may stand in them, how values and files come in, what is said of errors."""

import inspect
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.json_schema import broken

from harness.errors import ConfigurationError
from harness.judgement.records import Promise
from harness.plugin import steps as _fill_the_steps  # noqa: F401
from harness.scenarios.execution import Execution
from harness.scenarios.file_model import CardState, json_schema
from harness.scenarios.files import Call, ScenarioFile, load_scenario
from harness.scenarios.given import KEYS
from harness.scenarios.kinds import KINDS
from harness.scenarios.steps import STEPS
from harness.scenarios.writing import scenario_text, write_new
from harness.yaml_text import load_plain

PROJECT = Path(__file__).parents[2]
IMAGES = ["A/csk0", "A/csk1", "unsigned", "root-key-A", "root-key-B", "cancel-A-csk0"]
HEAD = "about: What is done.\nsource: a document\n"


@pytest.fixture
def read(tmp_path: Path):
    """Writes a scenario, and files that it uses, and reads it."""

    def read(text: str, **others: str) -> ScenarioFile:
        for name, content in {"it": text, **others}.items():
            (tmp_path / f"{name}.scenario.yaml").write_text(content, encoding="utf-8")
        return load_scenario(tmp_path / "it.scenario.yaml", IMAGES)

    return read


@pytest.fixture
def rejected(read, tmp_path: Path):
    """Reads a scenario that is wrong; returns what is said of it, without the folder."""

    def rejected(text: str, **others: str) -> list[str]:
        with pytest.raises(ConfigurationError) as caught:
            read(text, **others)
        assert caught.value.hint
        return caught.value.message.replace(f"{tmp_path}/", "").splitlines()

    return rejected


def taken(calls: tuple[Call, ...]) -> list[tuple[str, dict[str, Any]]]:
    return [(call.step.name, dict(call.arguments)) for call in calls]


def test_steps_become_calls_with_their_arguments_and_places(read) -> None:
    found = read(
        HEAD
        + "requirements: [R-1]\n"
        + "given: {card: {root: A, cancelled: [0]}, needs: power}\n"
        + "steps:\n"
        + "  - fault: sigterm\n    at: programming\n"
        + "  - flash: unsigned\n    promise: unchanged 0x11 0x12\n    activate: false\n"
        + "  - reset\n"
        + "expect: {outcome: FAILED, verdicts: {fpgasupdate: LOST}}\n"
    )
    (variant,) = found.variants
    assert (found.name, found.requirements) == ("it", ("R-1",))
    assert variant.given.card is not None
    assert variant.given.card.model_dump(exclude_unset=True) == {"root": "A", "cancelled": (0,)}
    assert variant.given.needs == ("power",)
    assert variant.expect.model_dump() == {"outcome": "FAILED", "verdicts": {"fpgasupdate": "LOST"}}
    assert taken(variant.calls) == [
        ("fault", {"action": "sigterm", "at": "programming"}),
        (
            "flash",
            {
                "image": "unsigned",
                "promise": Promise("unchanged", ("0x11", "0x12"), "a document"),
                "activate": False,
            },
        ),
        ("reset", {}),
    ]
    assert [call.place.rpartition(":")[2] for call in variant.calls] == ["6", "8", "11"]
    assert {call.step.fixture for call in found.calls} == {"faults", "flash"}


def test_rows_of_values_make_variants(read) -> None:
    found = read(
        HEAD
        + "over:\n  - {client: oci-once, outcome: FAILED}\n"
        + "  - {id: again, client: oci-renew, outcome: AS_INTENDED}\n"
        + "steps:\n  - push: tiny\n    client: $client\n    as: one\n"
        + "  - check: $one\n    verdicts: {$client: MATCH}\n"
        + "expect: {outcome: $outcome}\n"
    )
    assert [each.id for each in found.variants] == ["oci-once-FAILED", "again"]
    assert [each.expect.outcome for each in found.variants] == ["FAILED", "AS_INTENDED"]
    assert [each.calls[0].arguments["client"] for each in found.variants] == ["oci-once", "oci-renew"]
    assert found.variants[1].calls[1].arguments == {"result": "$one", "verdicts": {"oci-renew": "MATCH"}}


def test_a_text_that_begins_as_a_value_does_is_written_with_two_signs(read) -> None:
    (call,) = read(HEAD + "over: [{a: 1}]\nsteps:\n  - label: {one: $a, two: $$a, three: a$a}\n").calls
    assert call.arguments == {"labels": {"one": "1", "two": "$a", "three": "a$a"}}


def test_another_file_is_used_with_values_and_its_results(read) -> None:
    found = read(
        HEAD + "steps:\n  - use: key.scenario.yaml\n    with: {key: root-key-B}\n  - apply: $image\n",
        key="about: x\nsource: y\nsteps:\n  - upload: $key\n    as: image\n",
    )
    assert taken(found.variants[0].calls) == [
        ("upload", {"image": "root-key-B"}),
        ("apply", {"image": "$image"}),
    ]
    assert "key.scenario.yaml:4" in found.variants[0].calls[0].place


def test_steps_within_steps(read) -> None:
    found = read(HEAD + "steps:\n  - attempt:\n      - upload: unsigned\n      - boot\n  - look\n")
    assert taken(found.variants[0].calls[0].arguments["act"]) == [
        ("upload", {"image": "unsigned"}),
        ("boot", {}),
    ]
    assert [call.step.name for call in found.calls] == ["attempt", "upload", "boot", "look"]


def test_what_a_system_does_in_a_cloud_its_controller_or_a_subcloud_does(read) -> None:
    """So that no other system is started beside the cloud."""
    on_subcloud = "  - subcloud: subcloud1\n    do: [{label: {site: lab}}]\n"
    assert read(HEAD + "steps:\n" + on_subcloud).fixtures == {"cloud"}
    assert read(HEAD + "steps:\n  - upload: unsigned\n" + on_subcloud).fixtures == {"cloud"}
    assert read(HEAD + "steps:\n  - label: {site: lab}\n  - reset\n").fixtures == {"system", "flash"}


def upload(system: "Recorder", image: str) -> str:
    return f"uuid of {image}"


def apply(system: "Recorder", image: str) -> None:
    system.done.append(image)


class Recorder:
    """Stands for a system: remembers what is done to it."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def label(self, device: str = "", /, **labels: str) -> None:
        self.done.append((device, labels))


def test_steps_are_taken_with_what_is_handed_to_them(read, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subcloud hands its system to the steps within it; results are known to later steps."""
    monkeypatch.setitem(STEPS, "label", replace(STEPS["label"], call=Recorder.label))
    monkeypatch.setitem(STEPS, "upload", replace(STEPS["upload"], call=upload, kinds={"image": "image"}))
    monkeypatch.setitem(STEPS, "apply", replace(STEPS["apply"], call=apply, kinds={"image": "result"}))
    controller, one = Recorder(), Recorder()
    cloud = SimpleNamespace(subclouds={"one": one}, bench=SimpleNamespace(name="cloud"))
    found = read(
        HEAD + "steps:\n  - subcloud: one\n    do:\n      - label: {a: 1}\n        device: w/card1\n"
        "      - upload: unsigned\n        as: image\n  - apply: $image\n"
    )
    Execution({"cloud": cloud, "system": controller}).run(found.variants[0].calls)
    assert (one.done, controller.done) == ([("w/card1", {"a": "1"})], ["uuid of unsigned"])
    unknown = read(HEAD + "steps:\n  - subcloud: on\n    do: [look]\n")
    with pytest.raises(ConfigurationError, match=r"it.scenario.yaml:4: subcloud: There is no subcloud 'on'"):
        Execution({"cloud": cloud, "system": controller}).run(unknown.variants[0].calls)


STEPS_AT = HEAD + "steps:\n"
WRONG = {
    "unknown key": (HEAD + "step: []\n", "step: unknown key; did you mean 'steps'?"),
    "no steps": (HEAD, "steps: is missing"),
    "empty": (HEAD + "steps: []\n", "steps: is empty"),
    "unknown step": (
        STEPS_AT + "  - flsh: unsigned\n",
        ":4: steps.0.flsh: unknown step; did you mean 'flash'?",
    ),
    "step not first": (
        STEPS_AT + "  - promise: lands\n    flash: unsigned\n",
        "the name of a step stands first",
    ),
    "no step": (STEPS_AT + "  - 7\n", "steps.0: is no step"),
    "unknown image": (
        STEPS_AT + "  - flash: unsignd\n    promise: lands\n",
        ":4: steps.0.flash: no image recipe is called 'unsignd'; did you mean 'unsigned'?",
    ),
    "unknown promise": (STEPS_AT + "  - flash: unsigned\n    promise: refused\n", "is no promise: lands"),
    "argument missing": (STEPS_AT + "  - flash: unsigned\n", "steps.0.promise: is missing"),
    "unknown argument": (
        STEPS_AT + "  - flash: unsigned\n    promise: lands\n    actvate: false\n",
        ":6: steps.0.actvate: unknown key; did you mean 'activate'?",
    ),
    "takes nothing": (STEPS_AT + "  - boot: now\n", "steps.0.boot: takes nothing"),
    "flash point": (
        STEPS_AT + "  - fault: sigterm\n    at: programing\n",
        ":5: steps.0.at: 'programing' is not allowed; did you mean 'programming'?",
    ),
    "flash fault": (STEPS_AT + "  - fault: sigtrm\n    at: start\n", "did you mean 'sigterm'?"),
    "push point": (
        STEPS_AT + "  - push: tiny\n    client: skopeo\n    at: before:manifst-put\n    action: restart\n",
        ":6: steps.0.at: There is no fault point 'before:manifst-put' in a push or pull. Did you mean",
    ),
    "push action": (
        STEPS_AT + "  - push: tiny\n    client: skopeo\n    at: before:manifest-put\n    action: restrt\n",
        "Did you mean 'restart'?",
    ),
    "client": (STEPS_AT + "  - push: tiny\n    client: skopo\n", "did you mean 'skopeo'?"),
    "content": (STEPS_AT + "  - push: smal\n    client: skopeo\n", "did you mean 'small'?"),
    "outcome": (
        HEAD + "steps: [boot]\nexpect: {outcome: FALED}\n",
        "expect.outcome: 'FALED' is not allowed; did",
    ),
    "verdict": (
        HEAD + "steps: [boot]\nexpect: {verdicts: {rsu: FALSE_SUCESS}}\n",
        "expect.verdicts.rsu: 'FALSE_SUCESS' is not allowed; did you mean 'FALSE_SUCCESS'?",
    ),
    "root key": (
        HEAD + "steps: [reset]\ngiven: {card: {root: Z}}\n",
        "given.card.root: no root key is called 'Z'",
    ),
    "csk": (
        HEAD + "steps: [reset]\ngiven: {card: {cancelled: [200]}}\n",
        "given.card.cancelled.0: should be less",
    ),
    "capability": (HEAD + "steps: [reset]\ngiven: {needs: powr}\n", "did you mean 'power'?"),
    "about no system": (HEAD + "steps: [reset]\ngiven: {lab: x}\n", "given.lab: is about a StarlingX system"),
    "no such value": (STEPS_AT + "  - apply: $image\n", "steps.0.apply: $image is neither a value of `over`"),
    "a later result": (
        STEPS_AT + "  - upload: unsigned\n    as: image\n  - apply: $imagge\n",
        "named by a step before with `as`; did you mean 'image'?",
    ),
    "no reference": (STEPS_AT + "  - apply: image\n", "'image' is no result: write $NAME"),
    "twice the same row": (
        HEAD + "over: [{a: 1}, {a: 1}]\nsteps: [reset]\n",
        "over.1: has the id '1' as another",
    ),
    "no row": (HEAD + "over: [1]\nsteps: [reset]\n", "over.0: is no row of values"),
    "no table": (HEAD + "over: 1\nsteps: [reset]\n", "over: should be a list of rows"),
    "in a circle": (
        STEPS_AT + "  - use: it.scenario.yaml\n",
        "the files go in a circle: it.scenario.yaml uses it",
    ),
    "no such file": (STEPS_AT + "  - use: no.scenario.yaml\n", "no.scenario.yaml cannot be read"),
    "inner step": (
        STEPS_AT + "  - attempt:\n      - upload: A/csk9\n",
        ":5: steps.0.attempt.0.upload: no image recipe is called 'A/csk9'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_its_place(rejected, name: str) -> None:
    text, said = WRONG[name]
    assert any(said in line for line in rejected(text)), rejected(text)


def test_all_that_is_wrong_is_told_once_in_both_files(rejected) -> None:
    lines = rejected(
        HEAD + "over: [{a: 1}, {a: 2}]\nsteps:\n  - flsh: x\n  - use: other.scenario.yaml\n",
        other="about: x\nsource: y\nsteps:\n  - rest\n  - use: it.scenario.yaml\n",
    )
    assert [line.partition(": ")[0] for line in lines] == [
        "it.scenario.yaml:5",
        "other.scenario.yaml:4",
        "other.scenario.yaml:5",
    ]
    assert "it.scenario.yaml uses other.scenario.yaml uses it.scenario.yaml" in lines[2]


def test_every_step_can_be_written_as_its_method_is() -> None:
    for name, step in STEPS.items():
        parameters = list(inspect.signature(step.call).parameters.values())[1:]
        assert step.kinds.keys() <= {each.name for each in parameters}, name
        assert set(step.kinds.values()) <= KINDS.keys(), name
        needed = {p.name for p in parameters if step.needs(p.name)} if parameters else set()
        assert needed <= step.kinds.keys(), f"{name} cannot be taken from a file"
        assert step.about, name


def test_the_state_of_a_card_is_said_as_in_python() -> None:
    assert set(CardState.model_fields) == set(KEYS)


def test_every_scenario_file_of_the_project_fits_the_schema_for_editors() -> None:
    schema = json_schema()
    files = sorted((PROJECT / "testplans").rglob("*.scenario.yaml"))
    assert files
    for path in files:
        assert broken(schema, load_plain(path.read_text(encoding="utf-8"))) == [], path
    assert broken(schema, {"about": "x", "source": "y", "steps": [{"flsh": "unsigned"}]})
    assert broken(schema, {"about": "x", "source": "y", "steps": ["boot"], "expect": {"outcome": "GOOD"}})


def test_a_new_file_is_a_good_one_and_overwrites_none(tmp_path: Path) -> None:
    path = tmp_path / "plans" / "mine.scenario.yaml"
    write_new(path, "R-1")
    found = load_scenario(path, ["A/csk0", "B/csk0"])
    assert (found.name, found.requirements, len(found.calls)) == ("mine", ("R-1",), 2)
    with pytest.raises(ConfigurationError, match="already"):
        write_new(path)


#: A text that begins with $ is written with two.
texts = st.text("abc $:#-'\"\n\\ä0", min_size=1).filter(lambda text: text.strip() and text[0] != "$")
flashes = st.fixed_dictionaries(
    {
        "flash": st.sampled_from(IMAGES),
        "promise": st.sampled_from(["lands", "unchanged", "unchanged 0x11", "factory"]),
    },
    optional={"activate": st.booleans(), "by": st.sampled_from(["fpgasupdate", "firmware-upload"])},
)
pushes = st.fixed_dictionaries(
    {"push": st.sampled_from(["tiny", "small"]), "client": st.sampled_from(["skopeo", "oci-once"])},
    optional={"tag": st.text("v1.", min_size=1), "before": st.booleans(), "as": st.text("xyz", min_size=1)},
)
labels = st.fixed_dictionaries({"label": st.dictionaries(st.text("ab", min_size=1), texts, min_size=1)})
#: The name of a step stands first.
steps = (flashes | pushes | labels).map(
    lambda step: dict(sorted(step.items(), key=lambda i: i[0] not in STEPS))
)
files = st.fixed_dictionaries(
    {"about": texts, "source": texts, "steps": st.lists(steps, min_size=1, max_size=5)},
    optional={
        "requirements": st.lists(st.text("R-1", min_size=1), min_size=1, max_size=3),
        "given": st.fixed_dictionaries(
            {
                "card": st.fixed_dictionaries(
                    {}, optional={"cancelled": st.lists(st.integers(0, 127), max_size=3)}
                )
            }
        ),
        "expect": st.fixed_dictionaries({"outcome": st.sampled_from(["FAILED", "BREACH", "AS_INTENDED"])}),
    },
)


@given(files)
@settings(max_examples=30, deadline=None)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]
) -> None:
    text = scenario_text(data)
    assert load_plain(text) == {key: value for key, value in data.items() if value}
    path = tmp_path_factory.getbasetemp() / "written.scenario.yaml"
    path.write_text(text, encoding="utf-8")
    (variant,) = load_scenario(path, IMAGES).variants
    assert len(variant.calls) == len(data["steps"])
    for call, step in zip(variant.calls, data["steps"], strict=True):
        main = call.arguments[call.step.main]
        assert main == step[call.step.name]
        assert call.result == step.get("as", "")
