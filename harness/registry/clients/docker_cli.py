"""Push and pull by Docker's command line, which takes its exit code from the engine's stream."""

from __future__ import annotations

import base64
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import BlockedError, InfrastructureError
from harness.packages import provide
from harness.registry.clients.docker_sdk import trust
from harness.registry.clients.engine_images import (
    CACHED,
    EngineImages,
    engine_of,
    left_as_found,
)
from harness.registry.clients.engine_waits import seconds_waited
from harness.registry.clients.program import run_program
from harness.registry.clients.protocol import Destination, PullClient, PushClient, Report, Result
from harness.registry.tls import write_private

if TYPE_CHECKING:
    from harness.registry.clients.catalogue import Surroundings
    from harness.registry.engine import Engine
    from harness.registry.images import Content

PROGRAM = "docker"
#: Since Debian 13 the command line has a package of its own; before, the engine's has it.
PACKAGES = ("docker-cli", "docker.io")
_VERSION_SECONDS = 20.0
#: What `docker push` ends with: "v1: digest: sha256:... size: 736"; `docker pull` has it in a line as well.
_PUSHED = re.compile(r"^\S+: digest: (sha256:[0-9a-f]{64}) size: \d+$", re.MULTILINE)
_PULLED = re.compile(r"^Digest: (sha256:[0-9a-f]{64})$", re.MULTILINE)
#: Of the user's environment, what would have another engine or another login used.
_OURS = "DOCKER_"


def find_docker(*, install: bool = True) -> Path:
    """Return Docker's command line; see :func:`harness.packages.provide`.

    :raises BlockedError: it is not here and cannot be got.
    """
    *first, last = PACKAGES
    for package in first:
        with suppress(BlockedError):
            return provide(PROGRAM, package, install=install)
    return provide(PROGRAM, last, install=install)


class _DockerCli:
    """The command line against one engine."""

    def __init__(self, name: str, surroundings: Surroundings, program: Path | None) -> None:
        self.name = name
        self.engine: Engine = engine_of(surroundings, name)
        self._folder = surroundings.folder
        self._program = program or find_docker()

    @cached_property
    def version(self) -> str:
        """Of the command line and of the engine behind it."""
        with self._configured(None) as (folder, environ):
            words = [str(self._program), "--version"]
            _, said = run_program(words, environ=environ, folder=folder, deadline=_VERSION_SECONDS)
        found = re.search(r"version ([^\s,]+)", said)
        return f"docker {found[1] if found else 'of unknown version'}, engine {self.engine.version}"

    def run(self, act: str, there: Destination, said: re.Pattern[str], deadline: float) -> Report:
        """Run ``docker ACT REFERENCE`` and report it. ``said``: where it states the digest."""
        words = [PROGRAM, "--host", self.engine.url, act, str(there.reference)]
        began = time.monotonic()
        with self._configured(there) as (folder, environ):
            code, text = run_program(
                [self._program, *words[1:]], environ=environ, folder=folder, deadline=deadline
            )
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
        results: dict[int | None, tuple[Result, str]] = {
            None: ("interrupted", f"not done after {deadline:g} s; last: {last}"),
            0: ("done", ""),
        }
        result, error = results.get(code, ("failed", last))
        digests = said.findall(text)
        took = time.monotonic() - began
        return Report(
            result,
            text,
            digest=digests[-1] if digests and result == "done" else "",
            error=error,
            command=" ".join(words),
            exit_code=code,
            seconds=took,
            waited=min(took, seconds_waited(text)),
        )

    @contextmanager
    def _configured(self, there: Destination | None) -> Iterator[tuple[Path, dict[str, str]]]:
        """Give a private folder with the login, and the environment that has it used."""
        with ExitStack() as held:
            try:
                name = held.enter_context(tempfile.TemporaryDirectory(prefix="docker-", dir=self._folder))
                write_private(Path(name) / "config.json", json.dumps(_logins(there)).encode())
            except OSError as error:
                raise InfrastructureError(f"{self._folder} cannot be written: {error.strerror}.") from None
            kept = {key: value for key, value in os.environ.items() if not key.startswith(_OURS)}
            yield Path(name), kept | {"DOCKER_CONFIG": name, "LC_ALL": "C.UTF-8"}


def _logins(there: Destination | None) -> dict[str, object]:
    if there is None or not there.user:
        return {"auths": {}}
    both = base64.b64encode(f"{there.user}:{there.password}".encode()).decode()
    return {"auths": {there.reference.registry: {"auth": both}}}


class _CliPush:
    def __init__(self, cli: _DockerCli, images: EngineImages) -> None:
        self._cli = cli
        self._images = images

    @property
    def name(self) -> str:
        return self._cli.name

    @property
    def version(self) -> str:
        return self._cli.version

    def prepare(self, content: Content, destination: Destination) -> None:
        trust(self._cli.engine, destination)
        self._images.load(content, destination.reference)

    def push(self, content: Content, destination: Destination, *, deadline: float = 120.0) -> Report:
        return self._cli.run("push", destination, _PUSHED, deadline)

    def forget(self, content: Content, destination: Destination) -> None:
        self._images.forget(content, destination.reference)

    def close(self) -> None:
        self._images.close()


class _CliPull:
    def __init__(self, cli: _DockerCli) -> None:
        self._cli = cli

    @property
    def name(self) -> str:
        return self._cli.name

    def pull(self, source: Destination, *, deadline: float = 120.0) -> Report:
        trust(self._cli.engine, source)
        with left_as_found(self._cli.engine, str(source.reference)) as cached:
            report = self._cli.run("pull", source, _PULLED, deadline)
            return replace(report, basis=CACHED) if report.result == "done" and cached() else report

    def close(self) -> None:
        """It holds nothing."""


def push_client(surroundings: Surroundings, program: Path | None = None) -> PushClient:
    """Return ``docker push``. :raises BlockedError: no engine runs, or the command line cannot be got."""
    cli = _DockerCli("docker-cli", surroundings, program)
    return _CliPush(cli, EngineImages(cli.engine, surroundings.folder))


def pull_client(surroundings: Surroundings, program: Path | None = None) -> PullClient:
    """Return ``docker pull``; raises as :func:`push_client`."""
    return _CliPull(_DockerCli("docker-cli-pull", surroundings, program))
