"""A StarlingX system as the doctor finds it: the login is tried once, and its commands are looked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.plans import lay_out

from harness.doctor.controllers import controller
from harness.health.checks import Check, Grade
from harness.inventory.load import load_inventory
from harness.lab.leasing import leases_of
from harness.lab.running import RunningLab, start_lab

INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    controllers: {cloud: {role: system-controller, emulated: true}}
    hosts:
      one: {system: cloud, emulated: {}}
"""
#: The same system, as an inventory would have it that knows nothing of an emulator.
REAL = """\
version: 1
default_lab: real
labs:
  real:
    controllers:
      cloud: {{role: system-controller, url: '{url}', credentials: {{env: CLOUD_PASSWORD}}}}
    hosts:
      plain: {{local: true{system}}}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    folder = tmp_path_factory.mktemp("cloud")
    lay_out(folder, INVENTORY)
    with start_lab(load_inventory(folder / "inventory.yaml")) as running:
        yield running


def look(folder: Path, url: str, system: str = "") -> dict[str, Check]:
    (folder / "inventory.yaml").write_text(REAL.format(url=url, system=system))
    entry = load_inventory(folder / "inventory.yaml").lab()
    with RunningLab(entry, leases=leases_of("x", said=f"sqlite:///{folder}/l.sqlite")) as running:
        return {check.name: check for check in controller(running, entry.controllers["cloud"]).checks}


def test_an_emulated_system_is_well_by_api_and_commands(lab: RunningLab) -> None:
    found = {c.name: c for c in controller(lab, lab.entry.controllers["cloud"]).checks}
    assert {name: check.grade for name, check in found.items()} == dict.fromkeys(
        ("keystone", "api", "commands"), Grade.OK
    )
    assert found["api"].finding == "1 host by its API"


def test_the_right_password_is_taken_and_a_wrong_one_told(
    lab: RunningLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = lab.doors.controllers["cloud"]
    monkeypatch.setenv("CLOUD_PASSWORD", door.password)
    found = look(tmp_path, door.url)
    assert found["keystone"].grade is Grade.OK
    assert (found["commands"].grade, "`system: cloud`" in found["commands"].hint) == (Grade.OK, True)
    monkeypatch.setenv("CLOUD_PASSWORD", "not-the-password")
    wrong = look(tmp_path, door.url)["keystone"]
    assert (wrong.grade, "refuses the login" in wrong.finding) == (Grade.BAD, True)
    assert "not-the-password" not in f"{wrong.finding}{wrong.hint}"


@pytest.mark.parametrize(
    ("password", "check"), [("", "credentials"), ("x", "api")], ids=["no password", "nobody there"]
)
def test_what_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str, check: str
) -> None:
    monkeypatch.setattr("harness.doctor.controllers._DEADLINE", 0.2)
    monkeypatch.setenv("CLOUD_PASSWORD", password)
    found: Any = look(tmp_path, "http://127.0.0.1:1/v3")[check]
    assert (found.grade, bool(found.hint)) == (Grade.BAD, True)


def test_a_host_without_its_commands_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.doctor.controllers._DEADLINE", 5.0)
    monkeypatch.delenv("CLOUD_PASSWORD", raising=False)
    found = look(tmp_path, "http://127.0.0.1:1/v3", ", system: cloud")["commands"]
    assert (found.grade, "plain has no `system`" in found.finding) == (Grade.BAD, True)
