"""How many tries each attack makes: 100,000 in all where CI runs, a twentieth of that elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator

#: Attack -> tries in CI.
TRIES = {
    "images at the gate": 24_000,
    "commands without a permit": 46_000,
    "pretending words without a permit": 4_000,
    "words for a gate": 10_000,
    "permits": 12_000,
    "words for a control plane": 8_000,
    "images for a control plane": 3_000,
    "images to a card in memory": 240,
}
_OF = 1 if os.environ.get("CI") else 20


class Tries:
    """Counts the tries of one attack; a context manager that holds them to the quota.

    ``parts``: tests that share it, so that each is short.
    """

    def __init__(self, attack: str, *, parts: int = 1) -> None:
        self._due = TRIES[attack] // _OF // parts
        self.made = 0

    def __iter__(self) -> Iterator[int]:
        while self.made < self._due:
            yield self.made
            self.made += 1

    def __enter__(self) -> Tries:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        assert kind is not None or self.made == self._due > 0, f"{self.made} tries were made, {self._due} due"
