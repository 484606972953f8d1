"""A history that remembers that it could not be written, so that the run can end there."""

from __future__ import annotations

from typing import TypeVar

from harness.errors import InfrastructureError
from harness.judgement.records import Record
from harness.record.history import History

R = TypeVar("R", bound=Record)


class RunHistory(History):
    """The history of one process of a run; ``failure``: the first error that kept a record from it."""

    failure: InfrastructureError | None = None

    def add(self, record: R) -> R:
        """As :meth:`History.add`; an error is remembered."""
        try:
            return super().add(record)
        except InfrastructureError as error:
            self.failure = self.failure or error
            raise
