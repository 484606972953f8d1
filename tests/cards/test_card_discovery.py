"""Which cards a machine has, by lspci and sysfs through both kinds of host."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cards import FileCard, Programs, add_card

from harness.cards.discovery import (
    FoundCard,
    PciFunction,
    discover,
    find_card,
    parse_lspci,
)
from harness.errors import InfrastructureError
from harness.hosts.local import LocalHost
from harness.hosts.protocol import Host
from harness.hosts.ssh import SshHost
from harness.judgement.values import ALL_ONES, NOT_EXPOSED


@pytest.fixture(params=["sh", "openssh"])
def machine(request: pytest.FixtureRequest, programs: Programs) -> Iterator[Host]:
    if request.param == "sh":
        yield LocalHost("bench", tools=programs.tools)
        return
    found = SshHost("bench", request.getfixturevalue("access"), tools=programs.tools)
    yield found
    found.close()


def test_two_cards_and_their_identities(machine: Host, sysfs: Path) -> None:
    add_card(sysfs, "0000:b4:00.0", "64:4c:36:00:12:b0")
    silent = add_card(sysfs, "0000:1b:00.0")
    silent.write("bmc/mac_address", "ff:ff:ff:ff:ff:ff\n")
    bare = add_card(sysfs, "0000:5e:00.0")
    bare.file("bmc/mac_address").unlink()
    assert discover(machine, sysfs=str(sysfs)) == [
        FoundCard("0000:1b:00.0", ALL_ONES),
        FoundCard("0000:5e:00.0", NOT_EXPOSED),
        FoundCard("0000:b4:00.0", "64:4c:36:00:12:b0"),
    ]


def test_a_card_is_found_by_its_identity(machine: Host, file_card: FileCard, sysfs: Path) -> None:
    add_card(sysfs, "0000:b4:00.0", "64:4c:36:00:12:b0")
    assert find_card(machine, "64:4c:36:00:12:a0", sysfs=str(sysfs)) == "0000:b2:00.0"
    file_card.move("0000:c1:00.0")
    assert find_card(machine, "64:4c:36:00:12:a0", sysfs=str(sysfs)) == "0000:c1:00.0"
    assert find_card(machine, "64:4c:36:00:00:00", sysfs=str(sysfs)) is None


def test_two_cards_of_one_identity_are_never_chosen_from(
    machine: Host, file_card: FileCard, sysfs: Path
) -> None:
    add_card(sysfs, "0000:b4:00.0")
    with pytest.raises(InfrastructureError, match=r"0000:b2:00\.0 and 0000:b4:00\.0"):
        find_card(machine, "64:4c:36:00:12:a0", sysfs=str(sysfs))


def test_a_host_without_cards(machine: Host, sysfs: Path) -> None:
    (sysfs / "bus/pci/devices").mkdir(parents=True)
    assert discover(machine, sysfs=str(sysfs)) == []


def test_a_missing_lspci_is_named(
    machine: Host, programs: Programs, file_card: FileCard, sysfs: Path
) -> None:
    (programs.folder / "lspci").unlink()
    with pytest.raises(InfrastructureError, match="`lspci` on bench ended with exit code 127") as failure:
        discover(machine, sysfs=str(sysfs))
    assert "pciutils" in failure.value.hint


def test_lspci_text() -> None:
    text = (
        "0000:1b:00.0 Processing accelerators [1200]: Intel Corporation Device [8086:0b30]\n"
        "1f:00.0 Processing accelerators [1200]: Intel Corporation Device [8086:0d8f] (rev 01)\n"
        "0000:5e:00.0 Processing accelerators [1200]: Intel Corporation Device [8086:0b30] (rev ff)\n"
        "\t!!! Unknown header type 7f\n\nrubbish [12:34]\n"
    )
    assert parse_lspci(text) == [
        PciFunction("0000:1b:00.0", 0x8086, 0x0B30),
        PciFunction("0000:1f:00.0", 0x8086, 0x0D8F),
        PciFunction("0000:5e:00.0", 0x8086, 0x0B30, answers=False),
    ]
