"""A lab starts from an inventory, ends with its process however that dies, and keeps its cards if asked."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.inventory.load import load_inventory
from harness.lab.emulator import EmulatorProcess
from harness.lab.running import RunningLab, start_lab

ROOT_A = "ab" * 32


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_closed_lab_leaves_nothing(inventory: Any) -> None:
    with start_lab(inventory) as lab:
        access = lab.access("left")
        pid = lab.process_id
        assert access is not None
        assert access.key_file is not None
        assert access.key_file.stat().st_mode & 0o777 == 0o600
        assert not refused(access.port)
    assert not alive(pid or 0)
    assert refused(access.port)
    assert not access.key_file.parent.exists()
    lab.close()


def test_cards_begin_as_the_inventory_says(shared_lab: Any, inventory: Any) -> None:
    with start_lab(inventory) as lab:
        assert lab.bench is not None
        state = lab.bench.oracle("left/card0")
    assert (state["sr_root"], state["sr_cancelled"], state["flash_count"]) == (ROOT_A, [3], 12)
    assert state["address"] == "0000:b2:00.0"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_lab_dies_with_its_parent(inventory_file: Path, number: signal.Signals) -> None:
    script = (
        # A shell starts background jobs with SIGINT ignored, and children inherit that.
        "import signal, time; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from harness.inventory.load import load_inventory;"
        "from harness.lab.running import start_lab;"
        f"lab = start_lab(load_inventory({str(inventory_file)!r})); access = lab.access('left');"
        "print(lab.process_id, access.port, access.key_file, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    try:
        pid, port, key_file = parent.stdout.readline().split()
        watched = os.pidfd_open(int(pid))
        parent.send_signal(number)
        parent.wait(20)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    ended, _, _ = select.select([watched], [], [], 10)
    os.close(watched)
    assert ended, "the lab outlived its parent"
    assert refused(int(port))
    assert not Path(key_file).parent.exists()


def test_two_labs_stand_side_by_side(inventory: Any) -> None:
    with start_lab(inventory) as one, start_lab(inventory) as other:
        assert one.bench is not None
        assert other.bench is not None
        one.bench.fit("left/card0", {"flash_count": 77})
        assert other.bench.oracle("left/card0")["flash_count"] == 12
        first, second = one.access("left"), other.access("left")
        assert first is not None
        assert second is not None
        assert first.port != second.port


def test_cards_keep_their_flash_where_a_state_directory_is_given(inventory: Any, tmp_path: Path) -> None:
    with start_lab(inventory, state_dir=tmp_path) as lab:
        assert lab.bench is not None
        lab.bench.fit("left/card0", {"sr_root": "cd" * 32, "flash_count": 5})
    with start_lab(inventory, state_dir=tmp_path) as lab:
        assert lab.bench is not None
        state = lab.bench.oracle("left/card0")
    assert (state["sr_root"], state["flash_count"]) == ("cd" * 32, 5)


def test_host_keys_stay_the_same_where_a_state_directory_is_given(inventory: Any, tmp_path: Path) -> None:
    def keys(lab: RunningLab) -> list[str]:
        access = lab.access("left")
        assert access is not None
        return sorted(line.split()[2] for line in access.known_hosts.read_text().splitlines())

    with start_lab(inventory, state_dir=tmp_path) as lab:
        first = keys(lab)
    with start_lab(inventory, state_dir=tmp_path) as lab:
        assert keys(lab) == first


def test_damaged_state_is_an_error_that_names_the_card(inventory: Any, tmp_path: Path) -> None:
    with start_lab(inventory, state_dir=tmp_path):
        pass
    for stored in (tmp_path / "cards/left/card0").iterdir():
        stored.write_text("nonsense")
    with pytest.raises((ConfigurationError, InfrastructureError)) as caught:
        start_lab(inventory, state_dir=tmp_path)
    assert "left/card0" in caught.value.message


def test_emulator_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(InfrastructureError, match="did not start"):
        EmulatorProcess({"name": "broken", "hosts": []})


def test_real_hosts_are_reached_as_the_inventory_says(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_TEST_PASSWORD", "not-a-real-one")
    access = lab.access("reached")
    assert (access.address, access.port, access.user) == ("lab-host.example", 22, "sysadmin")
    assert access.password == "not-a-real-one"
    assert access.key_file is None
    assert "not-a-real-one" not in repr(access)


def test_power_is_a_capability(lab: Any) -> None:
    assert lab.offers("left", "power")
    assert not lab.offers("right", "power")
    assert lab.offers("reached", "power")
    assert lab.offers("left", "bench")
    assert not lab.offers("reached", "bench")
    with pytest.raises(ConfigurationError, match="nonsense"):
        lab.offers("left", "nonsense")
    with pytest.raises(BlockedError, match="right"):
        lab.power("right", "off")


def test_real_power_is_switched_by_its_command(lab: Any) -> None:
    lab.power("reached", "off")
    with pytest.raises(InfrastructureError, match="switches reached on failed: exit code 1"):
        lab.power("reached", "on")
    with pytest.raises(BlockedError, match="reboot"):
        lab.power("reached", "reboot")


def test_lab_without_emulated_hosts_needs_no_process(tmp_path: Path) -> None:
    file = tmp_path / "inventory.yaml"
    file.write_text("version: 1\ndefault_lab: here\nlabs: {here: {hosts: {me: {local: true}}}}\n")
    with start_lab(load_inventory(file)) as lab:
        assert lab.bench is None
        assert lab.process_id is None
        assert lab.access("me") is None


def test_recipe_names_stand_for_their_root(tmp_path: Path) -> None:
    project = Path(__file__).resolve().parents[2]
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures/images.yaml").write_text((project / "fixtures/images.yaml").read_text())
    text = """
version: 1
default_lab: small
labs:
  small:
    hosts:
      left:
        emulated: {}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:77:01:00
            emulated: {sr_root: ROOT}
"""
    file = tmp_path / "inventory.yaml"
    file.write_text(text.replace("ROOT", "root-key-A"))
    with start_lab(load_inventory(file)) as lab:
        assert lab.bench is not None
        assert len(lab.bench.oracle("left/card0")["sr_root"]) == 64
    file.write_text(text.replace("ROOT", "no-such-recipe"))
    with pytest.raises(ConfigurationError, match=r"left/card0.*no-such-recipe") as caught:
        start_lab(load_inventory(file))
    assert "root-key-A" in caught.value.hint


def test_fifty_hosts_with_ten_cards_each_fit_in_one_process(tmp_path: Path) -> None:
    hosts = {
        f"host{number}": {
            "emulated": {"hostname": f"host{number}"},
            "cards": {
                f"card{card}": {
                    "address": f"0000:{0x10 + 0x10 * card:02x}:00.0",
                    "identity": f"64:4c:36:{number:02x}:{card:02x}:00",
                }
                for card in range(10)
            },
        }
        for number in range(50)
    }
    file = tmp_path / "inventory.yaml"
    file.write_text(json.dumps({"version": 1, "default_lab": "big", "labs": {"big": {"hosts": hosts}}}))
    inventory = load_inventory(file)
    with start_lab(inventory) as lab:
        status = Path(f"/proc/{lab.process_id}/status").read_text()
        resident = int(status.partition("VmRSS:")[2].split()[0]) / 1024
        access = lab.access("host49")
        assert access is not None
        assert not refused(access.port)
    assert resident < 400
