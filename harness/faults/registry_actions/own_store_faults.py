"""What needs a store on a file system of its own: a full disk, and a kill at the opening of a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from harness.errors import BlockedError, HarnessBug, InfrastructureError
from harness.faults.openings import HeldOpening, check_can_hold
from harness.faults.own_store import check_can_mount, fill, free, is_own_store
from harness.faults.registry_actions.protocol import Base, Bench, Gate, store_of, told, while_held, words_of
from harness.faults.registry_points import Step
from harness.registry.service import Restart

_OPEN_SECONDS = 30.0
_HEX = "[0-9a-f]{64}"
_V2 = "docker/registry/v2"
#: Only manifests are written into `blobs`: layers and configs are moved there.
FILES = {
    "manifest-blob": re.compile(f"{_V2}/blobs/sha256/[0-9a-f]{{2}}/{_HEX}/data"),
    "layer-link": re.compile(f"{_V2}/repositories/.+/_layers/sha256/{_HEX}/link"),
    "tag-link": re.compile(f"{_V2}/repositories/.+/_manifests/tags/[^/]+/current/link"),
}
#: The request in which a registry writes each of them.
_WRITTEN_IN: dict[str, Step] = {
    "manifest-blob": "manifest-put",
    "layer-link": "blob-put",
    "tag-link": "manifest-put",
}


def own_store_of(bench: Bench) -> Path:
    """Return the registry's store, if that is an :class:`harness.faults.own_store.OwnStore`.

    :raises BlockedError: it is none; as far as one cannot be made here, why.
    """
    root = store_of(bench)
    if not is_own_store(root):
        check_can_mount(0)
        raise BlockedError(
            f"The store {root} of the {bench.registry.name} is not on a file system of its own.",
            hint="Start it with `RegistrySettings(storage=OwnStore(size).folder)`.",
        )
    return root


class FillsDisk(Base):
    """Fills the store's file system to its last page, until the undo."""

    needs_own_store = True

    def __init__(self, name: str, about: str) -> None:
        super().__init__(name, about)
        self._root: Path | None = None

    def check(self, bench: Bench) -> None:
        """Hold it to a store of its own: nobody else's disk is filled."""
        own_store_of(bench)

    def fire(self, bench: Bench, gate: Gate | None) -> str:
        """Fill it."""
        self._root = own_store_of(bench)
        size = fill(self._root)
        return f"filled the last {size} bytes of the store{while_held(gate)}"

    def undo(self, bench: Bench) -> None:
        """Free what was filled."""
        if self._root is not None:
            free(self._root)
            self._root = None


class KillsAtOpening(Base):
    """Kills the registry while it opens a file for writing, and starts it again.

    What a registry 2.8 leaves then is a new file of no bytes (fact sheet of the registry, section 3).

    :param what: a member of :data:`FILES`.
    """

    needs_own_store = True
    pushed_again = True

    def __init__(self, name: str, about: str, what: str) -> None:
        super().__init__(name, about)
        self.strikes_in = _WRITTEN_IN[what]
        self._file = FILES[what]
        self._what = what
        self._opening: HeldOpening | None = None
        self._restart: Restart | None = None

    def check(self, bench: Bench) -> None:
        """Hold it to a store of its own, on a kernel that can hold openings."""
        check_can_hold(own_store_of(bench))

    def fire(self, bench: Bench, gate: Gate | None) -> str:
        """Lie in wait, let the held request go on, and return when it was struck.

        Without a held request it returns at once; :meth:`wait` waits for the strike.

        :raises DeadlineError: the file was not opened.
        """
        root = own_store_of(bench)
        running = bench.registry.instance
        if running is None:
            raise InfrastructureError(f"The {bench.registry.name} does not run.")
        held = f"the opening of a {self._what}"
        if gate is not None:
            held += f" in {words_of(gate)}"

        def strike(path: str, let_go: Callable[[], None]) -> None:
            self._restart = bench.registry.restart("KILL", held=held, between=let_go)

        self._opening = HeldOpening(root, running.pid, self._file, strike)
        if gate is None:
            return f"lie in wait for {held}"
        gate.release()
        return self.wait()

    def wait(self, deadline: float = _OPEN_SECONDS) -> str:
        """Return what was done, once the registry answers again. :raises DeadlineError: it never came."""
        if self._opening is None:
            raise HarnessBug("an opening was waited for that nobody holds")
        path = self._opening.wait(deadline)
        if self._restart is None:
            raise HarnessBug("an opening was struck without a restart")
        return f"{told(self._restart)}; it was about to write {path}"

    def undo(self, bench: Bench) -> None:
        """Hold nothing any more, and start the registry where it does not run. The file stays as it is."""
        if self._opening is not None:
            self._opening.close()
            self._opening = None
            if bench.registry.instance is None:
                bench.registry.start()
