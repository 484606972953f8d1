"""The container engine of an emulated host: images with tools in them, containers, attached clients.

A container shares the host's devices and /sys, as a privileged one does, and also its file system but for
what is mounted: a real one would keep generation B's driver from the file that the tool names to it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.emulator.clock import LabClock
from harness.emulator.process import Bytes, Out, Process
from harness.emulator.programs.base import Invocation, Main, Streams
from harness.emulator.programs.editions import VENDOR
from harness.emulator.programs.registry import PROGRAMS, opae_tools
from harness.emulator.shell import SIGNAL_BASE, call

if TYPE_CHECKING:
    from harness.emulator.host import EmulatedHost

_REPOSITORY: Final = "registry.local:9001/docker.io/starlingx/n3000-opae"
#: Tag of the tool image by engine, as StarlingX had them in its docker and containerd eras (3.2).
TOOL_IMAGES: Final = {
    "docker": f"{_REPOSITORY}:stx.4.0-v1.0.0",
    "containerd": f"{_REPOSITORY}:stx.8.0-v1.0.2",
}

#: A circumstance of the host: see :data:`harness.emulator.host.CONDITIONS`.
CUT_IN_CONTAINER: Final = "power-cut-in-container"


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory of the host at ``target`` in a container."""

    source: str
    target: str


@dataclass(eq=False)
class Container:
    """One container. ``status``: what its program ended with; None while that has not told."""

    name: str
    image: str
    process: Process
    status: int | None = None
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def exit_status(self) -> int | None:
        """Its exit status; None while it runs."""
        return SIGNAL_BASE + signal.SIGKILL if self.status is None and self.process.killed else self.status

    def end(self, status: int) -> None:
        """Its program has ended."""
        self.status = status
        self._ended.set()


class Engine:
    """Images and containers of one host; they outlive its reboots, their processes do not."""

    def __init__(self, host: EmulatedHost, images: list[str]) -> None:
        self._host = host
        self._tools = PROGRAMS | opae_tools(VENDOR)
        #: Names of the images that are there.
        self.images = list(images)
        #: Containers that were not removed, by name.
        self.containers: dict[str, Container] = {}

    def program(self, name: str) -> Main | None:
        """Return the program ``name`` of a tool image; None where it has none."""
        return self._tools.get(name.rpartition("/")[2])

    def run(
        self,
        client: Invocation,
        name: str,
        image: str,
        words: list[str],
        env: Mapping[str, str],
        mounts: tuple[Mount, ...],
        *,
        terminal: bool,
    ) -> int:
        """Run ``words`` in a new container and follow it as an attached client does; return its exit status.

        Signals to the client go to the container. A client that is killed leaves it running.
        """
        main = self.program(words[0])
        assert main is not None
        if CUT_IN_CONTAINER in self._host.conditions:
            self._host.conditions.discard(CUT_IN_CONTAINER)
            main = _cut_short
        process = self._host.processes.start(words)
        container = self.containers[name] = Container(name, image, process)
        changed = threading.Event()
        streams = _Attached(client.streams, terminal=terminal)
        process.output = (streams.out, streams.err)
        inner = Invocation(
            self._host,
            process,
            words,
            {"PATH": client.env.get("PATH", ""), **env},
            "/",
            Streams(Bytes(), streams.out, streams.err),
            tuple((mount.target, mount.source) for mount in mounts),
        )

        def body() -> None:
            try:
                status = call(main, inner)
            except BrokenPipeError:
                status = -signal.SIGPIPE
            self._host.processes.end(process)
            container.end(status if status >= 0 else SIGNAL_BASE - status)
            changed.set()

        client.process.on_signal = _forward_to(process, changed)
        try:
            with _in_place_of_caller(self._host.clock, body):
                while container.status is None:
                    changed.wait()
                    changed.clear()
                    client.process.check()  # of the signals, only death is not passed on
        finally:
            client.process.on_signal = lambda number: False
            streams.detach()
        client.process.check()  # a power cut kills both
        return container.status

    def remove(self, name: str) -> None:
        """Forget a container that has ended."""
        self.containers.pop(name, None)


def _cut_short(run: Invocation) -> int:
    """Be a program whose host loses its power before it does anything; it comes back at once."""
    host, off = run.host, threading.Event()

    def cut() -> None:
        with host.clock.actor():
            host.power_off()
            off.set()
            host.power_on()

    threading.Thread(target=cut, name="power-cut", daemon=True).start()
    off.wait()
    run.process.check()
    raise AssertionError("no process outlives its host's power")


@contextmanager
def _in_place_of_caller(clock: LabClock, body: Callable[[], None]) -> Iterator[None]:
    """Run ``body`` in a thread while the caller waits: where that is an actor, it is one in its place.

    There is no gap at either end in which lab time could pass.
    """
    begun, followed = threading.Event(), threading.Event()
    acting = clock.actor() if clock.acting else nullcontext()

    def run() -> None:
        with acting:
            begun.set()
            body()
            followed.wait()

    threading.Thread(target=run, name="container", daemon=True).start()
    begun.wait()
    try:
        with clock.waiting():
            yield
    finally:
        followed.set()


def _forward_to(process: Process, changed: threading.Event) -> Callable[[int], bool]:
    """Return what passes signals on to ``process``; what kills or stops a client stays its own."""

    def forward(number: int) -> bool:
        if number in (signal.SIGKILL, signal.SIGSTOP):
            changed.set()
            return False
        process.send(number)
        return True

    return forward


class _Attached:
    """The output of a container as its client passes it on, until the client is gone."""

    def __init__(self, streams: Streams, *, terminal: bool) -> None:
        self.out: Out = _ContainerOut(streams.stdout, terminal)
        # Behind a terminal there is one stream for both.
        self.err: Out = self.out if terminal else _ContainerOut(streams.stderr, False)

    def detach(self) -> None:
        """Pass nothing on any more."""
        for stream in (self.out, self.err):
            assert isinstance(stream, _ContainerOut)
            stream.attached = False


class _ContainerOut:
    def __init__(self, out: Out, terminal: bool) -> None:
        self._out = out
        self._terminal = terminal
        self.attached = True

    def write(self, data: bytes) -> None:
        if self.attached:
            raw = self._terminal and not self._out.isatty()
            self._out.write(data.replace(b"\n", b"\r\n") if raw else data)

    def flush(self) -> None:
        if self.attached:
            self._out.flush()

    def isatty(self) -> bool:
        return self._terminal
