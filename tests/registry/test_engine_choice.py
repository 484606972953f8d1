"""Which Docker engine is used, and what the machine's own is held to: nothing of it is changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.engine import private_engine, short_folder

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.registry.engines.choose import open_engine
from harness.registry.engines.machine import MachineEngine
from harness.registry.engines.private import PrivateEngine


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateEngine]:
    """One that runs, and stands for the machine's."""
    with private_engine() as started:
        yield started


@pytest.fixture
def machine(engine: PrivateEngine, tmp_path: Path) -> MachineEngine:
    return MachineEngine(engine.url, certificates=tmp_path / "certs.d")


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    (tmp_path / "ca.crt").write_bytes(b"of this lab")
    return tmp_path / "ca.crt"


class TestTheMachinesOwn:
    def test_it_is_what_answers_there(self, machine: MachineEngine, engine: PrivateEngine) -> None:
        assert machine.version == engine.version
        client = machine.client()
        assert client.ping()
        client.close()

    def test_none_that_answers(self, tmp_path: Path) -> None:
        with pytest.raises(InfrastructureError, match="does not answer"):
            MachineEngine(f"unix://{tmp_path}/nobody.sock")

    def test_an_authority_that_it_has_is_enough(
        self, machine: MachineEngine, authority: Path, tmp_path: Path
    ) -> None:
        place = tmp_path / "certs.d" / "[::1]:5000"
        place.mkdir(parents=True)
        (place / "ca.crt").write_bytes(authority.read_bytes())
        with pytest.raises(ConfigurationError):
            machine.trust("127.0.0.1:5000", authority)
        machine.trust("[::1]:5000", authority)

    def test_an_authority_that_it_lacks_is_not_installed(
        self, machine: MachineEngine, authority: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(BlockedError, match="does not trust") as raised:
            machine.trust("[::1]:5000", authority)
        assert f"sudo install -D -m 644 {authority} {tmp_path}/certs.d/[::1]:5000/ca.crt" in raised.value.hint
        assert not (tmp_path / "certs.d").exists()

    def test_another_machines_engine_reaches_no_registry_of_ours(
        self, machine: MachineEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(machine, "_url", "tcp://elsewhere:2376")
        with pytest.raises(BlockedError, match="loopback of this machine"):
            machine.registry_host()


class TestWhichIsUsed:
    def test_the_private_one_that_the_user_names(
        self, engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        chosen = open_engine()
        assert isinstance(chosen, PrivateEngine)
        assert chosen.url == engine.url
        chosen.close()
        assert engine.running

    def test_a_new_private_one(self, engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("DOCKER_HOST", raising=False)
        with short_folder() as base:
            chosen = open_engine(base / "engine")
            assert isinstance(chosen, PrivateEngine)
            assert chosen.running
            chosen.close()
            assert not (base / "engine").exists()

    def test_the_machines_where_no_private_one_can_run(
        self, engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "machine.sock").symlink_to(engine.enclosure.socket)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/machine.sock")
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        chosen = open_engine()
        assert isinstance(chosen, MachineEngine)
        assert chosen.version == engine.version

    def test_none_at_all(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(BlockedError, match="needs root") as raised:
            open_engine()
        assert "as root" in raised.value.hint
