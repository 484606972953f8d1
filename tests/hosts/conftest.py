"""Real SSH servers for the tests of hosts."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.openssh import OpenSsh, client_environment
from support.ssh_peer import access, openssh, peer

from harness.hosts.access import Access
from harness.hosts.ssh import SshHost

__all__ = ["access", "openssh", "peer", "strict", "strict_access", "strict_peer"]


@pytest.fixture(scope="session", autouse=True)
def ssh_programs() -> Iterator[None]:
    """ssh-keygen, ssh-agent and ssh-add are found in PATH."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in client_environment().items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSsh]:
    """A server as hardened ones are: no SFTP, forwards nothing, and takes what `ca` has signed."""
    folder = tmp_path_factory.mktemp("strict")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "ca"], check=True)
    settings = f"AllowTcpForwarding no\nTrustedUserCAKeys {folder}/ca.pub\n"
    server = OpenSsh(folder, sftp=False, settings=settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def strict_access(strict: OpenSsh, access: Access) -> Access:
    return replace(access, port=strict.port, known_hosts=Path(strict.known_hosts), key_file=strict.key_file)


@pytest.fixture
def strict_peer(strict_access: Access) -> Iterator[SshHost]:
    host = SshHost("bench", strict_access)
    yield host
    host.close()
