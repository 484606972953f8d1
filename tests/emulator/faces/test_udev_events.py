"""udev's listeners hear of a card that leaves and comes back; without FUSE, umockdev shows the devices."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest
from support.mounted import MountedLab, program_environment

from harness.emulator.faces.udev_messages import murmur, udev_message

#: Listens with pyudev while the card is reset, by a write in the mount or (word `outside`) by somebody else.
LISTENER = """
import glob, json, pyudev, sys
context = pyudev.Context()
monitor = pyudev.Monitor.from_netlink(context, "udev")
monitor.filter_by("pci")
monitor.start()
print("listening", flush=True)
if sys.argv[1] == "inside":
    (control,) = glob.glob("/sys/bus/platform/drivers/*/*.auto/control/image_load")
    open(control, "w").write("bmc_user")
heard = []
while not any(device.action == "add" and device.properties["PCI_ID"] == "8086:0B32" for device in heard):
    device = monitor.poll(10)
    if device is None:
        sys.exit(f"heard no more than {heard}")
    heard.append(device)
cards = [d for d in heard if d.properties["PCI_ID"] == "8086:0B30"]
print(json.dumps({
    "card": [(d.action, d.sys_name) for d in cards],
    "order": [d.device_path for d in heard if d.action in ("remove", "add")],
    "now": [d.sys_name for d in context.list_devices(subsystem="pci", PCI_ID="8086:0B30")],
    "driver": cards[-1].driver if cards else None,
}))
"""


def test_hash_by_which_filters_tell_subsystems() -> None:
    assert (murmur(b""), murmur(b"a")) == (0, 0x92685F5E)  # of the reference MurmurHash2, seed 0


def test_message_has_the_layout_that_libudev_reads() -> None:
    """struct monitor_netlink_header of systemd: prefix, magic, its size, offset and length of the rest."""
    message = udev_message("add", "/devices/x", {"SUBSYSTEM": "pci"}, 7)
    assert message[:8] == b"libudev\0"
    assert message[8:12] == bytes.fromhex("feedcafe")
    size, offset, length = (int.from_bytes(message[at : at + 4], sys.byteorder) for at in (12, 16, 20))
    assert (size, offset) == (40, 40)
    assert message[40:] == b"ACTION=add\0DEVPATH=/devices/x\0SEQNUM=7\0SUBSYSTEM=pci\0"
    assert length == len(message) - 40


@pytest.mark.parametrize("options", [[], ["--face", "umockdev"]], ids=["fuse", "umockdev"])
def test_card_that_is_reset_leaves_and_comes_back_at_its_new_address(
    mounts: MountedLab, options: list[str]
) -> None:
    listener = mounts.popen(sys.executable, "-c", LISTENER, "outside", host="moving", options=options)
    try:
        assert listener.stdout
        assert listener.stdout.readline() == "listening\n"
        assert mounts.ssh("rsu bmcimg b3:00.0", host="moving").returncode == 0
        out, said = listener.communicate(timeout=30)
    finally:
        listener.kill()
        listener.wait()
    assert listener.returncode == 0, said
    heard = json.loads(out)
    assert heard["card"] == [
        ["unbind", "0000:b3:00.0"],
        ["remove", "0000:b3:00.0"],
        ["add", "0000:b2:00.0"],
        ["bind", "0000:b2:00.0"],
    ]
    assert heard["now"] == ["0000:b2:00.0"]
    assert heard["driver"] == "dfl-pci"


def test_children_go_before_their_parents_and_come_after_them(mounts: MountedLab) -> None:
    done = mounts.sh(shlex.join([sys.executable, "-c", LISTENER, "inside"]))
    assert done.returncode == 0, done.stderr
    order = json.loads(done.stdout.splitlines()[1])["order"]
    half = len(order) // 2
    gone, came = order[:half], order[half:]
    assert sorted(gone) == sorted(came)
    for index, path in enumerate(gone):
        assert not [later for later in gone[index:] if later.startswith(f"{path}/")]
    for index, path in enumerate(came):
        assert not [later for later in came[index:] if path.startswith(f"{later}/")]


def test_udevadm_monitor_and_info_see_the_card(mounts: MountedLab) -> None:
    info = mounts.sh("udevadm info /sys/bus/pci/devices/0000:b2:00.0").stdout
    assert {"E: PCI_ID=8086:0B30", "E: DRIVER=dfl-pci", "E: SUBSYSTEM=pci"} <= set(info.splitlines())
    walked = mounts.sh("udevadm info -a -p /sys/class/firmware/secure-update0").stdout
    assert 'ATTR{status}=="idle"' in walked
    assert 'KERNELS=="0000:b2:00.0"' in walked
    assert 'DRIVERS=="dfl-pci"' in walked


def test_pyudev_finds_the_card_and_the_chain_above_its_update_interface(mounts: MountedLab) -> None:
    script = """
