"""Moves content into a registry and out of it: blobs several at once, manifests after what they name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import TYPE_CHECKING

from harness.registry.clients.oci_session import PushError, Session, TransientError, refusal
from harness.registry.images import Blob, Content
from harness.registry.manifests import NotAManifest, read_manifest
from harness.registry.media_types import ACCEPTED, LARGEST_MANIFEST
from harness.registry.reference import Reference

if TYPE_CHECKING:
    import httpx


class DamagedError(PushError):
    """What was asked for is not there, or is not what its digest promises."""


#: Blobs that are under way at once.
PARALLEL = 3
#: An index within an index within an index: more is a mistake, or bait.
_DEEPEST = 4
Say = Callable[[str], None]


class Push:
    """One push of ``content``.

    :param chunk: bytes of one PATCH; 0 sends each blob by one PUT.
    :param parallel: blobs that are under way at once.
    :param anyway: digests of blobs that are sent even where the registry says that it has them.
    """

    def __init__(
        self,
        session: Session,
        content: Content,
        reference: Reference,
        say: Say,
        *,
        chunk: int = 0,
        parallel: int = PARALLEL,
        anyway: frozenset[str] = frozenset(),
    ) -> None:
        self._session = session
        self._content = content
        self._reference = reference
        self._path = f"/v2/{reference.repository}"
        self._say = say
        self._chunk = chunk
        self._parallel = parallel
        self._anyway = anyway

    def run(self) -> str:
        """Send everything and return the digest that the registry states. :raises PushError: it failed."""
        acts = [partial(self._blob, blob) for blob in self._content.blobs()]
        in_parallel(self._session, acts, self._parallel)
        stated = ""
        for manifest in self._content.manifests():
            last = manifest.digest == self._content.digest
            under = self._reference.wanted if last else manifest.digest
            stated = self._session.attempt(partial(self._manifest, manifest, under), self._say)
        return stated

    def _blob(self, blob: Blob) -> None:
        upload = _Upload(self._session, self._path, blob, self._chunk)

        def act() -> None:
            if blob.digest not in self._anyway and self._has(blob):
                self._say(f"{blob.digest}: exists")
            else:
                upload.run()
                self._say(f"{blob.digest}: {blob.size} bytes sent")

        self._session.attempt(act, self._say)

    def _has(self, blob: Blob) -> bool:
        """Ask whether a blob is there; a registry that cannot tell is sent the blob, which may heal it."""
        try:
            with self._session.ask("HEAD", f"{self._path}/blobs/{blob.digest}") as answer:
                return answer.status_code == 200
        except TransientError as error:
            if error.status != 500:
                raise
            return False

    def _manifest(self, manifest: Blob, under: str) -> str:
        content = manifest.read()
        with self._session.ask(
            "PUT",
            f"{self._path}/manifests/{under}",
            content=content,
            headers={"Content-Type": manifest.media_type},
        ) as answer:
            stated = str(answer.headers.get("docker-content-digest", ""))
            if answer.status_code != 201:
                raise PushError(f"PUT manifest {under}: {refusal(answer)}")
        if stated != manifest.digest:
            raise PushError(
                f"PUT manifest {under}: 201 with the digest {stated!r} instead of {manifest.digest}"
            )
        self._say(f"manifest {under}: 201 {stated}")
        return stated


class _Upload:
    """The upload of one blob, which may need several tries."""

    def __init__(self, session: Session, path: str, blob: Blob, chunk: int) -> None:
        self._session = session
        self._begin = f"{path}/blobs/uploads/"
        self._blob = blob
        self._chunk = chunk
        self._location = ""
        self._sent = 0

    def run(self) -> None:
        """Send the blob from where an earlier try left off, or from its beginning."""
        if not self._resumed():
            with self._session.ask("POST", self._begin, headers={"Content-Length": "0"}) as answer:
                self._sent = 0
                self._follow(answer, 202)
        if self._chunk:
            for chunk in _chunks(self._blob.pieces(self._sent), self._chunk):
                self._patch(chunk)
            self._finish(iter(()), 0)
        else:
            self._finish(_whole(self._blob), self._blob.size)
        self._location = ""

    def _resumed(self) -> bool:
        """Return whether an upload was begun that can go on. After a crash of the registry none can."""
        location, self._location = self._location, ""
        if not location or not self._chunk:
            return False
        with self._session.ask("GET", location) as answer:
            if answer.status_code != 204:
                return False
            last = str(answer.headers.get("range", "")).rpartition("-")[2]
            # 0-0 stands for one byte, and for none.
            if not last.isdecimal() or not 0 < int(last) < self._blob.size:
                return False
            self._sent = int(last) + 1
            self._follow(answer, 204)
        return True

    def _patch(self, chunk: bytes) -> None:
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(len(chunk)),
            "Content-Range": f"{self._sent}-{self._sent + len(chunk) - 1}",
        }
        with self._session.ask("PATCH", self._location, content=chunk, headers=headers) as answer:
            self._follow(answer, 202)
        self._sent += len(chunk)

    def _finish(self, pieces: Iterator[bytes], size: int) -> None:
        digest = self._blob.digest
        url = f"{self._location}{'&' if '?' in self._location else '?'}digest={digest}"
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        with self._session.ask("PUT", url, content=pieces, headers=headers) as answer:
            if answer.status_code != 201:
                raise PushError(f"PUT blob {digest}: {refusal(answer)}")
            stated = answer.headers.get("docker-content-digest", digest)
        if stated != digest:
            raise PushError(f"PUT blob {digest}: 201 with the digest {stated!r}")

    def _follow(self, answer: httpx.Response, due: int) -> None:
        """Take the place where the upload goes on. An upload that the registry forgot is begun anew."""
        method = answer.request.method
        if answer.status_code == 404 and method == "PATCH":
            raise TransientError(f"PATCH blob {self._blob.digest}: {refusal(answer)}", 404)
        if answer.status_code != due or "location" not in answer.headers:
            raise PushError(f"{method} upload of {self._blob.digest}: {refusal(answer)}")
        self._location = str(answer.headers["location"])


def _whole(blob: Blob) -> Iterator[bytes]:
    """Yield the content. :raises PushError: it has become longer or shorter than it was."""
    sent = 0
    for piece in blob.pieces():
        sent += len(piece)
        if sent > blob.size:
            break
        yield piece
    if sent != blob.size:
        raise PushError(f"{blob.digest}: its content has not the {blob.size} bytes any more that it had")


def _chunks(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield what ``pieces`` hold in chunks of ``size`` bytes, the last one in part."""
    have = bytearray()
    for piece in pieces:
        have += piece
        while len(have) >= size:
            yield bytes(have[:size])
            del have[:size]
    if have:
        yield bytes(have)


