"""Text from outside in a form that every database takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def storable(value: Any) -> Any:
    """Return a value with text that every database takes: no half of a character, no NUL."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
    if isinstance(value, Mapping):
        return {storable(key): storable(item) for key, item in value.items()}
    return [storable(item) for item in value] if isinstance(value, (list, tuple)) else value
