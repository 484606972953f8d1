"""The VIM's API as functions: what each route of its firmware strategy answers (section 5.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.emulator.distributed_cloud.vim import VimRefused

if TYPE_CHECKING:
    from harness.emulator.starlingx.sysinv import Answer, Request
    from harness.emulator.starlingx.system import System

#: Key of a request to create a strategy -> the option of :meth:`Vim.create`.
_OPTIONS: Final = {
    "controller-apply-type": "controller_apply_type",
    "storage-apply-type": "storage_apply_type",
    "worker-apply-type": "worker_apply_type",
    "max-parallel-worker-hosts": "max_parallel_workers",
    "default-instance-action": "default_instance_action",
    "alarm-restrictions": "alarm_restrictions",
}


class VimApi:
    """The API of one system's VIM; methods as those of :class:`Sysinv`."""

    def __init__(self, system: System) -> None:
        self._vim = system.vim

    def strategy(self, request: Request) -> Answer:
        """GET strategy: null where there is none."""
        return 200, {"strategy": self._vim.strategy()}

    def create(self, request: Request) -> Answer:
        """POST strategy."""
        given = _object(request.body)
        options = {option: given[key] for key, option in _OPTIONS.items() if given.get(key) is not None}
        return 200, {"strategy": self._vim.create(**options)}

    def delete(self, request: Request) -> Answer:
        """DELETE strategy."""
        self._vim.delete(force=bool(_object(request.body).get("force")))
        return 200, None

    def act(self, request: Request) -> Answer:
        """POST strategy/actions."""
        given = _object(request.body)
        action, stage = given.get("action"), given.get("stage-id")
        acts = {
            "apply-all": self._vim.apply,
            "apply-stage": self._vim.apply,
            "abort": self._vim.abort,
            "abort-stage": self._vim.abort,
        }
        if action not in acts:
            raise VimRefused(400, f"Invalid input for field/attribute action. Value: '{action}'.")
        if str(action).endswith("-stage") and "stage-id" not in given:
            raise VimRefused(400, "No stage-id received")
        return 202, {"strategy": acts[str(action)](None if stage is None else int(stage))}


def _object(body: Any) -> dict[str, Any]:
    if body is not None and not isinstance(body, dict):
        raise VimRefused(400, "Invalid input for field/attribute body: an object is expected.")
    return body or {}
