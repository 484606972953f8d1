"""Options, confirmations and traps of the commands of a controller (section 2.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from support.controller_shell import OPENRC, Shell, shell_on
from support.starlingx_lab import CARD, Lab, MakeLab

from harness.emulator.process import Buffer, Pipe
from harness.emulator.programs.base import Executable, Streams
from harness.emulator.starlingx.cli import run_system
from harness.emulator.starlingx.cli_client import Client
from harness.emulator.starlingx.defects import Defects

NOBODY = "00000000-0000-4000-8000-000000000000"
OLD = {"stx-2020-07": {"era": "docker", "generation": "A"}, "stx-8": {"era": "containerd", "generation": "A"}}
WARNING = (
    "WARNING: This is a high-risk operation that may cause a service interruption or remove critical "
    "resources\nDo you want to continue? (yes/No): "
)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A controller of today's release; nothing that a test does to it stays."""
    lab = Lab(tmp_path_factory.mktemp("system"), Defects("head"))
    with shell_on(lab) as found:
        yield found
    lab.close()


@pytest.fixture
def old_shell(make_lab: MakeLab) -> Iterator[Callable[[str], Shell]]:
    with ExitStack() as opened:
        yield lambda release: opened.enter_context(shell_on(make_lab(release, **OLD[release]), release))


# -- forms ------------------------------------------------------------------------------------------------


def test_hosts_with_chosen_columns(shell: Shell) -> None:
    assert shell.shown("host-list --column hostname --column task --nowrap") == (
        "+--------------+------+\n| hostname     | task |\n+--------------+------+\n"
        "| controller-0 |      |\n+--------------+------+\n"
    )
    assert shell.shown("host-show controller-0 --column uuid --column id").splitlines()[3:-1] == [
        "| id       | 1                                    |",
        f"| uuid     | {shell.lab.sysinv_host['uuid']} |",
    ]


def test_hosts_as_values_and_as_yaml(shell: Shell) -> None:
    host = "host-show controller-0 --column reboot_needed --column hostname --column device_image_update"
    assert shell.shown(f"{host} --format value") == "False controller-0 None\n"
    assert shell.shown(f"{host} --format yaml") == (
        "device_image_update: null\nhostname: controller-0\nreboot_needed: false\n\n"
    )
    assert shell.shown("host-list --format value") == "1 controller-0 controller unlocked enabled available\n"
    assert shell.shown("host-list --column id --column hostname --format yaml") == (
        "- hostname: controller-0\n  id: 1\n\n"
    )
    assert shell.shown("host-list --format table") == shell.shown("host-list")
    assert shell.run("host-list --format json")[0] == 2


def test_a_column_that_is_none(shell: Shell) -> None:
    assert shell.cells("host-list --column nothing") == [[""]]
    assert shell.run("host-list --column nothing --format value") == (1, "", "nothing\n")


def test_only_hosts_have_forms(shell: Shell) -> None:
    code, _, err = shell.run("device-image-list --format yaml")
    assert code == 2
    assert "option --format not recognized" in err


def test_debug_and_v_are_taken_and_other_words_are_not(shell: Shell) -> None:
    assert shell.run("--debug -v host-list")[0] == 0
    assert shell.run("--colour host-list")[0] == 2


# -- registry and devices ---------------------------------------------------------------------------------


def test_images_of_the_local_registry(old_shell: Callable[[str], Shell]) -> None:
    """The image that the vendor's tools are run from is there; nothing else is."""
    shell = old_shell("stx-8")
    name = "docker.io/starlingx/n3000-opae"
    assert shell.cells("registry-image-list") == [[name]]
    assert shell.shown("registry-image-list").splitlines()[1].strip("| ") == "Image Name"
    assert shell.cells(f"registry-image-tags {name}") == [["stx.8.0-v1.0.2"]]
    assert shell.shown(f"registry-image-tags {name}").splitlines()[1].strip("| ") == "Image Tag"
    assert shell.run(f"registry-image-delete {name}") == (
        1, "", "Image name and tag must be of form name:tag\n"
    )  # fmt: skip
    assert shell.shown(f"registry-image-delete {name}:stx.8.0-v1.0.2") == (
        f"Image {name}:stx.8.0-v1.0.2 deleted, please run garbage collect to free disk space.\n"
    )
    assert shell.run(f"registry-image-delete {name}:stx.8.0-v1.0.2")[0] == 1
    assert shell.shown("registry-garbage-collect") == "Running docker registry garbage collect\n"
    assert shell.shown("registry-image-list") == "\n"


def test_a_device_is_modified_in_a_locked_host(shell: Shell) -> None:
    words = f"host-device-modify controller-0 {CARD}"
    assert shell.run(f"{words} --enabled false") == (1, "", "Host must be locked.\n")
    database = shell.lab.system.database
    database.change("i_host", 1, administrative="locked")
    assert shell.properties(f"{words} --enabled false --name card")["enabled"] == "False"
    assert len(shell.cells("host-device-list controller-0 -a")) == 1 + len(
        shell.cells("host-device-list controller-0")
    )
    assert shell.properties("host-device-modify controller-0 card -e true -n pci_0000_b2_00_0")[
        "enabled"
    ] == ("True")
    assert shell.shown(words) == ""
    database.change("i_host", 1, administrative="unlocked")


