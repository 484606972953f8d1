"""What one pytest process holds for its run: inventory, lab, connections, history. Opened on first use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, nullcontext, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import BlockedError, ConfigurationError, HarnessError, InfrastructureError
from harness.health.states import Event
from harness.interruption import obey_once
from harness.plugin.devices import Devices
from harness.plugin.wear import Wear
from harness.plugin.workers import Workers

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.hosts.protocol import Host
    from harness.inventory.model import Inventory, Lab
    from harness.lab.bench import Bench
    from harness.lab.running import RunningLab
    from harness.leases.holder import LeaseHolder
    from harness.plugin.images import ImageShelf
    from harness.plugin.run_history import RunHistory
    from harness.scenarios.excluding import Excluding

#: Seconds that an emulated card may take to answer after a reset: lab time jumps, so it is there at once.
_EMULATED_SETTLE = 0.2
#: The run folder of this process; the controlling process of xdist hands it to its workers.
RUN_DIR_KEY = "hil_run_dir"
#: The seed of a campaign's order, in the same way.
SEED_KEY = "hil_seed"


class HilSession:
    """Everything of a run that is expensive or must be closed; one per pytest process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._hosts: dict[str, Host] = {}
        self._cards: dict[str, CardDriver] = {}
        self._lab: RunningLab | None = None
        self._history: RunHistory | None = None
        #: The workers that this process controls.
        self.workers = Workers()
        self._unrecorded: InfrastructureError | None = None
        #: Why the health of a card could not be kept.
        self._unkept: InfrastructureError | None = None
        self._open = ExitStack()
        #: What is wrong with the command line, the inventory or a marker; found while tests are collected.
        self.misconfigured: ConfigurationError | None = None
        #: Cards that a campaign names; what the lab lacks of them blocks its scenarios.
        self.expected: tuple[str, ...] = ()
        #: The updates of real cards that a campaign has reserved.
        self.wear = Wear()
        #: What is known of the campaign when the run begins, for its history.
        self.campaign: Mapping[str, Any] = {}
        #: Whether allure-pytest collects results in this run.
        self.allure: bool = bool(config.getoption("allure_report_dir", None))
        worker_input = getattr(config, "workerinput", None)
        self.worker: str = worker_input["workerid"] if worker_input else ""
        self._run_dir = Path(worker_input[RUN_DIR_KEY]) if worker_input else None

    @cached_property
    def run_dir(self) -> Path:
        """Where the run is kept; the folder is made when something is written to it."""
        from harness.record.runs import new_run_dir

        return self._run_dir or new_run_dir(Path(self._config.getoption("hil_reports")))

    @cached_property
    def leases(self) -> LeaseHolder:
        """The leases of this process; given back when the run ends."""
        from harness.lab.leasing import leases_of

        said: str | None = self._config.getoption("hil_leases")
        index, wait = (self._config.getoption(name) for name in ("hil_store", "hil_lease_wait"))
        worker, name = bool(self.worker), self.run_dir.name
        holder = leases_of(name, self.run_dir.parent, said, index, wait=wait, worker=worker, folder=name)
        self._open.callback(holder.close)
        return holder

    @cached_property
    def devices(self) -> Devices:
        """The quarantine, and the turns of workers on real hosts."""
        return Devices(self.run_dir, shared=bool(self.worker))

    @cached_property
    def excluding(self) -> Excluding:
        """What was read of cards that scenarios did not apply to."""
        from harness.scenarios.excluding import Excluding

        return Excluding(lambda card: self.lab.leases.turn(card))

    @cached_property
    def inventory(self) -> Inventory:
        """The inventory of ``--hil-inventory``; emulated systems are of the release that options name."""
        from harness.inventory.load import load_inventory
        from harness.lab.releases import released
        from harness.plugin.releases import release_of_run

        path = self._config.getoption("hil_inventory")
        loaded = load_inventory(Path(path) if path else None)
        return released(loaded, self._config.getoption("hil_lab"), release_of_run(self._config))

    @cached_property
    def lab_entry(self) -> Lab:
        """The lab of ``--hil-lab``, the inventory's default otherwise."""
        return self.inventory.lab(self._config.getoption("hil_lab"))

    @cached_property
    def registry_name(self) -> str | None:
        """The registry of ``--hil-registry``; None: the lab's first.

        :raises ConfigurationError: the lab has no such registry.
        """
        name: str | None = self._config.getoption("hil_registry")
        return None if name is None else self.lab_entry.registry(name).name

    @property
    def lab(self) -> RunningLab:
        """The lab, started (emulated) or reached (real) on first use."""
        if self._lab is None:
            from harness.lab.running import start_lab

            if self.worker:
                obey_once()
            leases = self.leases  # before the lab: given back after it has ended
            self._lab = self._open.enter_context(
                start_lab(self.inventory, self.lab_entry.name, leases=leases)
            )
            self._lab.leases.reach = lambda host: nullcontext(self.host(host.name))
            self._config.hook.pytest_hil_lab_started(lab=self._lab)
        return self._lab

    @cached_property
    def images(self) -> ImageShelf:
        """The images that scenarios flash, by name."""
        from harness.lab.background import project_of
        from harness.plugin.images import ImageShelf

        return ImageShelf.of(project_of(self.inventory), files=self._image_files())

    def _image_files(self) -> dict[str, Path]:
        """Return what ``--hil-image`` says. :raises ConfigurationError: it does not say NAME=FILE."""
        said: list[str] = self._config.getoption("hil_image")
        for each in said:
            if not all(each.partition("=")):
                raise ConfigurationError(f"--hil-image {each} says no image.", hint="It takes NAME=FILE.")
        return {name: Path(file) for name, _, file in (each.partition("=") for each in said)}

    @property
    def history(self) -> RunHistory:
        """The history of this process, begun with a record of the run.

        :raises InfrastructureError: it cannot be written.
        """
        if self._history is None:
            try:
                self._begin_history()
            except InfrastructureError as error:
                self._unrecorded = error
                raise
        assert self._history is not None
        return self._history

    def _begin_history(self) -> None:
        from harness.judgement.records import RunStarted
        from harness.plugin.releases import release_of_run
        from harness.plugin.run_history import RunHistory
        from harness.record.runs import make_run_dir

        started = RunStarted(
            run=self.run_dir.name,
            lab=self.lab_entry.name,
            versions=_versions(),
            options={
                "inventory": str(self.inventory.path),
                "irreversible": sorted(self.allowed_on_real),
                **release_of_run(self._config).to_json(),
                **self.campaign,
            },
        )
        self._open.callback(os.close, make_run_dir(self.run_dir))
        name = f"history-{self.worker}.jsonl" if self.worker else "history.jsonl"
        self._history = RunHistory(self.run_dir / name)
        self._history.add(started)
        self._config.hook.pytest_hil_run_started()

    @property
    def not_recorded(self) -> InfrastructureError | None:
        """Why nothing more can be recorded; None while it can."""
        return self._unrecorded or (self._history.failure if self._history is not None else None)

    @property
    def opened(self) -> RunHistory | None:
        """The history, where anything of this run was recorded."""
        return self._history

    @cached_property
    def allowed_on_real(self) -> frozenset[str]:
        """What ``--hil-irreversible`` names. :raises ConfigurationError: there is no such act."""
        from harness.cards.interlock import named_acts

        return named_acts(self._config.getoption("hil_irreversible") or "", "--hil-irreversible")

    def card_names(self) -> list[str]:
        """Return the cards of the lab that ``--hil-device`` leaves, as ``host/card``.

        :raises ConfigurationError: the inventory or an option is wrong.
        """
        wanted = self._wanted()
        names = [f"{host.name}/{card.name}" for host, card in self.lab_entry.cards()]
        lacking = [want for want in wanted if not any(_selects(want, name) for name in names)]
        found = [name for name in names if not wanted or any(_selects(want, name) for want in wanted)]
        return found + [
            name for name in lacking if name in self.expected and name not in self.lab_entry.hosts
        ]

    def chosen(self, devices: Iterable[str]) -> list[str]:
        """Return which of ``devices``, in the lab or not, ``--hil-device`` leaves."""
        wanted = self._wanted()
        return [name for name in devices if not wanted or any(_selects(want, name) for want in wanted)]

    def require_card(self, name: str) -> None:
        """:raises BlockedError: the lab has no such card; a scenario or a campaign names it."""
        known = [f"{host.name}/{card.name}" for host, card in self.lab_entry.cards()]
        if name not in known:
            raise BlockedError(
                f"The lab {self.lab_entry.name} has no card {name}.",
                hint=f"It has {', '.join(known) or 'none'}.",
            )

    def host_names(self) -> list[str]:
        """Return the hosts of the lab that ``--hil-device`` leaves. Errors as for :meth:`card_names`."""
        wanted = {name.split("/", 1)[0] for name in self._wanted()}
        return [name for name in self.lab_entry.hosts if not wanted or name in wanted]

    def _wanted(self) -> list[str]:
        from harness.inventory.selection import check_devices

        wanted: list[str] = self._config.getoption("hil_device") or []
        check_devices(self.lab_entry, wanted)
        _ = self.allowed_on_real
        return wanted or list(self.expected)

    def is_real(self, host: str) -> bool:
        """Return whether what happens on ``host`` happens to real hardware."""
        return self.lab_entry.host(host).real

    def bench_of(self, host: str) -> Bench | None:
        """Return the bench that fits and holds the cards of ``host``; None where they are real."""
        return self.lab.bench if self.lab.offers(host, "bench") else None

    def quarantine(self, card: str, why: str) -> None:
        """Keep the rest of the run from ``card``, and later ones where its health is kept."""
        self.devices.quarantine(card, why, real=self.is_real(card.split("/", 1)[0]))
        self.note(card, Event.FAILURE, why)

    def note(self, card: str, event: Event, reason: str) -> None:
        """Let ``event`` happen to the health of ``card``, where that is kept.

        If it cannot be, the run says so at its end.
        """
        if self._lab is None:
            return
        evidence = f"{self.run_dir.resolve()}: {self._lab.leases.reason}"
        try:
            self._lab.leases.health.note(card, event, reason, evidence)
        except InfrastructureError as error:
            self._unkept = error

    def take_places(self) -> None:
        """Take the labgrid places of the hosts for this process's workers; what fails, they run into."""
        with suppress(HarnessError):
            for name in self.host_names():
                place = self.lab_entry.host(name).labgrid
                if place is not None and self.leases.places is not None:
                    with suppress(HarnessError):
                        self.leases.places.hold(place)

    def progress(self, device: str, doing: str) -> None:
        """Tell whoever shows progress what is done to ``device`` now."""
        self._config.hook.pytest_hil_progress(device=device, doing=doing)

    def host(self, name: str) -> Host:
        """Return the driver of a host; one connection per host and process."""
        if name not in self._hosts:
            from harness.cards.environment import environment_of
            from harness.hosts.connect import connect
            from harness.record.operations import record_refusal

            entry, access = self.lab_entry.host(name), self.lab.access(name)
            host = connect(entry, access, refused=partial(record_refusal, self.history, name))
            self._open.callback(host.close)
            self._hosts[name] = host
            self.history.add(environment_of(host))
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
                fence=partial(self._fence, name),
                updates=self.lab.leases.updates,
            )
        return self._cards[name]

    def _fence(self, card: str) -> None:
        """Return if ``card`` may be written to now: its lease is ours, and a campaign has reserved it."""
        self.lab.leases.check(card)
        self.wear.check(card, self.history.records)

    def finish(self, *, interrupted: bool) -> list[HarnessError]:
        """Record the end, then close connections, lab and history; every step is tried.

        :returns: what went wrong in this process and belongs to no scenario.
        """
        from harness.judgement.records import RunEnded

        troubles: list[HarnessError] = [] if self._unkept is None else [self._unkept]

        def attempt(step: Callable[[], object]) -> None:
            try:
                step()
            except HarnessError as error:
                troubles.append(error)

        history = self._history
        if history is not None:
            attempt(lambda: history.add(RunEnded(how="interrupted" if interrupted else "finished")))
        attempt(self._open.close)
        if history is not None:
            attempt(history.close)
        if self.not_recorded is not None:  # told once, not for every record that it kept out
            troubles = [self.not_recorded]
        return troubles


def _versions() -> dict[str, str]:
    from harness import __version__

    return {"harness": __version__, "pytest": pytest.__version__}


def _selects(want: str, card: str) -> bool:
    return want == card or want == card.split("/", 1)[0]


SESSION = pytest.StashKey[HilSession]()