class Pull:
    """One pull: everything is fetched and hashed; nothing is kept."""

    def __init__(self, session: Session, reference: Reference, say: Say) -> None:
        self._session = session
        self._reference = reference
        self._path = f"/v2/{reference.repository}"
        self._say = say
        self._blobs: dict[str, int] = {}

    def run(self) -> str:
        """Fetch all of the image and return its manifest's digest. :raises PushError: it is not whole."""
        digest = self._manifest(self._reference.wanted, 0)
        in_parallel(self._session, [partial(self._blob, each, size) for each, size in self._blobs.items()])
        return digest

    def _manifest(self, wanted: str, depth: int) -> str:
        content, kind = self._session.attempt(
            partial(manifest_of, self._session, self._path, wanted), self._say
        )
        try:
            read = read_manifest(content, kind)
        except NotAManifest as error:
            raise PushError(f"the manifest {wanted} cannot be read: {error}") from None
        if depth > _DEEPEST:
            raise PushError("indexes within indexes without end")
        self._say(f"manifest {wanted}: {len(content)} bytes hashed")
        self._blobs |= {each.digest: each.size for each in (*read.layers, *filter(None, [read.config]))}
        for child in read.children:
            self._manifest(child.digest, depth + 1)
        return f"sha256:{hashlib.sha256(content).hexdigest()}"

    def _blob(self, digest: str, size: int) -> None:
        self._session.attempt(BlobCheck(self._session, self._path, digest, size).run, self._say)
        self._say(f"{digest}: {size} bytes hashed")


def manifest_of(session: Session, path: str, wanted: str) -> tuple[bytes, str]:
    """Fetch the manifest under a tag or digest, and hash it; return its bytes and its stated type.

    :raises DamagedError: it is not there, or is not what its digest promises.
    :raises PushError: it is refused.
    """
    with session.ask("GET", f"{path}/manifests/{wanted}", headers={"Accept": ACCEPTED}) as answer:
        if answer.status_code != 200:
            raise _not_given(answer, f"GET manifest {wanted}")
        content = b""
        for piece in answer.iter_bytes():
            content += piece
            if len(content) > LARGEST_MANIFEST:
                raise DamagedError(f"GET manifest {wanted}: it has more than {LARGEST_MANIFEST} bytes")
        promised = wanted if ":" in wanted else str(answer.headers.get("docker-content-digest", ""))
        found = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if promised and found != promised:
            raise DamagedError(
                f"GET manifest {wanted}: its content has the digest {found} instead of {promised}"
            )
        return content, str(answer.headers.get("content-type", ""))


class BlobCheck:
    """Fetches a blob and hashes it, at several tries where connections break."""

    def __init__(self, session: Session, path: str, digest: str, size: int) -> None:
        self._session = session
        self._path = f"{path}/blobs/{digest}"
        self._digest = digest
        self._size = size
        self._broke_at = -1

    def run(self) -> None:
        """:raises DamagedError: it is not there, or is not what its digest promises.

        :raises PushError: it is refused.
        """
        algorithm, _, due = self._digest.partition(":")
        hashed, got = hashlib.new(algorithm), 0
        try:
            with self._session.ask("GET", self._path, headers={"Accept-Encoding": "identity"}) as answer:
                if answer.status_code != 200:
                    raise _not_given(answer, f"GET blob {self._digest}")
                for piece in answer.iter_raw():
                    hashed.update(piece)
                    got += len(piece)
        except TransientError as error:
            # A connection does not break at the same byte twice: the content is shorter than announced.
            if not error.status and got == self._broke_at:
                raise DamagedError(f"{self._digest}: it ends after {got} of {self._size} bytes") from None
            self._broke_at = got if not error.status else -1
            raise
        found = hashed.hexdigest()
        if found != due or got != self._size:
            raise DamagedError(
                f"{self._digest}: {got} of {self._size} bytes, with the digest {algorithm}:{found}"
            )


def _not_given(answer: httpx.Response, asked: str) -> PushError:
    """Return what it is to us that a registry does not give content."""
    kind = DamagedError if answer.status_code == 404 else PushError
    return kind(f"{asked}: {refusal(answer)}")


def in_parallel(session: Session, acts: Sequence[Callable[[], None]], parallel: int = PARALLEL) -> None:
    """Do all of it, a few at once; when one fails, the others are broken off. Raises what the first did."""
    with ThreadPoolExecutor(parallel, "blob") as pool:
        doing = [pool.submit(act) for act in acts]
        try:
            for each in as_completed(doing):
                each.result()
        except BaseException:
            session.end()
            pool.shutdown(cancel_futures=True)
            raise
