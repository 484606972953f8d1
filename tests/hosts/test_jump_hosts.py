"""Hosts behind jump hosts, over real OpenSSH servers: one connection to each jump, each key checked."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.openssh import OpenSsh
from support.relay import Relay

from harness.errors import InfrastructureError, UnreachableError
from harness.hosts.access import Access, Jump
from harness.hosts.ssh import SshHost

Hosts = Callable[..., SshHost]


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    """Makes hosts that are closed at the end."""
    made: list[SshHost] = []

    def make(access: Access, name: str = "bench") -> SshHost:
        made.append(SshHost(name, access))
        return made[-1]

    yield make
    for host in made:
        host.close()


@pytest.fixture
def relay(openssh: OpenSsh) -> Iterator[Relay]:
    relay = Relay(openssh.port)
    yield relay
    relay.close()


@pytest.fixture
def bastion(relay: Relay, openssh: OpenSsh, access: Access, tmp_path: Path) -> Jump:
    known = tmp_path / "bastion_known"
    known.write_text(f"[127.0.0.1]:{relay.port} {openssh.host_key}")
    return Jump("bastion", replace(access, port=relay.port, known_hosts=known))


def test_a_chain_of_jump_hosts(hosts: Hosts, access: Access, bastion: Jump, tmp_path: Path) -> None:
    second = Jump("second", replace(access, jump=bastion))
    last = replace(access, jump=second)
    assert [hop.name for hop in last.hops()] == ["bastion", "second"]
    (tmp_path / "file").write_text("content")
    assert hosts(last).read(str(tmp_path / "file")) == b"content"


def test_hosts_share_the_connection_to_their_jump_host(
    hosts: Hosts, access: Access, bastion: Jump, relay: Relay
) -> None:
    through = replace(access, jump=bastion)
    first, second = hosts(through, "first"), hosts(through, "second")
    threads = [threading.Thread(target=host.run, args=(["true"],)) for host in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert relay.connections == 1
    first.close()
    assert second.run(["true"]).exit_code == 0
    assert relay.connections == 1
    second.close()
    assert second.run(["true"]).exit_code == 0  # the last one has closed it
    assert relay.connections == 2


def test_the_key_of_each_hop_is_checked(hosts: Hosts, access: Access, bastion: Jump, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.write_text("")
    unknown = Jump("bastion", replace(bastion.access, known_hosts=nothing))
    with pytest.raises(
        InfrastructureError, match=r"bench is reached through bastion\. The host key of bastion"
    ):
        hosts(replace(access, jump=unknown)).run(["true"])
    with pytest.raises(InfrastructureError, match=r"host key of bench .* is not in") as failure:
        hosts(replace(access, jump=bastion, known_hosts=nothing)).run(["true"])
    assert "hil host trust bench" in failure.value.hint


def test_a_jump_host_that_does_not_forward(hosts: Hosts, access: Access, strict_access: Access) -> None:
    through = replace(access, jump=Jump("bastion", strict_access))
    with pytest.raises(UnreachableError, match="through bastion: bastion does not forward") as failure:
        hosts(through).run(["true"])
    assert "AllowTcpForwarding" in failure.value.hint


def test_a_host_that_its_jump_host_does_not_reach(hosts: Hosts, access: Access, bastion: Jump) -> None:
    with pytest.raises(UnreachableError, match=r"bench cannot be reached at 127\.0\.0\.1:1 through bastion"):
        hosts(replace(access, port=1, jump=bastion)).run(["true"])


def test_reading_goes_on_when_the_jump_host_was_away(
    hosts: Hosts, access: Access, bastion: Jump, relay: Relay, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("content")
    host = hosts(replace(access, jump=bastion))
    assert host.read(str(tmp_path / "file")) == b"content"
    relay.cut()
    assert host.read(str(tmp_path / "file")) == b"content"
    assert relay.connections == 2