def test_drivers_are_options_of_earlier_releases_alone(
    shell: Shell, old_shell: Callable[[str], Shell]
) -> None:
    words = f"host-device-modify controller-0 {CARD} --driver igb_uio --vf-driver vfio --num-vfs 2"
    assert shell.run(words)[0] == 2
    assert shell.run(words.replace("--vf-driver", "-v"))[0] == 2
    found = old_shell("stx-8")
    assert found.run(words)[2] == "Host must be locked.\n"
    found.lab.system.database.change("i_host", 1, administrative="locked")
    text = "The number of SR-IOV VFs is specified but the device is not supported for SR-IOV\n"
    assert found.run(words) == (1, "", text)


# -- guards -----------------------------------------------------------------------------------------------


def test_acts_that_an_update_forbids(make_lab: MakeLab) -> None:
    """Lock, swact and http parameters (section 2.5); an abort of what does not run."""
    lab = make_lab(standby=True)
    with shell_on(lab) as shell:
        assert shell.run("host-device-image-update-abort controller-0")[2] == (
            "Abort rejected. The host controller-0 is not in the process of updating the device images.\n"
        )
        lab.apply(lab.upload("unsigned"))
        lab.system.database.change("i_host", 1, device_image_update="in-progress")
        refused = {
            "host-lock controller-0": "Rejected: Cannot lock controller-0 while device image update is in "
            "progress.\n",
            "host-swact controller-0": "Rejected: Cannot swact controller-0 while controller-0 is updating "
            "device images.\n",
            "service-parameter-apply http": "Unable to apply http service parameters. A device image update "
            "operation is in progress. Please try again later when the operation is complete.\n",
            "host-device-image-update controller-0": "The host controller-0 is already in the process of "
            "updating the device images.\n",
        }
        for words, text in refused.items():
            assert shell.run(words) == (1, "", text)
        assert shell.shown("service-parameter-apply docker") == "Applying docker service parameters\n"
        assert shell.properties("host-swact --force controller-0")["hostname"] == "controller-0"
        code, out, err = shell.run("host-list")
        assert (code, out.strip()) == (
            1, "Openstack Admin credentials can only be loaded from the active controller."
        )  # fmt: skip
        assert err == "You must provide a password via either --os-password or via env[OS_PASSWORD]\n"


# -- confirmations (trap 4) -------------------------------------------------------------------------------


@pytest.fixture
def asking(shell: Shell) -> Iterator[Shell]:
    """A controller whose commands ask to confirm, and wait a moment for an answer."""
    vfs = shell.lab.machine.vfs
    real = shell.lab.machine.programs["system"]
    vfs.unlink("/usr/bin/system")
    short = partial(run_system, release="head", confirm_seconds=0.05)
    vfs.place("/usr/bin/system", Executable("system", short))
    yield Shell(shell.lab, f"{OPENRC}CLI_CONFIRMATIONS=enabled system ")
    vfs.unlink("/usr/bin/system")
    vfs.place("/usr/bin/system", Executable("system", real))


@pytest.mark.parametrize(
    ("answer", "code", "out", "err"),
    [
        (b"yes\n", 1, WARNING, f"Device image {NOBODY} could not be found.\n"),
        (b"YES\n", 1, WARNING, f"Device image {NOBODY} could not be found.\n"),
        (b"no\n", 1, WARNING + "Operation cancelled by the user\n", ""),
        (b"\n", 1, WARNING + "Operation cancelled by the user\n", ""),
        (b"", 1, WARNING, "EOF when reading a line\n"),
    ],
)
def test_what_is_answered_decides(asking: Shell, answer: bytes, code: int, out: str, err: str) -> None:
    assert asking.run(f"device-image-delete {NOBODY}", answer) == (code, out, err)


def test_no_answer_in_time_is_a_no(asking: Shell) -> None:
    silent, out = Pipe(), Buffer()
    line = f"{asking.prefix}device-image-delete {NOBODY}"
    assert asking.lab.machine.run(line, Streams(silent, out, out)) == 1
    assert out.data.decode() == WARNING + "\nNo response received within the time limit.\n"
    silent.close_write()  # who still waits for an answer meets the end


@pytest.mark.parametrize("words", ["host-lock nobody", "host-swact nobody", "host-reboot nobody"])
def test_what_may_interrupt_a_service_asks_too(asking: Shell, words: str) -> None:
    assert asking.run(words, b"no\n")[1].startswith(WARNING)


def test_yes_answers_beforehand(asking: Shell) -> None:
    text = f"Device image {NOBODY} could not be found.\n"
    assert asking.run(f"device-image-delete --yes {NOBODY}") == (1, "", text)


@pytest.mark.parametrize("words", ["host-list", "host-unlock nobody", "device-image-apply x"])
def test_other_commands_neither_ask_nor_know_yes(asking: Shell, words: str) -> None:
    assert WARNING not in asking.run(words)[1]
    assert asking.run(f"{words} --yes")[0] == 2