import pyudev
context = pyudev.Context()
(card,) = context.list_devices(subsystem="pci").match_attribute("device", "0x0b30")
(update,) = context.list_devices(subsystem="firmware")
above = " ".join(device.subsystem for device in update.ancestors)
print(card.sys_name, card.driver, above, update.attributes.asstring("status"))
"""
    done = mounts.sh(shlex.join([sys.executable, "-c", script]))
    above = "platform spi spi_master platform dfl platform fpga_region pci pci pci pci"
    assert done.stdout == f"0000:b2:00.0 dfl-pci {above} idle\n", done.stderr


def test_lspci_sees_the_card_its_tree_and_its_driver(mounts: MountedLab) -> None:
    listed = mounts.sh("lspci -Dn -d 8086:0b30; lspci -Dnk -s b2:00.0; lspci -tn").stdout
    assert listed.startswith("0000:b2:00.0 1200: 8086:0b30\n")
    assert "Kernel driver in use: dfl-pci" in listed
    assert "[0000:ae]---00.0-[af-b4]----00.0-[b0-b4]--+-08.0-[b1]--+-00.0" in listed


@pytest.mark.parametrize("face", ["fuse", "umockdev"])
def test_both_faces_show_the_same_truth(mounts: MountedLab, face: str) -> None:
    script = (
        "lspci -Dn -d 8086:0b30; cd /sys/bus/pci/devices/0000:b2:00.0/fpga_region/region*/dfl-fme.*;"
        "cat ports_num dfl_dev.*/*/spi_master/*/*/mac_address; ls /dev/dfl-fme.0;"
        "cat /sys/bus/platform/drivers/intel-m10bmc-sec-update/*.auto/security/sr_root_entry_hash"
    )
    done = mounts.run("sh", "-c", script, options=["--face", face])
    assert done.stdout == (
        "0000:b2:00.0 1200: 8086:0b30\n1\n64:4c:36:77:01:00\n/dev/dfl-fme.0\nhash not programmed\n"
    ), done.stderr


def test_with_umockdev_nothing_can_be_flashed_or_reset(mounts: MountedLab) -> None:
    """Its attributes are plain files: with an update interface among them every update would look good."""
    names = ("mac_address", "loading", "status", "image_load", "filename")
    script = "find /sys/devices -name " + " -o -name ".join(names)
    listed = mounts.run("sh", "-c", script, options=["--face", "umockdev"]).stdout.split()
    assert [path.rpartition("/")[2] for path in listed] == ["mac_address"]
    assert {path.rpartition("/")[2] for path in mounts.sh(script).stdout.split()} == set(names) - {"filename"}


def test_nothing_of_umockdev_is_left(mounts: MountedLab) -> None:
    scratch = mounts.background.doors().runtime
    before = sorted(scratch.iterdir())
    assert (
        mounts.run("sh", "-c", "(setsid sleep 100 &); exit 4", options=["--face", "umockdev"]).returncode == 4
    )
    assert sorted(scratch.iterdir()) == before


def test_machine_without_umockdev_is_told_what_to_install(mounts: MountedLab) -> None:
    if "LD_LIBRARY_PATH" not in program_environment():
        pytest.skip("umockdev is installed on this machine")
    environment = {key: value for key, value in mounts.environment().items() if key != "LD_LIBRARY_PATH"}
    done = subprocess.run(
        mounts.argv("true", options=["--face", "umockdev"]), env=environment, capture_output=True, text=True
    )
    assert done.returncode == 3
    assert "sudo apt-get install umockdev" in done.stderr
