"""Container images as content: blobs that can be read again and again, made from a recipe or read."""

from __future__ import annotations

import hashlib
import json
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.errors import ConfigurationError
from harness.registry.media_types import (
    DOCKER_CONFIG,
    DOCKER_LAYER,
    DOCKER_LAYER_GZIP,
    DOCKER_LIST,
    DOCKER_MANIFEST,
    OCI_CONFIG,
    OCI_INDEX,
    OCI_LAYER,
    OCI_LAYER_GZIP,
    OCI_MANIFEST,
)

#: Bytes of one piece of a blob's content.
PIECE = 1 << 18
_STORED = 65535  # most bytes of a deflate block that is stored
_LARGEST_LAYER = (1 << 33) - 1  # what a ustar header can state

Form = Literal["oci", "docker"]


@dataclass(frozen=True, slots=True)
class Blob:
    """Content by its digest. ``source`` starts the content from its beginning each time it is called."""

    digest: str
    size: int
    media_type: str
    source: Callable[[], Iterator[bytes]] = field(repr=False, compare=False)

    @classmethod
    def of(cls, content: bytes, media_type: str) -> Blob:
        """Return a blob that is held in memory."""
        return cls(digest_of(content), len(content), media_type, lambda: iter((content,)))

    @classmethod
    def measured(cls, media_type: str, source: Callable[[], Iterator[bytes]]) -> Blob:
        """Return the blob that ``source`` gives, once it has been read through."""
        sha, size = hashlib.sha256(), 0
        for piece in source():
            sha.update(piece)
            size += len(piece)
        return cls(f"sha256:{sha.hexdigest()}", size, media_type, source)

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield the content from the byte ``start`` on, in pieces."""
        for piece in self.source():
            if start < len(piece):
                yield piece[start:] if start else piece
            start = max(0, start - len(piece))

    def read(self) -> bytes:
        """Return the whole content; for blobs that are small."""
        return b"".join(self.source())

    def descriptor(self) -> dict[str, Any]:
        """Return what a manifest says of it."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size}


@dataclass(frozen=True, slots=True)
class Image:
    """One image: its manifest, verbatim, and what that names."""

    manifest: Blob
    config: Blob
    layers: tuple[Blob, ...]

    @property
    def digest(self) -> str:
        """The digest of its manifest."""
        return self.manifest.digest

    def blobs(self) -> tuple[Blob, ...]:
        """Return layers and config, each once, in the order in which a client sends them."""
        return tuple({blob.digest: blob for blob in (*self.layers, self.config)}.values())

    def manifests(self) -> tuple[Blob, ...]:
        """Return its manifest alone."""
        return (self.manifest,)


@dataclass(frozen=True, slots=True)
class Index:
    """Several images under one digest, such as one for each processor architecture."""

    manifest: Blob
    children: tuple[Content, ...]

    @property
    def digest(self) -> str:
        """The digest of the index."""
        return self.manifest.digest

    def blobs(self) -> tuple[Blob, ...]:
        """Return every layer and config below it, each once."""
        found = {blob.digest: blob for child in self.children for blob in child.blobs()}
        return tuple(found.values())

    def manifests(self) -> tuple[Blob, ...]:
        """Return the manifests below it, each once, and the index last: a registry wants that order."""
        found = {blob.digest: blob for child in self.children for blob in child.manifests()}
        return (*found.values(), self.manifest)


Content = Image | Index


# -- recipes --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LayerRecipe:
    """A layer with one file of ``size`` bytes without a pattern; the same for the same seed and size."""

    size: int
    seed: str = "0"
    gzip: bool = True


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """An image. ``label``: goes into the config, so that images of the same layers differ."""

    layers: tuple[LayerRecipe, ...]
    label: str = ""
    architecture: str = "amd64"
    form: Form = "oci"


@dataclass(frozen=True, slots=True)
class IndexRecipe:
    """An index with children."""

    children: tuple[ImageRecipe, ...]
    form: Form = "oci"


def sized_layers(count: int, size: int, *, seed: str = "0") -> tuple[LayerRecipe, ...]:
    """Return ``count`` different layers of ``size`` bytes each."""
    return tuple(LayerRecipe(size, f"{seed}-{number}") for number in range(count))


