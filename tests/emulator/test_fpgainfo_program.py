"""The emulated fpgainfo: labels, widths and misspellings (n3000.md 4.8, formats.md)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.emulator.card import CardState

HEAD = (
    "Intel FPGA Programmable Acceleration Card N3000\n"
    "Board Management Controller, MAX10 NIOS FW version: D.2.0.21 \n"
    "Board Management Controller, MAX10 Build version: D.2.0.6 \n"
)
IDENTITY = (
    "Interface                        : DFL\n"
    "Object Id                        : 0xEF00000\n"
    "PCIe s:b:d.f                     : 0000:B2:00.0\n"
    "Vendor Id                        : 0x8086\n"
    "Device Id                        : 0x0B30\n"
    "SubVendor Id                     : 0x8086\n"
    "SubDevice Id                     : 0x0000\n"
    "Socket Id                        : 0x00\n"
    "Ports Num                        : 01\n"
    "Bitstream Id                     : 0x23001410010310\n"
    "Bitstream Version                : 0.2.3\n"
    "Pr Interface Id                  : a5d72a3c-c8b0-4939-912c-f715e5dc10ca\n"
)
INTEL_ROOT = "77698ea203e459f6cb0e65b54a1dd4ab47a6a6600e7988f723ad89f5b7f3673a"


def test_fme_of_a_card_as_shipped_shows_the_factory_image(console: Any) -> None:
    result = console.run("fpgainfo fme 0000:b2:00.0")
    title = "//****** FME ******//\n"
    boot_page = "Boot Page                        : factory\n"
    assert (result.code, result.out) == (0, HEAD + title + IDENTITY + boot_page)


def test_security_of_a_card_with_a_root_and_cancelled_keys(new_host: Any, console_for: Any) -> None:
    state = CardState(sr_root="ab" * 32, sr_cancelled=frozenset({0, 1, 2, 5}), flash_count=9)
    result = console_for(new_host("0000:b2:00.0", state=state)).run("fpgainfo security b2:00.0")
    assert result.out == (
        HEAD + "//****** SEC ******//\n" + IDENTITY + "********** SEC Info START ************ \n"
        f"BMC root entry hash: {INTEL_ROOT}\n"
        "BMC CSK IDs canceled: None\n"
        "PR root entry hash: hash not programmed\n"
        "AFU/PR CSK IDs canceled: None\n"
        f"FIM root entry hash: {'ab' * 32}\n"
        "FIM CSK IDs canceled: 0-2,5\n"
        "User flash update counter: 9\n"
        "********** SEC Info END ************ \n"
    )


def test_missing_security_directory_is_told_with_exit_code_0(console: Any) -> None:
    console.card.condition("no-security-group", True)
    result = console.run("fpgainfo security")
    assert (result.code, result.out.splitlines()[-1]) == (0, "Sec info is not supported")
    assert "**ERROR** : Failed to get token Object" in result.err


def test_unreadable_attributes_show_as_legal_values(console: Any) -> None:
    console.host.condition("sysfs-unreadable", True)
    out = console.run("fpgainfo security").out
    assert "BBMC CSK IDs canceled: None\n" in out
    assert "FIM CSK IDs canceled: None\n" in out
    assert "MAX10 Build version: \n" in out


def test_retimer_rows_have_a_trailing_blank(console: Any) -> None:
    out = console.run("fpgainfo phy").out
    assert "//****** Intel C827 Retimer ******//\n" in out
    assert out.endswith(
        "Retimer A Version                : 101c.1064 \nRetimer B Version                : 101c.1064 \n"
    )


def test_every_card_is_shown_without_an_address(new_host: Any, console_for: Any) -> None:
    out = console_for(new_host("0000:1b:00.0", "0000:5e:00.0")).run("fpgainfo fme").out
    assert out.count("Boot Page") == 2
    assert "PCIe s:b:d.f                     : 0000:1B:00.0\n" in out
    assert "PCIe s:b:d.f                     : 0000:5E:00.0\n" in out


@pytest.mark.parametrize(("words", "code"), [("fme 0000:99:00.0", 0), ("nonsense", 1), ("fme xyz", 1)])
def test_nothing_is_shown_for_wrong_words(console: Any, words: str, code: int) -> None:
    result = console.run(f"fpgainfo {words}")
    assert (result.code, result.out) == (code, "")
    assert result.err
