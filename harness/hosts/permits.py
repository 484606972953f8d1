"""Permits: the only way to change anything on a host (design rule 7).

A permit names one act on one host (or control plane): a command line, or the bytes that go to a path. It is
used once, in the process that it was issued in, and its fence is asked again as that happens. Only
the packages ``cards``, ``registry``, ``controlplane`` and ``lab`` hold an :class:`Authority`, which
``tests/test_import_rules.py`` holds.
"""

from __future__ import annotations

import hmac
import itertools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from harness.errors import RefusedError

ControlPlaneAct = Literal[
    "image-upload", "image-delete", "image-apply", "image-remove", "label-assign", "label-remove",
    "device-modify", "host-update", "host-abort", "host-lock", "host-unlock", "host-reboot",
]  # fmt: skip
StrategyAct = Literal["strategy-create", "strategy-apply", "strategy-abort", "strategy-delete"]
CardAct = Literal["flash", "reset", "upload", "signal", "cancel-update", "report", "remove"]
Act = Literal[CardAct, ControlPlaneAct, StrategyAct, "power", "service"]

#: Which package may permit which acts.
AUTHORITIES: dict[str, frozenset[Act]] = {
    "controlplane": frozenset(get_args(ControlPlaneAct) + get_args(StrategyAct)),
    "cards": frozenset(get_args(CardAct)),
    "lab": frozenset({"power", "remove", "service"}),
    "registry": frozenset({"service"}),
}

_SECRET = secrets.token_bytes(32)
#: Number of each permit that was issued and not used -> what raises unless its act may still happen.
_OPEN: dict[int, Callable[[], None]] = {}
_NUMBERS = itertools.count(1)


def _seal(*content: object) -> str:
    """Bind a seal to every field of a permit, so that a changed copy of one is not a permit."""
    return hmac.new(_SECRET, repr(content).encode(), "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Permit:
    """Allows one act on one host, once the caller has shown that it may happen.

    Exactly one of ``argv`` (a command line, compared whole) and ``path`` + ``sha256`` (the bytes that
    go to a path) is given. ``number``: tells permits for the same act apart.
    """

    act: Act
    host: str
    reason: str
    argv: tuple[str, ...] = ()
    path: str = ""
    sha256: str = ""
    number: int = field(default=0, repr=False, compare=False)
    seal: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        genuine(self)

    def check_command(self, host: str, argv: Sequence[str]) -> None:
        """:raises RefusedError: this permit is not for running ``argv`` on ``host``."""
        if self.host != host or not self.argv or self.argv != tuple(argv):
            raise RefusedError(
                f"The permit to {self.act} on {self.host} does not cover "
                f"{' '.join(argv)!r} on {host}; nothing was run."
            )

    def check_write(self, host: str, path: str, sha256: str) -> None:
        """:raises RefusedError: this permit is not for these bytes at ``path`` on ``host``."""
        if self.host != host or not self.path or (self.path, self.sha256) != (path, sha256):
            raise RefusedError(
                f"The permit to {self.act} on {self.host} does not cover these bytes "
                f"(sha256 {sha256[:12]}...) at {path} on {host}; nothing was written."
            )

    def spend(self) -> None:
        """Use the permit up: whatever comes of its act, it is no permit any more.

        :raises RefusedError: it was used before, itself or a copy of it.
        :raises LeaseLostError: the lease that it was issued under is another's by now.
        """
        still = _OPEN.pop(self.number, None)
        if still is None:
            raise RefusedError(
                f"The permit to {self.act} on {self.host} was used already; nothing was changed.",
                hint="Each act needs a permit of its own, which the operation asks for.",
            )
        still()


def genuine(permit: object) -> Permit:
    """Return ``permit``, if it is one that an authority issued and nobody changed since.

    :raises RefusedError: it was made, derived or changed by hand.
    """
    if type(permit) is Permit:
        p = permit
        content = (p.act, p.host, p.reason, p.argv, p.path, p.sha256, p.number)
        # Plain values only: a word of a type of its own could look like another one when it is sealed.
        words = (p.act, p.host, p.reason, *p.argv, p.path, p.sha256) if type(p.argv) is tuple else ()
        plain = bool(words) and all(type(word) is str for word in words)
        if plain and type(p.number) is int and type(p.seal) is str:
            due = _seal(*content)
            if hmac.compare_digest(p.seal.encode(errors="replace"), due.encode()):
                return permit
    raise RefusedError(
        "A permit cannot be made by hand.",
        hint="Use the operations of harness.cards, harness.registry, harness.controlplane or harness.lab.",
    )


Fence = Callable[[], None]


def _nothing() -> None:
    """Ask nothing: what is permitted reaches no card."""


class Authority:
    """Issues the permits of one package, for that package's kinds of act only."""

    def __init__(self, package: str) -> None:
        try:
            self._acts = AUTHORITIES[package]
        except KeyError:
            raise RefusedError(
                f"The package {package!r} may not issue permits; only {', '.join(AUTHORITIES)} may."
            ) from None
        self._package = package

    def command(
        self, act: Act, host: str, argv: Sequence[str], reason: str, fence: Fence = _nothing
    ) -> Permit:
        """Return a permit to run exactly ``argv`` on ``host``.

        :param fence: raises unless the act may happen; asked now, and once more as it happens.
        :raises RefusedError: not its kind of act.
        """
        return self._sealed(fence, act, host, reason, argv=tuple(argv))

    def write(
        self, act: Act, host: str, path: str, sha256: str, reason: str, fence: Fence = _nothing
    ) -> Permit:
        """Return a permit to put the bytes of that ``sha256`` at ``path`` on ``host``; else as above."""
        return self._sealed(fence, act, host, reason, path=path, sha256=sha256)

    def _sealed(
        self,
        fence: Fence,
        act: Act,
        host: str,
        reason: str,
        *,
        argv: tuple[str, ...] = (),
        path: str = "",
        sha256: str = "",
    ) -> Permit:
        if act not in self._acts:
            raise RefusedError(f"The package {self._package!r} may not permit to {act}.")
        fence()
        number = next(_NUMBERS)
        seal = _seal(act, host, reason, argv, path, sha256, number)
        permit = Permit(act, host, reason, argv=argv, path=path, sha256=sha256, number=number, seal=seal)
        _OPEN[number] = fence
        return permit
