"""An emulated host is a real SSH server: the OpenSSH clients and paramiko get what any server gives."""

from __future__ import annotations

import hashlib
import os
import pty
import select
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest

VENDOR = "/sys/bus/pci/devices/0000:b2:00.0/vendor"


@pytest.fixture
def left(lab: Any, open_ssh: Any) -> Any:
    return open_ssh(lab, "left")


@pytest.fixture
def connection(lab: Any) -> Iterator[paramiko.SSHClient]:
    access = lab.access("left")
    link = socket.create_connection((access.address, access.port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client = paramiko.SSHClient()
    client.load_host_keys(str(access.known_hosts))
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    client.connect(
        access.address,
        access.port,
        access.user,
        key_filename=str(access.key_file),
        sock=link,
        allow_agent=False,
        look_for_keys=False,
    )
    yield client
    client.close()


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        ("cat /etc/hostname", 0, b"controller-0\n", b""),
        ("echo out; echo err >&2; exit 7", 7, b"out\n", b"err\n"),
        (f"cat {VENDOR}", 0, b"0x8086\n", b""),
        ("cat /nope", 1, b"", b"cat: /nope: No such file or directory\n"),
        ("nonsense", 127, b"", b"bash: line 1: nonsense: command not found\n"),
        ("kill -KILL $$", 255, b"", b""),
        ("cat", 0, b"typed\n", b""),
        ("cat > /tmp/in && wc -c < /tmp/in", 0, b"6\n", b""),
    ],
)
def test_ssh_runs_a_command(left: Any, command: str, code: int, out: bytes, err: bytes) -> None:
    result = left.run(command, stdin=b"typed\n")
    assert (result.returncode, result.stdout, result.stderr) == (code, out, err)


def test_ssh_carries_more_than_one_window_of_output(left: Any, tmp_path: Path) -> None:
    data = os.urandom(5 * 1024 * 1024)
    (tmp_path / "big").write_bytes(data)
    assert left.sftp(f"put {tmp_path}/big /tmp/big\n").returncode == 0
    result = left.run("cat /tmp/big; sha256sum /tmp/big >&2")
    assert result.stdout == data
    assert result.stderr.split()[0].decode() == hashlib.sha256(data).hexdigest()
    left.run("rm /tmp/big")


def test_sftp_puts_gets_lists_and_removes(left: Any, tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"image bytes")
    batch = f"""
mkdir /tmp/d
put {tmp_path}/image /tmp/d/image
rename /tmp/d/image /tmp/d/renamed
chmod 600 /tmp/d/renamed
ls -l /tmp/d
get /tmp/d/renamed {tmp_path}/back
get {VENDOR} {tmp_path}/vendor
rm /tmp/d/renamed
rmdir /tmp/d
"""
    result = left.sftp(batch)
    assert (result.returncode, result.stderr) == (0, "")
    assert "-rw-------" in result.stdout
    assert (tmp_path / "back").read_bytes() == b"image bytes"
    assert (tmp_path / "vendor").read_bytes() == b"0x8086\n"
    assert left.run("ls /tmp/d").returncode == 2


@pytest.mark.parametrize(
    "batch",
    [
        "get /nope /dev/null\n",
        "put /etc/hostname /sys/new\n",
        "rm /sys/bus/pci/rescan\n",
        "mkdir /tmp\n",
        "ls /nope\n",
        "rename /etc/hostname /etc/os-release\n",
    ],
)
def test_sftp_reports_what_cannot_be_done(left: Any, batch: str) -> None:
    assert left.sftp(batch).returncode == 1


def test_unknown_user_and_unknown_key_are_refused(left: Any, tmp_path: Path) -> None:
    wrong_user = subprocess.run(left.command("true", user="admin"), capture_output=True, text=True)
    assert (wrong_user.returncode, "Permission denied (publickey)" in wrong_user.stderr) == (255, True)
    key = tmp_path / "key"
    paramiko.ECDSAKey.generate().write_private_key_file(str(key))
    wrong_key = subprocess.run(left.command("true", key=key), capture_output=True, text=True)
    assert (wrong_key.returncode, "Permission denied (publickey)" in wrong_key.stderr) == (255, True)


def test_hosts_have_different_keys_and_a_changed_one_is_noticed(lab: Any, left: Any, tmp_path: Path) -> None:
    lines = left.access.known_hosts.read_text().splitlines()
    assert len({line.split()[2] for line in lines}) == len(lines) == 2
    (first, kind, key), (second, _, other) = (line.split() for line in lines)
    swapped = tmp_path / "swapped"
    swapped.write_text(f"{first} {kind} {other}\n{second} {kind} {key}\n")
    command = [word.replace(str(left.access.known_hosts), str(swapped)) for word in left.command("true")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, "Host key verification failed" in result.stderr) == (255, True)


def test_plain_shell_reads_commands_from_standard_input(left: Any) -> None:
    result = subprocess.run(
        left.command(), input=b"X=5\necho $X\ncd /etc\ncat hostname\nnope\nexit 4\n", capture_output=True
    )
    assert (result.returncode, result.stdout) == (4, b"5\ncontroller-0\n")
    assert b"nope: command not found" in result.stderr


