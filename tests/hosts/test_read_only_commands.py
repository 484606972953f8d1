"""Which command lines run without a permit, and how they reach the shell."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RefusedError
from harness.hosts.commands import permitted_line, read_only_line


@pytest.mark.parametrize(
    "line",
    [
        "cat /sys/class/net/eth0/address",
        "grep -H '' /sys/bus/pci/devices/0000:b2:00.0/fpga_region/region*/dfl-fme.*/bitstream_id",
        "lspci -Dm -d 8086:0b30",
        "lspci -Dnn -d 8086:0b30",
        "dmesg",
        "dmesg -T",
        "fpgainfo fme 0000:b2:00.0",
        "fpgainfo errors all",
        "systemctl is-active hostw.service",
        "systemctl --no-pager status hostw",
        "journalctl --no-pager -q -o short-iso-precise -u docker-registry.service",
        "readlink -f /sys/bus/platform/drivers/intel-m10bmc-sec-update/n3000bmc-sec-update.5.auto",
        "/usr/bin/fpgainfo security",
        "date -u +%s",
        "hostname",
        "ls -1 /sys",
        "cat /proc/sys/kernel/random/boot_id /proc/uptime",
        "cat /proc/4711/cmdline",
        "ls -l /proc/4711/fd",
        "head -v -c 65536 /proc/uptime /sys/bus/pci/devices/0000:b2:00.0/uevent",
        "find /sys/bus/pci/devices /sys/class/firmware -maxdepth 1 -xdev -printf '%y %m %s %p\\0%l\\0'",
        "find /dev -name 'dfl*' -type c",
        "fpgasupdate --version",
        "fpgainfo --version",
        "which fpgasupdate docker /usr/bin/ctr",
        "docker images --format '{{.Repository}}:{{.Tag}}'",
        "ctr -n=k8s.io images list -q",
        "ctr --connect-timeout=2s -n=k8s.io images list -q",
        "ctr -n=k8s.io container list image==registry.local:9001/x/n3000-opae:v1",
        "/usr/bin/ctr -n=k8s.io containers list",
        "lspci --version",
        "curl -s -S -f http://controller:8080/device_images/root-key-8086-0b30-0a1b.bit",
    ],
)
def test_reading_needs_no_permit(line: str) -> None:
    import shlex

    assert read_only_line(shlex.split(line))


@pytest.mark.parametrize(
    "argv",
    [
        ["dmesg", "-c"],
        ["curl", "http://controller:8080/device_images/.hidden"],
        ["curl", "http://controller:8080/device_images/../v1/ihosts"],
        ["curl", "http://elsewhere:8080/device_images/a.bit"],
        ["curl", "-o", "/etc/hosts", "http://controller/device_images/a.bit"],
        ["curl", "http://controller/device_images/a.bit", "http://controller/device_images/b.bit"],
        ["curl", "-s"],
        ["dmesg", "-C"],
        ["dmesg", "-Tc"],
        ["fpgainfo", "errors", "-c", "all"],
        ["fpgainfo", "errors", "all", "--clear"],
        ["date", "-s", "2031-01-01"],
        ["date", "01010000"],
        ["hostname", "other"],
        ["systemctl", "stop", "hostw"],
        ["journalctl", "--vacuum-size=1"],
        ["journalctl", "--rotate"],
        ["journalctl", "--cursor-file", "/etc/hosts"],
        ["journalctl", "-u", "x", "/usr/bin/x"],
        ["systemctl", "status", "x", "--host=other"],
        ["fpgasupdate", "-y", "a.bin", "0000:b2:00.0"],
        ["rsu", "bmcimg", "0000:b2:00.0"],
        ["sh", "-c", "cat /etc/hosts"],
        ["cat", "/etc/hosts", "-"],
        ["cat", "/dev/watchdog"],
        ["cat", "/d?v/watchdog"],
        ["cat", "/sys/../dev/watchdog"],
        ["cat", "/*/watchdog"],
        ["cat", "/proc/self/root/dev/watchdog"],
        ["cat", "/proc/1/r[no]ot/dev/watchdog"],
        ["cat", "/p*/s?lf/c*/dev/watchdog"],
        ["sha256sum", "/proc/4711/fd/3"],
        ["cat", "/proc/4711/task/4712/root/dev/watchdog"],
        ["cat", "/proc/kmsg"],
        ["grep", "", "/proc/kcore"],
        ["cat", "watchdog"],
        ["grep", "-f", "/etc/hosts", "", "/x"],
        ["grep", "-H"],
        ["lspci", "-H1"],
        ["/tmp/cat", "/etc/hosts"],
        ["./lspci"],
        ["rm", "-rf", "/"],
        ["find", "/tmp", "-delete"],
        ["find", "/tmp", "-exec", "rm", "{}", ";"],
        ["find", "/tmp", "-execdir", "rm", "{}", "+"],
        ["find", "/tmp", "-ok", "rm", "{}", ";"],
        ["find", "/tmp", "-fprint", "/etc/hosts"],
        ["find", "/tmp", "-fprintf", "/etc/hosts", "x"],
        ["find", "/tmp", "-fls", "/etc/hosts"],
        ["find", "/tmp", "-printf"],
        ["find", "/tmp", "-files0-from", "/etc/hosts"],
        ["tail", "-f", "/var/log/syslog"],
        ["head", "-c", "1", "/dev/watchdog"],
        ["fpgasupdate", "--version", "a.bin"],
        ["fpgasupdate", "a.bin"],
        ["docker", "run", "--privileged", "x/n3000-opae:v1", "rsu", "bmcimg"],
        ["docker", "exec", "c", "rm", "/x"],
        ["docker", "rmi", "x/n3000-opae:v1"],
        ["docker", "--host=tcp://other", "images"],
        ["docker", "-H", "tcp://other", "images"],
        ["docker", "images", "rm"],
        ["docker", "image", "rm", "x"],
        ["docker"],
        ["ctr", "-n=k8s.io", "run", "--rm", "x/n3000-opae:v1", "v1", "rsu", "bmcimg"],
        ["ctr", "-n=k8s.io", "container", "rm", "n3000-opae"],
        ["ctr", "-n=k8s.io", "containers", "list", "rm"],
        ["ctr", "-n=k8s.io", "images", "rm", "x"],
        ["ctr", "-a=/run/other.sock", "images", "list"],
        ["ctr", "images", "list", "image==x;reboot"],
        ["which", "-a; reboot"],
        ["fpgainfo"],
        ["grep", "--version"],
        ["fpgainfo", "fme", "--version", "-c"],
        ["tee", "/x"],
        ["cat", "/x\nrm /y"],
        ["", "x"],
        [],
    ],
)
def test_everything_else_is_refused(argv: list[str]) -> None:
    with pytest.raises(RefusedError):
        read_only_line(argv)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12), max_size=4))
def test_no_word_reaches_the_shell_as_syntax(words: list[str]) -> None:
    """Whatever is let through is one command with these words: `printf` in its place shows them."""
    try:
        line = read_only_line(["cat", *(f"/{word}" for word in words)], {"cat": "printf"}, literal=True)
    except RefusedError:
        return
    shown = subprocess.run(
        ["/bin/sh", "-c", line.replace("printf", "printf '%s\\n'", 1)], capture_output=True, check=True
    )
    assert shown.stdout.decode().splitlines() == [f"/{word}" for word in words] or not words


def test_only_paths_are_expanded(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "region0").mkdir()
    (tmp_path / "region0" / "id").write_text("seven\n")
    line = read_only_line(["grep", "-H", "s*n", f"{tmp_path}/region*/id"])
    assert subprocess.check_output(["/bin/sh", "-c", line], cwd=tmp_path).decode() == (
        f"{tmp_path}/region0/id:seven\n"
    )


def test_nothing_is_expanded_in_a_permitted_command() -> None:
    line = permitted_line(["echo", "*", "$HOME", "a b"])
    assert subprocess.check_output(["/bin/sh", "-c", line], cwd="/").decode() == "* $HOME a b\n"
