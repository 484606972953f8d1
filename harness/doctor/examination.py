"""Looks at all parts of a lab at once; what one host does not answer keeps no other waiting."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from typing import TYPE_CHECKING, Final

from harness.doctor.controllers import controller
from harness.doctor.hosts import host_and_cards
from harness.doctor.model import Diagnosis, Part
from harness.doctor.registries import registry

if TYPE_CHECKING:
    from harness.inventory.model import Lab
    from harness.lab.running import RunningLab

#: Parts that are looked at at the same time: most of it is waiting.
_AT_ONCE: Final = 16
Look = Callable[[], list[Part]]
#: Told of each look that is over: how many are, of how many, and who is waited for.
Heard = Callable[[int, int, Sequence[str]], None]


def examine(
    lab: RunningLab,
    machine: Callable[[], Part],
    *,
    devices: Collection[str] = (),
    in_use: Mapping[str, str],
    heard: Heard = lambda done, of, waiting: None,
) -> Diagnosis:
    """Return what is found of a lab: this machine first, then hosts, each with its cards, and the rest.

    :param devices: only these hosts and cards, and this machine; empty: all there is.
    :param in_use: card -> who uses it; such are not looked at.
    """
    looks: dict[str, Look] = {"this machine": lambda: [machine()]}
    looks |= _looks(lab, devices, in_use)
    pool = ThreadPoolExecutor(_AT_ONCE, "doctor")
    try:
        futures = {pool.submit(look): name for name, look in looks.items()}
        found = _collected(futures, heard)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)  # each has a deadline of its own
        raise
    pool.shutdown()
    return Diagnosis(lab.name, tuple(part for name in looks for part in found[name]))


def _collected(futures: Mapping[Future[list[Part]], str], heard: Heard) -> dict[str, list[Part]]:
    found: dict[str, list[Part]] = {}
    for future in as_completed(futures):
        found[futures[future]] = future.result()
        heard(len(found), len(futures), [name for name in futures.values() if name not in found])
    return found


def _looks(lab: RunningLab, devices: Collection[str], in_use: Mapping[str, str]) -> dict[str, Look]:
    looks: dict[str, Look] = {}
    for host in lab.entry.hosts.values():
        cards = [
            card for card in host.cards if not devices or {host.name, f"{host.name}/{card}"} & {*devices}
        ]
        if not devices or cards or host.name in devices:
            looks[f"host {host.name}"] = partial(host_and_cards, lab, host, cards, in_use)
    if devices:
        return looks
    for entry in lab.entry.registries.values():
        looks[f"registry {entry.name}"] = _one(partial(registry, lab, entry))
    for system in lab.entry.controllers.values():
        looks[f"controller {system.name}"] = _one(partial(controller, lab, system))
    return looks


def _one(look: Callable[[], Part]) -> Look:
    return lambda: [look()]


def cards_of(lab: Lab, devices: Collection[str]) -> list[str]:
    """Return the cards, as ``host/card``, that ``devices`` names; all where it is empty."""
    names = [(host.name, f"{host.name}/{card.name}") for host, card in lab.cards()]
    return [card for host, card in names if not devices or host in devices or card in devices]
