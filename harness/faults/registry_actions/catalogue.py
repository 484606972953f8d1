"""The actions on a registry by name; what some of them take stands behind a colon."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from harness.errors import ConfigurationError
from harness.faults.registry_actions import damage
from harness.faults.registry_actions.gates import AtGate, answering
from harness.faults.registry_actions.own_store_faults import FILES, FillsDisk, KillsAtOpening
from harness.faults.registry_actions.protocol import Gate, RegistryAction
from harness.faults.registry_actions.services import (
    CollectsGarbage,
    Pauses,
    ReadOnly,
    Restarts,
    RotatesCertificate,
    RotatesKeys,
    Stops,
)
from harness.faults.registry_actions.token_faults import Behaves, Expires


@dataclass(frozen=True, slots=True)
class _Entry:
    """``make(name, about, parameter)``; ``parameter``: what may stand behind the colon, in words."""

    about: str
    make: Callable[[str, str, str], RegistryAction]
    parameter: str = ""


def _plain(make: Callable[[str, str], RegistryAction]) -> Callable[[str, str, str], RegistryAction]:
    return lambda name, about, parameter: make(name, about)


def _number(name: str, text: str, default: float) -> float:
    try:
        number = float(text) if text else default
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ConfigurationError(f"{text!r} in {name!r} is no number.", hint="Write it such as 2 or 0.5.")
    return number


def _whole(name: str, text: str, default: int, least: int = 0) -> int:
    """Return a count or a status; one that would be rounded to another is none."""
    number = _number(name, text, default)
    if number != int(number) or number < least:
        raise ConfigurationError(
            f"{text!r} in {name!r} is no whole number from {least}.", hint="Leave it out, with the colon."
        )
    return int(number)


def _delay(name: str, about: str, text: str) -> RegistryAction:
    seconds = _number(name, text, 2.0)
    return AtGate(name, about, lambda gate: gate.delay(seconds), f"delayed by {seconds:g} s:")


def _answer(status: int) -> _Entry:
    return _Entry(
        f"the held request is answered with {status} in the registry's place",
        _plain(lambda name, about: AtGate(name, about, answering(status), f"answered with {status}:")),
    )


def _damage(about: str, find: Callable[..., damage.Victim], done: Callable[..., None], word: str) -> _Entry:
    by_digest = find is not damage.tag_link
    return _Entry(
        about,
        lambda name, about, digest: damage.Damages(name, about, find, done, word, digest),
        "DIGEST" if by_digest else "",
    )


def _reset(gate: Gate) -> None:
    gate.reset()


def _cut(gate: Gate) -> None:
    gate.cut()


_ENTRIES: dict[str, _Entry] = {
    "restart": _Entry("the registry is restarted by a TERM", _plain(partial(Restarts, how="TERM"))),
    "restart-kill": _Entry("the registry is restarted by a KILL", _plain(partial(Restarts, how="KILL"))),
    "rotate-keys": _Entry(
        "new token key and certificates; the registry is restarted, then the token service",
        _plain(partial(RotatesKeys, order=("registry", "tokens"))),
    ),
    "rotate-keys-tokens-first": _Entry(
        "new token key and certificates; the token service is restarted, then the registry",
        _plain(partial(RotatesKeys, order=("tokens", "registry"))),
    ),
    "rotate-keys-registry-only": _Entry(
        "new token key and certificates; the token service keeps the old key until the undo",
        _plain(partial(RotatesKeys, order=("registry",))),
    ),
    "rotate-certificate": _Entry(
        "new TLS certificate of the registry alone, which is restarted", _plain(RotatesCertificate)
    ),
    "stop": _Entry(
        "the registry is down until the undo, or until so many connections were refused",
        lambda name, about, text: Stops(name, about, _whole(name, text, 0)),
        "CONNECTIONS",
    ),
    "pause": _Entry(
        "the registry's process stands still (SIGSTOP) until the undo, or for so long",
        lambda name, about, text: Pauses(name, about, _number(name, text, 0)),
        "SECONDS",
    ),
    "read-only": _Entry("the registry is restarted and takes no writes", _plain(ReadOnly)),
    "collect-garbage": _Entry(
        "garbage is collected while the registry runs and keeps its caches",
        _plain(partial(CollectsGarbage, around="nothing")),
    ),
    "collect-garbage-restart": _Entry(
        "garbage is collected, then the registry is restarted",
        _plain(partial(CollectsGarbage, around="restart")),
    ),
    "collect-garbage-read-only": _Entry(
        "StarlingX's way: the registry is made read-only, garbage is collected, and it takes writes again",
        _plain(partial(CollectsGarbage, around="read-only")),
    ),
    "expire-token": _Entry(
        "tokens live for so long (3 s), and the request is held until they are refused",
        lambda name, about, text: Expires(name, about, _number(name, text, 3.0)),
        "SECONDS",
    ),
    "deny-token": _Entry(
        "the token service refuses everybody with 401, or another status",
        lambda name, about, text: Behaves(name, about, deny=_whole(name, text, 401, 400)),
        "STATUS",
    ),
    "skew-token": _Entry(
        "the token service's clock is so much (600 s) ahead: a token is not valid yet",
        lambda name, about, text: Behaves(name, about, skew=_number(name, text, 600.0)),
        "SECONDS",
    ),
    "slow-token": _Entry(
        "the token service answers so much (2 s) later",
        lambda name, about, text: Behaves(name, about, delay=_number(name, text, 2.0)),
        "SECONDS",
    ),
    "reset": _Entry(
        "the held request's connection is reset",
        _plain(lambda name, about: AtGate(name, about, _reset, "reset the connection of")),
    ),
    "cut": _Entry(
        "the held request's connection is ended in the middle",
        _plain(lambda name, about: AtGate(name, about, _cut, "cut the connection of")),
    ),
    "delay": _Entry("the held request goes on so much (2 s) later", _delay, "SECONDS"),
    **{f"answer-{status}": _answer(status) for status in (401, 403, 404, 429, 500, 503)},
    "disk-full": _Entry("the store's own file system is full to its last page", _plain(FillsDisk)),
    **{
        f"kill-at-open:{what}": _Entry(
            f"the registry is killed while it opens a {what} for writing, and started again",
            _plain(partial(KillsAtOpening, what=what)),
        )
        for what in FILES
    },
    "truncate-blob": _damage("a blob is cut to half of its length", damage.blob, damage.truncate, "cut"),
    "flip-blob": _damage("one bit of a blob is flipped", damage.blob, damage.flip, "flipped a bit of"),
    "remove-blob": _damage("a blob is removed", damage.blob, damage.remove, "removed"),
    "empty-link": _damage("the link to a blob is emptied", damage.layer_link, damage.empty, "emptied"),
    "remove-layer-link": _damage(
        "the link to a blob is removed", damage.layer_link, damage.remove, "removed"
    ),
    "empty-tag-link": _damage("the link of a tag is emptied", damage.tag_link, damage.empty, "emptied"),
}

#: Name -> what it does; ``[:WORD]`` where something may stand behind a colon.
ACTIONS: dict[str, str] = {
    name + (f"[:{entry.parameter}]" if entry.parameter else ""): entry.about
    for name, entry in _ENTRIES.items()
}


def registry_action(name: str) -> RegistryAction:
    """Return a fresh action by its name, such as ``restart`` or ``pause:2``.

    :raises ConfigurationError: there is none of that name, or what stands behind the colon is not legal.
    """
    if (entry := _ENTRIES.get(name)) is not None:
        return entry.make(name, entry.about, "")
    stem, _, parameter = name.partition(":")
    entry = _ENTRIES.get(stem)
    if entry is None:
        near = difflib.get_close_matches(name, _ENTRIES, 1)
        raise ConfigurationError(
            f"There is no action {name!r} on a registry.",
            hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(_ENTRIES)}.",
        )
    if not entry.parameter or not parameter:
        raise ConfigurationError(
            f"The action {stem!r} takes nothing behind a colon."
            if not entry.parameter
            else f"Behind the colon of {name!r} stands nothing.",
            hint=f"Write {stem!r}" + (f", or {stem}:{entry.parameter}." if entry.parameter else "."),
        )
    return entry.make(name, entry.about, parameter)
