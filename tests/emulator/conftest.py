"""What the tests of an emulated host share: a host with a card, and a way to run commands on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.emulator.card import Card, CardProfile, CardSpec, CardState
from harness.emulator.clock import LabClock
from harness.emulator.host import EmulatedHost
from harness.emulator.process import Buffer, Bytes
from harness.emulator.programs.base import Streams
from harness.emulator.shell import Shell
from harness.images.recipes import Recipe, build, load_recipes

ROOT = Path(__file__).resolve().parents[2]
#: 2026-11-30 09:00:00 UTC
START = 1796029200.0


@cache
def _recipes() -> dict[str, Recipe]:
    return load_recipes((ROOT / "fixtures/images.yaml").read_text())


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


class Console:
    """A host and what is typed on it."""

    def __init__(self, host: EmulatedHost) -> None:
        self.host = host

    @property
    def card(self) -> Card:
        return self.host.card("card0")

    def run(self, command: str, stdin: bytes = b"") -> Result:
        """Run ``command`` as an SSH client has it run: by the login shell."""
        out, err = Buffer(), Buffer()
        code = self.host.run(command, Streams(Bytes(stdin), out, err))
        return Result(code, out.data.decode(), err.data.decode())

    def run_sh(self, command: str, cwd: str = "/", stdin: bytes = b"") -> Result:
        """Run ``command`` by ``sh`` (dash) with the C locale, in ``cwd``."""
        out, err = Buffer(), Buffer()
        process = self.host.processes.start(["sh", "-c", command])
        env = self.host.login_environment() | {"LC_ALL": "C", "LANG": "C"}
        shell = Shell(self.host, process, Streams(Bytes(stdin), out, err), env, name="sh", cwd=cwd)
        try:
            code = shell.main(command)
        finally:
            self.host.end(process)
        return Result(code, out.data.decode(errors="replace"), err.data.decode(errors="replace"))

    def put(self, name: str, data: bytes) -> str:
        """Put a file on the host; return its path."""
        path = f"/tmp/{name}"
        self.host.vfs.write(path, data)
        return path


class Running:
    """An update whose phase ``point`` is held, with its tool (``program``) running in a thread.

    ``path``: the image, for ``fpgasupdate``; ``command``: what is typed instead.
    """

    def __init__(
        self, console: Console, path: str, point: str, *, command: str = "", program: str = "fpgasupdate"
    ) -> None:
        self._console = console
        console.card.hold(point)
        typed = command or f"fpgasupdate -y {path} b2:00.0"
        self._thread = threading.Thread(target=self._run, args=(typed,))
        self._thread.start()
        pause = threading.Event()
        while console.card.held() != point:
            assert self._thread.is_alive()
            pause.wait(0.001)
        self.pid = console.run(f"pgrep {program}").out.strip()

    def _run(self, command: str) -> None:
        self._result = self._console.run(command)

    def end(self) -> Result:
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self._result


@pytest.fixture
def running() -> type[Running]:
    """Starts an update and holds it in a phase."""
    return Running


@pytest.fixture
def clock() -> Iterator[LabClock]:
    found = LabClock(start=START)
    yield found
    found.close()


@pytest.fixture
def new_host(clock: LabClock) -> Callable[..., EmulatedHost]:
    """Makes a host that is on, with a card for each of ``addresses``."""

    def make(
        *addresses: str,
        state: CardState | None = None,
        generation: Any = "D",
        era: Any = "host",
        **profile: object,
    ) -> EmulatedHost:
        host = EmulatedHost("subcloud1", clock, generation=generation, era=era)
        for index, address in enumerate(addresses):
            spec = CardSpec(f"card{index}", f"64:4c:36:00:{index:02x}:00", (address,))
            host.add_card(spec, state or CardState(), CardProfile.from_mapping(profile))
        host.power_on()
        return host

    return make


@pytest.fixture
def console(new_host: Callable[..., EmulatedHost]) -> Console:
    """A host with one card at 0000:b2:00.0, as new."""
    return Console(new_host("0000:b2:00.0"))


@pytest.fixture
def console_for() -> type[Console]:
    """Makes a console of another host."""
    return Console


@pytest.fixture
def recipe_image() -> Callable[[str], bytes]:
    """Returns the image of a recipe."""
    return cache(lambda name: build(_recipes()[name]))


@pytest.fixture
def recipe_root() -> Callable[[str], str]:
    """Returns the root entry hash behind the recipe of a signed image."""

    def root(name: str) -> str:
        digest = _recipes()[name].root_entry_hash()
        assert digest is not None
        return digest

    return root
