"""The emulated lspci: the lines that tools filter (n3000.md 1.1, 1.2)."""

from __future__ import annotations

from typing import Any

import pytest


def test_line_that_starlingx_takes_the_address_from(console: Any) -> None:
    result = console.run("lspci -Dm -d 8086:0b30")
    assert result.out == (
        '0000:b2:00.0 "Processing accelerators" "Intel Corporation" "Device 0b30" '
        '"Intel Corporation" "Device 0000"\n'
    )


def test_short_lines_with_and_without_numbers(console: Any) -> None:
    line = "b2:00.0 Processing accelerators: Intel Corporation Device 0b30\n"
    assert console.run("lspci -d 8086:0b30").out == line
    assert console.run("lspci -D -d 8086:0b30").out == f"0000:{line}"
    assert console.run("lspci -n -d 8086:0b30").out == "b2:00.0 1200: 8086:0b30\n"
    assert console.run("lspci -Dnn -d 8086:0b30").out == (
        "0000:b2:00.0 Processing accelerators [1200]: Intel Corporation Device [8086:0b30]\n"
    )


def test_record_form(console: Any) -> None:
    assert console.run("lspci -vmmks b2:00.0").out == (
        "Slot:\tb2:00.0\nClass:\tProcessing accelerators\nVendor:\tIntel Corporation\nDevice:\tDevice 0b30\n"
        "SVendor:\tIntel Corporation\nSDevice:\tDevice 0000\nDriver:\tdfl-pci\nNUMANode:\t0\n\n"
    )


def test_card_has_two_network_chips_and_a_second_function_below_one_root_port(console: Any) -> None:
    out = console.run("lspci").out
    assert out.count("Ethernet Controller XXV710") == 4
    assert "Processing accelerators: Intel Corporation Device 0b32\n" in out
    root_ports = {
        console.run(f"readlink -f /sys/bus/pci/devices/{address}").out.strip().split("/")[4]
        for address in console.run("lspci -D -d 8086: -n").out.split()
        if address.startswith("0000:")
    }
    assert len(root_ports) == 1


def test_all_ones_look_like_a_card_that_fell_off_the_bus(console: Any) -> None:
    console.card.condition("all-ones", True)
    line = "b2:00.0 Processing accelerators: Intel Corporation Device 0b30 (rev ff) (prog-if ff)\n"
    assert console.run("lspci -d 8086:0b30").out == line
    assert "!!! Unknown header type 7f\n" in console.run("lspci -v -d 8086:0b30").out
    assert console.run(
        "cat /sys/bus/pci/devices/0000:b2:00.0/fpga_region/region*/dfl-fme.*/bitstream_id"
    ).out == ("0xffffffffffffffff\n")


@pytest.mark.parametrize("words", ["-d nonsense", "-s xyz", "extra", "--nope"])
def test_wrong_words_are_refused(console: Any, words: str) -> None:
    result = console.run(f"lspci {words}")
    assert (result.code, result.out) == (1, "")
    assert result.err
