"""Tells of what a host refuses to do: so it is in the history, whatever who asked makes of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

from harness.errors import RefusedError

F = TypeVar("F", bound=Callable[..., Any])
_LONGEST = 400
#: Given what was asked, in words, and the refusal.
Told = Callable[[str, RefusedError], None]


class Refusing(Protocol):
    """A host that tells of its refusals."""

    @property
    def refused(self) -> Told:
        """Whom it tells."""
        ...


def tells_nobody(asked: str, error: RefusedError) -> None:
    """Pass over a refusal: whoever asked records its own acts."""


def told(method: F) -> F:
    """Let a method of a :class:`Refusing` host tell of each refusal that it ends with."""

    @wraps(method)
    def call(self: Refusing, *arguments: Any, **options: Any) -> Any:
        try:
            return method(self, *arguments, **options)
        except RefusedError as error:
            asked = [*arguments, *(options[name] for name in ("argv", "path", "url") if name in options)]
            self.refused(" ".join([method.__name__, *map(_shown, asked)])[:_LONGEST], error)
            raise

    return cast(F, call)


def _shown(asked: object) -> str:
    """Return what was asked as a text; of what is none, or calls itself one, its type."""
    if type(asked) is str:
        return asked
    words = list(asked) if isinstance(asked, (list, tuple)) else []
    return " ".join(map(_shown, words)) if words else f"<{type(asked).__name__}>"
