"""A recording of a real machine: OpenSSH in front of a tree of files; its replay is the same card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.cards import FileCard, Programs, add_card

from harness.cards.discovery import discover
from harness.cards.driver import CardDriver
from harness.cards.parsers import parse_fpgainfo
from harness.cards.truth import read_truth
from harness.hosts.access import Access
from harness.hosts.ssh import SshHost
from harness.inventory.model import Card
from harness.judgement.records import Promise
from harness.recordings.model import Recording
from harness.recordings.session import Session

CARD = Card(name="card0", address="0000:b2:00.0", identity="64:4c:36:00:12:a0")  # type: ignore[arg-type]
SECURITY = """\
********** SEC Info START ************
BMC root entry hash: 0x77698ea203e459f6cb0e65b54a1dd4ab47a6a6600e7988f723ad89f5b7f3673a
BMC CSK IDs canceled: None
FIM CSK IDs canceled: 0-2,5
User flash update counter: 12
********** SEC Info END ************
"""


@pytest.fixture
def machine(access: Access, programs: Programs, file_card: FileCard) -> Any:
    """The machine behind OpenSSH, whose programs act on the tree of files."""
    programs.say("security", SECURITY)
    programs.say("fme", "//****** FME ******//\nPCIe s:b:d.f                     : 0000:B2:00.0\n")
    host = SshHost("bench", access, tools=programs.tools)
    yield host
    host.close()


def recorded(machine: SshHost, file_card: FileCard, card: Card = CARD) -> Recording:
    session = Session(machine, [card], sysfs=str(file_card.sysfs))
    session.begin()
    return session.recording()


def test_the_replay_is_the_same_card(machine: Any, file_card: FileCard, replay: Any) -> None:
    file_card.file("fme/ports_num").symlink_to("bitstream_id")  # links within the card, and out of it
    file_card.file("fme/outside").symlink_to("/nowhere/at/all")
    file_card.file("sec/security/flash_count").chmod(0o200)
    sysfs = str(file_card.sysfs)
    replayed = replay(recorded(machine, file_card))
    truth = read_truth(machine, CARD.address, sysfs=sysfs)
    again = replayed.truth()
    changed = {name for name, value in truth.values().items() if again.values()[name] != value}
    # Root reads a real file of that mode; of the kernel's, nobody can (n3000.md 4.1: write-only).
    assert changed == {"flash_count"}
    assert str(again.flash_count) == "unknown (Permission denied)"
    assert again.sources == truth.sources
    assert discover(replayed.host, sysfs=sysfs) == discover(machine, sysfs=sysfs)
    for topic in ("security", "fme", "phy"):
        argv = ["fpgainfo", topic, CARD.address]
        own, its = machine.run(argv), replayed.host.run(argv)
        assert (its.exit_code, its.stdout, its.stderr) == (own.exit_code, own.stdout, own.stderr)
    claims = parse_fpgainfo(replayed.host.run(["fpgainfo", "security", "b2:00.0"]).stdout)[0].statement()
    assert claims["sr_cancelled"] == [0, 1, 2, 5]
    link = str(file_card.file("fme/ports_num"))
    assert replayed.host.read(link) == machine.read(link)
    uname = ["uname", "-a"]
    assert replayed.host.run(uname).stdout == machine.run(uname).stdout
    assert replayed.unrecorded == []
    with pytest.raises(OSError, match="Not in the recording"):
        replayed.host.read(str(file_card.file("fme/outside")))


def test_a_card_is_recorded_where_it_is_now(machine: Any, file_card: FileCard) -> None:
    file_card.move("0000:c4:00.0")
    recording = recorded(machine, file_card)
    assert recording.cards[0].address == "0000:c4:00.0"
    assert recording.states[0].addresses == {"card0": "0000:c4:00.0"}


def test_another_card_in_its_place_is_not_taken_for_it(machine: Any, file_card: FileCard) -> None:
    file_card.write("bmc/mac_address", "64:4c:36:ff:ff:01\n")
    recording = recorded(machine, file_card)
    assert recording.states[0].addresses == {"card0": None}
    assert not any("bitstream_id" in path for path in recording.tree(0))


def test_the_cards_beside_it_are_not_in_it(machine: Any, file_card: FileCard) -> None:
    other = add_card(file_card.sysfs, "0000:5e:00.0", "64:4c:36:00:99:00")
    recording = recorded(machine, file_card)
    below = [path for path in recording.tree(0) if path.startswith(f"{other.device.resolve()}/fpga_region")]
    assert below == []
    assert f"{file_card.sysfs}/bus/pci/devices/0000:5e:00.0" in recording.tree(0)


@pytest.mark.parametrize("name", ["resource0", "resource2_wc", "rom", "vpd"])
def test_files_whose_reading_acts_on_the_device_are_left_alone(
    machine: Any, file_card: FileCard, name: str
) -> None:
    file_card.write(name, "do not touch\n")
    entry = recorded(machine, file_card).tree(0)[str(file_card.device.resolve() / name)]
    assert entry.kind == "left-out"
    assert "acts on the device" in entry.text


def test_large_and_odd_files_are_left_out(machine: Any, file_card: FileCard, replay: Any) -> None:
    import os

    file_card.write("big", "x" * ((1 << 20) + 1))
    os.mkfifo(file_card.file("pipe"))
    recording = recorded(machine, file_card)
    device = file_card.device.resolve()
    assert recording.tree(0)[str(device / "big")].text == "file: 1048577 bytes"
    assert recording.tree(0)[str(device / "pipe")].text == "a pipe"
    replayed = replay(recording)
    assert {"big", "pipe"} <= set(replayed.host.list(str(file_card.device)))
    for name in ("big", "pipe"):
        with pytest.raises(OSError, match="Not in the recording"):
            replayed.host.read(str(file_card.device / name))


def test_a_flash_of_a_real_tool_is_recorded_and_performed_again(
    machine: Any, file_card: FileCard, programs: Programs, replay: Any, image: Any, tmp_path: Path
) -> None:
    data = image("A/csk0")
    records: list[Any] = []

    class Kept:
        def add(self, record: Any) -> Any:
            from dataclasses import replace

            records.append(replace(record, seq=len(records) + 1))
            return records[-1]

    session = Session(machine, [CARD], sysfs=str(file_card.sysfs), tools=programs.tools, interval=0.05)
    driver = CardDriver(
        session.host,
        CARD,
        Kept(),
        real=False,
        sysfs=str(file_card.sysfs),
        tools=programs.tools,
        upload_dir=str(tmp_path),
        locks=str(tmp_path),
    )
    promise = Promise("lands", source="test")
    session.begin()
    session.perform(driver, "card0", lambda: driver.flash(data, "image", promise), data)
    session.perform(driver, "card0", driver.reset)
    recording = session.recording()
    assert [act.argv[0] for act in recording.acts] == [programs.tools["fpgasupdate"], programs.tools["rsu"]]
    assert recording.acts[0].argv[-2:] == ("{image}", CARD.address)
    replayed = replay(recording)
    again = replayed.driver()
    result = again.flash(data, "image", promise)
    assert (result.statement.result, result.before.flash_count, result.after.flash_count) == ("done", 12, 13)
    assert again.reset().after.bitstream_id == 0x23000410010311
    assert replayed.unrecorded == []
