"""The truth of a card, read by one plain `grep`: on real files, and from text that is damaged."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cards import BMC_ROOT, SR_ROOT, FileCard, add_card

from harness.cards.truth import UPDATE_FIELDS, CardTruth, Probe, read_truth
from harness.errors import InfrastructureError
from harness.hosts.local import LocalHost
from harness.hosts.protocol import Host
from harness.hosts.ssh import SshHost
from harness.judgement.values import ALL_ONES, NOT_EXPOSED, Unknown

ADDRESS = "0000:b2:00.0"
#: What a card of generation D does not expose.
OF_OTHER_GENERATIONS = ("hw_errinfo", "retimer_a_version", "retimer_b_version")


@pytest.fixture(params=["sh", "openssh"])
def reader(request: pytest.FixtureRequest) -> Iterator[Host]:
    """The same probe through /bin/sh here, and through a real SSH server."""
    yield LocalHost("bench") if request.param == "sh" else request.getfixturevalue("peer")


def read(host: Host, card: FileCard) -> CardTruth:
    return read_truth(host, card.address, sysfs=str(card.sysfs))


def reason(value: object) -> str:
    assert isinstance(value, Unknown), value
    return value.reason


def test_every_field_of_a_card(reader: Host, file_card: FileCard) -> None:
    truth = read(reader, file_card)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert truth.values() == {
        "address": ADDRESS,
        "identity": "64:4c:36:00:12:a0",
        "driver": "dfl-pci",
        "generation": "D",
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
        "update_status": "idle",
        "update_error": "",
        "remaining_size": 0,
        "boot_id": boot_id,
        **dict.fromkeys(OF_OTHER_GENERATIONS, NOT_EXPOSED),
    }
    assert truth.sr_cancelled == frozenset({0, 1, 2, 5})
    assert truth.sources["flash_count"].endswith("n3000bmc-sec-update.5.auto/security/flash_count")


def test_one_round_trip(file_card: FileCard) -> None:
    class Counting(LocalHost):
        calls = 0

        def run(self, *args: object, **options: object) -> object:  # type: ignore[override]
            Counting.calls += 1
            return super().run(*args, **options)  # type: ignore[arg-type]

    read(Counting("bench"), file_card)
    assert Counting.calls == 1


def test_the_text_is_the_same_through_ssh(peer: SshHost, file_card: FileCard) -> None:
    argv = Probe(ADDRESS, str(file_card.sysfs)).argv
    here, there = LocalHost("bench").run(argv), peer.run(argv)
    assert (here.stdout, here.stderr, here.exit_code) == (there.stdout, there.stderr, there.exit_code)


def test_an_empty_slot(reader: Host, file_card: FileCard) -> None:
    truth = read_truth(reader, "0000:b3:00.0", sysfs=str(file_card.sysfs))
    known = {name for name, value in truth.values().items() if not isinstance(value, Unknown)}
    assert known == {"boot_id"}
    assert reason(truth.address) == reason(truth.sr_root) == "no device at 0000:b3:00.0"
    assert not truth.on_bus


def test_the_other_card_of_a_host_is_not_mixed_in(reader: Host, file_card: FileCard) -> None:
    other = add_card(file_card.sysfs, "0000:b3:00.0", "64:4c:36:00:12:b0")
    other.write("sec/security/flash_count", "99\n")
    assert read(reader, file_card).flash_count == 12
    assert read(reader, other).flash_count == 99


def test_an_absent_security_group_is_not_exposed(reader: Host, file_card: FileCard) -> None:
    security = file_card.file("sec/security")
    for file in security.iterdir():
        file.unlink()
    security.rmdir()
    truth = read(reader, file_card)
    names = ("sr_root", "bmc_root", "pr_root", "sr_cancelled", "bmc_cancelled", "pr_cancelled", "flash_count")
    assert {name: getattr(truth, name) for name in names} == dict.fromkeys(names, NOT_EXPOSED)
    assert truth.bitstream_id == 0x23000410010307


def test_a_file_that_cannot_be_read_says_why(reader: Host, file_card: FileCard) -> None:
    for name in ("fme/bitstream_id", "sec/security/sr_root_entry_hash"):
        file_card.file(name).unlink()
        file_card.file(name).mkdir()
    truth = read(reader, file_card)
    assert reason(truth.bitstream_id) == reason(truth.boot_page) == "Is a directory"
    assert reason(truth.sr_root) == "Is a directory"


def test_an_empty_file_is_empty_only_where_that_is_a_value(reader: Host, file_card: FileCard) -> None:
    for name in ("sec/security/sr_canceled_csks", "sec/security/sr_root_entry_hash", "fme/bitstream_id"):
        file_card.write(name, "")
    truth = read(reader, file_card)
    assert truth.sr_cancelled == frozenset()
    assert reason(truth.sr_root) == reason(truth.bitstream_id) == "empty"


def test_binary_content_is_unknown(reader: Host, file_card: FileCard) -> None:
    file_card.file("fme/bitstream_id").write_bytes(b"0x2300\0\xff\n")
    assert reason(read(reader, file_card).bitstream_id) == "binary content"


@pytest.mark.parametrize(
    ("name", "text", "field"),
    [
        ("fme/bitstream_id", "0xffffffffffffffff\n", "bitstream_id"),
        ("fme/bitstream_id", "0xffffffffffffffff\n", "boot_page"),
        ("bmc/bmc_version", "0xffffffff\n", "bmc_version"),
        ("device", "0xffff\n", "device_id"),
        ("bmc/mac_address", "ff:ff:ff:ff:ff:ff\n", "identity"),
        ("sec/security/sr_root_entry_hash", "f" * 64 + "\n", "sr_root"),
        ("sec/security/flash_count", "4294967295\n", "flash_count"),
        ("fme/dfl-fme-region.1/fpga_region/region1/compat_id", "f" * 32 + "\n", "interface_id"),
    ],
)
def test_all_ones_is_unknown(file_card: FileCard, name: str, text: str, field: str) -> None:
    file_card.write(name, text)
    assert getattr(read(LocalHost("bench"), file_card), field) == ALL_ONES


#: Read over the SPI bus to the BMC, and the flash behind it (n3000.md 1.1, 4.1, 4.3).
BEHIND_THE_BMC = {
    "identity",
    "sr_root",
    "bmc_root",
    "pr_root",
    "sr_cancelled",
    "bmc_cancelled",
    "pr_cancelled",
    "flash_count",
    "bmc_version",
    "bmcfw_version",
}
#: Registers of the FPGA itself.
IN_THE_FPGA = {"bitstream_id", "bitstream_metadata", "interface_id", "boot_page"}

#: What the kernel makes of flash that reads all ones: magic and counter are inverted there (n3000.md 4.3).
DEAD_FLASH = {
    **{f"sec/security/{section}_root_entry_hash": "hash not programmed\n" for section in ("sr", "bmc", "pr")},
    **{f"sec/security/{section}_canceled_csks": "\n" for section in ("sr", "bmc", "pr")},
    "sec/security/flash_count": "0\n",
}


@pytest.mark.parametrize(
    ("witness", "text", "unknown"),
    [
        ("fme/bitstream_id", "0xffffffffffffffff\n", IN_THE_FPGA | BEHIND_THE_BMC),
        ("bmc/bmc_version", "0xffffffff\n", BEHIND_THE_BMC),
        ("bmc/bmcfw_version", "0xffffffff\n", BEHIND_THE_BMC),
    ],
)
def test_what_a_dead_bus_gave_is_no_value(
    reader: Host, file_card: FileCard, witness: str, text: str, unknown: set[str]
) -> None:
    for name, legal_looking in (DEAD_FLASH | {witness: text}).items():
        file_card.write(name, legal_looking)
    truth = read(reader, file_card)
    assert {name for name, value in truth.values().items() if isinstance(value, Unknown)} == unknown.union(
        OF_OTHER_GENERATIONS
    )
    assert "all ones" in reason(truth.sr_root) and "all ones" in reason(truth.flash_count)


@pytest.mark.parametrize("field", sorted(BEHIND_THE_BMC | IN_THE_FPGA))
def test_a_dead_bus_shows_whatever_is_asked_for(file_card: FileCard, field: str) -> None:
    """A probe of one field alone does not take what a dead bus gave for a value either."""
    file_card.write("fme/bitstream_id", "0xffffffffffffffff\n")
    truth = read_truth(LocalHost("bench"), ADDRESS, sysfs=str(file_card.sysfs), fields={field})
    assert truth.values().keys() == {field, "address", "driver"}
    assert "all ones" in reason(getattr(truth, field))


@pytest.mark.parametrize("field", sorted(set(CardTruth.__slots__) - {"sources"}))
def test_one_field_alone_reads_as_among_all(file_card: FileCard, field: str) -> None:
    alone = read_truth(LocalHost("bench"), ADDRESS, sysfs=str(file_card.sysfs), fields={field})
    assert getattr(alone, field) == getattr(read(LocalHost("bench"), file_card), field)
    assert alone.values().keys() == {field, "address", "driver"}


@pytest.mark.parametrize(
    ("name", "text", "field"),
    [
        ("fme/bitstream_id", "0x23000410010310\n0x1\n", "bitstream_id"),
        ("fme/bitstream_id", "bitstream\n", "bitstream_id"),
        ("bmc/bmc_version", "0x00020006\n", "bmc_version"),
        ("sec/security/flash_count", "32769\n", "flash_count"),
        ("sec/security/flash_count", "-1\n", "flash_count"),
        ("sec/security/sr_canceled_csks", "128\n", "sr_cancelled"),
        ("sec/security/sr_canceled_csks", "5-2\n", "sr_cancelled"),
        ("sec/security/sr_root_entry_hash", "abcd\n", "sr_root"),
        ("sec/firmware/secure-update0/status", "unknown-status\n", "update_status"),
        ("sec/firmware/secure-update0/error", "programming:\n", "update_error"),
    ],
)
def test_what_is_no_legal_value_is_unknown(file_card: FileCard, name: str, text: str, field: str) -> None:
    file_card.write(name, text)
    assert isinstance(getattr(read(LocalHost("bench"), file_card), field), Unknown)


def test_two_files_of_one_field_are_ambiguous(file_card: FileCard) -> None:
    twin = file_card.device / "fpga_region/region1/dfl-fme.1"
    twin.mkdir(parents=True)
    (twin / "bitstream_id").write_text("0x23000410010307\n")
    assert reason(read(LocalHost("bench"), file_card).bitstream_id).startswith("ambiguous")


def test_busy_is_told_as_the_kernel_tells_it(file_card: FileCard) -> None:
    """`error` cannot be read while an update runs: no regular file does that, so its text is given."""
    probe = Probe(ADDRESS)
    path = (
        "/sys/bus/pci/devices/0000:b2:00.0/fpga_region/region0/dfl-fme.0/dfl_dev.0/subdev_spi_altera.2.auto/"
        "spi_master/spi1/spi1.0/n3000bmc-sec-update.5.auto/firmware/secure-update0"
    )
    truth = probe.parse(
        "/sys/bus/pci/devices/0000:b2:00.0/uevent:DRIVER=dfl-pci\n" + f"{path}/status:programming\n",
        f"grep: {path}/error: Device or resource busy\n",
    )
    assert truth.update_status == "programming"
    assert reason(truth.update_error) == "Device or resource busy"
    assert truth.sources["update_error"] == f"{path}/error"


def test_only_some_fields(file_card: FileCard) -> None:
    truth = read_truth(LocalHost("bench"), ADDRESS, sysfs=str(file_card.sysfs), fields=UPDATE_FIELDS)
    assert truth.values().keys() == UPDATE_FIELDS | {"address", "driver"}
    assert reason(truth.flash_count) == "not read"


def test_a_probe_that_did_not_run_is_an_error_not_an_empty_card(file_card: FileCard) -> None:
    host = LocalHost("bench", tools={"grep": "/no/such/grep"})
    with pytest.raises(InfrastructureError, match=r"exit code 127: .*not found"):
        read(host, file_card)


@given(
    st.text(max_size=300),
    st.text(max_size=300),
    st.lists(st.tuples(st.sampled_from(Probe(ADDRESS).argv[3:]), st.text(max_size=80)), max_size=30),
)
def test_damaged_text_never_raises(stdout: str, stderr: str, rows: list[tuple[str, str]]) -> None:
    text = "\n".join(f"{path.replace('*', '0')}:{value}" for path, value in rows)
    truth = Probe(ADDRESS).parse(f"{stdout}\n{text}", stderr)
    assert set(truth.values()) == set(CardTruth.__slots__) - {"sources"}


def test_an_answer_that_ends_too_early_never_gives_another_value(file_card: FileCard) -> None:
    """Neither half a number nor "nothing cancelled" because the lines about it did not arrive."""
    probe = Probe(ADDRESS, str(file_card.sysfs))
    said = LocalHost("bench").run(probe.argv)
    whole = probe.parse(said.stdout, said.stderr)
    assert whole.sr_cancelled == {0, 1, 2, 5}
    for length in range(len(said.stdout)):
        cut = probe.parse(said.stdout[:length], said.stderr)
        for name in set(CardTruth.__slots__) - {"sources"}:
            value = getattr(cut, name)
            assert isinstance(value, Unknown) or value == getattr(whole, name), f"{name}, cut at {length}"


def test_the_probe_is_one_plain_command(file_card: FileCard) -> None:
    argv = Probe(ADDRESS, str(file_card.sysfs)).argv
    assert argv[:3] == ["grep", "-H", ""]
    plain = subprocess.run(
        ["/bin/sh", "-c", "grep -H '' " + " ".join(argv[3:])], capture_output=True, text=True
    )
    assert plain.stdout == LocalHost("bench").run(argv).stdout
