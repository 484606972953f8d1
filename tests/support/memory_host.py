"""A host of the harness whose machine is in memory: what is let pass runs in an emulated shell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.emulator.card import Card, CardProfile, CardSpec, CardState, Generation
from harness.emulator.clock import LabClock
from harness.emulator.host import EmulatedHost
from harness.emulator.process import Buffer, Bytes
from harness.emulator.programs.base import Streams
from harness.hosts.local import LocalHost
from harness.hosts.permits import Permit, genuine
from harness.hosts.remote_errors import os_error
from harness.hosts.sources import opened

ADDRESS, MAC = "0000:b2:00.0", "64:4c:36:00:00:00"


class Printed(Buffer):
    """What a program prints, told as it comes."""

    def __init__(self, on_output: Callable[[str], None] | None) -> None:
        super().__init__()
        self._on_output = on_output

    def write(self, data: bytes) -> None:
        super().write(data)
        if self._on_output is not None:
            self._on_output(data.decode(errors="replace"))


class MemoryHost(LocalHost):
    """The product's own checks, before a machine with one card. ``lines``: every line that reached it.

    ``uploads``: the bytes that were put there, by path.
    """

    def __init__(
        self, clock: LabClock, *, generation: Generation = "D", state: CardState | None = None
    ) -> None:
        super().__init__("bench")
        self.machine = EmulatedHost("bench", clock, generation=generation)
        spec = CardSpec("card0", MAC, (ADDRESS,))
        self.card: Card = self.machine.add_card(spec, state or CardState(), CardProfile())
        self.machine.power_on()
        self.lines: list[str] = []
        self.uploads: dict[str, bytes] = {}

    def _execute(
        self, line: str, deadline: float, on_output: Callable[[str], None] | None
    ) -> tuple[int, bytes, bytes]:
        self.lines.append(line)
        out, err = Printed(on_output), Buffer()
        code = self.machine.run(line, Streams(Bytes(b""), out, err))
        return code, bytes(out.data), bytes(err.data)

    def put(self, source: Any, path: str, *, permit: Permit, deadline: float = 600.0) -> None:
        with opened(source) as (handle, _, sha256):
            permit = genuine(permit)
            permit.check_write(self.name, path, sha256)
            permit.spend()
            data = handle.read()
            self.uploads[permit.path] = data
            self.machine.vfs.write(permit.path, data)

    def read(self, path: str, *, deadline: float = 30.0) -> bytes:
        return self._asked(["cat", path], path)

    def list(self, path: str, *, deadline: float = 30.0) -> list[str]:
        return sorted(self._asked(["ls", "-1", path], path).decode().splitlines())

    def _asked(self, argv: Sequence[str], path: str | Path) -> bytes:
        result = self.run(argv)
        if result.exit_code != 0:
            raise os_error(str(path), result.stderr)
        return result.stdout.encode()

    @property
    def irreversible(self) -> tuple[object, ...]:
        """What the card's flash holds that cannot be undone: hashes and cancellations of all sections."""
        return tuple((self.card.root_entry_hash(s), self.card.cancelled(s)) for s in ("SR", "BMC", "PR"))
