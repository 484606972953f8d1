"""`hil record` and `hil lab up --from`: a card in a file, and the file as a lab; what goes wrong is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.lab.background import LABS, BackgroundLab
from harness.recordings.files import read_recording

PROJECT = Path(__file__).resolve().parents[2]
INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    hosts:
      left:
        emulated: {}
        cards:
          card0: {address: 0000:b2:00.0, identity: "64:4c:36:77:01:00"}
          card1: {address: 0000:3b:00.0, identity: "64:4c:36:77:02:00"}
      bare: {emulated: {hostname: bare}}
      away:
        ssh:
          address: 127.0.0.1
          port: 1
          user: nobody
          known_hosts: known_hosts
          credentials: {env: AWAY_PASSWORD}
        cards:
          card0: {address: 0000:b2:00.0}
"""


@dataclass
class Project:
    folder: Path

    def hil(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("HIL_", "PYTEST"))}
        return subprocess.run(
            [sys.executable, "-c", "from harness.cli import main; main()", *words],
            cwd=self.folder,
            env=env | {"PYTHONPATH": str(PROJECT)} | environ,
            capture_output=True,
            text=True,
            timeout=100,
        )


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    (tmp_path / "known_hosts").touch()
    (tmp_path / "fixtures").symlink_to(PROJECT / "fixtures")
    yield Project(tmp_path)
    labs = tmp_path / LABS
    for folder in labs.iterdir() if labs.is_dir() else ():
        BackgroundLab(folder).down()


def test_from_a_card_to_a_file_to_a_lab_and_back(project: Project) -> None:
    made = project.hil("record", "left/card0")
    assert made.returncode == 0, made.stderr
    assert "left/card0: " in made.stdout
    assert "0 unreadable" in made.stdout
    assert "hil lab up --from left-card0.json" in made.stdout
    up = project.hil("lab", "up", "--from", "left-card0.json")
    assert up.returncode == 0, up.stderr
    inventory = ".hil/labs/left-card0/inventory.yaml"
    assert f"its inventory is {inventory}" in up.stdout
    shown = project.hil("card", "show", "left/card0", "--inventory", inventory, "-o", "json")
    original = project.hil("card", "show", "left/card0", "-o", "json")
    own, its = (json.loads(done.stdout)["values"] for done in (original, shown))
    assert {name for name in own if own[name] != its[name]} <= {"boot_id"}
    again = project.hil("record", "left/card0", "--inventory", inventory, "-o", "again.json")
    assert again.returncode == 0, again.stderr
    first, second = (read_recording(project.folder / f"{name}.json") for name in ("left-card0", "again"))
    told = second.tree(0).items()
    assert {path for path, entry in told if first.tree(0).get(path) != entry} <= {"/proc/uptime"}
    assert len(told) > 250
    reset = project.hil("card", "reset", "left/card0", "--inventory", inventory)
    assert reset.returncode == 3
    assert "not in the recording: rsu bmcimg 0000:b2:00.0" in reset.stderr
    status = json.loads(project.hil("lab", "status", "left-card0", "-o", "json").stdout)
    assert status[0]["unrecorded"] != []
    assert {missed["host"] for missed in status[0]["unrecorded"]} == {"left"}
    assert "not in the recording of left: " in project.hil("lab", "status").stdout
    log = (project.folder / LABS / "left-card0" / "log").read_text()
    assert f"left: not in the recording: {status[0]['unrecorded'][0]['what']}" in log
    assert project.hil("lab", "down", "left-card0").stdout == "left-card0: stopped\n"


def test_a_flash_is_recorded_judged_and_replayed(project: Project) -> None:
    recorded = project.hil("record", "left/card0", "--flash", "A/csk0", "-o", "flash.json.gz")
    assert recorded.returncode == 0, recorded.stderr
    assert "ALL AS STATED" in recorded.stdout
    acts = read_recording(project.folder / "flash.json.gz").acts
    assert [act.act for act in acts] == ["flash", "reset"]
    assert len(acts[0].samples) > 3
    assert project.hil("lab", "up", "--from", "flash.json.gz", "--as", "again").returncode == 0
    inventory = str(project.folder / ".hil/labs/again/inventory.yaml")
    wrong = project.hil("card", "flash", "left/card0", "A/csk1", HIL_INVENTORY=inventory)
    assert wrong.returncode == 3
    assert "not in the recording: fpgasupdate" in wrong.stderr
    assert "CSK 1; recorded next is one of user-image of SR" in wrong.stderr
    right = project.hil("card", "flash", "left/card0", "A/csk0", HIL_INVENTORY=inventory)
    assert right.returncode == 0, right.stderr
    assert "2 MATCH" in right.stdout


