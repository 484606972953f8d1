"""Makes Allure's own report from its results, with a program of Allure's that is here or that npm gets."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from harness.errors import BlockedError, ConfigurationError, InfrastructureError

#: The version that npm is asked for; any `allure` in PATH is taken as it is.
VERSION: Final = "3"
_SECONDS: Final = 600.0


def write_allure(results: Path, to: Path) -> Path:
    """Make the report of ``results`` in the folder ``to``; return its first page.

    :raises ConfigurationError: there are no results, or ``to`` holds something.
    :raises BlockedError: neither Allure's program nor npm is here.
    :raises InfrastructureError: the program failed; the message has the last that it said.
    """
    if not results.is_dir() or not any(results.glob("*-result.json")):
        raise ConfigurationError(
            f"There are no results of Allure in {results}.",
            hint="hil run testplans/regression --allure results",
        )
    if to.exists() and any(to.iterdir()):
        raise ConfigurationError(
            f"{to} holds something already.", hint="Name a folder that is new with --to."
        )
    command = [*_program(), "generate", str(results), "-o", str(to)]
    try:
        ran = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError(f"`{' '.join(command)}` did not make the report: {error}.") from None
    page = to / "index.html"
    if ran.returncode or not page.exists():
        said = [line for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
        last = said[-1] if said else f"it said nothing, and ended with {ran.returncode}"
        raise InfrastructureError(f"`{' '.join(command)}` did not make the report: {last}.")
    return page


def _program() -> list[str]:
    """Return the words that Allure's program begins with."""
    if found := shutil.which("allure"):
        return [found]
    if found := shutil.which("npx"):
        return [found, "--yes", f"allure@{VERSION}"]
    raise BlockedError(
        "Allure's own report takes its program, and neither `allure` nor npm's `npx` is in PATH.",
        hint="Install npm, or Allure's command line with Java; `hil report open` needs neither.",
    )
