"""What the kernel's log says of a card's update: the authentication code that its tools do not show."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

_AUTH = re.compile(r"RSU auth result: (?:0x|8'h)([0-9a-fA-F]{1,8})\b")
_DOORBELL = re.compile(r"(?:Doorbell|RSU error status): (?:0x|8'h)([0-9a-fA-F]{1,8})\b")
#: The device of the secure update (generations B to D), or the SPI device that generation A logs.
_DEVICE = re.compile(r"\b(?:(?:n3000bmc-sec-update|n3000bmc-secure|m10bmc-secure)\.\d+\.auto|spi\d+\.\d+)\b")


@dataclass(frozen=True, slots=True)
class AuthReport:
    """``auth_code`` such as ``0x11`` and ``doorbell`` as eight hex digits; empty where not logged."""

    auth_code: str
    doorbell: str
    lines: str

    def statement(self) -> dict[str, str]:
        """Return the statement of a claim."""
        pairs = {"auth_code": self.auth_code, "doorbell": self.doorbell}
        return {name: value for name, value in pairs.items() if value}


def new_lines(before: str, after: str) -> list[str]:
    """Return the lines of ``after`` that were not in ``before``.

    The buffer is a ring: ``after`` can begin later than ``before``. Where nothing of ``before`` is left
    (it wrapped altogether, or the host booted) all of ``after`` is new.
    """
    old, new = before.splitlines(), after.splitlines()
    # Knuth, Morris and Pratt: the longest end of the old log that the new one begins with, in linear time.
    fallback = [0] * len(new)
    kept = 0
    for index in range(1, len(new)):
        kept = _matched(new, fallback, kept, new[index])
        fallback[index] = kept
    kept = 0
    for line in old[-len(new) :] if new else ():
        kept = _matched(new, fallback, kept, line)
    return new[kept:]


def _matched(new: list[str], fallback: list[int], kept: int, line: str) -> int:
    """Return how many lines of ``new`` an end matches that matched ``kept`` before ``line`` came."""
    while kept and (kept == len(new) or new[kept] != line):
        kept = fallback[kept - 1]
    return kept + (new[kept] == line)


def devices_of(path: str) -> frozenset[str]:
    """Return the names under which the kernel's log may have the card's driver, by a file's ``path``."""
    return frozenset(part for part in path.split("/") if _DEVICE.fullmatch(part))


def auth_report(lines: list[str], devices: Collection[str]) -> AuthReport | None:
    """Return the last report of an update's authentication in ``lines``; None where there is none.

    :param devices: names of the card's devices (:func:`devices_of`). Lines of another card's device are
        passed over; where none of that kind is known, such as old drivers' SPI device, those lines count.
    """
    auth = doorbell = ""
    kept = []
    kinds = {_kind(device) for device in devices}
    for line in lines:
        named = _DEVICE.search(line)
        if named and _kind(named[0]) in kinds and named[0] not in devices:
            continue
        if match := _AUTH.search(line):
            auth = f"{int(match[1], 16):#04x}"
        elif match := _DOORBELL.search(line):
            doorbell = f"{int(match[1], 16):#010x}"
        else:
            continue
        kept.append(line)
    return AuthReport(auth, doorbell, "\n".join(kept)) if kept else None


def _kind(device: str) -> str:
    return "spi" if device.startswith("spi") else "secure"
