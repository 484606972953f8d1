"""Ctrl-C, SIGTERM, a closed terminal: each ends a run in order, and none breaks off what puts things back."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

#: What ends a run from outside, besides Ctrl-C; SIGHUP is a terminal that was closed.
_ENDS = (signal.SIGTERM, signal.SIGHUP)
_SIGNALS = (signal.SIGINT, *_ENDS)
_STDERR = 2
#: The signal of this number is obeyed at once, whatever it breaks off.
_PATIENCE = 3


@contextmanager
def stopped_is_interrupted() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt, so that who is stopped ends as by Ctrl-C.

    One that is ignored stays ignored: who starts us by `nohup` wants us to outlive the terminal.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    heeded = [number for number in _ENDS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    """Let Ctrl-C, SIGTERM and SIGHUP wait until the block is over; the third is obeyed at once.

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
        how_often = f"signal {len(waiting)}; the {_PATIENCE}rd breaks it off"
        # Past sys.stderr: a second signal amid its writing may not write to it, and would break all off.
        with suppress(OSError):
            os.write(_STDERR, f"hil: ends when this is done: {doing} ({how_often})\n".encode())

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
