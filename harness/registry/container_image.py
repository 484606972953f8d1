"""Makes the image of a registry from Debian's program and what it is linked to, without any network."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from docker import DockerClient

#: The program's name in our images and in those of the project itself.
PROGRAM = "registry"
_REPOSITORY = "hil-registry"


def image_of(program: Path) -> str:
    """Return the name of the image of ``program``; the same for the same bytes."""
    return f"{_REPOSITORY}:{hashlib.sha256(program.read_bytes()).hexdigest()[:16]}"


def import_image(client: DockerClient, program: Path) -> None:
    """Give the engine the image of ``program``, as :func:`image_of` calls it.

    :raises InfrastructureError: the engine does not take it.
    """
    name, _, tag = image_of(program).partition(":")
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.add(program.resolve(), f"bin/{PROGRAM}")
        for library in _libraries(program):
            archive.add(library.resolve(), str(library).lstrip("/"))
    said: str = client.api.import_image_from_data(content.getvalue(), repository=name, tag=tag)
    if "sha256:" not in said:
        raise InfrastructureError(f"The engine does not take the image of {program}: {said.strip()[:300]}")


def _libraries(program: Path) -> list[Path]:
    """Return the libraries that the program is linked to, and what links them when it starts."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    if listed.returncode:  # not linked to any
        return []
    words = (word for line in listed.stdout.splitlines() for word in line.split())
    return [Path(word) for word in words if word.startswith("/")]
