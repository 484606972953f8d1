"""`hil host`: keys of hosts are shown and kept, hosts are listed, power is switched and seen."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest
import typer
from click.testing import Result
from support.bmc import Bmc, Machine
from support.openssh import OpenSsh, client_environment
from support.ssh_peer import openssh
from typer.testing import CliRunner

from harness.cli.card import app as card_app
from harness.cli.host import app
from harness.errors import BlockedError, ConfigurationError, HarnessError, InfrastructureError, LeasedError
from harness.inventory.load import load_inventory
from harness.lab.leasing import lease_key
from harness.leases.owner import Owner
from harness.leases.store import LeaseStore

__all__ = ["openssh"]

INVENTORY = """\
version: 1
default_lab: rack7
labs:
  rack7:
    hosts:
      bastion:
        ssh:
          address: 127.0.0.1
          port: {port}
          user: {user}
          known_hosts: known
          credentials: &key {{key_file: key}}
      worker:
        ssh:
          address: 127.0.0.1
          port: {port}
          user: {user}
          known_hosts: other/known
          credentials: *key
          jump: bastion
          sudo: true
      gone:
        ssh: {{address: 127.0.0.1, port: 1, user: lab, known_hosts: empty, credentials: *key}}
        power: {{redfish: {{url: "{bmc}", user: admin, credentials: {{env: BMC}}}}, deadline: 30}}
        cards:
          card0: {{address: 0000:b2:00.0, identity: 64:4c:36:00:00:01}}
      blind:
        ssh: {{address: 127.0.0.1, port: 1, user: lab, known_hosts: empty, credentials: *key}}
        power: {{command: {{off: "true", on: "true"}}}}
      here: {{local: true}}
"""
Hil = Callable[..., Result]


@pytest.fixture
def bmc() -> Iterator[Bmc]:
    with Bmc(Machine()) as served:
        yield served


@pytest.fixture
def hil(openssh: OpenSsh, bmc: Bmc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hil:
    (tmp_path / "key").write_bytes(openssh.key_file.read_bytes())
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "empty").touch()
    text = INVENTORY.format(port=openssh.port, user=openssh.user, bmc=bmc.access.url)
    (tmp_path / "inventory.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HIL_INVENTORY", raising=False)
    monkeypatch.setenv("BMC", bmc.access.password)
    monkeypatch.setenv("HIL_LEASES", f"sqlite:///{tmp_path}/leases.sqlite")
    return lambda *words: CliRunner().invoke(app, words, catch_exceptions=True)


def failed(result: Result, kind: type[HarnessError]) -> HarnessError:
    assert isinstance(result.exception, kind), (result.exception, result.output)
    return result.exception


def fingerprint(openssh: OpenSsh) -> str:
    """What `ssh-keygen` says of the server's key."""
    file = openssh.key_file.parent / "host_key.pub"
    file.write_text(openssh.host_key)
    environment = os.environ | client_environment()
    command = ["ssh-keygen", "-lf", file]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return said.stdout.split()[1]


def test_a_key_is_shown_and_kept(hil: Hil, openssh: OpenSsh, tmp_path: Path) -> None:
    shown = hil("trust", "bastion", "-o", "json")
    told = json.loads(shown.stdout)
    assert [(key["fingerprint"], key["state"]) for key in told["keys"]] == [(fingerprint(openssh), "new")]
    assert told["kept"] == 0 and not (tmp_path / "known").exists()
    kept = hil("trust", "bastion", "--yes")
    assert kept.exit_code == 0 and fingerprint(openssh) in kept.stdout and "1 key kept in" in kept.stdout
    assert (tmp_path / "known").read_text() == f"[127.0.0.1]:{openssh.port} {openssh.host_key}"
    again = hil("trust", "bastion")
    assert again.exit_code == 0 and "already" in again.stdout


def test_nobody_is_there_to_answer(hil: Hil, tmp_path: Path) -> None:
    error = failed(hil("trust", "bastion"), ConfigurationError)
    assert "--fingerprint" in error.hint and not (tmp_path / "known").exists()


