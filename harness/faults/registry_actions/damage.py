"""Damage in the registry's store: a blob truncated, flipped or removed, a link emptied or removed."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ConfigurationError, InfrastructureError, NothingThereError
from harness.faults.registry_actions.protocol import Base, Bench, Gate, Held, store_of, while_held

#: The tag or digest in a path of the registry's API.
_MANIFEST = re.compile(r"/manifests/([^/?]+)")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_V2 = "docker/registry/v2"


@dataclass(frozen=True, slots=True)
class Victim:
    """A file of the store, and what it is, in words."""

    path: Path
    what: str


def blob(root: Path, held: Held | None, digest: str) -> Victim:
    """Return the data of a blob: the one stated, or the last by digest of the held push's repository."""
    digest = digest or _last_layer(_repository(root, held))
    return Victim(root / _V2 / "blobs/sha256" / digest[7:9] / digest[7:] / "data", f"the blob {digest}")


def layer_link(root: Path, held: Held | None, digest: str) -> Victim:
    """Return the link to a blob in the held push's repository: the one stated, or the last by digest."""
    repository = _repository(root, held)
    digest = digest or _last_layer(repository)
    return Victim(
        repository / "_layers/sha256" / digest[7:] / "link",
        f"the link to {digest} in {_name(root, repository)}",
    )


def tag_link(root: Path, held: Held | None, digest: str) -> Victim:
    """Return the link of a tag of the held push's repository: the pushed one where it exists, or the last."""
    repository = _repository(root, held)
    links = {link.parts[-3]: link for link in repository.glob("_manifests/tags/*/current/link")}
    if not links:
        raise NothingThereError(f"There is no tag in {repository} whose link could be damaged.")
    found = _MANIFEST.search(held.target) if held else None
    tag = found[1] if found and found[1] in links else max(links)
    return Victim(links[tag], f"the link of the tag {tag} in {_name(root, repository)}")


def _repository(root: Path, held: Held | None) -> Path:
    """Return the folder of the repository that the held request is for, or of the only one there is.

    :raises NothingThereError: it is not there, or there are several and none is held.
    """
    top = root / _V2 / "repositories"
    name = held.repository if held else ""
    if name and (top / name).is_dir():
        return top / name
    known = sorted(each.parent for each in top.rglob("_layers"))
    if name or len(known) != 1:
        names = ", ".join(_name(root, each) for each in known)
        what = f"no repository {name!r}" if name else "not one repository whose push is held"
        raise NothingThereError(
            f"There is {what} in the store {root}; it has {names or 'none'}.",
            hint="Hold a request that comes after the first blob of the push.",
        )
    return known[0]


def _name(root: Path, repository: Path) -> str:
    return str(repository.relative_to(root / _V2 / "repositories"))


def _last_layer(repository: Path) -> str:
    digests = sorted(link.parent.name for link in repository.glob("_layers/sha256/*/link"))
    if not digests:
        raise NothingThereError(f"There is no blob in {repository} that could be damaged.")
    return f"sha256:{digests[-1]}"


def truncate(path: Path) -> None:
    """Cut it to half of its length."""
    with path.open("r+b") as opened:
        opened.truncate(path.stat().st_size // 2)


def flip(path: Path) -> None:
    """Flip one bit in its middle."""
    at = path.stat().st_size // 2
    with path.open("r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)
        opened.seek(at)
        opened.write(bytes([byte[0] ^ 1]))


def empty(path: Path) -> None:
    """Leave nothing in it."""
    path.write_bytes(b"")


def remove(path: Path) -> None:
    """Remove it."""
    path.unlink()


class Damages(Base):
    """Damages one file of the store; the undo brings it back unless somebody healed or replaced it.

    :param find: what finds the file. :param done: what damages it. :param word: that, in words.
    :param digest: the blob; by default the last one of the held push's repository.
    """

    def __init__(
        self,
        name: str,
        about: str,
        find: Callable[[Path, Held | None, str], Victim],
        done: Callable[[Path], None],
        word: str,
        digest: str = "",
    ) -> None:
        super().__init__(name, about)
        if digest and not _DIGEST.fullmatch(digest):
            raise ConfigurationError(f"{digest!r} is no digest of a blob.", hint="Write it as sha256:HEX.")
        self._find = find
        self._done = done
        self._word = word
        self._digest = digest
        self._path: Path | None = None
        self._saved: Path | None = None
        self._left: bytes | None = None

    def check(self, bench: Bench) -> None:
        """Hold it to a store on this machine."""
        store_of(bench)

    def fire(self, bench: Bench, gate: Gate | None) -> str:
        """Damage it.

        :raises NothingThereError: the file is not there (yet), or has nothing that could be damaged.
        :raises InfrastructureError: it cannot be written.
        """
        root = store_of(bench)
        victim = self._find(root, gate.held if gate else None, self._digest)
        try:
            if not victim.path.stat().st_size:
                raise NothingThereError(f"There is nothing in {victim.what} that could be damaged.")
            # With the lab, which goes where it is never undone.
            self._saved = Path(tempfile.mkdtemp(prefix="damage-", dir=bench.lab.folder)) / "saved"
            shutil.copyfile(victim.path, self._saved)
            self._path = victim.path
            self._done(victim.path)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            raise (NothingThereError if missing else InfrastructureError)(
                f"It was not possible to damage {victim.what}: {error.strerror} ({error.filename})."
            ) from None
        self._left = _identity(victim.path)
        return f"{self._word} {victim.what}{while_held(gate)}"

    def undo(self, bench: Bench) -> None:
        """Bring the content back where the file is as it was left.

        :raises InfrastructureError: it cannot be written; the next call tries again.
        """
        if self._saved is None or self._path is None:
            return
        try:
            if self._path.parent.is_dir() and _identity(self._path) == self._left:
                shutil.copyfile(self._saved, self._path)
        except OSError as error:
            with suppress(OSError):
                self._left = _identity(self._path)  # perhaps written in part
            raise InfrastructureError(f"{self._path} cannot be brought back: {error.strerror}.") from None
        shutil.rmtree(self._saved.parent, ignore_errors=True)
        self._saved = None


def _identity(path: Path) -> bytes | None:
    """Return what changes when somebody writes the file anew; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}".encode()
