"""Tokens that expire, are refused or come late."""

from __future__ import annotations

import threading
import time
from typing import Any

from harness.errors import DeadlineError, NothingThereError
from harness.faults.registry_actions.protocol import Base, Bench, Gate, tokens_of, while_held
from harness.registry.assembled import ACCOUNT
from harness.registry.token_service import Behaviour, TokenService
from harness.registry.tokens import LEEWAY
from harness.registry.wire import Minted, Wire

_LOOK_SECONDS = 0.05
_DEADLINE = 30.0


class Behaves(Base):
    """Changes how the token service answers, until the undo."""

    def __init__(self, name: str, about: str, **changes: Any) -> None:
        super().__init__(name, about)
        self._changes = changes
        self._before: Behaviour | None = None

    def check(self, bench: Bench) -> None:
        """Hold it to a lab whose registry takes tokens."""
        tokens_of(bench)

    def fire(self, bench: Bench, gate: Gate | None) -> str:
        """Change it."""
        self._change(bench)
        words = ", ".join(f"{key} {value:g}" for key, value in self._changes.items())
        return f"made the token service behave otherwise ({words}){while_held(gate)}"

    def _change(self, bench: Bench) -> None:
        before = tokens_of(bench).behave(**self._changes)
        self._before = self._before or before

    def undo(self, bench: Bench) -> None:
        """Let it behave as before."""
        if self._before is not None:
            before = {key: getattr(self._before, key) for key in self._changes}
            tokens_of(bench).behave(**before)
            self._before = None


class Expires(Behaves):
    """Tokens that are issued before the fault are refused after it: it waits until the registry does.

    A registry takes a token for :data:`LEEWAY` seconds beyond its end, so the end is issued in the past:
    now - 60 + x (fact sheet of the registry, section 3).

    :param seconds: how long a token is taken (x); the push must come to its point within that.
    """

    def __init__(self, name: str, about: str, seconds: float) -> None:
        super().__init__(name, about, lifetime=seconds - LEEWAY)
        self._since = 0

    def prepare(self, bench: Bench) -> None:
        """Issue short-lived tokens from now on."""
        self._since = len(tokens_of(bench).issued())
        self._change(bench)

    def fire(self, bench: Bench, gate: Gate | None) -> str:
        """Wait until the last token that was issued is refused, and issue good ones from then on.

        :raises NothingThereError: none was issued since :meth:`prepare`, so that none can expire.
        :raises DeadlineError: the registry goes on taking it.
        """
        tokens = tokens_of(bench)
        issued = [each for each in tokens.issued(self._since) if each.status == 200]
        if not issued:
            raise NothingThereError(
                "No token was issued yet that could expire.", hint="Hold the push after it has got a token."
            )
        last = issued[-1]
        self._wait_refused(bench, tokens, int(last.expires))
        self.undo(bench)
        return f"waited until token {last.token_id} was refused as expired{while_held(gate)}"

    def _wait_refused(self, bench: Bench, tokens: TokenService, expires: int) -> None:
        """Ask the registry with a token of the same end until it says no."""
        token = tokens.mint(ACCOUNT, [], exp=expires, generation=tokens.generation)
        end = time.monotonic() + _DEADLINE
        with Wire(bench.registry.endpoint, Minted(lambda service, scope: token)) as wire:
            while True:
                with wire.get("/v2/", deadline=5.0) as answer:
                    status = answer.status
                if status == 401:
                    return
                if time.monotonic() > end:
                    raise DeadlineError(
                        f"Waited {_DEADLINE:g} s for the {bench.registry.name} to refuse an expired token; "
                        f"it last answered {status}."
                    )
                threading.Event().wait(_LOOK_SECONDS)
