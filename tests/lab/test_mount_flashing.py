"""Tools that know only the kernel's interface flash and reset a mounted card, with the right result."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.mounted import MountedLab, image, root_hash

FLASHER = str(Path(__file__).parents[1] / "support/abi_flasher.py")
ADDRESS = "0000:b2:00.0"
SECURITY = "/sys/bus/platform/drivers/intel-m10bmc-sec-update/*.auto/security"
REFUSED = "programming:hw-error"
#: What the recipes' images run as; fixtures/images.yaml states it.
BITSTREAM_IDS = {
    "A/csk0": 0x23000410010311,
    "A/csk1": 0x23000410010312,
    "unsigned": 0x23000410010315,
}
#: What stands in flash before, as far as it matters.
BLANK: dict[str, Any] = {}
KEYED = {"sr_root": root_hash("root-key-A")}
CANCELLED = {**KEYED, "sr_cancelled": [0]}
#: What a card runs whose user page is empty: the factory image, told by bit 36.
FACTORY_BIT = 1 << 36


@dataclass
class Flashed:
    """What a flasher came to: its exit code, what it saw, what runs after a reset, what the kernel logged."""

    exit_code: int
    result: dict[str, Any]
    after_reset: dict[str, Any]
    logged: str


def flash(mounts: MountedLab, tmp_path: Path, name: str, *, host: str = "left", at: str = ADDRESS) -> Flashed:
    """Flash the image of a recipe and reset the card, by the flasher alone."""
    file = tmp_path / "image.bin"
    file.write_bytes(image(name))
    flasher = f"{sys.executable} -I {FLASHER}"
    script = (
        f"before=$(dmesg | wc -l); {flasher} flash {file} {at}; echo $?; {flasher} reset {at};"
        "dmesg | tail -n +$((before + 1))"
    )
    done = mounts.sh(script, host)
    result, code, after_reset, *logged = done.stdout.splitlines() or pytest.fail(done.stderr)
    return Flashed(int(code), json.loads(result), json.loads(after_reset), "\n".join(logged))


# n3000.md 3.1 and 3.3: what each image comes to on a card without a root entry hash, with root A, and with
# root A and CSK 0 cancelled. The code is the one that the kernel logs.
@pytest.mark.parametrize(
    ("state", "name", "code"),
    [
        (BLANK, "unsigned", None),
        (BLANK, "A/csk0", None),
        (KEYED, "A/csk0", None),
        (KEYED, "unsigned", "0x00000011"),
        (KEYED, "B/csk0", "0x00000011"),
        (KEYED, "csk-foreign", "0x00000012"),
        (KEYED, "tampered-signature", "0x00000013"),
        (KEYED, "tampered-payload", "0x00000016"),
        (CANCELLED, "A/csk0", "0x00000015"),
        (CANCELLED, "A/csk1", None),
    ],
)
def test_user_images_land_or_are_refused_as_documents_say(
    mounts: MountedLab, tmp_path: Path, state: dict[str, Any], name: str, code: str | None
) -> None:
    mounts.bench.fit("left/card0", state)
    flashed = flash(mounts, tmp_path, name)
    assert flashed.result["counted"] == 1
    running = int(flashed.after_reset["bitstream_id"], 16)
    if code is None:
        assert (flashed.exit_code, flashed.result["error"], flashed.result["remaining"]) == (0, "", 0)
        assert "RSU auth result" not in flashed.logged
        assert running == BITSTREAM_IDS[name]
    else:
        assert (flashed.exit_code, flashed.result["error"]) == (1, REFUSED)
        assert f"RSU auth result: {code}" in flashed.logged
        assert running & FACTORY_BIT


def test_root_key_is_programmed_once_and_enforced_after_the_reset(mounts: MountedLab, tmp_path: Path) -> None:
    assert flash(mounts, tmp_path, "root-key-A").result["root"] == root_hash("root-key-A")
    refused = flash(mounts, tmp_path, "root-key-B")
    assert (refused.exit_code, refused.result["error"]) == (1, REFUSED)
    assert refused.result["root"] == root_hash("root-key-A")
    assert "RSU auth result: 0x0000001a" in refused.logged
    assert flash(mounts, tmp_path, "unsigned").result["error"] == REFUSED
    assert flash(mounts, tmp_path, "A/csk0").exit_code == 0


def test_cancellation_shows_as_a_list_of_ids(mounts: MountedLab, tmp_path: Path) -> None:
    mounts.bench.fit("left/card0", KEYED)
    assert flash(mounts, tmp_path, "cancel-A-csk0").result["cancelled"] == "0"
    assert flash(mounts, tmp_path, "A/csk0").result["error"] == REFUSED


def test_card_that_moves_is_found_at_its_new_address(mounts: MountedLab, tmp_path: Path) -> None:
    moved = flash(mounts, tmp_path, "A/csk0", host="moving", at="0000:b3:00.0")
    assert moved.after_reset == {"address": ADDRESS, "bitstream_id": hex(BITSTREAM_IDS["A/csk0"])}


def test_shell_tools_flash_as_the_kernels_document_shows(mounts: MountedLab, tmp_path: Path) -> None:
    file = tmp_path / "image.bin"
    file.write_bytes(image("A/csk0"))
    script = (
        "set -e; cd /sys/class/firmware/secure-update0; echo 1 > loading; {}; echo 0 > loading;"
        "while [ $(cat status) != idle ]; do :; done; cat error remaining_size"
    )
    for copy in (f"cat {file} > data", f"dd if={file} of=data bs=64k"):
        done = mounts.sh(script.format(copy))
        assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert mounts.sh(f"cat {SECURITY}/flash_count").stdout == "2\n"


def test_static_binary_sees_and_flashes_the_same_card(mounts: MountedLab, tmp_path: Path) -> None:
    file = tmp_path / "image.bin"
    file.write_bytes(image("A/csk0"))
    script = (
        f"busybox cat /sys/bus/pci/devices/{ADDRESS}/device; cd /sys/class/firmware/secure-update0;"
        f"busybox printf 1 > loading; busybox cat {file} > data; busybox printf 0 > loading;"
        "while [ $(busybox cat status) != idle ]; do :; done; busybox cat error remaining_size"
    )
    done = mounts.run("busybox", "sh", "-ec", script)
    assert (done.returncode, done.stdout) == (0, "0x0b30\n0\n"), done.stderr
    assert mounts.bench.oracle("left/card0")["flash_count"] == 1
