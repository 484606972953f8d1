"""Asks many hosts at the same time: what one waits for keeps no other, each failure is that host's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final, TypeVar

from harness.errors import HarnessError

T = TypeVar("T")

#: Threads at most; one waits for a network most of the time.
AT_ONCE: Final = 64


def ask_each(
    names: Iterable[str], ask: Callable[[str], T], *, at_once: int = AT_ONCE
) -> Iterator[tuple[str, T | HarnessError]]:
    """Yield each of ``names`` with what ``ask`` returned or raised for it, as they come.

    :raises Exception: what is no :class:`HarnessError` is a bug, and ends it.
    """
    with ThreadPoolExecutor(at_once, "ask") as pool:
        asked = {pool.submit(ask, name): name for name in names}
        try:
            for done in as_completed(asked):
                error = done.exception()
                if error is None:
                    yield asked[done], done.result()
                elif isinstance(error, HarnessError):
                    yield asked[done], error
                else:
                    raise error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