@pytest.mark.parametrize("release", list(OLD))
def test_older_releases_neither_ask_nor_know_yes(old_shell: Callable[[str], Shell], release: str) -> None:
    found = old_shell(release)
    text = f"Device image {NOBODY} could not be found.\n"
    assert found.run(f"device-image-delete {NOBODY}") == (1, "", text)
    found.prefix = f"{OPENRC}CLI_CONFIRMATIONS=enabled system "
    assert found.run(f"device-image-delete {NOBODY}") == (1, "", text)
    assert found.run(f"device-image-delete --yes {NOBODY}")[0] == 2


# -- other traps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["host-list", f"device-image-delete {NOBODY}", "device-image-show x"])
def test_without_keyctl_every_command_exits_0_and_says_nothing(shell: Shell, words: str) -> None:
    """Trap 2: whatever it was asked, and nothing was asked of the system."""
    shell.lab.machine.condition("missing-keyctl", True)
    try:
        assert shell.run(words) == (0, "", "")
        assert shell.run(f"--no-cache {words}") != (0, "", "")
        without = Shell(shell.lab, f"{OPENRC}CGTSCLIENT_NO_CACHE=1 system ")
        assert without.run(words) == shell.run(f"--no-cache {words}")
        assert Shell(shell.lab, f"{OPENRC}fm ").run("alarm-list") == (0, "\n", "")
    finally:
        shell.lab.machine.condition("missing-keyctl", False)
    assert shell.run(words) != (0, "", "")


def test_older_releases_keep_no_token(old_shell: Callable[[str], Shell]) -> None:
    found = old_shell("stx-8")
    found.lab.machine.condition("missing-keyctl", True)
    assert len(found.cells("host-list")) == 1
    assert found.run("--no-cache host-list")[0] == 2


def test_lists_need_a_table_library_that_knows_them(shell: Shell) -> None:
    """Trap 3: the pinned one, where the host is not the release of Debian that it was pinned for."""
    vfs = shell.lab.machine.vfs
    before = vfs.read("/etc/os-release")
    vfs.write("/usr/lib/python3/dist-packages/prettytable-0.7.2.egg-info", b"")
    try:
        text = "_stringify_row() takes 3 positional arguments but 4 were given\n"
        assert shell.run("host-list") == (1, "", text)
        assert shell.shown("device-image-list") == "\n"
        assert shell.shown("host-list --format value") != ""
        assert shell.properties("host-show controller-0")["hostname"] == "controller-0"
        vfs.write("/etc/os-release", b"ID=debian\nVERSION_CODENAME=bullseye\n")
        assert len(shell.cells("host-list")) == 1
    finally:
        vfs.write("/etc/os-release", before)
        vfs.unlink("/usr/lib/python3/dist-packages/prettytable-0.7.2.egg-info")


# -- fm ---------------------------------------------------------------------------------------------------


def test_alarms_by_fm(make_lab: MakeLab) -> None:
    lab = make_lab()
    with shell_on(lab) as shell:
        shell.prefix = f"{OPENRC}fm "
        assert shell.shown("alarm-list") == "\n"
        lab.apply(lab.upload("unsigned"))
        (alarm,) = lab.alarms()
        shown = shell.shown("alarm-list --nowrap")
        assert [cell.strip() for cell in shown.splitlines()[1].strip("|").split("|")] == [
            "Alarm ID", "Reason Text", "Entity ID", "Severity", "Time Stamp",
        ]  # fmt: skip
        row = [
            "900.006",
            "Device image update operation in progress",
            alarm["entity_instance_id"],
            "minor",
            alarm["timestamp"],
        ]
        assert shell.cells("alarm-list --nowrap") == [row]
        assert shell.cells("alarm-list --nowrap --uuid") == [[alarm["uuid"], *row]]
        assert shell.run("host-list")[0] == 2
        code, _, err = Shell(lab, "fm ").run("alarm-list")
        assert (code, err) == (
            1, "You must provide a username via either --os-username or via env[OS_USERNAME]\n"
        )  # fmt: skip


# -- a route or an object that is not there (trap 5) ------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (f"device-image-apply {NOBODY} k=v", "Device image apply failed"),
        (f"device-image-remove {NOBODY}", "Device image remove failed"),
        ("host-device-image-update controller-0", "Device image update failed: host controller-0"),
        ("host-device-image-update-abort controller-0", "Device image update failed: host controller-0"),
        ("host-lock controller-0", "host not found: controller-0"),
        ("host-show 77", "host not found: 77"),
        ("registry-image-delete a:b", "Image not found: a:b"),
        ("service-parameter-apply http", "Failed to apply service parameters"),
    ],
)
def test_404_is_told_in_the_words_of_the_command(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, words: str, text: str
) -> None:
    exchange = Client._exchange

    def answered(method: str, url: str, body: bytes | None, headers: dict[str, str]) -> Any:
        if url.endswith(("/tokens", "/v3", "/ihosts")):
            return exchange(method, url, body, headers)
        return 404, {}, b"Not Found"

    monkeypatch.setattr(Client, "_exchange", staticmethod(answered))
    assert shell.run(words) == (1, "", f"{text}\n")
