"""What can be asked of a system that changes something: one act, with all that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.controlplane.protocol import Label, Reading, Said, Upload
from harness.controlplane.vim import VimStrategy
from harness.hosts.permits import ControlPlaneAct, Permit
from harness.judgement.records import Evidence


@dataclass(frozen=True, slots=True)
class Change:
    """One act. ``target``: the image's uuid, or the hostname; ``device``: name or address in that host.

    ``labels``: what an image is applied to or a device is given; ``keys``: what a device loses;
    ``enabled``: what it becomes.
    """

    act: ControlPlaneAct
    target: str = ""
    device: str = ""
    labels: tuple[Label, ...] = ()
    keys: tuple[str, ...] = ()
    overwrite: bool = False
    force: bool = False
    enabled: bool | None = None
    image: Upload | None = field(default=None, repr=False)

    def parameters(self) -> dict[str, Any]:
        """Return what the record of the intent says of it."""
        said: dict[str, Any] = {"target": self.target} if self.target else {}
        if self.device:
            said["device"] = self.device
        if self.act in ("image-apply", "image-remove", "label-assign"):
            said["labels"] = [f"{key}={value}" for key, value in self.labels]
        if self.keys:
            said["keys"] = list(self.keys)
        if self.enabled is not None:
            said["enabled"] = self.enabled
        if self.image is not None:
            said |= {"filename": self.image.filename, "fields": self.image.form()}
        return said | {name: True for name in ("overwrite", "force") if getattr(self, name)}


class PermitMaker(Protocol):
    """Issues the permits for one change that the interlock has let pass."""

    def command(self, host: str, words: Sequence[str]) -> Permit:
        """Return the permit to ask exactly ``words`` of ``host``."""
        ...

    def write(self, host: str, path: str) -> Permit:
        """Return the permit to put the image of the change at ``path`` of ``host``."""
        ...


class WayIn(Reading, Protocol):
    """One way into a system: it is asked, and it carries out changes that are permitted."""

    @property
    def evidence(self) -> Evidence:
        """The last answer, raw."""
        ...

    def vim_strategy(self) -> list[VimStrategy]:
        """Return the firmware strategy of the system's VIM; nothing where there is none.

        :raises NotOfferedError: the system has no VIM that could be asked.
        """
        ...

    def one_look(self) -> AbstractContextManager[None]:
        """Ask for each thing once while the block lasts, where that can be told from asking anew."""
        ...

    def carry_out(self, change: Change, permits: PermitMaker) -> list[Said]:
        """Carry out a change once; return what the system answered to it.

        :raises ControlPlaneError: it refused, or what it answered is no success.
        """
        ...
