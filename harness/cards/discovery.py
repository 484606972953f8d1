"""Which cards a host has, and where a card is now, by `lspci` and sysfs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.cards import values
from harness.cards.generations import attributes_of
from harness.errors import CardLostError, InfrastructureError
from harness.hosts.protocol import CommandResult, Host
from harness.judgement.values import NOT_EXPOSED, Unknown, Value

VENDOR = 0x8086
#: The function by which a card is known: the FPGA management function (n3000.md 1.1, 1.2).
MANAGEMENT = 0x0B30
#: The FPGA functions of a card; 0b32 becomes 0d8f when a 5GNR FEC image is loaded.
FPGA_FUNCTIONS = frozenset({MANAGEMENT, 0x0B32, 0x0D8F})

_MAC_PATTERNS = tuple(attribute.pattern for attribute in attributes_of("identity"))
_LSPCI = re.compile(
    r"^(?P<address>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) .*?"
    r"\[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\](?: \(rev (?P<rev>[0-9a-f]{2})\))?"
)


@dataclass(frozen=True, slots=True)
class PciFunction:
    """One PCI function as `lspci` or udev has it. ``answers``: False once it fell off the bus."""

    address: str
    vendor: int
    device: int
    answers: bool = True


@dataclass(frozen=True, slots=True)
class FoundCard:
    """One card: the address of its management function and who it is (its first MAC)."""

    address: str
    identity: Value[str]
    answers: bool = True


def parse_lspci(text: str) -> list[PciFunction]:
    """Return the functions in the text of ``lspci -Dnn``; lines of any other kind are passed over."""
    found = []
    for line in text.splitlines():
        match = _LSPCI.match(line.strip())
        if match is None:
            continue
        address = values.pci_address(match["address"])
        if isinstance(address, Unknown):
            continue
        # All ones in the configuration space: nothing answers behind the address any more.
        answers = match["rev"] != "ff"
        found.append(PciFunction(address, int(match["vendor"], 16), int(match["device"], 16), answers))
    return found


def discover(host: Host, *, sysfs: str = "/sys", deadline: float = 30.0) -> list[FoundCard]:
    """Return the cards of ``host``, by address.

    :raises InfrastructureError: the host cannot be reached, or has no `lspci`.
    """
    listed = host.run(["lspci", "-Dnn", "-d", f"{VENDOR:04x}:{MANAGEMENT:04x}"], deadline=deadline)
    if listed.exit_code != 0:
        raise InfrastructureError(
            f"`lspci` on {host.name} ended with exit code {listed.exit_code}: "
            f"{listed.stderr.strip()[-200:] or 'it said nothing'}.",
            hint="Install pciutils on the host.",
        )
    identities = dict(identities_of(host, sysfs=sysfs, deadline=deadline))
    return [
        FoundCard(function.address, identities.get(function.address, NOT_EXPOSED), function.answers)
        for function in parse_lspci(listed.stdout)
        if (function.vendor, function.device) == (VENDOR, MANAGEMENT)
    ]


def identities_of(host: Host, *, sysfs: str = "/sys", deadline: float = 30.0) -> list[tuple[str, Value[str]]]:
    """Return address and MAC of every card of ``host``, in one round trip.

    :raises InfrastructureError: the host cannot be reached, or has no working `grep`.
    """
    return identities_in(host.name, host.run(identities_question(sysfs), deadline=deadline), sysfs)


def identities_question(sysfs: str = "/sys") -> list[str]:
    """Return the command that asks for the MAC of every card."""
    return ["grep", "-H", "", *(f"{_devices(sysfs)}/*/{pattern}" for pattern in _MAC_PATTERNS)]


def identities_in(host: str, result: CommandResult, sysfs: str = "/sys") -> list[tuple[str, Value[str]]]:
    """Return address and MAC of every card from the answer to :func:`identities_question`.

    :raises InfrastructureError: ``host`` has no working `grep`.
    """
    if result.exit_code not in (0, 1, 2):
        raise InfrastructureError(
            f"The cards of {host} could not be listed: `grep` ended with exit code "
            f"{result.exit_code}: {result.stderr.strip()[-200:] or 'it said nothing'}.",
            hint=f"Everything of a card is read by `grep`: install it on {host}.",
        )
    row = re.compile(rf"{re.escape(_devices(sysfs))}/(?P<address>[^/]+)/.+/mac_address:(?P<mac>.*)")
    found = []
    for line in result.stdout.split("\n"):
        if match := row.fullmatch(line):
            address = values.pci_address(match["address"])
            if not isinstance(address, Unknown):
                found.append((address, values.mac(match["mac"])))
    return sorted(found, key=lambda pair: pair[0])


def _devices(sysfs: str) -> str:
    return f"{sysfs}/bus/pci/devices"


def find_card(host: Host, identity: str, *, sysfs: str = "/sys", deadline: float = 30.0) -> str | None:
    """Return the address at which the card ``identity`` answers now; None where it does not.

    :raises CardLostError: two addresses claim to be that card.
    :raises InfrastructureError: the host cannot be asked.
    """
    places = [a for a, mac in identities_of(host, sysfs=sysfs, deadline=deadline) if mac == identity]
    if len(places) > 1:
        raise CardLostError(f"Two cards of {host.name} say that they are {identity}: {' and '.join(places)}.")
    return places[0] if places else None
