"""The reference client: it pushes, believes only what it reads back and hashes, repairs once, and says so.

It shares no code with the truth walk, so that each can show the other to be wrong.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from harness.registry.clients.catalogue import Surroundings
from harness.registry.clients.oci_http import OciPush, check, reported
from harness.registry.clients.oci_session import (
    PATIENT,
    OutOfTimeError,
    PushError,
    Session,
    TransientError,
    Tries,
)
from harness.registry.clients.oci_transfer import BlobCheck, DamagedError, Push, Say, in_parallel, manifest_of
from harness.registry.clients.protocol import Destination, Report
from harness.registry.images import Blob, Content

#: What reads wrong is read again for as long as a restart takes; damage does not go away by waiting.
_READING = Tries(most=6, seconds=3.0)
_BLOCK = 1 << 20


def push_client(surroundings: Surroundings) -> VerifiedPush:
    """Return the reference client; it looks into the store where ``surroundings`` has it."""
    return VerifiedPush(surroundings.store)


@dataclass(frozen=True, slots=True)
class _Wrong:
    """Something that is not in the registry as it was pushed."""

    digest: str
    why: str


@dataclass(slots=True)
class _Found:
    """What reading back has found: what is wrong, and why something else could not be read."""

    wrong: list[_Wrong] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


class VerifiedPush:
    """Pushes as ``oci-renew`` does, and verifies.

    :param store: the registry's ``rootdirectory``; None where it cannot be seen.
    """

    name = "verified-push"

    def __init__(self, store: Path | None = None, tries: Tries = PATIENT, reading: Tries = _READING) -> None:
        self._pushes = OciPush(self.name, tries)
        self.version = self._pushes.version
        self._store = store
        self._tries = tries
        self._reading = reading

    def prepare(self, content: Content, destination: Destination) -> None:
        """Check that the content can be pushed there. :raises ConfigurationError: it cannot."""
        check(content, destination)

    def push(self, content: Content, destination: Destination, *, deadline: float = 120.0) -> Report:
        """Push, read everything back, push once more what is wrong, and report what holds at the end."""
        began = time.monotonic()
        ends = began + deadline
        reports = [self._pushes.push(content, destination, deadline=deadline)]
        if reports[-1].result == "done":
            found = self._verified(content, destination, ends, reports)
            if found.wrong and reports[-1].result == "done":
                self._repaired(content, destination, found.wrong, ends, reports)
        last = reports[-1]
        log = tuple(line for report in reports for line in report.log)
        return replace(
            last,
            text="\n".join(log),
            log=log,
            basis="by API and store" if self._store else "by API only",
            seconds=time.monotonic() - began,
            waited=sum(report.waited for report in reports),
        )

    def forget(self, content: Content, destination: Destination) -> None:
        """Nothing was made."""

    def close(self) -> None:
        """Nothing is held between two pushes."""

    def _repaired(
        self,
        content: Content,
        destination: Destination,
        wrong: list[_Wrong],
        ends: float,
        reports: list[Report],
    ) -> None:
        """Send again what is wrong, although the registry says that it exists, and verify once more."""
        anyway = frozenset(each.digest for each in wrong)

        def again(session: Session, say: Say) -> str:
            say(f"pushing again, for {len(anyway)} of its parts are wrong")
            return Push(session, content, destination.reference, say, anyway=anyway).run()

        reports.append(reported(destination, "pull,push", self._tries, ends - time.monotonic(), again))
        if reports[-1].result == "interrupted":
            return
        left = self._verified(content, destination, ends, reports).wrong
        if reports[-1].result != "done":
            return
        if left:
            why = f"a second push did not repair: {'; '.join(each.why for each in left)}"
            reports.append(
                replace(reports[-1], result="failed", digest="", error=why, log=(why,), waited=0.0)
            )
        else:
            why = f"repaired by a second push: {'; '.join(each.why for each in wrong)}"
            reports.append(replace(reports[-1], log=(why,), waited=0.0))

    def _verified(
        self, content: Content, destination: Destination, ends: float, reports: list[Report]
    ) -> _Found:
        """Read everything back on connections of its own; add a report and return what was found.

        The report is ``done`` where everything was read, and ``unknown`` where nothing is wrong of what was.
        """
        found = _Found()

        def read(session: Session, say: Say) -> str:
            _ByApi(session, content, destination, say, found).run()
            if self._store:
                for each in _ByStore(self._store, content, destination).wrong():
                    say(each.why)
                    found.wrong.append(each)
            right = "what was read is right" if found.unread else "all is right"
            say(
                "read back and hashed: "
                + (f"{len(found.wrong)} of its parts are wrong" if found.wrong else right)
            )
            return content.digest

        report = reported(destination, "pull", self._reading, ends - time.monotonic(), read)
        unread = [report.error] if report.result == "failed" else found.unread
        if unread and not found.wrong:
            why = f"pushed, and it cannot be read back: {unread[0]}"
            report = replace(report, result="unknown", digest="", error=why, log=(*report.log, why))
        reports.append(report)
        return found


class _ByApi:
    """Fetches everything that was pushed; adds to ``found`` what is not as it was pushed, or is not given."""

    def __init__(
        self, session: Session, content: Content, destination: Destination, say: Say, found: _Found
    ) -> None:
        self._session = session
        self._content = content
        self._tag = destination.reference.tag
        self._path = f"/v2/{destination.reference.repository}"
        self._say = say
        self._found = found

    def run(self) -> None:
        """:raises PushError: the deadline passed."""
        in_parallel(self._session, [partial(self._blob, each) for each in self._content.blobs()])
        for manifest in self._content.manifests():
            self._manifest(manifest, manifest.digest)
        if self._tag:
            self._manifest(self._content.manifest, self._tag)

    def _blob(self, blob: Blob) -> None:
        fetch = BlobCheck(self._session, self._path, blob.digest, blob.size)
        try:
            self._session.attempt(fetch.run, self._say)
        except PushError as error:
            self._take(blob.digest, error)

    def _manifest(self, manifest: Blob, under: str) -> None:
        try:
            content, _ = self._session.attempt(
                lambda: manifest_of(self._session, self._path, under), self._say
            )
            if content != manifest.read():
                found = hashlib.sha256(content).hexdigest()
                self._add(manifest.digest, f"under {under} is another manifest, sha256:{found}")
        except PushError as error:
            self._take(manifest.digest, error)

    def _take(self, digest: str, error: PushError) -> None:
        """Take an error for what it tells of the content: a refusal, or a broken connection, tells nothing.

        A registry that goes on to answer 500 has what it cannot give (fact sheet, section 3).
        """
        if isinstance(error, OutOfTimeError):
            raise error
        if isinstance(error, DamagedError) or (isinstance(error, TransientError) and error.status == 500):
            self._add(digest, str(error))
        else:
            self._say(str(error))
            self._found.unread.append(str(error))

    def _add(self, digest: str, why: str) -> None:
        self._say(why)
        self._found.wrong.append(_Wrong(digest, why))


class _ByStore:
    """Follows the links of a store (distribution's file system driver) and hashes what they lead to."""

    def __init__(self, store: Path, content: Content, destination: Destination) -> None:
        self._base = store / "docker/registry/v2"
        self._repository = self._base / "repositories" / destination.reference.repository
        self._tag = destination.reference.tag
        self._content = content

    def wrong(self) -> list[_Wrong]:
        """Return what is not as it was pushed."""
        due = {blob.digest: self._repository / "_layers" for blob in self._content.blobs()}
        due |= {each.digest: self._repository / "_manifests/revisions" for each in self._content.manifests()}
        found = [
            _Wrong(digest, f"in the store, {digest}: {why}")
            for digest, folder in due.items()
            if (why := self._link(folder / digest.replace(":", "/") / "link", digest) or self._data(digest))
        ]
        top = self._content.digest
        tag = self._repository / "_manifests/tags" / self._tag / "current/link"
        if self._tag and (why := self._link(tag, top)):
            found.append(_Wrong(top, f"in the store, the tag {self._tag}: {why}"))
        return found

    def _link(self, path: Path, due: str) -> str:
        """Return what is wrong with a link; empty where nothing is."""
        try:
            said = path.read_text(errors="replace")
        except OSError as error:
            return f"its link cannot be read: {error.strerror}"
        return "" if said == due else f"its link holds {said[:80]!r}"

    def _data(self, digest: str) -> str:
        """Return what is wrong with the content under a digest; empty where nothing is."""
        algorithm, _, value = digest.partition(":")
        hashed, size = hashlib.new(algorithm), 0
        try:
            with (self._base / "blobs" / algorithm / value[:2] / value / "data").open("rb") as opened:
                while block := opened.read(_BLOCK):
                    hashed.update(block)
                    size += len(block)
        except OSError as error:
            return f"its content cannot be read: {error.strerror}"
        found = hashed.hexdigest()
        return "" if found == value else f"its {size} bytes have the digest {algorithm}:{found}"
