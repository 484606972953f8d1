"""Entries about the way to a real host: jump hosts, sudo, encrypted keys, and how its power is switched."""

import json
from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.inventory.credentials import resolve
from harness.inventory.describe import json_schema, keys_of_schema
from harness.inventory.entries import Credential
from harness.inventory.load import load_inventory
from harness.inventory.model import Lab

HOSTS = """\
version: 1
default_lab: rack7
labs:
  rack7:
    hosts:
      bastion:
        ssh: {address: 203.0.113.7, user: jump}
      inner:
        ssh: {address: 10.1.0.1, user: jump, jump: bastion}
      worker:
        ssh: {address: 10.2.0.1, user: lab, jump: inner, SUDO}
        power: POWER
"""
COMMAND = "{command: {off: pdu off, on: pdu on}}"
REDFISH = "{redfish: {url: 'https://bmc', user: lab, credentials: {env: BMC}}}"


def lab(tmp_path: Path, sudo: str = "port: 22", power: str = COMMAND, *changes: tuple[str, str]) -> Lab:
    text = HOSTS.replace("SUDO", sudo).replace("POWER", power)
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = tmp_path / "inventory.yaml"
    path.write_text(text)
    return load_inventory(path).lab()


def rejected(tmp_path: Path, *words: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        lab(tmp_path, *words)
    return caught.value.message


def test_a_host_is_reached_through_hosts_of_its_lab(tmp_path: Path) -> None:
    from harness.inventory.reach import jumps_of

    assert list(jumps_of(lab(tmp_path).hosts, "worker")) == ["inner", "bastion"]


@pytest.mark.parametrize(
    ("jump", "said"),
    [
        ("basti", "11: labs.rack7.hosts.worker.ssh.jump: There is no host 'basti' .*'bastion'"),
        ("worker", "11: .*the way to worker leads in a circle: worker -> worker"),
    ],
)
def test_a_jump_host_that_is_none(tmp_path: Path, jump: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        lab(tmp_path, "port: 22", COMMAND, ("jump: inner", f"jump: {jump}"))


def test_jump_hosts_in_a_circle(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="bastion leads in a circle: bastion -> worker -> inner -> "):
        lab(
            tmp_path,
            "port: 22",
            COMMAND,
            ("user: jump}\n      inner", "user: jump, jump: worker}\n      inner"),
        )


def test_a_host_that_is_not_reached_over_ssh_is_no_jump_host(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'bastion' is not reached over SSH"):
        lab(tmp_path, "port: 22", COMMAND, ("ssh: {address: 203.0.113.7, user: jump}", "local: true"))


@pytest.mark.parametrize(
    ("entry", "password"),
    [("sudo: true", None), ("sudo: {credentials: {env: SUDO}}", "canary-77ab"), ("sudo: {}", None)],
)
def test_sudo_with_and_without_a_password(tmp_path: Path, entry: str, password: str | None) -> None:
    ssh = lab(tmp_path, entry).host("worker").ssh
    assert ssh is not None and ssh.sudo is not None
    found = ssh.sudo.credentials
    assert (resolve(found, {"SUDO": "canary-77ab"}).password if found else None) == password


def test_no_sudo(tmp_path: Path) -> None:
    for entry in ("sudo: false", "port: 22"):
        ssh = lab(tmp_path, entry).host("worker").ssh
        assert ssh is not None and ssh.sudo is None


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("sudo: {credentials: {agent: true}}", "sudo asks for a password"),
        ("sudo: {password: canary-9}", "sudo.password"),
        ("sudo: canary-2", "neither true nor a mapping"),
        ("credentials: {key_file: k, passphrase: canary-3}", "a literal secret may not stand"),
        ("credentials: {env: A, passphrase: {env: B}}", "opens a key_file, and there is none"),
        ("credentials: {key_file: k, passphrase: {env: B, file: c}}", "exactly one of env"),
    ],
)
def test_what_sudo_and_keys_do_not_take(tmp_path: Path, entry: str, said: str) -> None:
    message = rejected(tmp_path, entry)
    assert said in message and "inventory.yaml:11" in message and "canary" not in message


def test_a_passphrase_is_found_and_never_shown(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    login = resolve(
        Credential.model_validate({"key_file": key, "passphrase": {"env": "OPENS"}}), {"OPENS": "canary-3c"}
    )
    assert (login.key_file, login.passphrase, login.secrets) == (key, "canary-3c", ("canary-3c",))
    assert "canary" not in repr(login)
    with pytest.raises(ConfigurationError, match="OPENS holds no passphrase"):
        resolve(Credential.model_validate({"key_file": key, "passphrase": {"env": "OPENS"}}), {})


# -- power --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "way"),
    [
        (COMMAND, "command"),
        (REDFISH, "redfish"),
        ("{ipmi: {address: 10.9.0.1, user: lab, credentials: {file: ~/bmc}, cipher_suite: 17}}", "ipmi"),
    ],
)
def test_power_is_switched_in_one_way(tmp_path: Path, entry: str, way: str) -> None:
    power = lab(tmp_path, "port: 22", entry).host("worker").power
    assert power is not None and power.way == way and power.deadline == 120


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{}", "exactly one of redfish, ipmi and command; it has none"),
        (f"{COMMAND[:-1]}, {REDFISH[1:]}", "it has redfish and command"),
        (REDFISH.replace("env: BMC", "agent: true"), "the controller asks for a password"),
        (REDFISH.replace("user: lab", "user: lab, insecure: true, ca_file: x"), "contradicts 'insecure'"),
        (REDFISH.replace("user: lab", "user: lab, pasword: canary-1"), "power.redfish.pasword: unknown key"),
        (REDFISH.replace("https://bmc", "https://bmc/?id=1"), "power.redfish.url: has a query or a fragment"),
        (REDFISH.replace("https://bmc", "https://lab:canary-1@bmc"), "move them to 'user' and 'credentials'"),
        ("{command: {off: ipmitool -P canary-1 power off, on: x}}", "hands a password to a command"),
    ],
)
def test_what_power_does_not_take(tmp_path: Path, entry: str, said: str) -> None:
    message = rejected(tmp_path, "port: 22", entry)
    assert said in message and "canary" not in message


def test_an_emulated_host_may_have_a_controller_for_its_power(tmp_path: Path) -> None:
    def twin(emulated: str) -> Lab:
        path = tmp_path / "twin.yaml"
        path.write_text(
            f"version: 1\ndefault_lab: x\nlabs: {{x: {{hosts: {{twin: {{emulated: {emulated}}}}}}}}}"
        )
        return load_inventory(path).lab()

    assert twin("{bmc: redfish}").host("twin").can_power
    with pytest.raises(ConfigurationError, match="cannot be switched"):
        twin("{bmc: redfish, power: false}")
    with pytest.raises(ConfigurationError, match="'ipmi' is not allowed"):
        twin("{bmc: ipmi}")


def test_the_schema_knows_all_of_it() -> None:
    keys = {row.key for row in keys_of_schema()}
    below = "labs.NAME.hosts.NAME"
    assert {f"{below}.ssh.jump", f"{below}.ssh.sudo", f"{below}.ssh.sudo.credentials.env"} <= keys
    assert {f"{below}.power.redfish.url", f"{below}.power.ipmi.cipher_suite"} <= keys
    access = json_schema()["$defs"]["SshAccess"]["properties"]
    assert {"type": "boolean"} in access["sudo"]["anyOf"], json.dumps(access["sudo"])  # for editors
