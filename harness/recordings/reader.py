"""Plain data of a stranger's file, read with the place of everything that is not as it should be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

L = TypeVar("L", bound=str)

#: Offsets beyond this many seconds (30 days) are not of a flash.
_LONGEST = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class Place:
    """A value and where it stands. Every method raises ValueError, with the place, for what is not there."""

    where: str
    value: Any

    def wrong(self, what: str) -> ValueError:
        """Return the error that ``what`` is the matter here."""
        return ValueError(f"{self.where or 'the file'}: {what}")

    def child(self, *keys: str | int) -> Place:
        """Return the place at ``keys``, one below the other."""
        place = self
        for key in keys:
            if isinstance(key, int):
                name = f"[{key}]"
            else:
                name = f".{key[:120]}" if key.isidentifier() else f"[{key[-120:]!r}]"
            where = f"{place.where}{name}".removeprefix(".")
            try:
                place = Place(where, place.value[key])
            except (KeyError, IndexError, TypeError):
                raise Place(where, None).wrong("is missing") from None
        return place

    def mapping(self, *keys: str) -> Mapping[str, Any]:
        """Return the object at ``keys``."""
        place = self.child(*keys)
        if not isinstance(place.value, dict):
            raise place.wrong("is no object")
        return cast(Mapping[str, Any], place.value)

    def items(self, *keys: str) -> list[Place]:
        """Return the places of the list at ``keys``."""
        place = self.child(*keys)
        if not isinstance(place.value, list):
            raise place.wrong("is no list")
        return [place.child(number) for number in range(len(place.value))]

    def only(self, *known: str) -> None:
        """:raises ValueError: there are other keys than ``known``."""
        unknown = sorted(self.mapping().keys() - set(known))
        if unknown:
            raise self.wrong(f"unknown key {unknown[0][:80]!r}; known are {', '.join(known)}")

    def as_text(self) -> str:
        """Return the text that stands here."""
        if not isinstance(self.value, str):
            raise self.wrong("is no text")
        try:
            self.value.encode()
        except UnicodeEncodeError:
            raise self.wrong("is a text with half a character") from None
        return self.value

    def text(self, *keys: str) -> str:
        """Return the text at ``keys``."""
        return self.child(*keys).as_text()

    def lines(self, key: str) -> str:
        """Return the text whose lines stand in the list at ``key``; empty where there is none."""
        return "".join(item.as_text() for item in self.items(key)) if key in self.mapping() else ""

    def integer(self, key: str) -> int:
        """Return the whole number at ``key``, within what an exit code can be."""
        place = self.child(key)
        if type(place.value) is not int or not -256 < place.value < 256:
            raise place.wrong("is no exit code")
        return place.value

    def number(self, key: str) -> float:
        """Return the seconds at ``key``."""
        place = self.child(key)
        plain = isinstance(place.value, (int, float)) and not isinstance(place.value, bool)
        if not plain or not math.isfinite(place.value) or not 0 <= place.value <= _LONGEST:
            raise place.wrong("is no number of seconds")
        return float(place.value)

    def choice(self, key: str, allowed: tuple[L, ...]) -> L:
        """Return the word at ``key``, one of ``allowed``."""
        word = self.text(key)
        for choice in allowed:
            if word == choice:
                return choice
        raise self.child(key).wrong(f"{word[:80]!r} where {' or '.join(allowed)} is due")


def start(value: Any) -> Place:
    """Return the place of the whole."""
    return Place("", value)
