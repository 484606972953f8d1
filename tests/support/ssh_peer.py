"""The fixtures of tests that talk to a real OpenSSH server; import them into a conftest."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.openssh import OpenSsh

from harness.hosts.access import Access
from harness.hosts.ssh import SshHost


@pytest.fixture(scope="session")
def openssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSsh]:
    """One real server for the test process."""
    server = OpenSsh(tmp_path_factory.mktemp("openssh"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def access(openssh: OpenSsh) -> Access:
    return Access(
        "127.0.0.1", openssh.port, openssh.user, Path(openssh.known_hosts), key_file=openssh.key_file
    )


@pytest.fixture
def peer(access: Access) -> Iterator[SshHost]:
    """A host behind the real server."""
    found = SshHost("bench", access)
    yield found
    found.close()
