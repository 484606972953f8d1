"""Permits: the only way to change anything on a host (design rule 7).

A permit names one act on one host (or control plane): a command line, or the bytes that go to a path. Only
the packages ``cards``, ``registry``, ``controlplane`` and ``lab`` hold an :class:`Authority`, which
``tests/test_import_rules.py`` holds.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from harness.errors import RefusedError

ControlPlaneAct = Literal[
    "image-upload", "image-delete", "image-apply", "image-remove", "label-assign", "label-remove",
    "host-update", "host-abort", "host-lock", "host-unlock", "host-reboot",
]  # fmt: skip
StrategyAct = Literal["strategy-create", "strategy-apply", "strategy-abort", "strategy-delete"]
CardAct = Literal["flash", "reset", "upload", "signal", "cancel-update", "report", "remove"]
Act = Literal[CardAct, ControlPlaneAct, StrategyAct, "power", "service"]

#: Which package may permit which acts.
AUTHORITIES: dict[str, frozenset[Act]] = {
    "controlplane": frozenset(get_args(ControlPlaneAct) + get_args(StrategyAct)),
    "cards": frozenset(get_args(CardAct)),
    "lab": frozenset({"power", "remove"}),
    "registry": frozenset({"service"}),
}

_SECRET = secrets.token_bytes(32)


def _seal(*content: object) -> str:
    """Bind a seal to every field of a permit, so that a changed copy of one is not a permit."""
    return hmac.new(_SECRET, repr(content).encode(), "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Permit:
    """Allows one act on one host, once the caller has shown that it may happen.

    Exactly one of ``argv`` (a command line, compared whole) and ``path`` + ``sha256`` (the bytes that
    go to a path) is given.
    """

    act: Act
    host: str
    reason: str
    argv: tuple[str, ...] = ()
    path: str = ""
    sha256: str = ""
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


def genuine(permit: object) -> Permit:
    """Return ``permit``, if it is one that an authority issued and nobody changed since.

    :raises RefusedError: it was made, derived or changed by hand.
    """
    if type(permit) is Permit:
        p = permit
        content = (p.act, p.host, p.reason, p.argv, p.path, p.sha256)
        # Plain values only: a word of a type of its own could look like another one when it is sealed.
        words = (p.act, p.host, p.reason, *p.argv, p.path, p.sha256) if type(p.argv) is tuple else ()
        plain = bool(words) and all(type(word) is str for word in words)
        if plain and type(p.seal) is str:
            due = _seal(*content)
            if hmac.compare_digest(p.seal.encode(errors="replace"), due.encode()):
                return permit
    raise RefusedError(
        "A permit cannot be made by hand.",
        hint="Use the operations of harness.cards, harness.registry, harness.controlplane or harness.lab.",
    )


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

    def command(self, act: Act, host: str, argv: Sequence[str], reason: str) -> Permit:
        """Return a permit to run exactly ``argv`` on ``host``. :raises RefusedError: not its kind of act."""
        return self._sealed(act, host, reason, argv=tuple(argv))

    def write(self, act: Act, host: str, path: str, sha256: str, reason: str) -> Permit:
        """Return a permit to put the bytes of that ``sha256`` at ``path`` on ``host``."""
        return self._sealed(act, host, reason, path=path, sha256=sha256)

    def _sealed(
        self,
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
        seal = _seal(act, host, reason, argv, path, sha256)
        return Permit(act, host, reason, argv=argv, path=path, sha256=sha256, seal=seal)
