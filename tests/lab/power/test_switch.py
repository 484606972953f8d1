"""Power is believed when it is seen: whoever accepts a request and does nothing is found out."""

from pathlib import Path

import pytest

from harness.errors import BlockedError, DeadlineError, InfrastructureError, NotOfferedError, UnreachableError
from harness.lab.power.access import CommandAccess, PowerAccess
from harness.lab.power.acts import carry_out, state_of
from harness.lab.power.commands import reading
from harness.lab.power.switch import Power, Reading, switched


class Scripted:
    """A switch whose readings, or errors, come from a list; the last one stays."""

    where, sees = "the controller", True

    def __init__(self, *readings: Reading | Exception) -> None:
        self._readings = list(readings)
        self.asked: list[str] = []

    def state(self, seconds: float) -> Reading:
        found = self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]
        if isinstance(found, Exception):
            raise found
        return found

    def ask(self, to: Power, seconds: float) -> None:
        self.asked.append(to)

    def close(self) -> None:
        pass


ON, OFF, BETWEEN = Reading("on", "On"), Reading("off", "Off"), Reading(None, "PoweringOff")
BUSY = UnreachableError("The controller answers 503.")


def test_it_is_asked_once_and_looked_at_until_it_is_so() -> None:
    switch = Scripted(ON, BETWEEN, BETWEEN, OFF)
    switched("bench", switch, "off", 30)
    assert switch.asked == ["off"]


def test_nothing_is_asked_where_it_is_so_already() -> None:
    switch = Scripted(OFF)
    switched("bench", switch, "off", 30)
    assert switch.asked == []


def test_what_may_be_over_in_a_moment_is_waited_for() -> None:
    switch = Scripted(BUSY, ON, BUSY, OFF)
    switched("bench", switch, "off", 30)
    assert switch.asked == ["off"]


@pytest.mark.parametrize(
    ("readings", "said"),
    [
        ((ON,), r"the controller took the request, and what it said last is 'On'"),
        ((ON, BETWEEN), r"the controller took the request, and what it said last is 'PoweringOff'"),
        ((BUSY,), r"the controller took no request; the last that came is The controller answers 503"),
    ],
)
def test_who_accepts_and_does_nothing_is_told_with_what_was_seen_last(
    readings: tuple[Reading | Exception, ...], said: str
) -> None:
    with pytest.raises(DeadlineError, match=rf"Waited 0\.2 s for the power of bench to be off: {said}"):
        switched("bench", Scripted(*readings), "off", 0.2)


def test_a_refusal_is_not_waited_out() -> None:
    switch = Scripted(InfrastructureError("401"))
    with pytest.raises(InfrastructureError, match="401"):
        switched("bench", switch, "off", 3600)


# -- commands -----------------------------------------------------------------------------------------


def commands(folder: Path, off: str = "echo off > state", status: bool = True) -> PowerAccess:
    def line(text: str) -> tuple[str, ...]:
        return ("sh", "-c", f"cd {folder}; {text}")

    told = line("echo Chassis Power is $(cat state)") if status else ()
    return PowerAccess("bench", CommandAccess(line(off), line("echo on > state"), told), 0.5)


def test_commands_with_a_status_are_read_back(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("on")
    carry_out(commands(tmp_path), "off")
    assert state_of(commands(tmp_path)) == "off"
    carry_out(commands(tmp_path), "cycle")
    assert state_of(commands(tmp_path)) == "on"
    with pytest.raises(DeadlineError, match=r"the command took the request.* 'Chassis Power is on'"):
        carry_out(commands(tmp_path, off="true"), "off")


def test_commands_without_one_are_believed_and_it_is_said_so(tmp_path: Path) -> None:
    access = commands(tmp_path, status=False)
    carry_out(access, "off")
    with pytest.raises(BlockedError, match="Nobody can see the power of bench") as failure:
        state_of(access)
    assert "status:" in failure.value.hint


def test_a_cycle_that_fails_in_the_middle_leaves_the_host_on(tmp_path: Path) -> None:
    """It is the watchdog that switches it on again: the command of the cycle never gets there."""
    (tmp_path / "state").write_text("on")
    with pytest.raises(InfrastructureError, match="exit code 7"):
        carry_out(commands(tmp_path, off="echo off > state; exit 7"), "cycle")
    assert (tmp_path / "state").read_text() == "on\n"


def test_there_are_no_other_ways(tmp_path: Path) -> None:
    with pytest.raises(NotOfferedError, match="does not reboot it"):
        carry_out(commands(tmp_path), "reboot")


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("Chassis Power is on\n", "on"),  # ipmitool(1)
        ("Chassis Power is off\n", "off"),
        ("outlet 7: ON.\n", "on"),
        ("on\nunknown\n", None),
        ("Power is off-line\n", None),
        ("", None),
    ],
)
def test_what_a_status_says(said: str, state: str | None) -> None:
    assert reading(said).state == state


def test_a_way_to_switch_survives_the_pipe_to_another_process(tmp_path: Path) -> None:
    access = commands(tmp_path)
    assert PowerAccess.from_text(access.to_text()) == access
