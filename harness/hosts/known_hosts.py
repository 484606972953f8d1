"""Files of known hosts as OpenSSH has them (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT): their keys, new ones."""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import hmac
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.errors import ConfigurationError

_HASHED: Final = "|1|"
_LONGEST_SALT: Final = 64


@dataclass(frozen=True, slots=True)
class HostKey:
    """A public key of a host: ``ssh-ed25519`` and its base64."""

    kind: str
    content: str

    @property
    def fingerprint(self) -> str:
        """What `ssh-keygen -l` prints: ``SHA256:`` and the hash in base64 without its padding."""
        try:
            digest = hashlib.sha256(base64.b64decode(self.content, validate=True)).digest()
        except (binascii.Error, ValueError):
            return "unreadable"
        return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


@dataclass(frozen=True, slots=True)
class HostAuthority:
    """A line ``@cert-authority``: whose certificates hold for the hosts that ``patterns`` name."""

    patterns: tuple[str, ...]
    key: HostKey

    def vouches_for(self, name: str) -> bool:
        """Return whether a pattern matches ``name``, and none with an exclamation mark does."""
        matching = [pattern for pattern in self.patterns if matches(pattern.removeprefix("!"), name)]
        return bool(matching) and not any(pattern.startswith("!") for pattern in matching)


def authorities(text: str) -> list[HostAuthority]:
    """Return the authorities of host certificates that a file's ``text`` names."""
    found = (line.split() for line in text.splitlines() if line.startswith("@cert-authority"))
    return [HostAuthority(tuple(w[1].split(",")), HostKey(w[2], w[3])) for w in found if len(w) >= 4]


def matches(pattern: str, name: str) -> bool:
    """Return whether ``pattern``, with ``*`` and ``?`` or hashed, is of ``name``."""
    if pattern.startswith(_HASHED):
        return _is(pattern, name)
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern.lower())
    return re.fullmatch("".join(parts), name.lower()) is not None


def keys_of(text: str, name: str) -> list[HostKey]:
    """Return the keys that a file's ``text`` has for the host ``name``."""
    return [key for line in text.splitlines() if (key := _key_of(line, name)) is not None]


def revoked(text: str) -> set[HostKey]:
    """Return the keys that a file's ``text`` marks as revoked, whoever shows them."""
    found = (line.split() for line in text.splitlines() if line.startswith("@revoked"))
    return {HostKey(words[2], words[3]) for words in found if len(words) >= 4}


def with_keys(text: str, name: str, keys: Iterable[HostKey]) -> str:
    """Return ``text`` with ``keys`` for ``name``, in place of those of the same kinds; all else stays.

    Names are hashed where those in the file are.
    """
    new = list(keys)
    kinds = {key.kind for key in new}
    kept = [_without(line, name, kinds) for line in text.splitlines()]
    hashed = any(line.startswith(_HASHED) for line in text.splitlines())
    lines = [line for line in kept if line is not None]
    lines += [f"{_hashed(name) if hashed else name} {key.kind} {key.content}" for key in new]
    return "".join(f"{line}\n" for line in lines)


def _without(line: str, name: str, kinds: set[str]) -> str | None:
    """Return ``line`` without ``name``, where its key is of one of ``kinds``; None: nothing is left of it."""
    key = _key_of(line, name)
    if key is None or key.kind not in kinds:
        return line
    names, rest = line.split(None, 1)
    others = [one for one in names.split(",") if not _is(one, name)]
    return f"{','.join(others)} {rest}" if others else None


def _key_of(line: str, name: str) -> HostKey | None:
    words = line.split()
    if len(words) < 3 or line.startswith(("#", "@")):
        return None
    return HostKey(words[1], words[2]) if any(_is(one, name) for one in words[0].split(",")) else None


def _is(pattern: str, name: str) -> bool:
    """Return whether a name of the file, hashed or not, is ``name``."""
    if not pattern.startswith(_HASHED):
        return pattern.lower() == name.lower()
    salt, _, digest = pattern[len(_HASHED) :].partition("|")
    try:
        found = base64.b64decode(salt[:_LONGEST_SALT], validate=True)
        return hmac.digest(found, name.encode(), "sha1") == base64.b64decode(digest, validate=True)
    except (binascii.Error, ValueError):
        return False


def _hashed(name: str) -> str:
    salt = secrets.token_bytes(20)
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"{_HASHED}{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def read(path: Path) -> str:
    """Return what the file holds; nothing where there is none.

    :raises ConfigurationError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigurationError(f"The known-hosts file {path} cannot be read: {error.strerror}.") from None


def keep(path: Path, name: str, keys: Iterable[HostKey]) -> None:
    """Write ``keys`` of the host ``name`` to the file, whole or not at all; a new one is for us alone.

    :raises ConfigurationError: it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = path.resolve()  # a link stays one
        with _alone(target.parent):
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
            text = with_keys(read(target), name, keys)
            descriptor, fresh = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(text)
                Path(fresh).chmod(mode)
                Path(fresh).replace(target)
            except BaseException:
                with suppress(OSError):
                    Path(fresh).unlink()
                raise
    except OSError as error:
        raise ConfigurationError(
            f"The known-hosts file {path} cannot be written: {error.strerror}."
        ) from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep two processes from writing a file of ``folder`` at once: one would lose what the other wrote."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
