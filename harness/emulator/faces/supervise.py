"""Runs the one command of a face: hands on signals and what the lab tells, and leaves nothing behind."""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_NOT_EXECUTABLE: Final = 126
_NOT_FOUND: Final = 127
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
#: From the keyboard these reach the command itself; who runs it has to outlive it.
_KEYBOARD: Final = (signal.SIGINT, signal.SIGQUIT)


class Lab:
    """The conversation with a lab's door (:mod:`harness.emulator.faces.door`)."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path = path
        self._pending = b""

    def ask(self, request: Mapping[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        """Send the request and return the answer to it, an error too where the lab gives none."""
        try:
            self.socket.connect(self._path)
            socket.send_fds(self.socket, [json.dumps(request).encode() + b"\n"], list(descriptors))
            while (found := self.messages()) == []:
                pass
        except OSError as problem:
            found = None
            reason = problem.strerror or str(problem)
        else:
            reason = "it closed the conversation"
        if found:
            return found[0]
        return {
            "error": f"The emulated lab does not answer at {self._path}: {reason}.",
            "hint": "It may have been stopped: see `hil lab status`.",
        }

    def messages(self) -> list[dict[str, Any]] | None:
        """Wait for more to come; return the messages that are complete, or None where the lab is gone."""
        try:
            piece = self.socket.recv(1 << 16)
        except ConnectionResetError:
            piece = b""
        if not piece:
            return None
        *lines, self._pending = (self._pending + piece).split(b"\n")
        return [json.loads(line) for line in lines]


def supervise(
    command: Sequence[str],
    environment: Mapping[str, str],
    lab: Lab,
    lifeline: int,
    on_event: Callable[[dict[str, Any]], None],
) -> int:
    """Run ``command`` to its end and return its exit code (128 and the signal's number where one ended it).

    ``lifeline``: a pipe; each byte of it is a signal for the command, its end ends everything.
    ``on_event``: is given each event of a device that came or went.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in _KEYBOARD:
        signal.signal(number, signal.SIG_IGN)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wakes)
    child = _start(command, environment)
    try:
        with selectors.DefaultSelector() as ready:
            for source in (lab.socket, lifeline, woken):
                ready.register(source, selectors.EVENT_READ, source)
            while True:
                for key, _ in ready.select():
                    if key.data is woken:
                        os.read(woken, 64)
                        if (code := _reap(child)) is not None:
                            return code
                    elif key.data is lifeline:
                        numbers = os.read(lifeline, 64)
                        if not numbers:
                            return 128 + signal.SIGKILL
                        _send(child, numbers)
                    elif not _hear(lab, child, on_event):
                        ready.unregister(lab.socket)
    finally:
        _end_family()


def _start(command: Sequence[str], environment: Mapping[str, str]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for number in (*_KEYBOARD, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execvpe(command[0], list(command), dict(environment))
    except FileNotFoundError:
        sys.stderr.write(f"hil lab mount: {command[0]}: command not found\n")
        os._exit(_NOT_FOUND)
    except OSError as problem:
        sys.stderr.write(f"hil lab mount: {command[0]}: {problem.strerror}\n")
        os._exit(_NOT_EXECUTABLE)


def _reap(child: int) -> int | None:
    """Take note of every process that ended; return the exit code of ``child`` if it was among them."""
    code = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
    return 128 - code if code is not None and code < 0 else code


def _hear(lab: Lab, child: int, on_event: Callable[[dict[str, Any]], None]) -> bool:
    """Act on what the lab tells; return False where it is gone."""
    messages = lab.messages()
    if messages is None:
        sys.stderr.write("hil lab mount: the emulated lab ended.\n")
        return False
    for message in messages:
        if "event" in message:
            on_event(message["event"])
        if message.get("down"):
            sys.stderr.write("hil lab mount: the emulated host went down.\n")
            _send(child, [signal.SIGKILL])
    return True


def _send(child: int, numbers: Sequence[int]) -> None:
    for number in numbers:
        with suppress(ProcessLookupError):
            os.kill(child, number)


def _end_family() -> None:
    """Kill what the command has left running; without its parent it has become ours."""
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    while children := listed.read_text().split() if listed.exists() else []:
        _send_all(children)
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _send_all(children: Sequence[str]) -> None:
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGKILL)
