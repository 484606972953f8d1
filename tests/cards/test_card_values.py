"""Text -> values: every form that tools and drivers have, and never a legal value from garbage."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.cards import values
from harness.judgement.values import ALL_ONES, Unknown

HEX64 = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("reader", "text", "expected"),
    [
        (values.word64, "0x23000410010310", 0x23000410010310),
        (values.word64, "0x2300011001030F", 0x2300011001030F),
        (values.word64, "288511860124977321", 288511860124977321),
        (values.word64, "0xFFFFFFFFFFFFFFFF", ALL_ONES),
        (values.word64, "18446744073709551615", ALL_ONES),
        (values.word32, "0xffffffff", ALL_ONES),
        (values.version_word, "0x44020014\n", "D.2.0.20"),
        (values.version_word, "0x44020006", "D.2.0.6"),
        (values.version_word, "0xffffffff", ALL_ONES),
        (values.version_text, "D.2.0.21 ", "D.2.0.21"),
        (values.version_text, "", Unknown("empty")),
        (values.version_text, "Not Supported", Unknown("not supported")),
        (values.root_hash, f"0x{HEX64}", HEX64),
        (values.root_hash, HEX64.upper(), HEX64),
        (values.root_hash, "ab" * 48, "ab" * 48),
        (values.root_hash, "hash not programmed\n", ""),
        (values.root_hash, "f" * 96, ALL_ONES),
        (values.csk_ids, "\n", frozenset()),
        (values.csk_ids, "1,2-6,9", frozenset({1, 2, 3, 4, 5, 6, 9})),
        (values.csk_ids, "0-127", frozenset(range(128))),
        (values.interface_id, "A5D72A3CC8B04939912CF715E5DC10CA", "a5d72a3c-c8b0-4939-912c-f715e5dc10ca"),
        (values.interface_id, "a5d72a3c-c8b0-4939-912c-f715e5dc10ca", "a5d72a3c-c8b0-4939-912c-f715e5dc10ca"),
        (values.pci_address, "0000:C4:00.0", "0000:c4:00.0"),
        (values.pci_address, "0000:1:00.0", "0000:01:00.0"),
        (values.pci_address, "0000:05:00:0", "0000:05:00.0"),
        (values.pci_address, "b2:00.0", "0000:b2:00.0"),
        (values.update_error, "", ""),
        (values.update_error, "programming:hw-error\n", "programming:hw-error"),
        (values.update_error, "user-abort", "user-abort"),
        (values.update_error, "programming:unknown-error", "programming:unknown-error"),
        (values.boot_page_text, "N/A", Unknown("not available")),
        (values.boot_page_text, "fpga_user1", "fpga_user1"),
        (values.flash_count, "32768", 32768),
    ],
)
def test_the_forms_of_tools_and_drivers(reader: Callable[[str], Any], text: str, expected: Any) -> None:
    assert reader(text) == expected


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (values.word64, "0x1ffffffffffffffff"),
        (values.word64, "0x"),
        (values.word32, "0x100000000"),
        (values.csk_ids, "128"),
        (values.csk_ids, "0-128"),
        (values.csk_ids, "5-2"),
        (values.csk_ids, "1,,2"),
        (values.flash_count, "32769"),
        (values.mac, "00:00:00:00:00:00"),
        (values.version_word, "0x00020006"),
        (values.version_text, "D.2.0.256"),
        (values.root_hash, "ab" * 40),
        (values.root_hash, ""),
        (values.update_status, "unknown-status"),
        (values.update_error, "programming:"),
        (values.update_error, "asleep:hw-error"),
        (values.boot_page_text, "flash"),
        (values.pci_address, "0000:b2:20.0"),
    ],
)
def test_what_is_not_legal_is_unknown(reader: Callable[[str], Any], text: str) -> None:
    assert isinstance(reader(text), Unknown)


@pytest.mark.parametrize(
    ("bitstream", "page"),
    [
        (0x23000410010310, "user"),
        (0x23001410010310, "factory"),
        (ALL_ONES, ALL_ONES),
    ],
)
def test_the_boot_page_is_bit_36(bitstream: Any, page: Any) -> None:
    assert values.boot_page(bitstream) == page


def _is_list_of_ids(text: str, ids: frozenset[int]) -> bool:
    named: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        first, _, last = part.partition("-")
        named |= set(range(int(first), int(last or first) + 1))
    return named == ids and all(0 <= number <= 127 for number in ids)


#: Reader -> whether a value that it gave may stand for the text.
LEGAL: dict[Callable[[str], Any], Callable[[str, Any], bool]] = {
    values.word64: lambda text, value: (
        int(text.strip(), 0 if "x" in text.lower() else 10) == value < 2**64 - 1
    ),
    values.word32: lambda text, value: (
        int(text.strip(), 0 if "x" in text.lower() else 10) == value < 2**32 - 1
    ),
    values.flash_count: lambda text, value: 0 <= value <= 32768,
    values.mac: lambda text, value: re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", value) is not None,
    values.version_word: lambda text, value: re.fullmatch(r"[A-Z](\.\d+){3}", value) is not None,
    values.version_text: lambda text, value: value == text.strip(),
    values.root_hash: lambda text, value: (
        len(value) in (64, 96) and value in text.lower() if value else "hash not programmed" in text.lower()
    ),
    values.csk_ids: _is_list_of_ids,
    values.interface_id: lambda text, value: len(value.replace("-", "")) == 32,
    values.update_status: lambda text, value: value == text.strip() != "",
    values.update_error: lambda text, value: value == text.strip(),
    values.boot_id: lambda text, value: value == text.strip() and len(value) == 36,
    values.boot_page_text: lambda text, value: value == text.strip() != "",
    values.pci_address: lambda text, value: (
        re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", value) is not None
    ),
}
SEEDS = st.sampled_from(
    [
        "0x",
        "ffff",
        "0xffffffff",
        "programming",
        ":",
        "hash not programmed",
        "hw-error",
        "0-",
        ",",
        "D.2.0.",
        HEX64,
    ]
)
TEXTS = st.text(max_size=80) | st.lists(
    SEEDS | st.text("0123456789abcdefx:.-, \n", max_size=9), max_size=6
).map("".join)


@pytest.mark.parametrize("reader", LEGAL, ids=lambda reader: reader.__name__)
@given(text=TEXTS)
@example(text="٤٤")
@example(text="0x٤")
@example(text="²")
@example(text="1,²")
def test_garbage_never_becomes_a_legal_value(reader: Callable[[str], Any], text: str) -> None:
    value = reader(text)
    assert isinstance(value, Unknown) or LEGAL[reader](text, value), value
