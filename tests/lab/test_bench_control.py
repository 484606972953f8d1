"""The bench: what an emulated lab offers and no real one does."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.errors import ConfigurationError, DeadlineError, InfrastructureError
from harness.lab.bench import Bench

ADDRESS = "lspci -Dm -d 8086:0b30"


@pytest.fixture
def left(lab: Any, open_ssh: Any) -> Any:
    return open_ssh(lab, "left")


def test_fitted_card_has_the_state_given_and_stays_at_its_address(lab: Any, left: Any) -> None:
    lab.bench.fit("left/card0", {"sr_root": "ef" * 32, "sr_cancelled": [0, 5], "flash_count": 3})
    security = "/sys/bus/platform/drivers/intel-m10bmc-sec-update/*.auto/security"
    out = left.run(
        f"cat {security}/sr_root_entry_hash {security}/sr_canceled_csks {security}/flash_count"
    ).stdout
    assert out.decode() == f"{'ef' * 32}\n0,5\n3\n"
    assert left.run(ADDRESS).stdout.startswith(b"0000:b2:00.0 ")


def test_fitted_profile_changes_how_the_card_behaves(lab: Any, left: Any) -> None:
    assert left.run("lspci -n -d 8086:0b32").stdout != b""
    lab.bench.fit("left/card0", {}, {"prepare_seconds": 3.0})
    with pytest.raises(ConfigurationError, match="nonsense"):
        lab.bench.fit("left/card0", {}, {"nonsense": 1})
    lab.bench.fit("left/card0", {}, {})


def test_moves_to_is_followed_at_the_next_reset(lab: Any, left: Any) -> None:
    lab.bench.moves_to("left/card0", "0000:b6:00.0")
    assert left.run("rsu bmcimg b2:00.0").returncode == 0
    assert left.run(ADDRESS).stdout.startswith(b"0000:b6:00.0 ")
    lab.bench.moves_to("left/card0", "0000:b2:00.0")
    lab.power("left", "cycle")
    assert left.run(ADDRESS).stdout.startswith(b"0000:b2:00.0 ")


def test_conditions_of_cards_and_hosts_come_and_go(lab: Any, left: Any) -> None:
    lab.bench.condition("left/card0", "no-security-group", True)
    assert left.run("ls /sys/bus/platform/drivers/*/*.auto/security").returncode == 2
    lab.bench.condition("left/card0", "no-security-group", False)
    assert left.run("ls /sys/bus/platform/drivers/*/*.auto/security").returncode == 0
    lab.bench.condition("left", "missing-rsu", True)
    assert left.run("rsu bmcimg").returncode == 127
    lab.bench.condition("left", "missing-rsu", False)


def test_waiting_for_a_hold_ends_when_the_phase_is_there_and_not_before(
    lab: Any, left: Any, image: Any
) -> None:
    lab.bench.hold("left/card0", "authenticating")
    with pytest.raises(DeadlineError, match=r"left/card0.*'authenticating'.*'idle'"):
        lab.bench.wait_held("left/card0", "authenticating", deadline=0.05)
    left.run("cat > /tmp/user.bin", stdin=image("unsigned"))
    command = left.command("fpgasupdate -y /tmp/user.bin b2:00.0")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as tool:
        lab.bench.wait_held("left/card0", "authenticating")
        assert lab.bench.held("left/card0") == "authenticating"
        before = lab.bench.lab_time()
        assert lab.bench.lab_time() == before
        lab.bench.release("left/card0")
    assert tool.returncode == 0
    assert lab.bench.held("left/card0") is None


def test_lab_time_is_stopped_on_its_way_and_goes_on_when_it_is_released(
    lab: Any, left: Any, image: Any
) -> None:
    lab.bench.hold("left/card0", "preparing")
    left.run("cat > /tmp/user.bin", stdin=image("unsigned"))
    command = left.command("fpgasupdate -y /tmp/user.bin b2:00.0")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as tool:
        lab.bench.wait_held("left/card0", "preparing")
        began = lab.bench.lab_time()
        lab.bench.stop_time(1.0)
        lab.bench.release("left/card0")
        lab.bench.wait_stopped()
        assert lab.bench.lab_time() == began + 1.0
        lab.bench.stop_time(0.5)
        lab.bench.wait_stopped()
        assert lab.bench.lab_time() == began + 1.5
        assert tool.poll() is None
        lab.bench.release_time()
    assert tool.returncode == 0
    assert lab.bench.lab_time() > began + 1.5


def test_a_stop_that_is_not_waited_for_draws_no_time(lab: Any) -> None:
    began = lab.bench.lab_time()
    lab.bench.stop_time(60.0)
    assert lab.bench.lab_time() == began
    lab.bench.release_time()


def test_lab_time_that_something_else_holds_does_not_come_to_its_stop(
    lab: Any, left: Any, image: Any
) -> None:
    lab.bench.hold("left/card0", "transferring")
    left.run("cat > /tmp/user.bin", stdin=image("unsigned"))
    command = left.command("fpgasupdate -y /tmp/user.bin b2:00.0")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as tool:
        lab.bench.wait_held("left/card0", "transferring")
        lab.bench.stop_time(3000.0)
        with pytest.raises(DeadlineError, match="did not come to where it stops"):
            lab.bench.wait_stopped(deadline=0.05)
        lab.bench.release_time()
        lab.bench.release("left/card0")
    assert tool.returncode == 0


def test_a_stop_that_nobody_has_asked_for_is_not_waited_for(lab: Any) -> None:
    lab.bench.release_time()
    with pytest.raises(ConfigurationError, match="Nothing stops"):
        lab.bench.wait_stopped()
    for seconds in (0.0, -1.0, float("nan"), 1e9):
        with pytest.raises(ConfigurationError, match="Lab time is stopped"):
            lab.bench.stop_time(seconds)


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda bench: bench.fit("left/card9", {}), "left/card0"),
        (lambda bench: bench.power("nowhere", "off"), "left"),
        (lambda bench: bench.power("left", "sideways"), "reboot"),
        (lambda bench: bench.hold("left/card0", "dreaming"), "copying"),
        (lambda bench: bench.condition("left/card0", "sad", True), "all-ones"),
        (lambda bench: bench.condition("left", "sad", True), "no-image-load"),
        (lambda bench: bench.fit("left/card0", {"sr_rot": None}), "sr_root"),
    ],
)
def test_wrong_names_are_answered_with_the_known_ones(lab: Any, act: Any, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        act(lab.bench)
    assert text in caught.value.hint


def test_lab_that_is_gone_is_an_infrastructure_error_and_stopping_it_is_none(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "gone")
    with pytest.raises(InfrastructureError, match="does not answer"):
        bench.lab_time()
    bench.stop()
