"""The lock of one card, which tells others what happened only after it is free again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType


class Guard:
    """A re-entrant lock with an outbox: what is given to :meth:`tell` is called once nobody holds it here.

    So a listener may take locks of its own and ask the card, without a deadlock.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._outbox: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        messages: list[Callable[[], None]] = []
        if self._depth == 0 and self._outbox:
            messages, self._outbox = self._outbox, []
        self._lock.release()
        for message in messages:
            message()

    def tell(self, message: Callable[[], None]) -> None:
        """Have ``message`` called after the lock is released; the caller holds it."""
        self._outbox.append(message)
