"""A VIM is restarted by the service manager of its active controller, and is waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from harness.errors import DeadlineError, InfrastructureError
from harness.hosts.permits import Permit
from harness.hosts.protocol import CommandResult
from harness.lab.vim_service import RESTART, VimService

SHOWN = (0, "No strategy available\n", "")
AWAY = (1, "", "Unable to establish connection")
NOT_ACTIVE = (1, "", "Openstack Admin credentials can only be loaded from the active controller.")


class Controller:
    """A host that answers `sw-manager` with what it is given, one after the other, the last for ever."""

    def __init__(
        self, name: str, *shows: tuple[int, str, str], restart: tuple[int, str, str] = (0, "", "")
    ) -> None:
        self.name = name
        self.ran: list[Sequence[str]] = []
        self._restart = restart
        self._shows: Iterator[tuple[int, str, str]] = iter(shows)
        self._last = shows[-1]

    def run(self, argv: Sequence[str], *, permit: Permit | None = None, deadline: float = 0) -> CommandResult:
        self.ran.append(tuple(argv))
        if tuple(argv) == RESTART:
            assert permit is not None
            permit.check_command(self.name, argv)
            return CommandResult(tuple(argv), *self._restart, 0.0)
        assert permit is None and argv[0] == "sw-manager"
        return CommandResult(tuple(argv), *next(self._shows, self._last), 0.0)


def restarted(*hosts: Any, deadline: float = 30.0) -> str:
    return VimService("sub", hosts).restart(deadline=deadline)


def test_it_is_restarted_once_and_waited_for_until_it_answers() -> None:
    host = Controller("one", SHOWN, AWAY, AWAY, SHOWN)
    assert restarted(host) == "one"
    assert [words[0] for words in host.ran] == ["sw-manager", RESTART[0], *["sw-manager"] * 3]


def test_the_active_controller_is_asked_alone() -> None:
    standby, active = Controller("one", NOT_ACTIVE), Controller("two", SHOWN)
    assert restarted(standby, active) == "two"
    assert RESTART not in standby.ran and RESTART in active.ran


def test_a_service_manager_that_is_not_there_says_so() -> None:
    with pytest.raises(
        InfrastructureError, match=r"sm-restart-safe service vim.*failed on one \(127\): no such"
    ):
        restarted(Controller("one", SHOWN, restart=(127, "", "no such command\n")))


def test_a_vim_that_stays_away_is_told_with_its_last_words() -> None:
    with pytest.raises(DeadlineError, match=r"VIM of sub.*Unable to establish"):
        restarted(Controller("one", SHOWN, AWAY), deadline=0.0)
