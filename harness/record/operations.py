"""Records that an operation began and how it returned, whatever happens in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from harness.errors import DeadlineError, HarnessError
from harness.judgement.records import Completion, Intent, Record, Subject

R = TypeVar("R", bound=Record)


class Recording(Protocol):
    """Where records go (see :class:`harness.record.history.History`)."""

    def add(self, record: R) -> R:
        """Keep ``record``; return it with its sequence number and time."""
        ...


@dataclass(slots=True)
class Underway:
    """An operation that was begun. ``how``: how it returns where nothing is raised."""

    intent: int
    how: Literal["returned", "timed-out"] = "returned"


@contextmanager
def recorded_operation(history: Recording, intent: Intent) -> Iterator[Underway]:
    """Record ``intent``, give the operation, and record its completion.

    What is raised within goes on; a deadline that passed is recorded as such.
    """
    underway = Underway(history.add(intent).seq)
    how: Literal["returned", "raised", "timed-out"] = "raised"
    error: dict[str, str] = {}
    try:
        yield underway
        how = underway.how
    except DeadlineError as failure:
        how, error = "timed-out", as_record(failure)
        raise
    except BaseException as failure:
        error = as_record(failure)
        raise
    finally:
        history.add(Completion(intent=underway.intent, how=how, error=error))


def record_refusal(history: Recording, host: str, asked: str, error: HarnessError) -> None:
    """Record that a host was asked for what is not permitted: an intent that was refused."""
    subject = Subject("record", host, host=host)
    intent = history.add(Intent(operation="host-call", subject=subject, parameters={"asked": asked}))
    history.add(Completion(intent=intent.seq, how="raised", error=as_record(error)))


def as_record(failure: BaseException) -> dict[str, str]:
    """Return what records keep of an error: kind, message and hint."""
    if isinstance(failure, HarnessError):
        return {"kind": failure.kind.value, "message": failure.message, "hint": failure.hint}
    return {"kind": type(failure).__name__, "message": str(failure), "hint": ""}
