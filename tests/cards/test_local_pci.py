"""The cards of the local machine by udev, as pyudev and the kernel's files give them; events of them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.mounted import MountedLab, program_environment

from harness.cards.local import LocalCard, local_cards, serial_number, slot_of
from harness.judgement.values import NOT_EXPOSED, Unknown, Value

ADDRESS = "0000:b2:00.0"


# -- pure -------------------------------------------------------------------------------------------


def config(*capabilities: tuple[int, bytes]) -> bytes:
    """Return a configuration space of 4096 bytes with extended capabilities, one every 32 bytes."""
    space = bytearray(4096)
    for index, (number, body) in enumerate(capabilities):
        at = 0x100 + 32 * index
        following = at + 32 if index + 1 < len(capabilities) else 0
        space[at : at + 4] = (number | 1 << 16 | following << 20).to_bytes(4, "little")
        space[at + 4 : at + 4 + len(body)] = body
    return bytes(space)


SERIAL = bytes.fromhex("0010 01ff ff36 4c64")  # lower word first, as PCI Express has it


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (config((0x0003, SERIAL)), "64-4c-36-ff-ff-01-10-00"),
        (config((0x0001, bytes(12)), (0x0003, SERIAL), (0x0010, b"")), "64-4c-36-ff-ff-01-10-00"),
        (config((0x0001, b"")), NOT_EXPOSED),
        (bytes(4096), NOT_EXPOSED),
        (b"\xff" * 4096, NOT_EXPOSED),
        (bytes(256), NOT_EXPOSED),  # a function of conventional PCI
        (bytes(64), Unknown("only root may read it")),
        (config((0x0003, SERIAL))[:0x108], Unknown("cut off")),
        # A capability that leads to itself.
        (bytes(256) + (1 | 1 << 16 | 0x100 << 20).to_bytes(4, "little") + bytes(3836), NOT_EXPOSED),
    ],
)
def test_serial_number(space: bytes, expected: Value[str]) -> None:
    assert serial_number(space) == expected


def test_slot_is_the_way_without_bus_numbers() -> None:
    root = "/sys/devices/pci0000:ae/0000:ae:00.0"
    assert slot_of(f"{root}/0000:af:00.0/0000:b0:09.0/0000:b2:00.0") == "pci0000:ae/00.0/00.0/09.0/00.0"
    assert slot_of(f"{root}/0000:b0:00.0/0000:b1:09.0/0000:b3:00.0") == "pci0000:ae/00.0/00.0/09.0/00.0"


def card(identity: Value[str], serial: Value[str] = NOT_EXPOSED, slot: str = "pci0000:ae/00.0") -> LocalCard:
    return LocalCard(ADDRESS, identity, serial, slot, ())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (card("64:4c:36:00:00:01"), card("64:4c:36:00:00:01", slot="pci0000:16/00.0"), True),
        (card("64:4c:36:00:00:01"), card("64:4c:36:00:00:02"), False),  # another card in the same slot
        (card("64:4c:36:00:00:01", "1-1"), card("64:4c:36:00:00:02", "1-1"), False),
        (card(NOT_EXPOSED, "1-1"), card("64:4c:36:00:00:01", "1-1", "pci0000:16/00.0"), True),
        (card(NOT_EXPOSED, "1-1"), card(NOT_EXPOSED, "1-2"), False),
        (card(NOT_EXPOSED), card("64:4c:36:00:00:01"), True),  # no more than the slot is known of both
        (card(NOT_EXPOSED), card(NOT_EXPOSED, slot="pci0000:16/00.0"), False),
    ],
)
def test_same_card_is_known_by_mac_then_serial_then_slot(
    one: LocalCard, other: LocalCard, same: bool
) -> None:
    assert one.is_same(other) is same
    assert other.is_same(one) is same


def test_this_machine_does_not_fail() -> None:
    assert isinstance(local_cards(), list)


# -- a described machine ----------------------------------------------------------------------------

#: A card that runs a 5GNR FEC image with two virtual functions, in the form of umockdev-record; another
#: device of the same vendor in another slot.
DESCRIPTION = """
P: /devices/pci0000:16/0000:16:00.0
E: SUBSYSTEM=pci
A: vendor=0x8086\\n
A: device=0x2030\\n
A: numa_node=1\\n

