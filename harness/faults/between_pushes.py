"""Something that is done to a registry between pushes, recorded as a fault and undone like one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from harness.errors import ConfigurationError, NothingThereError
from harness.interruption import uninterrupted
from harness.judgement.records import Fault, Subject

if TYPE_CHECKING:
    from harness.faults.registry_actions import RegistryAction
    from harness.lab.push_bench import PushBench
    from harness.record.operations import Recording


class BetweenPushes:
    """One action on a registry while nobody pushes: :meth:`strike`, then :meth:`undo`."""

    def __init__(self, bench: PushBench, history: Recording, action: RegistryAction) -> None:
        self._bench = bench
        self._history = history
        self._action = action
        self._lasts = False

    def strike(self) -> None:
        """Do it. What it was to act on may not be there: then it is recorded as not reached.

        :raises ConfigurationError: it can only be done to a push.
        :raises BlockedError: the bench or this machine lacks something for it.
        """
        if self._action.needs_request or self._action.strikes_in is not None:
            raise ConfigurationError(
                f"The action {self._action.name!r} is done to a push, and nobody pushes.",
                hint="Give it to the push, with the point at which it strikes.",
            )
        self._action.check(self._bench)
        self._action.prepare(self._bench)
        try:
            detail = self._action.fire(self._bench, None)
        except NothingThereError as error:
            self._record("not-reached", error.message)
            return
        finally:
            self._lasts = True
        self._record("fired", detail)

    def undo(self) -> None:
        """Take it back; may be called twice. Ctrl-C waits for it.

        :raises HarnessError: it cannot be taken back; the next call tries again.
        """
        with uninterrupted(f"undo {self._action.name} of {self._bench.name}"):
            if self._lasts:
                self._action.undo(self._bench)
                self._lasts = False
                self._record("undone")

    def _record(self, state: Literal["fired", "undone", "not-reached"], detail: str = "") -> None:
        subject = Subject("registry-image", self._bench.name)
        self._history.add(
            Fault(
                point="between-pushes", action=self._action.name, subject=subject, state=state, detail=detail
            )
        )
