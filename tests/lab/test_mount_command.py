"""`hil lab mount` ends as its command does, and leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.mounted import HIL, INVENTORY, MountedLab

MARK = "HIL_TEST_MARK"
SECONDS = 20.0


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)


def marked(mark: str) -> list[str]:
    """Return the command lines of the processes that have ``mark`` in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it ended, or is not ours
    return found


class Mount:
    """A `hil lab mount` whose processes can be told from all others, with its files in one folder."""

    def __init__(self, folder: Path, argv: list[str], **streams: object) -> None:
        self.mark = os.urandom(8).hex()
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.environment = {**os.environ, MARK: self.mark, "TMPDIR": str(self.scratch), "SHELL": "/bin/sh"}
        self.environment["HIL_INVENTORY"] = str(folder / "inventory.yaml")
        (folder / "inventory.yaml").write_text(INVENTORY)
        self.process = subprocess.Popen(
            argv,
            env=self.environment,
            text=True,
            **{"stdout": subprocess.PIPE, **streams},  # type: ignore[call-overload]
        )

    def says(self, text: str) -> None:
        assert self.process.stdout
        assert self.process.stdout.readline().rstrip() == text

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()

    def nothing_is_left(self) -> None:
        until(lambda: not marked(self.mark), f"the end of {marked(self.mark)}")
        until(lambda: not list(self.scratch.iterdir()), f"{list(self.scratch.iterdir())} to go")
        assert "hil-left" not in Path("/proc/self/mounts").read_text()


@pytest.fixture
def mount(mounted_lab: MountedLab, tmp_path: Path) -> Iterator[Callable[..., Mount]]:
    """Starts `hil lab mount left -- WORDS` with a lab of its own."""
    started: list[Mount] = []

    def start(*words: str, **streams: object) -> Mount:
        started.append(Mount(tmp_path, [str(HIL), "lab", "mount", "left", "--", *words], **streams))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -SEGV $$"], 128 + signal.SIGSEGV),
        (["no-such-program"], 127),
        (["/etc/passwd"], 126),
    ],
)
def test_exit_code_is_that_of_the_command(mounts: MountedLab, words: list[str], code: int) -> None:
    assert mounts.run(*words).returncode == code


def test_words_after_the_dashes_are_the_commands_alone(mounts: MountedLab) -> None:
    done = mounts.run("printf", "<%s>", "--lab", "--", "-h", "a b")
    assert done.stdout == "<--lab><--><-h><a b>"


def test_without_a_command_a_shell_runs_and_without_a_host_the_first(mount: Callable[..., Mount]) -> None:
    one = mount("true")
    one.end()
    done = subprocess.run(
        [HIL, "lab", "mount"],
        env=one.environment,
        input="cat /etc/hostname >/dev/null; hostname; exit 5\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (5, "controller-0\n")
    assert "(the cards of left)" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "no host 'nowhere'"),
        (["left", "--face", "glass"], "glass"),
        (["--lab", "x"], "no lab 'x'"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_started(
    mounts: MountedLab, words: list[str], said: str
) -> None:
    done = subprocess.run(
        [HIL, "lab", "mount", *words], env=mounts.environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize("words", [["up"], ["down"], ["mount"]])
def test_labs_are_not_started_or_stopped_from_within(mounts: MountedLab, words: list[str]) -> None:
    done = mounts.sh(shlex.join([str(HIL), "lab", *words]))
    assert done.returncode == 2
    assert "the mounted host left" in done.stderr


def test_ctrl_c_ends_command_and_mount(mount: Callable[..., Mount]) -> None:
    terminal, other = pty.openpty()
    words = [HIL, "lab", "mount", "left", "--", "sh", "-c", "setsid sleep 1000 & exec sleep 999"]
    one = mount("true")
    one.end()
    one.mark = one.environment[MARK] = os.urandom(8).hex()
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *words], env=one.environment, stdin=other, stdout=other, stderr=other
    )
    os.close(other)
    # Not before it has become what it is: a shell that has just started a program may miss a signal.
    until(lambda: "sleep 999 " in marked(one.mark), "the command to start")
    os.write(terminal, b"\x03")
    try:
        assert process.wait(SECONDS) == 128 + signal.SIGINT
    finally:
        process.kill()
        os.close(terminal)
    one.nothing_is_left()


def test_signal_is_handed_on_and_the_command_may_answer(mount: Callable[..., Mount]) -> None:
    one = mount("sh", "-c", "trap 'echo asked; exit 9' TERM; echo ready; while :; do sleep 0.01; done")
    one.says("ready")
    one.process.terminate()
    one.says("asked")
    assert one.process.wait(SECONDS) == 9
    one.nothing_is_left()


def test_second_signal_ends_a_command_that_does_not_listen(mount: Callable[..., Mount]) -> None:
    one = mount("sh", "-c", "trap 'echo no' TERM; echo ready; while :; do sleep 0.01; done")
    one.says("ready")
    one.process.terminate()
    one.says("no")
    one.process.terminate()
    assert one.process.wait(SECONDS) == 128 + signal.SIGKILL
    one.nothing_is_left()


