"""What the tests of labs share: an inventory of their own, a running lab, and the OpenSSH clients."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from harness.errors import BlockedError
from harness.hosts.access import Access
from harness.inventory.load import load_inventory
from harness.inventory.model import Inventory
from harness.lab.running import RunningLab, start_lab
from harness.packages import environment_of, provide

INVENTORY = """
version: 1
default_lab: small
labs:
  small:
    hosts:
      left:
        emulated: {hostname: controller-0}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:77:01:00
            emulated:
              sr_root: "abababababababababababababababababababababababababababababababab"
              sr_cancelled: [3]
              flash_count: 12
      right:
        emulated: {hostname: controller-0, power: false}
        cards:
          card0: {address: 0000:b4:00.0, identity: 64:4c:36:77:02:00}
      reached:
        ssh: {address: lab-host.example, user: sysadmin, credentials: {env: LAB_TEST_PASSWORD}}
        power: {command: {off: "true", on: "false"}}
"""


class OpenSsh:
    """The OpenSSH clients, given nothing but what the lab says."""

    def __init__(self, access: Access, ssh: Path) -> None:
        self.access = access
        self._ssh = ssh
        #: What has an unpacked client find its libraries.
        self._with = ("env", *(f"{name}={value}" for name, value in environment_of(ssh).items()))
        self._options = [
            *("-F", "/dev/null"),
            *("-o", "BatchMode=yes"),
            *("-o", "IdentitiesOnly=yes"),
            *("-o", "StrictHostKeyChecking=yes"),
            *("-o", f"UserKnownHostsFile={access.known_hosts}"),
            *("-o", "ConnectTimeout=10"),
        ]

    def command(
        self, *words: str, user: str = "", key: Path | None = None, options: Sequence[str] = ()
    ) -> list[str]:
        """Return the command line of ssh for the remote command ``words``. ``options``: of ssh itself."""
        login = f"{user or self.access.user}@{self.access.address}"
        where = ("-i", str(key or self.access.key_file), "-p", str(self.access.port), login)
        return [*self._with, str(self._ssh), *self._options, *options, *where, *words]

    def run(self, command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self.command(command), input=stdin, capture_output=True, timeout=60)

    def sftp(self, batch: str) -> subprocess.CompletedProcess[str]:
        words = [
            *self._with,
            str(self._ssh.with_name("sftp")),
            *("-S", str(self._ssh)),
            *self._options,
            "-i",
            str(self.access.key_file),
            "-P",
            str(self.access.port),
            "-b",
            "-",
        ]
        login = f"{self.access.user}@{self.access.address}"
        return subprocess.run([*words, login], input=batch, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="session")
def inventory_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lab") / "inventory.yaml"
    path.write_text(INVENTORY)
    return path


@pytest.fixture
def inventory(inventory_file: Path) -> Inventory:
    return load_inventory(inventory_file)


@pytest.fixture(scope="session")
def shared_lab(inventory_file: Path) -> Iterator[RunningLab]:
    with start_lab(load_inventory(inventory_file)) as lab:
        yield lab


@pytest.fixture
def lab(shared_lab: RunningLab) -> RunningLab:
    """A lab whose cards are as new."""
    assert shared_lab.bench is not None
    for card in ("left/card0", "right/card0"):
        shared_lab.bench.fit(card, {})
    return shared_lab


@pytest.fixture
def open_ssh() -> Callable[[RunningLab, str], OpenSsh]:
    try:
        ssh = provide("ssh", "openssh-client", install=False)
    except BlockedError as error:
        pytest.fail(str(error), pytrace=False)

    def client(lab: RunningLab, host: str) -> OpenSsh:
        access = lab.access(host)
        assert access is not None
        return OpenSsh(access, ssh)

    return client


@pytest.fixture(scope="session")
def image() -> Callable[[str], bytes]:
    """Returns the image of a recipe of the project."""
    from harness.images.recipes import build, load_recipes

    recipes = load_recipes((Path(__file__).resolve().parents[2] / "fixtures/images.yaml").read_text())
    return lambda name: build(recipes[name])
