"""Reads and writes images in files: OCI layouts (folder or tar) and Docker archives (`docker save`)."""

from __future__ import annotations

import io
import json
import posixpath
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, Protocol

from harness.errors import ConfigurationError, InfrastructureError
from harness.registry.images import PIECE, Blob, Content, Image, Index, assemble, digest_of, encoded
from harness.registry.media_types import (
    DOCKER_CONFIG,
    DOCKER_LAYER,
    DOCKER_LAYER_GZIP,
    INDEXES,
    LARGEST_MANIFEST,
    MANIFESTS,
)
from harness.registry.reference import is_digest

_GZIP_MAGIC = b"\x1f\x8b"
_NAME = "org.opencontainers.image.ref.name"
#: An index within an index within an index: more is a mistake, or bait.
_DEEPEST = 4

#: How somebody comes by a file that can be read.
_HOW_TO_WRITE: Final = (
    "Name an OCI layout or a Docker archive: `skopeo copy docker://IMAGE oci:FOLDER` and "
    "`docker save -o FILE IMAGE` write such."
)


class _Files(Protocol):
    """The files of an image on disk, by their path within it."""

    def size(self, name: str) -> int | None:
        """Return the size of the file ``name``; None where there is none."""
        ...

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield what is in it."""
        ...


class _Folder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def size(self, name: str) -> int | None:
        found = self._path / name
        return found.stat().st_size if found.is_file() else None

    def pieces(self, name: str) -> Iterator[bytes]:
        yield from _section(self._path / name, 0, None)


class _Tar:
    """A tar file whose members are read where they lie."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with tarfile.open(path, "r:") as opened:
            members = {posixpath.normpath(member.name): member for member in opened}
        self._places = {
            name: (target.offset_data, target.size)
            for name, member in members.items()
            if (target := _resolved(member, members)) is not None
        }

    def size(self, name: str) -> int | None:
        place = self._places.get(posixpath.normpath(name))
        return place[1] if place else None

    def pieces(self, name: str) -> Iterator[bytes]:
        yield from _section(self._path, *self._places[posixpath.normpath(name)])


def _resolved(member: tarfile.TarInfo, members: Mapping[str, tarfile.TarInfo]) -> tarfile.TarInfo | None:
    """Return the file that ``member`` is or leads to: older archives link layers that are the same."""
    for _ in range(8):
        if member.isfile():
            return member
        if not (member.issym() or member.islnk()):
            return None
        base = posixpath.dirname(member.name) if member.issym() else ""
        target = members.get(posixpath.normpath(posixpath.join(base, member.linkname)))
        if target is None:
            return None
        member = target
    return None


def _section(path: Path, start: int, size: int | None) -> Iterator[bytes]:
    with path.open("rb") as opened:
        opened.seek(start)
        while size is None or size > 0:
            piece = opened.read(PIECE if size is None else min(PIECE, size))
            if not piece:
                return
            yield piece
            size = None if size is None else size - len(piece)


def read_image(path: Path, name: str = "") -> Content:
    """Return the image in an OCI layout (folder or tar) or a Docker archive; all of it is checked.

    :param name: which one, by its tag or ``name:tag``, where there are several.
    :raises ConfigurationError: it is none of these; or a layer is missing, or is not what is promised.
    """
    try:
        files = _opened(path)
        if files.size("oci-layout") is not None and files.size("index.json") is not None:
            return _Layout(path, files).content(name)
        if files.size("manifest.json") is not None:
            return _docker_archive(path, files, name)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        said = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{path} cannot be read: {said}.", hint=_HOW_TO_WRITE) from None
    raise ConfigurationError(
        f"{path} holds no image: neither an OCI layout (oci-layout, index.json) nor a Docker archive "
        "(manifest.json).",
        hint=_HOW_TO_WRITE,
    )


def _opened(path: Path) -> _Files:
    if path.is_dir():
        return _Folder(path)
    if path.is_fifo():  # to open it would wait for somebody who writes
        raise ConfigurationError(f"{path} is a pipe; an archive is read where it lies, in a file.")
    try:
        return _Tar(path)
    except tarfile.TarError as error:
        with path.open("rb") as opened:
            packed = opened.read(2) == _GZIP_MAGIC
        raise ConfigurationError(
            f"{path} is no tar file: {error}.",
            hint="It is compressed; unpack it with gunzip." if packed else "",
        ) from None


