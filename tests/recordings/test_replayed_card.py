"""A replayed card is the recorded one: the same truth, claims and places, and an error for all else."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from harness.cards.discovery import discover
from harness.cards.parsers import parse_fpgainfo
from harness.errors import ConfigurationError, InfrastructureError
from harness.hosts.protocol import Host
from harness.lab.running import RunningLab
from harness.recordings.model import Recording

TOPICS = ("fme", "security", "phy", "bmc")
#: Tools that take a path, on which a shell script of an engineer may rely.
FILE_COMMANDS = [
    ["ls", "-1", "/sys/bus/pci/devices"],
    ["ls", "-1", "/sys/bus/pci/devices/0000:b2:00.0/"],
    ["ls", "-A", "/sys/bus/pci/drivers/dfl-pci"],
    ["readlink", "-f", "/sys/bus/pci/devices/0000:b2:00.0"],
    ["readlink", "/sys/bus/pci/devices/0000:b2:00.0/driver"],
    ["readlink", "-f", "/sys/bus/platform/drivers/intel-m10bmc-sec-update/*.auto"],
    ["grep", "-H", "", "/sys/bus/pci/devices/0000:b2:00.0/*e"],
    ["cat", "/sys/bus/pci/devices/0000:b2:00.0/nothing"],
    ["cat", "/sys/bus/pci/devices/0000:b2:00.0/device/below"],
    ["cat", "/sys/bus/pci/devices/0000:b2:00.0/remove"],
    ["cat", "/sys/class/firmware/secure-update0/status"],
    ["test", "-e", "/sys/bus/pci/drivers/intel-fpga-pci"],
    ["stat", "-c", "%F", "/dev/dfl-fme.0"],
    ["head", "-v", "-c", "100", "/proc/version", "/etc/os-release"],
    ["find", "/sys/bus/pci/devices/0000:b2:00.0/", "-name", "flash_count", "-printf", "%y %p\\n"],
]


def said(host: Host, argv: list[str]) -> tuple[int, str, str]:
    result = host.run(argv)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def both(original: RunningLab, reach: Any, as_found: Any, replay: Any) -> tuple[Any, Any]:
    """The recorded host, and the one that replays it."""
    assert original.bench is not None
    original.bench.fit("node1/card0", {"sr_root": "ab" * 32, "sr_cancelled": [1, 2, 5], "flash_count": 12})
    real = reach(original, "node1")
    return real, replay(as_found("node1", "card0", "card1"))


def test_it_says_and_is_the_same(both: tuple[Any, Any]) -> None:
    real, replayed = both
    for card in ("card0", "card1"):
        truth = real.truth(card)
        assert replayed.truth(card) == truth
        assert truth.flash_count == (12 if card == "card0" else 0)
        for topic in TOPICS:
            argv = ["fpgainfo", topic, truth.address]
            assert said(replayed.host, argv) == said(real.host, argv)
            claims = [info.statement() for info in parse_fpgainfo(replayed.host.run(argv).stdout)]
            assert claims == [info.statement() for info in parse_fpgainfo(real.host.run(argv).stdout)]
    assert discover(replayed.host) == discover(real.host)
    assert len(discover(real.host)) == 2
    for argv in FILE_COMMANDS:
        assert said(replayed.host, argv) == said(real.host, argv), argv
    assert replayed.unrecorded == []


def test_files_are_read_in_any_order_and_as_bytes(both: tuple[Any, Any], original: RunningLab) -> None:
    real, replayed = both
    folder = real.host.readlink("/sys/bus/pci/devices/0000:b2:00.0")
    names = real.host.run(["find", folder, "-type", "f", "-printf", "%p\\n"]).stdout.split("\n")[:-1]
    assert len(names) > 60
    for path in [*reversed(names), *names[:5]]:
        assert content(replayed.host, path) == content(real.host, path), path
    assert replayed.unrecorded == []


def content(host: Host, path: str) -> bytes | int | None:
    try:
        return host.read(path)
    except OSError as error:
        return error.errno


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["cat", "/sys/class/net/eth0/address"], "read /sys/class/net/eth0/address"),
        (["cat", "/etc/hosts"], "read /etc/hosts"),
        (["ls", "-1", "/sys/class"], "list /sys/class"),
        (["ls", "-1", "/etc"], "list /etc"),
        (
            ["cat", "/sys/bus/pci/devices/0000:3b:00.0/device"],
            "read /sys/bus/pci/devices/0000:3b:00.0/device",
        ),
        (["head", "-c", "9", "/sys/module/dfl/version"], "read /sys/module/dfl/version"),
        (["fpgainfo", "power", "0000:b2:00.0"], "run fpgainfo power 0000:b2:00.0"),
        (["fpgainfo", "fme"], "run fpgainfo fme"),
        (["lspci", "-v"], "run lspci -v"),
        (["uptime"], "run uptime"),
        (["systemctl", "is-active", "hostw"], "run systemctl is-active hostw"),
    ],
)
def test_what_was_not_recorded_is_an_error_that_names_it(still: Any, argv: list[str], named: str) -> None:
    result = still.host.run(argv)
    assert result.exit_code != 0
    assert result.stdout == ""
    assert "not in the recording" in result.stderr.lower()
    assert named.partition(" ")[2] in result.stderr
    assert named in still.unrecorded


def test_a_file_that_was_not_recorded_is_no_value_for_a_driver(as_found: Any, replay: Any) -> None:
    replayed = replay(as_found("node1", "card0"))
    with pytest.raises(OSError, match="Not in the recording"):
        replayed.host.read("/sys/class/net/eth0/address")
    with pytest.raises(OSError, match="Not in the recording") as caught:
        replayed.host.list("/sys/class/net")
    assert caught.value.errno != errno.ENOENT
    with pytest.raises(FileNotFoundError):
        replayed.host.read("/sys/bus/pci/devices/0000:b2:00.0/nothing")


def test_writing_changes_nothing_and_is_noted(as_found: Any, replay: Any, open_shell: Any) -> None:
    replayed = replay(as_found("node1", "card0"))
    said = open_shell(replayed, "echo 1 > /sys/bus/pci/devices/0000:b2:00.0/remove; echo $?; reboot")
    assert "Not in the recording" in said
    assert replayed.truth().address == "0000:b2:00.0"
    written = [what for what in replayed.unrecorded if what.startswith("write ")]
    assert [what.rpartition("/")[2] for what in written] == ["remove"]
    assert "run reboot" in replayed.unrecorded


@pytest.fixture
def open_shell() -> Callable[[Any, str], str]:
    """Runs a line on a host as a person would, past the harness's own permits."""
    import paramiko

    def run(reached: Any, line: str) -> str:
        access = reached.lab.access(reached.name)
        with paramiko.SSHClient() as client:
            client.load_host_keys(str(access.known_hosts))
            client.connect(
                access.address, access.port, access.user, key_filename=str(access.key_file), timeout=20
            )
            _, out, err = client.exec_command(line, timeout=20)
            return out.read().decode() + err.read().decode()

    return run


