"""Two harness processes, twelve cards on four OpenSSH hosts, one PostgreSQL; one is killed in the middle.

The cards are emulated ones, mounted where each host's sshd runs: to the harness they are real hardware.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.mounted import HIL, PROJECT, blocked
from support.openssh import OpenSsh
from support.plans import LEAN, write_plan
from support.postgres import Server
from support.processes import wait_until

from harness.inventory.load import load_inventory
from harness.judgement.records import Completion, Intent, Record
from harness.lab.background import background_lab
from harness.lab.bench import Bench
from harness.leases.store import LeaseStore
from harness.record.runs import read_run

HOSTS = ("north", "east", "south", "west")
ADDRESSES = ("0000:1b:00.0", "0000:3b:00.0", "0000:b2:00.0")
#: What the killed run leaves in the middle of programming, and the other one must wait for.
LEFT = "north/card2"
PLAN = """
import os

IMAGE = os.environ["IMAGE"]

def test_flash(card, images):
    card.flash(images[IMAGE].data, IMAGE, lands(DOC))
    card.reset()
"""
Operations = dict[str, list[tuple[float, float | None]]]


@dataclass
class Site:
    """A folder with the inventory of the real hosts, and what only the tests know: the bench behind them."""

    folder: Path
    bench: Bench
    leases: str

    def run(self, name: str, image: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a run that flashes ``image`` to all cards."""
        argv = [sys.executable, "-m", "pytest", *LEAN, "-p", "no:xdist", "-q", "test_plan.py"]
        argv += [f"--hil-reports={name}", f"--hil-leases={self.leases}", "--hil-lease-wait=120", *words]
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                argv,
                cwd=self.folder,
                env=os.environ | {"IMAGE": image},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def records(self, name: str) -> list[Record]:
        folders = [p for p in (self.folder / name).iterdir() if p.is_dir() and not p.is_symlink()]
        return list(read_run(folders[0])) if folders else []

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()


@pytest.fixture
def site(tmp_path: Path, server: Server) -> Iterator[Site]:
    # A lab for each host: where one card is held, the others of its lab stand still.
    lines = ["version: 1", "default_lab: north", "labs:"]
    for number, host in enumerate(HOSTS):
        lines += [f"  {host}:", "    hosts:", f"      {host}:", "        emulated: {}", *_cards(number)]
    behind = tmp_path / "behind"
    behind.mkdir()
    (behind / "inventory.yaml").write_text("\n".join(lines) + "\n")
    inventory = load_inventory(behind / "inventory.yaml")
    with ExitStack() as open_:
        for host in HOSTS:
            lab = background_lab(inventory, host)
            lab.up(inventory, host)
            open_.callback(lab.down, forget=True)
        _lay_out(tmp_path, _servers(tmp_path, behind, open_))
        doors = background_lab(inventory, LEFT.partition("/")[0]).doors()
        yield Site(tmp_path, Bench(doors.control), server.new_database())


def _cards(host: int) -> list[str]:
    entries = [
        f"          card{n}: {{address: '{address}', identity: '64:4c:36:9{host}:0{n}:00'}}"
        for n, address in enumerate(ADDRESSES)
    ]
    return ["        cards:", *entries]


def _servers(folder: Path, behind: Path, open_: ExitStack) -> dict[str, OpenSsh]:
    """Start an sshd in each mounted host, all at once; BLOCKED where nothing can be mounted here."""
    mount = [str(HIL), "lab", "mount", "--inventory", str(behind / "inventory.yaml"), "--network", "host"]
    tried = subprocess.run(
        [*mount, "--lab", HOSTS[0], HOSTS[0], "--", "true"], capture_output=True, text=True, timeout=60
    )
    if tried.returncode == 3:
        blocked(tried.stderr.strip())
    assert tried.returncode == 0, tried.stderr
    servers = {}
    for host in HOSTS:
        (own := folder / host).mkdir()
        # Privilege separation wants a folder in /run, which is the mounted host's own.
        prepared = ["sh", "-c", 'mkdir -p /run/sshd && exec "$@"', "sh"]
        servers[host] = OpenSsh(own, inside=[*mount, "--lab", host, host, "--", *prepared])
        open_.callback(servers[host].stop)
    with ThreadPoolExecutor() as pool:
        list(pool.map(OpenSsh.start, servers.values()))
    return servers


