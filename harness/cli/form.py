"""How a command prints its result: a table for people, JSON for programs."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer


class Form(str, Enum):
    """How a command prints its result."""

    TABLE = "table"
    JSON = "json"


FormOption = Annotated[Form, typer.Option("-o", "--output", help="How to print it.")]
