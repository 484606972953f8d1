"""The harness flashes the cards of the machine it runs on: a mounted one, with a vendor-like tool in it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.mounted import HIL, PROJECT, MountedLab, image, root_hash

INVENTORY = """
version: 1
default_lab: bench
labs:
  bench:
    hosts:
      here:
        local: true
        tools: {{fpgasupdate: {tools}/fpgasupdate, rsu: {tools}/rsu}}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:77:01:00
            irreversible: [root-key]
"""
KEYED = {"sr_root": root_hash("root-key-A")}


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A folder with an inventory of the local machine and the tools that it names."""
    for name in ("fpgasupdate", "rsu"):
        program = tmp_path / name
        script = PROJECT / "tests/support/vendor_tools.py"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {script} {name} "$@"\n')
        program.chmod(0o755)
    (tmp_path / "inventory.yaml").write_text(INVENTORY.format(tools=tmp_path))
    (tmp_path / "fixtures").symlink_to(PROJECT / "fixtures")
    return tmp_path


def hil(mounts: MountedLab, bench: Path, *words: str) -> subprocess.CompletedProcess[str]:
    options = ["--inventory", str(bench / "inventory.yaml")]
    if words[1] != "show":
        options += ["--reports", str(bench / "reports")]
    return mounts.sh(f"cd {shlex.quote(str(bench))} && {shlex.join([str(HIL), *words, *options])}")


def test_signed_image_lands(mounts: MountedLab, bench: Path) -> None:
    mounts.bench.fit("left/card0", KEYED)
    done = hil(mounts, bench, "card", "flash", "here/card0", "A/csk0")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = hil(mounts, bench, "card", "show", "here/card0").stdout
    assert "0x23000410010311" in shown  # as fixtures/images.yaml states it
    assert mounts.bench.oracle("left/card0")["flash_count"] == 1


def test_unsigned_image_is_refused_by_a_keyed_card(mounts: MountedLab, bench: Path) -> None:
    mounts.bench.fit("left/card0", KEYED)
    done = hil(mounts, bench, "card", "flash", "here/card0", "unsigned", "--expect", "unchanged")
    assert done.returncode == 0, done.stdout + done.stderr
    unexpected = hil(mounts, bench, "card", "flash", "here/card0", "unsigned")
    assert unexpected.returncode == 1, unexpected.stdout + unexpected.stderr


def test_interlock_holds_on_the_local_machine(mounts: MountedLab, bench: Path) -> None:
    """To the harness the mounted card is a real one: what cannot be undone has to be repeated by hand."""
    refused = hil(mounts, bench, "card", "flash", "here/card0", "root-key-A")
    assert refused.returncode == 4, refused.stdout + refused.stderr
    assert mounts.bench.oracle("left/card0")["flash_count"] == 0
    done = hil(mounts, bench, "card", "flash", "here/card0", "root-key-A", "--irreversible", "root-key")
    assert done.returncode == 0, done.stdout + done.stderr
    assert root_hash("root-key-A") in hil(mounts, bench, "card", "show", "here/card0").stdout


def test_hold_on_the_card_is_that_of_the_host_whoever_takes_it(mounts: MountedLab, bench: Path) -> None:
    lock = "/run/lock/hil-64-4c-36-77-01-00.lock"
    holder = mounts.popen("sh", "-c", f"exec flock {lock} sh -c 'echo held; cat'")
    try:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        assert mounts.ssh(f"flock -n {lock} true").returncode == 1
        busy = hil(mounts, bench, "card", "flash", "here/card0", "A/csk0")
        assert busy.returncode == 4, busy.stdout + busy.stderr
        assert mounts.bench.oracle("left/card0")["flash_count"] == 0
    finally:
        holder.communicate(timeout=30)
    assert mounts.ssh(f"flock -n {lock} true").returncode == 0


#: Phase of the kernel -> the line by which the tool says that it is in it; in the order, and among the lines,
#: that opae-sdk's fpgasupdate printed where it was run (n3000.md 5.1; update_fw_sysfs, commit c52aef5ae).
PHASES = {
    "preparing": "preparing image file",
    "transferring": "writing image file",
    "programming": "programming image file",
}
SAID = [
    "updating",
    "waiting for idle",
    *PHASES.values(),
    "update of 0000:b2:00.0 complete",
    "Secure update OK",
]


def logged(text: str) -> list[str]:
    """Return what a tool's log says, without its times, and without what differs from image to image."""
    lines = re.findall(r"^\[[^]]+\] \[INFO +\] (.*)$", text, re.MULTILINE)
    return [re.sub(r"updating from file .*", "updating", line) for line in lines]


@pytest.mark.parametrize("held", PHASES)
def test_the_stand_in_says_each_phase_as_the_real_tool_does_when_it_begins(
    mounts: MountedLab, bench: Path, held: str
) -> None:
    """A fault at a phase acts when that is announced: told after the fact, it would find an idle card."""
    (bench / "image.bin").write_bytes(image("unsigned"))
    mounts.bench.hold("left/card0", held)
    tool = mounts.popen(f"{bench}/fpgasupdate", "-y", f"{bench}/image.bin", "0000:b2:00.0")
    try:
        mounts.bench.wait_held("left/card0", held, deadline=60)
        assert tool.stdout
        said = ""
        while PHASES[held] not in said:
            line = tool.stdout.readline()
            assert line, said
            said += line
        assert logged(said) == SAID[: SAID.index(PHASES[held]) + 1]
        assert mounts.bench.held("left/card0") == held, "it was said while the card was in that phase"
        mounts.bench.release("left/card0")
        rest, _ = tool.communicate(timeout=60)
    finally:
        mounts.bench.release("left/card0")
        tool.kill()
    assert logged(said + rest) == SAID
