"""Runs pytest with the plugin on small plans, in a process of its own; and a lab that counts as real."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.plans import INVENTORY, LEAN, Ended, lay_out, real_inventory, write_plan

from harness.inventory.load import load_inventory
from harness.lab.bench import Bench
from harness.lab.emulator import Doors
from harness.lab.running import start_lab

#: A fixed width, so that what pytest prints does not depend on who looks.
COLUMNS = "200"


class Plan:
    """A project of its own in which pytest is run."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        self.folder = pytester.path

    def write(self, source: str, name: str = "test_plan.py") -> Path:
        return write_plan(self.folder, source, name)

    def run(
        self, source: str, *words: str, name: str = "test_plan.py", plugins: tuple[str, ...] = ()
    ) -> Ended:
        """Write ``source`` and run pytest on it. ``plugins``: of xdist and allure, those that are wanted."""
        self.write(source, name)
        unwanted = [
            word for p in ("xdist", "allure_pytest") if p not in plugins for word in ("-p", f"no:{p}")
        ]
        done = self._pytester.runpytest_subprocess(*LEAN, *unwanted, *words, timeout=90)
        return Ended(self.folder, int(done.ret), done.stdout.str(), done.stderr.str())


@pytest.fixture
def plan(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """An empty plan over the emulated lab ``small``: hosts ``one`` and ``two``, with a card each."""
    monkeypatch.delenv("HIL_INVENTORY", raising=False)
    monkeypatch.setenv("COLUMNS", COLUMNS)
    lay_out(pytester.path)
    return Plan(pytester)


@pytest.fixture(scope="session")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """Emulated hosts that run for all tests of this process; whoever has the doors may call them real."""
    folder = tmp_path_factory.mktemp("doors")
    lay_out(folder, INVENTORY.replace("emulated: {power: false}", "emulated: {}"))
    with start_lab(load_inventory(folder / "inventory.yaml")) as lab:
        assert lab._doors is not None
        yield lab._doors


@pytest.fixture
def real(plan: Plan, doors: Doors) -> Callable[..., None]:
    """Make the plan's lab one of real hosts, as far as the harness can tell: reached over SSH, no bench.

    Its cards are fresh ones: none runs what the plan of an earlier test has flashed.
    """
    for host in doors.hosts:
        Bench(doors.control).fit(f"{host}/card0", {})

    def write(irreversible: str = "[]", port: int | None = None) -> None:
        text = real_inventory(doors, irreversible, port)
        (plan.folder / "inventory.yaml").write_text(text, encoding="utf-8")

    return write