def _lay_out(folder: Path, servers: dict[str, OpenSsh]) -> None:
    for name in ("fpgasupdate", "rsu"):
        program = folder / name
        script = PROJECT / "tests/support/vendor_tools.py"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {script} {name} "$@"\n')
        program.chmod(0o755)
    lines = ["version: 1", "default_lab: bench", "labs:", "  bench:", "    hosts:"]
    for number, (host, sshd) in enumerate(servers.items()):
        lines += [
            f"      {host}:",
            f"        ssh: {{address: 127.0.0.1, port: {sshd.port}, user: {sshd.user}, "
            f"known_hosts: {sshd.known_hosts}, credentials: {{key_file: {sshd.key_file}}}}}",
            f"        tools: {{fpgasupdate: {folder}/fpgasupdate, rsu: {folder}/rsu}}",
            *_cards(number),
        ]
    (folder / "inventory.yaml").write_text("\n".join(lines) + "\n")
    (folder / "fixtures").symlink_to(PROJECT / "fixtures")
    write_plan(folder, PLAN)
    (folder / "reversed_order.py").write_text(
        "def pytest_collection_modifyitems(items):\n    items.reverse()\n"
    )


def operations(records: list[Record]) -> Operations:
    """Return when each card was operated on, from intent to completion."""
    ends = {r.intent: r.time for r in records if isinstance(r, Completion)}
    found: Operations = defaultdict(list)
    for record in records:
        if isinstance(record, Intent):
            found[record.subject.name].append((record.time, ends.get(record.seq)))
    return found


@pytest.mark.timeout(280)
def test_no_card_has_two_runs_and_the_one_that_is_left_finishes(site: Site) -> None:
    site.bench.hold(LEFT, "programming")
    killed, left = site.run("killed", "unsigned"), site.run("left", "A/csk0", "-p", "reversed_order")
    try:
        with LeaseStore(site.leases) as leases:

            def owner() -> int:
                return next((held.owner.pid for held in leases.all() if held.lease.name == LEFT), 0)

            site.bench.wait_held(LEFT, "programming", deadline=120)
            assert owner() == killed.pid
            killed.kill()
            killed.wait()

            def taken_or_ended() -> bool:
                with suppress(subprocess.TimeoutExpired):
                    left.wait(0.2)  # the database is asked no more often
                return left.poll() is not None or owner() == left.pid

            wait_until(taken_or_ended, "the other run to take it", 150)
            assert left.poll() is None, site.log("left")
            begun = [r for r in site.records("left") if isinstance(r, Intent) and r.subject.name == LEFT]
            assert site.bench.held(LEFT) == "programming"
            assert begun == [], "it has the lease, and begins nothing while the card is not idle"
            site.bench.release(LEFT)
            left.wait(150)
            assert leases.all() == []
    finally:
        for process in (killed, left):
            process.kill()
            process.wait()
    results = json.loads(next(Path(site.folder, "left").glob("2*/results.json")).read_text())
    states = {found["name"]: found["state"] for found in results["scenarios"]}
    assert set(states.values()) == {"as-stated"}, site.log("left")
    assert len(states) == 12
    _check_apart(operations(site.records("killed")), operations(site.records("left")))


def _check_apart(killed: Operations, left: Operations) -> None:
    """No card was worked on by both at a time. What was cut off has no end, and comes before the other's."""
    assert len(killed) == 3, "the killed run worked on three cards of its own"
    for card, spans in killed.items():
        for begun, ended in spans:
            for start, end in left[card]:
                assert end <= begun or start >= (begun if ended is None else ended), card
