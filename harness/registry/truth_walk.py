"""Walks an image from its reference down to every blob, by any way of reading a registry."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.judgement.values import Unknown, Value
from harness.registry.manifests import Manifest, Named, NotAManifest, read_manifest
from harness.registry.reference import Reference
from harness.registry.truth import (
    ANYTHING,
    Expected,
    Finding,
    ImageTruth,
    Part,
    Source,
    TruthState,
    departures,
    state_of,
)

#: An index within an index within an index: more is a mistake, or bait.
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class ManifestRead:
    """A manifest as it was read: its bytes, the digest of these, and the type that is stated."""

    content: bytes
    digest: str
    media_type: str


@dataclass(frozen=True, slots=True)
class BlobRead:
    """A blob as it was read: how many bytes, and their digest."""

    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Missed:
    """Why something was not read: it is not there (ABSENT), damaged (CORRUPT), or it cannot be told."""

    state: TruthState
    reason: str


class Reader(Protocol):
    """A way of reading a registry."""

    @property
    def source(self) -> Source:
        """Which way it is."""
        ...

    def manifest(self, repository: str, wanted: str) -> ManifestRead | Missed:
        """Read the manifest under a tag or digest."""
        ...

    def blobs(self, repository: str, named: Sequence[Named]) -> dict[str, BlobRead | Missed]:
        """Read these blobs of the repository, and give what was read of each by its digest."""
        ...


def walk(reader: Reader, reference: Reference, expected: Expected = ANYTHING) -> ImageTruth:
    """Return what is true of the image at ``reference``. Nothing is believed that was not hashed."""
    began = time.monotonic()
    walked = _Walk(reader, reference.repository)
    digest, config = walked.top(reference, expected)
    return ImageTruth(
        source=reader.source,
        reference=reference,
        state=state_of(walked.findings),
        digest=digest,
        config=config,
        findings=tuple(walked.findings),
        hashed=walked.hashed,
        seconds=time.monotonic() - began,
    )


class _Walk:
    def __init__(self, reader: Reader, repository: str) -> None:
        self._reader = reader
        self._repository = repository
        self._seen: set[str] = set()
        self.findings: list[Finding] = []
        self.hashed = 0

    def top(self, reference: Reference, expected: Expected) -> tuple[Value[str], Value[str]]:
        """Walk from the reference down; return the digests of its manifest and config."""
        part: Part = "manifest" if reference.digest else "tag"
        read = self._reader.manifest(self._repository, reference.wanted)
        if isinstance(read, Missed):
            self._add(read.state, part, reference.wanted, read.reason)
            return Unknown(read.reason), Unknown(read.reason)
        config: Value[str] = Unknown("an index has none")
        manifest = self._manifest(read, reference.wanted, part)
        if manifest is None:
            config = Unknown("the manifest cannot be read")
        elif manifest.config is not None:
            config = manifest.config.digest
        self.findings += departures(read.digest, config, expected, reference.wanted)
        if manifest is not None:
            self._below(manifest, 0)
        return read.digest, config

    def _manifest(self, read: ManifestRead, which: str, part: Part) -> Manifest | None:
        self.hashed += len(read.content)
        self._seen.add(read.digest)
        try:
            return read_manifest(read.content, read.media_type)
        except NotAManifest as error:
            # Its hash is right, or it would not be here: it was stored so, and is of a kind unknown to us.
            self._add(TruthState.UNREADABLE, part, which, str(error))
            return None

    def _below(self, manifest: Manifest, depth: int) -> None:
        if manifest.config is not None:
            self._blobs("config", [manifest.config])
        self._blobs("layer", manifest.layers)
        for child in manifest.children:
            if child.digest in self._seen:
                continue
            read = self._reader.manifest(self._repository, child.digest)
            if isinstance(read, Missed):
                self._missed(read, "child", child.digest)
                continue
            below = self._manifest(read, child.digest, "child")
            if below is not None and depth >= _DEEPEST:
                self._add(TruthState.UNREADABLE, "child", child.digest, "indexes within indexes without end")
            elif below is not None:
                self._below(below, depth + 1)

    def _blobs(self, part: Part, named: Sequence[Named]) -> None:
        fresh = list({each.digest: each for each in named if each.digest not in self._seen}.values())
        self._seen |= {each.digest for each in fresh}
        read = self._reader.blobs(self._repository, fresh)
        for each in fresh:
            found = read[each.digest]
            if isinstance(found, Missed):
                self._missed(found, part, each.digest)
                continue
            self.hashed += found.size
            if found.digest != each.digest:
                self._add(
                    TruthState.CORRUPT,
                    part,
                    each.digest,
                    f"{found.size} bytes of {each.size}, with the digest {found.digest}",
                )
            elif found.size != each.size:
                self._add(
                    TruthState.CORRUPT, part, each.digest, f"{found.size} bytes, and {each.size} are stated"
                )

    def _missed(self, missed: Missed, part: Part, which: str) -> None:
        """Add what is missing below a manifest: the image is there in part."""
        state = TruthState.PARTIAL if missed.state is TruthState.ABSENT else missed.state
        self._add(state, part, which, missed.reason)

    def _add(self, state: TruthState, part: Part, which: str, reason: str) -> None:
        self.findings.append(Finding(state, part, which, reason))
