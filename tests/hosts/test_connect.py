"""From an inventory's host to its driver: nothing is connected before it is used."""

from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.hosts.access import Access
from harness.hosts.connect import connect
from harness.hosts.local import LocalHost
from harness.hosts.ssh import SshHost
from harness.inventory.model import Host

NOWHERE = Access("192.0.2.1", 22, "sysadmin", Path("/nonexistent/known_hosts"), password="canary-51c2")


def test_a_local_host() -> None:
    host = connect(Host(name="bench", local=True), None)
    assert isinstance(host, LocalHost) and host.name == "bench"


def test_a_remote_host_is_not_contacted_yet() -> None:
    host = connect(Host.model_validate({"name": "far", "emulated": {}}), NOWHERE)
    assert isinstance(host, SshHost) and host.name == "far"
    host.close()
    host.close()


def test_a_remote_host_that_nothing_tells_how_to_reach() -> None:
    with pytest.raises(ConfigurationError, match="nothing says how to reach it"):
        connect(Host.model_validate({"name": "far", "emulated": {}}), None)


def test_an_access_never_shows_its_password() -> None:
    assert "canary" not in f"{NOWHERE!r} {NOWHERE} {NOWHERE.login}"
