"""From an inventory to a running lab and back: emulated hosts are started, real ones are reached."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from harness.errors import BlockedError, ConfigurationError
from harness.hosts.access import Access
from harness.lab.bench import Bench, PowerAct
from harness.lab.capabilities import give_power, offers, require
from harness.lab.disturbing import check_at_rest
from harness.lab.emulator import Doors, EmulatorProcess
from harness.lab.leasing import LabLeases, leases_of
from harness.lab.specification import specification

if TYPE_CHECKING:
    from harness.inventory.model import Host, Inventory, Lab
    from harness.lab.power.access import PowerAccess
    from harness.leases.holder import LeaseHolder


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
        return offers(self.entry.host(host), capability)

    def require(self, host: str, *capabilities: str) -> None:
        """Return if ``host`` has all ``capabilities``.

        Errors as of :func:`harness.lab.capabilities.require`.
        """
        require(self.entry.host(host), capabilities)

    def power(self, host: str, how: PowerAct, *, while_updating: bool = False) -> None:
        """Switch the power of ``host``: ``off``, ``on``, ``cycle``; ``reboot`` where it is emulated.

        :param while_updating: an update is meant to be disturbed.
        :raises RefusedError: an update of a card in it runs, or another card stands there.
        :raises BlockedError: its power cannot be switched. :raises NotOfferedError: not so, or never.
        :raises LeasedError: somebody else has the lease of a card in it.
        :raises DeadlineError: it is not seen to be switched in time.
        :raises InfrastructureError: what switches it refuses or does not answer, or leases cannot be used.
        """
        entry = self.entry.host(host)
        require(entry, ["power"])
        self.leases.check_host(host)
        if how != "on" and not while_updating:
            check_at_rest(entry, self.leases.reach)
            self.leases.check_host(host)  # a silent host may have kept the look waiting for long
        access = self._power_access(entry)
        if access is None or (entry.emulated and how == "reboot"):
            self._bench().power(host, how)
            return
        from harness.lab.power.acts import carry_out

        carry_out(access, how)

    def power_state(self, host: str) -> str:
        """Return what the power of ``host`` is: ``on``, ``off``, else the words of its controller.

        :raises BlockedError: nobody can see that. :raises InfrastructureError: the controller is silent.
        """
        entry = self.entry.host(host)
        access = self._power_access(entry)
        if access is not None:
            from harness.lab.power.acts import state_of

            return state_of(access)
        if entry.emulated is None:
            raise BlockedError(f"Nobody can see the power of {host}.", hint=give_power(host))
        return "on" if self._bench().powered(host) else "off"

    def power_on_command(self, host: str) -> tuple[tuple[str, ...], str] | None:
        """Return a command that switches ``host`` on, and what goes to its standard input.

        None where its power goes with the emulated lab.
        """
        access = self._power_access(self.entry.host(host))
        if access is None:
            return None
        from harness.lab.power.acts import on_command

        return on_command(access)

    def _power_access(self, host: Host) -> PowerAccess | None:
        """Return by what the power of ``host`` is switched; None: by the bench, if at all."""
        from harness.lab.power.access import emulated_access, power_access

        if host.emulated is None:
            return power_access(host)
        bmc = self._started().hosts[host.name].bmc if host.emulated.bmc else None
        return emulated_access(host.name, bmc.url, bmc.user, bmc.password) if bmc else None

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
