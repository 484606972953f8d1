"""The state that a scenario wants a card to be in, and whether an observed card is in it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from harness.errors import ConfigurationError

#: Written in a plan for a section whose root entry hash is not programmed.
NOT_PROGRAMMED = "none"
#: What a plan says of a card's state.
KEYS = ("root", "cancelled", "flash_count", "bmc_root")
#: Each section of a card has so many cancellation bits (n3000.md).
_CSK_IDS = 128


@dataclass(frozen=True, slots=True)
class Given:
    """What a card must hold before a scenario starts; ``None`` leaves a value open.

    ``sr_root``: root entry hash of the section SR in hex, or empty for "not programmed"; ``bmc_root``: of the
    section BMC, which a card has from its factory; only a lab that can fit cards can offer another one.
    ``sr_cancelled``: exactly these CSK ids are cancelled. ``flash_count``: at least this many
    updates; only a lab that can fit cards can offer it.
    """

    sr_root: str | None = None
    sr_cancelled: frozenset[int] | None = None
    flash_count: int | None = None
    bmc_root: str | None = None

    @classmethod
    def parse(cls, data: Mapping[str, Any], roots: Mapping[str, str]) -> Given:
        """Return the state that a plan describes.

        :param data: ``{"root": "A" | "none" | hex, "cancelled": [0], "flash_count": 1500}``.
        :param roots: name of a root key -> its root entry hash in hex.
        :raises ConfigurationError: an unknown key or root name, or a value of another kind.
        """
        unknown = data.keys() - set(KEYS)
        if unknown:
            raise ConfigurationError(
                f"Unknown state {', '.join(sorted(unknown))!r}.",
                hint=f"A card's state is given by {', '.join(KEYS)}.",
            )
        root, bmc_root = data.get("root"), data.get("bmc_root")
        cancelled = data.get("cancelled", [] if root is not None else None)
        return cls(
            sr_root=None if root is None else _root_hash(str(root), roots),
            sr_cancelled=None if cancelled is None else _csk_ids(cancelled),
            flash_count=_count(data.get("flash_count")),
            bmc_root=None if bmc_root is None else _root_hash(str(bmc_root), roots),
        )

    def unmet_by(
        self, sr_root: object, sr_cancelled: object, flash_count: object, bmc_root: object = None
    ) -> list[str]:
        """Return what an observed card lacks, as prose; empty when it is in this state.

        The arguments are the values of a truth probe, :class:`harness.judgement.values.Unknown` included.
        """
        unmet = []
        if self.sr_root is not None and sr_root != self.sr_root:
            unmet.append(f"SR root entry hash is {_hash(sr_root)}, wanted {_hash(self.sr_root)}")
        if self.bmc_root is not None and bmc_root != self.bmc_root:
            unmet.append(f"BMC root entry hash is {_hash(bmc_root)}, wanted {_hash(self.bmc_root)}")
        if self.sr_cancelled is not None and sr_cancelled != self.sr_cancelled:
            unmet.append(f"cancelled CSKs are {_ids(sr_cancelled)}, wanted {_ids(self.sr_cancelled)}")
        if self.flash_count is not None and not (
            isinstance(flash_count, int) and flash_count >= self.flash_count
        ):
            unmet.append(f"flash count is {flash_count}, wanted at least {self.flash_count}")
        return unmet


def _root_hash(name: str, roots: Mapping[str, str]) -> str:
    if name == NOT_PROGRAMMED:
        return ""
    with suppress(KeyError):
        return roots[name]
    if len(name) in (64, 96) and all(digit in "0123456789abcdef" for digit in name.lower()):
        return name.lower()
    raise ConfigurationError(
        f"Unknown root key {name!r}.",
        hint=f"Use one of {', '.join(sorted(roots))}, {NOT_PROGRAMMED!r}, or a root entry hash in hex.",
    )


def _csk_ids(ids: Any) -> frozenset[int]:
    listed = isinstance(ids, (list, tuple, set, frozenset))
    if not listed or not all(type(number) is int and 0 <= number < _CSK_IDS for number in ids):
        raise ConfigurationError(
            f"cancelled is {ids!r}, and no list of CSK ids.",
            hint=f"It takes whole numbers from 0 to {_CSK_IDS - 1}, such as [0, 5].",
        )
    return frozenset(ids)


def _count(count: object) -> int | None:
    if count is None or (type(count) is int and count >= 0):
        return count
    raise ConfigurationError(
        f"flash_count is {count!r}, and no whole number.",
        hint="It is the number of updates that the card has behind it at least.",
    )


def _hash(value: object) -> str:
    return "not programmed" if value == "" else str(value)


def _ids(ids: object) -> str:
    return str(sorted(ids)) if isinstance(ids, (set, frozenset)) else str(ids)
