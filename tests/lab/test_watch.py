"""Systems that are watched: many at once, one that does not answer keeps no other from being looked at."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from harness.errors import ConfigurationError, InfrastructureError
from harness.inventory.load import load_inventory
from harness.lab import watch as watching
from harness.lab.running import RunningLab
from harness.lab.watch import Watch, watched

INVENTORY = Path(__file__).parents[2] / "inventory.yaml"
LAB = load_inventory(INVENTORY).lab("emulated")


class Opened:
    """Stands for a system. ``troubles``: system -> what is raised by each look, in turn."""

    troubles: dict[str, list[Exception | None]] = {}
    closed: list[str] = []
    meeting: threading.Barrier | None = None

    def __init__(self, lab: RunningLab, name: str, **_: object) -> None:
        self.name = name

    def look(self) -> None:
        if self.meeting is not None:
            self.meeting.wait(timeout=10)
        found = self.troubles.get(self.name)
        trouble = found.pop(0) if found else None
        if trouble is not None:
            raise trouble

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.append(self.name)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> type[Opened]:
    monkeypatch.setattr(watching, "SystemBench", Opened)
    monkeypatch.setattr(watching, "CloudBench", Opened)
    Opened.troubles, Opened.closed, Opened.meeting = {}, [], None
    return Opened


def test_the_controller_of_a_cloud_comes_first_and_is_above_its_subclouds() -> None:
    found = watched(LAB)
    assert list(found) == ["system-controller", "subcloud1", "subcloud2", "subcloud3", "subcloud4"]
    assert found["system-controller"] == "" and found["subcloud3"] == "system-controller"


def test_who_does_not_answer_is_told_and_asked_again(opened: type[Opened]) -> None:
    opened.troubles = {"subcloud2": [InfrastructureError("It is away."), None]}
    with Watch(RunningLab(LAB), ["subcloud1", "subcloud2"], history=None) as watch:  # type: ignore[arg-type]
        assert watch.look() == {"subcloud2": "It is away."}
        assert watch.look() == {}
    assert sorted(opened.closed) == ["subcloud1", "subcloud2"]


def test_systems_are_asked_at_the_same_time(opened: type[Opened]) -> None:
    """Each look waits for all others to have begun."""
    opened.meeting = threading.Barrier(4)
    names = [f"subcloud{n}" for n in range(1, 5)]
    with Watch(RunningLab(LAB), names, history=None) as watch:  # type: ignore[arg-type]
        assert watch.look() == {}


def test_a_mistake_of_the_user_ends_it_and_all_connections(opened: type[Opened]) -> None:
    opened.troubles = {"subcloud1": [ConfigurationError("No password.")]}
    watch = Watch(RunningLab(LAB), ["subcloud1"], history=None)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="No password"):
        watch.look()
    assert opened.closed == ["subcloud1"]
