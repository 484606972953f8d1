"""`hil status`: what a system says of a card beside what the card holds, and the verdict."""

import json
import os
import signal

import pytest

from harness.cli.form import Form
from harness.cli.status import _told
from harness.cli.status_text import show
from harness.inventory.load import load_inventory
from harness.judgement.model import VerdictKind
from harness.judgement.side_by_side import FIRMWARE, Row, side_by_side
from harness.lab.background import background_lab
from tests.judgement.system_records import Story

INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    controllers:
      good: {role: system-controller, emulated: {release: corrected}}
      blind: {role: system-controller, emulated: {release: corrected}}
    hosts:
      one:
        system: good
        emulated: {hostname: compute-0}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:00:00:01
            emulated: {sr_root: root-key-A, sr_cancelled: [1, 2]}
      two: # Its tools do not know the drivers of its kernel.
        system: blind
        emulated: {hostname: compute-0, era: containerd}
        cards: {card0: {address: '0000:b2:00.0', identity: '64:4c:36:00:00:02'}}
"""


@pytest.fixture
def systems(project):
    """A project whose lab has two systems."""
    (project.folder / "inventory.yaml").write_text(INVENTORY, encoding="utf-8")
    return project


@pytest.mark.parametrize("way", ["rest", "cli"])
def test_a_card_is_shown_beside_what_its_system_says(systems, way: str) -> None:
    done = systems.hil("status", "good", "--way", way)
    assert done.code == 0, done.text
    rows = {line.split()[1]: line.split() for line in done.stdout.splitlines()}
    assert rows["bitstream_id"] == [
        "one/card0",
        "bitstream_id",
        "0x23001410010310",
        "0x23001410010310",
        "MATCH",
    ]
    assert rows["revoked_key_ids"][-2:] == ["1,2", "MATCH"]
    assert "two/card0" not in done.stdout
    assert rows["alarm"][-1] == "MATCH"


def test_what_differs_is_told_and_counts(systems) -> None:
    done = systems.hil("status", "-o", "json")
    assert done.code == 1
    rows = {(row["device"], row["what"]): row for row in json.loads(done.stdout)}
    assert rows["one/card0", "root_key"]["verdict"] == "MATCH"
    blind = rows["two/card0", "bitstream_id"]
    assert (blind["said"], blind["verdict"]) == ("empty", "UNKNOWN_AS_VALUE")
    assert blind["truth"].startswith("0x23001410010310")
    assert not (systems.folder / "reports").exists(), "nothing is written"


ROOT = "5a" * 31 + "0f"


@pytest.mark.parametrize("told", [ROOT, f"0x{ROOT}", ROOT.upper(), f"0X{ROOT.upper()}"])
@pytest.mark.parametrize("read", [ROOT, ROOT.upper()])
def test_a_key_or_an_id_is_the_same_however_it_is_spelt(told: str, read: str) -> None:
    story = Story()
    kinds = {"key": ("root-key", {"key_signature": told}), "user": ("functional", {"bitstream_id": "0XAB12"})}
    for uuid, (kind, fields) in kinds.items():
        story.images[uuid] = {"uuid": uuid, "bitstream_type": kind, "bmc": False, **fields}
        story.images[uuid] |= {"applied": True, "applied_labels": [["", ""]]}
        story.states[uuid] = "pending"
    story.look()
    story.update(key="completed", user="completed")
    story.card["sr_root"] = read
    story.boot(bitstream_id=0xAB12)
    rows = side_by_side([*_told(story.records), *story.records])
    verdicts = {(row.said, row.verdict) for row in rows if " is completed on " in row.said}
    assert verdicts == {(f"{uuid} is completed on host1/card0", VerdictKind.MATCH) for uuid in kinds}


def test_a_wrong_name_is_told(systems, project) -> None:
    done = systems.hil("status", "goud")
    assert done.code == 2
    assert "Did you mean 'good'?" in done.text or "did you mean 'good'?" in done.text


CLOUD = """\
version: 1
default_lab: small
labs:
  small:
    controllers:
      central: {role: system-controller, emulated: {release: corrected}}
      near: {role: subcloud, parent: central, emulated: {release: corrected}}
      far: {role: subcloud, parent: central, emulated: {release: corrected}}
    hosts:
      middle: {system: central, emulated: {hostname: controller-0}}
      one:
        system: near
        emulated: {hostname: controller-0}
        cards: {card0: {address: '0000:b2:00.0', identity: '64:4c:36:00:00:01'}}
      two:
        system: far
        emulated: {hostname: controller-0}
        cards:
          card0: {address: '0000:b2:00.0', identity: '64:4c:36:00:00:02', emulated: {sr_root: root-key-A}}
