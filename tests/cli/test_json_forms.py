"""docs/json.md says what `-o json` prints: the keys of what is printed are those of its table."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.told_runs import Run

from harness.judgement.judge import judge
from harness.report.results import results_json

PROJECT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (?P<commands>`hil[^|]*) \| (?P<version>[^|]+) \| (?P<form>[^|]+) \|$", re.MULTILINE)
TABLE = {
    command: match
    for match in ROW.finditer((PROJECT / "docs/json.md").read_text("utf-8"))
    for command in re.findall(r"`(hil [^`]+)`", match["commands"])
}


def keys(text: str) -> set[str]:
    return {word.removesuffix("[]") for word in re.findall(r"`([a-z_0-9]+(?:\[\])?)`", text)}


def printed(command: str) -> Any:
    from typer.testing import CliRunner

    from harness.cli import root

    ran = CliRunner().invoke(root, [*command.split()[1:], "-o", "json"])
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("hil defects list", ""),
        ("hil card list", ""),
        ("hil engine status", ""),
        ("hil scenario check FILE", "testplans/reproductions/registry_restart.scenario.yaml"),
        ("hil image inspect FILE", "fixtures/vectors/sr_A_csk0.bin"),
        ("hil explain FILE", "docs/reproducing-a-field-failure.md"),
    ],
)
def test_keys_are_those_of_the_page(row: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    found = printed(f"{row.removesuffix(' FILE')} {words}".strip())
    assert TABLE[row]["form"].startswith("`...[]`") == isinstance(found, list)
    one = found[0] if isinstance(found, list) else found
    assert set(one) == keys(TABLE[row]["form"])


def test_results_have_the_keys_of_the_page() -> None:
    run = Run()
    run.flash("plan.py::test", "one/card0")
    found = results_json(judge(run.end()))
    row = TABLE["hil run"]
    assert row["version"] == f"`{found['schema']}`"
    assert set(found) == keys(row["form"])
    text = (PROJECT / "docs/json.md").read_text("utf-8")
    for name in ("verdicts", "scenarios"):
        told = re.search(rf"^\| `{name}\[\]` \| ([^|]+) \|$", text, re.MULTILINE)
        assert told is not None
        assert set(found[name][0]) - {"outcome"} <= keys(told[1])


def test_a_history_has_the_keys_of_the_page(tmp_path: Path) -> None:
    from dataclasses import asdict, fields

    from harness.store.past import Course, PastRun

    assert {field.name for field in fields(Course)} | {"flaky"} == keys(TABLE["hil history show"]["form"])
    assert {field.name for field in fields(PastRun)} == keys(TABLE["hil history runs"]["form"])
    assert asdict(Course("s", "d", "l", ())) == {"scenario": "s", "device": "d", "lab": "l", "results": ()}