def make_image(recipe: ImageRecipe) -> Image:
    """Return the image; the bytes depend on the recipe alone.

    :raises ConfigurationError: a size is not possible.
    """
    layers, differences = [], []
    for layer in recipe.layers:
        blob, difference = make_layer(layer, recipe.form)
        layers.append(blob)
        differences.append(difference)
    config = {
        "architecture": recipe.architecture,
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {"Labels": {"hil": recipe.label}} if recipe.label else {},
        "rootfs": {"type": "layers", "diff_ids": differences},
        "history": [
            {"created": "1970-01-01T00:00:00Z", "created_by": f"hil layer {layer.seed}"}
            for layer in recipe.layers
        ],
    }
    kind = OCI_CONFIG if recipe.form == "oci" else DOCKER_CONFIG
    return assemble(Blob.of(encoded(config), kind), layers, recipe.form)


def make_index(recipe: IndexRecipe) -> Index:
    """Return the index with its children."""
    children = tuple(make_image(child) for child in recipe.children)
    listed = [
        child.manifest.descriptor() | {"platform": {"architecture": each.architecture, "os": "linux"}}
        for child, each in zip(children, recipe.children, strict=True)
    ]
    kind = OCI_INDEX if recipe.form == "oci" else DOCKER_LIST
    whole = {"schemaVersion": 2, "mediaType": kind, "manifests": listed}
    return Index(Blob.of(encoded(whole), kind), children)


def assemble(config: Blob, layers: Sequence[Blob], form: Form) -> Image:
    """Return the image of a config and its layers."""
    kind = OCI_MANIFEST if form == "oci" else DOCKER_MANIFEST
    whole = {
        "schemaVersion": 2,
        "mediaType": kind,
        "config": config.descriptor(),
        "layers": [layer.descriptor() for layer in layers],
    }
    return Image(Blob.of(encoded(whole), kind), config, tuple(layers))


def make_layer(recipe: LayerRecipe, form: Form = "oci") -> tuple[Blob, str]:
    """Return a layer and the digest of its tar file (its ``diff_id``)."""
    if not 0 <= recipe.size <= _LARGEST_LAYER:
        raise ConfigurationError(f"A layer of {recipe.size} bytes cannot be made.")
    plain = Blob.measured(OCI_LAYER if form == "oci" else DOCKER_LAYER, lambda: _tar(recipe))
    if not recipe.gzip:
        return plain, plain.digest
    kind = OCI_LAYER_GZIP if form == "oci" else DOCKER_LAYER_GZIP
    return Blob.measured(kind, lambda: _gzip(plain.source())), plain.digest


def _tar(recipe: LayerRecipe) -> Iterator[bytes]:
    """Yield a tar file with one file in it."""
    entry = tarfile.TarInfo(f"hil-{hashlib.sha256(recipe.seed.encode()).hexdigest()[:16]}.bin")
    entry.size = recipe.size
    yield entry.tobuf(tarfile.USTAR_FORMAT)
    yield from _noise(recipe.seed, recipe.size)
    yield bytes(-recipe.size % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE)


def _noise(seed: str, size: int) -> Iterator[bytes]:
    """Yield ``size`` bytes without a pattern, the same for the same seed (AES in counter mode)."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = hashlib.sha256(seed.encode()).digest()
    stream = Cipher(algorithms.AES(key[:16]), modes.CTR(key[16:])).encryptor()
    zeros = bytes(PIECE)
    for at in range(0, size, PIECE):
        yield stream.update(zeros[: min(PIECE, size - at)])


def _gzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield ``pieces`` as a gzip file of stored blocks: what a compressor writes differs by its version."""
    yield b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    check, size = 0, 0
    for piece in pieces:
        check = zlib.crc32(piece, check)
        size += len(piece)
        blocks = []
        for at in range(0, len(piece), _STORED):
            block = piece[at : at + _STORED]
            blocks += [struct.pack("<BHH", 0, len(block), len(block) ^ 0xFFFF), block]
        yield b"".join(blocks)
    yield struct.pack("<BHHII", 1, 0, 0xFFFF, check, size & 0xFFFFFFFF)


def encoded(value: Any) -> bytes:
    """Return ``value`` as JSON, the same bytes for the same value."""
    return json.dumps(value, separators=(",", ":")).encode()


def digest_of(content: bytes) -> str:
    """Return the digest of ``content``."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
