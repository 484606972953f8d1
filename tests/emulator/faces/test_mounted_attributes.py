"""Programs in a mounted host see what a kernel shows: values as they are now, its errno for each refusal."""

from __future__ import annotations

import json
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.mounted import MountedLab, image

CARD = "left/card0"
#: Runs in the mount: `NAME = how it ended` for each of the acts in the arguments.
PROBE = """
import errno, fcntl, json, os, sys
U = "/sys/class/firmware/secure-update0/"
D = "/sys/bus/pci/devices/0000:b2:00.0/"
S = "/sys/bus/platform/drivers/intel-m10bmc-sec-update/n3000bmc-sec-update.1.auto/"
def put(path, data):
    f = os.open(path, os.O_WRONLY)
    try:
        return os.write(f, data)
    finally:
        os.close(f)
def get(path):
    with open(path, "rb", buffering=0) as f:
        return f.read(65536).decode()
def upload(data):
    put(U + "loading", b"1")
    f = os.open(U + "data", os.O_WRONLY)
    while data:
        data = data[os.write(f, data):]
    os.close(f)
    put(U + "loading", b"0")
found = {}
for act in sys.argv[1:]:
    try:
        found[act] = eval(act)
    except OSError as e:
        found[act] = errno.errorcode[e.errno]
print(json.dumps(found))
"""


@pytest.fixture
def ask(mounts: MountedLab) -> Callable[..., dict[str, Any]]:
    def ask(*acts: str) -> dict[str, Any]:
        done = mounts.sh(shlex.join([sys.executable, "-I", "-c", PROBE, *acts]))
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return ask


@pytest.fixture
def updating(mounts: MountedLab, tmp_path: Any) -> Iterator[Callable[[str], None]]:
    """Starts an update of the card and holds it in a phase; released at the end."""
    file = tmp_path / "image.bin"
    file.write_bytes(image("A/csk0"))

    def update(phase: str) -> None:
        mounts.bench.hold(CARD, phase)
        script = (
            f"cd /sys/class/firmware/secure-update0; echo 1 > loading; cat {file} > data; echo 0 > loading"
        )
        assert mounts.sh(script).returncode == 0
        mounts.bench.wait_held(CARD, phase)

    yield update
    mounts.bench.release(CARD)


# Kernel ABI (sysfs-class-firmware): `error` while an update runs, `cancel` while nothing runs and while flash
# is written; kernfs and the VFS for the rest.
def test_refusals_of_an_idle_card(ask: Callable[..., dict[str, Any]]) -> None:
    refusals = {
        "put(U + 'cancel', b'1')": "ENODEV",
        "put(U + 'cancel', b'perhaps')": "EINVAL",
        "put(U + 'data', b'x')": "ENODEV",
        "put(S + 'control/image_load', b'bmc_golden')": "EINVAL",
        "put(U + 'status', b'idle')": "EACCES",
        "get(U + 'cancel')": "EACCES",
        "get(U + 'nothing')": "ENOENT",
        "get(U)": "EISDIR",
        "get(U + 'status/x')": "ENOTDIR",
        "os.readlink(U + 'status')": "EINVAL",
        "os.mkdir(D + 'new')": "EPERM",
        "os.unlink(U + 'status')": "EPERM",
        "os.rmdir(D + 'fpga_region')": "EPERM",
        "os.rename(U + 'status', U + 'other')": "EPERM",
        "os.symlink('x', D + 'link')": "EPERM",
        "os.open(D + 'new', os.O_CREAT | os.O_WRONLY)": "EACCES",
        "os.open(U + 'status', os.O_CREAT | os.O_EXCL)": "EEXIST",
        "fcntl.ioctl(os.open('/dev/dfl-fme.0', os.O_RDWR), 0xb600)": "ENOTTY",
    }
    assert ask(*refusals) == refusals


