"""The bench of an emulated lab: fits cards, switches power, holds phases, brings circumstances about."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from harness.errors import ConfigurationError, DeadlineError, HarnessBug, InfrastructureError

PowerAct = Literal["off", "on", "cycle", "reboot"]

_ANSWER_SECONDS = 60.0


class Bench:
    """A client of an emulated lab's control socket; safe to share between threads.

    ``card`` is a name such as ``subcloud1/card0``. Every call raises :class:`InfrastructureError` where
    the lab is gone or out of order, and :class:`ConfigurationError` for names that it does not know.
    """

    def __init__(self, control: Path) -> None:
        self._path = control

    def fit(self, card: str, state: Mapping[str, Any], profile: Mapping[str, Any] | None = None) -> None:
        """Put another card in the slot: ``state`` as :meth:`CardState.to_json` has it, the rest as new.

        ``profile``: how it behaves where documents leave it open; None: as the card before it.
        """
        self._ask("fit", card=card, state=dict(state), profile=None if profile is None else dict(profile))

    def power(self, host: str, how: PowerAct) -> None:
        """Switch a host's power: ``off``, ``on``, ``cycle`` (both), or ``reboot`` it under power."""
        self._ask("power", host=host, how=how)

    def powered(self, host: str) -> bool:
        """Return whether a host has power."""
        return bool(self._ask("powered", host=host))

    def hold(self, card: str, phase: str) -> None:
        """Withhold the end of ``phase``, now or when it comes; lab time does not pass it until released."""
        self._ask("hold", card=card, phase=phase)

    def release(self, card: str) -> None:
        """End the hold."""
        self._ask("release", card=card)

    def held(self, card: str) -> str | None:
        """Return the phase that has begun and whose end is withheld."""
        phase = self._ask("held", card=card)
        return None if phase is None else str(phase)

    def wait_held(
        self, card: str, phase: str, deadline: float = 30.0, *, while_updating: bool = False
    ) -> None:
        """Wait until ``phase`` has begun and is held.

        :param while_updating: give up as soon as no update runs: then the phase will not come.
        :raises DeadlineError: not within ``deadline`` s, or given up.
        """
        self._ask(
            "wait-held",
            card=card,
            phase=phase,
            seconds=deadline,
            while_updating=while_updating,
            patience=deadline,
        )

    def condition(self, subject: str, name: str, on: bool) -> None:
        """Bring a circumstance of a card (or of a host: its name without ``/``) about, or end it."""
        self._ask("condition", subject=subject, name=name, on=on)

    def moves_to(self, card: str, address: str | None) -> None:
        """Say where the card comes back after its next reset; None: where it is."""
        self._ask("moves-to", card=card, address=address)

    def boots_at(self, card: str, address: str | None) -> None:
        """Say where the card comes up when its host boots, until its first reset; None: where it is."""
        self._ask("boots-at", card=card, address=address)

    def second_update(self, card: str, image: bytes) -> str:
        """Have somebody else hand an image to the driver; return what he is told, empty if it begins."""
        return str(self._ask("second-update", card=card, image=base64.b64encode(image).decode()))

    def lab_time(self) -> float:
        """Return the lab's virtual time, seconds since the epoch."""
        return float(self._ask("lab-time"))

    def pass_time(self, seconds: float) -> None:
        """Let ``seconds`` of lab time pass; what falls due meanwhile happens, and is over when this returns.

        :raises ConfigurationError: not a time that a lab can let pass.
        :raises DeadlineError: something did not end, such as an update whose phase is held.
        """
        self._ask("pass-time", seconds=seconds, patience=_ANSWER_SECONDS)

    def stop_time(self, seconds: float) -> None:
        """Have lab time come no further than ``seconds`` from now, until :meth:`release_time`.

        :raises ConfigurationError: not a time that a lab can let pass.
        """
        self._ask("stop-time", seconds=seconds)

    def wait_stopped(self, deadline: float = 30.0) -> None:
        """Wait until lab time is where :meth:`stop_time` stops it, and all before that has happened.

        :raises DeadlineError: not within ``deadline`` s.
        """
        self._ask("wait-stopped", seconds=deadline, patience=deadline)

    def release_time(self) -> None:
        """Let lab time pass again."""
        self._ask("release-time")

    def trouble(self, system: str, name: str, value: int | float | str | bool | None = None) -> None:
        """Make something go wrong in an emulated StarlingX system, or right again.

        ``refuse-requests`` (how many are answered with 503), ``downloads`` (``whole``, ``missing``,
        ``short``), ``completions`` (lab seconds by which they come late; None: they are lost), ``conductor``
        and ``agents`` (whether they run), ``expire-tokens``, ``restart`` (all services),
        ``api-down-after-unlock`` (for how many lab seconds sysinv does not answer after each unlock),
        ``host-update-null`` (whether a host that comes to be owed nothing says NULL of its update, as one
        that never had one), ``slow`` (how many times as long as else its hosts take). Of a distributed
        cloud's controller also ``subcloud-offline`` and ``subcloud-unmanaged`` (its name; ``-`` before it:
        not any more), ``vault-missing`` (uuid of an image), ``vault-takes-files`` and ``dcmanager``
        (whether), ``audit-now`` (a pass of the audit).
        """
        self._ask("trouble", system=system, name=name, value=value)

    def oracle(self, card: str) -> dict[str, Any]:
        """Return what is inside the card. No scenario may judge by it: no real card shows it."""
        found = self._ask("oracle", card=card)
        if not isinstance(found, dict):
            raise HarnessBug(f"The emulated lab answered {found!r} for a card's state.")
        return found

    def unrecorded(self) -> dict[str, list[dict[str, Any]]]:
        """Return, by replayed host, what was asked of it that its recording does not hold.

        Each with ``what`` (``read PATH``, ``run COMMAND``) and how many ``times``, the first one first.
        """
        found: dict[str, list[dict[str, Any]]] = self._ask("unrecorded")
        return found

    def stop(self) -> None:
        """End the lab; nothing where it is gone already."""
        with contextlib.suppress(InfrastructureError):  # it ends without an answer
            self._ask("stop")

    def _ask(self, op: str, *, patience: float = 0.0, **arguments: Any) -> Any:
        line = json.dumps({"op": op, **arguments}) + "\n"
        try:
            answer = self._exchange(line.encode(), _ANSWER_SECONDS + patience)
        except OSError as error:
            raise InfrastructureError(
                f"The emulated lab does not answer at {self._path}: {error}.",
                hint="It may have been stopped: see `hil lab status`.",
            ) from error
        if "error" not in answer:
            return answer.get("result")
        kinds = {
            "deadline": DeadlineError,
            "configuration": ConfigurationError,
            "infrastructure": InfrastructureError,
        }
        raise kinds.get(answer["kind"], HarnessBug)(answer["error"], hint=answer["hint"])

    def _exchange(self, line: bytes, seconds: float) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            connection.connect(str(self._path))
            connection.sendall(line)
            received = bytearray()
            while not received.endswith(b"\n"):
                piece = connection.recv(65536)
                if not piece:
                    raise ConnectionResetError("it closed the connection")
                received += piece
        answer: dict[str, Any] = json.loads(received)
        return answer
