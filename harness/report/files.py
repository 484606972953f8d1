"""How reports come to be files: templates filled in, and files written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from harness.errors import InfrastructureError


def filled(template: Path, **said: Any) -> str:
    """Return a template of HTML, filled in; text from outside is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template.name).render(said).lstrip()


def write_whole(path: Path, text: str, *, what: str, hint: str) -> Path:
    """Write a file, whole or not at all; return its path. Halves of characters are written as escapes.

    :raises InfrastructureError: it cannot be written; ``what`` is its name in the message.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8", errors="backslashreplace")
        fresh.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise InfrastructureError(f"{what} {path} cannot be written: {error.strerror}.", hint=hint) from error
    return path
