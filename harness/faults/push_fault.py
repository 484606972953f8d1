"""One fault of one push: an action bound to a fault point, or to an instant, recorded and undone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from harness.errors import HarnessBug, NothingThereError
from harness.faults.registry_actions.damage import Damages
from harness.faults.registry_points import FaultPoint
from harness.interruption import uninterrupted
from harness.judgement.records import Fault, Subject
from harness.registry.push_driver import subject_of

if TYPE_CHECKING:
    from harness.faults.proxy.gate import Gate, Request
    from harness.faults.registry_actions import RegistryAction
    from harness.lab.push_bench import PushBench
    from harness.record.operations import Recording
    from harness.registry.reference import Reference

_State = Literal["armed", "fired", "undone", "not-reached"]
#: Steps of the protocol that are about no repository.
_OF_NO_REPOSITORY = ("ping", "token", "catalogue")


class PushFault:
    """Holds a push at a point, fires an action there and lets it go on. Its own acts are in the history.

    One object serves one push: :meth:`arm`, :meth:`strike` beside the push, :meth:`settle`, :meth:`undo`.

    :param point: where; or after how many seconds of the push, whatever it does then.
    :param deadline: seconds for the push to come to the point.
    """

    def __init__(
        self,
        bench: PushBench,
        history: Recording,
        action: RegistryAction,
        point: FaultPoint | float,
        *,
        deadline: float = 120.0,
    ) -> None:
        self._bench = bench
        self._history = history
        self._action = action
        self._point = point
        self._deadline = deadline
        self._gate: Gate | None = None
        self._subject = Subject("registry-image", "")
        self._intent: int | None = None
        self._lasts = False
        self._given_up = False
        self._acting = threading.RLock()
        #: What was done, with the request that was held; empty until then.
        self.detail = ""

    @property
    def point(self) -> str:
        """The point, or the instant, in words."""
        return str(self._point) if isinstance(self._point, FaultPoint) else f"random@{self._point:.3f}s"

    @property
    def pushed_again(self) -> bool:
        """Whether the same image is to be pushed once more: only that shows what the action did."""
        return self.struck and self._action.pushed_again

    @property
    def struck(self) -> bool:
        """Whether the push came to the point and the action was done."""
        return bool(self.detail)

    @contextmanager
    def armed(self, reference: Reference) -> Iterator[None]:
        """Be armed within the block, as :meth:`arm` says; undo what was done at its end."""
        try:
            self.arm(reference)
            yield
        finally:
            self.undo()

    def arm(self, reference: Reference) -> None:
        """Catch the push to ``reference`` from now on.

        :raises BlockedError: the action cannot be done on this bench, or no request to it can be held.
        """
        self._subject = subject_of(reference, self._bench.name)
        self._action.check(self._bench)
        self._action.prepare(self._bench)
        if isinstance(self._point, FaultPoint):
            step = self._point.step
            proxy = self._bench.token_proxy if step == "token" else self._bench.proxy
            repository = "" if step in _OF_NO_REPOSITORY else reference.repository
            matching = self._has_the_offset if self._point.when == "mid" else None
            self._gate = proxy.arm(self._point, repository=repository, matching=matching)

    def strike(self, intent: int, push: Future[Any]) -> None:
        """Wait for the point, fire, and let go; runs beside the push (see :class:`PushDriver`).

        Where there is nothing yet that the action could disturb, the point is not reached.

        :raises HarnessError: the action could not be done; the push goes on.
        """
        self._intent = intent
        self._record("armed")
        try:
            if self._comes(push):
                with self._acting:
                    self.detail = self._action.fire(self._bench, self._gate) or self._action.name
                    self._lasts = True
                    self._record("fired", self.detail)
                    if self._given_up:
                        self._recover()
            else:
                self._record("not-reached", self._missed(push))
        except NothingThereError as error:
            self._record("not-reached", error.message)
        finally:
            if self._gate is not None:
                self._gate.release()

    def _comes(self, push: Future[Any]) -> bool:
        if isinstance(self._point, FaultPoint):
            if self._gate is None:
                raise HarnessBug("A fault was to strike that was not armed.")
            return self._gate.wait(self._deadline, until=push) is not None
        return not wait([push], timeout=self._point).done

    def _missed(self, push: Future[Any]) -> str:
        """Return why the action was not done, in words."""
        if self._given_up:
            return "it was waited for no more"
        if push.done():
            return "the push ended before it came to this point"
        return f"the push did not come to this point within {self._deadline:g} s"

    def _has_the_offset(self, request: Request) -> bool:
        """Whether a request's body goes beyond the point's offset: of parallel uploads a small one may come
        first, and is not what is meant. A body without a stated length counts."""
        length = request.headers.get("content-length", "")
        return (
            not isinstance(self._point, FaultPoint)
            or not length.isdecimal()
            or int(length) > self._point.offset
        )

    def give_up(self) -> None:
        """Wait for the point no more; where the action has been done, take it back; for any thread.

        So that a push which waits for a service that is paused or stopped comes to its end at once.
        """
        if self._gate is not None and not self._gate.reached:
            self._gate.disarm()
        with self._acting:
            self._given_up = True
            if self._lasts:
                self._recover()

    def settle(self) -> None:
        """Let the registry answer again, before its truth is read. Damage stays: it is that truth."""
        if self._gate is not None:
            self._gate.disarm()
        self._recover()

    def _recover(self) -> None:
        if not isinstance(self._action, Damages):
            self.undo()

    def undo(self) -> None:
        """Take back what was done, and catch nothing any more; may be called twice. Ctrl-C waits for it.

        :raises HarnessError: it cannot be taken back; the next call tries again.
        """
        if self._gate is not None:
            self._gate.disarm()
        with uninterrupted(f"undo {self._action.name} of {self._bench.name}"), self._acting:
            self._action.undo(self._bench)
            if self._lasts:
                self._lasts = False
                self._record("undone")

    def _record(self, state: _State, detail: str = "") -> None:
        self._history.add(
            Fault(
                point=self.point,
                action=self._action.name,
                subject=self._subject,
                state=state,
                intent=self._intent,
                detail=detail,
            )
        )
