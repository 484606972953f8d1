"""Ctrl-C and SIGTERM: both end a run in the same way, and neither breaks off what puts things back."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: The signal of this number is obeyed at once, whatever it breaks off.
_PATIENCE = 3


@contextmanager
def sigterm_is_ctrl_c() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt, so that who is stopped ends as who is interrupted does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def obey_once() -> None:
    """Let the first SIGINT of this process raise KeyboardInterrupt, and none after it.

    For a process that is told of one Ctrl-C more than once, by the terminal and by who started it.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, lambda number, frame: None)
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)


@contextmanager
def uninterrupted(doing: str) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until the block is over, however it ends; the third is obeyed at once.

    Outside of the main thread, and for a signal that would end the process without a word to Python,
    nothing changes.

    :param doing: what the block does, for the impatient.
    :raises KeyboardInterrupt: when the block is over and there was a signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    waiting: list[int] = []

    def restore() -> None:
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, handler)

    def wait(number: int, frame: FrameType | None) -> None:
        waiting.append(number)
        if len(waiting) >= _PATIENCE:
            restore()
            raise KeyboardInterrupt
        print(
            f"hil: ends when this is done: {doing} (signal {len(waiting)}; the {_PATIENCE}rd breaks it off)",
            file=sys.stderr,
        )

    for number, handler in before.items():
        if callable(handler):
            signal.signal(number, wait)
    try:
        yield
    finally:
        restore()
        if 0 < len(waiting) < _PATIENCE:
            # Sent again rather than raised: it may have to wait for a block around this one, too.
            signal.raise_signal(waiting[0])
