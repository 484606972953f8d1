"""Sweeps pushes: every client, every action, every point of the push; each client by itself."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

from harness.errors import BlockedError
from harness.judgement.records import RunStarted
from harness.registry.clients.catalogue import PUSH_CLIENTS
from harness.scenarios.push_trials import ClientLane, PushPlan
from harness.scenarios.sweep_results import PUSH, Kind

if TYPE_CHECKING:
    from harness.lab.registry_bench import RegistryBench
    from harness.record.history import History
    from harness.registry.configuration import RegistrySettings
    from harness.registry.engine import Engine
    from harness.scenarios.sweep import Ledger

#: Opens an engine; None where none is wanted. :raises BlockedError: none can be had.
EngineOpener = Callable[[], "Engine | None"]


@dataclass(slots=True)
class PushSweep:
    """What a sweep of pushes is; see :class:`harness.scenarios.sweep.Swept`."""

    clients: Sequence[str]
    plan: PushPlan
    open_engine: EngineOpener
    _engine: Engine | None = field(default=None, init=False)
    _no_engine: BlockedError | None = field(default=None, init=False)

    @property
    def kind(self) -> Kind:
        """What it is, in words."""
        return PUSH

    @property
    def groups(self) -> Sequence[Sequence[str]]:
        """Each client by itself."""
        return [[name] for name in self.clients]

    @property
    def options(self) -> Mapping[str, Any]:
        """All that decides which trials there are."""
        return {"clients": list(self.clients), **self.plan.to_json()}

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        """Have an engine meanwhile, where a client needs one."""
        self.plan.check()
        if any(PUSH_CLIENTS[name].needs_engine for name in self.clients):
            try:
                self._engine = self.open_engine()
            except BlockedError as error:
                self._no_engine = error
        try:
            yield
        finally:
            if self._engine is not None and (close := getattr(self._engine, "close", None)) is not None:
                close()

    @contextmanager
    def bench(self, lane: str) -> Iterator[RegistryBench]:
        """Start a registry with proxies before it."""
        from harness.lab.registry_bench import RegistryBench

        needs = PUSH_CLIENTS[lane].needs_engine
        if needs and self._engine is None:
            raise self._no_engine or BlockedError(
                f"{lane} goes through a Docker engine.", hint="Allow one: --engine auto."
            )
        engine = self._engine if needs else None
        with (
            _store(self.plan.own_store) as settings,
            RegistryBench(engine=engine, settings=settings) as bench,
        ):
            yield bench

    def started(self, run: str, lane: str, bench: RegistryBench) -> RunStarted:
        """Return the first record: with the version of the client, and what is tried."""
        versions = {"python": platform.python_version(), lane: bench.push_client(lane).version}
        options = {"actions": list(self.plan.actions), "points": [str(each) for each in self.plan.points]}
        return RunStarted(run=run, lab="registry", versions=versions, options=options)

    def lane(
        self, name: str, bench: RegistryBench, history: History, ledger: Ledger, stop: Event
    ) -> ClientLane:
        """Return the trials of one client."""
        alone = sum(PUSH_CLIENTS[each].needs_engine for each in self.clients) == 1
        return ClientLane(name, bench, history, self.plan, ledger=ledger, stop=stop, engine_log=alone)


@contextmanager
def _store(size: int) -> Iterator[RegistrySettings]:
    """Give settings of a registry whose store is on a file system of its own, where that has a size.

    :raises BlockedError: it cannot be made here.
    """
    from harness.faults.own_store import OwnStore
    from harness.registry.configuration import RegistrySettings

    if not size:
        yield RegistrySettings()
        return
    with OwnStore(size) as store:
        yield RegistrySettings(storage=store.folder)
