"""Writing to a host that has no SFTP: the bytes arrive and are checked there, or nothing is left."""

import hashlib
import time
from pathlib import Path

import paramiko
import pytest

from harness.errors import HarnessError, InfrastructureError, RefusedError
from harness.hosts.permits import Authority, Permit
from harness.hosts.ssh import SshHost

CARDS = Authority("cards")


def upload(path: Path, data: bytes) -> Permit:
    return CARDS.write("upload", "bench", str(path), hashlib.sha256(data).hexdigest(), "test")


@pytest.mark.parametrize("size", [0, 1, 300_001])
def test_the_bytes_arrive(strict_peer: SshHost, tmp_path: Path, size: int) -> None:
    data = bytes(number * 7 % 251 for number in range(size))
    target = tmp_path / "it's here.bin"
    strict_peer.put(data, str(target), permit=upload(target, data))
    assert target.read_bytes() == data
    source = tmp_path / "source.bin"
    source.write_bytes(data)
    strict_peer.put(source, str(target), permit=upload(target, data))
    assert target.read_bytes() == data


def test_reading_needs_no_sftp(strict_peer: SshHost, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\x00\xff\n")
    assert strict_peer.read(str(tmp_path / "file")) == b"\x00\xff\n"
    assert strict_peer.list(str(tmp_path)) == ["file"]


def test_other_bytes_and_other_places_are_refused(strict_peer: SshHost, tmp_path: Path) -> None:
    target = tmp_path / "image.bin"
    with pytest.raises(RefusedError, match="nothing was written"):
        strict_peer.put(b"other", str(target), permit=upload(target, b"image"))
    with pytest.raises(RefusedError, match="nothing was written"):
        strict_peer.put(b"image", f"{target}2", permit=upload(target, b"image"))
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_says_why(strict_peer: SshHost, tmp_path: Path) -> None:
    data = b"x" * 100_000
    full = Path("/dev/full")
    with pytest.raises(
        InfrastructureError, match=r"100000 bytes could not be written to /dev/full.*No space"
    ):
        strict_peer.put(data, str(full), permit=upload(full, data))
    missing = tmp_path / "missing" / "image.bin"
    with pytest.raises(InfrastructureError, match=r"missing/image\.bin on bench: "):
        strict_peer.put(data, str(missing), permit=upload(missing, data))
    with pytest.raises(InfrastructureError, match="it is a directory"):
        strict_peer.put(data, str(tmp_path), permit=upload(tmp_path, data))


def test_a_source_that_changed_meanwhile_leaves_nothing(
    strict_peer: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "image.bin"
    send = paramiko.Channel.sendall
    monkeypatch.setattr(paramiko.Channel, "sendall", lambda self, data: send(self, data[:-1] + b"?"))
    with pytest.raises(InfrastructureError, match="5 bytes arrived, and not those that were sent"):
        strict_peer.put(b"image", str(target), permit=upload(target, b"image"))
    assert not target.exists()


def test_a_link_that_breaks_in_the_middle_leaves_nothing(
    strict_peer: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, data = tmp_path / "image.bin", b"x" * 500_000
    send = paramiko.Channel.sendall

    def cut(self: paramiko.Channel, piece: bytes) -> None:
        send(self, piece[:1000])
        end = time.monotonic() + 30
        while not target.exists() and time.monotonic() < end:
            time.sleep(0.005)
        assert target.exists()
        self.get_transport().close()

    monkeypatch.setattr(paramiko.Channel, "sendall", cut)
    with pytest.raises(HarnessError):
        strict_peer.put(data, str(target), permit=upload(target, data))
    end = time.monotonic() + 30
    while target.exists() and time.monotonic() < end:
        time.sleep(0.005)
    assert not target.exists()  # the host itself has removed it
