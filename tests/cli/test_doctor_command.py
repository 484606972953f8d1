"""`hil doctor`: once as a page or as JSON, and again and again until it is stopped."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from support.plans import INVENTORY, lay_out
from typer.testing import CliRunner

from harness.cli import root
from harness.doctor.model import SCHEMA
from harness.errors import ConfigurationError
from harness.inventory.load import load_inventory
from harness.lab.background import background_lab
from harness.lab.bench import Bench
from harness.lab.leasing import lease_key
from harness.leases.owner import Owner
from harness.leases.store import LeaseStore

PAGE = (Path(__file__).parents[2] / "docs/json.md").read_text("utf-8")
SYSTEM = "    controllers: {cloud: {role: system-controller, emulated: true}}\n    hosts:\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, in which we are; its host `one` belongs to a system."""
    monkeypatch.setenv("HIL_LEASES", f"sqlite:///{tmp_path}/leases.sqlite")
    monkeypatch.delenv("HIL_INVENTORY", raising=False)
    monkeypatch.chdir(tmp_path)
    text = INVENTORY.replace("    hosts:\n", SYSTEM)
    lay_out(tmp_path, text.replace("emulated: {}\n", "emulated: {}\n        system: cloud\n", 1))
    return tmp_path


def hil(*words: str) -> Any:
    return CliRunner().invoke(root, [*words])


def parts(*words: str) -> dict[tuple[str, str], dict[str, Any]]:
    found = json.loads(hil("doctor", *words, "-o", "json").stdout)["parts"]
    return {(part["kind"], part["name"]): part for part in found}


def keys(row: str) -> set[str]:
    told = re.search(rf"^\| `{re.escape(row)}` \|(?: [^|]+ \|)?(?P<form>[^|]+)\|$", PAGE, re.MULTILINE)
    assert told is not None
    return {word.removesuffix("[]") for word in re.findall(r"`([a-z_]+(?:\[\])?)`", told["form"])}


def test_a_lab_that_is_well_and_its_form(folder: Path) -> None:
    done = hil("doctor", "-o", "json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert set(found) == keys("hil doctor")
    assert found["schema"] == SCHEMA
    assert set(found["parts"][0]) == keys("parts[]")
    assert set(found["parts"][0]["checks"][0]) == keys("checks[]")
    named = [(part["kind"], part["name"]) for part in found["parts"]]
    assert named == [
        ("machine", "this machine"),
        ("host", "one"),
        ("card", "one/card0"),
        ("host", "two"),
        ("card", "two/card0"),
        ("controller", "cloud"),
    ]
    assert {part["grade"] for part in found["parts"][1:]} == {"ok"}
    assert not (folder / "leases.sqlite").exists(), "to look makes no database"
    assert not (folder / "reports").exists()


def test_a_database_that_is_away_is_a_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_LEASES", "postgresql://hil@127.0.0.1:1/hil")
    done = hil("doctor", "--device", "two")
    assert done.exit_code == 3
    assert "bad database: " in done.stdout
    assert "ok    card two/card0" in done.stdout


def test_a_device_that_there_is_not_is_told_with_the_nearest(folder: Path) -> None:
    told = hil("doctor", "--device", "oen").exception
    assert isinstance(told, ConfigurationError)
    assert "one" in told.hint


@pytest.mark.parametrize("time", ["soon", "0s", "-1m"])
def test_a_time_that_is_none(folder: Path, time: str) -> None:
    assert isinstance(hil("doctor", f"--every={time}").exception, ConfigurationError)


def test_health_leases_and_hosts_that_are_off(folder: Path) -> None:
    inventory = load_inventory(folder / "inventory.yaml")
    lab = background_lab(inventory)
    bench = Bench(lab.up(inventory).control)
    try:
        assert hil("card", "quarantine", "two/card0", "--reason", "it smells").exit_code == 0
        done = hil("doctor")
        assert done.exit_code == 3
        assert "bad health: quarantined since " in done.stdout
        assert "fix: Once it is put right: hil card clear two/card0" in done.stdout
        assert "1 bad, 0 in doubt." in done.stdout

        key = lease_key(*inventory.lab().card("one/card0"), str(lab.directory.resolve()))
        with LeaseStore(f"sqlite:///{folder}/leases.sqlite") as leases:
            lease = leases.acquire(key, "one/card0", Owner("bobs-run", "m", 1, "1", "p"), "soak", 600)
            used = parts("--device", "one")["card", "one/card0"]
            assert "bobs-run" in used["lease"]
            assert [check["name"] for check in used["checks"]] == ["in use"]
            leases.release(lease)

        bench.power("one", "off")
        off = hil("doctor", "--record", "--device", "one/card0", "-o", "json")
        assert off.exit_code == 3
        found = {part["name"]: part for part in json.loads(off.stdout)["parts"]}
        assert found["one"]["checks"][0]["name"] == "reachable"
        assert (found["one/card0"]["grade"], found["one/card0"]["health"]) == ("bad", "suspect")
        bench.power("one", "on")
        only = ("--device", "one/card0")
        assert parts(*only)["card", "one/card0"]["health"] == "suspect", "only --record keeps what is found"
        assert parts(*only, "--record")["card", "one/card0"]["health"] == "good"
    finally:
        lab.down(forget=True)


def test_it_goes_on_until_it_is_stopped_and_tells_what_changes(project: Any) -> None:
    inventory = load_inventory(project.folder / "inventory.yaml")
    lab = background_lab(inventory)
    lab.up(inventory)
    try:
        leases = f"sqlite:///{project.folder}/leases.sqlite"
        words = ("--every", "0.1s", "--leases", leases, "--device", "two/card0", "-o", "json")
        watching = project.start("doctor", *words)
        assert watching.stdout is not None
        quarantine = project.hil("card", "quarantine", "two/card0", "--reason", "x", "--leases", leases)
        assert quarantine.code == 0, quarantine.text
        told: list[dict[str, Any]] = []
        while not any(one["what"] == "health" for one in told):
            line = watching.stdout.readline()
            assert line, watching.communicate()[1]
            told.append(json.loads(line))
        (change,) = (one for one in told if one["what"] == "health")
        assert set(change) == keys("hil doctor --every 15m")
        assert (change["name"], change["before"], change["after"]) == ("two/card0", "good", "quarantined")
        watching.send_signal(signal.SIGTERM)
        ended = project.end(watching)
        assert ended.code == 0
        assert "Traceback" not in ended.stderr
        assert ended.stderr.endswith("ended.\n")
    finally:
        lab.down(forget=True)
