"""An emulated host's power, processes, services and sysfs around its cards."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from harness.emulator.sysfs_forms import bitmap_list
from harness.errors import ConfigurationError

BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        (set(), ""),
        ({1}, "1"),
        ({1, 2, 3, 4, 5, 6, 9}, "1-6,9"),
        ({0, 1, 2, 5}, "0-2,5"),
        ({126, 127}, "126-127"),
    ],
)
def test_cancelled_ids_are_printed_as_a_kernel_bitmap(numbers: set[int], text: str) -> None:
    assert bitmap_list(frozenset(numbers)) == text


def test_boot_id_and_volatile_files_change_with_a_boot_alone(console: Any) -> None:
    first = console.run(BOOT_ID).out
    console.put("kept", b"x")
    console.host.vfs.write("/root/kept", b"x")
    assert console.run(BOOT_ID).out == first
    console.host.reboot()
    assert console.run(BOOT_ID).out != first
    assert console.run("ls /tmp /root").out == "/root:\nkept\n\n/tmp:\n"


def test_power_cut_takes_card_and_processes_and_power_brings_the_card_back(console: Any) -> None:
    sleeper = console.host.processes.start(["sleeper"])
    console.host.power_off()
    assert console.host.vfs.listdir("/sys/bus/pci/devices") == ["0000:ae:00.0"]  # the slot's root port
    assert console.card.address is None
    with pytest.raises(Exception, match="SIGKILL"):
        sleeper.check()
    console.host.power_on()
    assert console.run("lspci -d 8086:0b30").out.startswith("b2:00.0 ")
    assert console.run("dmesg -t").out.startswith("Linux version ")


def test_reboot_during_an_update_leaves_an_idle_driver(console: Any, recipe_image: Any) -> None:
    path = console.put("user.bin", recipe_image("unsigned"))
    console.card.hold("copying")
    results = []
    updater = threading.Thread(target=lambda: results.append(console.run(f"fpgasupdate -y {path} b2:00.0")))
    updater.start()
    tick = threading.Event()
    while console.card.held() != "copying":
        assert updater.is_alive()
        tick.wait(0.001)
    console.host.reboot()
    updater.join(20)
    assert results[0].code == -9
    assert console.run("cat /sys/class/firmware/*/status").out == "idle\n"
    console.card.release()


def test_lock_dies_with_its_process(console: Any) -> None:
    holder = threading.Thread(target=lambda: console.run("flock -F -n -E 75 /run/lock/hil-x sleep 100000000"))
    with console.host.clock.actor():  # lab time stands still, so the holder sleeps
        holder.start()
        tick = threading.Event()
        while not (pid := console.run("pgrep sleep").out.strip()):
            tick.wait(0.001)
        assert console.run("flock -F -n -E 75 /run/lock/hil-x true").code == 75
        assert console.run(f"kill -KILL {pid}").code == 0
        holder.join(10)
        assert not holder.is_alive()
        assert console.run("flock -F -n -E 75 /run/lock/hil-x true").code == 0


def test_exec_keeps_the_process_id_through_flock(console: Any) -> None:
    out = console.run("sh -c 'echo $$; exec flock -F -n -E 75 /run/lock/x sh -c \"echo \\$\\$\"'").out
    first, second = out.split()
    assert first == second


@pytest.mark.parametrize(
    ("command", "code", "out"),
    [
        ("systemctl is-active hostw", 0, "active\n"),
        ("systemctl stop hostw && systemctl is-active hostw", 3, "inactive\n"),
        ("systemctl stop hostw; systemctl start hostw; systemctl is-active hostw.service", 0, "active\n"),
        ("systemctl is-active nonsense", 3, "inactive\n"),
        ("systemctl status nonsense", 4, ""),
        ("systemctl start nonsense", 5, ""),
    ],
)
def test_services(console: Any, command: str, code: int, out: str) -> None:
    result = console.run(command)
    assert (result.code, result.out) == (code, out)


def test_missing_tool_is_not_found_until_it_is_back(console: Any) -> None:
    console.host.condition("missing-fpgasupdate", True)
    result = console.run("fpgasupdate x")
    assert (result.code, result.err) == (127, "bash: line 1: fpgasupdate: command not found\n")
    console.host.condition("missing-fpgasupdate", False)
    assert console.run("fpgasupdate x").code == 2


def test_unreadable_sysfs_fails_with_an_io_error(console: Any) -> None:
    console.host.condition("sysfs-unreadable", True)
    result = console.run("cat /sys/class/firmware/secure-update0/status")
    assert (result.code, result.err) == (
        1,
        "cat: /sys/class/firmware/secure-update0/status: Input/output error\n",
    )


def test_unknown_condition_names_the_known_ones(console: Any) -> None:
    with pytest.raises(ConfigurationError, match="nonsense") as caught:
        console.host.condition("nonsense", True)
    assert "no-image-load" in caught.value.hint


def test_two_cards_have_names_of_their_own_everywhere(new_host: Any, console_for: Any) -> None:
    console = console_for(new_host("0000:1b:00.0", "0000:5e:00.0"))
    assert console.run("ls /sys/class/firmware").out == "secure-update0\nsecure-update1\n"
    assert console.run("ls /dev | grep dfl").out == "dfl-fme.0\ndfl-fme.1\n"
    addresses = console.run("cat /sys/bus/pci/drivers/dfl-pci/*/fpga_region/*/*/*/*/*/*/*/mac_address").out
    assert addresses == "64:4c:36:00:00:00\n64:4c:36:00:01:00\n"


def test_tree_is_the_same_after_a_card_was_away(console: Any) -> None:
    def everything() -> list[str]:
        found = []

        def walk(path: str) -> None:
            for name in console.host.vfs.listdir(path):
                found.append(f"{path}/{name}")
                if console.host.vfs.status(f"{path}/{name}", follow=False).mode & 0o170000 == 0o040000:
                    walk(f"{path}/{name}")

        walk("/sys")
        return found

    before = everything()
    assert console.run("rsu bmcimg b2:00.0").code == 0
    assert everything() == before