P: /devices/pci0000:16/0000:16:00.0/0000:1b:00.0
E: SUBSYSTEM=pci
A: vendor=0x8086\\n
A: device=0x0b30\\n
A: numa_node=1\\n
A: sriov_totalvfs=1\\n
A: sriov_numvfs=0\\n
L: driver=../../../../bus/pci/drivers/dfl-pci
A: BMC/mac_address=64:4C:36:00:12:A0\\n

P: /devices/pci0000:16/0000:16:00.0/0000:1d:00.0
E: SUBSYSTEM=pci
A: vendor=0x8086\\n
A: device=0x0d8f\\n
A: numa_node=1\\n
A: sriov_totalvfs=8\\n
A: sriov_numvfs=2\\n
H: config=CONFIG
L: driver=../../../../bus/pci/drivers/igb_uio
L: virtfn0=../0000:1d:00.1
L: virtfn1=../0000:1d:00.2

P: /devices/pci0000:16/0000:16:00.0/0000:1d:00.1
E: SUBSYSTEM=pci
A: vendor=0x8086\\n
A: device=0x0d90\\n
A: numa_node=-1\\n
L: physfn=../0000:1d:00.0

P: /devices/pci0000:16/0000:16:00.0/0000:1d:00.2
E: SUBSYSTEM=pci
A: vendor=0x8086\\n
A: device=0x0d90\\n
L: physfn=../0000:1d:00.0

P: /devices/pci0000:00/0000:00:1f.0
E: SUBSYSTEM=pci
A: vendor=0x8086\\n
A: device=0x0d8f\\n
"""
BMC = "fpga_region/region0/dfl-fme.0/dfl_dev.0/subdev_spi_altera.0.auto/spi_master/spi0/spi0.0"


@pytest.fixture
def described(tmp_path: Path) -> list[dict[str, Any]]:
    """What `hil card local` finds on the described machine."""
    file = tmp_path / "machine.umockdev"
    serial = config((0x0003, SERIAL)).hex().upper()
    file.write_text(DESCRIPTION.lstrip().replace("CONFIG", serial).replace("BMC", BMC))
    hil = Path(sys.executable).parent / "hil"
    done = subprocess.run(
        [
            "umockdev-run",
            "--device",
            str(file),
            "--",
            sys.executable,
            str(hil),
            "card",
            "local",
            "-o",
            "json",
        ],
        env=os.environ | program_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_card_with_its_functions_virtual_ones_drivers_and_numa_node(described: list[dict[str, Any]]) -> None:
    (found,) = described
    assert {name: found[name] for name in ("address", "identity", "serial", "slot")} == {
        "address": "0000:1b:00.0",
        "identity": "64:4c:36:00:12:a0",
        "serial": "64-4c-36-ff-ff-01-10-00",
        "slot": "pci0000:16/00.0",
    }
    functions = {function["address"]: function for function in found["functions"]}
    assert sorted(functions) == ["0000:1b:00.0", "0000:1d:00.0", "0000:1d:00.1", "0000:1d:00.2"]
    accelerator = functions["0000:1d:00.0"]
    assert (accelerator["device"], accelerator["driver"], accelerator["numa_node"]) == (0x0D8F, "igb_uio", 1)
    assert accelerator["virtual"] == {"total": 8, "enabled": 2, "addresses": ["0000:1d:00.1", "0000:1d:00.2"]}
    assert functions["0000:1b:00.0"]["virtual"] == {"total": 1, "enabled": 0, "addresses": []}
    one, two = functions["0000:1d:00.1"], functions["0000:1d:00.2"]
    assert (one["driver"], one["virtual"]) == ("", {"unknown": "not exposed"})
    assert one["numa_node"] == {"unknown": "this machine has no NUMA nodes"}
    assert two["numa_node"] == {"unknown": "not exposed"}


# -- a mounted host ---------------------------------------------------------------------------------


@pytest.fixture
def in_mount(mounts: MountedLab) -> Callable[..., Any]:
    def run(code: str, host: str = "left") -> Any:
        done = mounts.sh(shlex.join([sys.executable, "-c", code]), host)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_mounted_card_is_found_with_its_functions(in_mount: Callable[..., Any]) -> None:
    code = """