def test_a_host_with_all_its_cards(project: Project) -> None:
    assert project.hil("record", "left", "-o", "left.json", "--macs", "pseudonyms").returncode == 0
    recording = read_recording(project.folder / "left.json")
    assert [card.name for card in recording.cards] == ["card0", "card1"]
    assert recording.made["macs"] == "pseudonyms"
    assert "64:4c:36:77" not in (project.folder / "left.json").read_text()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["left/card9"], 2, "There is no card 'left/card9'"),
        (["nowhere"], 2, "There is no host 'nowhere'"),
        (["bare"], 2, "no cards of bare"),
        (["left", "--flash", "A/csk0"], 2, "A flash is recorded of one card"),
        (["left/card0", "--flash", "nothing.bin"], 2, "There is no file nothing.bin"),
        (["left/card0", "-o", "inventory.yaml"], 2, "inventory.yaml is there already"),
        (["left/card0", "-o", "no/where.json"], 2, "is not a writable folder"),
        (["left/card0", "--flash", "root-key-A"], 4, "does what cannot be undone (root-key"),
        (["away/card0"], 2, "AWAY_PASSWORD"),
    ],
)
def test_what_goes_wrong_is_told_and_leaves_no_file(
    project: Project, words: list[str], code: int, said: str
) -> None:
    before = sorted(path.name for path in project.folder.iterdir())
    done = project.hil("record", *words)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    left = {path.name for path in project.folder.iterdir()} - set(before)
    assert left <= {"reports"}
    assert "Traceback" not in done.stderr


def test_an_unreachable_host_is_told(project: Project) -> None:
    done = project.hil("record", "away/card0", AWAY_PASSWORD="secret-of-this-test")
    assert done.returncode == 3
    assert "away" in done.stderr
    assert not (project.folder / "away-card0.json").exists()


def test_a_refusal_of_the_interlock_is_in_the_history(project: Project) -> None:
    project.hil("record", "left/card0", "--flash", "cancel-A-csk0")
    histories = list((project.folder / "reports").rglob("history.jsonl"))
    assert len(histories) == 1
    assert '"kind":"refused"' in histories[0].read_text()
    assert "hil record left/card0" in histories[0].read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "it is not JSON"),
        (b'{"format": "hil-recording", "schema": 7}', "of schema 7, this is schema 1"),
        (b"\x1f\x8b\x08\0", "cannot be unpacked"),
    ],
)
def test_a_file_that_is_no_recording_starts_no_lab(project: Project, content: bytes, said: str) -> None:
    (project.folder / "bad.json").write_bytes(content)
    done = project.hil("lab", "up", "--from", "bad.json")
    assert done.returncode == 2
    assert said in done.stderr
    assert not (project.folder / LABS / "bad").exists()


def test_a_lab_of_the_same_name_is_not_replaced(project: Project) -> None:
    assert project.hil("record", "left/card0", "-o", "small.json").returncode == 0
    assert project.hil("lab", "up").returncode == 0
    for _ in ("running", "kept"):
        done = project.hil("lab", "up", "--from", "small.json")
        assert done.returncode == 2
        assert "--as NAME" in done.stderr
        project.hil("lab", "down")
    assert project.hil("lab", "up", "--from", "small.json", "--as", "other").returncode == 0
    running = project.hil("lab", "up", "--from", "small.json", "--as", "other")
    assert "is running already" in running.stderr
    assert project.hil("lab", "down", "other").stdout == "other: stopped\n"
    assert project.hil("lab", "up", "--from", "small.json", "--as", "other").returncode == 0
    assert project.hil("lab", "up", "--from", "small.json", "--as", "../x").returncode == 2


def test_it_needs_no_inventory_to_replay(project: Project) -> None:
    assert project.hil("record", "left/card0").returncode == 0
    (project.folder / "inventory.yaml").unlink()
    assert project.hil("lab", "up", "--from", "left-card0.json").returncode == 0
    shown = project.hil("card", "show", "left/card0", "--inventory", ".hil/labs/left-card0/inventory.yaml")
    assert shown.returncode == 0, shown.stderr
    assert "64:4c:36:77:01:00" in shown.stdout


def test_a_recording_is_a_host_of_an_inventory(project: Project) -> None:
    assert project.hil("record", "left/card0", "-o", "card.json").returncode == 0
    entry = """\
version: 1
default_lab: mixed
labs:
  mixed:
    hosts:
      left:
        emulated: {recording: %s}
        cards: {card0: {address: 0000:b2:00.0, identity: "64:4c:36:77:01:%s"}}
"""
    file = project.folder / "mixed.yaml"
    file.write_text(entry % ("card.json", "00"))
    assert project.hil("card", "show", "left/card0", "--inventory", "mixed.yaml").returncode == 0
    for recording, last, said in (
        ("card.json", "99", "is not in the recording"),
        ("none.json", "00", "cannot be read: No such file"),
    ):
        file.write_text(entry % (recording, last))
        done = project.hil("card", "show", "left/card0", "--inventory", "mixed.yaml")
        assert done.returncode == 2
        assert said in done.stderr
