"""`hil scenario`: what check, new and schema print; and campaigns of `hil run` by their names."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli.campaigns import Targets, campaign_names, campaign_of
from harness.cli.scenario import app, files_of
from harness.errors import ConfigurationError

GOOD = "about: x\nsource: y\nrequirements: [R-1]\nover: [{a: lands}, {a: unchanged}]\nsteps:\n"
GOOD += "  - flash: unsigned\n    promise: $a\n  - reset\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HIL_INVENTORY", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "testplans").mkdir()
    (tmp_path / "testplans" / "good.scenario.yaml").write_text(GOOD, encoding="utf-8")
    return tmp_path


def hil(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_check_tells_what_there_is(folder: Path) -> None:
    assert hil("check", "testplans") == "testplans/good.scenario.yaml: nothing wrong; 2 steps, 2 variants\n"
    assert json.loads(hil("check", "testplans", "-o", "json")) == {
        "scenarios": [
            {
                "file": "testplans/good.scenario.yaml",
                "name": "good",
                "about": "x",
                "requirements": ["R-1"],
                "variants": ["lands", "unchanged"],
                "fixtures": ["flash"],
                "steps": ["flash", "reset"],
            }
        ],
        "errors": [],
    }


def test_check_tells_all_that_is_wrong_in_all_files(folder: Path) -> None:
    for name in ("one", "two"):
        (folder / f"{name}.scenario.yaml").write_text(
            "about: x\nsource: y\nsteps: [rest]\n", encoding="utf-8"
        )
    with pytest.raises(ConfigurationError) as caught:
        hil("check", ".")
    assert [line.partition(": ")[0] for line in caught.value.message.splitlines()] == [
        "one.scenario.yaml:3",
        "two.scenario.yaml:3",
    ]
    done = CliRunner().invoke(app, ["check", ".", "-o", "json"])
    assert len(json.loads(done.stdout)["errors"]) == 2
    assert isinstance(done.exception, ConfigurationError)
    with pytest.raises(ConfigurationError, match="no scenario file"):
        (folder / "empty").mkdir()
        hil("check", "empty")


def test_new_writes_a_file_that_is_good(folder: Path) -> None:
    assert hil("new", "testplans/mine/first") == (
        "testplans/mine/first.scenario.yaml: try `hil run testplans/mine/first.scenario.yaml`\n"
    )
    assert json.loads(hil("new", "second", "--requirement", "R-2", "-o", "json")) == {
        "file": "second.scenario.yaml"
    }
    told = json.loads(hil("check", "second.scenario.yaml", "-o", "json"))
    assert told["scenarios"][0]["requirements"] == ["R-2"]
    with pytest.raises(ConfigurationError, match="already"):
        hil("new", "second")


def test_schema_for_people_and_for_editors() -> None:
    text = hil("schema")
    assert "flash: Flash image and record everything that is needed to judge it.\n    flash: image\n" in text
    assert "    activate: flag (optional, default true)\n" in text
    assert "`" not in text.partition("Keys of a file")[0]
    schema = json.loads(hil("schema", "-o", "json"))
    assert schema["required"] == ["about", "source", "steps"]
    assert any("push" in step.get("properties", ()) for step in schema["$defs"]["step"]["anyOf"])


def test_files_and_campaigns_are_completed(folder: Path) -> None:
    assert files_of("testplans/g") == ["testplans/good.scenario.yaml"]
    for name in ("soak", "short"):
        (folder / "testplans" / f"{name}.campaign.yaml").write_text("about: x\n", encoding="utf-8")
    assert campaign_names("s") == ["short", "soak"]
    assert campaign_names("so") == ["soak"]


def test_campaigns_are_told_from_files_and_folders(folder: Path) -> None:
    path = folder / "testplans" / "short.campaign.yaml"
    path.write_text(
        "about: x\nscenarios: good.scenario.yaml\nlab: rack7\nallow_blocked: .\n", encoding="utf-8"
    )
    assert campaign_of(["testplans", "x.py::test"], None) == Targets(["testplans", "x.py::test"])
    assert campaign_of(["short"], 5) == Targets(
        ["testplans/good.scenario.yaml"],
        ["--hil-campaign=testplans/short.campaign.yaml", "--hil-seed=5"],
        ["testplans"],
        "rack7",
    )
    with pytest.raises(ConfigurationError) as caught:
        campaign_of(["shrt"], None)
    assert "Did you mean 'short'?" in caught.value.hint
    with pytest.raises(ConfigurationError, match="is a campaign, which is run by itself"):
        campaign_of(["short", "testplans"], None)


def test_a_soak_is_run_by_its_name(project) -> None:
    project.write("def test_reset(card):\n    card.reset()\n", "test_plan.py")
    (project.folder / "testplans").mkdir()
    path = project.folder / "testplans" / "short.campaign.yaml"
    path.write_text(
        "about: x\nscenarios: ../test_plan.py\ndevices: one\norder: random\nduration: 0.1 s\n", "utf-8"
    )
    run = project.hil("run", "short", "-o", "json", "--seed", "5")
    assert run.code == 0, run.text
    told = json.loads(run.stdout)
    campaign = told["campaign"]
    assert campaign | {"seconds": 0, "ran": 0, "left": {}} == {
        "campaign": "short",
        "file": "testplans/short.campaign.yaml",
        "order": "random",
        "seed": 5,
        "rounds": campaign["ran"],
        "seconds": 0,
        "planned": campaign["ran"],
        "ran": 0,
        "left": {},
        "ended": "the duration of 0.1 s is over",
        "partial": False,
    }
    assert not campaign["left"]
    assert [each["name"] for each in told["scenarios"]] == [
        f"test_plan.py::test_reset[one/card0-round{number}]" for number in range(1, campaign["ran"] + 1)
    ]
    assert "campaign short: random order, seed 5, rounds for 0.1 s" in run.stderr
    assert "PARTIAL" not in run.stderr
    project.assert_nothing_left()
