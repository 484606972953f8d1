"""Restarts, rotations, stops and pauses of the registry and its token service."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from harness.errors import ConfigurationError, HarnessError
from harness.faults.registry_actions.protocol import Base, Bench, Gate, tokens_of, told, while_held, words_of
from harness.faults.registry_actions.refusing import Refusing

if TYPE_CHECKING:
    from harness.registry.assembled import Service
    from harness.registry.service import Around, How


class OnRunning(Base):
    """Base of actions after which the registry is to run: their undo starts it where it does not."""

    def __init__(self, name: str, about: str) -> None:
        super().__init__(name, about)
        self._tried = False

    def fire(self, bench: Bench, gate: Gate | None) -> str:
        """Disturb, and remember that it was begun."""
        self._tried = True
        return self._done(bench, gate)

    def _done(self, bench: Bench, gate: Gate | None) -> str:
        raise NotImplementedError

    def undo(self, bench: Bench) -> None:
        """Start the registry where it does not run."""
        if self._tried:
            if bench.registry.instance is None:
                bench.registry.start()
            self._tried = False


class Restarts(OnRunning):
    """Restarts the registry."""

    def __init__(self, name: str, about: str, how: How) -> None:
        super().__init__(name, about)
        self._how: How = how

    def _done(self, bench: Bench, gate: Gate | None) -> str:
        return told(bench.registry.restart(self._how, held=words_of(gate)))


class RotatesKeys(OnRunning):
    """Puts a new token key, bundle and certificate in place and restarts services in this order."""

    def __init__(self, name: str, about: str, order: Sequence[Service]) -> None:
        super().__init__(name, about)
        self._order = tuple(order)

    def check(self, bench: Bench) -> None:
        """Hold it to a lab whose registry takes tokens."""
        tokens_of(bench)

    def _done(self, bench: Bench, gate: Gate | None) -> str:
        lab = bench.lab
        done = lab.rotate(self._order, held=words_of(gate))
        new = f"put token key {lab.keys.installed.number} in place"
        also = f"; the token service goes on with key {lab.tokens.generation.number}"
        if "tokens" in self._order:
            also = ", after the token service" if self._order[0] == "tokens" else ", then the token service"
        return f"{new}, {told(done)}{also}" if done else new

    def undo(self, bench: Bench) -> None:
        """Let both run with the key that is in place; clients' tokens of before stay lost."""
        if self._tried:
            lab = bench.lab
            if not lab.tokens.runs or lab.tokens.generation != lab.keys.installed:
                lab.tokens.restart()
        super().undo(bench)


class RotatesCertificate(OnRunning):
    """Replaces the registry's TLS certificate by another of the same authority and restarts it."""

    def check(self, bench: Bench) -> None:
        """Hold it to a registry with TLS."""
        if bench.lab.registry.settings.tls is None:
            raise ConfigurationError(f"The {bench.registry.name} has no TLS certificate to rotate.")

    def _done(self, bench: Bench, gate: Gate | None) -> str:
        bench.lab.authority.issue("registry")
        return f"put a new certificate in place, {told(bench.registry.restart(held=words_of(gate)))}"


class Stops(OnRunning):
    """Stops the registry until its undo, or until so many connections to its port were refused.

    :param refusals: 0: until the undo.
    """

    def __init__(self, name: str, about: str, refusals: int) -> None:
        super().__init__(name, about)
        self._refusals = refusals
        self._refusing: Refusing | None = None

    def check(self, bench: Bench) -> None:
        """Counting needs the port of a registry on this machine."""
        if self._refusals:
            _ = bench.lab

    def _done(self, bench: Bench, gate: Gate | None) -> str:
        registry = bench.registry
        before = registry.instance
        registry.stop()
        said = f"stopped the registry (process {before.pid if before else 'none'}){while_held(gate)}"
        if not self._refusals:
            return said
        at = urlsplit(registry.endpoint.url)
        self._refusing = Refusing(at.hostname or "", at.port or 0, self._refusals, registry.start)
        return f"{said}; it starts again when {self._refusals} connections were refused"

    def undo(self, bench: Bench) -> None:
        """Start it, however many were refused."""
        if self._refusing is not None:
            refusing, self._refusing = self._refusing, None
            refusing.close()
        super().undo(bench)


class Pauses(Base):
    """Stops the registry's process where it stands, until its undo or for so many seconds.

    :param seconds: 0: until the undo.
    """

    def __init__(self, name: str, about: str, seconds: float) -> None:
        super().__init__(name, about)
        self._seconds = seconds
        self._timer: threading.Timer | None = None
        self._tried = False

    def fire(self, bench: Bench, gate: Gate | None) -> str:
        """Pause it."""
        self._tried = True
        running = bench.registry.instance
        bench.registry.pause()
        said = f"paused the registry (process {running.pid if running else 'none'})"
        if self._seconds:
            self._timer = threading.Timer(self._seconds, self._resume, (bench,))
            self._timer.daemon = True
            self._timer.start()
            said += f" for {self._seconds:g} s"
        return said + while_held(gate)

    @staticmethod
    def _resume(bench: Bench) -> None:
        with suppress(HarnessError):  # the undo tries again, where somebody hears of it
            bench.registry.resume()

    def undo(self, bench: Bench) -> None:
        """Let it go on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
            self._timer = None
        if self._tried:
            bench.registry.resume()
            self._tried = False


class ReadOnly(OnRunning):
    """Restarts the registry so that it takes no writes."""

    def _done(self, bench: Bench, gate: Gate | None) -> str:
        return told(bench.registry.read_only(True), "made the registry read-only") + while_held(gate)

    def undo(self, bench: Bench) -> None:
        """Let it take writes again."""
        if self._tried:
            running = bench.registry.instance
            if running is not None and running.read_only:
                bench.registry.read_only(False)
        super().undo(bench)


class CollectsGarbage(OnRunning):
    """Runs the registry's own garbage collection; what it deletes does not come back."""

    def __init__(self, name: str, about: str, around: Around) -> None:
        super().__init__(name, about)
        self._around: Around = around

    def _done(self, bench: Bench, gate: Gate | None) -> str:
        done = bench.registry.garbage_collect(around=self._around)
        deleted = done.text.count("blob eligible for deletion")
        said = f"collected garbage: {deleted} blobs deleted, exit code {done.exit_code}{while_held(gate)}"
        return "; ".join([said, *map(told, done.restarts)])
