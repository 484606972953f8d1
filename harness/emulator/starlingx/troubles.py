"""What can be made to go wrong in an emulated system from outside it, for faults of scenarios."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Final

from harness.errors import ConfigurationError

DOWNLOADS: Final = ("whole", "missing", "short")
#: What a balancer in front of an API that is down answers.
UNAVAILABLE_PAGE: Final = (
    "<html><body><h1>503 Service Unavailable</h1>\n"
    "No server is available to handle this request.\n</body></html>\n"
)


@dataclass(slots=True)
class Troubles:
    """The troubles of one system now.

    ``downloads``: what the file server gives of an image: all of it, a 404, or its first half.
    ``delay``: lab seconds by which an agent's word that an image is done comes late; None: it is lost.
    ``away_after_unlock``: for how many lab seconds sysinv does not answer after a host's unlock.
    ``slow``: how many times as long its hosts take to boot, to lock and to get an image.
    ``says_null``: whether a host that is owed nothing says NULL of its update, and no empty status.
    """

    downloads: str = "whole"
    delay: float | None = 0.0
    away_after_unlock: float = 0.0
    slow: float = 1.0
    says_null: bool = False
    _away_until: float = 0.0
    _refused: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refuse_requests(self, count: int) -> None:
        """Have the next ``count`` requests to sysinv answered with 503."""
        with self._lock:
            self._refused = count

    def unlocked(self, now: float) -> None:
        """A host has come up after its unlock, at the lab time ``now``."""
        self._away_until = now + self.away_after_unlock

    def is_away(self, now: float) -> bool:
        """Return whether sysinv does not answer at the lab time ``now``: its host's manifests still run."""
        return now < self._away_until

    def refuses(self) -> bool:
        """Return whether the request that has come is to be answered with 503."""
        with self._lock:
            refused = self._refused > 0
            self._refused -= refused
            return refused

    def delay_completions(self, seconds: float | None) -> None:
        """Have agents' words that an image is done come late by ``seconds``; None: not at all."""
        self.delay = seconds

    def go_away_after_unlock(self, seconds: float) -> None:
        """Have sysinv not answer for ``seconds`` of lab time after each unlock of a host."""
        self.away_after_unlock = seconds

    def slow_down(self, factor: float) -> None:
        """Have hosts take ``factor`` times as long as they do otherwise."""
        self.slow = factor

    def say_null(self, on: bool) -> None:
        """Have a host that comes to be owed nothing say NULL of its update, or the empty status again."""
        self.says_null = on

    def set_downloads(self, how: str) -> None:
        """Say how images are given out from now on. :raises ConfigurationError: there is no such way."""
        if how not in DOWNLOADS:
            raise ConfigurationError(
                f"Images cannot be given out {how!r}.", hint=f"Known: {', '.join(DOWNLOADS)}."
            )
        self.downloads = how
