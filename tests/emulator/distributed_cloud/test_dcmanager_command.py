"""The command `dcmanager`, over SSH to the host of an emulated system controller (section 5.4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko
import pytest

from harness.images.recipes import build, load_recipes
from harness.inventory.load import load_inventory
from harness.lab.running import RunningLab, start_lab

RECIPES = load_recipes((Path(__file__).parents[3] / "fixtures/images.yaml").read_text())
INVENTORY = """\
version: 1
default_lab: cloud
labs:
  cloud:
    controllers:
      central: {role: system-controller, emulated: {release: head}}
      subcloud1: {role: subcloud, parent: central, emulated: {release: head}}
      subcloud2: {role: subcloud, parent: central, emulated: {release: head}}
      subcloud3: {role: subcloud, parent: central, emulated: {release: head}}
      subcloud4: {role: subcloud, parent: central, emulated: {release: head}}
    hosts:
      central:
        system: central
        emulated: {}
""" + "".join(
    f"""\
      node{number}:
        system: subcloud{number}
        emulated: {{}}
        cards:
          card0: {{address: "0000:b2:00.0", identity: "64:4c:36:00:7{number}:00"}}
"""
    for number in range(1, 5)
)
#: What starlingx/test shows of `subcloud list`, with the sync statuses of field report 1.
SAMPLE = """\
+----+-----------+------------+--------------+---------------+-------------+---------------+-----------------+
| id | name      | management | availability | deploy status | sync        | backup status | prestage status |
+----+-----------+------------+--------------+---------------+-------------+---------------+-----------------+
|  1 | subcloud1 | managed    | online       | complete      | in-sync     | None          | None            |
|  2 | subcloud2 | managed    | online       | complete      | in-sync     | None          | None            |
|  3 | subcloud3 | managed    | online       | complete      | out-of-sync | None          | None            |
|  4 | subcloud4 | managed    | online       | complete      | out-of-sync | None          | None            |
+----+-----------+------------+--------------+---------------+-------------+---------------+-----------------+
"""
_PAGE = "Unable to process the contained instructions"


@dataclass
class Shell:
    """A login on the active controller of a system."""

    client: paramiko.SSHClient
    lab: RunningLab

    def run(self, words: str, prefix: str = "source /etc/platform/openrc; ") -> tuple[int, str, str]:
        _, out, err = self.client.exec_command(prefix + words, timeout=60)
        shown, complaints = out.read().decode(), err.read().decode()
        return out.channel.recv_exit_status(), shown, complaints

    def shown(self, words: str) -> str:
        code, out, err = self.run(words)
        assert (code, err) == (0, "")
        return out

    def fields(self, words: str) -> dict[str, str]:
        """Return the fields of a table of one thing."""
        rows = [line.strip("|").split("|") for line in self.shown(words).splitlines() if line[0] == "|"]
        return {name.strip(): value.strip() for name, value in rows[1:]}

    def rows(self, words: str) -> list[dict[str, str]]:
        rows = [line.strip("|").split("|") for line in self.shown(words).splitlines() if line[0] == "|"]
        names = [name.strip() for name in rows[0]]
        return [dict(zip(names, (cell.strip() for cell in row), strict=True)) for row in rows[1:]]


Login = Callable[[str], Shell]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    file = tmp_path_factory.mktemp("inventory") / "inventory.yaml"
    file.write_text(INVENTORY)
    with start_lab(load_inventory(file)) as running:
        yield running


@pytest.fixture(scope="module")
def login(lab: RunningLab) -> Iterator[Login]:
    """Log in to a host, anew each time: a strategy reboots them."""
    clients = []

    def log_in(name: str) -> Shell:
        access = lab.access(name)
        assert access is not None
        client = paramiko.SSHClient()
        clients.append(client)
        client.load_host_keys(str(access.known_hosts))
        client.connect(access.address, access.port, access.user, key_filename=str(access.key_file))
        return Shell(client, lab)

    yield log_in
    for client in clients:
        client.close()


@pytest.fixture(scope="module")
def central(login: Login) -> Shell:
    """The controller, with an image for subclouds 3 and 4; without any label 1 and 2 are in sync (5.2)."""
    shell = login("central")
    for node in ("node3", "node4"):
        login(node).shown("system host-device-label-assign controller-0 0000:b2:00.0 k=v")
    with shell.client.open_sftp() as files, files.open("/root/unsigned.bin", "wb") as file:
        file.write(build(RECIPES["unsigned"]))
    system = "system --os-region-name SystemController"
    made = shell.fields(
        f"{system} device-image-upload /root/unsigned.bin functional 8086 0b30 --bitstream-id 0x2"
    )
    shell.shown(f"{system} device-image-apply {made['uuid']} k=v")
    audit(shell)
    return shell


def audit(shell: Shell) -> None:
    assert shell.lab.bench is not None
    shell.lab.bench.trouble("central", "audit-now")


def test_subclouds_are_listed_as_in_the_sample(central: Shell) -> None:
    assert central.shown("dcmanager subcloud list") == SAMPLE


def test_one_subcloud_has_a_row_for_each_endpoint(central: Shell) -> None:
    shown = central.fields("dcmanager subcloud show subcloud4")
    assert (shown["id"], shown["name"], shown["management"], shown["availability"]) == (
        "4",
        "subcloud4",
        "managed",
        "online",
    )
    assert [name for name in shown if name.endswith("_sync_status")] == [
        f"{endpoint}_sync_status"
        for endpoint in (
            "platform",
            "identity",
            "dc-cert",
            "firmware",
            "kubernetes",
            "kube-rootca",
            "software",
        )
    ]
    assert shown["firmware_sync_status"] == "out-of-sync"
    assert central.fields("dcmanager subcloud show 4") == shown


def test_where_there_is_no_strategy_it_is_not_found_and_no_step_is_listed(central: Shell) -> None:
    code, out, err = central.run("dcmanager fw-update-strategy show")
    assert (code, out) == (1, "")
    assert err.startswith("ERROR (app) The resource could not be found.")
    (row,) = central.rows("dcmanager strategy-step list")
    assert set(row.values()) == {"<none>"}
    assert list(row) == ["cloud", "stage", "state", "details", "started_at", "finished_at"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("create subcloud1", "Subcloud subcloud1 does not require firmware update"),
        ("create subcloud9", "Subcloud subcloud9 does not exist"),
    ],
)
def test_why_there_is_no_strategy(central: Shell, words: str, reason: str) -> None:
    text = f"Unable to create strategy of type 'firmware': Bad strategy request: {reason}"
    assert central.run(f"dcmanager fw-update-strategy {words}") == (1, "", f"ERROR (app) {_PAGE} {text}\n")


def test_a_group_excludes_other_options(central: Shell) -> None:
    assert central.run("dcmanager fw-update-strategy create --group Default subcloud1") == (
        1,
        "",
        "ERROR (app) The cloud_name and group options are mutually exclusive.\n",
    )


def test_forms_and_columns_of_the_output(central: Shell) -> None:
    listed = json.loads(central.shown("dcmanager subcloud list -f json"))
    assert [entry["name"] for entry in listed] == [f"subcloud{number}" for number in range(1, 5)]
    assert central.shown("dcmanager subcloud show subcloud1 -f value -c id -c name") == "1\nsubcloud1\n"
    assert central.run("dcmanager subcloud list -c nothing")[0] == 1


def test_managing(central: Shell) -> None:
    assert central.fields("dcmanager subcloud unmanage subcloud2")["management"] == "unmanaged"
    code, out, err = central.run("dcmanager subcloud unmanage subcloud2")
    assert (code, err) == (1, "ERROR (app) Unable to unmanage subcloud subcloud2\n")
    assert "Subcloud is already unmanaged" in out
    assert central.fields("dcmanager subcloud manage subcloud2")["management"] == "managed"


def test_wrong_words_and_a_missing_login(central: Shell) -> None:
    code, _, err = central.run("dcmanager subcloud show")
    assert code == 2
    assert err.startswith("usage: dcmanager subcloud show")
    assert central.run("dcmanager dance now")[0] == 2
    code, _, err = central.run("dcmanager subcloud list", prefix="")
    assert (code, err.startswith("ERROR (app) You must provide an auth url")) == (1, True)
    code, _, err = central.run("dcmanager --os-password=wrong subcloud list")
    assert (code, "HTTP 401" in err) == (1, True)


def test_help_and_version_are_had_without_a_login(central: Shell) -> None:
    for words in ("", " help", " --help", " -h"):
        code, out, err = central.run(f"dcmanager{words}", prefix="")
        assert (code, err) == (0, "")
        assert "\n  fw-update-strategy create\n" in out
    for words in ("help subcloud show", "subcloud show --help", "subcloud show -h"):
        code, out, err = central.run(f"dcmanager {words}", prefix="")
        assert (code, err) == (0, "")
        assert out.startswith("usage: dcmanager subcloud show [-h]")
    assert central.run("dcmanager --version", prefix="") == (0, "dcmanager 1.0\n", "")
    code, out, err = central.run("dcmanager help dance now")
    assert (code, out) == (1, "")
    assert "'dance now' is not a dcmanager command" in err


def test_a_strategy_from_create_to_delete(login: Login, central: Shell) -> None:
    strategy = "dcmanager fw-update-strategy"
    assert central.lab.bench is not None
    audit(central)
    made = central.fields(f"{strategy} create --subcloud-apply-type serial --stop-on-failure")
    assert list(made) == [
        "strategy type",
        "subcloud apply type",
        "max parallel subclouds",
        "stop on failure",
        "state",
        "created_at",
        "updated_at",
    ]
    assert list(made.values())[:5] == ["firmware", "serial", "1", "True", "initial"]
    code, _, err = central.run(f"{strategy} create")
    assert (code, err.partition("request: ")[2]) == (1, "Strategy of type: 'firmware' already exists\n")
    assert [
        (row["cloud"], row["stage"], row["state"]) for row in central.rows("dcmanager strategy-step list")
    ] == [
        ("subcloud3", "Create", "initial"),
        ("subcloud4", "Create", "initial"),
    ]
    assert central.fields(f"{strategy} apply")["state"] == "applying"
    while (state := central.fields(f"{strategy} show")["state"]) == "applying":
        central.lab.bench.pass_time(600)
    assert state == "complete"
    for name in ("subcloud3", "subcloud4"):
        step = central.fields(f"dcmanager strategy-step show {name}")
        assert (step["cloud"], step["stage"], step["state"]) == (name, "Complete", "complete")
        assert step["started_at"] < step["finished_at"]
        (state_row,) = login(f"node{name[-1]}").rows("system device-image-state-list --nowrap")
        assert state_row["status"] == "completed"
    audit(central)
    assert {row["sync"] for row in central.rows("dcmanager subcloud list")} == {"in-sync"}
    code, _, err = central.run(f"{strategy} apply")
    assert (code, err.partition("request: ")[2] or err) == (
        1,
        "Strategy in state complete cannot be applied\n",
    )
    assert central.fields(f"{strategy} delete")["state"] == "deleting"
