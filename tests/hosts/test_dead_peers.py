"""Peers that vanish without a word, hosts that never answer: noticed soon, and not asked all the time."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.openssh import OpenSsh
from support.relay import Relay

from harness.errors import DeadlineError, LinkLostError, UnreachableError
from harness.hosts import liveness, silence
from harness.hosts.access import Access, Jump
from harness.hosts.liveness import LiveTransport
from harness.hosts.permits import Authority
from harness.hosts.silence import Silence
from harness.hosts.ssh import SshHost

CARDS = Authority("cards")


@contextmanager
def vanishing(access: Access, openssh: OpenSsh, folder: Path, jump: Jump | None) -> Iterator[None]:
    """A host that stalls in the middle of a command is noticed long before the command's deadline."""
    relay = Relay(openssh.port)
    known = folder / "relayed"
    known.write_text(f"[127.0.0.1]:{relay.port} {openssh.host_key}")
    host = SshHost("bench", replace(access, port=relay.port, known_hosts=known, jump=jump))

    def stall(text: str) -> None:
        relay.stall()
        transport = host._link.transport(1.0)
        assert isinstance(transport, LiveTransport)
        transport.packetizer.set_keepalive(0.1, transport._ask)

    argv = ("sh", "-c", "echo begun; exec sleep 30")
    try:
        result = host.run(
            argv, permit=CARDS.command("signal", "bench", argv, "test"), deadline=3600, on_output=stall
        )
        assert result.lost and result.stdout == "begun\n"
        yield
    finally:
        relay.close()
        host.close()


def test_a_peer_that_vanishes_is_noticed(access: Access, openssh: OpenSsh, tmp_path: Path) -> None:
    with vanishing(access, openssh, tmp_path, None):
        pass


def test_a_peer_that_vanishes_behind_a_jump_host_that_lives(
    access: Access, openssh: OpenSsh, tmp_path: Path
) -> None:
    with vanishing(access, openssh, tmp_path, Jump("bastion", access)):
        assert (UNANSWERED_FOR := (liveness.UNANSWERED + 1) * liveness.KEEPALIVE) <= 60, UNANSWERED_FOR


def test_what_is_asked_again_says_that_nothing_was_heard(
    access: Access, openssh: OpenSsh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LiveTransport, "silent", "nothing was heard of it for 45 s")
    host = SshHost("bench", access)
    session = host._link.session

    def cut(line: str, deadline: float) -> object:
        channel = session("sleep 5", deadline)
        channel.get_transport().close()
        return channel

    monkeypatch.setattr(host._link, "session", cut)
    with pytest.raises(LinkLostError, match=r"while .* ran \(nothing was heard of it for 45 s\)"):
        host.run(["uname"])
    host.close()


def test_a_quiet_peer_that_lives_answers(peer: SshHost) -> None:
    peer.run(["true"])
    transport = peer._link.transport(1.0)
    assert isinstance(transport, LiveTransport)
    for _ in range(3 * liveness.UNANSWERED):
        transport._ask()
        end = time.monotonic() + 30
        while not transport._heard.anything and time.monotonic() < end:
            time.sleep(0.005)
        assert transport._heard.anything, "OpenSSH answers requests that it does not know"
    assert transport.is_active()


# -- hosts that never answer --------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that only tests move."""
    found = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(silence, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


def test_a_silent_host_is_asked_again_less_and_less(access: Access, clock: SimpleNamespace) -> None:
    known, error = Silence(), UnreachableError("bench cannot be reached.", hint="Is it up?")
    assert known.patience(access, 15.0) == 15.0
    known.note(access, error, 15.0)
    for rest in (30, 60, 120):
        clock.now += rest - 1
        with pytest.raises(UnreachableError, match=r"bench cannot .* not asked again before 1 s") as failure:
            known.patience(access, 15.0)
        assert failure.value.hint == "Is it up?"
        clock.now += 1
        assert known.patience(access, 15.0) == silence.PROBE
        known.note(access, UnreachableError("still not"), silence.PROBE)
    known.forget(access)
    assert known.patience(access, 15.0) == 15.0


def test_a_refusal_is_no_silence(access: Access, clock: SimpleNamespace) -> None:
    known = Silence()
    known.note(access, UnreachableError("refused"), 0.1)
    assert known.patience(access, 15.0) == 15.0


def test_a_silent_host_costs_its_timeout_once(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "_SILENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:  # takes connections, and never says a word
        silent = replace(access, port=server.getsockname()[1])
        with pytest.raises(UnreachableError, match="no SSH session came about"):
            SshHost("bench", silent).run(["true"], deadline=0.4)
        for _ in range(20):  # each scenario makes connections of its own
            with pytest.raises(UnreachableError, match="not asked again before"):
                SshHost("bench", silent).run(["true"], deadline=60)
        server.settimeout(0.2)
        server.accept()[0].close()
        with pytest.raises(TimeoutError):
            server.accept()  # nobody else came
        with pytest.raises(DeadlineError):  # who waits for it, asks
            SshHost("bench", silent).wait_until_reachable(deadline=0.3)
        server.accept()[0].close()
