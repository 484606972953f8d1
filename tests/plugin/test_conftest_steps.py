"""Steps that a conftest.py registers: known to `hil scenario` as to pytest, and told where they are wrong."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli.scenario import app
from harness.errors import ConfigurationError
from harness.scenarios.steps import STEPS

STEP = '''
from harness.scenarios.steps import is_step

@is_step("greet", of="card", name="text")
def greet(card, name: str = "you") -> None:
    """Greet somebody."""
    card.report()
'''
SCENARIO = "about: x\nsource: y\nsteps:\n  - greet: them\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project, after which no step of it is known any more."""
    monkeypatch.delenv("HIL_INVENTORY", raising=False)
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "testplans" / "mine"
    mine.mkdir(parents=True)
    steps, modules = dict(STEPS), set(sys.modules)
    yield mine
    STEPS.clear()
    STEPS.update(steps)
    for name in set(sys.modules) - modules:
        if name.startswith("testplans"):
            del sys.modules[name]


def hil(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_they_are_known_where_files_are_checked_and_in_the_schema(folder: Path) -> None:
    (folder / "conftest.py").write_text(STEP)
    (folder / "it.scenario.yaml").write_text(SCENARIO)
    assert "nothing wrong; 1 step" in hil("check", "testplans/mine")
    schema = json.loads(hil("schema", "-o", "json"))
    (greet,) = [each for each in schema["$defs"]["step"]["anyOf"] if "greet" in each.get("required", ())]
    assert greet["description"] == "Greet somebody."
    assert "greet: Greet somebody." in hil("schema", "testplans/mine")


def test_one_beside_another_file_is_not_known_and_the_nearest_spelling_is_told(folder: Path) -> None:
    (folder.parent / "other").mkdir()
    (folder.parent / "other" / "conftest.py").write_text(STEP)
    (folder / "it.scenario.yaml").write_text(SCENARIO)
    with pytest.raises(ConfigurationError, match=r"it.scenario.yaml:4: steps.0.greet: unknown step"):
        hil("check", "testplans/mine")
    (folder / "conftest.py").write_text(STEP)
    (folder / "it.scenario.yaml").write_text(SCENARIO.replace("greet", "gret"))
    with pytest.raises(ConfigurationError, match=r"steps.0.gret: unknown step; did you mean 'greet'\?"):
        hil("check", "testplans/mine")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere_at_all\n", "testplans/mine/conftest.py:1: cannot be imported"),
        ("x = 1\ndef broken(:\n", "testplans/mine/conftest.py:2: cannot be imported"),
        (STEP.replace('name="text"', 'name="txt"'), "no kind of values 'txt' in the step 'greet'"),
        (STEP.replace('name="text"', 'nam="text"'), "no argument 'nam' in the step 'greet'"),
        (
            STEP.replace('"greet"', '"flash"'),
            "conftest.py:4: cannot be imported, so its steps are not known: Two",
        ),
    ],
    ids=["import", "syntax", "kind", "argument", "taken"],
)
def test_what_is_wrong_with_one_is_told_with_its_place(folder: Path, text: str, said: str) -> None:
    (folder / "conftest.py").write_text(text)
    (folder / "it.scenario.yaml").write_text(SCENARIO)
    with pytest.raises(ConfigurationError) as caught:
        hil("check", "testplans/mine")
    assert said in caught.value.message
    assert "conftest.py" in caught.value.message
    assert caught.value.hint
