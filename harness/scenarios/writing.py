"""Writes scenario files: the inverse of reading them, and the file that an author begins with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from harness.errors import ConfigurationError, InfrastructureError

_WIDTH = 110
#: In the order in which a reader wants them.
_KEYS = ("about", "source", "requirements", "given", "over", "steps", "expect")

_BEGINNING = """\
about: >-
  In one or two sentences: what is done, and what must come of it.
source: the document and the section that say so
requirements: [{requirement}]

given: # What there is before the first step; what is left out is left open.
  card: {{root: none}}

steps: # `hil scenario schema` lists them all.
  - flash: A/csk0
    promise: lands
  - flash: B/csk0
    promise: lands

expect: # What is left out: as intended, and every report is true.
  outcome: AS_INTENDED
"""


def scenario_text(data: Mapping[str, Any]) -> str:
    """Return the text of a scenario file with ``data``: about, source, given, steps and the other keys.

    Reading it gives the same again; comments and keys without a value are left out.
    """
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = _WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = StringIO()
    yaml.dump({key: data[key] for key in _KEYS if data.get(key)}, out)
    return out.getvalue()


def save_scenario(path: Path, text: str) -> None:
    """Write the text of a scenario file, whole or not at all, once it was read back without an error.

    :raises ConfigurationError: ``path`` is no name of a scenario file, or the text is no scenario.
    :raises InfrastructureError: it cannot be written.
    """
    from harness.scenarios.files import SUFFIX, load_scenario

    if not path.name.endswith(SUFFIX):
        raise ConfigurationError(
            f"{path} is no name of a scenario file.", hint=f"It ends with {SUFFIX}, such as again{SUFFIX}."
        )
    draft = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        draft.write_text(text, encoding="utf-8")
        load_scenario(draft)
        draft.replace(path)
    except OSError as error:
        raise InfrastructureError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        draft.unlink(missing_ok=True)


def write_new(path: Path, requirement: str = "") -> None:
    """Write a scenario to begin with, which can be run as it is, to the new file ``path``.

    :raises ConfigurationError: there is a file already. :raises InfrastructureError: it cannot be written.
    """
    text = _BEGINNING.format(requirement=requirement)
    write_text(path, text if requirement else text.replace("requirements: []\n", ""))


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to the new file ``path``; raises as :func:`write_new`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigurationError(f"There is a file {path} already.", hint="Give another name.") from None
    except OSError as error:
        raise InfrastructureError(f"{path} cannot be written: {error.strerror}.") from error
