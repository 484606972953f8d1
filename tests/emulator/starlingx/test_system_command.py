"""The `system` command of a controller: its tables, exit codes and traps (section 2.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from support.controller_shell import Shell, shell_on
from support.starlingx_lab import CARD, Lab, MakeLab

from harness.controlplane.tables import only_table

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def shell_of() -> Iterator[Callable[[Lab, str], Shell]]:
    """Give labs a command and a service that ends with the test."""
    with ExitStack() as opened:
        yield lambda lab, release: opened.enter_context(shell_on(lab, release))


@pytest.fixture
def shell(lab: Lab, shell_of: Callable[[Lab, str], Shell]) -> Shell:
    return shell_of(lab, "head")


def test_device_image_list_of_today(shell: Shell) -> None:
    uuid = shell.lab.upload(bitstream_id="11", uuid="0f3c1d1e-7a3c-4f0e-9f55-4f8a5e3f3a01")
    shell.lab.apply(uuid, "subcloud=abc", "subcloud3=3")
    columns = [
        ("uuid", uuid), ("bitstream_type", "functional"), ("pci_vendor", "8086"), ("pci_device", "0b30"),
        ("bitstream_id", "11"), ("key_signature", "None"), ("revoke_key_id", "None"), ("name", "None"),
        ("description", "None"), ("image_version", "None"), ("bmc", "False"), ("retimer_included", "False"),
        ("applied", "True"), ("applied_labels", "[{'subcloud': 'abc'}, {'subcloud3': '3'}]"),
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in columns]
    border = "".join("+" + "-" * (width + 2) for width in widths) + "+\n"
    header, row = (
        "".join(f"| {column[line]:{width}} " for column, width in zip(columns, widths, strict=True)) + "|\n"
        for line in (0, 1)
    )
    assert shell.shown("device-image-list --nowrap") == border + header + border + row + border


def test_device_image_list_of_python2(make_lab: MakeLab, shell_of: Callable[[Lab, str], Shell]) -> None:
    lab = make_lab("stx-2020-07", era="docker", generation="A")
    shell = shell_of(lab, "stx-2020-07")
    for number in ("11", "2"):
        lab.apply(lab.upload(bitstream_id=number), "subcloud4=4")
    header, *rows = shell.shown("device-image-list").splitlines()[1:-1]
    labels = [cell.strip() for cell in header.strip("|").split("|")]
    assert labels == [
        "uuid", "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature",
        "revoke_key_id", "name", "description", "image_version", "applied", "applied_labels",
    ]  # fmt: skip
    assert [row.split("|")[5].strip() for row in rows[1:]] == ["11", "2"]
    assert all("[{u'subcloud4': u'4'}]" in row for row in rows[1:])
    assert shell.run("device-image-delete --yes x")[0] == 2


def test_empty_list_prints_an_empty_line(shell: Shell) -> None:
    assert shell.shown("device-image-list") == "\n"


def test_life_of_an_image_by_command(shell: Shell) -> None:
    lab = shell.lab
    lab.machine.vfs.write("/root/image.bin", b"image")
    out = shell.shown("device-image-upload image.bin functional 8086 0b30 --bitstream-id 0x2 --name one")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines()[3:-1]]
    assert [row[0] for row in rows] == [
        "uuid", "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature",
        "revoke_key_id", "name", "description", "image_version", "applied", "applied_labels", "bmc",
        "retimer_included",
    ]  # fmt: skip
    uuid = rows[0][1]
    assert lab.get("/device_images/one")["uuid"] == uuid
    assigned = shell.shown(f"host-device-label-assign controller-0 {CARD} k=v")
    assert "| label_key   | k " in assigned
    assert "| True" in shell.shown(f"device-image-apply {uuid} k=v")
    assert shell.shown("device-image-state-list").splitlines()[3].split("|")[1:5] == [
        " controller-0 ", " 0000:b2:00.0       ", f" {uuid} ", " pending "
    ]  # fmt: skip
    for command in ("device-label-list", f"host-device-label-list controller-0 {CARD}"):
        assert shell.shown(command).splitlines()[3] == (
            "| controller-0 | pci_0000_b2_00_0 | k         | v           |"
        )
    shell.shown(f"device-image-remove {uuid} k=v")
    assert shell.shown("host-device-label-remove controller-0 pci_0000_b2_00_0 k") != ""
    assert shell.shown(f"device-image-delete --yes {uuid}") == f"Deleted device image: {uuid}\n"
    assert lab.get("/device_images") == {"device_images": []}


def test_device_and_host_tables(shell: Shell) -> None:
    shown = shell.shown(f"host-device-show controller-0 {CARD}").splitlines()
    assert shown[0] == "+-----------------------+----------------------------------+"
    assert shown[3] == "| name                  | pci_0000_b2_00_0                 |"
    assert [line.split("|")[1].strip() for line in shown[3:-1]] == [
        "name", "address", "class id", "vendor id", "device id", "class name", "vendor name", "device name",
        "numa_node", "enabled", "sriov_totalvfs", "sriov_numvfs", "sriov_vfs_pci_address",
        "sriov_vf_pdevice_id", "extra_info", "created_at", "updated_at", "root_key", "revoked_key_ids",
        "boot_page", "bitstream_id", "bmc_build_version", "bmc_fw_version", "retimer_a_version",
        "retimer_b_version", "driver", "sriov_vf_driver",
    ]  # fmt: skip
    assert shell.shown("host-list").splitlines()[3] == (
        "| 1  | controller-0 | controller  | unlocked       | enabled     | available    |"
    )
    assert "| device_image_update   | None" in shell.shown("host-show controller-0")
    assert len(shell.shown("host-device-list controller-0").splitlines()) == 6


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (f"device-image-show {NOBODY}", 1, f"Device image {NOBODY} could not be found."),
        (f"device-image-apply {NOBODY} kv", 1, 'Attributes must be a list of NAME=VALUE not "kv"'),
        (f"device-image-apply {NOBODY}", 1, "Device image apply failed: image does not exist"),
        ("host-device-image-update nobody", 1, "host not found: nobody"),
        (
            "host-device-label-list controller-0 none",
            1,
            "PCI device not found: host controller-0 device none",
        ),
        ("host-device-show controller-0 none", 1, "PCI devices not found: host 1 device none"),
        ("device-image-upload none functional 8086 0b30", 1, "Bitstream file does not exist: none"),
        (
            "device-image-upload /etc/hostname functional 8086 0b31 --bitstream-id 2",
            1,
            "Device image not uploaded for /etc/hostname: Invalid PCI vendor/device ID: 8086 0b31. "
            "Supported vendor ID: 8086 and supported device ID: 0b30",
        ),
        ("--os-password wrong host-list", 1, "Invalid Identity credentials."),
        ("device-image-create", 2, "argument <subcommand>: invalid choice: 'device-image-create'"),
    ],
)
def test_errors(shell: Shell, words: str, code: int, text: str) -> None:
    found, out, err = shell.run(words)
    assert (found, out) == (code, "")
    assert err.splitlines()[-1].removeprefix("system: error: ") == text


def test_upload_that_is_refused_by_policy_exits_0_with_an_empty_table(shell: Shell) -> None:
    code, out, err = shell.run(
        "--os-username reader device-image-upload /etc/hostname functional 8086 0b30 --bitstream-id 2"
    )
    assert (code, err) == (0, "")
    assert out.splitlines()[3] == "| uuid             |       |"
    assert shell.lab.get("/device_images") == {"device_images": []}


def test_upload_answered_by_no_json(shell: Shell) -> None:
    uuid = shell.lab.upload()
    words = f"device-image-upload /etc/hostname functional 8086 0b30 --bitstream-id 2 --uuid {uuid}"
    text = "Device image not uploaded for /etc/hostname: Expecting value: line 1 column 1 (char 0)\n"
    assert shell.run(words) == (1, "", text)


def test_without_openrc_a_variable_is_missing(shell: Shell) -> None:
    shell.prefix = "system "
    code, _, err = shell.run("host-list")
    assert (code, err) == (
        1,
        "You must provide a username via either --os-username or via env[OS_USERNAME]\n",
    )


def test_other_roles_are_forbidden(shell: Shell) -> None:
    code, out, err = shell.run(f"--os-username reader device-image-delete {NOBODY}")
    assert (code, out, err) == (1, "", "Error: Forbidden\n")


@pytest.mark.parametrize("words", ["", "help", "--help", "-h", "--debug help"])
def test_help_is_had_without_a_login(shell: Shell, words: str) -> None:
    """The description of the public source, every command, and where there is more."""
    code, out, err = Shell(shell.lab, "system ").run(words)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("usage: system [--version]")
    assert lines[2] == "Command-line interface for System Inventory and Maintenance"
    assert lines[-1] == 'See "system help COMMAND" for help on a specific command.'
    assert {"device-image-apply", "host-unlock", "registry-image-list", "help"} <= set(out.split())


@pytest.mark.parametrize(
    "words",
    ["help host-device-label-assign", "host-device-label-assign --help", "host-device-label-assign -h"],
)
def test_help_of_a_command(shell: Shell, words: str) -> None:
    code, out, err = Shell(shell.lab, "system ").run(words)
    assert (code, err) == (0, "")
    assert out.startswith("usage: system host-device-label-assign [--overwrite] <hostname or id> ")


def test_every_command_has_help(shell: Shell) -> None:
    listed = shell.run("help")[1].partition("<subcommand>\n")[2].partition("\n\n")[0].splitlines()
    assert len(listed) > 20
    for line in listed:
        name, does = line.split(maxsplit=1)
        code, out, _ = Shell(shell.lab, "system ").run(f"{name} --help")
        assert (code, out.splitlines()[2]) == (0, does)


def test_version_and_help_of_what_is_no_command(shell: Shell) -> None:
    assert Shell(shell.lab, "system ").run("--version") == (0, "1.0\n", "")
    assert shell.run("help dance") == (1, "", "'dance' is not a valid subcommand\n")
    assert shell.run("dance --help")[0] == 2
    code, out, err = Shell(shell.lab, "fm ").run("")
    assert (code, err, out.splitlines()[2]) == (0, "", "Command-line interface for Fault Management")
    assert Shell(shell.lab, "fm ").run("help alarm-list") == (
        0,
        "usage: fm alarm-list [--uuid]\n\nList all active alarms.\n\nOptional arguments:\n  --uuid\n",
        "",
    )


@pytest.mark.parametrize("options", ["--nowrap", ""])
def test_a_wide_name_is_read_back(shell: Shell, options: str) -> None:
    """What is printed of it is a table for whoever goes by the columns of a terminal."""
    shell.lab.upload(name="標準画像", description="cafe\u0301 標準")
    plain = shell.lab.upload(name="plain")
    rows = only_table(shell.shown(f"device-image-list {options}")).rows
    assert {row["name"] for row in rows} == {"標準画像", "plain"}
    assert plain in {row["uuid"] for row in rows}