def test_an_address_may_be_spelled_otherwise(as_found: Any, replay: Any) -> None:
    replayed = replay(as_found("node1", "card0"))
    full = replayed.host.run(["fpgainfo", "fme", "0000:b2:00.0"]).stdout
    assert "PCIe s:b:d.f                     : 0000:B2:00.0" in full
    for spelling in ("b2:00.0", "0000:B2:00.0", "B2:00.0"):
        assert replayed.host.run(["fpgainfo", "fme", spelling]).stdout == full
    assert replayed.unrecorded == []


def test_there_is_no_card_behind_it(as_found: Any, replay: Any) -> None:
    replayed = replay(as_found("node1", "card0"))
    lab = replayed.lab
    assert not lab.offers("node1", "bench")
    assert not lab.offers("node1", "power")
    for act in (
        lambda: lab.bench.fit("node1/card0", {}),
        lambda: lab.bench.power("node1", "cycle"),
        lambda: lab.bench.power("node1", "reboot"),
        lambda: lab.bench.condition("node1", "sysfs-unreadable", True),
        lambda: lab.bench.condition("node1/card0", "busy", True),
        lambda: lab.bench.oracle("node1/card0"),
    ):
        with pytest.raises(ConfigurationError, match="is replayed from a recording"):
            act()
    assert replayed.truth().address == "0000:b2:00.0"


def test_what_a_defective_host_said_is_replayed(
    original: RunningLab, as_found: Any, replay: Any, reach: Any
) -> None:
    """Unreadable attributes, a bus of all ones, a missing tool: as they were found."""
    assert original.bench is not None
    original.bench.condition("node1", "missing-fpgainfo", True)
    original.bench.condition("node1", "sysfs-unreadable", True)
    original.bench.condition("node1/card1", "all-ones", True)
    try:
        real = reach(original, "node1")
        replayed = replay(as_found("node1", "card0", "card1"))
        assert replayed.truth("card0") == real.truth("card0")
        assert str(real.truth("card0").flash_count) == "unknown (Input/output error)"
        assert replayed.truth("card1") == real.truth("card1")
        argv = ["fpgainfo", "fme", "0000:b2:00.0"]
        assert said(real.host, argv)[0] == 127
        assert said(replayed.host, argv) == said(real.host, argv)
        config = "/sys/bus/pci/devices/0000:3b:00.0/config"
        assert replayed.host.read(config) == real.host.read(config) == b"\xff" * 256
    finally:
        original.bench.condition("node1", "missing-fpgainfo", False)
        original.bench.condition("node1", "sysfs-unreadable", False)
        original.bench.condition("node1/card1", "all-ones", False)


def test_a_card_that_is_not_there_is_recorded_as_gone(
    as_found: Any, replay: Any, original: Any, reach: Any
) -> None:
    driver = reach(original, "mover").driver()
    driver.locate()
    original.bench.condition("mover/card0", "stays-away", True)
    assert driver.reset().address is None
    try:
        recording: Recording = as_found("mover", "card0")
        assert recording.states[0].addresses == {"card0": None}
        replayed = replay(recording)
        assert not replayed.truth().on_bus
        assert discover(replayed.host) == []
    finally:
        original.bench.power("mover", "cycle")


def test_a_running_update_is_not_disturbed_by_recording(
    original: Any, as_found: Any, image: Any, reach: Any
) -> None:
    import threading

    original.bench.fit("mover/card0", {})
    original.bench.hold("mover/card0", "transferring")
    real = reach(original, "mover")
    driver = real.driver()
    flash = threading.Thread(target=driver.flash, args=(image("unsigned"), "image", None))
    flash.start()
    try:
        original.bench.wait_held("mover/card0", "transferring")
        with pytest.raises(InfrastructureError, match=r"update of mover/card0 runs \(status transferring\)"):
            as_found("mover", "card0")
    finally:
        original.bench.release("mover/card0")
        flash.join()
