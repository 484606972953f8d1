"""What is read around an operation, in one exchange: the truth of the card, and the kernel's log."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.cards.kernel_log import devices_of
from harness.cards.truth import CardTruth, Probe
from harness.errors import DeadlineError, HarnessError
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


def look(host: Host, address: str, sysfs: str) -> Look:
    """Look at the card at ``address``. :raises InfrastructureError: the host cannot be asked."""
    probe = Probe(address, sysfs)
    read, log = host.run_all([Asked(probe.argv), _DMESG])
    return Look(probe.truth(host.name, read), _log(log))


def remove_and_look(host: Host, remove: Permit, before: CardTruth, address: str, sysfs: str) -> Look | None:
    """Carry out ``remove`` and, if the card's update is over, look at the card; never fails.

    Return None where the card was not looked at: an update still runs and reading would disturb it, its
    driver does not show whether one does, or the host cannot be asked.

    :param before: the card before the update, which tells where its status is shown.
    """
    asked = [Asked(remove.argv, remove)]
    probe = Probe(address, sysfs)
    if isinstance(before.update_status, str):
        idle = ["grep", "-x", "idle", before.sources["update_status"]]
        asked += [Asked(idle, guard=True), Asked(probe.argv), _DMESG]
    try:
        results = host.run_all(asked)
        return Look(probe.truth(host.name, results[2]), _log(results[3])) if len(results) == 4 else None
    except HarnessError:
        return None  # whoever needs to know asks again, and is told why


def wait_until_idle(read: Callable[[], CardTruth], card: str, deadline: float) -> None:
    """Wait for a card's update to be over: until then reading disturbs it, and the tool may have ended
    long before.

    :param read: reads the update's fields. :param deadline: seconds.
    :raises DeadlineError: it does not end in time.
    """
    truth = read()
    end = time.monotonic() + deadline
    pause = 0.01
    while isinstance(truth.update_status, str) and truth.update_status != "idle":
        if time.monotonic() + pause > end:
            raise DeadlineError(
                f"Waited {deadline:g} s for the update of {card} to end after its tool had; "
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
