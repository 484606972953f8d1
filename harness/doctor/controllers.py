"""Checks of a StarlingX system: Keystone's login, the API behind it, and a host with its commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from harness.controlplane.rest import RestWay
from harness.doctor.model import Part
from harness.errors import ConfigurationError, HarnessError
from harness.health.checks import Check, bad, failed, ok
from harness.hosts.commands import OPENRC
from harness.hosts.connect import connect
from harness.hosts.protocol import Asked
from harness.lab.systems import login_of

if TYPE_CHECKING:
    from harness.inventory.model import Controller, Host
    from harness.lab.running import RunningLab

_DEADLINE: Final = 20.0


def controller(lab: RunningLab, entry: Controller) -> Part:
    """Return what is found of a system; a login that is refused is tried once, so that no account locks."""
    return Part("controller", entry.name, (*_rest(lab, entry), _commands(lab, entry)))


def _rest(lab: RunningLab, entry: Controller) -> Iterator[Check]:
    try:
        login = login_of(lab, entry)
    except HarnessError as error:
        yield failed("credentials", error)
        return
    way = RestWay(entry.name, login, deadline=_DEADLINE)
    try:
        hosts = way.hosts()
    except ConfigurationError as error:
        yield failed("keystone", error)
    except HarnessError as error:
        yield failed("api", error)
    else:
        yield ok("keystone", f"{login.user} at {login.url}")
        yield ok("api", f"{len(hosts)} host{'s' if len(hosts) != 1 else ''} by its API")
    finally:
        way.close()


def _commands(lab: RunningLab, entry: Controller) -> Check:
    """Return whether one of its hosts has its commands, and the login that they take from there."""
    own = [host for host in lab.entry.hosts.values() if host.system == entry.name]
    if not own:
        hint = f"Give one of its hosts `system: {entry.name}` in the inventory, for `--way cli`."
        return ok("commands", "no host of the inventory is one of it: it is asked by its API alone", hint)
    complaints = []
    for host in own:
        try:
            if _has_commands(lab, host):
                return ok("commands", f"its commands on {host.name}")
            complaints.append(f"{host.name} has no `system`, or no {OPENRC}")
        except (HarnessError, OSError) as error:
            complaints.append(error.message if isinstance(error, HarnessError) else str(error))
    hint = f"`system: {entry.name}` of a host in the inventory is to name a controller's; or ask by the API."
    return bad("commands", "; ".join(complaints), hint)


def _has_commands(lab: RunningLab, entry: Host) -> bool:
    host = connect(entry, lab.access(entry.name))
    try:
        asked = [Asked(("which", "system")), Asked(("test", "-e", OPENRC))]
        return all(result.exit_code == 0 for result in host.run_all(asked, deadline=_DEADLINE))
    finally:
        host.close()
