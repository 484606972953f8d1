"""What is done to the held request alone: a reset, a cut, an answer in the registry's place, a delay."""

from __future__ import annotations

import json
from collections.abc import Callable

from harness.errors import ConfigurationError
from harness.faults.registry_actions.protocol import Base, Bench, Gate

#: The codes that a registry says with a status (distribution's specification, "Errors").
_CODES = {
    401: "UNAUTHORIZED",
    403: "DENIED",
    404: "NAME_UNKNOWN",
    429: "TOOMANYREQUESTS",
    500: "UNKNOWN",
    503: "UNAVAILABLE",
}


class AtGate(Base):
    """Does something to the held request.

    :param done: what. :param word: what was done to it, in words.
    """

    needs_request = True

    def __init__(self, name: str, about: str, done: Callable[[Gate], None], word: str) -> None:
        super().__init__(name, about)
        self._done = done
        self._word = word

    def fire(self, bench: Bench, gate: Gate | None) -> str:
        """Do it. :raises ConfigurationError: no request is held."""
        if gate is None or gate.held is None:
            raise ConfigurationError(
                f"No request is held that {self.name!r} could be done to.", hint="Bind it to a fault point."
            )
        said = f"{self._word} {gate.held}"
        self._done(gate)
        return said


def answering(status: int) -> Callable[[Gate], None]:
    """Return what answers a held request with ``status``, in the form of a registry's errors."""
    error = {"code": _CODES[status], "message": "said by the lab", "detail": None}
    body = json.dumps({"errors": [error]}).encode()
    headers = {"Content-Type": "application/json", "Docker-Distribution-Api-Version": "registry/2.0"}
    if status in (429, 503):
        headers["Retry-After"] = "1"

    def answer(gate: Gate) -> None:
        gate.answer(status, body, headers)

    return answer
