"""Runs are exported, done again on another lab, shrunk and bisected by `hil`, for real."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.processes import wait_until
from typer.testing import CliRunner

from harness.cli.bisect import app as bisect
from harness.cli.export import app as export
from harness.cli.shrink import app as shrink
from harness.errors import ConfigurationError, InfrastructureError, RefusedError
from harness.plugin.images import ImageShelf
from harness.scenarios.files import load_scenario
from harness.scenarios.plain import plain_variants
from tests.cli.conftest import Project

PROJECT = Path(__file__).parents[2]
HIL = "from harness.cli import main; main()"
PLANS = "testplans/regression"
#: A flash with a fault, a push with one, the life of a device image, an orchestration.
RAN = {
    "flash": f"{PLANS}/flash/test_interrupted.py::test_ctrl_c_while_programming[bench1/card0]",
    "push": f"{PLANS}/registry/test_push_clients.py::"
    "test_the_reference_client_renews_its_token_and_reads_back[cut:manifest-put]",
    "system": f"{PLANS}/device_images/test_life_cycle.py::test_life_of_a_user_image[rest]",
    "cloud": f"{PLANS}/distributed_cloud/test_orchestration.py::test_root_key_and_the_image_that_it_signs",
}


@pytest.fixture
def in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    monkeypatch.delenv("HIL_INVENTORY", raising=False)


def hil_run(reports: Path, *words: str) -> dict[str, dict[str, Any]]:
    """Run `hil run` in a process of its own; return what it found, by the name of the scenario's file."""
    done = subprocess.run(
        [sys.executable, "-c", HIL, "run", *words, "--reports", str(reports), "-o", "json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)["scenarios"]}


def hil(app: Any, *words: str) -> Any:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kinds", [("flash", "push"), ("system", "cloud")], ids="-".join)
def test_what_was_run_is_run_again_on_another_lab_with_the_same_verdicts(
    kinds: tuple[str, str], tmp_path: Path, in_the_project: None
) -> None:
    """The other lab has other cards, half as many subclouds, and other names."""
    before = hil_run(tmp_path / "reports", *(RAN[kind] for kind in kinds))
    files = [str(tmp_path / f"{kind}.scenario.yaml") for kind in kinds]
    for kind, file in zip(kinds, files, strict=True):
        hil(export, str(tmp_path / "reports" / "latest"), "--scenario", RAN[kind], "--save", file)
    other = ("--lab", "qualification", "--device", "worker/card0")
    after = hil_run(tmp_path / "again", *files, *other)
    for kind in kinds:
        (again,) = [each for name, each in after.items() if f"::{kind}" in name]
        assert again["verdicts"] == before[RAN[kind]]["verdicts"], kind
        assert again["outcome"] == before[RAN[kind]]["outcome"], kind


SCENARIO = """\
about: a tool that is ended while the card programs says that it failed
source: x
given: {card: {root: none}}
steps:
  - report
  - fault: sigterm
    at: programming
  - flash: A/csk0
    promise: lands
"""


@pytest.fixture
def small(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small lab of its own, in which commands are run by this process; their trials by another one."""
    monkeypatch.chdir(project.folder)
    monkeypatch.delenv("HIL_INVENTORY", raising=False)
    (project.folder / "long.scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    return project.folder


@pytest.mark.timeout(300)
def test_a_scenario_is_shrunk_to_what_shows_its_verdict(small: Path) -> None:
    words = ("long.scenario.yaml", "--device", "one/card0", "--confirm", "1")
    said = json.loads(hil(shrink, *words, "--save", "least.scenario.yaml", "-o", "json").stdout)
    assert said["kept"] == ["fpgasupdate=FALSE_FAILURE"]
    least = [{"fault": "sigterm", "at": "programming"}, {"flash": "unsigned", "promise": "lands"}]
    assert said["scenario"]["steps"] == least
    assert said["scenario"]["expect"] == {"verdicts": {"fpgasupdate": "FALSE_FAILURE"}}
    assert (said["ended"], said["shown"], said["runs"]) == ("minimal", 1, 1)
    assert said["file"] == "least.scenario.yaml"
    (kept,) = plain_variants(load_scenario(small / "least.scenario.yaml"))
    assert kept["steps"] == least


def test_ctrl_c_leaves_the_best_so_far_and_nothing_else(project: Project, small: Path) -> None:
    """The second one is that of an impatient person."""
    words = ("--device", "one/card0", "--confirm", "1", "-o", "json")
    process = project.start("shrink", "long.scenario.yaml", *words)

    def smaller() -> bool:
        found = [path.read_text() for path in project.runtime.glob("hil-trials-*/long.scenario.yaml")]
        return bool(found and found[0] and "report" not in found[0])

    wait_until(smaller, "a candidate without the first step")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    ended = project.end(process)
    assert ended.code == 130, ended.text
    said = json.loads(ended.stdout)
    assert (said["ended"], said["kept"]) == ("interrupted", ["fpgasupdate=FALSE_FAILURE"])
    assert {"flash": "A/csk0", "promise": "lands"} in said["scenario"]["steps"]
    project.assert_nothing_left()


def test_ctrl_c_leaves_what_a_bisection_knows_so_far(project: Project, small: Path) -> None:
    ends = ("--good", "corrected", "--bad", "stx-8", "--runs", "1000", "-o", "json")
    process = project.start("bisect", "long.scenario.yaml", "--device", "one/card0", *ends)
    assert process.stderr is not None
    first = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    ended = project.end(process)
    assert ended.code == 130, ended.text
    said = json.loads(ended.stdout)
    assert (said["interrupted"], said["found"]) == (True, False)
    assert first.startswith("corrected: bad (1 of 1 bad so far)")
    assert said["points"][0]["name"] == "corrected"
    assert said["points"][0]["shown"] >= 1
    project.assert_nothing_left()


@pytest.mark.parametrize(
    "words",
    [
        ("shrink", "long.scenario.yaml", "--confirm", "1000", "--tries", "100000"),
        ("bisect", "long.scenario.yaml", "--good", "corrected", "--bad", "stx-8", "--runs", "1000"),
    ],
    ids=lambda words: words[0],
)
def test_a_kill_leaves_nothing(project: Project, small: Path, words: tuple[str, ...]) -> None:
    process = project.start(*words)
    wait_until(
        lambda: list(project.runtime.glob("hil-trials-*/reports/*/history*.jsonl")), "a trial that records"
    )
    process.send_signal(signal.SIGKILL)
    assert project.end(process).code == -signal.SIGKILL
    project.assert_nothing_left()


@pytest.mark.timeout(300)
def test_the_build_that_is_not_taken_any_more_is_found(small: Path) -> None:
    (small / "takes.scenario.yaml").write_text(
        "about: x\nsource: y\ngiven: {card: {root: A}}\nsteps:\n  - flash: build\n    promise: lands\n",
        encoding="utf-8",
    )
    (small / "builds").mkdir()
    shelf = ImageShelf.of(small)
    for number, recipe in enumerate(("A/csk0", "unsigned")):
        (small / "builds" / f"{number}.bin").write_bytes(shelf[recipe].data)
    ends = ("--builds", "builds", "--good", "0.bin", "--bad", "1.bin")
    found = hil(bisect, "takes.scenario.yaml", *ends, "--device", "one/card0", "--confidence", "0.9")
    assert "good  builds/0.bin: bad in 0 of 3 runs" in found.stdout
    assert "First bad: builds/1.bin (after builds/0.bin)" in found.stdout


def test_what_cannot_be_meant_is_told(
    tmp_path: Path, in_the_project: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "real.yaml"
    real.write_text(
        "version: 1\ndefault_lab: rack\nlabs:\n  rack:\n    hosts:\n      a:\n"
        "        ssh: {address: 192.0.2.1, user: u, credentials: {env: X}}\n",
        encoding="utf-8",
    )
    plan = "testplans/reproductions/registry_restart.scenario.yaml"
    with pytest.raises(RefusedError, match="The lab rack has real hosts"):
        hil(shrink, plan, "--inventory", str(real))
    with pytest.raises(RefusedError, match="The lab rack has real hosts, and a bisection runs"):
        hil(bisect, plan, "--inventory", str(real), "--good", "corrected", "--bad", "stx-8")
    with pytest.raises(ConfigurationError, match="no scenario file"):
        hil(shrink, f"{PLANS}/flash/test_reset.py")
    with pytest.raises(ConfigurationError, match="There is no history"):
        hil(export, str(tmp_path))
    builds = ("--builds", str(tmp_path / "list"), "--good", "one", "--bad", "two")
    with pytest.raises(ConfigurationError, match=r"list cannot be read: No such file or directory\."):
        hil(bisect, plan, *builds)
    (tmp_path / "list").write_text("one\ntwo\n")
    with pytest.raises(ConfigurationError, match="No closing quotation"):
        hil(bisect, plan, *builds, "--with", "deploy '{}")
    with pytest.raises(InfrastructureError, match=r"no-such-program one cannot be run: No such file"):
        hil(bisect, plan, *builds, "--with", "no-such-program {}")
