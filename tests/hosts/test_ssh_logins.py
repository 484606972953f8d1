"""Ways to log in to a real OpenSSH server: certificates, encrypted keys, an agent; and addresses of IPv6."""

import getpass
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.mounted import blocked
from support.openssh import OpenSsh

from harness.errors import ConfigurationError, InfrastructureError
from harness.hosts.access import Access
from harness.hosts.ssh import SshHost


def keygen(*words: str | Path) -> None:
    subprocess.run(["ssh-keygen", "-q", *words], check=True, stdin=subprocess.DEVNULL)


def logs_in(access: Access) -> bool:
    host = SshHost("bench", access)
    try:
        return host.run(["true"]).exit_code == 0
    finally:
        host.close()


@pytest.fixture
def certified(strict: OpenSsh, tmp_path: Path) -> Path:
    """A key that no server knows, with a certificate of an authority that `strict` trusts."""
    key = tmp_path / "id_ed25519"
    keygen("-t", "ed25519", "-N", "", "-f", key)
    sign(strict, key, "+1h")
    return key


def sign(strict: OpenSsh, key: Path, until: str) -> None:
    authority = strict.key_file.parent / "ca"
    keygen("-s", authority, "-I", "test", "-n", getpass.getuser(), "-V", f"-2h:{until}", f"{key}.pub")


def test_a_certificate_beside_the_key_is_used(strict_access: Access, certified: Path) -> None:
    assert logs_in(replace(strict_access, key_file=certified))
    certificate = certified.with_name("id_ed25519-cert.pub")
    certificate.unlink()
    with pytest.raises(InfrastructureError, match=r"refused the login .* with the key \S+id_ed25519\."):
        logs_in(replace(strict_access, key_file=certified))


def test_a_certificate_that_is_over_is_named(strict: OpenSsh, strict_access: Access, certified: Path) -> None:
    sign(strict, certified, "-1h")
    with pytest.raises(InfrastructureError, match=r"and its certificate .*id_ed25519-cert.pub"):
        logs_in(replace(strict_access, key_file=certified))


def test_a_certificate_that_is_none(strict_access: Access, certified: Path) -> None:
    certified.with_name("id_ed25519-cert.pub").write_text("no certificate\n")
    with pytest.raises(ConfigurationError, match=r"has a certificate beside it, .*, that is none"):
        logs_in(replace(strict_access, key_file=certified))


def test_an_encrypted_key_is_opened_by_its_passphrase(
    openssh: OpenSsh, access: Access, tmp_path: Path
) -> None:
    key, secret = tmp_path / "key", "canary-5d21c7"
    keygen("-t", "ed25519", "-a", "1", "-N", secret, "-f", key)
    known = openssh.key_file.parent / "authorized_keys"
    with known.open("a") as keys:
        keys.write((tmp_path / "key.pub").read_text())
    encrypted = replace(access, key_file=key, passphrase=secret)
    assert logs_in(encrypted)
    assert secret not in repr(encrypted)
    with pytest.raises(ConfigurationError, match="needs a passphrase") as failure:
        logs_in(replace(encrypted, passphrase=None))
    assert "passphrase:" in failure.value.hint
    with pytest.raises(ConfigurationError, match="is not opened by its passphrase") as failure:
        logs_in(replace(encrypted, passphrase="canary-other"))
    assert "canary-other" not in str(failure.value)


def test_a_passphrase_for_a_key_that_has_none(access: Access) -> None:
    with pytest.raises(ConfigurationError, match="needs no passphrase"):
        logs_in(replace(access, passphrase="sesame"))


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A real SSH agent, without keys."""
    path = str(tmp_path_factory.mktemp("a") / "s")
    started = subprocess.run(["ssh-agent", "-a", path], capture_output=True, text=True, check=True)
    found = re.search(r"SSH_AGENT_PID=(\d+)", started.stdout)
    assert found is not None
    monkeypatch.setenv("SSH_AUTH_SOCK", path)
    monkeypatch.setenv("SSH_AGENT_PID", found[1])
    yield
    subprocess.run(["ssh-agent", "-k"], capture_output=True, env=os.environ, check=True)


def test_keys_of_an_agent(agent: None, access: Access) -> None:
    by_agent = replace(access, key_file=None, agent=True)
    with pytest.raises(InfrastructureError, match="with the SSH agent"):
        logs_in(by_agent)
    subprocess.run(["ssh-add", "-q", str(access.key_file)], check=True, capture_output=True)
    assert logs_in(by_agent)


# -- IPv6 ---------------------------------------------------------------------------------------------


@pytest.fixture
def v6(tmp_path: Path) -> Iterator[OpenSsh]:
    """A server on ::1."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        blocked(f"this machine has no ::1: {error.strerror}")
    server = OpenSsh(tmp_path / "v6", address="::1")
    try:
        server.start()
        yield server
    finally:
        server.stop()


def test_an_address_of_ipv6(v6: OpenSsh, access: Access, tmp_path: Path) -> None:
    there = replace(
        access, address="::1", port=v6.port, known_hosts=Path(v6.known_hosts), key_file=v6.key_file
    )
    assert there.known_as == f"[::1]:{v6.port}"
    assert logs_in(there)
    Path(v6.known_hosts).write_text(f"::1 {v6.host_key}")
    with pytest.raises(InfrastructureError, match=rf"host key of bench at \[::1\]:{v6.port} is not in"):
        logs_in(there)


def test_names_in_files_of_known_hosts(access: Access) -> None:
    """As sshd(8) has them, and as `ssh` writes them: brackets only around what has a port of its own."""
    assert replace(access, address="fe80::1%eth0", port=22).known_as == "fe80::1%eth0"
    assert replace(access, address="10.10.7.3", port=22).known_as == "10.10.7.3"
    assert replace(access, address="10.10.7.3", port=2222).known_as == "[10.10.7.3]:2222"
    assert replace(access, address="fe80::1%eth0", port=22).where == "[fe80::1%eth0]:22"