def test_a_person_says_yes_or_no(hil: Hil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.cli.host._agreed", lambda offer: False)
    no = hil("trust", "bastion")
    assert no.exit_code == 1 and "Nothing was kept." in no.stdout and not (tmp_path / "known").exists()
    monkeypatch.setattr("harness.cli.host._agreed", lambda offer: True)
    assert hil("trust", "bastion").exit_code == 0 and (tmp_path / "known").exists()


def test_a_fingerprint_says_it_too(hil: Hil, openssh: OpenSsh, tmp_path: Path) -> None:
    error = failed(hil("trust", "bastion", "--fingerprint", "SHA256:other"), InfrastructureError)
    assert "shows no key SHA256:other" in error.message and fingerprint(openssh) in error.message
    assert not (tmp_path / "known").exists()
    assert hil("trust", "bastion", "--fingerprint", fingerprint(openssh)).exit_code == 0
    assert (tmp_path / "known").exists()


def test_a_changed_key_needs_replace(hil: Hil, openssh: OpenSsh, tmp_path: Path) -> None:
    old = paramiko.ECDSAKey.generate(bits=256)
    name = f"[127.0.0.1]:{openssh.port}"
    (tmp_path / "known").write_text(f"# mine\n{name} {old.get_name()} {old.get_base64()}\n")
    error = failed(hil("trust", "bastion", "--yes"), InfrastructureError)
    assert old.fingerprint in error.message and fingerprint(openssh) in error.message
    assert "--replace" in error.hint and old.get_base64() in (tmp_path / "known").read_text()
    told = json.loads(hil("trust", "bastion", "--yes", "--replace", "-o", "json").stdout)
    assert (told["keys"][0]["state"], told["keys"][0]["was"], told["kept"]) == ("changed", old.fingerprint, 1)
    assert (tmp_path / "known").read_text() == f"# mine\n{name} {openssh.host_key}"


def test_through_a_jump_host_whose_key_must_be_known_first(hil: Hil, tmp_path: Path) -> None:
    error = failed(hil("trust", "worker", "--yes"), ConfigurationError)
    assert "hil host trust bastion" in error.hint
    assert hil("trust", "bastion", "--yes").exit_code == 0
    assert hil("trust", "worker", "--yes").exit_code == 0
    assert (tmp_path / "other/known").exists()


def test_what_has_no_key_to_trust(hil: Hil) -> None:
    assert "this machine" in failed(hil("trust", "here"), ConfigurationError).message
    assert "Did you mean 'worker'" in failed(hil("trust", "workr"), ConfigurationError).hint


def test_hosts_are_listed_and_logged_in_to(hil: Hil, openssh: OpenSsh) -> None:
    hil("trust", "bastion", "--yes")
    rows = {row["name"]: row for row in json.loads(hil("list", "--login", "-o", "json").stdout)}
    assert (rows["bastion"]["key"], rows["worker"]["key"]) == ("known", "unknown")
    assert (rows["worker"]["through"], rows["worker"]["root"], rows["here"]["reached"]) in (
        ("bastion", "login", "local"),  # who runs the tests is root
        ("bastion", "sudo", "local"),
    )
    assert (rows["gone"]["power"], rows["blind"]["power"]) == ("redfish", "command")
    assert rows["bastion"]["answers"].startswith("in ") and "refused" in rows["gone"]["answers"]
    table = hil("list").stdout.splitlines()
    assert table[0].split() == ["HOST", "REACHED", "THROUGH", "KEY", "ROOT", "POWER"]
    assert f"ssh {openssh.user}@127.0.0.1:{openssh.port}" in table[1]


def test_power_is_switched_and_seen(hil: Hil, bmc: Bmc) -> None:
    assert hil("power", "gone").stdout == "gone: power on\n"
    assert hil("power", "gone", "off").stdout == "gone: power off\n"
    assert not bmc.machine.powered
    told = json.loads(hil("power", "gone", "cycle", "-o", "json").stdout)
    assert told == {"host": "gone", "power": "on", "by": "redfish"} and bmc.machine.powered


def test_power_belongs_to_whoever_has_a_card(hil: Hil, bmc: Bmc, tmp_path: Path) -> None:
    with LeaseStore(f"sqlite:///{tmp_path}/leases.sqlite") as store:
        key = lease_key(*load_inventory(tmp_path / "inventory.yaml").lab().card("gone/card0"))
        store.acquire(key, "gone/card0", Owner("run-of-bob", "bench8", 4712, "2", "elsewhere"), "soak", 60)
    assert "run-of-bob" in failed(hil("power", "gone", "off"), LeasedError).message
    assert bmc.machine.powered and hil("power", "gone").exit_code == 0


def test_a_host_whose_key_an_authority_signs_is_told(hil: Hil, openssh: OpenSsh, tmp_path: Path) -> None:
    def key() -> str:
        rows = json.loads(hil("list", "-o", "json").stdout)
        return next(str(row["key"]) for row in rows if row["name"] == "bastion")

    assert key() == "unknown"
    (tmp_path / "known").write_text(f"@cert-authority 127.0.* {openssh.host_key}")
    assert key() == "by authority"


@pytest.mark.parametrize(
    ("command", "words"),
    [(app, ("power", "gone", "off")), (card_app, ("reset", "gone/card0"))],
    ids=["host power", "card reset"],
)
def test_a_database_of_leases_that_is_named_is_the_one_that_is_asked(
    hil: Hil, bmc: Bmc, tmp_path: Path, command: typer.Typer, words: tuple[str, ...]
) -> None:
    """Somebody has the card in a database that HIL_LEASES does not name."""
    named = f"sqlite:///{tmp_path}/elsewhere.sqlite"
    with LeaseStore(named) as store:
        key = lease_key(*load_inventory(tmp_path / "inventory.yaml").lab().card("gone/card0"))
        store.acquire(key, "gone/card0", Owner("run-of-bob", "bench8", 4712, "2", "elsewhere"), "soak", 60)
    result = CliRunner().invoke(command, [*words, "--leases", named])
    assert "run-of-bob" in failed(result, LeasedError).message
    assert bmc.machine.powered
    assert not (tmp_path / "leases.sqlite").exists()


def test_power_that_nobody_can_see_is_said_so(hil: Hil) -> None:
    assert "not seen" in hil("power", "blind", "off").stdout
    assert "status" in failed(hil("power", "blind"), BlockedError).hint
    failed(hil("power", "here", "off"), BlockedError)
