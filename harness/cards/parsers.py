"""Text of `fpgainfo` in all the forms of its versions -> fields; what is not legal is Unknown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.cards import values
from harness.judgement.values import NOT_EXPOSED, Unknown, Value

_BMC_LINE = re.compile(
    r"^Board Management Controller,? (?:MAX10 |microcontroller )?"
    r"(?P<what>NIOS FW|Build|FW) version *:?(?: +(?P<value>.*))?$"
)
_SENSOR = re.compile(r"^\( *(?P<number>[0-9]{1,4})\) (?P<name>[^:]*[^: ]) *: (?P<value>.*)$")
_READING = re.compile(r"^(?P<number>-?[0-9]{1,9}(?:\.[0-9]{1,9})?) (?P<unit>[A-Za-z]+)$")
_NOT_SUPPORTED = "sec info is not supported"


def _csk_text(text: str) -> Value[frozenset[int]]:
    """Read the cancelled CSKs as `fpgainfo` shows them: ``None`` is its word for an empty list."""
    plain = text.strip()
    if plain.lower() == "not supported":
        return Unknown("not supported")
    # It also says None when it could not read the list; that is for the judge to find.
    return frozenset() if plain == "None" else values.csk_ids(plain) if plain else Unknown("empty")


def _hash_text(text: str) -> Value[str]:
    plain = text.strip()
    if plain.lower() == "not supported":
        return Unknown("not supported")
    # `None` stands for a hash that was not read as well as for none at all: it says nothing.
    return values.root_hash(plain) if plain else Unknown("empty")


#: Label (lower case, single blanks) -> field and how its value is read.
_ROWS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "pcie s:b:d.f": ("address", values.pci_address),
    "pcie s:b:d:f": ("address", values.pci_address),
    "device id": ("device_id", values.device_id),
    "bitstream id": ("bitstream_id", values.word64),
    "bitstream metadata": ("bitstream_metadata", values.word64),
    "pr interface id": ("interface_id", values.interface_id),
    "boot page": ("boot_page", values.boot_page_text),
    "bmc root entry hash": ("bmc_root", _hash_text),
    "pr root entry hash": ("pr_root", _hash_text),
    "fim root entry hash": ("sr_root", _hash_text),
    "sr root entry hash": ("sr_root", _hash_text),
    "bmc csk ids canceled": ("bmc_cancelled", _csk_text),
    # So misspelt where the tool could not read it.
    "bbmc csk ids canceled": ("bmc_cancelled", _csk_text),
    "afu/pr csk ids canceled": ("pr_cancelled", _csk_text),
    "pr csk ids canceled": ("pr_cancelled", _csk_text),
    "fim csk ids canceled": ("sr_cancelled", _csk_text),
    "sr csk ids canceled": ("sr_cancelled", _csk_text),
    "user flash update counter": ("flash_count", values.flash_count),
    "retimer a version": ("retimer_a_version", values.retimer_version),
    "retimer b version": ("retimer_b_version", values.retimer_version),
}
_SECURITY = ("sr_root", "bmc_root", "pr_root", "sr_cancelled", "bmc_cancelled", "pr_cancelled", "flash_count")


@dataclass(frozen=True, slots=True)
class Sensor:
    """One row of ``fpgainfo bmc``; ``value`` in ``unit`` (Watts, Amps, Volts, Celsius)."""

    number: int
    name: str
    value: Value[float]
    unit: str = ""


@dataclass(frozen=True, slots=True)
class CardInfo:
    """What ``fpgainfo`` says of one card.

    ``fields``: by the names of :class:`harness.cards.truth.CardTruth`; only those that the text speaks of.
    ``sensors`` in the order of the text. ``rows``: every other label with its text.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    sensors: tuple[Sensor, ...] = ()
    rows: Mapping[str, str] = field(default_factory=dict)

    def statement(self) -> dict[str, Any]:
        """Return the statement of a claim: the fields, with sets as sorted lists."""
        return {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name, value in self.fields.items()
        }


def parse_fpgainfo(text: str) -> list[CardInfo]:
    """Return what ``fpgainfo fme|bmc|phy|security`` says of each card, in the order of the text.

    Never raises: text that is not of `fpgainfo` gives an empty list or Unknown fields.
    """
    found = [info for block in _blocks(text) if (info := _card(block)) is not None]
    # A complaint before the first card looks like a row of its own.
    return [info for info in found if info.fields or info.sensors] or found


def parse_errors(text: str) -> dict[str, Value[int]]:
    """Return the error registers of ``fpgainfo errors``: label -> value."""
    return {
        label: values.word64(value)
        for label, value in filter(None, map(_row, text.splitlines()))
        if label.lower().endswith(("errors", "error"))
    }


def _blocks(text: str) -> list[list[str]]:
    """Split at each card: what leads up to its address row (versions, title) belongs to it."""
    blocks: list[list[str]] = [[]]
    seen_rows = False
    for line in text.splitlines():
        if _BMC_LINE.match(line.strip()) or line.startswith(("Intel FPGA", "Intel Acceleration")):
            if seen_rows:
                blocks.append([])
                seen_rows = False
        elif line.startswith("//****** ") and _address_in(blocks[-1]) and _begins_card(line):
            # A card without version lines of its own.
            blocks.append([])
        elif _row(line):
            seen_rows = True
        blocks[-1].append(line)
    return blocks


def _begins_card(line: str) -> bool:
    return re.match(r"//\*+ (FME|BMC SENSORS|SEC|PHY|PORT) \*+//", line) is not None


def _address_in(lines: list[str]) -> bool:
    return any((row := _row(line)) and row[0].lower().startswith("pcie s:b:d") for line in lines)


def _card(lines: list[str]) -> CardInfo | None:
    found: dict[str, Any] = {}
    sensors: list[Sensor] = []
    rows: dict[str, str] = {}
    for raw in lines:
        line = raw.strip()
        if match := _BMC_LINE.match(line):
            name = "bmc_version" if match["what"] == "Build" else "bmcfw_version"
            _put(found, name, values.version_text(match["value"] or ""))
        elif match := _SENSOR.match(line):
            sensors.append(_sensor(match))
        elif line.lower() == _NOT_SUPPORTED:
            found.update({name: NOT_EXPOSED for name in _SECURITY if name not in found})
        elif row := _row(line):
            label, value = row
            known = _ROWS.get(" ".join(label.lower().split()))
            if known is None:
                rows.setdefault(label, value)
            else:
                _put(found, known[0], known[1](value))
    return CardInfo(found, tuple(sensors), rows) if found or sensors or rows else None


def _put(found: dict[str, Any], name: str, value: Any) -> None:
    """Keep ``value``, unless the text gives the field twice and differently: then neither counts."""
    if name in found and found[name] != value:
        value = Unknown("given twice with different values")
    found[name] = value


def _sensor(match: re.Match[str]) -> Sensor:
    number, name, text = int(match["number"]), match["name"], match["value"].strip()
    reading = _READING.fullmatch(text)
    if reading is None:
        return Sensor(
            number, name, Unknown("not available" if text == "N/A" else f"not a reading: {text[:60]!r}")
        )
    return Sensor(number, name, float(reading["number"]), reading["unit"])


def _row(line: str) -> tuple[str, str] | None:
    """Split ``Label   : value`` at the first colon that stands apart, else at the first that ends a word."""
    stripped = line.strip()
    for separator in (" : ", ": "):
        label, colon, value = stripped.partition(separator)
        if colon and label.strip():
            return label.strip(), value.strip()
    if stripped.endswith(":") and stripped != ":":
        return stripped[:-1].strip(), ""
    return None
