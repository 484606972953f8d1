"""A host behind a real OpenSSH server: results, deadlines, permits, and who may not be talked to."""

import errno
import hashlib
import socket
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from support.openssh import OpenSsh
from support.relay import Relay

from harness.errors import (
    ConfigurationError,
    DeadlineError,
    InfrastructureError,
    LinkLostError,
    RefusedError,
    UnreachableError,
)
from harness.hosts.access import Access
from harness.hosts.link import Link
from harness.hosts.permits import Authority, Permit
from harness.hosts.protocol import CommandResult
from harness.hosts.ssh import SshHost

CARDS = Authority("cards")


def permit(*argv: str) -> Permit:
    return CARDS.command("signal", "bench", argv, "test")


def script(text: str) -> tuple[tuple[str, ...], Permit]:
    argv = ("sh", "-c", text)
    return argv, permit(*argv)


def upload(path: Path, data: bytes) -> Permit:
    return CARDS.write("upload", "bench", str(path), hashlib.sha256(data).hexdigest(), "test")


def test_a_command_gives_its_streams_and_its_exit_code(peer: SshHost) -> None:
    argv, allowed = script("echo out; echo err >&2; exit 3")
    result = peer.run(argv, permit=allowed)
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")


def test_a_signal_gives_minus_one_and_is_not_a_lost_link(peer: SshHost) -> None:
    argv, allowed = script("kill -9 $$")
    result = peer.run(argv, permit=allowed)
    assert result.exit_code == -1 and not result.lost


def test_more_than_a_window_on_both_streams_does_not_hang(peer: SshHost) -> None:
    argv, allowed = script("head -c 5000000 /dev/zero >&2; head -c 5000000 /dev/zero; echo end")
    result = peer.run(argv, permit=allowed, deadline=20)
    assert len(result.stderr) == 5_000_000 and result.stdout.endswith("end\n")