import json
from harness.cards.local import local_cards
(card,) = local_cards()
functions = [(f.address, *f.ids, f.driver) for f in card.functions]
print(json.dumps([card.address, card.identity, card.slot, functions]))
"""
    # n3000.md 1.1: four functions of two NICs, the management function, the second function without a driver.
    assert in_mount(code) == [
        ADDRESS,
        "64:4c:36:77:01:00",
        "pci0000:ae/00.0",
        [
            ["0000:b1:00.0", 0x8086, 0x0D58, "i40e"],
            ["0000:b1:00.1", 0x8086, 0x0D58, "i40e"],
            [ADDRESS, 0x8086, 0x0B30, "dfl-pci"],
            ["0000:b3:00.0", 0x8086, 0x0D58, "i40e"],
            ["0000:b3:00.1", 0x8086, 0x0D58, "i40e"],
            ["0000:b4:00.0", 0x8086, 0x0B32, ""],
        ],
    ]


def test_virtual_functions_need_a_port_that_was_released(mounts: MountedLab) -> None:
    """The kernel's dfl-pci refuses more than it has released ports for."""
    control = f"/sys/bus/pci/devices/{ADDRESS}/sriov_numvfs"
    write = "env printf"
    said = mounts.sh(f"for n in 1 2 0; do {write} $n > {control}; done; cat {control}")
    assert "Invalid argument" in said.stderr.splitlines()[0]
    assert "Numerical result out of range" in said.stderr.splitlines()[1]
    assert said.stdout == "0\n"


RESET = """
import glob, json, time
from harness.cards.local import CardMonitor, local_cards
(card,) = local_cards()
with CardMonitor() as monitor:
    (control,) = glob.glob("/sys/bus/platform/drivers/*/*.auto/control/image_load")
    open(control, "w").write("bmc_user")
    monitor.wait_gone(card.address, deadline=20)
    back = monitor.wait_back(card, deadline=20)
print(json.dumps([card.address, back.address, card.slot == back.slot, back.identity]))
"""


def test_card_that_moves_in_a_reset_is_heard_of_and_known_again(in_mount: Callable[..., Any]) -> None:
    assert in_mount(RESET, "moving") == ["0000:b3:00.0", "0000:b2:00.0", True, "64:4c:36:77:02:00"]


def test_card_that_stays_away_is_told_with_what_is_there(
    mounts: MountedLab, in_mount: Callable[..., Any]
) -> None:
    mounts.bench.condition("left/card0", "stays-away", True)
    code = (
        RESET.replace("wait_back(card, deadline=20)", "wait_back(card, deadline=0.2)")
        .replace(
            "with CardMonitor() as monitor:",
            "from harness.errors import DeadlineError\nmonitor = CardMonitor()\ntry:",
        )
        .replace(
            "print(json",
            "except DeadlineError as error:\n    print(json.dumps([error.message]))\nelse:\n    print(json",
        )
    )
    (message,) = in_mount(code)
    assert "Waited 0.2 s for the card 64:4c:36:77:01:00 of slot pci0000:ae/00.0" in message
    assert "cards that are there: none" in message
    assert "events were heard" in message


def test_card_that_does_not_leave_is_told(in_mount: Callable[..., Any]) -> None:
    code = f"""
import json
from harness.cards.local import CardMonitor
from harness.errors import DeadlineError
try:
    CardMonitor().wait_gone("{ADDRESS}", deadline=0.1)
except DeadlineError as error:
    print(json.dumps(error.message))
"""
    assert in_mount(code) == f"Waited 0.1 s for {ADDRESS} to leave the bus; 0 events were heard."
