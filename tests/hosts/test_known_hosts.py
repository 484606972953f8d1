"""Files of known hosts: what OpenSSH's own tools read and write, and that nothing else of a file changes."""

import socket
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from support.openssh import OpenSsh

from harness.errors import ConfigurationError, UnreachableError
from harness.hosts.access import Access
from harness.hosts.host_keys import shown_keys
from harness.hosts.known_hosts import HostKey, keep, keys_of, revoked, with_keys

ED = HostKey("ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIFm4p3Hk8nT7cQe3fYV9m1oGzj5nZ0Y2kq7r3b8d6wXs")
OLD = HostKey("ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIOLDp3Hk8nT7cQe3fYV9m1oGzj5nZ0Y2kq7r3b8d6wXs")
RSA = HostKey("ssh-rsa", "AAAAB3NzaC1yc2EAAAADAQABAAAAQQC7")
NAME = "[10.10.7.3]:2222"


def keygen(*words: str | Path) -> str:
    return subprocess.run(["ssh-keygen", *words], capture_output=True, text=True, check=False).stdout


def test_fingerprints_are_those_of_ssh_keygen(tmp_path: Path) -> None:
    file = tmp_path / "key.pub"
    file.write_text(f"{ED.kind} {ED.content}\n")
    assert ED.fingerprint == keygen("-lf", file).split()[1]
    assert HostKey("ssh-ed25519", "???").fingerprint == "unreadable"


@pytest.mark.parametrize("name", [NAME, "10.10.7.3", "fe80::1%eth0", "[::1]:2222"])
def test_ssh_keygen_finds_what_was_kept(tmp_path: Path, name: str) -> None:
    file = tmp_path / "known_hosts"
    keep(file, name, [ED, RSA])
    assert ED.content in keygen("-F", name, "-f", file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert keys_of(file.read_text(), name) == [ED, RSA]


def test_hashed_names_are_found_and_stay_hashed(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"other.example {RSA.kind} {RSA.content}\n{NAME} {OLD.kind} {OLD.content}\n")
    keygen("-H", "-f", file)
    assert keys_of(file.read_text(), NAME) == [OLD]
    keep(file, NAME, [ED])
    text = file.read_text()
    assert "10.10.7.3" not in text and keys_of(text, NAME) == [ED]
    assert ED.content in keygen("-F", NAME, "-f", file)
    assert keys_of(text, "other.example") == [RSA]


def test_all_else_of_a_file_stays() -> None:
    text = (
        "# by hand\n\n"
        f"@cert-authority *.example {RSA.kind} {RSA.content}\n"
        f"other,{NAME} {OLD.kind} {OLD.content} comment\n"
        f"{NAME} {RSA.kind} {RSA.content}\n"
        "what is this\n"
    )
    assert with_keys(text, NAME, [ED]) == (
        text.replace(f"other,{NAME} ", "other ") + f"{NAME} {ED.kind} {ED.content}\n"
    )


def test_marks_are_no_keys_of_a_host() -> None:
    text = f"@revoked {NAME} {ED.kind} {ED.content}\n@revoked\n"
    assert keys_of(text, NAME) == [] and revoked(text) == {ED}


def test_a_link_stays_a_link_and_a_mode_a_mode(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text("# shared\n")
    real.chmod(0o644)
    link = tmp_path / "known_hosts"
    link.symlink_to(real)
    keep(link, NAME, [ED])
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o644
    assert keys_of(real.read_text(), NAME) == [ED]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["known_hosts", "real"]


def test_several_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    names = [f"host{number}" for number in range(12)]
    threads = [threading.Thread(target=keep, args=(file, name, [ED])) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(keys_of(file.read_text(), name) == [ED] for name in names)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"cannot be written: Not a directory|File exists"):
        keep(tmp_path / "file" / "known_hosts", NAME, [ED])


def test_the_keys_that_a_server_shows(openssh: OpenSsh, access: Access) -> None:
    kind, content = openssh.host_key.split()
    assert shown_keys("bench", access) == [HostKey(kind, content)]  # this one has no other


def test_who_is_no_server_shows_none(access: Access) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(UnreachableError, match="shows no host key"),
    ):
        shown_keys("bench", replace(access, port=server.getsockname()[1]), 0.3)
