"""Text from outside, fit for a terminal: what could steer it, or forge a line, is shown and not obeyed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

T = TypeVar("T")

#: What prose may be laid out with.
_LAYOUT = "\n\t"


def printable(text: str, layout: str = _LAYOUT) -> str:
    r"""Return ``text`` with everything escaped (``\x1b``) that has no shape of its own.

    Control characters, marks that turn the direction of writing, line separators and lone surrogates.
    :param layout: characters that are left as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in layout else char.encode("unicode_escape").decode()
        for char in text
    )


def printable_parts(value: T, prose: frozenset[str] = frozenset()) -> T:
    """Return ``value`` (nested dataclasses, tuples, mappings) with all of its text made printable.

    :param prose: dataclass fields whose text may have line ends; those of all others are escaped.
    """
    return _parts(value, "", prose)  # type: ignore[no-any-return]  # the same kind of value as was given


def _parts(value: Any, layout: str, prose: frozenset[str]) -> Any:
    # Not enumerations, which are strings too: their words are the harness's own.
    if type(value) is str:
        return printable(value, layout)
    if names := _field_names(value):
        changed = {
            name: _parts(getattr(value, name), _LAYOUT if name in prose else "", prose) for name in names
        }
        return type(value)(**changed) if isinstance(value, tuple) else replace(value, **changed)
    if isinstance(value, Mapping):
        return {_parts(key, "", prose): _parts(item, layout, prose) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_parts(item, layout, prose) for item in value)
    return value


def _field_names(value: Any) -> tuple[str, ...]:
    """Return the fields of a dataclass or of a named tuple; none of anything else."""
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(field.name for field in fields(value))
    return getattr(value, "_fields", ()) if isinstance(value, tuple) else ()
