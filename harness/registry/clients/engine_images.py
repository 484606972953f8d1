"""Images that are loaded into a Docker engine for pushes, and taken out of it again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.registry.archives import write_docker_archive
from harness.registry.images import Image

if TYPE_CHECKING:
    from docker import DockerClient

    from harness.registry.clients.catalogue import Surroundings
    from harness.registry.engine import Engine
    from harness.registry.images import Content
    from harness.registry.reference import Reference

#: Seconds without a word from the engine after which loading is given up.
_STALL = 300.0
#: What a pull rests on that needed no layer of the registry.
CACHED = "the engine had the image already"


def engine_of(surroundings: Surroundings, name: str) -> Engine:
    """Return the engine for the client ``name``. :raises BlockedError: none runs."""
    if surroundings.engine is None:
        raise BlockedError(
            f"{name} goes through a Docker engine, and none runs.", hint="`hil engine up` starts one."
        )
    return surroundings.engine


def sdk_failures() -> tuple[type[Exception], ...]:
    """Return what the SDK raises: its own errors, and those of the libraries that it does not wrap."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    return DockerException, RequestException, HTTPError


@dataclass(frozen=True, slots=True)
class _Loaded:
    """``image``: its id in the engine. ``before``: what the tag led to until then; empty: nothing."""

    image: str
    before: str


class EngineImages:
    """What one client has loaded into an engine.

    The engine packs layers anew when it pushes, so the manifest in the registry is another than that of
    the content. The digest of the config stays (fact sheet of the registry, section 3).
    """

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder
        self._loaded: dict[tuple[str, str], _Loaded] = {}

    def load(self, content: Content, tag: Reference) -> None:
        """Load ``content`` and tag it.

        :raises ConfigurationError: it is an index, which an engine does not take; or ``tag`` has no tag.
        :raises InfrastructureError: the engine does not take it.
        """
        if not isinstance(content, Image):
            raise ConfigurationError(
                "An index cannot be pushed through a Docker engine.",
                hint="Push one of its images, or use a client that needs no engine.",
            )
        if not tag.tag or tag.digest:
            raise ConfigurationError(
                f"{tag} cannot be pushed through a Docker engine: it takes a tag, and no digest."
            )
        try:
            with self._client() as client, tempfile.TemporaryDirectory(dir=self._folder) as folder:
                before = image_id(client, str(tag))
                archive = Path(folder) / "image.tar"
                write_docker_archive(content, archive, (str(tag),))
                with archive.open("rb") as opened:
                    client.images.load(opened)
                found = image_id(client, str(tag))
        except sdk_failures() as error:
            raise InfrastructureError(f"The {self._engine.name} does not load {tag}: {error}") from None
        if found != before:
            self._loaded[str(tag), content.digest] = _Loaded(found, before)

    def forget(self, content: Content, tag: Reference) -> None:
        """Take out what :meth:`load` made; a tag that led elsewhere before leads there again.

        :raises InfrastructureError: the engine does not do it.
        """
        key = str(tag), content.digest
        if key not in self._loaded:
            return
        try:
            with self._client() as client:
                _restore(client, str(tag), self._loaded[key])
        except sdk_failures() as error:
            raise InfrastructureError(f"The {self._engine.name} does not remove {tag}: {error}") from None
        del self._loaded[key]

    def close(self) -> None:
        """Take out everything that is left; an engine that has ended has taken it along."""
        with suppress(*sdk_failures()), self._client() as client:
            while self._loaded:
                (tag, _), loaded = self._loaded.popitem()
                _restore(client, tag, loaded)

    def _client(self) -> closing[DockerClient]:
        return closing(self._engine.client(timeout=_STALL))


def image_id(client: DockerClient, name: str) -> str:
    """Return the id of the image that the engine knows as ``name``; empty where it knows none."""
    from docker.errors import ImageNotFound

    try:
        return str(client.images.get(name).id)
    except ImageNotFound:
        return ""


@contextmanager
def left_as_found(engine: Engine, name: str) -> Iterator[Callable[[], bool]]:
    """Let a pull of ``name`` leave nothing in the engine; an engine that does not answer is left alone.

    What is given tells, after the pull, whether the engine had that image before: no layer came then.
    """
    with ExitStack() as held:
        try:
            client = held.enter_context(closing(engine.client(timeout=_STALL)))
            known = {str(image.id) for image in client.images.list(all=True)}
            before = image_id(client, name)
        except sdk_failures():
            yield lambda: False
            return

        def was_there() -> bool:
            try:
                return image_id(client, name) in known
            except sdk_failures():
                return False

        try:
            yield was_there
        finally:
            with suppress(*sdk_failures()):  # it has ended meanwhile, or somebody uses the image
                after = image_id(client, name)
                if after != before:
                    _restore(client, name, _Loaded(after, before))


def _restore(client: DockerClient, tag: str, loaded: _Loaded) -> None:
    from docker.errors import ImageNotFound, NotFound

    if loaded.image and image_id(client, tag) == loaded.image:
        client.images.remove(tag)
    with suppress(ImageNotFound):
        # Its tag was taken by a later one: without a name it is ours alone.
        if not client.images.get(loaded.image).tags:
            client.images.remove(loaded.image)
    if loaded.before and not image_id(client, tag):
        with suppress(NotFound):
            repository, _, name = tag.rpartition(":")
            client.api.tag(loaded.before, repository, name)
