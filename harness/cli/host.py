"""`hil host`: how hosts are reached; which key is theirs; their power."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.cli.columns import columns
from harness.cli.form import Form, FormOption
from harness.cli.lease import InventoryOption, LabOption, LeasesOption, ReportsOption

if TYPE_CHECKING:
    from harness.inventory.model import Host, Lab
    from harness.lab.trusting import Offer, Shown

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Show how hosts are reached; trust their keys; switch their power.",
)


def _known_hosts(incomplete: str) -> list[str]:
    """Return the hosts of the inventory in this folder, for completion in a shell."""
    from harness.errors import HarnessError
    from harness.inventory.load import load_inventory

    try:
        names = list(load_inventory(None).lab(None).hosts)
    except HarnessError:
        return []
    return [name for name in names if name.startswith(incomplete)]


HostArgument = Annotated[
    str,
    typer.Argument(metavar="HOST", help="The host, as the inventory has it.", autocompletion=_known_hosts),
]


@app.command(
    "list",
    short_help="List hosts: how they are reached, their keys, their power.",
    epilog="Examples:\n\n  hil host list\n\n  hil host list --login -o json",
)
def list_hosts(
    inventory: InventoryOption = None,
    lab: LabOption = None,
    login: Annotated[
        bool, typer.Option("--login", help="Also log in to each real host, to all at the same time.")
    ] = False,
    output: FormOption = Form.TABLE,
) -> None:
    """List the hosts of a lab: how each is reached, whether its key is known, what switches its power."""
    from harness.inventory.load import load_inventory

    entry = load_inventory(inventory).lab(lab)
    rows = {name: _row(host) for name, host in entry.hosts.items()}
    if login:
        answers = _answers(entry)
        for name, row in rows.items():
            row["answers"] = answers.get(name, "-")
    if output is Form.JSON:
        typer.echo(json.dumps(list(rows.values()), indent=1))
        return
    head = ["name", "reached", "through", "key", "root", "power", *(["answers"] if login else [])]
    table = [[key.upper() if key != "name" else "HOST" for key in head]]
    table += [[str(row[key]) for key in head] for row in rows.values()]
    typer.echo(columns(table))


def _row(host: Host) -> dict[str, Any]:
    power = host.power.way if host.power else ("emulated" if host.can_power else "no")
    if host.ssh is None:
        reached = "local" if host.local else "emulated"
        return {
            "name": host.name,
            "reached": reached,
            "through": "-",
            "key": "-",
            "root": "-",
            "power": power,
        }
    from harness.hosts.access import Access
    from harness.hosts.known_hosts import authorities, keys_of, read

    ssh = host.ssh
    access = Access(ssh.address, ssh.port, ssh.user, ssh.known_hosts)
    text = read(ssh.known_hosts)
    signed = any(one.vouches_for(name) for one in authorities(text) for name in access.names)
    key = "known" if keys_of(text, access.known_as) else "by authority" if signed else "unknown"
    return {
        "name": host.name,
        "reached": f"ssh {ssh.where}",
        "through": ssh.jump or "-",
        "key": key,
        "root": "login" if ssh.user == "root" else "sudo" if ssh.sudo else "no",
        "power": power,
    }


def _answers(lab: Lab) -> dict[str, str]:
    """Log in to every host that is reached over SSH; return how long that took, or why it failed."""
    import time

    from harness.errors import HarnessError
    from harness.hosts.many import ask_each
    from harness.hosts.ssh import SshHost
    from harness.lab.trusting import access_by_ssh

    def log_in(name: str) -> float:
        began = time.monotonic()
        with closing(SshHost(name, access_by_ssh(lab, name))) as host:
            host.run(["true"])
        return time.monotonic() - began

    names = [name for name, host in lab.hosts.items() if host.ssh]
    return {
        name: answer.message if isinstance(answer, HarnessError) else f"in {answer:.2f} s"
        for name, answer in ask_each(names, log_in)
    }


@app.command(
    short_help="Show a host's keys, and keep them.",
    epilog="Examples:\n\n  hil host trust controller-0\n\n"
    "  hil host trust controller-0 --fingerprint SHA256:4nO9...\n\n  hil host trust bastion --replace --yes",
)
def trust(
    name: HostArgument,
    inventory: InventoryOption = None,
    lab: LabOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Keep what is shown, and do not ask.")] = False,
    fingerprint: Annotated[
        list[str] | None,
        typer.Option(metavar="SHA256:...", help="Keep the key that has it, and do not ask; repeatable."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="A key that has changed takes the old one's place.")
    ] = False,
    output: FormOption = Form.TABLE,
) -> None:
    """Show the keys of a host, and keep them in the file of known hosts that the inventory names.

    Compare the fingerprints with what the host's own console says: `ssh-keygen -lf` prints them there.
    """
    from harness.inventory.load import load_inventory
    from harness.lab.trusting import offer_of

    offer = offer_of(load_inventory(inventory).lab(lab), name)
    if output is Form.TABLE:
        _show(offer)
    chosen = offer.chosen(fingerprint or ())
    offer.check(chosen, replace=replace)
    new = sum(each.state != "known" for each in chosen)
    agreed = yes or bool(fingerprint) or (output is Form.TABLE and new > 0 and _agreed(offer))
    kept = offer.keep(chosen) if agreed else 0
    if output is Form.JSON:
        typer.echo(json.dumps(_offer_json(offer, kept), indent=1))
        return
    count = f"{kept} key{'s' if kept != 1 else ''}"
    if new and not kept:
        typer.echo("Nothing was kept.")
        raise typer.Exit(1)
    typer.echo(f"{count} kept in {offer.file}." if new else f"All of this is in {offer.file} already.")


def _show(offer: Offer) -> None:
    typer.echo(f"{offer.name} at {offer.where} shows:")
    rows = [[f"  {each.key.kind}", each.key.fingerprint, _said(each)] for each in offer.keys]
    typer.echo(columns(rows))


def _said(shown: Shown) -> str:
    return shown.state if shown.was is None else f"changed: {shown.was.fingerprint} is on file"


def _agreed(offer: Offer) -> bool:
    """Ask whether the keys are to be kept. :raises ConfigurationError: nobody is there to answer."""
    from harness.errors import ConfigurationError

    if not sys.stdin.isatty():
        raise ConfigurationError(
            f"Whether the keys of {offer.name} are its own is for a person to say, and nobody is there.",
            hint="Give --fingerprint SHA256:... as its console says it, or --yes.",
        )
    return typer.confirm(f"Keep them in {offer.file}?", default=False)


def _offer_json(offer: Offer, kept: int) -> dict[str, Any]:
    return {
        "host": offer.name,
        "address": offer.where,
        "known_as": offer.known_as,
        "file": str(offer.file),
        "keys": [
            {
                "kind": each.key.kind,
                "fingerprint": each.key.fingerprint,
                "state": each.state,
                "was": each.was.fingerprint if each.was else None,
            }
            for each in offer.keys
        ],
        "kept": kept,
    }


@app.command(
    short_help="Show or switch the power of a host.",
    epilog="Examples:\n\n  hil host power worker-1\n\n  hil host power worker-1 cycle --lab rack7",
)
def power(
    name: HostArgument,
    act: Annotated[
        Literal["status", "off", "on", "cycle"],
        typer.Argument(help="off cuts it: nothing is shut down before."),
    ] = "status",
    inventory: InventoryOption = None,
    lab: LabOption = None,
    while_updating: Annotated[
        bool, typer.Option("--while-updating", help="Also where a card of it is being updated.")
    ] = False,
    leases: LeasesOption = None,
    reports: ReportsOption = Path("reports"),
    output: FormOption = Form.TABLE,
) -> None:
    """Show or switch the power of a host; it is done when the power is seen to be so.

    Whoever has the lease of a card of the host keeps its power, too.
    """
    from harness.cli.opening import running_lab
    from harness.inventory.load import load_inventory
    from harness.lab.background import chosen_lab
    from harness.lab.leasing import leases_of

    loaded = load_inventory(inventory)
    entry, kept = chosen_lab(loaded, lab)
    entry.host(name)
    with (
        closing(leases_of("hil host power", reports, leases)) as holder,
        running_lab(loaded, entry, leases=holder, kept=kept) as running,
    ):
        if act != "status":
            running.leases.reason = f"hil host power {name} {act}"
            running.power(name, act, while_updating=while_updating)
        state = _state(running, name, act)
    if output is Form.JSON:
        typer.echo(json.dumps({"host": name, "power": state, "by": _by(entry.host(name))}))
    else:
        typer.echo(f"{name}: power {state}")


def _state(lab: Any, name: str, act: str) -> str:
    """Return what the power is; after an act that nobody can see, that it is not known."""
    from harness.errors import BlockedError

    try:
        return str(lab.power_state(name))
    except BlockedError:
        if act == "status":
            raise
        return "switched, and not seen: its inventory entry has no status"


def _by(host: Host) -> str:
    if host.emulated is not None:
        return host.emulated.bmc or "emulated"
    return host.power.way if host.power else "nothing"
