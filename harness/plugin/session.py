"""What one pytest process holds for its run: inventory, lab, connections, history. Opened on first use."""

from __future__ import annotations

import os
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.hosts.protocol import Host
    from harness.inventory.model import Inventory, Lab
    from harness.lab.running import RunningLab
    from harness.plugin.images import ImageShelf
    from harness.record.history import History

#: Seconds that an emulated card may take to answer after a reset: lab time jumps, so it is there at once.
_EMULATED_SETTLE = 0.2
#: The run folder of this process; the controlling process of xdist hands it to its workers.
RUN_DIR_KEY = "hil_run_dir"


def new_run_dir(reports: Path) -> Path:
    """Return the folder of a new run below ``reports``; it is made when something is written to it."""
    return reports / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


class HilSession:
    """Everything of a run that is expensive or must be closed; one per pytest process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._hosts: dict[str, Host] = {}
        self._cards: dict[str, CardDriver] = {}
        #: Cards that a failed teardown left in an unknown state -> why.
        self.quarantined: dict[str, str] = {}
        #: Whether allure-pytest collects results in this run.
        self.allure: bool = bool(config.getoption("allure_report_dir", None))
        worker_input = getattr(config, "workerinput", None)
        self.worker: str = worker_input["workerid"] if worker_input else ""
        self.run_dir: Path = (
            Path(worker_input[RUN_DIR_KEY])
            if worker_input
            else new_run_dir(Path(config.getoption("hil_reports")))
        )

    @cached_property
    def inventory(self) -> Inventory:
        """The inventory of ``--hil-inventory``."""
        from harness.inventory.load import load_inventory

        path = self._config.getoption("hil_inventory")
        return load_inventory(Path(path) if path else None)

    @cached_property
    def lab_entry(self) -> Lab:
        """The lab of ``--hil-lab``, the inventory's default otherwise."""
        return self.inventory.lab(self._config.getoption("hil_lab"))

    @cached_property
    def lab(self) -> RunningLab:
        """The lab, started (emulated) or reached (real) on first use."""
        from harness.lab.running import start_lab

        lab = start_lab(self.inventory, self.lab_entry.name)
        self._config.hook.pytest_hil_lab_started(lab=lab)
        return lab

    @cached_property
    def images(self) -> ImageShelf:
        """The images that scenarios flash, by name."""
        from harness.plugin.images import ImageShelf

        return ImageShelf.of(self.inventory.path.parent)

    @cached_property
    def history(self) -> History:
        """The history of this process, begun with a record of the run."""
        from harness import __version__
        from harness.judgement.records import RunStarted
        from harness.record.history import History

        self.run_dir.mkdir(parents=True, exist_ok=True)
        name = f"history-{self.worker}.jsonl" if self.worker else "history.jsonl"
        history = History(self.run_dir / name)
        history.add(
            RunStarted(
                run=self.run_dir.name,
                lab=self.lab_entry.name,
                versions={"harness": __version__, "pytest": pytest.__version__},
                options={
                    "inventory": str(self.inventory.path),
                    "irreversible": sorted(self.allowed_on_real),
                },
            )
        )
        return history

    @property
    def opened(self) -> bool:
        """Whether anything of this run was recorded."""
        return "history" in self.__dict__

    @cached_property
    def allowed_on_real(self) -> frozenset[str]:
        """What ``--hil-irreversible`` names."""
        names = self._config.getoption("hil_irreversible") or ""
        return frozenset(name.strip() for name in names.split(",") if name.strip())

    def card_names(self) -> list[str]:
        """Return the cards of the lab that ``--hil-device`` leaves, as ``host/card``."""
        wanted: list[str] = self._config.getoption("hil_device") or []
        names = [
            f"{host.name}/{card.name}"
            for host in self.lab_entry.hosts.values()
            for card in host.cards.values()
        ]
        unknown = [name for name in wanted if not any(_selects(name, card) for card in names)]
        if unknown:
            raise pytest.UsageError(
                f"--hil-device {', '.join(unknown)}: no such card or host in lab "
                f"{self.lab_entry.name!r}; it has {', '.join(names) or 'no cards'}"
            )
        return [name for name in names if not wanted or any(_selects(want, name) for want in wanted)]

    def host(self, name: str) -> Host:
        """Return the driver of a host; one connection per host and process."""
        if name not in self._hosts:
            from harness.hosts.connect import connect

            self._hosts[name] = connect(self.lab_entry.host(name), self.lab.access(name))
        return self._hosts[name]

    def card(self, name: str) -> CardDriver:
        """Return the driver of the card ``host/card``."""
        if name not in self._cards:
            from harness.cards.driver import SETTLE, CardDriver

            host, card = self.lab_entry.card(name)
            self._cards[name] = CardDriver(
                self.host(host.name),
                card,
                self.history,
                real=host.real,
                allowed=self.allowed_on_real,
                sysfs=host.sysfs,
                tools=host.tools.model_dump(),
                upload_dir=host.upload_dir,
                settle=SETTLE if host.real else _EMULATED_SETTLE,
            )
        return self._cards[name]

    def close(self) -> None:
        """Close connections, then the lab, then the history; every step is tried."""
        try:
            for host in self._hosts.values():
                host.close()
        finally:
            try:
                if "lab" in self.__dict__:
                    self.lab.close()
            finally:
                if self.opened:
                    self.history.close()


def _selects(want: str, card: str) -> bool:
    return want == card or want == card.split("/", 1)[0]


SESSION = pytest.StashKey[HilSession]()
