"""The trials of one client: pushes of fresh images, each disturbed once, judged from what was recorded."""

from __future__ import annotations

import random
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

from harness.errors import ConfigurationError, HarnessError
from harness.faults.push_fault import PushFault
from harness.faults.registry_actions import registry_action
from harness.faults.registry_points import FaultPoint
from harness.judgement.records import Fault, ScenarioEnded, ScenarioStarted, Subject
from harness.registry.clients.catalogue import PUSH_CLIENTS
from harness.registry.images import Content, ImageRecipe, make_image, sized_layers
from harness.registry.push_driver import PushDriver, Transfer
from harness.scenarios.push_points import passed
from harness.scenarios.sweep_results import LaneResult, Trial

if TYPE_CHECKING:
    from harness.lab.push_bench import PushBench
    from harness.record.history import History
    from harness.scenarios.sweep import Ledger

TAG = "1"
#: Pushes of a lane before its first trial.
_UNDISTURBED = 2
#: Bytes for a push's config, manifest and links, each a page of its own.
_SMALL_FILES = 1 << 18


@dataclass(frozen=True, slots=True)
class PushPlan:
    """What a sweep does with each client. ``soak``: seconds of random instants instead of points; 0: none.

    ``given``: what is pushed, each time to a repository of its own; without it images are made that no
    registry and no engine has seen a layer of.
    """

    actions: tuple[str, ...]
    points: tuple[FaultPoint, ...]
    repeat: int = 1
    layers: int = 4
    layer_size: int = 1 << 20
    soak: float = 0.0
    given: Content | None = field(default=None, compare=False)

    @property
    def size(self) -> int:
        """Bytes of one image."""
        if self.given is None:
            return self.layers * self.layer_size
        return sum(blob.size for blob in self.given.blobs())

    def points_of(self, action: str) -> tuple[FaultPoint, ...]:
        """Return the points at which ``action`` makes sense; all where that is at none of them."""
        step = registry_action(action).strikes_in
        fitting = tuple(each for each in self.points if (each.when, each.step) == ("before", step))
        return fitting or self.points

    @property
    def trials(self) -> int:
        """How many there are for each client."""
        return sum(len(self.points_of(action)) for action in self.actions) * self.repeat

    def check(self) -> None:
        """Return if it can be done. :raises ConfigurationError: an action strikes at no random instant."""
        for name in self.actions if self.soak else ():
            action = registry_action(name)
            if action.needs_own_store or action.needs_request:
                raise ConfigurationError(
                    f"{name} does not strike at random instants.", hint="Leave out --soak."
                )

    def to_json(self) -> dict[str, Any]:
        """Return all that decides which trials there are, as plain data."""
        given = sorted(blob.digest for blob in self.given.blobs()) if self.given is not None else []
        return {
            "actions": list(self.actions),
            "points": [str(point) for point in self.points],
            "repeat": self.repeat,
            "layers": self.layers,
            "layer_size": self.layer_size,
            "soak": self.soak,
            "given": given,
        }

    @property
    def own_store(self) -> int:
        """Bytes of the file system that the store has to be on, for all images; 0 where none is needed."""
        if not any(registry_action(name).needs_own_store for name in self.actions):
            return 0
        pushes = _UNDISTURBED + self.trials
        return pushes * (self.size + _SMALL_FILES) * 5 // 4


