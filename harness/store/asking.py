"""One question to the index, in a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Engine

from harness.store.opening import FAILURES, unreachable

T = TypeVar("T")


def asked(engine: Engine, what: Callable[[Any], T]) -> T:
    """Return what ``what`` finds, given a connection. :raises InfrastructureError: it does not answer."""
    try:
        with engine.begin() as connection:
            return what(connection)
    except FAILURES as error:
        raise unreachable(engine, error) from None
