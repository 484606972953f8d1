"""Becoming root by the real sudo behind a real OpenSSH server: with a password, without, and when it refuses.

The server runs in a mount namespace of its own, where the machine's sudoers and passwords are others.
"""

import os
import shutil
import subprocess
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.mounted import blocked
from support.openssh import OpenSsh

from harness.errors import DeadlineError, InfrastructureError
from harness.hosts import sudo
from harness.hosts.access import Access, Sudo
from harness.hosts.permits import Authority, Permit
from harness.hosts.protocol import Asked
from harness.hosts.ssh import SshHost

CARDS, CONTROL = Authority("cards"), Authority("controlplane")
USER = "nobody"  # of every Debian; without a password, and without a shell but ours
PASSWORD = "canary-sudo-81f3"
#: Puts files over the machine's own, for the server alone.
PRIVATE = 'cd "$0"; for file in sudoers shadow; do mount --bind $file /etc/$file || exit; done; exec "$@"'


def script(text: str) -> Permit:
    return CARDS.command("flash", "bench", ("sh", "-c", text), "test")


class SudoPeer:
    """The server, and the rules that hold in it."""

    def __init__(self, folder: Path) -> None:
        self._rules = folder / "sudoers"
        self.rule("ALL")
        hashed = subprocess.run(
            ["openssl", "passwd", "-6", PASSWORD], capture_output=True, text=True, check=True
        ).stdout.strip()
        shadow = Path("/etc/shadow").read_text()
        ours = "\n".join(
            f"{USER}:{hashed}:19000:0:99999:7:::" if line.startswith(f"{USER}:") else line
            for line in shadow.splitlines()
        )
        (folder / "shadow").write_text(f"{ours}\n")
        (folder / "shadow").chmod(0o600)
        inside = ["unshare", "-m", "sh", "-c", PRIVATE, str(folder)]
        self.server = OpenSsh(folder, inside=inside, user=USER)

    def rule(self, commands: str, defaults: str = "") -> None:
        """Let the user run ``commands`` as root, under ``defaults`` of the sudoers."""
        # In place: the file is bound by its inode. No log: there is none to write to.
        text = f"Defaults !syslog\nDefaults passwd_tries=3\n{defaults}\nroot ALL=ALL\n"
        self._rules.touch(0o440)
        self._rules.write_text(text + (f"{USER} ALL=(root) {commands}\n" if commands else ""))


