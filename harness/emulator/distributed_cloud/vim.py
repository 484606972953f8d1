"""The VIM's firmware strategy of one system: what may be asked of it, and when (section 5.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.emulator.starlingx.system import System


class VimRefused(Exception):
    """The VIM refuses a request. ``status``: of HTTP."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Vim:
    """The VIM of one system. Every method returns at once; what was begun goes on as lab time passes.

    A strategy that is building, applying or aborting draws lab time. Methods are safe to call from any
    thread, callbacks of the lab clock included.
    """

    def __init__(self, system: System) -> None:
        self._system = system

    def create(
        self,
        *,
        controller_apply_type: str = "ignore",
        storage_apply_type: str = "ignore",
        worker_apply_type: str = "serial",
        max_parallel_workers: int = 2,
        default_instance_action: str = "stop-start",
        alarm_restrictions: str = "strict",
    ) -> dict[str, Any]:
        """Begin to build a strategy, and return it as :meth:`strategy` does (state `building`).

        :raises VimRefused: 409, there is one already; 400, an option is wrong.
        """
        raise NotImplementedError

    def apply(self, stage_id: int | None = None) -> dict[str, Any]:
        """Begin to carry out the strategy, and return it. :raises VimRefused: 404 none; not ready to apply."""
        raise NotImplementedError

    def abort(self, stage_id: int | None = None) -> dict[str, Any]:
        """Begin nothing more of it, and return it. :raises VimRefused: 404 none; not applying."""
        raise NotImplementedError

    def delete(self, *, force: bool = False) -> None:
        """Delete the strategy. :raises VimRefused: 404, there is none; 409, it is at work."""
        raise NotImplementedError

    def strategy(self) -> dict[str, Any] | None:
        """Return the strategy as the API shows it, or None.

        Keys: uuid, name, `state` (building, build-failed, build-timeout, ready-to-apply, applying, applied,
        apply-failed, apply-timeout, aborting, aborted, abort-failed, abort-timeout), current-phase,
        current-phase-completion-percentage, and build-phase, apply-phase, abort-phase, each with `result`,
        `reason`, `inprogress`, stages and their steps.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End the service; the next one takes up what is on disk."""