def test_output_is_given_as_it_comes_and_other_commands_run_meanwhile(peer: SshHost, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    seen: list[str] = []

    def on_output(text: str) -> None:
        seen.append(text)
        open_gate = ("touch", str(gate))
        peer.run(open_gate, permit=permit(*open_gate))

    argv, allowed = script(f"echo ä; while [ ! -e {gate} ]; do sleep 0.01; done; echo second")
    assert peer.run(argv, permit=allowed, on_output=on_output, deadline=20).stdout == "ä\nsecond\n"
    assert seen == ["ä\n", "second\n"]


def test_a_deadline_says_what_it_waited_for_and_last_saw(peer: SshHost) -> None:
    assert peer.run(["true"]).exit_code == 0
    argv, allowed = script("echo half way; exec sleep 3")
    with pytest.raises(DeadlineError, match=r"Waited 0\.3 s for .*sleep 3.* on bench .*half way"):
        peer.run(argv, permit=allowed, deadline=0.3)
    assert peer.run(["true"]).exit_code == 0


def test_one_connection_serves_all_calls(peer: SshHost, access: Access) -> None:
    def client_port() -> str:
        argv, allowed = script("echo $SSH_CLIENT")
        return peer.run(argv, permit=allowed).stdout.split()[1]

    assert client_port() == client_port()


def test_threads_share_a_host(peer: SshHost) -> None:
    found: list[str] = []

    def ask(number: int) -> None:
        argv, allowed = script(f"echo {number}")
        found.append(peer.run(argv, permit=allowed).stdout.strip())

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [str(number) for number in range(8)]


def test_reading_fails_with_the_errno_of_the_far_side(peer: SshHost, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\x00\xff\n")
    (tmp_path / "a").symlink_to("b")
    assert peer.list(str(tmp_path)) == ["a", "b"]
    assert peer.read(str(tmp_path / "a")) == b"\x00\xff\n"
    assert peer.readlink(str(tmp_path / "a")) == str(tmp_path / "b")
    for ask, code in ((peer.read, errno.ENOENT), (peer.list, errno.ENOENT)):
        with pytest.raises(OSError) as failure:
            ask(str(tmp_path / "missing"))
        assert failure.value.errno == code
    with pytest.raises(OSError) as failure:
        peer.read(str(tmp_path))
    assert failure.value.errno == errno.EISDIR


def test_a_path_with_glob_characters_is_read_as_it_is(peer: SshHost, tmp_path: Path) -> None:
    (tmp_path / "a*").write_text("star")
    (tmp_path / "ab").write_text("other")
    assert peer.read(f"{tmp_path}/a*") == b"star"


@pytest.mark.parametrize("size", [0, 1, 32768, 300_001])
def test_put_brings_the_bytes_there(peer: SshHost, tmp_path: Path, size: int) -> None:
    data = bytes(number * 7 % 251 for number in range(size))
    target = tmp_path / "image.bin"
    peer.put(data, str(target), permit=upload(target, data))
    assert target.read_bytes() == data
    source = tmp_path / "source.bin"
    source.write_bytes(data)
    peer.put(source, str(target), permit=upload(target, data))
    assert target.read_bytes() == data


def test_put_refuses_other_bytes_and_other_places(peer: SshHost, tmp_path: Path) -> None:
    target = tmp_path / "image.bin"
    allowed = upload(target, b"image")
    with pytest.raises(RefusedError, match="nothing was written"):
        peer.put(b"other", str(target), permit=allowed)
    with pytest.raises(RefusedError, match="nothing was written"):
        peer.put(b"image", f"{target}2", permit=allowed)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_and_a_missing_folder_are_infrastructure_errors(peer: SshHost, tmp_path: Path) -> None:
    data = b"x" * 100_000
    with pytest.raises(InfrastructureError, match="100000 bytes could not be written to /dev/full on bench"):
        peer.put(data, "/dev/full", permit=upload(Path("/dev/full"), data))
    missing = tmp_path / "missing" / "image.bin"
    with pytest.raises(InfrastructureError, match=r"missing/image\.bin.*No such file"):
        peer.put(data, str(missing), permit=upload(missing, data))


def test_what_put_could_not_finish_is_removed(
    peer: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "image.bin"
    monkeypatch.setattr(paramiko.SFTPFile, "write", _full)
    with pytest.raises(InfrastructureError, match="Failure"):
        peer.put(b"image", str(target), permit=upload(target, b"image"))
    assert not target.exists()


def test_a_full_disk_is_told_from_other_failures(
    peer: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SFTP says no more than Failure, so the host is asked what is free."""
    table = (
        "Filesystem     1024-blocks     Used Available Capacity Mounted on\n"
        "/dev/vda1          8123456  8123440        16     100% /\n"
    )
    monkeypatch.setattr(paramiko.SFTPFile, "write", _full)
    monkeypatch.setattr(
        SshHost, "run", lambda self, argv, **options: CommandResult(tuple(argv), 0, table, "", 0.0)
    )
    for size, named in ((16 * 1024 + 1, True), (100, False)):
        target, data = tmp_path / "image.bin", b"x" * size
        with pytest.raises(InfrastructureError) as failure:
            peer.put(data, str(target), permit=upload(target, data))
        assert ("the disk is full: 16384 bytes are free" in failure.value.message) is named


def test_a_session_that_rests_is_used_again(
    peer: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    begin = paramiko.SFTPClient.__init__
    monkeypatch.setattr(
        paramiko.SFTPClient, "__init__", lambda self, sock: (opened.append(self), begin(self, sock))[1]
    )
    for number in range(3):
        put(peer, tmp_path / f"{number}.bin", bytes([number]))
    assert len(opened) == 1
    with monkeypatch.context() as patched:
        patched.setattr(paramiko.SFTPFile, "write", _full)
        with pytest.raises(InfrastructureError):
            put(peer, tmp_path / "full.bin", b"x")
    put(peer, tmp_path / "last.bin", b"last")  # not over the one that failed
    assert len(opened) == 2


def test_threads_put_at_the_same_time(peer: SshHost, tmp_path: Path) -> None:
    content = {tmp_path / f"{number}.bin": bytes([number]) * 200_000 for number in range(6)}
    threads = [threading.Thread(target=put, args=(peer, path, data)) for path, data in content.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path: path.read_bytes() for path in content} == content


def put(host: SshHost, path: Path, data: bytes) -> None:
    host.put(data, str(path), permit=upload(path, data))


def _full(self: paramiko.SFTPFile, data: bytes) -> None:
    raise OSError("Failure")


def test_nothing_is_run_without_a_permit(peer: SshHost, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        peer.run(["touch", str(tmp_path / "made")])
    other = ("touch", str(tmp_path / "other"))
    with pytest.raises(RefusedError):
        peer.run(["touch", str(tmp_path / "made")], permit=permit(*other))
    assert not list(tmp_path.iterdir())


# -- who may not be talked to -------------------------------------------------------------------------


def test_an_unreachable_host(access: Access) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        host = SshHost("bench", replace(access, port=port))
        with pytest.raises(
            UnreachableError, match=rf"bench cannot be reached at 127\.0\.0\.1:{port}.*refused"
        ):
            host.run(["true"])


def test_something_that_is_no_ssh_server(access: Access) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = SshHost("bench", replace(access, port=server.getsockname()[1]))
        with pytest.raises(UnreachableError, match="no SSH session came about"):
            host.run(["true"], deadline=0.5)


def test_a_changed_host_key(access: Access, openssh: OpenSsh, tmp_path: Path) -> None:
    other = paramiko.ECDSAKey.generate(bits=256)
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{openssh.port} {other.get_name()} {other.get_base64()}\n")
    with pytest.raises(InfrastructureError, match=r"host key of bench .* is not the one in") as failure:
        SshHost("bench", replace(access, known_hosts=known)).run(["true"])
    assert not isinstance(failure.value, UnreachableError)
    assert "hil host trust bench --replace" in failure.value.hint


def test_an_unknown_host_key(access: Access, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text("")
    with pytest.raises(InfrastructureError, match=r"host key of bench .* is not in"):
        SshHost("bench", replace(access, known_hosts=known)).run(["true"])
    with pytest.raises(ConfigurationError, match=r"known-hosts file .* cannot be read"):
        SshHost("bench", replace(access, known_hosts=tmp_path / "missing")).run(["true"])


def test_a_refused_login(access: Access, tmp_path: Path) -> None:
    key = tmp_path / "key"
    paramiko.ECDSAKey.generate(bits=256).write_private_key_file(str(key))
    with pytest.raises(InfrastructureError, match=r"refused the login of user .* with the key"):
        SshHost("bench", replace(access, key_file=key)).run(["true"])
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        SshHost("bench", replace(access, key_file=tmp_path / "missing")).run(["true"])


def test_a_password_never_shows(access: Access) -> None:
    secret = "canary-7f3a91"
    wrong = replace(access, key_file=None, password=secret)
    with pytest.raises(InfrastructureError, match=r"refused the login of user .* with a password") as failure:
        SshHost("bench", wrong).run(["true"])
    shown = "".join(traceback.format_exception(failure.value)) + repr(wrong) + str(wrong)
    assert secret not in shown
    assert failure.value.__cause__ is None and failure.value.__suppress_context__


# -- links that break ---------------------------------------------------------------------------------


@contextmanager
def relayed(access: Access, openssh: OpenSsh, tmp_path: Path) -> Iterator[tuple[Relay, SshHost]]:
    relay = Relay(openssh.port)
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{relay.port} {openssh.host_key}")
    host = SshHost("bench", replace(access, port=relay.port, known_hosts=known))
    try:
        yield relay, host
    finally:
        host.close()
        relay.close()


def test_reading_goes_on_over_a_new_connection(access: Access, openssh: OpenSsh, tmp_path: Path) -> None:
    with relayed(access, openssh, tmp_path) as (relay, host):
        (tmp_path / "file").write_text("content")
        assert host.read(str(tmp_path / "file")) == b"content"
        relay.cut()
        assert host.read(str(tmp_path / "file")) == b"content"
        assert relay.connections == 2


def test_an_image_goes_over_a_new_connection_too(access: Access, openssh: OpenSsh, tmp_path: Path) -> None:
    with relayed(access, openssh, tmp_path) as (relay, host):
        put(host, tmp_path / "first.bin", b"first")
        relay.cut()
        assert host.read(str(tmp_path / "first.bin")) == b"first"
        put(host, tmp_path / "second.bin", b"second")
        assert (tmp_path / "second.bin").read_bytes() == b"second"
        assert relay.connections == 2


def test_a_link_that_breaks_in_a_permitted_command_is_told_and_it_is_not_run_again(
    access: Access, openssh: OpenSsh, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    with relayed(access, openssh, tmp_path) as (relay, host):
        argv, allowed = script(f"echo run >> {runs}; echo begun; exec sleep 2")
        result = host.run(argv, permit=allowed, on_output=lambda _: relay.cut(), deadline=20)
        assert (result.exit_code, result.lost, result.stdout) == (-1, True, "begun\n")
    assert runs.read_text() == "run\n"


def test_a_link_that_keeps_breaking_ends_as_an_error(
    access: Access, openssh: OpenSsh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with relayed(access, openssh, tmp_path) as (relay, host):
        session = Link.session

        def cut(self: Link, line: str, deadline: float) -> paramiko.Channel:
            channel = session(self, "sleep 5", deadline)
            relay.cut()
            return channel

        monkeypatch.setattr(Link, "session", cut)
        with pytest.raises(LinkLostError, match="link to bench broke while"):
            host.run(["uname"], deadline=20)
        assert relay.connections == 3


def test_waiting_for_a_host_that_comes_back(access: Access, openssh: OpenSsh, tmp_path: Path) -> None:
    with relayed(access, openssh, tmp_path) as (relay, host):
        port = relay.port
        relay.close()
        with pytest.raises(DeadlineError, match=r"Waited 0\.2 s for bench to take a login; last: .*refused"):
            host.wait_until_reachable(deadline=0.2)
        back = Relay(openssh.port, port)
        try:
            host.wait_until_reachable(deadline=30)
            assert host.run(["true"]).exit_code == 0
        finally:
            host.close()
            back.close()


def test_a_host_that_goes_down_in_the_middle_is_told_with_what_was_asked_again(
    access: Access, openssh: OpenSsh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with relayed(access, openssh, tmp_path) as (relay, host):
        session = Link.session

        def down(self: Link, line: str, deadline: float) -> paramiko.Channel:
            channel = session(self, "sleep 5", deadline)
            relay.close()
            return channel

        monkeypatch.setattr(Link, "session", down)
        with pytest.raises(
            UnreachableError,
            match=r"link to bench broke while .*uname.* ran.* It was asked again: bench cannot be reached at",
        ) as failure:
            host.run(["uname"], deadline=20)
        assert not isinstance(failure.value, LinkLostError) and "Is the host up" in failure.value.hint
