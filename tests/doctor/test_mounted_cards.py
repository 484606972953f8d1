"""The doctor on an OpenSSH server in a mounted host, whose cards are real hardware to the harness."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.mounted import HIL, PROJECT, MountedLab, image
from support.openssh import OpenSsh

from harness.doctor.examination import examine
from harness.doctor.model import Diagnosis, Part
from harness.health.checks import Grade, ok
from harness.inventory.load import load_inventory
from harness.lab.leasing import leases_of
from harness.lab.running import RunningLab

CARD = "0000:b2:00.0"
IDENTITY = "64:4c:36:77:01:00"  # as support.mounted has it of the host `left`


@pytest.fixture
def server(tmp_path: Path, mounts: MountedLab) -> Iterator[OpenSsh]:
    mount = [str(HIL), "lab", "mount", "left", "--network", "host"]
    mount += ["--inventory", str(mounts.project / "inventory.yaml")]
    # Privilege separation wants a folder in /run, which is the mounted host's own.
    prepared = ["sh", "-c", 'mkdir -p /run/sshd && exec "$@"', "sh"]
    started = OpenSsh(tmp_path / "sshd", inside=[*mount, "--", *prepared])
    started.start()
    yield started
    started.stop()


def look(folder: Path, server: OpenSsh) -> Diagnosis:
    for name in ("fpgasupdate", "rsu", "fpgainfo"):
        script = PROJECT / "tests/support/vendor_tools.py"
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} -I {script} {name} "$@"\n')
        (folder / name).chmod(0o755)
    (folder / "inventory.yaml").write_text(
        "version: 1\ndefault_lab: bench\nlabs:\n  bench:\n    hosts:\n      left:\n"
        f"        ssh: {{address: 127.0.0.1, port: {server.port}, user: {server.user}, "
        f"known_hosts: {server.known_hosts}, credentials: {{key_file: {server.key_file}}}}}\n"
        f"        tools: {{fpgasupdate: {folder}/fpgasupdate, rsu: {folder}/rsu, "
        f"fpgainfo: {folder}/fpgainfo}}\n"
        f"        cards: {{card0: {{address: '{CARD}', identity: '{IDENTITY}'}}}}\n"
    )
    entry = load_inventory(folder / "inventory.yaml").lab()
    with RunningLab(entry, leases=leases_of("x", said=f"sqlite:///{folder}/l.sqlite")) as lab:
        return examine(lab, lambda: Part("machine", "m", (ok("a", "b"),)), in_use={})


def test_a_card_that_is_well_and_then_is_busy(tmp_path: Path, server: OpenSsh, mounts: MountedLab) -> None:
    _, host, card = look(tmp_path, server).parts
    assert [
        (c.name, c.finding) for part in (host, card) for c in part.checks if c.grade is not Grade.OK
    ] == []
    assert f"{IDENTITY} at {CARD}" in card.checks[0].finding
    mounts.put("/tmp/image.bin", image("unsigned"))
    mounts.bench.hold("left/card0", "programming")
    flash = threading.Thread(target=mounts.ssh, args=(f"fpgasupdate -y /tmp/image.bin {CARD}",))
    flash.start()
    try:
        mounts.bench.wait_held("left/card0", "programming", deadline=60)
        _, _, card = look(tmp_path, server).parts
        (busy,) = (check for check in card.checks if check.grade is not Grade.OK)
        assert (busy.name, busy.grade, busy.finding) == ("idle", Grade.BAD, "an update runs: programming")
        assert "wear" not in {check.name for check in card.checks}, "the flash of a busy card is not read"
    finally:
        mounts.bench.release("left/card0")
        flash.join(60)
