"""The control socket of an emulated lab: JSON lines over a Unix socket, for what no real lab offers.

A request is ``{"op": name, ...arguments}``; the answer ``{"result": value}`` or
``{"error": message, "hint": hint, "kind": "configuration" | "deadline" | "infrastructure"}``. A lab that is
out of order (its disk is full) answers every request but ``stop`` with the reason.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.emulator.card import Card, CardProfile, CardState
from harness.emulator.card.flash import pci_address
from harness.emulator.clock import Event, LabClock
from harness.emulator.host import EmulatedHost
from harness.errors import ConfigurationError, DeadlineError, HarnessError, InfrastructureError, Kind

_POLL_SECONDS = 0.002  # of real time: a card tells when its phase is held only when asked
#: The longest request is a card's state: four pages, the largest as long as the staging area, in base64.
_LONGEST_LINE = 1 << 28
_LONGEST_WAIT = 3600.0
_LONGEST_PASS = 30 * 86400.0


def _no_systems(system: str, name: str, value: Any) -> None:
    raise ConfigurationError(f"The lab emulates no system {system!r}.", hint="Give it controllers.")


class Control:
    """Carries out the requests of a lab's bench on ``hosts``. ``stop`` ends the lab."""

    def __init__(self, hosts: Mapping[str, EmulatedHost], clock: LabClock, stop: Callable[[], None]) -> None:
        self._hosts = hosts
        self._clock = clock
        self._failure: InfrastructureError | None = None
        #: Lab time does not pass this.
        self._stop: Event | None = None
        #: Makes something go wrong in an emulated system: its name, what, a value.
        self.on_trouble: Callable[[str, str, Any], None] = _no_systems
        #: Called where all that has begun must have ended. :raises DeadlineError: it has not.
        self.on_settle: list[Callable[[], None]] = []
        self._operations: dict[str, Callable[..., Any]] = {
            "fit": self._fit,
            "power": self._power,
            "powered": lambda host: self._host(host).powered,
            "hold": lambda card, phase: self._card(card).hold(phase),
            "release": lambda card: self._card(card).release(),
            "held": lambda card: self._card(card).held(),
            "wait-held": self._wait_held,
            "condition": self._condition,
            "moves-to": self._moves_to,
            "boots-at": self._boots_at,
            "second-update": self._second_update,
            "lab-time": clock.now,
            "pass-time": self._pass_time,
            "stop-time": self._stop_time,
            "wait-stopped": self._wait_stopped,
            "release-time": self._release_time,
            "trouble": lambda system, name, value: self.on_trouble(system, name, value),
            "oracle": self._oracle,
            "unrecorded": self._unrecorded,
            "stop": stop,
        }

    def serve(self, path: Path) -> None:
        """Listen at ``path``, in threads of their own."""
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(str(path))
        path.chmod(0o600)
        server.listen()

        def accept() -> None:
            while True:
                connection, _ = server.accept()
                threading.Thread(
                    target=self._converse, args=(connection,), name="control", daemon=True
                ).start()

        threading.Thread(target=accept, name="control-accept", daemon=True).start()

    def fail(self, error: InfrastructureError) -> None:
        """Answer every request with ``error`` from now on: the lab is out of order."""
        self._failure = error

    def answer(self, line: str | bytes) -> dict[str, Any]:
        """Carry out one request and return what goes back."""
        try:
            request = json.loads(line)
            if not isinstance(request, dict) or not isinstance(request.get("op"), str):
                raise TypeError("it is no object with an op")
            operation = self._operations.get(name := request.pop("op"))
            if operation is None:
                raise ConfigurationError("There is no such request to an emulated lab.")
            if self._failure is not None and name != "stop":
                raise self._failure
            return {"result": operation(**request)}
        except HarnessError as error:
            kind = "deadline" if isinstance(error, DeadlineError) else error.kind.value
            return {"error": error.message, "hint": error.hint, "kind": kind}
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            return {
                "error": f"The request to the emulated lab is malformed: {error}",
                "hint": "",
                "kind": Kind.BUG.value,
            }

    def _converse(self, connection: socket.socket) -> None:
        # A client that goes away in the middle is no news; one that never ends its line is let go.
        with connection, connection.makefile("rwb") as stream, contextlib.suppress(OSError):
            while (line := stream.readline(_LONGEST_LINE)).endswith(b"\n"):
                stream.write(json.dumps(self.answer(line)).encode() + b"\n")
                stream.flush()

    # -- requests -------------------------------------------------------------------------------

    def _host(self, name: str) -> EmulatedHost:
        try:
            return self._hosts[name]
        except KeyError:
            raise ConfigurationError(
                f"The emulated lab has no host {name!r}.", hint=f"Known: {', '.join(self._hosts)}."
            ) from None

    def _card(self, name: str) -> Card:
        host, _, card = name.partition("/")
        try:
            return self._host(host).card(card)
        except KeyError:
            known = [f"{h.name}/{c}" for h in self._hosts.values() for c in h.trees]
            raise ConfigurationError(
                f"The emulated lab has no card {name!r}.", hint=f"Known: {', '.join(known) or 'none'}."
            ) from None

    def _fit(self, card: str, state: dict[str, Any], profile: dict[str, Any] | None = None) -> None:
        wanted = CardProfile.from_mapping(profile) if profile is not None else None
        self._card(card).fit(CardState.from_json(state), wanted)

    def _power(self, host: str, how: str) -> None:
        acts: dict[str, tuple[Callable[[], None], ...]] = {
            "off": (self._host(host).power_off,),
            "on": (self._host(host).power_on,),
            "cycle": (self._host(host).power_off, self._host(host).power_on),
            "reboot": (self._host(host).reboot,),
        }
        if how not in acts:
            raise ConfigurationError(
                f"A host's power cannot be switched {how!r}.", hint=f"Known: {', '.join(acts)}."
            )
        for act in acts[how]:
            act()

    def _wait_held(self, card: str, phase: str, seconds: float, while_updating: bool = False) -> None:
        found = self._card(card)
        if not (math.isfinite(seconds) and 0 <= seconds <= _LONGEST_WAIT):
            raise ConfigurationError(f"The lab waits for 0 to {_LONGEST_WAIT:g} s, not for {seconds}.")
        deadline = time.monotonic() + seconds
        while found.held() != phase:
            over = while_updating and found.upload.status() == "idle"
            if over or time.monotonic() > deadline:
                raise DeadlineError(
                    f"The card {card} did not come to the phase {phase!r} "
                    f"{'before its update ended' if over else f'within {seconds:g} s'}; "
                    f"its update is {found.upload.status()!r}, held is {found.held()!r}."
                )
            time.sleep(_POLL_SECONDS)

    def _condition(self, subject: str, name: str, on: bool) -> None:
        if "/" in subject:
            self._card(subject).condition(name, on)
        else:
            self._host(subject).condition(name, on)

    def _moves_to(self, card: str, address: str | None) -> None:
        self._card(card).moves_to = None if address is None else pci_address(address)

    def _boots_at(self, card: str, address: str | None) -> None:
        self._card(card).boots_at = None if address is None else pci_address(address)

    def _second_update(self, card: str, image: str) -> str:
        """Hand an image to the driver, whoever updates now; return why it does not begin, or nothing."""
        upload = self._card(card).upload
        data = base64.b64decode(image, validate=True)
        try:
            upload.write_loading(b"1")
            upload.write_data(data)
            upload.write_loading(b"0")
        except OSError as refused:
            return os.strerror(refused.errno or 0)
        return ""

    def _pass_time(self, seconds: float) -> None:
        """Let lab time pass, and wait for what that has begun."""
        if not (math.isfinite(seconds) and 0 <= seconds <= _LONGEST_PASS):
            raise ConfigurationError(f"The lab lets 0 to {_LONGEST_PASS:g} s pass, not {seconds}.")
        for settle in self.on_settle:
            settle()
        self._clock.sleep(seconds)
        for settle in self.on_settle:
            settle()

    def _stop_time(self, seconds: float) -> None:
        """Have lab time come no further than ``seconds`` from now; a stop of before is forgotten."""
        if not (math.isfinite(seconds) and 0 < seconds <= _LONGEST_PASS):
            raise ConfigurationError(
                f"Lab time is stopped after more than 0 and up to {_LONGEST_PASS:g} s, not after {seconds}."
            )
        self._stop_at(self._clock.now() + seconds)

    def _stop_at(self, when: float) -> None:
        """Stop time there, behind all that happens then; of itself this draws no time."""
        before = self._stop
        self._stop = self._clock.at(when, lambda: None, background=True, withheld=True)
        if before is not None:
            before.cancel()

    def _wait_stopped(self, seconds: float) -> None:
        """Wait, real time, until lab time is where it stops."""
        if self._stop is None:
            raise ConfigurationError("Nothing stops lab time.", hint="Say where it is to stop first.")
        # Draws time, where nothing else does any more, up to where it stops.
        self._clock.at(self._stop.when, lambda: None)
        self._stop_at(self._stop.when)
        deadline = time.monotonic() + seconds
        while not self._clock.stands_before(self._stop):
            if time.monotonic() > deadline:
                raise DeadlineError(
                    f"Lab time did not come to where it stops within {seconds:g} s: "
                    f"{self._stop.when - self._clock.now():g} s of it are left. An update may be held."
                )
            time.sleep(_POLL_SECONDS)

    def _release_time(self) -> None:
        if self._stop is not None:
            self._stop.cancel()
            self._stop = None

    def _oracle(self, card: str) -> dict[str, Any]:
        """What is inside the card: for the harness's own tests alone (design, rule 3)."""
        found = self._card(card)
        return {
            **found.state.to_json(),
            "running_page": found.running_page,
            "present": found.address is not None,
            "powered": found.powered,
            "update_status": found.upload.status(),
        }

    def _unrecorded(self) -> dict[str, list[dict[str, object]]]:
        return {name: host.unrecorded() for name, host in self._hosts.items()}
