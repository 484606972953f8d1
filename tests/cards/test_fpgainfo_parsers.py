"""Text of `fpgainfo` in the forms of its versions; values are ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cards.parsers import CardInfo, Sensor, parse_errors, parse_fpgainfo
from harness.judgement.values import ALL_ONES, NOT_EXPOSED, Unknown

HASH = "c0ffee11" * 8

FME_2026 = """\
Intel FPGA Programmable Acceleration Card N3000
Board Management Controller, MAX10 NIOS FW version: D.2.0.22\x20
Board Management Controller, MAX10 Build version: D.2.0.7\x20
//****** FME ******//
Interface                        : DFL
Object Id                        : 0xEE00000
PCIe s:b:d.f                     : 0000:B4:00.0
Vendor Id                        : 0x8086
Device Id                        : 0x0B30
SubVendor Id                     : 0x8086
SubDevice Id                     : 0x0000
Socket Id                        : 0x00
Ports Num                        : 01
Bitstream Id                     : 0x23000410010409
Bitstream Version                : 0.2.3
Pr Interface Id                  : f3c99413-5081-4aad-bced-07eb84a6d0bb
Boot Page                        : user
"""
BMC_VENDOR_1X = """\
Board Management Controller, MAX10 NIOS FW version D.2.0.12
Board Management Controller, MAX10 Build version D.2.0.5
//****** BMC SENSORS ******//
Object Id                     : 0xF500000
PCIe s:b:d.f                  : 0000:1:00.0
Device Id                     : 0x0b30
Numa Node                     : 0
Ports Num                     : 01
Bitstream Id                  : 9851690402513929
Bitstream Version             : 0.2.3
Pr Interface Id               : A5D72A3CC8B04939912CF715E5DC10CA
( 1) Board Power              : 70.50 Watts
( 4) 1.2V Voltage             : 1.21 Volts
(12) FPGA Die Temperature                              : -3.25 Celsius
(14) QSFP0 Supply Voltage     : N/A
(15) QSFP1 Supply Voltage     : broken
"""
FME_2018 = """\
//****** FME ******//
Object Id            : 0xF500000
PCIe s:b:d:f         : 0000:05:00:0
Device Id            : 0x0B30
Socket Id            : 0x00
Bitstream Id         : 0x2300011001030F
Bitstream Version    : 0x23000110
Pr Interface Id      : f3c99413-5081-4aad-bced-07eb84a6d0bb
"""
SECURITY = f"""\
Board Management Controller, MAX10 NIOS FW version: D.2.0.22\x20
Board Management Controller, MAX10 Build version: D.2.0.7\x20
//****** SEC ******//
PCIe s:b:d.f                     : 0000:B4:00.0
Bitstream Id                     : 0x23000410010409
********** SEC Info START ************\x20
BMC root entry hash: 0x{"77" * 32}
BBMC CSK IDs canceled: None
PR root entry hash: hash not programmed
AFU/PR CSK IDs canceled: None
FIM root entry hash: {HASH}
FIM CSK IDs canceled: 0,3-5
User flash update counter: 31
********** SEC Info END ************\x20
"""


def one(text: str) -> CardInfo:
    (card,) = parse_fpgainfo(text)
    return card


def test_a_recent_fme() -> None:
    assert one(FME_2026).fields == {
        "bmcfw_version": "D.2.0.22",
        "bmc_version": "D.2.0.7",
        "address": "0000:b4:00.0",
        "device_id": 0x0B30,
        "bitstream_id": 0x23000410010409,
        "interface_id": "f3c99413-5081-4aad-bced-07eb84a6d0bb",
        "boot_page": "user",
    }
    assert one(FME_2026).rows["Bitstream Version"] == "0.2.3"


def test_vendor_1x_without_colon_with_decimal_id_and_sensors() -> None:
    card = one(BMC_VENDOR_1X)
    assert card.fields == {
        "bmcfw_version": "D.2.0.12",
        "bmc_version": "D.2.0.5",
        "address": "0000:01:00.0",
        "device_id": 0x0B30,
        "bitstream_id": 9851690402513929,
        "interface_id": "a5d72a3c-c8b0-4939-912c-f715e5dc10ca",
    }
    assert card.sensors == (
        Sensor(1, "Board Power", 70.5, "Watts"),
        Sensor(4, "1.2V Voltage", 1.21, "Volts"),
        Sensor(12, "FPGA Die Temperature", -3.25, "Celsius"),
        Sensor(14, "QSFP0 Supply Voltage", Unknown("not available")),
        Sensor(15, "QSFP1 Supply Voltage", Unknown("not a reading: 'broken'")),
    )


@pytest.mark.parametrize("text", [FME_2026, BMC_VENDOR_1X, SECURITY])
def test_behind_a_containers_terminal(text: str) -> None:
    assert parse_fpgainfo(text.replace("\n", "\r\n")) == parse_fpgainfo(text)


def test_the_oldest_form() -> None:
    assert one(FME_2018).fields == {
        "address": "0000:05:00.0",
        "device_id": 0x0B30,
        "bitstream_id": 0x2300011001030F,
        "interface_id": "f3c99413-5081-4aad-bced-07eb84a6d0bb",
    }


def test_security_with_a_misspelt_label() -> None:
    fields = one(SECURITY).fields
    assert {name: value for name, value in fields.items() if "root" in name} == {
        "bmc_root": "77" * 32,
        "pr_root": "",
        "sr_root": HASH,
    }
    assert (fields["sr_cancelled"], fields["bmc_cancelled"], fields["pr_cancelled"]) == (
        frozenset({0, 3, 4, 5}),
        frozenset(),
        frozenset(),
    )
    assert fields["flash_count"] == 31
    assert one(SECURITY).statement()["sr_cancelled"] == [0, 3, 4, 5]


@pytest.mark.parametrize(
    ("row", "name", "expected"),
    [
        ("BMC root entry hash              : 0x" + "12" * 32, "bmc_root", "12" * 32),
        ("FIM CSK IDs canceled : Not Supported", "sr_cancelled", Unknown("not supported")),
        ("FIM CSK IDs canceled:", "sr_cancelled", Unknown("empty")),
        ("FIM root entry hash: 0x" + "ff" * 32, "sr_root", ALL_ONES),
        ("Bitstream Id                     : 0xFFFFFFFFFFFFFFFF", "bitstream_id", ALL_ONES),
        ("Board Management Controller NIOS FW version: D.1.0.4", "bmcfw_version", "D.1.0.4"),
        ("Board Management Controller, MAX10 NIOS FW version: ", "bmcfw_version", Unknown("empty")),
        (
            "Board Management Controller, microcontroller FW version: Not Supported",
            "bmcfw_version",
            Unknown("not supported"),
        ),
        ("Retimer A Version                : 101c.1064 ", "retimer_a_version", "101c.1064"),
        ("Retimer B Version                : ffff.ffff", "retimer_b_version", Unknown("all ones")),
        ("Boot Page                        : N/A", "boot_page", Unknown("not available")),
    ],
)
def test_single_rows(row: str, name: str, expected: object) -> None:
    assert one(row + "\n").fields[name] == expected


def test_security_that_is_not_supported() -> None:
    text = FME_2026.replace("FME", "SEC").replace("Boot Page                        : user\n", "")
    fields = one(text + "Sec info is not supported\n").fields
    assert fields["sr_root"] == fields["sr_cancelled"] == fields["flash_count"] == NOT_EXPOSED
    assert fields["bitstream_id"] == 0x23000410010409


def test_two_cards_in_one_text() -> None:
    other = FME_2026.replace("B4:00.0", "B5:00.0").replace("0x23000410010409", "0x23000410010410")
    for text in (FME_2026 + other, FME_2018 + FME_2018.replace("05:00:0", "06:00:0")):
        first, second = parse_fpgainfo(text)
        assert first.fields["address"] != second.fields["address"]
    assert [card.fields["bitstream_id"] for card in parse_fpgainfo(FME_2026 + other)] == [
        0x23000410010409,
        0x23000410010410,
    ]


def test_a_complaint_before_the_card_is_no_card() -> None:
    assert (
        one(f"board.c:12:open() **ERROR** : Failed to get token\n{FME_2026}").fields == one(FME_2026).fields
    )


def test_a_field_that_is_given_twice_differently_counts_for_nothing() -> None:
    text = SECURITY + "User flash update counter: 32\n"
    assert one(text).fields["flash_count"] == Unknown("given twice with different values")


def test_retimer_text() -> None:
    text = (
        "//****** PHY GROUP 0 ******//\nDirection                        : Host side\n"
        "Speed                            : 25 Gbps\n//****** PHY GROUP 4 ******//\n"
        "Direction                        : Line side\n//****** Intel C827 Retimer ******//\n"
        "Port0 25G                        : Up\nRetimer A Version                : 101c.1074 \n"
        "Retimer B Version                : 101c.1074 \n"
    )
    card = one(text)
    assert card.fields == {"retimer_a_version": "101c.1074", "retimer_b_version": "101c.1074"}
    assert card.rows["Port0 25G"] == "Up"


def test_errors() -> None:
    text = (
        "//****** FME ERRORS ******//\nErrors : 0x0\nPCIe0 Errors : 0x4\nNext Error : zzz\nSocket Id : 0x0\n"
    )
    found = parse_errors(text)
    assert (found["Errors"], found["PCIe0 Errors"]) == (0, 4)
    assert isinstance(found["Next Error"], Unknown) and "Socket Id" not in found


@given(st.text(max_size=400), st.sampled_from([FME_2026, BMC_VENDOR_1X, SECURITY]), st.integers(0, 900))
def test_damaged_text_never_raises(noise: str, text: str, at: int) -> None:
    damaged = text[:at] + noise + text[at:]
    parse_errors(damaged)
    for card in parse_fpgainfo(damaged):
        card.statement()


@given(st.sampled_from(SECURITY.splitlines()), st.text(max_size=40), st.integers(0, 60))
def test_a_damaged_row_is_never_another_legal_value(row: str, noise: str, at: int) -> None:
    """A row into which something was written is read as before, or not at all."""
    undamaged = one(SECURITY).fields
    damaged = parse_fpgainfo(
        SECURITY.replace(row, row[:at] + "\x1b" + noise.replace("\n", "") + "\x1b" + row[at:])
    )
    for card in damaged:
        for name, value in card.fields.items():
            assert isinstance(value, Unknown) or value == undamaged[name], (name, value)
