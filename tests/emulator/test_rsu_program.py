"""The emulated rsu: resets, address moves, and the exit codes that prove nothing (n3000.md 4.5, 5.2)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.emulator.card import CardProfile, CardSpec, CardState
from harness.emulator.host import EmulatedHost

BITSTREAM = "cat /sys/bus/pci/devices/*/fpga_region/region*/dfl-fme.*/bitstream_id"


def test_reset_activates_what_was_flashed(console: Any, recipe_image: Any) -> None:
    path = console.put("user.bin", recipe_image("unsigned"))
    before = console.run(BITSTREAM).out
    assert console.run(f"fpgasupdate -y {path} b2:00.0").code == 0
    assert console.run(BITSTREAM).out == before
    result = console.run("rsu bmcimg 0000:b2:00.0")
    assert (result.code, result.out) == (0, "")
    assert result.err.endswith(" - RSU operation complete\n")
    assert int(console.run(BITSTREAM).out, 16) != int(before, 16)


def test_reset_takes_ten_seconds_of_lab_time(console: Any) -> None:
    before = int(console.run("date +%s").out)
    console.run("rsu bmcimg b2:00.0")
    assert int(console.run("date +%s").out) - before == 10


def test_card_that_moves_is_reported_as_complete_and_found_elsewhere(clock: Any, console_for: Any) -> None:
    host = EmulatedHost("subcloud1", clock)
    spec = CardSpec("card0", "64:4c:36:00:00:00", ("0000:b3:00.0", "0000:b2:00.0"))
    host.add_card(spec, CardState(), CardProfile())
    host.power_on()
    console = console_for(host)
    assert console.run("lspci -Dm -d 8086:0b30").out.split()[0] == "0000:b3:00.0"
    assert console.run("rsu bmcimg b3:00.0").code == 0
    assert console.run("lspci -Dm -d 8086:0b30").out.split()[0] == "0000:b2:00.0"
    path = console.run("readlink -f /sys/bus/platform/drivers/intel-m10bmc-sec-update/*.auto").out
    assert "/0000:b2:00.0/" in path
    assert "0000:b3:00.0/fpga" not in path
    assert console.run("ls /dev | grep -c dfl-fme").out == "1\n"


def test_card_that_stays_away_is_no_error_to_the_tool(console: Any) -> None:
    console.card.condition("stays-away", True)
    result = console.run("rsu bmcimg b2:00.0")
    assert (result.code, "RSU operation complete" in result.err) == (0, True)
    assert console.run("lspci -d 8086:0b30").out == ""
    assert console.run("rsu bmcimg b2:00.0").code == 64


def test_busy_card_fails_with_an_io_error(console: Any) -> None:
    console.card.condition("busy", True)
    result = console.run("rsu bmcimg b2:00.0")
    assert result.code == 74
    assert result.err.endswith(" - RSU operation failed: [Errno 16] Device or resource busy\n")
    assert "Doorbell not idle: 0x" in console.run("dmesg").out


def test_kernel_without_image_load_leaves_the_nics_unbound(console: Any) -> None:
    console.host.condition("no-image-load", True)
    assert console.run("ls /sys/bus/pci/drivers/i40e | grep -c :").out == "4\n"
    result = console.run("rsu bmcimg b2:00.0")
    assert result.code == 1
    assert result.err.endswith("TypeError: rsu not supported by this (0x8086,0x0b30)\n")
    assert console.run("ls /sys/bus/pci/drivers/i40e | grep -c :").out == "0\n"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("bmcimg b9:00.0", 69, "PCIe address (b9:00.0) does not identify a compatible device\n"),
        ("bmcimg nonsense", 64, "invalid bdf: nonsense\n"),
        ("nonsense", 2, "invalid choice: 'nonsense'"),
        ("fpga b2:00.0", 1, "ValueError: Boot type fpga_user1 is not supported by this (0x8086,0x0b30)\n"),
        ("bmcimg b2:00.0 -p other", 2, "invalid choice: 'other'"),
    ],
)
def test_wrong_words(console: Any, words: str, code: int, text: str) -> None:
    result = console.run(f"rsu {words}")
    assert (result.code, text in result.err) == (code, True)


def test_two_cards_need_an_address(new_host: Any, console_for: Any) -> None:
    console = console_for(new_host("0000:1b:00.0", "0000:5e:00.0"))
    result = console.run("rsu bmcimg")
    assert result.code == 64
    assert "Please specify PCIe address as [<segment>:]<bus>:<device>.<function>\n" in result.err
    assert ">rsu bmcimg 1b:00.0\n>rsu bmcimg 5e:00.0\n" in result.err


def test_host_without_cards_has_no_compatible_device(new_host: Any, console_for: Any) -> None:
    result = console_for(new_host()).run("rsu bmcimg")
    assert (result.code, result.err) == (64, "No compatible devices found\n")


def test_image_load_by_hand_takes_known_words_only(console: Any) -> None:
    control = "/sys/bus/platform/drivers/intel-m10bmc-sec-update/*.auto/control"
    assert console.run(f"cat {control}/available_images").out == "bmc_factory bmc_user retimer_fw\n"
    result = console.run(f"echo nonsense > {control}/image_load")
    assert result.err == "bash: line 1: echo: write error: Invalid argument\n"
    result = console.run(f"cat {control}/image_load")
    assert "Permission denied" in result.err