def _name_of(entry: Mapping[str, Any]) -> str:
    annotations = entry.get("annotations")
    return str(annotations.get(_NAME, "")) if isinstance(annotations, dict) else ""


def _document(path: Path, files: _Files, name: str) -> Any:
    """Return the JSON in the file ``name``. :raises ConfigurationError: it is not there, or no JSON."""
    size = files.size(name)
    if size is None:
        raise ConfigurationError(f"{path} lacks {name}, which it refers to.")
    if size > LARGEST_MANIFEST:
        raise ConfigurationError(f"{name} in {path} has {size} bytes; that is no manifest.")
    return _parsed(b"".join(files.pieces(name)), f"{name} in {path}")


def _parsed(content: bytes, what: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise ConfigurationError(f"{what} is no JSON.") from None


class _Layout:
    """An OCI layout."""

    def __init__(self, path: Path, files: _Files) -> None:
        self._path = path
        self._files = files

    def content(self, name: str) -> Content:
        """Return the content called ``name``, or the only one."""
        index = _document(self._path, self._files, "index.json")
        listed = index.get("manifests") if isinstance(index, dict) else None
        if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
            raise ConfigurationError(f"index.json in {self._path} lists no manifests.")
        named = {_name_of(entry): entry for entry in listed}
        if not name and len(listed) == 1:
            return self._content(listed[0], 0)
        if name not in named:
            raise _which(self._path, name, [known for known in named if known])
        return self._content(named[name], 0)

    def _content(self, descriptor: Mapping[str, Any], depth: int) -> Content:
        if depth > _DEEPEST:
            raise ConfigurationError(f"{self._path} has indexes within indexes without end.")
        try:
            manifest = self._blob(descriptor)
        except (KeyError, TypeError, ValueError):
            raise ConfigurationError(f"{self._path} lists something that is no manifest.") from None
        if manifest.size > LARGEST_MANIFEST:
            raise ConfigurationError(f"{manifest.digest} in {self._path} is too large for a manifest.")
        # Kept, since it is small and sent verbatim.
        content = manifest.read()
        manifest = Blob.of(content, manifest.media_type)
        parsed = _parsed(content, f"{manifest.digest} in {self._path}")
        try:
            if manifest.media_type in INDEXES:
                return Index(
                    manifest, tuple(self._content(child, depth + 1) for child in parsed["manifests"])
                )
            if manifest.media_type in MANIFESTS:
                config = self._blob(parsed["config"], "its config")
                layers = enumerate(parsed["layers"], 1)
                count = len(parsed["layers"])
                return Image(
                    manifest,
                    config,
                    tuple(self._blob(layer, f"layer {number} of {count}") for number, layer in layers),
                )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ConfigurationError(f"{manifest.digest} in {self._path} is no manifest.") from None
        raise ConfigurationError(
            f"{manifest.digest} in {self._path} is of the type {manifest.media_type!r}, which is not known."
        )

    def _blob(self, descriptor: Mapping[str, Any], what: str = "the manifest") -> Blob:
        digest, stated = str(descriptor["digest"]), int(descriptor["size"])
        if not is_digest(digest) or not digest.startswith("sha256:"):
            raise ConfigurationError(f"{what} in {self._path} has no digest by SHA-256: {digest[:80]!r}.")
        name = f"blobs/sha256/{digest[7:]}"
        size = self._files.size(name)
        if size is None:
            raise ConfigurationError(f"{self._path} lacks {what} ({digest}).")
        found = Blob.measured(str(descriptor["mediaType"]), lambda: self._files.pieces(name))
        if (found.digest, found.size) != (digest, stated):
            raise ConfigurationError(
                f"In {self._path}, {what} is wrong: {found.size} bytes with {found.digest} instead of "
                f"{stated} bytes with {digest}."
            )
        return found


def _which(path: Path, name: str, known: list[str]) -> ConfigurationError:
    asked = f"has no image {name!r}" if name else "holds several images, and none was named"
    return ConfigurationError(f"{path} {asked}.", hint=f"It has: {', '.join(known) or 'none with a name'}.")


def _docker_archive(path: Path, files: _Files, name: str) -> Image:
    listed = _document(path, files, "manifest.json")
    try:
        by_name = {tag: entry for entry in listed for tag in entry.get("RepoTags") or ()}
        if not name and len(listed) == 1:
            entry = listed[0]
        elif name in by_name:
            entry = by_name[name]
        else:
            raise _which(path, name, list(by_name))
        config_name, layer_names = str(entry["Config"]), list(map(str, entry["Layers"]))
        config = _document(path, files, config_name)
        promised = list(map(str, config["rootfs"]["diff_ids"]))
    except (KeyError, TypeError, AttributeError, IndexError):
        raise ConfigurationError(f"manifest.json in {path} is not one of `docker save`.") from None
    if len(promised) != len(layer_names):
        raise ConfigurationError(
            f"{path} lists {len(layer_names)} layers, and its config promises {len(promised)}."
        )
    layers = [
        _docker_layer(path, files, layer, due, f"layer {number} of {len(promised)}")
        for number, (layer, due) in enumerate(zip(layer_names, promised, strict=True), 1)
    ]
    blob = Blob.of(b"".join(files.pieces(config_name)), DOCKER_CONFIG)
    return assemble(blob, layers, "docker")


def _docker_layer(path: Path, files: _Files, name: str, promised: str, what: str) -> Blob:
    if files.size(name) is None:
        raise ConfigurationError(f"{path} lacks {what} ({name}).")
    packed = next(files.pieces(name), b"")[:2] == _GZIP_MAGIC
    blob = Blob.measured(DOCKER_LAYER_GZIP if packed else DOCKER_LAYER, lambda: files.pieces(name))
    content = Blob.measured("", lambda: unpacked_pieces(blob)) if packed else blob
    if content.digest != promised:
        raise ConfigurationError(
            f"In {path}, {what} ({name}) is wrong: its content has {content.digest} instead of {promised}."
        )
    return blob


def unpacked_pieces(blob: Blob) -> Iterator[bytes]:
    """Yield the tar file in a layer that is compressed or not.

    :raises ConfigurationError: it is compressed, and broken.
    """
    pieces = blob.pieces()
    first = next(pieces, b"")
    if first[:2] != _GZIP_MAGIC:
        yield from chain((first,), pieces)
        return
    unpacker = zlib.decompressobj(wbits=31)
    try:
        for piece in chain((first,), pieces):
            # A piece at a time: what packs well could fill the memory.
            while piece and not unpacker.eof:
                yield unpacker.decompress(piece, PIECE)
                piece = unpacker.unconsumed_tail
        if not unpacker.eof:
            raise ConfigurationError(f"The layer {blob.digest} ends before its content does.")
    except zlib.error as error:
        raise ConfigurationError(f"The layer {blob.digest} cannot be unpacked: {error}.") from None


# -- writing ----------------------------------------------------------------------------------------------


def write_layout(content: Content, folder: Path, name: str = "latest") -> None:
    """Write an OCI layout, which is made where it is missing. :raises InfrastructureError: it cannot be."""
    with _writing(folder):
        blobs = folder / "blobs/sha256"
        blobs.mkdir(parents=True, exist_ok=True)
        for blob in (*content.blobs(), *content.manifests()):
            with (blobs / blob.digest[7:]).open("wb") as opened:
                opened.writelines(blob.pieces())
        (folder / "oci-layout").write_bytes(encoded({"imageLayoutVersion": "1.0.0"}))
        listed = content.manifest.descriptor() | {"annotations": {_NAME: name}}
        (folder / "index.json").write_bytes(encoded({"schemaVersion": 2, "manifests": [listed]}))


def write_docker_archive(image: Image, path: Path, names: tuple[str, ...] = ()) -> None:
    """Write what `docker load` reads; layers are unpacked. :raises InfrastructureError: it cannot be."""
    with _writing(path), tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as opened:
        layers = []
        for layer in image.layers:
            plain = Blob.measured("", partial(unpacked_pieces, layer))
            name = f"{plain.digest[7:]}/layer.tar"
            if name not in layers:
                entry = tarfile.TarInfo(name)
                entry.size = plain.size
                opened.addfile(entry, _Stream(plain.pieces()))
            layers.append(name)
        config = image.config.read()
        listed = {
            "Config": f"{digest_of(config)[7:]}.json",
            "RepoTags": list(names) or None,
            "Layers": layers,
        }
        for name, data in ((str(listed["Config"]), config), ("manifest.json", encoded([listed]))):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            opened.addfile(entry, io.BytesIO(data))


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InfrastructureError(f"{path} cannot be written: {error.strerror or error}.") from None


class _Stream(io.RawIOBase):
    """Pieces, as a file that is read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        while len(self._rest) < size and (piece := next(self._pieces, b"")):
            self._rest += piece
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken
