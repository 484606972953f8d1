"""Emulated labs to measure on, and drivers of their cards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.rows import in_turn
from harness.cards.driver import CardDriver
from harness.hosts.connect import connect
from harness.hosts.protocol import Host
from harness.inventory.load import load_inventory
from harness.lab.running import RunningLab, start_lab
from harness.record.history import History


@contextmanager
def started(hosts: int = 1, cards: int = 1) -> Iterator[RunningLab]:
    """Give a running lab of so many hosts with so many cards each, in one process."""
    with _running(_inventory(hosts, cards)) as lab:
        yield lab


@contextmanager
def cloud(subclouds: int) -> Iterator[RunningLab]:
    """Give a running lab of a system controller `central` with subclouds `sub0`..., each with one card."""
    with _running(_cloud_inventory(subclouds)) as lab:
        yield lab


@contextmanager
def _running(inventory: str) -> Iterator[RunningLab]:
    with TemporaryDirectory() as folder:
        file = Path(folder, "inventory.yaml")
        file.write_text(inventory, encoding="utf-8")
        with start_lab(load_inventory(file)) as lab:
            yield lab


def address(card: int) -> str:
    """Return the PCI address of the card of that number on each host; a card takes seven buses."""
    return f"0000:{0x10 + 8 * card:02x}:00.0"


def _inventory(hosts: int, cards: int) -> str:
    lines = ["version: 1", "default_lab: measured", "labs:", "  measured:", "    hosts:"]
    for host in range(hosts):
        lines += [f"      node{host}:", "        emulated: {}", "        cards:"]
        for card in range(cards):
            lines += [
                f"          card{card}:",
                f"            address: {address(card)}",
                f"            identity: 64:4c:36:{host:02x}:{card:02x}:00",
                "            irreversible: [root-key, key-cancellation]",
                "            emulated: {}",
            ]
    return "\n".join(lines) + "\n"


def _cloud_inventory(subclouds: int) -> str:
    lines = ["version: 1", "default_lab: measured", "labs:", "  measured:", "    controllers:"]
    lines.append("      central: {role: system-controller, emulated: {release: head}}")
    for number in range(subclouds):
        emulated = "emulated: {release: head}"
        lines.append(f"      sub{number}: {{role: subcloud, parent: central, {emulated}}}")
    lines.append("    hosts:")
    for number in range(subclouds):
        identity = f"64:4c:36:{number >> 8:02x}:{number & 255:02x}:00"
        lines += [f"      node{number}:", f"        system: sub{number}", "        emulated: {}"]
        lines += ["        cards:", "          card0:", f"            address: {address(0)}"]
        lines += [f"            identity: {identity}", "            emulated: {}"]
    return "\n".join(lines) + "\n"


def reach(lab: RunningLab, host: str = "node0") -> Host:
    """Return a driver of ``host`` that opens its connection when it is first used."""
    return connect(lab.entry.host(host), lab.access(host))


def driver(lab: RunningLab, host: Host, history: History, card: str = "card0") -> CardDriver:
    """Return a driver of a card, with everything that a run of `hil` gives it."""
    return CardDriver(host, lab.entry.host(host.name).card(card), history, real=False)


@contextmanager
def recorded() -> Iterator[History]:
    """Give a history in a file, as a run has one; in memory where that can be had, for disks differ."""
    memory = Path("/dev/shm")
    where = memory if memory.is_dir() else None
    with TemporaryDirectory(dir=where) as folder, History(Path(folder, "history.jsonl")) as history:
        yield history


def fsync_ms(times: int = 50) -> float:
    """Return the median milliseconds that a record's fsync takes on the disk of temporary files."""
    with TemporaryDirectory() as folder, Path(folder, "line").open("wb", buffering=0) as line:

        def append() -> None:
            line.write(b"x" * 500)
            os.fsync(line.fileno())

        return in_turn([append], times)[0].median
