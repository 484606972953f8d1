"""What is read around an operation, in one exchange: the truth of the card, and the kernel's log."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from harness.cards.kernel_log import devices_of
from harness.cards.truth import CardTruth, Probe, read_truth
from harness.errors import CardHangsError, HarnessError
from harness.hosts.permits import Permit
from harness.hosts.protocol import Asked, CommandResult, Host
from harness.judgement.values import Unknown

_DMESG = Asked(("dmesg",))


@dataclass(frozen=True, slots=True)
class Look:
    """The card at a moment, and what the kernel's log held then."""

    truth: CardTruth
    log: str | Unknown

    @property
    def devices(self) -> frozenset[str]:
        """Names of the card's devices, as the kernel logs them."""
        sources = (self.truth.sources.get(name, "") for name in ("generation", "update_status", "sr_root"))
        return frozenset().union(*map(devices_of, sources))


class CardReader:
    """Reads the cards of ``host``; once it knows the driver generation it does not look for others' files."""

    def __init__(self, host: Host, sysfs: str) -> None:
        self._host = host
        self._sysfs = sysfs
        self._generation: str | None = None
        self._probes: dict[tuple[str, str | None], Probe] = {}

    def truth(
        self, address: str, fields: Collection[str] | None = None, *, deadline: float = 30.0
    ) -> CardTruth:
        """Return what is true of the card at ``address``.

        :raises InfrastructureError: the host cannot be asked.
        """
        if fields is not None:
            return read_truth(self._host, address, sysfs=self._sysfs, fields=fields, deadline=deadline)
        host = self._host
        return self._surely(
            lambda probe: probe.truth(host.name, host.run(probe.argv, deadline=deadline)), address
        )

    def truth_beside(self, address: str, asked: Sequence[Asked]) -> tuple[CardTruth, list[CommandResult]]:
        """Return what is true of the card, and the results of other commands, asked in the same round trip.

        :raises InfrastructureError: the host cannot be asked.
        """
        others: list[CommandResult] = []

        def ask(probe: Probe) -> CardTruth:
            read, *others[:] = self._host.run_all([Asked(probe.argv), *asked])
            return probe.truth(self._host.name, read)

        return self._surely(ask, address), others

    def truths(self, addresses: Iterable[str], *, deadline: float = 30.0) -> dict[str, CardTruth]:
        """Return what is true of the card at each address, read in one round trip.

        :raises InfrastructureError: the host cannot be asked.
        """
        probes = {address: self._probe(address, self._generation) for address in addresses}
        results = self._host.run_all([Asked(probe.argv) for probe in probes.values()], deadline=deadline)
        found = {}
        for (address, probe), result in zip(probes.items(), results, strict=True):
            truth = probe.truth(self._host.name, result)
            found[address] = truth if self._was_right(truth) else self.truth(address, deadline=deadline)
        return found

    def look(self, address: str) -> Look:
        """Look at the card at ``address``. :raises InfrastructureError: the host cannot be asked."""
        log: str | Unknown = ""

        def ask(probe: Probe) -> CardTruth:
            nonlocal log
            read, logged = self._host.run_all([Asked(probe.argv), _DMESG])
            log = _log(logged)
            return probe.truth(self._host.name, read)

        return Look(self._surely(ask, address), log)

    def remove_and_look(self, remove: Permit, before: CardTruth, address: str) -> Look | None:
        """Carry out ``remove`` and, if the card's update is over, look at the card; never fails.

        Return None where the card was not looked at: an update still runs and reading would disturb it,
        its driver does not show whether one does or is another one by now, or the host cannot be asked.

        :param before: the card before the update, which tells where its status is shown.
        """
        asked = [Asked(remove.argv, remove)]
        probe = self._probe(address, self._generation)
        if isinstance(before.update_status, str):
            idle = ["grep", "-x", "idle", before.sources["update_status"]]
            asked += [Asked(idle, guard=True), Asked(probe.argv), _DMESG]
        try:
            results = self._host.run_all(asked)
            if len(results) < 4:
                return None
            truth = probe.truth(self._host.name, results[2])
        except HarnessError:
            return None  # whoever needs to know asks again, and is told why
        return Look(truth, _log(results[3])) if self._was_right(truth) else None

    def _surely(self, ask: Callable[[Probe], CardTruth], address: str) -> CardTruth:
        """Ask for the files of the known generation; for all where that is not the card's."""
        truth = ask(self._probe(address, self._generation))
        return truth if self._was_right(truth) else ask(self._probe(address, None))

    def _probe(self, address: str, generation: str | None) -> Probe:
        """Return the probe of a card, made once: the same cards are read again and again."""
        key = (address, generation)
        if key not in self._probes:
            self._probes[key] = Probe(address, self._sysfs, generation=generation)
        return self._probes[key]

    def _was_right(self, truth: CardTruth) -> bool:
        """Keep the generation that was found; return whether nothing was missed for taking it for another."""
        expected, found = self._generation, truth.generation
        if not truth.on_bus:
            return True
        self._generation = found if isinstance(found, str) else None
        return expected is None or found == expected


def wait_until_idle(read: Callable[[], CardTruth], card: str, deadline: float) -> None:
    """Wait for a card's update to be over: until then reading disturbs it, and the tool may have ended
    long before.

    :param read: reads the update's fields. :param deadline: seconds.
    :raises CardHangsError: it does not end in time.
    """
    truth = read()
    end = time.monotonic() + deadline
    pause = 0.01
    while isinstance(truth.update_status, str) and truth.update_status != "idle":
        if time.monotonic() + pause > end:
            raise CardHangsError(
                f"Waited {deadline:g} s for the update of {card} to end; "
                f"the last status was {truth.update_status!r}.",
                hint="The card's BMC may hang; a power cycle of the host ends that.",
            )
        # The kernel offers no event for it; the status is the condition, and this asks for it.
        time.sleep(pause)
        pause = min(2 * pause, 2.0)
        truth = read()


def _log(result: CommandResult) -> str | Unknown:
    if result.exit_code != 0:
        return Unknown(result.stderr.strip() or f"`dmesg` ended with exit code {result.exit_code}")
    return result.stdout
