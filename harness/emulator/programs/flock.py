"""``flock`` (util-linux): a lock on a file for as long as a command runs; it dies with its process."""

from __future__ import annotations

import errno
import os
import re
import time

from harness.emulator.programs.base import Invocation, Main, reason
from harness.emulator.programs.launch import ProgramNotFound, execute

_LONG = {
    "--shared": "-s",
    "--exclusive": "-x",
    "--nonblock": "-n",
    "--nb": "-n",
    "--no-fork": "-F",
    "--close": "-o",
    "--timeout": "-w",
    "--wait": "-w",
    "--conflict-exit-code": "-E",
    "--command": "-c",
    "--verbose": "-v",
    "--unlock": "-u",
}
_EX_USAGE, _EX_NOINPUT, _EX_UNAVAILABLE = 64, 66, 69
_POLL_SECONDS = 0.02  # of real time: a lock is given up by another thread, not by lab time


def flock(run: Invocation) -> int:
    """Take the lock on a file, then run a command (``-F``: in this very process)."""
    argv = [run.argv[0]]
    for word in run.argv[1:]:
        name, equals, value = word.partition("=")
        argv += [_LONG[name], value] if equals and name in _LONG else [_LONG.get(word, word)]
    options, words = run.with_words(argv).options("sexnFow:E:c:vu", permute=False, status=_EX_USAGE)
    if len(words) < 1 or (len(words) < 2 and "-c" not in options):
        run.complain(
            "requires file descriptor, file or directory"
            if not words
            else f"bad file descriptor: '{words[0]}'"
        )
        return _EX_USAGE
    path, *command = words
    if command[:1] == ["-c"]:
        command = ["sh", "-c", command[1] if len(command) > 1 else ""]
    conflict = run.integer(options.get("-E", "1"), "invalid exit code", status=_EX_USAGE)
    patience = options.get("-w", "inf")
    if re.fullmatch(r"inf|[0-9]{1,9}(\.[0-9]{0,9})?", patience) is None or not command:
        run.complain(f"invalid timeout value: {patience}" if command else "no command")
        return _EX_USAGE
    try:
        if not run.vfs.exists(run.path(path)):
            run.vfs.open(run.path(path), create=True)
        node = run.vfs.node(run.path(path))
    except OSError as error:
        run.complain(f"cannot open lock file {path}: {reason(error)}")
        return _EX_NOINPUT
    deadline = time.monotonic() + float(patience)
    while not run.host.locks.acquire(node, run.process, exclusive="-s" not in options):
        if "-n" in options or time.monotonic() > deadline:
            if "-v" in options:
                run.complain("failed to get lock" if "-n" in options else "timeout while waiting to get lock")
            return conflict & 0xFF
        with run.host.clock.waiting():
            time.sleep(_POLL_SECONDS)
        run.process.check()
    try:
        return execute(run, command, run.env, replace_process="-F" in options)
    except ProgramNotFound:
        run.complain(f"failed to execute {command[0]}: {os.strerror(errno.ENOENT)}")
        return _EX_UNAVAILABLE


PROGRAMS: dict[str, Main] = {"flock": flock}
