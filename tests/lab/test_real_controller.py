"""A controller that an inventory calls real: TLS with an authority of its own, for each of its services."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from support.starlingx_lab import PASSWORD, Lab

from harness.controlplane.rest import RestWay
from harness.emulator.starlingx.web import SERVICES, Site
from harness.errors import ConfigurationError
from harness.inventory.load import load_inventory
from harness.lab.running import RunningLab, start_lab
from harness.lab.systems import login_of
from harness.registry.tls import LabAuthority, ServerIdentity

INVENTORY = """\
version: 1
default_lab: rack
labs:
  rack:
    controllers:
      rack:
        role: system-controller
        url: "{url}"
        credentials: {{env: HIL_TEST_RACK}}
"""


class SecureSystem:
    """An emulated system whose services are all reached by TLS, with the certificate of ``identity``."""

    def __init__(self, lab: Lab, identity: ServerIdentity) -> None:
        sockets = {service: socket.create_server(("127.0.0.1", 0)) for service in SERVICES}
        ports = {service: found.getsockname()[1] for service, found in sockets.items()}
        urls = {service: f"https://localhost:{port}" for service, port in ports.items()}
        apps = {ports[service]: app for service, app in Site(lambda: lab.system, urls).apps().items()}

        async def by_port(scope: Any, receive: Any, send: Any) -> None:
            await apps[scope["server"][1]](scope, receive, send)

        self.url = f"{urls['identity']}/v3"
        self._server = uvicorn.Server(
            uvicorn.Config(
                by_port,
                lifespan="off",
                log_level="critical",
                ssl_certfile=str(identity.certificate),
                ssl_keyfile=str(identity.key),
            )
        )
        served = list(sockets.values())
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": served}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> LabAuthority:
    return LabAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory, authority: LabAuthority) -> Iterator[SecureSystem]:
    lab = Lab(tmp_path_factory.mktemp("system"))
    system = SecureSystem(lab, authority.issue("keystone", names=("localhost",), addresses=()))
    yield system
    system.close()
    lab.close()


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Ask the system that an inventory with these lines has."""
    monkeypatch.setenv("HIL_TEST_RACK", PASSWORD)
    opened: list[RestWay] = []

    def ask(url: str, *more: str) -> RestWay:
        lines = "".join(f"        {line}\n" for line in more)
        (tmp_path / "inventory.yaml").write_text(INVENTORY.format(url=url) + lines)
        inventory = load_inventory(tmp_path / "inventory.yaml")
        running: RunningLab
        with start_lab(inventory) as running:
            opened.append(RestWay("rack", login_of(running, running.entry.controllers["rack"]), deadline=20))
        return opened[-1]

    yield ask
    for way in opened:
        way.close()


def test_the_authority_of_the_inventory_is_trusted(
    secure: SecureSystem, asked: Any, authority: LabAuthority, tmp_path: Path
) -> None:
    """By a path that is relative to the inventory; Keystone, sysinv and the fault manager all answer."""
    (tmp_path / "ca.crt").write_bytes(authority.file.read_bytes())
    way = asked(secure.url, "ca_file: ca.crt")
    assert [host.hostname for host in way.hosts()] == ["controller-0"]
    assert way.alarms() == []


@pytest.mark.parametrize("how", ["no authority", "another authority"])
def test_another_certificate_is_not_trusted(
    secure: SecureSystem, asked: Any, tmp_path: Path, how: str
) -> None:
    more = []
    if how == "another authority":
        (tmp_path / "ca.crt").write_bytes(LabAuthority(tmp_path / "other").file.read_bytes())
        more = ["ca_file: ca.crt"]
    with pytest.raises(ConfigurationError, match=r"not one to be trusted: .*CERTIFICATE_VERIFY") as caught:
        asked(secure.url, *more).hosts()
    assert "ca_file" in caught.value.hint


def test_a_certificate_for_another_name_is_not_trusted(
    secure: SecureSystem, asked: Any, authority: LabAuthority, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.file.read_bytes())
    with pytest.raises(ConfigurationError, match=r"not one to be trusted: .*127\.0\.0\.1"):
        asked(secure.url.replace("localhost", "127.0.0.1"), "ca_file: ca.crt").hosts()


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_an_authority_that_cannot_be_used_is_told(
    secure: SecureSystem, asked: Any, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "ca.crt").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"ca\.crt"):
        asked(secure.url, "ca_file: ca.crt").hosts()
