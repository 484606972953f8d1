"""The truth by a registry's API: everything is fetched and hashed. A HEAD is never asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from harness.errors import ConfigurationError, HarnessError, InfrastructureError, LinkLostError
from harness.registry.hashing import BodyHash
from harness.registry.manifests import Named
from harness.registry.media_types import ACCEPTED, LARGEST_MANIFEST
from harness.registry.reference import Reference, check_digest, check_repository, is_digest
from harness.registry.truth import ANYTHING, Expected, ImageTruth, Source, TruthState
from harness.registry.truth_walk import BlobRead, ManifestRead, Missed, walk
from harness.registry.wire import Answer, Authorizer, Endpoint, Wire

_PAGE = 100
_SMALL = 1 << 20
#: Connections that large blobs are fetched over: while one waits for its sender or its hash, others go on.
_LANES = 3
#: Smaller blobs are there before another connection is.
_LARGE = 1 << 20
#: Digests other than by SHA-256 are legal; registries of the 2.x line do not write them.
_HASHES = frozenset({"sha256", "sha384", "sha512"})


class ApiTruth:
    """Reads a registry by its API; for one thread at a time.

    :param authorizer: how it gets in, where it has to.
    :param stall: seconds without a byte after which reading is given up.
    """

    def __init__(
        self, endpoint: Endpoint, authorizer: Authorizer | None = None, *, stall: float = 30.0
    ) -> None:
        """:raises ConfigurationError: the URL is none, or the authority's file cannot be read."""
        self._wire = Wire(endpoint, authorizer)
        self._stall = stall
        self._lanes = [_Lane(self._wire, BodyHash())]

    def __enter__(self) -> ApiTruth:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; may be called twice."""
        for lane in self._lanes:
            lane.wire.close()

    @property
    def source(self) -> Source:
        """The API."""
        return "api"

    def check(self) -> None:
        """Return if a registry answers and lets us in.

        :raises ConfigurationError: what answers is no registry.
        :raises InfrastructureError: nobody answers, the certificate is not trusted, or we are refused.
        """
        with self._wire.get("/v2/", deadline=self._stall) as answer:
            answer.read(_SMALL)
        if answer.status == 401:
            raise InfrastructureError(
                f"The registry {self._wire.endpoint.url} does not let us in (401).",
                hint="Give it user and credentials in the inventory.",
            )
        if answer.status != 200 or not answer.headers.get(
            "docker-distribution-api-version", "registry/2.0"
        ).startswith("registry/2."):
            raise ConfigurationError(
                f"{self._wire.endpoint.url} is not a registry: it answers /v2/ with {answer.status}.",
                hint="The URL is that of the registry itself, without a path.",
            )

    def image(self, reference: Reference, expected: Expected = ANYTHING) -> ImageTruth:
        """Return what is true of the image at ``reference``; its registry part is not looked at."""
        return walk(self, reference, expected)

    # -- catalogue ----------------------------------------------------------------------------------

    def catalogue(self) -> Iterator[str]:
        """Yield the names of all repositories. :raises InfrastructureError: they cannot be listed."""
        for page in self._pages("/v2/_catalog", "registry:catalog:*"):
            yield from _strings(page, "repositories", "/v2/_catalog")

    def tags(self, repository: str) -> list[str]:
        """Return the tags of ``repository``, sorted; none where the registry does not know it.

        :raises InfrastructureError: they cannot be listed.
        """
        check_repository(repository)
        path = f"/v2/{repository}/tags/list"
        found = [tag for page in self._pages(path, repository) for tag in _strings(page, "tags", path)]
        return sorted(set(found))

    def _pages(self, path: str, scope: str) -> Iterator[Any]:
        """Yield the documents of a list that comes in pages. An unknown repository has none."""
        # Stated, since without it some take 100 and some everything, and 0 lists nothing at all.
        following: str | None = f"{path}?{urlencode({'n': _PAGE})}"
        seen: set[str] = set()
        while following is not None:
            if following in seen:
                raise InfrastructureError(f"The pages of {path} lead in a circle at {following}.")
            seen.add(following)
            with self._wire.get(following, deadline=self._stall, scope=scope) as answer:
                body = answer.read(_SMALL)
            if answer.status == 404 and "NAME_UNKNOWN" in body.decode(errors="replace"):
                return
            if answer.status != 200:
                raise InfrastructureError(f"{path} cannot be listed: {_refusal(answer, body)}.")
            try:
                yield json.loads(body)
            except (ValueError, RecursionError):
                raise InfrastructureError(f"{path} answers with something that is no JSON.") from None
            following = _next(path, answer.headers.get("link", ""))

    # -- reading ------------------------------------------------------------------------------------

    def manifest(self, repository: str, wanted: str) -> ManifestRead | Missed:
        """Read the manifest under a tag or digest, and hash it."""
        path = f"/v2/{repository}/manifests/{quote(wanted, safe=':')}"
        try:
            with self._wire.get(
                path, headers={"Accept": ACCEPTED}, deadline=self._stall, scope=repository
            ) as answer:
                body = answer.read(LARGEST_MANIFEST)
        except HarnessError as error:
            return Missed(TruthState.UNREADABLE, error.message)
        if answer.status != 200:
            return _missed(answer, body)
        promised = wanted if is_digest(wanted) else answer.headers.get("docker-content-digest", "")
        if promised and not is_digest(promised):
            return Missed(TruthState.UNREADABLE, f"the registry states {promised[:80]!r} as its digest")
        digest = _digest(body, promised)
        if promised and digest != promised:
            return Missed(
                TruthState.CORRUPT, f"{len(body)} bytes with the digest {digest} instead of {promised}"
            )
        if answer.length is not None and answer.length != len(body):
            return Missed(TruthState.CORRUPT, f"{len(body)} bytes, and {answer.length} were announced")
        return ManifestRead(body, digest, answer.headers.get("content-type", ""))

    def blobs(self, repository: str, named: Sequence[Named]) -> dict[str, BlobRead | Missed]:
        """Fetch the blobs and hash them as they come; large ones several at once."""
        large = [each for each in named if each.size >= _LARGE]
        if len(large) < 2:
            return {each.digest: self._blob(self._lanes[0], repository, each.digest) for each in named}
        while len(self._lanes) < min(_LANES, len(large)):
            self._lanes.append(_Lane(self._wire.another(), BodyHash()))
        free: SimpleQueue[_Lane] = SimpleQueue()
        for lane in self._lanes:
            free.put(lane)

        def read(each: Named) -> BlobRead | Missed:
            lane = free.get()
            try:
                return self._blob(lane, repository, each.digest)
            finally:
                free.put(lane)

        # The largest first, so that the lanes end at about the same time.
        ordered = sorted(named, key=lambda each: -each.size)
        with ThreadPoolExecutor(len(self._lanes), "blob") as pool:
            try:
                return dict(zip((each.digest for each in ordered), pool.map(read, ordered), strict=True))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for lane in self._lanes:
                    lane.wire.abort()
                raise

    def _blob(self, lane: _Lane, repository: str, digest: str) -> BlobRead | Missed:
        check_digest(digest)
        first = self._fetched(lane, repository, digest)
        if not isinstance(first, _Short):
            return first
        # The connection may have broken, or the content is shorter than the registry believes: then it
        # ends at the same byte again.
        second = self._fetched(lane, repository, digest)
        if not isinstance(second, _Short):
            return second
        if second.got == first.got and not second.broke:
            return Missed(
                TruthState.CORRUPT, f"ends after {second.got} of the {second.due} bytes that are announced"
            )
        return Missed(TruthState.UNREADABLE, f"broke off twice, after {first.got} and {second.got} bytes")

    def _fetched(self, lane: _Lane, repository: str, digest: str) -> BlobRead | Missed | _Short:
        path = f"/v2/{repository}/blobs/{digest}"
        algorithm = digest.partition(":")[0]
        due: int | None = None
        begun = False
        try:
            with lane.wire.get(path, deadline=self._stall, scope=repository) as answer:
                if answer.status != 200:
                    return _missed(answer, answer.read(_SMALL))
                due, begun = answer.length, True
                got, hashed = lane.hash.take(answer.readinto, algorithm)
        except LinkLostError as error:
            if not begun:
                return Missed(TruthState.UNREADABLE, error.message)
            return _Short(lane.hash.received, due or 0, True)
        except HarnessError as error:
            return Missed(TruthState.UNREADABLE, error.message)
        if due is not None and got < due:
            return _Short(got, due, False)
        return BlobRead(got, f"{algorithm}:{hashed}")


@dataclass(frozen=True, slots=True)
class _Lane:
    """A connection, and what hashes the body that comes over it."""

    wire: Wire
    hash: BodyHash


class _Short:
    """A body that ended before its announced length, or whose connection broke."""

    def __init__(self, got: int, due: int, broke: bool) -> None:
        self.got = got
        self.due = due
        self.broke = broke


def _missed(answer: Answer, body: bytes) -> Missed:
    """Return what an answer that is no content says; only a 404 of the registry's own says ABSENT."""
    said = _refusal(answer, body)
    if answer.status == 404 and "_UNKNOWN" in said:
        return Missed(TruthState.ABSENT, said)
    return Missed(TruthState.UNREADABLE, said)


