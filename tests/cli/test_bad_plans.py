"""Plans that cannot be meant: each command says so at once, exits with 2, and gives nothing that is green."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Project

STEPS = {
    "circle": "use: other.scenario.yaml",
    "other": "use: circle.scenario.yaml",
    "unknown": "flsh: A/csk0",
    "good": "flash: A/csk0\n    promise: lands",
}
CIRCLE = "the files go in a circle: circle.scenario.yaml uses other.scenario.yaml uses circle.scenario.yaml"
UNKNOWN = "unknown step; did you mean 'flash'?"
ENDS = ("--good", "corrected", "--bad", "stx-8")
DEFECT = ("--defect", "fpgasupdate-exits-0", "--lab", "small")


@pytest.fixture
def plans(project: Project) -> Project:
    for name, step in STEPS.items():
        text = f"about: x\nsource: y\ngiven: {{card: {{root: none}}}}\nsteps:\n  - {step}\n"
        (project.folder / f"{name}.scenario.yaml").write_text(text, encoding="utf-8")
    return project


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("scenario", "check", "circle.scenario.yaml"), CIRCLE),
        (("run", "circle.scenario.yaml"), CIRCLE),
        (("run", "unknown.scenario.yaml", "-n", "2"), UNKNOWN),
        (("shrink", "unknown.scenario.yaml"), UNKNOWN),
        (("shrink", "good.scenario.yaml", "--device", "tow"), "There is no card or host 'tow'"),
        (("shrink", "good.scenario.yaml", "--save", "no/x.scenario.yaml"), "there is no folder no that can"),
        (("bisect", "circle.scenario.yaml", *ENDS), CIRCLE),
        (("bisect", "good.scenario.yaml", *ENDS, "-k", "nothing"), "No scenario matches."),
        (("qualify", "unknown.scenario.yaml", *DEFECT), UNKNOWN),
    ],
    ids=lambda given: "-".join(given[:2]) if isinstance(given, tuple) else "",
)
def test_it_is_told_at_once_with_what_helps(plans: Project, words: tuple[str, ...], said: str) -> None:
    ended = plans.hil(*words)
    assert ended.code == 2, ended.text
    assert said in ended.text
    assert ended.text.count("hint: ") == 1, "told once"
    plans.assert_nothing_left()


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two"])
def test_the_json_of_a_run_with_a_file_that_cannot_be_read_is_not_green(
    plans: Project, workers: tuple[str, ...]
) -> None:
    ended = plans.hil("run", "unknown.scenario.yaml", "good.scenario.yaml", "-o", "json", *workers)
    assert ended.code == 2
    said = json.loads(ended.stdout)
    assert (said["as_stated"], said["exit_codes"]) == (False, [2])
