"""A lab whose disk is full: it stops loudly, and its cards are what a power cut at that instant leaves."""

from __future__ import annotations

import errno
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cards.driver import CardDriver
from harness.cards.truth import read_truth
from harness.cli.lab import _described
from harness.errors import HarnessError, InfrastructureError
from harness.hosts.ssh import SshHost
from harness.lab.background import BackgroundLab
from harness.lab.running import RunningLab, start_lab
from harness.record import History

ADDRESS = "0000:b2:00.0"
#: What the disk takes of one file: a card's state, and not a page of 16 KiB.
ROOM = 9000


def take_room(lab: RunningLab, size: int = ROOM) -> None:
    """Have the disk take no file longer than ``size`` from the lab, as if it were full."""
    assert lab.process_id is not None
    _, hard = resource.prlimit(lab.process_id, resource.RLIMIT_FSIZE)
    resource.prlimit(lab.process_id, resource.RLIMIT_FSIZE, (size, hard))


def flash_by_hand(lab: RunningLab, host: SshHost, data: bytes) -> int:
    """Flash ``data`` past the drivers, as a person on the host would."""
    from paramiko import SSHClient

    access = lab.access("left")
    assert access is not None
    with SSHClient() as client:
        client.load_host_keys(str(access.known_hosts))
        client.connect(access.address, access.port, access.user, key_filename=str(access.key_file))
        with client.open_sftp() as files, files.open("/tmp/image.bin", "w") as image:
            image.write(data)
        channel = client.get_transport().open_session()  # type: ignore[union-attr]
        channel.exec_command(f"fpgasupdate -y /tmp/image.bin {ADDRESS}")
        return channel.recv_exit_status()


@pytest.fixture
def host(request: pytest.FixtureRequest) -> Callable[[RunningLab], SshHost]:
    def connect(lab: RunningLab) -> SshHost:
        access = lab.access("left")
        assert access is not None
        found = SshHost("left", access)
        request.addfinalizer(found.close)
        return found

    return connect


def wait_until_out_of_order(lab: RunningLab) -> InfrastructureError:
    assert lab.bench is not None
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            lab.bench.lab_time()
        except InfrastructureError as error:
            return error
    raise AssertionError("the lab does not notice that its disk is full")


def test_disk_that_fills_up_in_copying_ends_the_lab_as_a_power_cut_would(
    inventory: Any, tmp_path: Path, host: Callable[[RunningLab], SshHost], image: Callable[[str], bytes]
) -> None:
    with start_lab(inventory, state_dir=tmp_path) as lab:
        assert lab.bench is not None
        lab.bench.fit("left/card0", {"flash_count": 7})
        take_room(lab)
        assert flash_by_hand(lab, host(lab), image("unsigned")) != 0
        error = wait_until_out_of_order(lab)
        assert f"{tmp_path / 'cards/left/card0'} could not be written" in error.message
        assert "File too large" in error.message
        for ask in (lambda: lab.bench.fit("left/card0", {}), lambda: lab.bench.power("left", "on")):
            with pytest.raises(InfrastructureError, match="could not be written"):
                ask()
        with pytest.raises(InfrastructureError):
            read_truth(host(lab), ADDRESS, deadline=5.0)
    with start_lab(inventory, state_dir=tmp_path) as lab:
        assert lab.bench is not None
        found = lab.bench.oracle("left/card0")
        # Erased and counted, as documents have it, and not yet written: no mixture, and nothing lost.
        assert (found["flash_count"], found["user_page"], found["running_page"]) == (8, "", "factory")
        assert flash_by_hand(lab, host(lab), image("unsigned")) == 0
        assert not list(tmp_path.rglob("*.new"))


def test_no_room_for_the_first_state_is_why_the_lab_does_not_start(inventory: Any, tmp_path: Path) -> None:
    (tmp_path / "cards").write_text("a file where a folder is due")
    with pytest.raises(InfrastructureError, match=r"cards/left/card0 could not be made: .*Not a directory"):
        start_lab(inventory, state_dir=tmp_path)


def test_fit_that_the_disk_does_not_take_is_an_error_of_the_lab(inventory: Any, tmp_path: Path) -> None:
    with start_lab(inventory, state_dir=tmp_path) as lab:
        assert lab.bench is not None
        lab.bench.fit("left/card0", {"flash_count": 7})
        take_room(lab, 10)
        with pytest.raises(HarnessError) as caught:
            lab.bench.fit("left/card0", {"flash_count": 9})
        assert isinstance(caught.value, InfrastructureError)
        assert "could not be written" in caught.value.message
        assert "Free the disk" in caught.value.hint
    with start_lab(inventory, state_dir=tmp_path) as lab:
        assert lab.bench is not None
        assert lab.bench.oracle("left/card0")["flash_count"] == 7


@pytest.mark.parametrize(
    ("condition", "said"),
    [("disk-full", "the disk is full: 0 bytes are free there"), ("disk-read-only", "could not be written")],
)
def test_image_that_the_hosts_disk_does_not_take_is_not_flashed(
    lab: Any,
    inventory: Any,
    tmp_path: Path,
    host: Callable[[RunningLab], SshHost],
    image: Callable[[str], bytes],
    condition: str,
    said: str,
) -> None:
    _, entry = inventory.lab(None).card("left/card0")
    with History(tmp_path / "history.jsonl") as history:
        card = CardDriver(host(lab), entry, history, real=False)
        lab.bench.condition("left", condition, True)
        try:
            with pytest.raises(InfrastructureError) as caught:
                card.flash(image("unsigned"), "unsigned", None)
            assert said in caught.value.message
            assert "/tmp/hil-" in caught.value.message
        finally:
            lab.bench.condition("left", condition, False)
        assert card.truth().flash_count == 0
        assert lab.bench.oracle("left/card0")["flash_count"] == 0
        assert [name for name in card.host.list("/tmp") if name.startswith("hil-")] == []
        kinds = [record.kind for record in history.records]
        assert kinds == ["intent", "observation", "completion"]
        assert card.flash(image("unsigned"), "unsigned", None).exit_code == 0


def test_lab_that_nobody_could_find_again_does_not_go_on(
    inventory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = BackgroundLab(tmp_path / "small")

    real = os.open

    def full(path: Any, *words: Any, **options: Any) -> int:
        if str(path).endswith("lab.new"):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path, *words, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        with pytest.raises(InfrastructureError, match=r"small.* No space left on device"):
            lab.up(inventory)
    assert lab.pid() is None
    assert not lab.down()
    lab.up(inventory)
    assert lab.down()


def test_status_tells_why_a_lab_is_out_of_order(inventory: Any, tmp_path: Path) -> None:
    lab = BackgroundLab(tmp_path / "small")
    lab.up(inventory)
    try:
        with lab.attach(inventory) as attached:
            take_room(attached, 10)
            assert attached.bench is not None
            with pytest.raises(InfrastructureError):
                attached.bench.fit("left/card0", {"flash_count": 9})
        assert "could not be written" in _described(lab, inventory)["out_of_order"]
    finally:
        assert lab.down()
