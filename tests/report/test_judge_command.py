"""`hil judge` judges what is on disk as the run did."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli.judge import app
from harness.errors import ConfigurationError
from harness.judgement.judge import judge
from harness.judgement.records import (
    Claim,
    Evidence,
    Observation,
    RunEnded,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
    Subject,
)
from harness.record import History
from harness.report.results import results_json

CARD = Subject("card", "subcloud1/card0")


def write(path: Path, shown: int = 5, how: str = "finished") -> History:
    """A run with one scenario, in which fpgainfo shows a flash count; the card's is 5."""
    with History(path) as history:
        history.add(RunStarted(run="r", lab="emulated"))
        history.add(ScenarioStarted(scenario="test_reads", subject=CARD))
        history.add(Observation(probe="D", subject=CARD, values={"flash_count": 5}))
        history.add(
            Claim(reporter="fpgainfo", subject=CARD, statement={"flash_count": shown}, evidence=Evidence(""))
        )
        history.add(ScenarioEnded(scenario="test_reads"))
        history.add(RunEnded(how=how))
    return history


def test_json_is_the_judgement_of_the_run(tmp_path: Path) -> None:
    history = write(tmp_path / "history.jsonl")
    result = CliRunner().invoke(app, [str(history.path), "-o", "json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == results_json(judge(history.records))


def test_a_divergence_is_exit_code_1_and_told(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(write(tmp_path / "history.jsonl", shown=6).path)])
    assert result.exit_code == 1
    assert "MISREPORT        fpgainfo on subcloud1/card0" in result.stdout
    assert "claimed: flash_count is 6" in result.stdout
    assert "true:    flash_count is 5" in result.stdout


def test_the_folder_of_a_run_has_a_history_per_process(tmp_path: Path) -> None:
    write(tmp_path / "history-gw0.jsonl")
    write(tmp_path / "history-gw1.jsonl", shown=6)
    result = CliRunner().invoke(app, [str(tmp_path), "-o", "json"])
    data = json.loads(result.stdout)
    assert [s["as_stated"] for s in data["scenarios"]] == [True, False]
    assert result.exit_code == 1


def test_a_killed_run_is_judged_so_far(tmp_path: Path) -> None:
    path = write(tmp_path / "history.jsonl").path
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]) + lines[5][:8])
    result = CliRunner().invoke(app, [str(path)])
    assert result.exit_code == 130
    assert "AS STATED SO FAR" in result.stdout
    assert f"{path}:6: the last line is not whole" in result.stderr


def test_an_interrupted_run_is_130(tmp_path: Path) -> None:
    path = write(tmp_path / "history.jsonl", how="interrupted").path
    assert CliRunner().invoke(app, [str(path)]).exit_code == 130


@pytest.mark.parametrize("name", ["", "missing.jsonl"])
def test_no_history(tmp_path: Path, name: str) -> None:
    result = CliRunner().invoke(app, [str(tmp_path / name)])
    assert isinstance(result.exception, ConfigurationError)
    assert result.exception.hint
