"""Where a request is held, and what becomes of it: decided by one thread, awaited by another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from harness.errors import ConfigurationError
from harness.faults.registry_points import LAST, FaultPoint, Step

Kind = Literal["release", "reset", "cut", "answer"]


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a request. ``number`` counts requests of the proxy, ``connection`` its connections."""

    number: int
    connection: int
    method: str
    target: str
    step: Step
    repository: str
    #: Names in lower case.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class HeldRequest:
    """A request that is held: which of its step it is, and the bytes of its body that have been passed on."""

    method: str
    target: str
    step: Step
    repository: str
    nth: int
    connection: int
    passed: int

    def __str__(self) -> str:
        return f"{self.method} {self.target.partition('?')[0]} (connection {self.connection})"


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a held request, ``seconds`` after it was both held and decided on."""

    kind: Kind = "release"
    seconds: float = 0.0
    status: int = 0
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        said = f"answered {self.status}" if self.kind == "answer" else _DONE[self.kind]
        return f"{said} after {self.seconds:g} s" if self.seconds else said


_DONE = {"release": "released", "reset": "reset", "cut": "cut"}


class Gate:
    """Catches one request at a fault point and holds it until somebody decides; made by ``FaultProxy.arm``.

    The first decision counts. One that is made before a request is held takes effect when one is.
    """

    def __init__(
        self, point: FaultPoint, repository: str = "", matching: Callable[[Request], bool] | None = None
    ) -> None:
        """:raises ConfigurationError: the point is the last of something, and not resolved."""
        if point.nth == LAST:
            raise ConfigurationError(
                f"{point} can be armed only when it is known which request is the last.",
                hint="Let one push pass, count its steps, and arm point.resolved(last=N).",
            )
        self.point = point
        self._repository = repository
        self._matching = matching
        self._changed = threading.Condition()
        self._seen = 0
        self._held: HeldRequest | None = None
        self._decision: Decision | None = None
        self._over = False
        self._done = False
        self._failure: Exception | None = None

    @property
    def reached(self) -> bool:
        """Whether a request has come to the point."""
        return self._held is not None

    @property
    def held(self) -> HeldRequest | None:
        """The request that is or was held; None where none came yet."""
        return self._held

    def wait(self, deadline: float, until: Future[Any] | None = None) -> HeldRequest | None:
        """Return the request as soon as it is held.

        :param deadline: seconds. :param until: what ends the wait when it is done, such as the push.
        :returns: None where none came by then, or the gate was disarmed.
        :raises Exception: what the ``matching`` of the gate raised.
        """
        if until is not None:
            until.add_done_callback(lambda _: self._notify())
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._held is not None
                    or self._over
                    or self._failure is not None
                    or (until is not None and until.done())
                ),
                deadline,
            )
            if self._failure is not None:
                raise self._failure
            return self._held

    def release(self) -> None:
        """Let it go on; at a ``cut`` point, let the connection be cut."""
        self._decide(Decision())

    def reset(self) -> None:
        """Reset the client's connection (RST)."""
        self._decide(Decision("reset"))

    def cut(self) -> None:
        """Close the client's connection without the rest."""
        self._decide(Decision("cut"))

    def answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """Answer the client in the registry's place; the registry never sees what is held ``before``."""
        self._decide(Decision("answer", status=status, body=body, headers=headers or {}))

    def delay(self, seconds: float) -> None:
        """Let it go on after ``seconds``; returns at once."""
        self._decide(Decision(seconds=seconds))

    def disarm(self) -> None:
        """Catch nothing any more, and let go of what is held."""
        with self._changed:
            self._over = True
            self._decide(Decision())

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _decide(self, decision: Decision) -> None:
        with self._changed:
            if self._decision is None:
                self._decision = decision
            self._changed.notify_all()

    # -- for the connections of the proxy -----------------------------------------------------------

    def catches(self, request: Request) -> bool:
        """Return whether ``request`` is the one that is waited for; counts those that match."""
        if request.step != self.point.step or (self._repository and request.repository != self._repository):
            return False
        with self._changed:
            if self._over or self._seen >= self.point.nth:
                return False
            try:
                if self._matching is not None and not self._matching(request):
                    return False
            except Exception as error:  # noqa: BLE001 -- told to who waits; the connection goes on
                self._failure = error
                self._changed.notify_all()
                return False
            self._seen += 1
            return self._seen == self.point.nth

    @property
    def spent(self) -> bool:
        """Whether it has done what it was for."""
        return self._done or (self._over and self._held is None)

    def hold(self, request: Request, passed: int) -> Decision:
        """Hold ``request`` and return what is to become of it, when it is time."""
        with self._changed:
            self._held = HeldRequest(
                request.method,
                request.target,
                request.step,
                request.repository,
                self.point.nth,
                request.connection,
                passed,
            )
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._decision is not None)
            assert self._decision is not None, "waited for"
            decision = self._decision
            ends = time.monotonic() + decision.seconds
            # Another decision does not come; only the end of the proxy shortens a delay.
            self._changed.wait_for(lambda: self._over, max(0.0, ends - time.monotonic()))
            self._done = True
        if self.point.when == "cut" and decision.kind == "release":
            return replace(decision, kind="cut")
        return decision
