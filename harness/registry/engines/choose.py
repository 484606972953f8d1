"""Decides which Docker engine is used: a private one, else the machine's, else none and why."""

from __future__ import annotations

import os
from pathlib import Path

from harness.errors import BlockedError, InfrastructureError
from harness.registry.engines.enclosure import Enclosure
from harness.registry.engines.machine import MachineEngine
from harness.registry.engines.private import PrivateEngine


def open_engine(folder: Path | None = None, *, stays: bool = False) -> PrivateEngine | MachineEngine:
    """Return an engine that answers; the caller closes it.

    In this order: without ``folder``, the private engine that DOCKER_HOST leads to; a new private one,
    whose package is installed where it is missing and we are root; the machine's, or DOCKER_HOST's.

    :param folder: of a new private one. :param stays: as for :class:`PrivateEngine`.
    :raises BlockedError: none can be had; the message has the command that helps.
    """
    running = _running_private() if folder is None else None
    if running is not None:
        return running
    engine = PrivateEngine(folder, stays=stays)
    try:
        engine.start()
    except BlockedError as missing:
        engine.close()
        try:
            return MachineEngine()
        except InfrastructureError as error:
            raise BlockedError(f"{missing.message} {error.message}", hint=missing.hint) from None
    except BaseException:
        engine.close()
        raise
    return engine


def _running_private() -> PrivateEngine | None:
    """Return the private engine at DOCKER_HOST; closing it leaves it running."""
    socket = Path(os.environ.get("DOCKER_HOST", "").removeprefix("unix://"))
    if socket.is_absolute() and Enclosure(socket.parent.resolve()).keeper() is not None:
        return PrivateEngine(socket.parent)
    return None
