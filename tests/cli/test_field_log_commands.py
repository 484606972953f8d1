"""`hil explain` and `hil scenario from-log`: files, standard input, what is written, what is refused."""

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import field_reports as reports
from typer.testing import CliRunner

from harness.cli import explain, scenario
from harness.cli.pasted import skews
from harness.errors import ConfigurationError

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HIL_INVENTORY", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.txt").write_text(reports.CARD, encoding="utf-8")
    return tmp_path


def hil(module: object, *words: str) -> str:
    done = CliRunner().invoke(module.app, list(words), catch_exceptions=False)  # type: ignore[attr-defined]
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_draft_is_printed_or_written_to_a_new_file(folder: Path) -> None:
    text = hil(scenario, "from-log", "report.txt")
    assert "- flash: unsigned\n    promise: unchanged 0x11\n" in text
    told = hil(scenario, "from-log", "report.txt", "-o", "found/card")
    marks = text.count("NOT RECOVERED") - 1
    path = "found/card.scenario.yaml"
    assert told == f"{path}: {marks} NOT RECOVERED; read it, then try `hil run {path}`\n"
    assert Path(path).read_text("utf-8") == text
    assert "nothing wrong; 2 steps" in hil(scenario, "check", path)
    with pytest.raises(ConfigurationError, match="already"):
        hil(scenario, "from-log", "report.txt", "--save", path)


def test_standard_input_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = SimpleNamespace(buffer=io.BytesIO(reports.CARD.encode()))
    monkeypatch.setattr("harness.scenarios.field_logs.lines.sys", SimpleNamespace(stdin=stream))
    assert json.loads(hil(explain, "-", "-o", "json"))["claims"][0]["place"]["file"] == "standard input"


def test_what_is_explained_has_the_keys_of_the_page(folder: Path) -> None:
    (folder / "report.txt").write_text(reports.CARD_FALSE + reports.PUSHES, encoding="utf-8")
    found = json.loads(hil(explain, "report.txt", "-o", "json"))
    page = (PROJECT / "docs/json.md").read_text("utf-8")
    parts = {name: found[name][0] for name in ("claims", "contradictions", "happened")}
    parts["needs"] = found["claims"][0]["needs"][0]
    for name, part in parts.items():
        told = re.search(rf"^\| `{name}\[\]` \| ([^|]+) \|$", page, re.MULTILINE)
        assert told is not None, name
        assert set(re.findall(r"`([a-z_]+)(?:\[\])?`", told[1])) == set(part)


def test_a_file_that_is_not_there_is_refused(folder: Path) -> None:
    for module, words in ((explain, ["nowhere.txt"]), (scenario, ["from-log", "nowhere.txt"])):
        done = CliRunner().invoke(module.app, words)
        assert isinstance(done.exception, ConfigurationError)
        assert "nowhere.txt cannot be read" in str(done.exception)


def test_clocks_are_said_by_file() -> None:
    files = [Path("a=b.log"), Path("c.log")]
    assert skews(["a=b.log=2.5", "./c.log=-3600"], files) == {"a=b.log": 2.5, "c.log": -3600.0}
    assert skews(None, files) == {}
    for wrong in ("a.log", "a.log=", "=5", "a.log=nan", "a.log=1e300"):
        with pytest.raises(ConfigurationError, match="does not say by how much"):
            skews([wrong], files)
    with pytest.raises(ConfigurationError, match="a file that is not read") as caught:
        skews(["d.log=1"], files)
    assert "a=b.log, c.log" in caught.value.hint
