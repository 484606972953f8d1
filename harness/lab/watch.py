"""Systems of a lab opened for looking alone: many at once, and one that does not answer keeps no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harness.errors import HarnessError, Kind
from harness.lab.cloud_bench import CloudBench, clouds_of
from harness.lab.system_bench import SystemBench, systems_of

if TYPE_CHECKING:
    from harness.lab.running import RunningLab
    from harness.lab.system_bench import Way
    from harness.record.operations import Recording

#: Systems that are asked at the same time: what one waits for, another one uses.
_AT_ONCE: Final = 16
#: What a system, or the way to it, is to blame for; anything else is a mistake of the user, or a bug.
_UNANSWERED: Final = (Kind.INFRASTRUCTURE, Kind.DEVICE)


def watched(lab: Any) -> dict[str, str]:
    """Return the systems of a lab that can be looked at, each with the system controller above it, or none.

    The controllers of clouds come first, then their subclouds, then what is in no cloud.
    """
    clouds = clouds_of(lab)
    found = dict.fromkeys(clouds, "")
    found |= {name: controller for controller, names in clouds.items() for name in names}
    return found | {name: "" for name in systems_of(lab) if name not in found}


class Watch:
    """Looks at systems of a lab again and again; a context manager.

    :param systems: their names. :param history: where all is recorded; it is used by several threads.
    """

    def __init__(
        self, lab: RunningLab, systems: Sequence[str], history: Recording, *, way: Way = "rest"
    ) -> None:
        controllers = clouds_of(lab.entry)
        made: Callable[..., Any] = partial(SystemBench, lab, history=history, way=way)
        cloud: Callable[..., Any] = partial(CloudBench, lab, history=history, way=way, only=())
        self._makers = {name: partial(cloud if name in controllers else made, name) for name in systems}
        self._opened: dict[str, CloudBench | SystemBench] = {}
        self._open = ExitStack()

    def look(self) -> Mapping[str, str]:
        """Record what each system says and what its cards show; return, of each that does not answer, why."""
        pool = ThreadPoolExecutor(_AT_ONCE, "look")
        try:
            failed = dict(zip(self._makers, pool.map(self._look, self._makers), strict=True))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self.close()  # so that no one waits for what a system does not say
            raise
        pool.shutdown()
        return {name: why for name, why in failed.items() if why}

    def _look(self, name: str) -> str:
        """Look at one system, which is opened where it is not yet."""
        try:
            if name not in self._opened:
                self._opened[name] = self._open.enter_context(self._makers[name]())
            self._opened[name].look()
        except HarnessError as error:
            if error.kind not in _UNANSWERED:
                raise
            return error.message
        return ""

    def close(self) -> None:
        """Close all connections; may be called twice."""
        self._open.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
