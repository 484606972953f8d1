"""Debian's skopeo: found, or got, with the libraries that it needs; run within a deadline."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import BlockedError
from harness.packages import environment_of, provide, tools_folder
from harness.registry.clients.program import run_program

PACKAGE = PROGRAM = "skopeo"
_VERSION_SECONDS = 20.0
#: What skopeo says before it waits (containers/common, retry): "..., retrying in 1s ... (1/3). Error: ...".
_RETRYING = re.compile(r"retrying in ([0-9.]+(?:ms|µs|m|s)(?:[0-9.]+s)?)")
_UNITS = {"ms": 0.001, "µs": 0.000001, "m": 60.0, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Said:
    """How a run of skopeo ended. ``exit_code``: None where its deadline passed first."""

    exit_code: int | None
    text: str
    seconds: float
    command: str

    @property
    def waited(self) -> float:
        """Return the seconds that it says it waits between its tries."""
        return sum(
            float(number) * _UNITS[unit]
            for span in _RETRYING.findall(self.text)
            for number, unit in re.findall(r"([0-9.]+)(ms|µs|m|s)", span)
        )


@dataclass(frozen=True, slots=True)
class Skopeo:
    """The program. ``environ``: what it runs in beside PATH, such as where its libraries are."""

    path: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def version(self) -> str:
        """Return its name and version, such as ``skopeo 1.9.3``."""
        said = self.run(["--version"], Path("/"), deadline=_VERSION_SECONDS).text.strip()
        return said.replace("skopeo version", "skopeo")

    def run(self, words: Sequence[str], folder: Path, *, deadline: float) -> Said:
        """Run it with ``words``, its temporary files in ``folder``; it is killed past ``deadline`` seconds.

        :raises InfrastructureError: it cannot be started.
        """
        began = time.monotonic()
        path = os.environ.get("PATH", "/usr/bin:/bin")
        environ = {"PATH": path, "LC_ALL": "C.UTF-8", "HOME": str(folder), "TMPDIR": str(folder)}
        code, text = run_program(
            [self.path, *words], environ=environ | dict(self.environ), folder=folder, deadline=deadline
        )
        command = " ".join([PROGRAM, *words])
        return Said(code, text, time.monotonic() - began, command)


def find_skopeo(*, install: bool = True) -> Skopeo:
    """Return Debian's skopeo; see :func:`harness.packages.provide`.

    :raises BlockedError: it is not here and cannot be got, or lacks what it needs to start.
    """
    path = provide(PROGRAM, PACKAGE, install=install)
    skopeo = Skopeo(path, environment_of(path))
    if not path.is_relative_to(tools_folder()):
        return skopeo
    said = skopeo.run(["--version"], path.parent, deadline=_VERSION_SECONDS)
    if said.exit_code != 0:
        raise BlockedError(
            f"{PROGRAM} does not start from {path.parent}: {said.text.strip()}.",
            hint=f"Install it:  sudo apt-get install {PACKAGE}",
        )
    return skopeo