class Terminal:
    """ssh with a terminal of its own."""

    def __init__(self, command: list[str]) -> None:
        pid, self._fd = pty.fork()
        if pid == 0:  # pragma: no cover
            os.execvp(command[0], command)
        self.pid = pid
        self.text = ""

    def expect(self, wanted: str, seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while wanted not in self.text:
            ready, _, _ = select.select([self._fd], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"{wanted!r} did not come; seen: {self.text!r}"
            try:
                piece = os.read(self._fd, 4096)
            except OSError:
                piece = b""
            assert piece, f"the end came before {wanted!r}; seen: {self.text!r}"
            self.text += piece.decode(errors="replace")
        self.text = self.text.partition(wanted)[2]

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def end(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(status)


def test_terminal_prompts_echoes_and_interrupts(lab: Any, left: Any, image: Any) -> None:
    assert left.run("cat > /tmp/user.bin", stdin=image("unsigned")).returncode == 0
    lab.bench.hold("left/card0", "transferring")
    terminal = Terminal(left.command(options=["-tt"]))
    terminal.expect("root@controller-0:~# ")
    terminal.type("echo hello\r")
    terminal.expect("hello\r\nhello\r\n")
    terminal.type("fpgasupdate -y /tmp/user.bin b2:00.0\r")
    lab.bench.wait_held("left/card0", "transferring")
    terminal.type("\x03")
    terminal.expect("^C")
    terminal.expect("[ERROR   ] Interrupted")
    lab.bench.release("left/card0")
    terminal.expect("# ")
    terminal.type("exit 3\r")
    assert terminal.end() == 3


def test_signal_from_another_session_ends_the_tool_as_the_fact_sheet_says(
    lab: Any, left: Any, image: Any
) -> None:
    left.run("cat > /tmp/user.bin", stdin=image("unsigned"))
    lab.bench.hold("left/card0", "copying")
    script = (
        "sh -c 'echo hil-pid:$$; exec flock -F -n -E 75 /run/lock/l fpgasupdate -y /tmp/user.bin b2:00.0'"
    )
    with subprocess.Popen(left.command(script), stdout=subprocess.PIPE, text=True) as tool:
        assert tool.stdout is not None
        pid = tool.stdout.readline().strip().removeprefix("hil-pid:")
        lab.bench.wait_held("left/card0", "copying")
        assert left.run("flock -F -n -E 75 /run/lock/l true").returncode == 75
        assert left.run(f"kill -TERM {pid}").returncode == 0
        out = tool.stdout.read()
    assert (tool.returncode, "[ERROR   ] Caught SIGTERM\n" in out) == (1, True)
    assert left.run("flock -F -n -E 75 /run/lock/l true").returncode == 0
    lab.bench.release("left/card0")
    left.run("sleep 60")
    assert lab.bench.oracle("left/card0")["user_page"] is not None


def test_output_of_a_running_tool_arrives_as_it_is_written(lab: Any, left: Any, image: Any) -> None:
    left.run("cat > /tmp/user.bin", stdin=image("unsigned"))
    lab.bench.hold("left/card0", "preparing")
    command = left.command("fpgasupdate -y /tmp/user.bin b2:00.0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tool:
        assert tool.stdout is not None
        seen = [tool.stdout.readline() for _ in range(4)]
        assert seen[3].endswith("preparing image file\n")
        assert tool.poll() is None
        lab.bench.release("left/card0")
        assert tool.stdout.read().count("Secure update OK") == 1


def test_exec_round_trip_is_not_held_back_by_the_transport(connection: paramiko.SSHClient) -> None:
    """44 ms and more a round trip is what Nagle's algorithm and delayed acknowledgements make of it."""
    durations = []
    for _ in range(60):
        began = time.perf_counter()
        _, out, _ = connection.exec_command("cat /etc/hostname")
        assert out.read() == b"controller-0\n"
        durations.append(time.perf_counter() - began)
    assert sorted(durations)[30] < 0.03  # the first few are not held back


def test_many_sessions_on_one_connection_leave_no_thread_in_the_lab(
    lab: Any, connection: paramiko.SSHClient
) -> None:
    pid = lab.process_id

    def threads() -> int:
        return len(list(Path(f"/proc/{pid}/task").iterdir()))

    connection.exec_command("true")[1].read()
    before = threads()
    workers = [
        threading.Thread(target=lambda: connection.exec_command("cat /etc/hostname")[1].read())
        for _ in range(20)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    deadline = time.monotonic() + 10
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() <= before


def test_power_cut_ends_sessions_refuses_connections_and_keeps_the_port(lab: Any, left: Any) -> None:
    with subprocess.Popen(
        left.command("echo up; cat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"up\n"
        lab.power("left", "off")
        assert session.wait(20) == 255
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((left.access.address, left.access.port), timeout=5).close()
    lab.power("left", "on")
    assert left.run("cat /etc/hostname").stdout == b"controller-0\n"


def test_reboot_through_ssh_changes_the_boot_id(left: Any) -> None:
    before = left.run("cat /proc/sys/kernel/random/boot_id").stdout
    left.run("systemctl reboot")
    assert left.run("cat /proc/sys/kernel/random/boot_id").stdout not in (before, b"")
