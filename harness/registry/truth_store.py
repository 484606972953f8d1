"""The truth by a registry's store: links are followed and blobs hashed, without asking the registry."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Sequence

from harness.errors import ConfigurationError, InfrastructureError
from harness.registry.manifests import Named
from harness.registry.media_types import LARGEST_MANIFEST
from harness.registry.reference import Reference, check_repository, is_digest
from harness.registry.store import Store
from harness.registry.truth import ANYTHING, Expected, ImageTruth, Source, TruthState
from harness.registry.truth_walk import BlobRead, ManifestRead, Missed, walk


class StoreTruth:
    """Reads a registry by its store (the layout of distribution's file system driver, 2.x and 3.x)."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def source(self) -> Source:
        """The store."""
        return "store"

    def check(self) -> None:
        """Return if there is a store that can be read.

        :raises ConfigurationError: there is none. :raises InfrastructureError: it may not be read.
        """
        try:
            self._store.names("repositories")
        except FileNotFoundError:
            raise ConfigurationError(
                f"{self._store.place} is not a registry's store: it has no docker/registry/v2/repositories.",
                hint="It is what `rootdirectory` says in the registry's configuration. "
                "A registry makes it when it takes the first image.",
            ) from None
        except OSError as error:
            raise _unreadable(self._store, error) from None

    def image(self, reference: Reference, expected: Expected = ANYTHING) -> ImageTruth:
        """Return what is true of the image at ``reference``; its registry part is not looked at."""
        return walk(self, reference, expected)

    def catalogue(self) -> list[str]:
        """Return the names of all repositories. :raises InfrastructureError: they cannot be listed."""
        try:
            return self._store.repositories()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unreadable(self._store, error) from None

    def tags(self, repository: str) -> list[str]:
        """Return the tags of ``repository``, sorted; none where there is no such repository.

        A tag whose link is damaged is among them. :raises InfrastructureError: they cannot be listed.
        """
        check_repository(repository)
        try:
            return self._store.names(f"repositories/{repository}/_manifests/tags")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unreadable(self._store, error) from None

    # -- reading ------------------------------------------------------------------------------------

    def manifest(self, repository: str, wanted: str) -> ManifestRead | Missed:
        """Read the manifest under a tag or digest by its links, and hash it."""
        try:
            return self._manifest(repository, wanted)
        except InfrastructureError as error:
            return Missed(TruthState.UNREADABLE, error.message)

    def _manifest(self, repository: str, wanted: str) -> ManifestRead | Missed:
        folder = f"repositories/{repository}/_manifests"
        digest = wanted
        if not is_digest(wanted):
            link = f"{folder}/tags/{wanted}/current/link"
            found = self._linked(link, "the tag's link")
            if isinstance(found, Missed):
                return found
            digest = found
        revision = self._linked(f"{folder}/revisions/{_by_algorithm(digest)}/link", "the manifest's link")
        if isinstance(revision, Missed):
            return revision
        if revision != digest:
            return Missed(TruthState.CORRUPT, f"the manifest's link leads to {revision}")
        try:
            content = self._store.read(_data(digest), LARGEST_MANIFEST)
        except OSError as error:
            return _missed(error, "its content")
        algorithm = digest.partition(":")[0]
        found = f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"
        if found != digest:
            return Missed(
                TruthState.CORRUPT, f"{len(content)} bytes with the digest {found} instead of {digest}"
            )
        return ManifestRead(content, digest, "")

    def _linked(self, path: str, what: str) -> str | Missed:
        """Return the digest that a link file holds."""
        text = self._store.texts([path])[path]
        return _target(text, what)

    def blobs(self, repository: str, named: Sequence[Named]) -> dict[str, BlobRead | Missed]:
        """Follow the link of each blob in this repository, and hash what it leads to."""
        try:
            return self._blobs(repository, named)
        except InfrastructureError as error:
            return {each.digest: Missed(TruthState.UNREADABLE, error.message) for each in named}

    def _blobs(self, repository: str, named: Sequence[Named]) -> dict[str, BlobRead | Missed]:
        links = {
            each.digest: f"repositories/{repository}/_layers/{_by_algorithm(each.digest)}/link"
            for each in named
        }
        texts = self._store.texts(list(links.values()))
        found: dict[str, BlobRead | Missed] = {}
        for digest, link in links.items():
            target = _target(texts[link], "its link in the repository")
            if isinstance(target, Missed):
                found[digest] = target
            elif target != digest:
                found[digest] = Missed(TruthState.CORRUPT, f"its link in the repository leads to {target}")
        for algorithm in {digest.partition(":")[0] for digest in links.keys() - found.keys()}:
            wanted = {
                _data(digest): digest
                for digest in links
                if digest not in found and digest.startswith(f"{algorithm}:")
            }
            for path, read in self._store.hashes(list(wanted), algorithm).items():
                found[wanted[path]] = (
                    _missed(read, "its content")
                    if isinstance(read, OSError)
                    else BlobRead(read[0], f"{algorithm}:{read[1]}")
                )
        return found


def _by_algorithm(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    return f"{algorithm}/{value}"


def _data(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    return f"blobs/{algorithm}/{value[:2]}/{value}/data"


def _target(text: bytes | OSError, what: str) -> str | Missed:
    """Return the digest that a link holds. An empty link is what a crash of registry 2.8 leaves."""
    if isinstance(text, OSError):
        return _missed(text, what)
    digest = text.decode(errors="replace").strip()
    if not is_digest(digest):
        return Missed(TruthState.CORRUPT, f"{what} {'is empty' if not digest else f'holds {digest[:80]!r}'}")
    return digest


def _missed(error: OSError, what: str) -> Missed:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return Missed(TruthState.ABSENT, f"{what} is missing")
    if error.errno == errno.EFBIG:
        return Missed(TruthState.CORRUPT, f"{what}: {error.strerror}")
    return Missed(TruthState.UNREADABLE, f"{what} cannot be read: {error.strerror}")


def _unreadable(store: Store, error: OSError) -> InfrastructureError:
    return InfrastructureError(
        f"The store at {store.place} cannot be read: {error.strerror}.",
        hint="It belongs to the registry's user; read it as that one or as root.",
    )
