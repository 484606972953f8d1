"""From a lab's controllers to drivers of their systems: the login, the way in, and which cards each has."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

from harness.errors import ConfigurationError
from harness.hosts.connect import connect

if TYPE_CHECKING:
    from harness.controlplane.changes import WayIn
    from harness.controlplane.driver import SystemDriver
    from harness.controlplane.session import Login
    from harness.inventory.model import Controller, Host
    from harness.lab.running import RunningLab
    from harness.record.operations import Recording

Way = Literal["rest", "cli"]


def system_driver(
    lab: RunningLab,
    name: str,
    history: Recording,
    *,
    way: Way = "rest",
    region: str = "",
    allowed: Collection[str] = frozenset(),
) -> SystemDriver:
    """Return the driver of the system of the controller ``name``; nothing is asked of it yet.

    :param way: by its API, or by the commands of its active controller. :param region: of the
        system, where its Keystone knows several. :param allowed: what ``--hil-irreversible`` names.
    :raises ConfigurationError: there is no such controller, or its secret is not to be had.
    :raises BlockedError: no host of the inventory is one of the system, so that none has the command.
    """
    from harness.controlplane.driver import SystemDriver
    from harness.controlplane.gate import Gate

    controller = controller_of(lab, name)
    own = list(hosts_of(lab, controller))
    cards = {
        (hostname_of(lab, host) if host.system == name else f"{host.system}/{host.name}", card.address): card
        for host in own
        for card in host.cards.values()
    }
    real = lab.entry.is_real(name)
    fence, updates = partial(lab.leases.check_system, name), lab.leases.updates
    gate = Gate(name, cards, real=real, allowed=allowed, fence=fence, updates=updates)
    clock = lab.bench.lab_time if controller.emulated is not None and lab.bench is not None else None
    return SystemDriver(_way(lab, controller, own, way, region), gate, history, clock=clock)


def controller_of(lab: RunningLab, name: str) -> Controller:
    """Return the controller ``name``. :raises ConfigurationError: there is none."""
    known = lab.entry.controllers
    if name not in known:
        raise ConfigurationError(
            f"The lab {lab.name!r} has no controller {name!r}.",
            hint=f"Known: {', '.join(known) or 'none'}.",
        )
    return known[name]


def hosts_of(lab: RunningLab, controller: Controller) -> Iterator[Host]:
    """Yield the hosts of a system; of a system controller also those of its subclouds, for its images."""
    subclouds = {entry.name for entry in lab.entry.controllers.values() if entry.parent == controller.name}
    for host in lab.entry.hosts.values():
        if host.system == controller.name or host.system in subclouds:
            yield host


def hostname_of(lab: RunningLab, host: Host) -> str:
    """Return what a host is called in its system: a real one is asked.

    :raises InfrastructureError: it does not answer.
    """
    if host.emulated is not None:
        return host.emulated.hostname
    reached = connect(host, lab.access(host.name))
    try:
        return reached.run(["hostname"]).stdout.strip()
    finally:
        reached.close()


def login_of(lab: RunningLab, controller: Controller, region: str = "") -> Login:
    """Return where a system's Keystone is and who asks. :raises ConfigurationError: it is not to be had."""
    from harness.controlplane.session import Login

    if controller.emulated is not None:
        door = lab.doors.controllers.get(controller.name)
        if door is None:
            raise ConfigurationError(
                f"The lab {lab.name!r} that is running has no controller {controller.name}: it was started "
                "from another inventory, or from an earlier one.",
                hint=f"Start it again: hil lab down {lab.name}; hil lab up {lab.name}",
            )
        return Login(door.url, door.user, door.password, region=region)
    from harness.inventory.credentials import resolve
    from harness.record.redaction import register_secret

    secret = resolve(controller.credentials).password if controller.credentials else None
    if secret is None or controller.url is None:
        raise ConfigurationError(
            f"The controller {controller.name} needs a password: a key or an agent does not open an API.",
            hint="Give it `credentials: {env: NAME}` or `{file: PATH}` in the inventory.",
        )
    register_secret(secret)
    return Login(controller.url, controller.user, secret, region=region, ca_file=controller.ca_file)


def _way(lab: RunningLab, controller: Controller, hosts: list[Host], way: Way, region: str) -> WayIn:
    if way == "rest":
        from harness.controlplane.rest import RestWay

        return RestWay(controller.name, login_of(lab, controller, region))
    from harness.controlplane.cli import CliWay

    own = [connect(host, lab.access(host.name)) for host in hosts if host.system == controller.name]
    return CliWay(controller.name, *own, region=region)
