"""What the operations of scenarios need of the run that they are part of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from harness.judgement.records import Record
from harness.record.operations import Recording

if TYPE_CHECKING:
    from harness.lab.bench import Bench
    from harness.plugin.images import ImageShelf


class Remembering(Recording, Protocol):
    """Where records go, and can be read again."""

    @property
    def records(self) -> Sequence[Record]:
        """All records so far, in order."""
        ...


class Acting(Protocol):
    """A run, be it one of pytest (:class:`harness.plugin.session.HilSession`) or an exploration."""

    @property
    def allure(self) -> bool:
        """Whether Allure's results are collected."""
        ...

    @property
    def history(self) -> Remembering:
        """Where everything is recorded."""
        ...

    @property
    def images(self) -> ImageShelf:
        """The images that scenarios flash, by name."""
        ...

    def progress(self, device: str, doing: str) -> None:
        """Tell whoever shows progress what is done to ``device`` now."""
        ...

    def bench_of(self, host: str) -> Bench | None:
        """Return the bench that fits and holds the cards of ``host``; None where they are real."""
        ...
