"""`hil trace`: what is collected, what the index of runs knows of it, and what is said of wrong words."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli.trace import app, requirement_ids
from harness.errors import ConfigurationError


def test_what_is_no_requirement_and_no_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "testplans").mkdir()
    (tmp_path / "testplans" / "requirements.yaml").write_text("R-1: A card resets.\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="no requirement, file or folder 'R-2'") as caught:
        CliRunner().invoke(app, ["R-2"], catch_exceptions=False)
    assert "Did you mean 'R-1'?" in caught.value.hint
    assert requirement_ids("R") == ["R-1"]


def test_from_requirements_to_results_and_back(project) -> None:
    plans = project.folder / "testplans"
    plans.mkdir()
    (plans / "requirements.yaml").write_text("R-1: A card resets.\nR-2: A card flashes.\n", encoding="utf-8")
    (plans / "flashes.scenario.yaml").write_text(
        "about: x\nsource: y\nrequirements: R-2\nsteps: [{flash: A/csk0, promise: lands}]\n", encoding="utf-8"
    )
    project.write(
        "@pytest.mark.hil_requirement('R-1')\ndef test_reset(card):\n    card.reset()\n",
        "testplans/test_resets.py",
    )
    run = project.hil(
        "run", "testplans/test_resets.py", "--device", "one", "--store", "sqlite:///index.sqlite"
    )
    assert run.code == 0, run.text
    traced = project.hil("trace", "--store", "sqlite:///index.sqlite")
    assert traced.code == 0, traced.text
    assert traced.stdout.splitlines()[:4] == [
        "R-1: A card resets.",
        f"    testplans/test_resets.py::test_reset: 1 as-stated, 1 never run here ({run.run_dir.name})",
        "R-2: A card flashes.",
        "    testplans/flashes.scenario.yaml::flashes: 2 never run here",
    ]
    back = project.hil("trace", "testplans/flashes.scenario.yaml", "-o", "json", "--store", "none")
    assert [each["id"] for each in json.loads(back.stdout)["requirements"]] == ["R-2"]
    assert set(json.loads(back.stdout)["scenarios"]) == {
        f"testplans/flashes.scenario.yaml::flashes[{host}/card0]" for host in ("one", "two")
    }
    (plans / "flashes.scenario.yaml").write_text("about: x\nsource: y\nsteps: [rest]\n", encoding="utf-8")
    broken = project.hil("trace", "--store", "none")
    assert broken.code == 2
    assert "flashes.scenario.yaml:3: steps.0.rest: unknown step" in broken.stderr
    assert "Traceback" not in broken.text
