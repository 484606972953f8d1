"""The processes of an emulated host: ids, signals, file locks, and the streams between them."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from harness.emulator.clock import Alarm, LabClock
from harness.emulator.shell_limits import MOST_PROCESSES
from harness.emulator.vfs import Node

_PIPE_CAPACITY = 65536  # of a Linux pipe
_FIRST_PID = 1201


class Signalled(Exception):
    """Raised inside a program at the point where a signal reached it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Out(Protocol):
    """Where a program writes."""

    def write(self, data: bytes) -> None:
        """Take ``data``. :raises BrokenPipeError: nobody reads any more."""
        ...

    def flush(self) -> None:
        """Hand on what was taken so far."""
        ...

    def isatty(self) -> bool:
        """Return whether a terminal reads it."""
        ...


def command_is_over(out: Out) -> None:
    """Let ``out`` hand on what a command has printed that is over; one that collects keeps it for a while."""
    if not getattr(out, "collects", False):
        out.flush()


def tell(stderr: Out, text: str) -> None:
    """Write ``text`` to standard error; what that cannot take (EBADF, ENOSPC) is lost, and nobody is told.

    :raises BrokenPipeError: nobody reads it any more.
    """
    try:
        stderr.write(text.encode("utf-8", "surrogateescape"))
    except BrokenPipeError:
        raise
    except OSError:
        pass


class In(Protocol):
    """Where a program reads from."""

    def read(self, length: int = -1) -> bytes:
        """Return up to ``length`` bytes (all up to the end where negative); empty at the end."""
        ...


class Buffer:
    """An output that is kept in memory. :param most: bytes that it takes; any number where it is None."""

    def __init__(self, most: int | None = None) -> None:
        self.data = bytearray()
        self._most = most

    def write(self, data: bytes) -> None:
        """Keep ``data``. :raises BrokenPipeError: that is too much."""
        self.data += data
        if self._most is not None and len(self.data) > self._most:
            raise BrokenPipeError

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        """A buffer is no terminal."""
        return False


class Bytes:
    """An input whose content is known beforehand."""

    def __init__(self, data: bytes = b"") -> None:
        self._data = data
        self._at = 0

    def read(self, length: int = -1) -> bytes:
        """Return the next bytes."""
        end = len(self._data) if length < 0 else self._at + length
        piece = self._data[self._at : end]
        self._at += len(piece)
        return piece


class Pipe:
    """A pipe between two commands, with the capacity of a real one."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._changed = threading.Condition()
        self._written = False
        self._abandoned = False

    def write(self, data: bytes) -> None:
        """Append ``data``; waits while the pipe is full. :raises BrokenPipeError: the reader is gone."""
        with self._changed:
            self._changed.wait_for(lambda: self._abandoned or len(self._data) < _PIPE_CAPACITY)
            if self._abandoned:
                raise BrokenPipeError
            self._data += data
            self._changed.notify_all()

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        """A pipe is no terminal."""
        return False

    def read(self, length: int = -1) -> bytes:
        """Return what is there, waiting for some; all up to the end where ``length`` is negative."""
        with self._changed:
            if length < 0:
                collected = bytearray()
                while piece := self._next(_PIPE_CAPACITY):
                    collected += piece
                return bytes(collected)
            return self._next(length)

    def _next(self, length: int) -> bytes:
        self._changed.wait_for(lambda: self._data or self._written)
        piece = bytes(self._data[:length])
        del self._data[:length]
        self._changed.notify_all()
        return piece

    def close_write(self) -> None:
        """The writer is done: the reader meets the end."""
        with self._changed:
            self._written = True
            self._changed.notify_all()

    def close_read(self) -> None:
        """The reader is gone: the writer meets a broken pipe."""
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()


def read_line(source: In) -> bytes:
    """Return the next line of ``source`` with its newline, and leave what follows to whoever reads next."""
    if (readline := getattr(source, "readline", None)) is not None:
        return bytes(readline())
    line = bytearray()
    while not line.endswith(b"\n") and (byte := source.read(1)):
        line += byte
    return bytes(line)


def lines(source: In) -> Iterator[bytes]:
    """Yield the lines of ``source`` with their newlines, as they arrive."""
    pending = b""
    while piece := source.read(4096):
        *complete, pending = (pending + piece).split(b"\n")
        yield from (line + b"\n" for line in complete)
    if pending:
        yield pending


class Process:
    """One process. A program looks for signals where it waits, and dies or handles them there."""

    def __init__(self, pid: int, parent: int, argv: list[str], clock: LabClock) -> None:
        self.pid = pid
        self.parent = parent
        self.argv = argv
        self.started = clock.now()
        self.on_exit: list[Callable[[], None]] = []
        #: What it prints to; handed on when it waits, so that whoever reads sees all that led up to it.
        self.output: tuple[Out, ...] = ()
        #: Called for every signal that arrives; True: it is dealt with, the process does not see it.
        self.on_signal: Callable[[int], bool] = lambda number: False
        self._clock = clock
        self._alarm = Alarm()
        self._pending: deque[int] = deque()

    def send(self, number: int) -> None:
        """Deliver signal ``number``; wakes the process where it waits."""
        if self.on_signal(number):
            return
        self._pending.append(number)
        self._clock.ring(self._alarm)

    @property
    def killed(self) -> bool:
        """Whether it was sent a SIGKILL: nobody sees it run any more, wherever its program just is."""
        return signal.SIGKILL in self._pending

    def check(self) -> None:
        """:raises Signalled: a signal arrived since the last call."""
        if self._pending:
            number = self._pending[0]
            if number == signal.SIGKILL:
                raise Signalled(number)  # for whatever still runs of it, too
            self._pending.popleft()
            self._alarm = Alarm()
            if self._pending:
                self._clock.ring(self._alarm)
            raise Signalled(number)

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` of lab time pass. :raises Signalled: a signal cut it short."""
        self._clock.sleep(seconds, self._alarm, before_waiting=self.hand_on)
        self.check()

    def hand_on(self) -> None:
        """Send on what was printed. :raises BrokenPipeError: nobody reads it any more."""
        for out in self.output:
            out.flush()