class ClientLane:
    """One client on a bench of its own.

    :param ledger: takes each trial when its push is over, and knows those that need not be made.
    :param stop: no further trial is begun once it is set.
    :param engine_log: whether the log of the engine is about this client alone.
    :raises BlockedError: what the client needs is not here.
    """

    def __init__(
        self,
        client: str,
        bench: PushBench,
        history: History,
        plan: PushPlan,
        *,
        ledger: Ledger,
        stop: Event,
        engine_log: bool = True,
    ) -> None:
        self._name = client
        self._bench = bench
        self._history = history
        self._plan = plan
        self._ledger = ledger
        self._stop = stop
        self._by_engine = PUSH_CLIENTS[client].needs_engine
        self._client = bench.push_client(client)
        self._driver = PushDriver(
            history,
            self._client,
            bench.probe,
            compared_by="config" if self._by_engine else "digest",
            engine=bench.engine if engine_log and self._by_engine else None,
            service=bench.registry,
            registry=bench.name,
        )
        self._pushes = 0
        self._disturbed: list[Transfer] = []
        self._push_seconds = self._restart_seconds = 0.0
        self._fault: PushFault | None = None

    def run(self) -> None:
        """Run all trials, then read every image once more after a restart of the registry.

        :raises HarnessError: the lab failed; what was recorded until then is in the history.
        """
        name = f"sweep {self._name}"
        self._history.add(ScenarioStarted(scenario=name))
        try:
            self._run()
        except HarnessError as error:
            self._history.add(ScenarioEnded(scenario=name, state="INFRA", reason=error.message))
            raise
        if not self._stop.is_set():  # one that was interrupted does not end: its silences mean nothing
            self._history.add(ScenarioEnded(scenario=name))

    def let_go(self) -> None:
        """Wait for no point any more; called by another thread that wants an end."""
        if (fault := self._fault) is not None:
            with suppress(HarnessError):  # the lane's own undo tries again, and tells
                fault.give_up()

    def result(self) -> LaneResult:
        """Return what was recorded so far, judged."""
        return LaneResult(
            self._name, self._ledger.trials(), push=self._push_seconds, restart=self._restart_seconds
        )

    def _run(self) -> None:
        proxies = (self._bench.proxy, self._bench.token_proxy)
        before = [proxy.last for proxy in proxies]
        first, _ = self._push(None)
        recorded = [
            each for proxy, number in zip(proxies, before, strict=True) for each in proxy.exchanges(number)
        ]
        # The first push of a process loads and connects what the others find ready.
        second, _ = self._push(None)
        self._push_seconds = second.report.seconds - second.report.waited
        self._restart_seconds = self._bench.registry.restart().seconds
        if self._plan.soak:
            self._soak()
        else:
            for action in self._plan.actions:
                for asked in self._plan.points_of(action):
                    self._at(asked, passed(asked, recorded), action)
        self._bench.registry.restart()
        self._driver.look_again([first, second, *self._disturbed])

    def _at(self, asked: FaultPoint, point: FaultPoint | None, action: str) -> None:
        for _ in range(self._plan.repeat):
            if self._stop.is_set():
                return
            if self._ledger.is_done("", str(asked), action):
                continue
            step = registry_action(action).strikes_in
            if step is not None and (asked.when, asked.step) != ("before", step):
                self._never(asked, action, f"{action} strikes only at before:{step}")
            elif point is None:
                self._never(asked, action, "an undisturbed push of this client does not pass it")
            else:
                self._trial(str(asked), point, action)

    def _soak(self) -> None:
        """Disturb pushes at random instants until the time is over."""
        ends = time.monotonic() + self._plan.soak
        while time.monotonic() < ends:
            for action in self._plan.actions:
                if self._stop.is_set():
                    return
                self._trial("random", random.uniform(0.0, self._push_seconds), action)

    def _never(self, asked: FaultPoint, action: str, why: str) -> None:
        """Note a point at which nothing is tried."""
        self._history.add(
            Fault(
                point=str(asked),
                action=action,
                subject=Subject("registry-image", self._name),
                state="not-reached",
                detail=why,
            )
        )
        self._ledger.note(Trial(self._name, str(asked), action, reason=why))

    def _trial(self, asked: str, point: FaultPoint | float, action: str) -> None:
        """Push once; the fault strikes at a point, or after some seconds."""
        began = time.monotonic()
        fault = self._fault = PushFault(self._bench, self._history, registry_action(action), point)
        struck, again = self._push(fault)
        transfer = again or struck
        trial = Trial(
            self._name,
            asked,
            action,
            reported=transfer.report.result,
            truth=transfer.truth.state.value,
            seconds=time.monotonic() - began,
            at=fault.point,
            pushed=transfer.report.seconds,
            waited=transfer.report.waited,
            reason=fault.detail,
            at_first=struck.report.result if again else "",
        )
        if fault.struck:
            self._disturbed.append(transfer)
        self._ledger.note(trial, transfer.intent if fault.struck else None)

    def _push(self, fault: PushFault | None) -> tuple[Transfer, Transfer | None]:
        """Push an image of which neither this registry nor an engine has seen a layer.

        :returns: that push, and the next one of the same image where the fault wants one.
        """
        self._pushes += 1
        destination = self._bench.destination(f"sweep/{self._name}-{self._pushes}", TAG, client=self._name)
        image = self._image(f"{destination.reference}")
        self._client.prepare(image, destination)
        try:
            with fault.armed(destination.reference) if fault is not None else nullcontext():
                done = self._driver.push(
                    image,
                    destination,
                    meanwhile=fault.strike if fault is not None else None,
                    settle=fault.settle if fault is not None else None,
                )
            again = fault is not None and fault.pushed_again
            return done, self._driver.push(image, destination) if again else None
        finally:
            self._client.forget(image, destination)

    def _image(self, seed: str) -> Content:
        if self._plan.given is not None:
            return self._plan.given
        layers = sized_layers(self._plan.layers, self._plan.layer_size, seed=seed)
        return make_image(ImageRecipe(layers, label=seed, form="docker" if self._by_engine else "oci"))