@pytest.mark.parametrize("whom", ["hil", "namespace"])
def test_nothing_is_left_after_a_sigkill(mount: Callable[..., Mount], whom: str) -> None:
    one = mount("sh", "-c", "(setsid sleep 1000 &); touch /run/lock/x; echo ready; sleep 1000")
    one.says("ready")
    if whom == "hil":
        one.process.kill()
    else:
        children = Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children").read_text().split()
        faces = [c for c in children if b"faces.namespace" in Path(f"/proc/{c}/cmdline").read_bytes()]
        os.kill(int(faces[0]), signal.SIGKILL)
    one.process.wait(SECONDS)
    one.nothing_is_left()


def test_what_the_command_leaves_running_ends_with_it(mount: Callable[..., Mount]) -> None:
    one = mount("sh", "-c", "(setsid sleep 1000 >/dev/null &); exit 0")
    assert one.process.wait(SECONDS) == 0
    one.nothing_is_left()


def test_host_that_loses_its_power_takes_the_command_with_it(mounts: MountedLab) -> None:
    mounts.end_session("moving")
    process = mounts.popen("sh", "-c", "echo ready; sleep 1000", host="moving")
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    mounts.bench.power("moving", "off")
    try:
        _, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 128 + signal.SIGKILL
        assert "the emulated host went down" in said
        refused = mounts.run("true", host="moving")
        assert (refused.returncode, "has no power" in refused.stderr) == (3, True)
    finally:
        mounts.bench.power("moving", "on")
    assert mounts.run("true", host="moving").returncode == 0


def test_lab_that_ends_is_told_and_its_files_are_gone(mount: Callable[..., Mount]) -> None:
    one = mount("true")
    one.end()
    hil = [HIL, "lab"]
    subprocess.run([*hil, "up"], env=one.environment, check=True, stdout=subprocess.DEVNULL, timeout=60)
    script = "echo ready; read line; cat /sys/bus/pci/devices/*/device"
    down = [*hil, "down", "--forget"]
    try:
        with subprocess.Popen(
            [*hil, "mount", "left", "--", "sh", "-c", script],
            env=one.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            subprocess.run(down, env=one.environment, check=True, stdout=subprocess.DEVNULL, timeout=60)
            _, said = process.communicate("go on\n", timeout=60)
    finally:
        subprocess.run(down, env=one.environment, stdout=subprocess.DEVNULL, timeout=60)
    assert process.returncode == 1
    assert "the emulated lab ended" in said
    assert "Transport endpoint is not connected" in said


# -- what a machine may lack ------------------------------------------------------------------------

#: A namespace in which this machine's devices can be exchanged; as root of it where we are not root.
UNSHARE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
OTHER_DEVICES = """
for name in null zero random urandom tty; do
    touch {folder}/$name; mount --bind /dev/$name {folder}/$name || exit 1
done
ln -s /proc/self/fd {folder}/fd
{more}
mount --rbind {folder} /dev
"""


def with_devices(tmp_path: Path, more: str, command: str) -> list[str]:
    folder = tmp_path / "dev"
    folder.mkdir()
    script = OTHER_DEVICES.format(folder=shlex.quote(str(folder)), more=more.format(folder=folder))
    return [*UNSHARE, "sh", "-c", script + command]


def test_machine_without_fuse_is_told_so(mounts: MountedLab, tmp_path: Path) -> None:
    command = f"exec {HIL} lab mount left -- true"
    done = subprocess.run(
        with_devices(tmp_path, "", command),
        env=mounts.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 3
    assert "/dev/fuse: No such file or directory" in done.stderr
    assert "sudo modprobe fuse" in done.stderr


def test_machine_that_allows_no_namespaces_is_told_so(mounts: MountedLab) -> None:
    script = f"echo 0 > /proc/sys/user/max_mnt_namespaces && exec {HIL} lab mount left -- true"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", script],
        env=mounts.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 3
    assert "does not let you make namespaces" in done.stderr
    assert "Run it as root" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root runs every test here without privileges")
@pytest.mark.parametrize("owner", [0, 65534])
def test_without_privileges_it_mounts_where_the_device_may_be_opened(
    mounts: MountedLab, tmp_path: Path, owner: int
) -> None:
    words = [
        HIL,
        "lab",
        "mount",
        "left",
        "--",
        "sh",
        "-c",
        "id -u; cat /sys/bus/pci/devices/0000:b2:00.0/device",
    ]
    # As root of a container is: without power over the system, but allowed to make a user namespace.
    plain = ["setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all", *map(str, words)]
    fuse = f"mknod -m 600 {{folder}}/fuse c 10 229; chown {owner} {{folder}}/fuse"
    done = subprocess.run(
        with_devices(tmp_path, fuse, f"exec {shlex.join(plain)}"),
        env=mounts.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    if owner == 0:
        assert (done.returncode, done.stdout) == (0, "0\n0x0b30\n"), done.stderr
    else:
        assert done.returncode == 3
        assert "/dev/fuse: Permission denied" in done.stderr
        assert "sudo chmod 666 /dev/fuse" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up what it takes to make a user namespace")
def test_refused_user_namespace_is_told(mounts: MountedLab) -> None:
    words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", HIL, "lab", "mount", "left", "--", "true"]
    done = subprocess.run(words, env=mounts.environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "does not let you make namespaces" in done.stderr
