"""How xdist shares out a run that is about devices: all tests of a device go to one worker."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScheduling, LoadScopeScheduling  # type: ignore[import-untyped]

from harness.errors import HarnessError
from harness.plugin.session import SESSION, HilSession

#: The plugin of a run that is a campaign.
CAMPAIGN = "hil-campaign-run"

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController  # type: ignore[import-untyped]


class Scheduling:
    """xdist's own scheduling by load, until the first worker names tests of devices: then that by device.

    (A group of xdist's own, ``--dist loadgroup``, is ignored by some of its versions without a word.)

    :param devices: returns the cards of the run, as ``host/card``.
    """

    def __init__(self, config: pytest.Config, log: Any, devices: Callable[[], Collection[str]]) -> None:
        self._config, self._log, self._devices = config, log, devices
        self._chosen: Any = LoadScheduling(config, log)
        self._decided = False

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take what a worker has collected; the first one decides."""
        if not self._decided:
            self._decided = True
            names = self._devices() if any("[" in nodeid for nodeid in collection) else ()
            if any(_device(nodeid, names) for nodeid in collection):
                by_device = ByDevice(self._config, self._log, names)
                for known in self._chosen.nodes:
                    by_device.add_node(known)
                self._chosen = by_device
        self._chosen.add_node_collection(node, collection)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chosen, name)


class ByDevice(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """All tests of a device are one piece of work; a test of no device is one by itself."""

    def __init__(self, config: pytest.Config, log: Any, devices: Collection[str]) -> None:
        super().__init__(config, log)
        self._names = devices

    def _split_scope(self, nodeid: str) -> str:
        return _device(nodeid, self._names) or nodeid

    def remove_node(self, node: WorkerController) -> str | None:
        """Give the work of a worker that is gone to others; the test in which it died is not tried again."""
        left: dict[str, dict[str, bool]] = self.assigned_work[node]
        running = next((one for unit in left.values() for one, done in unit.items() if not done), None)
        if running is None:
            self.assigned_work.pop(node)
            return None
        for unit in left.values():
            if running in unit:
                unit[running] = True
        self.assigned_work.pop(node)
        self.workqueue.update({scope: unit for scope, unit in left.items() if not all(unit.values())})
        for other in self.assigned_work:
            if other in self.registered_collections:
                self._reschedule(other)
        return running


def _device(nodeid: str, names: Collection[str]) -> str:
    """Return the device that a test is run on, as its id says; empty where it is none."""
    _, bracket, values = nodeid.partition("[")
    return next((n for n in names if f"-{n}-" in f"-{values.rstrip(']')}-"), "") if bracket else ""


def _group(nodeid: str, session: HilSession) -> str:
    """Return what a test keeps from others while it runs: a real host, or a device; empty: nothing."""
    device = _device(nodeid, _cards(session))
    host = device.partition("/")[0]
    return host if device and host in session.lab_entry.hosts and session.is_real(host) else device


def scheduling(config: pytest.Config, log: Any) -> Any:
    """Return the scheduling of a run whose distribution nobody chose otherwise; None where somebody did."""
    if config.getoption("dist", "no") != "load":
        return None
    if (run := config.pluginmanager.get_plugin(CAMPAIGN)) is not None:
        from harness.plugin.campaign_workers import ByCampaign

        return ByCampaign(config, run, lambda nodeid: _group(nodeid, config.stash[SESSION]))
    return Scheduling(config, log, lambda: _cards(config.stash[SESSION]))


def workers(config: pytest.Config) -> int | None:
    """Return how many workers ``-n auto`` means: one for each healthy card of a run that opens a lab.

    None where none is opened, so that it means what xdist has it mean.

    What is collected is not known yet; so a run opens a lab if `hil run` began it, or if it is told which.
    """
    from harness.plugin.exit_codes import Observer

    told = ("hil_campaign", "hil_inventory", "hil_lab", "hil_device")
    ours = any(isinstance(plugin, Observer) for plugin in config.pluginmanager.get_plugins())
    ends = (".scenario.yaml", ".campaign.yaml")
    if ours or any(map(config.getoption, told)) or any(arg.endswith(ends) for arg in config.args):
        session = HilSession(config)  # that of the run is made later
        cards = _cards(session)
        return max(1, len(cards) - len(_kept_away(session, cards))) if cards else None
    return None


def _kept_away(session: HilSession, cards: Collection[str]) -> list[str]:
    """Return the cards that their health keeps from runs; each worker finds out by itself as well."""
    from contextlib import closing

    from harness.lab.leasing import LabLeases

    try:
        real = [name for name in cards if session.is_real(name.partition("/")[0])]
        if not real:
            return []
        with closing(session.leases) as leases:
            health = LabLeases(session.lab_entry, leases, lambda _: None).health
            found = {name: health.of(name) for name in real}
    except HarnessError:
        return []
    return [name for name, one in found.items() if one is not None and not one.state.usable]


def _cards(session: HilSession) -> list[str]:
    try:
        return session.card_names()
    except HarnessError:  # each worker finds it, and it is told as theirs
        return []
