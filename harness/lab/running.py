"""From an inventory to a running lab and back: emulated hosts are started, real ones are reached."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from harness.errors import BlockedError, ConfigurationError, DeadlineError, InfrastructureError
from harness.hosts.access import Access
from harness.lab.bench import Bench, PowerAct
from harness.lab.disturbing import check_at_rest
from harness.lab.emulator import Doors, EmulatorProcess
from harness.lab.leasing import LabLeases, leases_of
from harness.lab.specification import specification

if TYPE_CHECKING:
    from harness.inventory.model import Host, Inventory, Lab
    from harness.leases.holder import LeaseHolder

#: What a host of a lab can offer, for scenarios that need it.
CAPABILITIES: Final = {
    "power": "its power can be switched",
    "bench": "its cards can be fitted, held and disturbed, as only emulated ones can",
}
_POWER_SECONDS = 120.0


class RunningLab:
    """A lab whose hosts can be reached; a context manager that ends what it started."""

    def __init__(
        self,
        entry: Lab,
        doors: Doors | None = None,
        process: EmulatorProcess | None = None,
        *,
        leases: LeaseHolder | None = None,
        kept: str = "",
    ) -> None:
        self.entry = entry
        self._holder = leases or leases_of("hil")
        self._closes_leases = leases is None
        #: Who may write to its cards; asked before each write.
        self.leases = LabLeases(entry, self._holder, self.access, kept)
        self._doors = doors
        self._process = process
        #: Client of the emulated part's control; None where nothing is emulated.
        self.bench: Bench | None = Bench(doors.control) if doors else None

    @property
    def name(self) -> str:
        """The lab's name in the inventory."""
        return self.entry.name

    @property
    def process_id(self) -> int | None:
        """The process id of the emulated part; None where nothing is emulated."""
        return self._doors.pid if self._doors else None

    @property
    def doors(self) -> Doors:
        """Where the emulated part is reached. :raises ConfigurationError: nothing of it is running."""
        return self._started()

    def access(self, host: str) -> Access | None:
        """Return how ``host`` is reached over SSH; None for the local machine.

        :raises ConfigurationError: there is no such host, or the secret it refers to is not to be had.
        """
        entry = self.entry.host(host)
        if entry.emulated:
            doors = self._started()
            door = doors.hosts.get(entry.name)
            if door is None:
                raise ConfigurationError(
                    f"The lab {self.name!r} that is running has no host {entry.name}: it was started from "
                    "another inventory, or from an earlier one.",
                    hint=f"Start it again: hil lab down {self.name}; hil lab up {self.name}",
                )
            return Access(door.address, door.port, door.user, doors.known_hosts, key_file=doors.key_file)
        from harness.lab.reaching import access_of

        return access_of(self.entry, host)

    def offers(self, host: str, capability: str) -> bool:
        """Return whether ``host`` has ``capability``. :raises ConfigurationError: there is no such one."""
        entry = self.entry.host(host)
        if capability == "power":
            return entry.can_power
        if capability == "bench":
            return entry.emulated is not None and entry.emulated.recording is None
        raise ConfigurationError(
            f"There is no capability {capability!r} of a host.", hint=f"Known: {', '.join(CAPABILITIES)}."
        )

    def power(self, host: str, how: PowerAct, *, while_updating: bool = False) -> None:
        """Switch the power of ``host``: ``off``, ``on``, ``cycle``; ``reboot`` where it is emulated.

        :param while_updating: an update is meant to be disturbed.
        :raises RefusedError: an update of a card in it runs, or another card stands there.
        :raises BlockedError: its power cannot be switched so.
        :raises LeasedError: somebody else has the lease of a card in it.
        :raises InfrastructureError: the command that switches it failed, or the leases cannot be used.
        """
        entry = self.entry.host(host)
        if not entry.can_power:
            raise BlockedError(
                f"The power of {host} cannot be switched.",
                hint="Give it `power` in the inventory (an emulated host: remove `power: false`).",
            )
        self.leases.check_host(host)
        if how != "on" and not while_updating:
            check_at_rest(entry, self.leases.reach)
        if entry.emulated:
            self._bench().power(host, how)
            return
        steps = {"off": ("off",), "on": ("on",), "cycle": ("off", "on")}
        if how not in steps:
            raise BlockedError(f"The harness switches the power of {host} off and on; it does not {how} it.")
        for step in steps[how]:
            _switch(entry, step)

    def power_on_command(self, host: str) -> tuple[str, ...]:
        """Return the command that switches a real ``host`` on; empty where it is emulated or has none."""
        power = self.entry.host(host).power
        return power.command.on if power is not None and power.command is not None else ()

    def _started(self) -> Doors:
        if self._doors is None:
            raise ConfigurationError(f"The emulated part of lab {self.name!r} is not running.")
        return self._doors

    def _bench(self) -> Bench:
        self._started()
        assert self.bench is not None
        return self.bench

    def close(self) -> None:
        """End what this object started; may be called twice."""
        self._holder.give_back()
        if self._closes_leases:
            self._holder.close()
        if self._process is not None:
            self._process.close()
            self._process = None

    def __enter__(self) -> RunningLab:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def start_lab(
    inventory: Inventory,
    lab_name: str | None = None,
    *,
    state_dir: Path | None = None,
    scale: float | None = None,
    leases: LeaseHolder | None = None,
) -> RunningLab:
    """Start the emulated hosts of a lab in a process of their own, which ends with this one.

    :param lab_name: the inventory's default lab where it is None.
    :param state_dir: keeps the cards' flash from one start to the next; nothing is kept where it is None.
    :param scale: lab seconds that pass in a real one, so that phases can be watched; None: no real time.
    :param leases: whose the leases of its cards are; None: the lab's own, until it is closed.
    :raises ConfigurationError: the inventory says what the emulator cannot do.
    :raises InfrastructureError: the process did not start.
    """
    entry = inventory.lab(lab_name)
    if not any(host.emulated for host in entry.hosts.values()):
        return RunningLab(entry, leases=leases)
    check_profiles_of(inventory, entry)
    process = EmulatorProcess(specification(inventory, entry) | {"scale": scale}, state=state_dir)
    return RunningLab(entry, process.doors, process, leases=leases)


def check_profiles_of(inventory: Inventory, entry: Lab) -> None:
    """Place a wrong profile value at its line; only where one is given, for that reads the file again.

    :raises ConfigurationError: with file, line and key.
    """
    if any(card.emulated and card.emulated.profile for _, card in entry.cards()):
        from harness.lab.profiles import check_emulated

        check_emulated(inventory)


def _switch(host: Host, step: str) -> None:
    assert host.power is not None and host.power.command is not None
    command = host.power.command.off if step == "off" else host.power.command.on
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=_POWER_SECONDS, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as error:
        raise InfrastructureError(
            f"The power of {host.name} was not switched: no program {command[0]!r}."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise DeadlineError(
            f"The command that switches {host.name} {step} did not end within {_POWER_SECONDS:g} s."
        ) from error
    if result.returncode:
        said = (result.stderr or result.stdout).strip()[-300:]
        raise InfrastructureError(
            f"The power of {host.name} was not switched {step}: exit code {result.returncode}: {said}"
        )
