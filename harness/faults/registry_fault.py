"""One disturbance of one push: armed at a point of a proxy, fired while the request is held, undone."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal

from harness.faults.registry_actions import registry_action
from harness.faults.registry_actions.damage import Damages
from harness.faults.registry_points import FaultPoint
from harness.interruption import uninterrupted
from harness.judgement.records import Fault, Subject

if TYPE_CHECKING:
    from harness.lab.push_bench import PushBench
    from harness.record.operations import Recording

State = Literal["armed", "fired", "undone", "not-reached"]


class RegistryFault:
    """The action ``name`` at ``point`` of the next push to ``subject``. Its own acts are in the history.

    :param repository: only requests for it are held; steps that name none (ping) are held whoever asks.
    :raises ConfigurationError: there is no such point or action.
    :raises BlockedError: the bench cannot do it, or no request to it can be held.
    """

    def __init__(
        self,
        bench: PushBench,
        history: Recording,
        subject: Subject,
        point: str,
        name: str,
        repository: str = "",
    ) -> None:
        self._bench = bench
        self._history = history
        self._subject = subject
        self._point = FaultPoint.parse(point)
        self._action = registry_action(name)
        self._fired = False
        self._tried = False
        self._action.check(bench)
        step = self._point.step
        proxy = bench.token_proxy if step == "token" else bench.proxy
        self._action.prepare(bench)
        self._gate = proxy.arm(self._point, repository="" if step in ("ping", "token") else repository)
        self._record("armed")

    def meanwhile(self, intent: int, report: Future[Any], *, deadline: float = 120.0) -> None:
        """Wait until the request is held, disturb, and let it go on; return when the push ended without it.

        What is not reached is recorded as such, and judged.
        """
        try:
            held = self._gate.wait(deadline, until=report)
            if held is None:
                self._record("not-reached", intent, "the push ended before it came to this point")
                return
            self._tried = True
            detail = self._action.fire(self._bench, self._gate)
            self._fired = True
            self._record("fired", intent, detail)
        finally:
            self._gate.disarm()

    def settle(self) -> None:
        """Let the registry answer again, before its truth is read. Damage stays: it is that truth."""
        if not isinstance(self._action, Damages):
            self.undo()

    def undo(self) -> None:
        """Take back what was done; may be called twice. Ctrl-C waits for it.

        :raises HarnessError: it cannot be taken back; the next call tries again.
        """
        self._gate.disarm()
        if not self._tried:
            return
        with uninterrupted(f"undo {self._action.name} of {self._bench.name}"):
            self._action.undo(self._bench)
            self._tried = False
            if self._fired:
                self._fired = False
                self._record("undone")

    def _record(self, state: State, intent: int | None = None, detail: str = "") -> None:
        self._history.add(
            Fault(
                point=str(self._point),
                action=self._action.name,
                subject=self._subject,
                state=state,
                intent=intent,
                detail=detail,
            )
        )
