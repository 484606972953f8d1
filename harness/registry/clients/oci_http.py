"""Our OCI client over httpx: one token and no second try, or renewed and patient; and the pull client."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version

from harness.errors import ConfigurationError
from harness.registry.clients.catalogue import Surroundings
from harness.registry.clients.oci_session import (
    ONCE,
    PATIENT,
    OutOfTimeError,
    PushError,
    Session,
    Tries,
)
from harness.registry.clients.oci_transfer import PARALLEL, Pull, Push, Say
from harness.registry.clients.protocol import Destination, Report, Result
from harness.registry.images import Content


def once(surroundings: Surroundings) -> OciPush:
    """Return the client that uses one token for all of a push and tries nothing twice."""
    return OciPush("oci-once", ONCE)


def renewing(surroundings: Surroundings, *, chunk: int = 0) -> OciPush:
    """Return the client that renews its token and tries each step again.

    :param chunk: bytes of one PATCH; 0 sends each blob by one PUT.
    """
    return OciPush("oci-renew", PATIENT, chunk=chunk)


def pull(surroundings: Surroundings) -> OciPull:
    """Return the pull client that fetches and hashes everything."""
    return OciPull()


class OciPush:
    """Pushes by the OCI distribution protocol; there is nothing to prepare.

    :param chunk: bytes of one PATCH; 0 sends each blob by one PUT.
    :param parallel: blobs that are under way at once.
    """

    def __init__(self, name: str, tries: Tries, *, chunk: int = 0, parallel: int = PARALLEL) -> None:
        self.name = name
        self.version = f"httpx {version('httpx')}"
        self._tries = tries
        self._chunk = chunk
        self._parallel = parallel

    def prepare(self, content: Content, destination: Destination) -> None:
        """Check that the content can be pushed there. :raises ConfigurationError: it cannot."""
        check(content, destination)

    def push(self, content: Content, destination: Destination, *, deadline: float = 120.0) -> Report:
        """Push, and report ``done`` only where the registry said 201 with our digest."""
        check(content, destination)

        def act(session: Session, say: Say) -> str:
            made = Push(
                session, content, destination.reference, say, chunk=self._chunk, parallel=self._parallel
            )
            return made.run()

        return reported(destination, "pull,push", self._tries, deadline, act)

    def forget(self, content: Content, destination: Destination) -> None:
        """Nothing was made."""

    def close(self) -> None:
        """Nothing is held between two pushes."""


class OciPull:
    """Pulls by the OCI distribution protocol and keeps nothing of it."""

    name = "oci-pull"

    def __init__(self, tries: Tries = ONCE) -> None:
        self._tries = tries

    def pull(self, source: Destination, *, deadline: float = 120.0) -> Report:
        """Pull, and report ``done`` only where everything has the digest that it should."""

        def act(session: Session, say: Say) -> str:
            return Pull(session, source.reference, say).run()

        return reported(source, "pull", self._tries, deadline, act)

    def close(self) -> None:
        """Nothing is held between two pulls."""


def check(content: Content, destination: Destination) -> None:
    """:raises ConfigurationError: the reference has a digest, and it is another one than the content's."""
    wanted = destination.reference.digest
    if wanted and wanted != content.digest:
        raise ConfigurationError(f"{destination.reference} cannot take an image with {content.digest}.")


def reported(
    destination: Destination, actions: str, tries: Tries, deadline: float, act: Callable[[Session, Say], str]
) -> Report:
    """Return the report of ``act``, which says what it does and returns a digest or raises PushError.

    :raises ConfigurationError: the destination cannot be used.
    """
    began = time.monotonic()
    log: list[str] = []
    digest, error = "", ""
    result: Result = "done"
    session = Session(destination, actions, tries, began + deadline)
    with session:
        try:
            digest = act(session, log.append)
        except OutOfTimeError:
            result, error = (
                "interrupted",
                f"not done after {deadline:g} s; last: {log[-1] if log else 'nothing'}",
            )
        except PushError as failure:
            result, error = "failed", str(failure)
        except OSError as failure:
            result, error = "failed", f"the content cannot be read: {failure}"
    log += [error] if error else []
    return Report(
        result,
        "\n".join(log),
        digest=digest,
        error=error,
        log=tuple(log),
        seconds=time.monotonic() - began,
        waited=session.waiting.seconds,
    )
