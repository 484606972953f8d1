"""A value that was read, or the reason why it could not be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, Union

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unknown:
    """Stands where a value could not be read; never ``None``, never empty, never a legal value.

    It has no truth value, so that ``if value:`` cannot take it for an empty one.
    """

    reason: str

    def __bool__(self) -> bool:
        raise TypeError(f"Unknown({self.reason!r}) has no truth value; use isinstance(value, Unknown)")

    def __str__(self) -> str:
        return f"unknown ({self.reason})"


Value = Union[T, Unknown]

#: The driver generation of this host does not offer the value at all.
NOT_EXPOSED = Unknown("not exposed")
#: The bus answered with all ones: nothing is behind the address.
ALL_ONES = Unknown("all ones")


def known(value: Value[T]) -> bool:
    """Return whether ``value`` was read."""
    return not isinstance(value, Unknown)
