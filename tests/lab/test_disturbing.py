"""The power of a host is not switched while a card of it updates, or where another card stands."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from support.cards import FileCard, Programs, add_card

from harness.errors import RefusedError, UnreachableError
from harness.hosts.local import LocalHost
from harness.inventory.model import Host
from harness.lab.disturbing import check_at_rest
from harness.leases.hold import held

MAC = "64:4c:36:00:12:a0"
STATUS = {"B": "sec/update/status", "D": "sec/firmware/secure-update0/status"}


@pytest.fixture(params=["A", "B", "C", "D"])
def card(request: pytest.FixtureRequest, tmp_path: Path) -> FileCard:
    return add_card(tmp_path / "sys", generation=request.param)


@pytest.fixture
def check(tmp_path: Path, card: FileCard) -> Callable[..., None]:
    programs = Programs(tmp_path / "programs", tmp_path / "sys")
    given: Any = {
        "name": "bench",
        "local": True,
        "sysfs": str(card.sysfs),
        "cards": {"card0": {"address": "0000:b2:00.0", "identity": MAC}},
    }
    entry = Host.model_validate(given)
    reached = LocalHost("bench", tools=programs.tools)

    def asked(
        reach: Callable[[Host], AbstractContextManager[Any]] = lambda host: nullcontext(reached),
    ) -> None:
        check_at_rest(entry, reach, locks=str(tmp_path))

    return asked


def test_idle_cards_of_the_inventory_are_no_hindrance(check: Callable[..., None]) -> None:
    check()


@pytest.mark.parametrize("card", sorted(STATUS), indirect=True)
def test_an_update_that_shows_is(check: Callable[..., None], card: FileCard) -> None:
    card.write(STATUS[card.generation], "programming\n")
    with pytest.raises(RefusedError, match=r"An update of bench/card0 is running \(status programming\)"):
        check()


def test_so_is_one_that_shows_by_its_hold_alone(check: Callable[..., None], tmp_path: Path) -> None:
    argv = held(["sh", "-c", "echo here; read gone"], MAC, str(tmp_path))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout and other.stdout.readline() == "here\n"
        with pytest.raises(RefusedError, match=f"in use: process {other.pid} holds it"):
            check()
        other.kill()
    check()


def test_another_card_in_its_place_is(check: Callable[..., None], card: FileCard) -> None:
    card.write("bmc/mac_address", "64:4c:36:00:99:99\n")
    with pytest.raises(RefusedError, match="64:4c:36:00:99:99 answers"):
        check()


def test_what_only_power_brings_back_is_not(check: Callable[..., None], card: FileCard) -> None:
    """A card that cannot be read, one that left the bus, and a host that does not answer."""
    card.write("bmc/mac_address", "ff:ff:ff:ff:ff:ff\n")
    check()
    card.device.unlink()
    check()

    @contextmanager
    def away(host: Host) -> Iterator[Any]:
        raise UnreachableError("no answer")
        yield

    check(away)