@pytest.fixture(scope="module")
def sudo_peer() -> Iterator[SudoPeer]:
    if os.geteuid() != 0:
        blocked("only root can give a server a sudoers file of its own")
    for program in ("sudo", "openssl"):  # openssl makes the password's hash
        if shutil.which(program) is None:
            blocked(f"there is no {program} here; as root: apt-get install {program}")
    tried = subprocess.run(["unshare", "-m", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        blocked(f"a mount namespace cannot be made: {tried.stderr.strip()}")
    folder = Path(tempfile.mkdtemp(prefix="hil-test-sudo-"))  # where the user gets to
    folder.chmod(0o755)
    peer = None
    try:
        peer = SudoPeer(folder)
        peer.server.start()
        yield peer
    finally:
        if peer is not None:
            peer.server.stop()
        shutil.rmtree(folder)


@pytest.fixture
def known(sudo_peer: SudoPeer) -> Access:
    sudo_peer.rule("ALL")
    server = sudo_peer.server
    return Access("127.0.0.1", server.port, USER, Path(server.known_hosts), key_file=server.key_file)


@pytest.fixture
def host(known: Access) -> Iterator[SshHost]:
    made = SshHost("bench", replace(known, sudo=Sudo(PASSWORD)))
    yield made
    made.close()


def test_an_act_on_a_card_is_roots(host: SshHost) -> None:
    act = script("id -u; cat; echo told >&2; exit 3")
    result = host.run(act.argv, permit=act)
    assert (result.exit_code, result.stdout, result.stderr) == (3, "0\n", "told\n")
    assert result.argv == act.argv and PASSWORD not in repr(result)


def test_the_rest_stays_the_users(host: SshHost) -> None:
    assert host.run(["id", "-u", "-n"]).stdout == f"{USER}\n"
    act = CONTROL.command("host-lock", "bench", ("sh", "-c", "id -un"), "test")
    assert host.run(act.argv, permit=act).stdout == f"{USER}\n"


def test_the_password_is_in_no_command_line_and_reaches_no_command(host: SshHost) -> None:
    act = script("cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' ' '; env; cat")
    for rule in ("ALL", "NOPASSWD: ALL"):  # where sudo does not read it, nobody else does
        seen = host.run(act.argv, permit=act if rule == "ALL" else script(act.argv[2]))
        assert seen.exit_code == 0 and "SUDO_USER" in seen.stdout
        assert PASSWORD not in seen.stdout + seen.stderr


def test_without_a_password(sudo_peer: SudoPeer, known: Access) -> None:
    sudo_peer.rule("NOPASSWD: ALL")
    for kind in (Sudo(), Sudo(PASSWORD)):
        host = SshHost("bench", replace(known, sudo=kind))
        act = script("id -u; cat")
        assert host.run(act.argv, permit=act).stdout == "0\n"
        host.close()


def test_several_commands_of_which_one_needs_root(host: SshHost, tmp_path: Path) -> None:
    act = CARDS.command("remove", "bench", ("rm", "-f", "/nonexistent/file"), "test")
    results = host.run_all([Asked(["id", "-u"]), Asked(act.argv, act), Asked(["uname"])])
    assert [result.stdout for result in results] == ["0\n", "", "Linux\n"]
    assert [result.stderr for result in results] == ["", "", ""]


def test_a_signal_reaches_what_root_runs(host: SshHost) -> None:
    pids: list[str] = []

    def end(text: str) -> None:
        if not pids:
            pids.append(text.strip())
            kill = CARDS.command("signal", "bench", ("kill", "-TERM", pids[0]), "test")
            assert host.run(kill.argv, permit=kill).exit_code == 0

    act = script("echo $$; exec sleep 60")
    result = host.run(act.argv, permit=act, on_output=end, deadline=60)
    assert (result.exit_code, result.lost) == (-1, False)


def test_files_go_where_only_root_may_write(host: SshHost, sudo_peer: SudoPeer) -> None:
    import hashlib

    folder = Path(tempfile.mkdtemp(prefix="hil-test-root-"))  # 0700
    try:
        for rule in ("ALL", "NOPASSWD: ALL"):
            sudo_peer.rule(rule)
            target, data = folder / "image.bin", bytes(range(256)) * 999
            allowed = CARDS.write("upload", "bench", str(target), hashlib.sha256(data).hexdigest(), "test")
            host.put(data, str(target), permit=allowed)
            assert target.read_bytes() == data and target.stat().st_uid == 0
            target.unlink()
    finally:
        shutil.rmtree(folder)


def test_a_deadline_shows_what_the_command_said(host: SshHost) -> None:
    act = script("echo half way >&2; exec sleep 3")
    with pytest.raises(DeadlineError, match=r"Waited 1 s for .*sleep 3.*; the last .*: 'half way'\."):
        host.run(act.argv, permit=act, deadline=1)


@pytest.mark.parametrize(
    ("rule", "defaults", "kind", "said", "hint"),
    [
        ("ALL", "", Sudo("wrong"), "refused the password; it was tried once", "sudo: {credentials"),
        ("ALL", "", Sudo(), "asks nobody for a password, and the inventory names none", "NOPASSWD"),
        ("", "", Sudo(PASSWORD), "does not let nobody run this as root", "ALL=(root) ALL"),
        ("/bin/true", "", Sudo(PASSWORD), "does not let nobody run this as root", "ALL=(root) ALL"),
        ("ALL", "Defaults requiretty", Sudo(PASSWORD), "wants a terminal", "!requiretty"),
    ],
)
def test_sudo_refuses(
    sudo_peer: SudoPeer, known: Access, rule: str, defaults: str, kind: Sudo, said: str, hint: str
) -> None:
    sudo_peer.rule(rule, defaults)
    host = SshHost("bench", replace(known, sudo=kind))
    try:
        with pytest.raises(InfrastructureError) as failure:
            act = script("id -u")
            host.run(act.argv, permit=act)
        assert f"sudo on bench {said}" in failure.value.message and hint in failure.value.hint
        told = "".join(traceback.format_exception(failure.value))
        assert PASSWORD not in told and "wrong'" not in told
        sudo_peer.rule("NOPASSWD: ALL")
        with pytest.raises(InfrastructureError):  # nor is it tried again, which could lock the account
            again = script("id -u")
            host.run(again.argv, permit=again)
    finally:
        host.close()


def test_root_needs_no_sudo(access: Access) -> None:
    assert not replace(access, user="root", sudo=Sudo()).needs_sudo
    assert replace(access, user="lab", sudo=Sudo()).needs_sudo


@pytest.mark.parametrize(
    "said",
    ["sh: 1: exec: sudo: not found\n", "bash: line 1: exec: sudo: not found\n", "sh: sudo: not found\n"],
)
def test_a_host_without_sudo(said: str) -> None:
    error = sudo.refusal("bench", "lab", said.encode(), 127)
    assert "sudo on bench is not there" in error.message and "log in as root" in error.hint


def test_words_that_nobody_knows_are_shown() -> None:
    error = sudo.refusal("bench", "lab", b"sudo: unable to open audit system\n", 1)
    assert "did not run what needs root (exit code 1): 'sudo: unable to open audit system'" in error.message