def test_attributes_have_the_size_and_the_way_of_kernfs(ask: Callable[..., dict[str, Any]]) -> None:
    assert ask(
        "os.stat(U + 'status').st_size",
        "get(U + 'status')",
        "get(U + 'error')",
        "[put(U + 'loading', b'1'), put(U + 'data', bytes(10000)), put(U + 'loading', b'-1')]",
        "os.truncate(U + 'loading', 0)",
        "os.stat(D + 'remove').st_mode & 0o777",
        "os.readlink('/sys/bus/pci/devices/0000:b2:00.0')[:12]",
    ) == {
        "os.stat(U + 'status').st_size": 4096,
        "get(U + 'status')": "idle\n",
        "get(U + 'error')": "",
        # No more than a page is taken of one write.
        "[put(U + 'loading', b'1'), put(U + 'data', bytes(10000)), put(U + 'loading', b'-1')]": [1, 4096, 2],
        "os.truncate(U + 'loading', 0)": None,
        "os.stat(D + 'remove').st_mode & 0o777": 0o200,
        "os.readlink('/sys/bus/pci/devices/0000:b2:00.0')[:12]": "../../../dev",
    }


def test_status_has_left_idle_when_the_write_that_starts_an_update_returns(
    mounts: MountedLab, ask: Callable[..., dict[str, Any]]
) -> None:
    mounts.bench.hold(CARD, "preparing")
    try:
        found = ask(
            "upload(bytes(20000))", "get(U + 'status')", "get(U + 'error')", "get(U + 'remaining_size')"
        )
    finally:
        mounts.bench.release(CARD)
    assert found["get(U + 'status')"] in ("receiving\n", "preparing\n")
    assert found["get(U + 'error')"] == "EBUSY"
    assert found["get(U + 'remaining_size')"] == "20000\n"


def test_second_update_and_reset_are_refused_while_flash_is_written(
    updating: Callable[[str], None], ask: Callable[..., dict[str, Any]]
) -> None:
    updating("copying")
    assert ask(
        "get(U + 'status')",
        "get(U + 'error')",
        "put(U + 'cancel', b'1')",
        "upload(b'x')",
        "put(S + 'control/image_load', b'bmc_user')",
    ) == {
        "get(U + 'status')": "programming\n",
        "get(U + 'error')": "EBUSY",
        "put(U + 'cancel', b'1')": "EBUSY",
        "upload(b'x')": "EBUSY",
        "put(S + 'control/image_load', b'bmc_user')": "EBUSY",
    }


def test_cancel_is_heard_before_the_next_block(
    mounts: MountedLab, updating: Callable[[str], None], ask: Callable[..., dict[str, Any]]
) -> None:
    updating("transferring")
    assert ask("put(U + 'cancel', b'1')") == {"put(U + 'cancel', b'1')": 1}
    mounts.bench.release(CARD)
    ended = mounts.sh(
        "cd /sys/class/firmware/secure-update0; while [ $(cat status) != idle ]; do :; done; cat error"
    )
    assert ended.stdout == "transferring:user-abort\n"


def test_open_file_of_a_card_that_left_says_so(ask: Callable[..., dict[str, Any]]) -> None:
    act = (
        "[f := os.open(S + 'security/flash_count', os.O_RDONLY), os.pread(f, 9, 0).decode(),"
        " put(S + 'control/image_load', b'bmc_user'), os.pread(f, 9, 0)]"
    )
    assert ask(act) == {act: "ENODEV"}


def test_unreadable_attributes_fail_as_the_kernels_do(
    mounts: MountedLab, ask: Callable[..., dict[str, Any]]
) -> None:
    mounts.bench.condition("left", "sysfs-unreadable", True)
    try:
        assert ask("get(S + 'security/flash_count')") == {"get(S + 'security/flash_count')": "EIO"}
    finally:
        mounts.bench.condition("left", "sysfs-unreadable", False)
    mounts.bench.condition(CARD, "all-ones", True)
    try:
        value = "get(D + 'fpga_region/region0/dfl-fme.0/bitstream_id')"
        assert ask(value) == {value: "0xffffffffffffffff\n"}
    finally:
        mounts.bench.condition(CARD, "all-ones", False)


