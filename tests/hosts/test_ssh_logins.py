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

from harness.errors import ConfigurationError, InfrastructureError, UnreachableError
from harness.hosts.access import Access, Jump
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


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_certificate_in_an_agent_is_used(
    agent: None, strict: OpenSsh, strict_access: Access, tmp_path: Path, kind: str
) -> None:
    """The agent has the key as well, which this server does not know: the certificate is tried after it."""
    key = tmp_path / "signed"
    keygen("-t", kind, "-N", "", "-f", key)
    subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)
    by_agent = replace(strict_access, key_file=None, agent=True)
    with pytest.raises(InfrastructureError, match="with the SSH agent"):
        logs_in(by_agent)
    sign(strict, key, "+1h")
    subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)
    assert logs_in(by_agent)


def test_an_agent_may_hold_the_certificate_alone(
    agent: None, strict: OpenSsh, strict_access: Access, tmp_path: Path
) -> None:
    key = tmp_path / "signed"
    keygen("-t", "rsa", "-N", "", "-f", key)
    sign(strict, key, "+1h")
    subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)
    (tmp_path / "signed-cert.pub").unlink()
    subprocess.run(["ssh-add", "-q", "-d", str(key)], check=True, capture_output=True)
    held = subprocess.run(["ssh-add", "-l"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(held) == 1 and held[0].endswith("(RSA-CERT)")
    assert logs_in(replace(strict_access, key_file=None, agent=True))


def test_an_agent_that_is_not_there_is_told(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(
        InfrastructureError, match="could not be tried with the SSH agent: there is no agent"
    ) as told:
        logs_in(replace(access, key_file=None, agent=True))
    assert "ssh-add" in told.value.hint


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


def scoped_address() -> str:
    """Return a link-local address of this machine with its scope; BLOCKED where it has none."""
    for line in Path("/proc/net/if_inet6").read_text().splitlines():
        address, _, _, scope, _, interface = line.split()
        if scope == "20":  # link, as the kernel has it (RFC 4007)
            packed = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(address))
            return f"{packed}%{interface}"
    blocked("no interface of this machine has a link-local address")
    raise AssertionError


@pytest.fixture
def on_link(tmp_path: Path) -> Iterator[OpenSsh]:
    """A server at a link-local address of this machine."""
    server = OpenSsh(tmp_path / "on_link", address=scoped_address())
    try:
        server.start()
        yield server
    finally:
        server.stop()


def test_a_scoped_link_local_address(on_link: OpenSsh, access: Access) -> None:
    there = replace(
        access,
        address=on_link.address,
        port=on_link.port,
        known_hosts=Path(on_link.known_hosts),
        key_file=on_link.key_file,
    )
    assert there.known_as == f"[{on_link.address}]:{on_link.port}"
    assert logs_in(there)
    behind = replace(there, jump=Jump("bastion", access))
    assert logs_in(behind), "its scope is the jump host's, which is this machine, too"


@pytest.mark.parametrize("address", ["fe80::5054:ff:fe12:3456%no-such-if", "fe80::5054:ff:fe12:3456"])
def test_a_link_that_is_not_there_or_not_named_is_told(access: Access, address: str) -> None:
    with pytest.raises(UnreachableError, match=r"fe80::5054:ff:fe12:3456") as told:
        logs_in(replace(access, address=address))
    assert "%" in told.value.hint
