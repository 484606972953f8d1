"""A host that is replayed from a recording: it shows what was captured, performs what was followed.

Files are read by the emulated host's own programs. Every other command is matched by its words with those
that were captured. What the recording does not hold is an error that names it, and is noted.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from harness.emulator.card import Card
from harness.emulator.host import EmulatedHost
from harness.emulator.process import Signalled
from harness.emulator.programs.base import Executable, Invocation, Main
from harness.emulator.programs.registry import PROGRAMS
from harness.emulator.recorded_files import Partial, RecordedVfs
from harness.emulator.vfs import Device, Directory, Link
from harness.errors import ConfigurationError
from harness.recordings.kind import described, image_kind
from harness.recordings.model import (
    FOLDER_WORD,
    IMAGE_WORD,
    NAME_WORD,
    Act,
    Entry,
    Output,
    Recording,
)

#: Programs that work on files and processes, which the emulated host has itself.
OWN_PROGRAMS = (
    *("cat", "head", "tail", "wc", "sort", "tee", "grep", "find", "ls", "readlink", "realpath", "stat"),
    *("rm", "mkdir", "rmdir", "mv", "cp", "touch", "chmod", "mktemp", "basename", "dirname"),
    *("sha256sum", "sha384sum", "sha1sum", "md5sum", "flock", "env", "nohup", "sleep", "pgrep", "ps"),
    *("sh", "bash", "echo", "printf", "test", "[", "kill", "pwd", "true", "false"),
)
#: Where the host's own programs put files; nothing there is of the recording.
_SCRATCH = ("/tmp", "/run/lock", "/root", "/usr/sbin", "/usr/lib/firmware")
_UPTIME = "/proc/uptime"
_CLOCK = re.compile(rb"([0-9]{1,12}(?:\.[0-9]{1,6})?)(\s.*)", re.DOTALL)
_NOT_FOUND = 127
_MOST_NOTES = 1000
#: What stands for an image in an act's words -> what may stand there.
_IMAGE_FORMS = {
    IMAGE_WORD: r"(?P<path>/.+)",
    FOLDER_WORD: r"(?P<folder>/[^:,]+)",
    NAME_WORD: r"(?P<name>[^/]+)",
}
_ADDRESS = re.compile(r"(?:([0-9a-fA-F]{4}):)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])")
#: What does not depend on the cards, so that a reset does not change it.
_STEADY = ("uname", "hostname")


@dataclass(eq=False)
class _Performance:
    """An act that goes on: since when, and what of the host it is about."""

    act: Act
    started: float
    #: Canonical path -> name of a watched file.
    watched: Mapping[str, str]
    changed_paths: frozenset[str]
    changed_commands: frozenset[tuple[str, ...]]
    #: Nothing was recorded of what happens from now on.
    lost: bool = False

    def entry(self, path: str, before: Entry, now: float, sysfs: str) -> Entry | None:
        """Return what stands at ``path`` now; None where nobody looked while this was recorded."""
        name = self.watched.get(path)
        if name is not None:
            values = None if self.lost else self.act.sample(now - self.started)
            return values[name] if values else None
        unknown = path in self.changed_paths or (
            self.act.act == "reset" and path.startswith(f"{sysfs}/devices/")
        )
        return None if unknown else before

    def knows(self, words: tuple[str, ...]) -> bool:
        """Return whether the output of a command is known while this goes on."""
        return words not in self.changed_commands and (self.act.act != "reset" or words[0] in _STEADY)


@dataclass(eq=False)
class ReplayHost(EmulatedHost):
    """The host of ``recording``."""

    recording: Recording = field(kw_only=True)

    def __post_init__(self) -> None:
        self._notes: dict[str, int] = {}
        self._notes_lock = threading.Lock()
        self._acts_lock = threading.Lock()
        self._number = 0
        self._performance: _Performance | None = None
        self._commands: dict[tuple[str, ...], Output] = {}
        self._sysfs = self.recording.host["sysfs"]
        first = self.recording.tree(0).get(_UPTIME)
        match = _CLOCK.fullmatch(first.data) if first else None
        #: What the host's clock showed first, and the rest of that line.
        self._clock_read = (float(match[1]), match[2]) if match else None
        super().__post_init__()

    # -- what is not recorded -------------------------------------------------------------------

    def note(self, what: str) -> None:
        """Keep that ``what`` was asked for and is not in the recording; say so the first time."""
        with self._notes_lock:
            known = what in self._notes
            if not known and len(self._notes) >= _MOST_NOTES:
                what = "more than can be kept"
            self._notes[what] = self._notes.get(what, 0) + 1
        if not known:
            print(f"{self.name}: not in the recording: {what}", file=sys.stderr, flush=True)

    def unrecorded(self) -> list[dict[str, object]]:
        """Return what was asked for and not recorded, with how often, in the order of the first time."""
        with self._notes_lock:
            return [{"what": what, "times": times} for what, times in self._notes.items()]

    # -- the machine ----------------------------------------------------------------------------

    def power_off(self) -> None:
        """:raises ConfigurationError: what it does to the cards was not recorded."""
        raise self._cannot("lose its power")

    def reboot(self) -> None:
        """:raises ConfigurationError: what it does to the cards was not recorded."""
        raise self._cannot("be rebooted")

    def card(self, name: str) -> Card:
        """:raises ConfigurationError: there is no card behind what is replayed."""
        raise self._cannot(f"have {name} fitted, held or looked into")

    def condition(self, name: str, on: bool) -> None:
        """:raises ConfigurationError: it is as it was recorded."""
        raise self._cannot(f"be made {name!r}")

    def _cannot(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"The host {self.name} is replayed from a recording; it cannot {what}.",
            hint="Start the lab again to begin the recording anew.",
        )

    def _boot(self) -> None:
        self.powered = True
        self.booted = self.clock.now()
        for called in self.on_up:
            called()

    def login_environment(self) -> dict[str, str]:
        """Return what a login finds in its environment."""
        return super().login_environment() | {"PATH": "/usr/bin"}

    def stand_in(self, name: str) -> Main | None:
        """Return what runs as any program that the host has not itself."""
        return self._run

    def _build(self) -> None:
        files = self.vfs = RecordedVfs(self.clock.now, self.note)
        for path in ("/usr", "/run", "/var", "/proc", "/sys", "/etc", "/dev", "/usr/bin"):
            files.place(path, Partial())
        for path in _SCRATCH:
            files.place(path, Directory())
        for path in ("/bin", "/sbin"):
            files.place(path, Link(f"usr{path}"))
        files.place("/var/lock", Link("/run/lock"))
        files.place("/dev/null", Device())
        for path in self._programs():
            with suppress(OSError):  # it stands where the recording has no directory: it is found by name
                files.install(path, Executable(path.rpartition("/")[2], self._run))
        for name in OWN_PROGRAMS:
            files.place(f"/usr/bin/{name}", Executable(name, PROGRAMS[name]))
        self._recorded_files = files
        self._show()

    def _programs(self) -> set[str]:
        """Return where there is a program whose runs were captured or followed."""
        commands = self.recording.commands(0).items()
        names = {shlex.split(line)[0] for line, output in commands if output.exit != _NOT_FOUND}
        names |= {act.argv[0] for act in self.recording.acts}
        names |= {where for where in self.recording.tools.values() if where.startswith("/")}
        return {name if name.startswith("/") else f"/usr/bin/{name.rpartition('/')[2]}" for name in names}

    def _show(self) -> None:
        """Show the recording's state of the present number."""
        self._recorded_files.show(self.recording.states[self._number].tree, self._content)
        self._commands = {
            _canonical(shlex.split(line)): output
            for line, output in self.recording.commands(self._number).items()
        }

    def _content(self, path: str, entry: Entry) -> bytes:
        if path == _UPTIME and self._clock_read is not None:
            return b"%.2f%s" % (self._clock_read[0] + self.uptime(), self._clock_read[1])
        performance = self._performance
        if performance is not None:
            found = performance.entry(path, entry, self.clock.now(), self._sysfs)
            if found is None:
                raise self._recorded_files.not_recorded("read", path)
            entry = found
        if entry.kind != "content":
            number = getattr(errno, entry.text, errno.EIO)
            raise OSError(number, os.strerror(number), path)
        return entry.data

    # -- commands -------------------------------------------------------------------------------

    def _run(self, run: Invocation) -> int:
        words = _canonical(run.argv)
        act = self._next_act()
        found = _matched(act.argv, words) if act is not None else None
        if act is not None and found is not None:
            image = _image_path(found)
            why = self._another_kind(run, act, image)
            return self._unknown(run, why) if why else self._perform(run, act, image)
        output = self._commands.get(words)
        performance = self._performance
        if output is None or (performance is not None and not performance.knows(words)):
            return self._unknown(run, self._recorded_next(words))
        run.out(output.stdout)
        run.err(output.stderr)
        return output.exit if output.exit >= 0 else -signal.SIGKILL

    def _unknown(self, run: Invocation, why: str) -> int:
        """Say that what was asked for was not recorded, as a shell says that it cannot run a program."""
        line = shlex.join([run.name, *run.argv[1:]])
        self.note(f"run {line}{f' ({why})' if why else ''}")
        run.err(f"sh: not in the recording: {line}{f' ({why})' if why else ''}\n")
        return _NOT_FOUND

    def _next_act(self) -> Act | None:
        acts = self.recording.acts
        return acts[self._number] if self._performance is None and self._number < len(acts) else None

    def _recorded_next(self, words: Sequence[str]) -> str:
        """Return what could have been run instead of a tool that changes a card."""
        tools = {act.argv[0].rpartition("/")[2] for act in self.recording.acts}
        if words[0] not in tools or "--version" in words:
            return ""
        act = self._next_act()
        if act is None:
            return "nothing more was recorded" if self._performance is None else "another act goes on"
        kind = f": {described(act.image['kind'])}" if act.image else ""
        return f"recorded next is {shlex.join(act.argv)}{kind}"

    def _another_kind(self, run: Invocation, act: Act, image: str) -> str:
        """Return why the file ``image`` is not of the kind that was flashed; empty where it is."""
        if not act.image:
            return ""
        try:
            kind = image_kind(self.vfs.read(run.path(image)))
        except OSError as error:
            return f"{image}: {error.strerror}"
        recorded = act.image["kind"]
        if kind == recorded:
            return ""
        return f"the image is {described(kind)}; recorded next is one of {described(recorded)}"

    # -- acts -----------------------------------------------------------------------------------

    def _perform(self, run: Invocation, act: Act, image: str) -> int:
        """Print what the tool printed, at the lab times at which it did; files follow what was seen."""
        name = image.rpartition("/")[2]
        with self.clock.actor():
            performance = self._begin(act)
            if performance is None:
                return self._unknown(run, "another act goes on")
            try:
                for piece in act.output:
                    run.process.sleep(performance.started + piece.at - self.clock.now())
                    stream = run.streams.stdout if piece.stream == "stdout" else run.streams.stderr
                    text = piece.text.replace(IMAGE_WORD, image).replace(NAME_WORD, name)
                    stream.write(text.encode())
                    stream.flush()
                run.process.sleep(performance.started + act.ended - self.clock.now())
            except Signalled as caught:
                performance.lost = True
                self.note(f"what {signal.Signals(caught.number).name} does to {shlex.join(act.argv)}")
                raise
            if act.settled <= act.ended:
                self._finish(performance)
        return act.exit if act.exit >= 0 else -signal.SIGKILL

    def _begin(self, act: Act) -> _Performance | None:
        """Let ``act`` begin; None where another one has begun meanwhile."""
        following = self.recording.states[self._number + 1]
        watched: dict[str, str] = {}
        for name, path in act.watched.items():
            try:
                watched[self.vfs.realpath(path)] = name
            except OSError:
                watched[path] = name
        started = self.clock.now()
        performance = _Performance(
            act,
            started,
            watched,
            frozenset(following.tree),
            frozenset(_canonical(shlex.split(line)) for line in following.commands),
        )
        with self._acts_lock:
            if self._performance is not None:
                return None
            self._performance = performance
        self.clock.at(started + act.settled, lambda: self._finish(performance))
        return performance

    def _finish(self, performance: _Performance) -> None:
        """Show what came of the act; nothing where that is done, or not known."""
        with self._acts_lock:
            if self._performance is performance and not performance.lost:
                self._number += 1
                self._show()
                self._performance = None


def _canonical(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command's words with each PCI address in its full form, and the program without its folder."""
    name, *words = argv
    found = [name.rpartition("/")[2]]
    for word in words:
        address = _ADDRESS.fullmatch(word)
        found.append(f"{address[1] or '0000'}:{address[2]}".lower() if address else word)
    return tuple(found)


def _matched(recorded: Sequence[str], words: Sequence[str]) -> dict[str, str] | None:
    """Return what in ``words`` stands for each of an act's words for the image; None: another command."""
    pattern = _canonical(recorded)
    if len(pattern) != len(words):
        return None
    found: dict[str, str] = {}
    for due, word in zip(pattern, words, strict=True):
        form = re.escape(due)
        for name, legal in _IMAGE_FORMS.items():
            form = form.replace(re.escape(name), legal)
        match = re.fullmatch(form, word)
        if match is None:
            return None
        found |= match.groupdict()
    return found


def _image_path(found: Mapping[str, str]) -> str:
    """Return where the image is on the host; empty where there is none."""
    if "path" in found:
        return found["path"]
    return f"{found['folder']}/{found['name']}" if "name" in found and "folder" in found else ""
