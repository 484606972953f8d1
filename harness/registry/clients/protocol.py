"""The one protocol of push clients and pull clients: what they are given, and what they report."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from harness.registry.images import Content
from harness.registry.reference import Reference

#: ``done``, ``failed`` and ``unknown`` (that it cannot tell) are what the client says; ``interrupted``: its
#: deadline passed before it said anything, or somebody ended it.
Result = Literal["done", "failed", "unknown", "interrupted"]


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an image is pushed to or pulled from, as the client names it.

    ``reference``: with the registry's host and port as this client reaches them, and a tag. ``ca_file``:
    the authority of the registry's certificate; None: the machine's own, or plain HTTP.
    """

    reference: Reference
    ca_file: Path | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What a client said of one push or pull, in its own words.

    ``text``: all that it said, verbatim. ``digest``: the manifest's digest that it states; empty where it
    states none. ``error``: its own reason where it failed or cannot tell. ``log``: lines that it logged,
    oldest first. ``basis``: what the statement rests on, such as ``by API only``; empty where that is the
    usual. ``seconds``: how long it took; ``waited``: how many of these it slept between its own tries.
    """

    result: Result
    text: str
    digest: str = ""
    error: str = ""
    command: str = ""
    exit_code: int | None = None
    log: tuple[str, ...] = ()
    basis: str = ""
    seconds: float = 0.0
    waited: float = 0.0


class PushClient(Protocol):
    """One way to push an image. It reports; it never raises because a push failed.

    What keeps it from being used at all is raised: :class:`harness.errors.BlockedError` for what is
    missing on the machine, :class:`harness.errors.ConfigurationError` for an image or reference that it
    cannot take.
    """

    @property
    def name(self) -> str:
        """The reporter of its claims, such as ``docker-naive``."""
        ...

    @property
    def version(self) -> str:
        """Of the program or library behind it, such as ``docker 7.2.0, engine 20.10.24``."""
        ...

    def prepare(self, content: Content, destination: Destination) -> None:
        """Do what comes before the push and is no part of it: load and tag, or write an archive."""
        ...

    def push(self, content: Content, destination: Destination, *, deadline: float = 120.0) -> Report:
        """Push what was prepared and return what the client says of it."""
        ...

    def forget(self, content: Content, destination: Destination) -> None:
        """Remove what :meth:`prepare` made; nothing where there is none."""
        ...

    def close(self) -> None:
        """End what it holds; may be called twice."""
        ...


class PullClient(Protocol):
    """One way to pull an image; it reports as a push client does."""

    @property
    def name(self) -> str:
        """The reporter of its claims, such as ``docker-pull``."""
        ...

    def pull(self, source: Destination, *, deadline: float = 120.0) -> Report:
        """Pull and return what the client says of it."""
        ...

    def close(self) -> None:
        """End what it holds; may be called twice."""
        ...