class Locks:
    """The ``flock`` locks of one host: shared or exclusive, held by processes, gone with them."""

    def __init__(self) -> None:
        self._holders: dict[Node, dict[Process, bool]] = {}
        self._lock = threading.Lock()

    def acquire(self, node: Node, process: Process, *, exclusive: bool) -> bool:
        """Try to take the lock on the file ``node`` for ``process``; return whether it was had."""
        with self._lock:
            if self._conflict(node, process, exclusive):
                return False
            holders = self._holders.setdefault(node, {})
            if process not in holders:
                process.on_exit.append(lambda: self.release(node, process))
            holders[process] = exclusive
            return True

    def conflict(self, node: Node, process: Process, *, exclusive: bool) -> Process | None:
        """Return who keeps ``process`` from the lock on the file ``node``; None where nobody does."""
        with self._lock:
            return self._conflict(node, process, exclusive)

    def _conflict(self, node: Node, process: Process, exclusive: bool) -> Process | None:
        holders = self._holders.get(node, {})
        others = (h for h, held_exclusively in holders.items() if exclusive or held_exclusively)
        return next((holder for holder in others if holder is not process), None)

    def release(self, node: Node, process: Process) -> None:
        """Give up what ``process`` holds on ``node``; nothing where it holds none."""
        with self._lock:
            holders = self._holders.get(node, {})
            holders.pop(process, None)
            if not holders:
                self._holders.pop(node, None)


class ProcessTable:
    """The processes that run on one host now."""

    def __init__(self, clock: LabClock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._next = _FIRST_PID
        self._running: dict[int, Process] = {}

    def start(self, argv: list[str], parent: int = 1) -> Process:
        """Return a new process for ``argv``. :raises BlockingIOError: there are as many as can be."""
        with self._lock:
            if len(self._running) >= MOST_PROCESSES:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            process = Process(self._next, parent, argv, self._clock)
            self._running[process.pid] = process
            self._next += 1
        return process

    def end(self, process: Process) -> None:
        """``process`` is over: its locks go, its id is free."""
        with self._lock:
            self._running.pop(process.pid, None)
        while process.on_exit:
            process.on_exit.pop()()

    def find(self, pid: int) -> Process | None:
        """Return the running process ``pid``."""
        with self._lock:
            return self._running.get(pid)

    def all(self) -> list[Process]:
        """Return every running process, by id."""
        with self._lock:
            return [self._running[pid] for pid in sorted(self._running)]

    def foreground(self, leader: Process) -> list[Process]:
        """Return what runs below ``leader``; ``leader`` itself where nothing does."""
        everyone = self.all()
        family = {leader.pid}
        for process in everyone:  # children have higher ids than their parents
            if process.parent in family:
                family.add(process.pid)
        return [process for process in everyone if process.pid in family - {leader.pid}] or [leader]
