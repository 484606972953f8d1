"""Looks at a host and its cards for their checks: two exchanges; the flash is read of idle cards alone."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from harness.cards.discovery import identities_in, identities_question
from harness.cards.truth import CardTruth, Probe, read_truth
from harness.health import card_checks, known_troubles
from harness.health.checks import Check, Grade
from harness.health.host_checks import Moment, host_checks, host_questions, tool_version
from harness.hosts.protocol import Asked, CommandResult
from harness.hosts.protocol import Host as Reached
from harness.inventory.model import Card, Host
from harness.judgement.values import Value

_PROCESSES: Final = ("pgrep", "-a", "-f", "|".join(card_checks.UPDATERS))


@dataclass(frozen=True, slots=True)
class HostLook:
    """What was found of a host. ``version``: what its flashing tool says of itself; None: nothing."""

    checks: tuple[Check, ...]
    version: str | None


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found of a host and of one of its cards."""

    host: HostLook
    card: tuple[Check, ...]

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of both."""
        return (*self.host.checks, *self.card)


def look_at_host(entry: Host, host: Reached, *, deadline: float = 30.0) -> HostLook:
    """Return the checks of a host. :raises InfrastructureError: it does not answer."""
    began = time.time()
    results = host.run_all(host_questions(entry), deadline=deadline)
    return _host_look(entry, host, results, began)


def _host_look(entry: Host, host: Reached, results: Sequence[CommandResult], began: float) -> HostLook:
    checks = tuple(host_checks(entry, host, results, Moment(began, time.time())))
    return HostLook(checks, tool_version(results))


def look_at_card(
    entry: Host, card: Card, host: Reached, *, of_host: HostLook | None = None, deadline: float = 30.0
) -> Looked:
    """Return the checks of a card and of the host that it is in; nothing of either is changed.

    :param of_host: what is known of the host already; None: it is asked, in the same exchange.
    :raises InfrastructureError: the host does not answer.
    """
    probe = Probe(card.address, entry.sysfs, card_checks.SAFE_FIELDS)
    asked = [Asked(tuple(probe.argv)), Asked(tuple(identities_question(entry.sysfs))), Asked(_PROCESSES)]
    questions = host_questions(entry) if of_host is None else []
    began = time.time()
    results = host.run_all([*questions, *asked], deadline=deadline)
    own, (read, listed, processes) = results[: len(questions)], results[len(questions) :]
    of_host = of_host or _host_look(entry, host, own, began)
    found = identities_in(host.name, listed, entry.sysfs)
    truth, address = probe.truth(host.name, read), card_checks.place_of(card, found)
    if address != card.address:
        fields = card_checks.SAFE_FIELDS
        truth = read_truth(host, address, sysfs=entry.sysfs, fields=fields, deadline=deadline)
    checks = _card_checks(entry, card, host, truth, found, (processes, of_host.version), deadline)
    return Looked(of_host, tuple(checks))


def _card_checks(
    entry: Host,
    card: Card,
    host: Reached,
    truth: CardTruth,
    found: Sequence[tuple[str, Value[str]]],
    beside: tuple[CommandResult, str | None],
    deadline: float,
) -> Iterator[Check]:
    processes, version = beside
    yield from card_checks.place_checks(card, truth, found)
    if not truth.on_bus:
        return
    yield from known_troubles.driver_checks(truth)
    yield from known_troubles.tool_checks(truth, version)
    idle = card_checks.idle_check(truth, card_checks.processes_of(processes))
    yield idle
    if idle.grade is Grade.OK:
        yield from _of_the_flash(entry, card, host, truth, deadline)


def _of_the_flash(
    entry: Host, card: Card, host: Reached, truth: CardTruth, deadline: float
) -> Iterator[Check]:
    """Yield what is read of an idle card alone: its counter and its keys lie on an update's way."""
    probe = Probe(str(truth.address), entry.sysfs, card_checks.FLASH_FIELDS)
    control = ("ls", "-1", _control(truth))
    read, listed = host.run_all([Asked(tuple(probe.argv)), Asked(control)], deadline=deadline)
    flash = probe.truth(host.name, read)
    yield from known_troubles.reset_checks(flash, "image_load" in listed.stdout.split())
    yield from known_troubles.security_checks(flash)
    yield card_checks.wear_check(flash.flash_count, card_checks.wear_limit(card))


def _control(truth: CardTruth) -> str:
    """Return the folder by which generation D's driver resets a card, where it can (n3000.md 4.1)."""
    interface = posixpath.dirname(truth.sources["update_status"])
    return posixpath.join(posixpath.dirname(posixpath.dirname(interface)), "control")