def test_lock_on_the_device_keeps_out_tools_of_both_faces(mounts: MountedLab) -> None:
    """The vendor's tool takes a POSIX lock on the device (n3000.md 5.1), here or by SSH."""
    hold = (
        "import fcntl,sys; f = open('/dev/dfl-fme.0', 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX);"
        "print('held', flush=True); sys.stdin.read()"
    )
    holder = mounts.popen(sys.executable, "-I", "-c", hold)
    try:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        again = hold.replace("LOCK_EX)", "LOCK_EX | fcntl.LOCK_NB)")
        refused = mounts.sh(shlex.join([sys.executable, "-I", "-c", again]))
        assert "BlockingIOError" in refused.stderr
        mounts.put("/tmp/image.bin", image("A/csk0"))
        by_ssh = mounts.ssh("fpgasupdate -y /tmp/image.bin b2:00.0")
        assert (by_ssh.returncode, "BlockingIOError" in by_ssh.stderr) == (1, True)
    finally:
        holder.communicate(timeout=30)
    assert mounts.sh(shlex.join([sys.executable, "-I", "-c", again])).stdout == "held\n"
    assert mounts.ssh("fpgasupdate -y /tmp/image.bin b2:00.0").returncode == 0


def test_wait_for_a_lock_ends_when_a_signal_comes_and_when_it_is_given_up(mounts: MountedLab) -> None:
    script = """
import fcntl, os, signal
holder = open("/dev/dfl-fme.0", "r+b")
fcntl.lockf(holder, fcntl.LOCK_EX)
told, tells = os.pipe()
def interrupted(number, frame):
    raise InterruptedError
child = os.fork()
if child == 0:
    signal.signal(signal.SIGALRM, interrupted)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    waiter = open("/dev/dfl-fme.0", "r+b")
    try:
        fcntl.lockf(waiter, fcntl.LOCK_EX)
    except InterruptedError:
        signal.setitimer(signal.ITIMER_REAL, 0)
    os.write(tells, b"interrupted")
    fcntl.lockf(waiter, fcntl.LOCK_EX)
    print("had", flush=True)
    os._exit(0)
signal.alarm(10)  # the lock is held until the child was interrupted: else this ends it all
print(os.read(told, 64).decode(), flush=True)
fcntl.lockf(holder, fcntl.LOCK_UN)
os.waitpid(child, 0)
"""
    done = mounts.sh(shlex.join([sys.executable, "-I", "-c", script]))
    assert done.stdout == "interrupted\nhad\n", done.stderr


def test_shell_on_the_host_and_in_the_mount_see_the_same_files(mounts: MountedLab) -> None:
    for command in (
        "cat /proc/sys/kernel/random/boot_id /proc/version /proc/sys/kernel/osrelease",
        "ls /sys/bus/pci/devices",
        "cat /sys/bus/pci/devices/*/uevent",
        "readlink -f /sys/bus/platform/drivers/*/*.auto",
        "cat /sys/bus/pci/devices/0000:b2:00.0/config | sha256sum",
        "ls /run/lock",
    ):
        assert mounts.sh(command).stdout == mounts.ssh(command).stdout, command
    assert mounts.sh("hostname").stdout == "controller-0\n"
    mounts.sh("echo here > /run/lock/note")
    assert mounts.ssh("cat /run/lock/note; rm /run/lock/note").stdout == "here\n"
    assert "note" not in mounts.sh("ls /run/lock").stdout.split()


def test_many_programs_read_at_once(mounts: MountedLab) -> None:
    reads = "for n in 1 2 3 4 5 6 7 8; do (cat /sys/bus/pci/devices/*/uevent | wc -l) & done; wait"
    assert len(set(mounts.sh(reads).stdout.split())) == 1


def test_long_wait_of_one_program_holds_nobody_else_up(mounts: MountedLab) -> None:
    """A write to `image_load` for the retimer returns when that is loaded; lab time is held meanwhile."""
    mounts.bench.hold("moving/card0", "copying")
    mounts.put("/tmp/image.bin", image("A/csk0"), host="moving")
    updater = threading.Thread(
        target=lambda: mounts.ssh("fpgasupdate -y /tmp/image.bin b3:00.0", host="moving")
    )
    updater.start()
    try:
        mounts.bench.wait_held("moving/card0", "copying")
        control = "/sys/bus/platform/drivers/intel-m10bmc-sec-update/*.auto/control/image_load"
        loads = "".join(f"echo retimer_fw > {control} & " for _ in range(4))
        shown = mounts.sh(f"{loads} sleep 0.2; cat /sys/bus/pci/devices/0000:b2:00.0/device; wait")
    finally:
        mounts.bench.release("moving/card0")
        updater.join(30)
    assert shown.stdout == "0x0b30\n"
