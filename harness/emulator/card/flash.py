"""What the card keeps without power: roots of trust, cancellations, the flash count and the pages."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any, Final, Literal

from harness.errors import ConfigurationError
from harness.images.layout import MAX_CSK_ID
from harness.images.payload import BmcIdentity, PayloadIdentity, build_payload, reverse_bits

Section = Literal["SR", "BMC", "PR"]
SECTIONS: Final[tuple[Section, ...]] = ("SR", "BMC", "PR")
_ROOT_OF: Final = {section: f"{section.lower()}_root" for section in SECTIONS}
_CANCELLED_OF: Final = {section: f"{section.lower()}_cancelled" for section in SECTIONS}

#: Root entry hash that Intel programs for BMC images at the factory (user guide; public sysfs dump).
INTEL_BMC_ROOT: Final = "77698ea203e459f6cb0e65b54a1dd4ab47a6a6600e7988f723ad89f5b7f3673a"
#: What an emulated card runs from its factory page: bit 36 set, 2x2x25G, build 1.3.16.
FACTORY_IDENTITY: Final = PayloadIdentity(0x23001410010310, "a5d72a3c-c8b0-4939-912c-f715e5dc10ca", 0x2309141)
#: Versions in both BMC pages of a new card: Nios D.2.0.21, MAX10 build D.2.0.6 (public sysfs dump).
FACTORY_BMC: Final = BmcIdentity(0x44020015, 0x44020006)
#: The flash count is a bit vector of 4 KiB (fact sheet 4.3).
FLASH_COUNT_MAX: Final = 4096 * 8
_ADDRESS: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_RETIMER: Final = re.compile(r"[0-9a-f]{1,4}\.[0-9a-f]{1,4}")


@cache
def factory_page() -> bytes:
    """Return the content of a new card's FPGA factory page."""
    return reverse_bits(build_payload(FACTORY_IDENTITY, 4096, "factory page"))


@cache
def bmc_factory_page() -> bytes:
    """Return the content of a new card's BMC pages."""
    return build_payload(FACTORY_BMC, 1024, "bmc factory page")


@dataclass(frozen=True, slots=True, kw_only=True)
class CardState:
    """All that survives a power cut. Hashes are lower-case hex; a root is None where none is programmed.

    Pages hold a payload as it lies in flash (bits of SR payloads reversed). An empty page is erased, and so
    is a user page that is None; the other pages are a new card's when they are None. ``address``: where the
    card was on the bus when last seen; None for the first of its addresses.
    """

    sr_root: str | None = None
    sr_cancelled: frozenset[int] = frozenset()
    bmc_root: str | None = INTEL_BMC_ROOT
    bmc_cancelled: frozenset[int] = frozenset()
    pr_root: str | None = None
    pr_cancelled: frozenset[int] = frozenset()
    flash_count: int = 0
    user_page: bytes | None = None
    factory_page: bytes | None = None
    bmc_user_page: bytes | None = None
    bmc_factory_page: bytes | None = None
    retimer: str = "101c.1064"
    address: str | None = None

    def __post_init__(self) -> None:
        for name, default in (
            ("factory_page", factory_page),
            ("bmc_user_page", bmc_factory_page),
            ("bmc_factory_page", bmc_factory_page),
        ):
            if getattr(self, name) is None:
                object.__setattr__(self, name, default())
        for section in SECTIONS:
            _check_root(section, self.root(section))
            cancelled = self.cancelled(section)
            if cancelled and (outside := [i for i in cancelled if not 0 <= i <= MAX_CSK_ID]):
                raise ConfigurationError(f"A card has no CSK id {outside[0]}; ids are 0 to {MAX_CSK_ID}.")

    def root(self, section: Section) -> str | None:
        """Return the root entry hash in flash, or None."""
        value: str | None = getattr(self, _ROOT_OF[section])
        return value

    def cancelled(self, section: Section) -> frozenset[int]:
        """Return the CSK ids cancelled in flash."""
        value: frozenset[int] = getattr(self, _CANCELLED_OF[section])
        return value

    def with_root(self, section: Section, root: str) -> CardState:
        """Return the state with ``root`` programmed."""
        change: dict[str, Any] = {f"{section.lower()}_root": root}
        return replace(self, **change)

    def with_cancelled(self, section: Section, csk_id: int) -> CardState:
        """Return the state with one more CSK cancelled."""
        change: dict[str, Any] = {f"{section.lower()}_cancelled": self.cancelled(section) | {csk_id}}
        return replace(self, **change)

    def to_json(self, *, pages: bool = True) -> dict[str, Any]:
        """Return the state as a JSON object; pages in base64, or left out."""
        names = [f.name for f in fields(self) if pages or not f.name.endswith("_page")]
        return {name: _encode(getattr(self, name)) for name in names}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> CardState:
        """Return the state that :meth:`to_json` wrote; what is left out has its default.

        :raises ConfigurationError: an unknown name or a value that does not fit.
        """
        if not isinstance(values, Mapping):
            raise ConfigurationError(f"A card's state is a mapping of names to values, not {_shown(values)}.")
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ConfigurationError(
                f"A card's state has no value {unknown[0]!r}.", hint=f"Known: {', '.join(sorted(known))}."
            )
        try:
            return cls(**{name: _decode(name, value) for name, value in values.items()})
        except ValueError as error:
            raise ConfigurationError(f"A value of a card's state does not fit: {error}") from error


@lru_cache(maxsize=64)  # asked of every state of a card, and few of them differ in this
def _check_root(section: str, root: str | None) -> None:
    if root is None:
        return
    if len(root) not in (64, 96) or root.strip("0123456789abcdef"):
        raise ConfigurationError(
            f"{root!r} is no root entry hash for section {section}.",
            hint="Give 64 lower-case hexadecimal digits, without 0x.",
        )


def _encode(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return sorted(value) if isinstance(value, frozenset) else value


def _decode(name: str, value: Any) -> Any:
    """:raises ValueError: a card has no such ``value``."""
    if name.endswith("_cancelled"):
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise ValueError(f"{name} is {_shown(value)}, which is no list of CSK ids")
        return frozenset(value)
    if name.endswith("_page") and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    if name == "flash_count":
        fits = type(value) is int and 0 <= value <= FLASH_COUNT_MAX
    elif name == "retimer":
        fits = isinstance(value, str) and _RETIMER.fullmatch(value) is not None
    elif value is None:
        return None
    elif name == "address":
        return pci_address(value)
    else:
        fits = isinstance(value, str) and name.endswith("_root")
    if not fits:
        raise ValueError(f"{name} is {_shown(value)}")
    return value


def pci_address(value: object) -> str:
    """Return ``value`` if it is a PCI address of the form 0000:b2:00.0. :raises ValueError: it is none."""
    if not isinstance(value, str) or _ADDRESS.fullmatch(value) is None:
        raise ValueError(f"{_shown(value)} is no PCI address, such as 0000:b2:00.0")
    return value


def _shown(value: object) -> str:
    return repr(value)[:60]
