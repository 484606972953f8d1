"""The truth of one and the same card as each driver generation shows it: told apart, read alike."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cards import BMC_ROOT, SR_ROOT, FileCard, add_card

from harness.cards.discovery import find_card, identities_of
from harness.cards.generations import GENERATIONS
from harness.cards.truth import UPDATE_FIELDS, CardTruth, Probe, read_truth
from harness.hosts.local import LocalHost
from harness.hosts.protocol import Host
from harness.judgement.values import NOT_EXPOSED, Unknown

ADDRESS = "0000:b2:00.0"
#: The kernel's ABI documents of each generation, and the vendor's dumps: what they do not have.
HIDDEN = {
    "A": {*UPDATE_FIELDS, "hw_errinfo"},
    "B": {"retimer_a_version", "retimer_b_version"},
    "C": {*UPDATE_FIELDS, "hw_errinfo", "retimer_a_version", "retimer_b_version"},
    "D": {"hw_errinfo", "retimer_a_version", "retimer_b_version"},
}


@pytest.fixture(params=["sh", "openssh"])
def reader(request: pytest.FixtureRequest) -> Iterator[Host]:
    yield LocalHost("bench") if request.param == "sh" else request.getfixturevalue("peer")


def read(host: Host, card: FileCard) -> CardTruth:
    return read_truth(host, card.address, sysfs=str(card.sysfs))


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_same_card_reads_alike(reader: Host, sysfs: Path, generation: str) -> None:
    truth = read(reader, add_card(sysfs, generation=generation))
    found = truth.values()
    assert found.pop("boot_id") == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert {name for name, value in found.items() if isinstance(value, Unknown)} == HIDDEN[generation]
    assert {value for value in found.values() if isinstance(value, Unknown)} == {NOT_EXPOSED}
    wanted = {
        "address": ADDRESS,
        "identity": "64:4c:36:00:12:a0",
        "driver": "intel-fpga-pci" if generation == "A" else "dfl-pci",
        "generation": generation,
        "device_id": 0x0B30,
        "bitstream_id": 0x23000410010307,
        "bitstream_metadata": 0x2010906205,
        "interface_id": "a5d72a3c-c8b0-4939-912c-f715e5dc10ca",
        "boot_page": "user",
        "sr_root": SR_ROOT,
        "bmc_root": BMC_ROOT,
        "pr_root": "",
        "sr_cancelled": [0, 1, 2, 5],
        "bmc_cancelled": [],
        "pr_cancelled": [],
        "flash_count": 12,
        "bmc_version": "D.2.0.6",
        "bmcfw_version": "D.2.0.20",
        "retimer_a_version": "101c.1064",
        "retimer_b_version": "101c.1065",
        "update_status": "idle",
        "update_error": "",
        "remaining_size": 0,
        "hw_errinfo": 0,
    }
    hidden = HIDDEN[generation]
    assert {name: value for name, value in found.items() if name not in hidden} == {
        name: value for name, value in wanted.items() if name not in hidden
    }


@pytest.mark.parametrize(
    ("generation", "field", "source"),
    [
        ("A", "flash_count", "ifpga_sec0/security/qspi_flash_count"),
        ("A", "sr_root", "ifpga_sec0/security/sr_root_hash"),
        ("A", "bmc_version", "spi0.0/max10_version"),
        ("A", "bmcfw_version", "bmcfw_flash_ctrl/bmcfw_version"),
        ("B", "flash_count", "ifpga_sec0/security/user_flash_count"),
        ("B", "update_status", "ifpga_sec0/update/status"),
        ("C", "generation", "fpga_image_load/fpga_image_load0/dev"),
        ("C", "sr_root", "n3000bmc-sec-update.5.auto/security/sr_root_entry_hash"),
        ("D", "generation", "firmware/secure-update0/status"),
    ],
)
def test_each_value_has_its_source(sysfs: Path, generation: str, field: str, source: str) -> None:
    assert read(LocalHost("bench"), add_card(sysfs, generation=generation)).sources[field].endswith(source)


@pytest.mark.parametrize("generation", ["A", "C"])
def test_what_is_not_exposed_names_the_pattern_that_was_asked_for(sysfs: Path, generation: str) -> None:
    truth = read(LocalHost("bench"), add_card(sysfs, generation=generation))
    assert not truth.updates_by_attributes
    assert "*" in truth.sources["update_status"]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_an_absent_security_directory_changes_no_generation(sysfs: Path, generation: str) -> None:
    card = add_card(sysfs, generation=generation)
    for file in card.file("sec/security").iterdir():
        file.unlink()
    card.file("sec/security").rmdir()
    truth = read(LocalHost("bench"), card)
    assert (truth.generation, truth.sr_root, truth.flash_count) == (generation, NOT_EXPOSED, NOT_EXPOSED)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_dead_bus_gives_no_value_of_any_generation(sysfs: Path, generation: str) -> None:
    card = add_card(sysfs, generation=generation)
    card.write("fme/bitstream_id", "0xffffffffffffffff\n")
    truth = read(LocalHost("bench"), card)
    assert truth.generation == generation
    assert isinstance(truth.sr_root, Unknown) and "bus is dead" in truth.sr_root.reason
    assert isinstance(truth.flash_count, Unknown) and isinstance(truth.identity, Unknown)


def test_a_kernel_without_an_update_driver_is_of_no_generation(sysfs: Path) -> None:
    card = add_card(sysfs, generation="D")
    card.file("sec").rename(sysfs / "unbound")
    truth = read(LocalHost("bench"), card)
    assert isinstance(truth.generation, Unknown)
    assert truth.generation.reason == "no update interface of a known driver generation"
    assert truth.bitstream_id == 0x23000410010307
    assert truth.sr_root == NOT_EXPOSED


def test_two_generations_at_once_are_ambiguous(sysfs: Path) -> None:
    card = add_card(sysfs, generation="D")
    other = FileCard(sysfs, card.address, "A")
    other.write("fme/bitstream_id", "0x1\n")
    truth = read(LocalHost("bench"), card)
    assert isinstance(truth.generation, Unknown) and truth.generation.reason == "ambiguous: A and D"
    assert isinstance(truth.bitstream_id, Unknown) and truth.bitstream_id.reason.startswith("ambiguous")
    assert truth.sr_root == SR_ROOT


def test_an_output_that_broke_off_gives_no_values() -> None:
    """Silence means an empty file only where it is one place that is silent."""
    truth = Probe(ADDRESS).parse(f"/sys/bus/pci/devices/{ADDRESS}/uevent:DRIVER=dfl-pci\n", "")
    unknown = {name for name, value in truth.values().items() if isinstance(value, Unknown)}
    assert unknown == set(truth.values()) - {"address", "driver"}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_only_the_update_is_asked_for_while_one_runs(sysfs: Path, generation: str) -> None:
    """Root hashes and counter lie on its path to the flash."""
    card = add_card(sysfs, generation=generation)
    argv = Probe(ADDRESS, str(sysfs), UPDATE_FIELDS).argv
    assert not [word for word in argv if re.search(r"security|version|bitstream", word)]
    truth = read_truth(LocalHost("bench"), ADDRESS, sysfs=str(sysfs), fields=UPDATE_FIELDS)
    assert truth.update_status == ("idle" if generation in "BD" else NOT_EXPOSED)
    assert card.generation == generation


def test_cards_are_found_by_their_identity_on_every_generation(sysfs: Path) -> None:
    addresses = {generation: f"0000:b{index}:00.0" for index, generation in enumerate(GENERATIONS)}
    for index, (generation, address) in enumerate(addresses.items()):
        add_card(sysfs, address, f"64:4c:36:00:0{index}:00", generation)
    host = LocalHost("bench")
    assert identities_of(host, sysfs=str(sysfs)) == [
        (address, f"64:4c:36:00:0{index}:00") for index, address in enumerate(addresses.values())
    ]
    assert find_card(host, "64:4c:36:00:00:00", sysfs=str(sysfs)) == "0000:b0:00.0"
