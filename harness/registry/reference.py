"""References to images: which are legal, and what they name (grammar of distribution/reference)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from harness.errors import ConfigurationError

LONGEST_REPOSITORY = 255
LONGEST_TAG = 128

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?")
_REPOSITORY = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}|sha384:[0-9a-f]{96}")
_HINT = "It has the form registry.local:9001/folder/name:tag or .../name@sha256:<64 hex digits>."


@dataclass(frozen=True, slots=True)
class Reference:
    """An image in a registry. ``registry``: host and port; empty where the text names none.

    Of ``tag`` and ``digest`` at least one is given; with both, the digest decides.
    """

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    def __post_init__(self) -> None:
        """:raises ConfigurationError: a part is not legal."""
        if self.registry and not _DOMAIN.fullmatch(self.registry):
            raise _illegal(str(self), f"{self.registry!r} is no registry")
        check_repository(self.repository)
        if not self.tag and not self.digest:
            raise _illegal(self.repository, "it has neither a tag nor a digest")
        if self.tag and not _TAG.fullmatch(self.tag):
            raise _illegal(str(self), f"{self.tag!r} is no tag: up to {LONGEST_TAG} of A-Za-z0-9_.-")
        if self.digest:
            check_digest(self.digest)

    def __str__(self) -> str:
        named = f"{self.registry}/{self.repository}" if self.registry else self.repository
        return named + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")

    @property
    def wanted(self) -> str:
        """What a registry is asked for: the digest, else the tag."""
        return self.digest or self.tag

    def at(self, digest: str) -> Reference:
        """Return the content ``digest`` in the same repository."""
        return replace(self, tag="", digest=digest)


def parse_reference(text: str, *, default_tag: str = "latest") -> Reference:
    """Return the reference that ``text`` is; one without tag and digest gets ``default_tag``.

    The first part is a registry where it holds a dot, a colon or an upper-case letter, or is
    ``localhost``, as Docker has it. Nothing is added: ``ubuntu`` is not ``docker.io/library/ubuntu``.

    :raises ConfigurationError: it is not a legal one; the message says which part.
    """
    rest, at, digest = text.partition("@")
    if at and not digest:
        raise _illegal(text, "nothing follows the @")
    first, slash, remainder = rest.partition("/")
    is_registry = bool(slash) and (
        first == "localhost" or any(letter in first for letter in ".:[") or first != first.lower()
    )
    registry = first if is_registry else ""
    path = remainder if is_registry else rest
    repository, colon, tag = path.partition(":")
    if colon and not tag:
        raise _illegal(text, "nothing follows the colon")
    if not tag and not digest:
        tag = default_tag
    return Reference(registry, repository, tag, digest)


def check_repository(name: str) -> None:
    """:raises ConfigurationError: ``name`` is not a legal name of a repository."""
    if len(name) > LONGEST_REPOSITORY:
        raise _illegal(
            name[:40] + "...", f"its name has {len(name)} letters; {LONGEST_REPOSITORY} are allowed"
        )
    if name != name.lower():
        raise _illegal(name, "the name of a repository is in lower case")
    if not _REPOSITORY.fullmatch(name):
        bad = next((part for part in name.split("/") if not re.fullmatch(_COMPONENT, part)), name)
        raise _illegal(name, f"{bad!r} is no part of a name: a-z0-9, with single . _ or - between")


def check_digest(digest: str) -> None:
    """:raises ConfigurationError: ``digest`` is not a legal one."""
    if not _DIGEST.fullmatch(digest):
        raise _illegal(digest, "a digest is sha256: and 64 hex digits in lower case")


def is_digest(text: str) -> bool:
    """Return whether ``text`` is a legal digest."""
    return _DIGEST.fullmatch(text) is not None


def _illegal(text: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"{text!r} is not a legal reference: {why}.", hint=_HINT)
