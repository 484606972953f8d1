"""A card, a lab and a bench that note what is asked of them, for tests of faults."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.lab_bench import LabBench
from support.mounted import blocked

from harness.errors import BlockedError, DeadlineError, InfrastructureError, NotOfferedError
from harness.faults.own_store import OwnStore
from harness.judgement.records import Fault, Record, Subject
from harness.registry.assembled import RegistryLab
from harness.registry.configuration import RegistrySettings
from harness.registry.process import find_registry


@dataclass
class Fakes:
    """What is asked of card, lab and bench, in its order; and how the lab answers."""

    asked: list[tuple[Any, ...]] = field(default_factory=list)
    records: list[Fault] = field(default_factory=list)
    #: Operations that fail, by name.
    failing: set[str] = field(default_factory=set)
    #: Points that the card does not come to.
    never: set[str] = field(default_factory=set)
    capabilities: set[str] = field(default_factory=lambda: {"power", "bench"})
    address: str = "0000:b2:00.0"
    power_on: tuple[str, ...] = ()

    name = "one/card0"
    subject = Subject("card", "one/card0", host="one")

    def ask(self, *words: Any) -> None:
        self.asked.append(words)
        if words[0] in self.failing:
            raise InfrastructureError(f"{words[0]} failed")

    # -- the card, and its host
    @property
    def host(self) -> Any:
        fakes = self

        class FakeHost:
            name = "one"

            def close(self) -> None:
                fakes.ask("close")

        return FakeHost()

    def signal(self, name: str) -> None:
        self.ask("signal", name)

    def cancel_update(self) -> None:
        self.ask("cancel")

    def require_update_attributes(self) -> None:
        if "ioctl" in self.capabilities:
            raise NotOfferedError("its update interface is an ioctl")

    def locate(self) -> None:
        self.ask("locate")

    # -- the lab
    @property
    def lab(self) -> Any:
        fakes = self

        class FakeLab:
            name = "small"
            bench = FakeBench(fakes) if "bench" in fakes.capabilities else None

            def offers(self, host: str, capability: str) -> bool:
                assert host == "one"
                return capability in fakes.capabilities

            def require(self, host: str, capability: str) -> None:
                if not self.offers(host, capability):
                    raise BlockedError(f"{host} has no {capability}.", hint="give it")

            def power(self, host: str, how: str, *, while_updating: bool = False) -> None:
                fakes.ask("power", how)

            def power_on_command(self, host: str) -> tuple[tuple[str, ...], str] | None:
                return (fakes.power_on, "") if fakes.power_on else None

        return FakeLab()

    # -- the history
    def add(self, record: Record) -> Record:
        assert isinstance(record, Fault)
        self.records.append(record)
        self.asked.append((record.state, record.action))
        return record

    @property
    def states(self) -> list[tuple[str, str, str]]:
        return [(record.action, record.point, record.state) for record in self.records]


class FakeBench:
    def __init__(self, fakes: Fakes) -> None:
        self._fakes = fakes

    def hold(self, card: str, phase: str) -> None:
        assert card == "one/card0"
        self._fakes.ask("hold", phase)

    def release(self, card: str) -> None:
        self._fakes.ask("release")

    def wait_held(self, card: str, phase: str, *, while_updating: bool) -> None:
        assert while_updating, "a point that cannot come any more is not waited for"
        self._fakes.ask("wait", phase)
        if phase in self._fakes.never:
            raise DeadlineError("it did not come")

    def condition(self, card: str, name: str, on: bool) -> None:
        self._fakes.ask("condition", name, on)

    def moves_to(self, card: str, address: str | None) -> None:
        self._fakes.ask("moves-to", address)


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


@pytest.fixture(scope="session")
def program() -> Path:
    """Debian's registry: the machine's, or unpacked into the project; tests install nothing."""
    try:
        return find_registry(install=False)
    except BlockedError as error:
        pytest.fail(f"These tests need a real registry. {error}", pytrace=False)


@pytest.fixture
def bench(tmp_path: Path, program: Path) -> Iterator[LabBench]:
    """A registry with TLS and a token service, for actions on registries."""
    with RegistryLab(tmp_path / "lab", program=program) as lab:
        yield LabBench(lab)


@pytest.fixture
def own_store_bench(tmp_path: Path, program: Path) -> Iterator[LabBench]:
    """The same with its store on a file system of its own, in memory."""
    try:
        store = OwnStore(4 << 20)
    except BlockedError as error:
        blocked(str(error))
    with store, RegistryLab(tmp_path, RegistrySettings(storage=store.folder), program=program) as lab:
        yield LabBench(lab)
