"""Checks of one host and its cards, over one connection; a card that somebody uses is left alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.doctor.model import Part
from harness.errors import HarnessError, UnreachableError
from harness.health.checks import Check, failed, ok
from harness.health.looking import HostLook, look_at_card, look_at_host
from harness.hosts.connect import connect

if TYPE_CHECKING:
    from harness.hosts.protocol import Host as Reached
    from harness.inventory.model import Host
    from harness.lab.running import RunningLab

#: Seconds that one exchange with a host may take.
DEADLINE: Final = 30.0


def host_and_cards(lab: RunningLab, entry: Host, cards: list[str], in_use: Mapping[str, str]) -> list[Part]:
    """Return what is found of a host and of those of its cards; nothing there is changed.

    :param cards: names of cards on the host. :param in_use: card, as ``host/card``, -> who uses it.
    """
    try:
        reached = connect(entry, lab.access(entry.name))
    except HarnessError as error:
        return _silent(entry, cards, failed("login", error))
    try:
        look = look_at_host(entry, reached, deadline=DEADLINE)
    except (HarnessError, OSError) as error:
        reached.close()
        return _silent(entry, cards, failed(_failing(error, "login"), error))
    try:
        found = Part("host", entry.name, (ok("login", _login(entry)), *look.checks))
        return [found, *_cards(entry, cards, reached, look, in_use)]
    finally:
        reached.close()


def _failing(error: Exception, what: str) -> str:
    return "reachable" if isinstance(error, UnreachableError) else what


def _login(entry: Host) -> str:
    if entry.local:
        return "this machine"
    return f"SSH to {entry.ssh.where}" if entry.ssh else "emulated"


def _silent(entry: Host, cards: list[str], check: Check) -> list[Part]:
    """Return the parts of a host that does not answer: of its cards nothing is known."""
    unknown = replace(check, finding=f"its host is not to be asked: {check.finding}")
    parts = [Part("card", f"{entry.name}/{card}", (unknown,)) for card in cards]
    return [Part("host", entry.name, (check,)), *parts]


def _cards(
    entry: Host, cards: list[str], reached: Reached, look: HostLook, in_use: Mapping[str, str]
) -> Iterator[Part]:
    for card in cards:
        name = f"{entry.name}/{card}"
        if who := in_use.get(name):
            yield Part("card", name, (ok("in use", f"not looked at: {who}"),), lease=who)
            continue
        try:
            looked = look_at_card(entry, entry.cards[card], reached, of_host=look, deadline=DEADLINE)
        except (HarnessError, OSError) as error:
            yield Part("card", name, (failed(_failing(error, "card"), error),))
        else:
            yield Part("card", name, looked.card)