"""


@pytest.fixture
def cloud(project):
    """A project whose lab has a system controller with two subclouds."""
    (project.folder / "inventory.yaml").write_text(CLOUD, encoding="utf-8")
    return project


def test_controller_subcloud_and_card_stand_beside_each_other(cloud) -> None:
    done = cloud.hil("status")
    assert done.code == 0, done.text
    head, *rows = done.stdout.splitlines()
    assert head.split("  ")[0] == "DEVICE"
    assert [heading.strip() for heading in head.split("  ") if heading.strip()] == [
        *("DEVICE", "THE CONTROLLER SAYS", "THE SUBCLOUD SAYS", "THE CARD HOLDS", "VERDICT"),
    ]
    cells = {row.split()[0]: row for row in rows}
    assert set(cells) == {"one/card0", "two/card0"}
    assert "in-sync" in cells["one/card0"] and "no image" in cells["one/card0"]
    assert "root key not programmed" in cells["one/card0"] and cells["one/card0"].endswith("MATCH")
    assert "root key not programmed" not in cells["two/card0"] and "root key " in cells["two/card0"]


def test_one_subcloud_is_shown_with_what_its_controller_says(cloud) -> None:
    done = cloud.hil("status", "far", "-o", "json")
    assert done.code == 0, done.text
    rows = json.loads(done.stdout)
    assert {row["device"] for row in rows} == {"far", "two/card0"}
    assert all(row.keys() == {"device", "what", "controller", "said", "truth", "verdict"} for row in rows)
    by_what = {row["what"]: row for row in rows}
    assert by_what["sync"]["controller"] == "the firmware of far is in-sync"
    assert by_what["firmware"]["controller"] == "in-sync"
    assert by_what["root_key"]["verdict"] == "MATCH"


def test_a_live_status_goes_on_until_it_is_interrupted(cloud) -> None:
    """Where it is no terminal, a line of JSON for each look."""
    running = cloud.start("status", "--every", "0.1", "-o", "json")
    looks = [json.loads(running.stdout.readline()) for _ in range(2)]
    os.killpg(running.pid, signal.SIGINT)
    assert cloud.end(running).code == 130
    assert looks[0] and [row["verdict"] for row in looks[0]] == [row["verdict"] for row in looks[1]]
    cloud.assert_nothing_left()


def test_on_a_terminal_it_is_drawn_in_place(monkeypatch, capsys) -> None:
    """From the upper left corner on, each line to its end, no more lines than there is room for."""
    rows = [
        Row(f"sub{n}/card0", FIRMWARE, "no image", "nothing", VerdictKind.MATCH, "in-sync") for n in range(30)
    ]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((40, 10)))
    show(rows, Form.TABLE, live=True)
    drawn = capsys.readouterr().out
    assert drawn.startswith("\x1b[H") and drawn.endswith("\x1b[J")
    lines = drawn.removeprefix("\x1b[H").removesuffix("\x1b[J").splitlines()
    assert len(lines) == 9 and all(line.endswith("\x1b[K") for line in lines)
    assert all(len(line.removesuffix("\x1b[K")) <= 40 for line in lines)
    assert lines[-1].startswith("... 25 more lines")


def test_wide_characters_are_seen_in_their_columns(monkeypatch, capsys) -> None:
    """Where a name is wide, what follows stands below its heading, and a line is no wider than the screen."""
    rows = [
        Row("one/card0", "image", "画像", "画像", VerdictKind.MATCH),
        Row("one/card0", "image", "plain", "plain", VerdictKind.MATCH),
    ]
    show(rows, Form.TABLE, live=False)
    wide, plain = capsys.readouterr().out.splitlines()[1:]
    assert wide.index("MATCH") + 4 == plain.index("MATCH")  # four characters before it take two columns each
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda **_: os.terminal_size((21, 10)))
    show(rows, Form.TABLE, live=True)
    wide = next(line for line in capsys.readouterr().out.splitlines() if "画" in line)
    assert wide == "one/card0  image  画\x1b[K"


def test_a_live_status_comes_back_with_its_lab(systems) -> None:
    """The lab is killed and started again while it is watched; meanwhile it is said what is waited for."""
    inventory = systems.folder / "inventory.yaml"
    assert systems.hil("lab", "up", "--as", "second").code == 0
    kept = background_lab(load_inventory(inventory), "second")
    running = systems.start("status", "good", "--lab", "second", "--every", "0.1", "-o", "json")

    def until(seen) -> None:
        while not seen(rows := json.loads(running.stdout.readline())):
            assert rows

    until(lambda rows: all(row["what"] != "answer" for row in rows))
    os.kill(kept.pid(), signal.SIGKILL)
    until(lambda rows: "the lab second does not run" in rows[-1]["truth"])
    assert systems.hil("lab", "up", "--as", "second").code == 0
    until(lambda rows: all(row["what"] != "answer" for row in rows))
    os.killpg(running.pid, signal.SIGINT)
    assert systems.end(running).code == 130
    assert systems.hil("lab", "down", "--all").code == 0
    systems.assert_nothing_left()


def test_a_lab_of_another_name_is_found_while_it_runs(systems) -> None:
    done = systems.hil("status", "--lab", "second")
    assert done.code == 2 and "There is no lab 'second'" in done.text
    assert systems.hil("lab", "up", "--as", "second").code == 0
    shown = systems.hil("card", "show", "one/card0", "--lab", "second")
    assert shown.code == 0 and "for this command only" not in shown.text
    assert systems.hil("lab", "down", "second").code == 0
    done = systems.hil("status", "--lab", "second")
    assert done.code == 2 and "hil lab up LAB --as second" in done.text