def _refusal(answer: Answer, body: bytes) -> str:
    """Return status and error codes of an answer, in words."""
    try:
        errors = json.loads(body)["errors"]
        said = ", ".join(f"{error['code']}: {error.get('message', '')}" for error in errors)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        said = body[:120].decode(errors="replace").strip() or "no body"
    return f"{answer.status} {said}"


def _digest(content: bytes, promised: str) -> str:
    algorithm = promised.partition(":")[0]
    chosen = algorithm if algorithm in _HASHES else "sha256"
    return f"{chosen}:{hashlib.new(chosen, content).hexdigest()}"


def _strings(page: Any, key: str, path: str) -> list[str]:
    """Return the list under ``key``; null stands for an empty one."""
    found = page.get(key) if isinstance(page, dict) else None
    if not isinstance(page, dict) or key not in page or not isinstance(found, list | None):
        raise InfrastructureError(f"{path} answers without a list of {key}.")
    return [str(each) for each in found or ()]


def _next(path: str, link: str) -> str | None:
    """Return the path of the next page of a Link header; None where there is none."""
    target, _, rest = link.partition(">")
    if not target.startswith("<") or 'rel="next"' not in rest:
        return None
    query = parse_qs(urlsplit(target[1:]).query)
    # Only what follows is taken: a registry behind a proxy may state a host and a path of its own.
    return f"{path}?{urlencode({key: values[0] for key, values in query.items() if key in ('n', 'last')})}"
