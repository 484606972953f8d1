"""What logs claim of a push: lines of the control plane, the engine and the registry, tied to that push."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.registry.logs import LogEntry
from harness.registry.reference import Reference

#: "Image <reference> download succeeded in 9 seconds", "... download failed from ...: <why>" (sysinv's
#: kube_app; second field report). What comes before it on the line is sysinv's own.
_SYSINV = re.compile(r"Image (?P<image>\S+) download (?P<how>succeeded|failed)(?P<why>.*)", re.DOTALL)
#: What an engine says at last of a push that it gives up (second field report).
_DOCKERD = re.compile(r"(?:Attempting next endpoint for|Not continuing with) push after error: (?P<why>.*)")

#: With what it begins to tell a client of a push.
_BEGINS = "The push refers to repository"
#: What it says of a layer before that, which names no image either.
_UPLOAD = re.compile(r"Upload failed: ")
#: What a registry says of a request whose token it does not take (second field report); of one that has
#: none yet, with which every client begins, it says another thing.
REFUSED = "error authorizing context: invalid token"


@dataclass(frozen=True, slots=True)
class Said:
    """What a log claims of a push, and the line that says it. ``reporter``: such as ``log:sysinv``.

    ``grounds``: the lines before it that say why.
    """

    reporter: str
    result: Literal["done", "failed"]
    error: str
    entry: LogEntry
    grounds: tuple[LogEntry, ...] = ()

    @property
    def text(self) -> str:
        """The lines, verbatim."""
        return "\n".join(each.raw for each in (*self.grounds, self.entry))


def sysinv_says(entries: Iterable[LogEntry], reference: Reference) -> Said | None:
    """Return sysinv's last word on the download of ``reference`` into its registry."""
    last = None
    for entry in entries:
        image, said = sysinv_said(entry)
        last = said if said is not None and image == str(reference) else last
    return last


def sysinv_said(entry: LogEntry) -> tuple[str, Said | None]:
    """Return the image whose download sysinv speaks of in one line, and what it says; None: of none."""
    found = _SYSINV.search(entry.message)
    if found is None:
        return "", None
    failed = found["how"] == "failed"
    why = found["why"] if failed else ""
    return found["image"], Said("log:sysinv", "failed" if failed else "done", why, entry)


def dockerd_says(entries: Iterable[LogEntry]) -> Said | None:
    """Return an engine's last word on a push that it gave up; it says nothing of one that it did not.

    These lines name no image: ``entries`` are those that were logged while this push alone ran.
    """
    said = _given_up(entries)
    return said[-1] if said else None


def dockerd_says_of_several(entries: Iterable[LogEntry], heard: Sequence[str]) -> list[Said | None]:
    """Return an engine's word on each of several pushes at the same time; None of those it did not give up.

    Its lines name no image. Where as many lines as pushes state a reason, each of these pushes has one;
    which of them is whose cannot be told, and makes no difference.

    :param heard: what the engine said to each of the clients, in which the reason stands as well; of one
        that has tried again only the last try counts, as in :func:`sysinv_says`.
    """
    said = _given_up(entries)
    of: list[Said | None] = [None] * len(heard)
    for reason in {each.error for each in said}:
        lines = [each for each in said if each.error == reason]
        given_up = [at for at, text in enumerate(heard) if reason in text.rpartition(_BEGINS)[2]]
        if len(lines) == len(given_up):
            for at, line in zip(given_up, lines, strict=True):
                of[at] = line
    return of


def given_up(entry: LogEntry) -> str | None:
    """Return why an engine gives up a push, by one line; None where the line says nothing of that."""
    found = _DOCKERD.search(entry.message)
    return None if found is None else found["why"]


def _given_up(entries: Iterable[LogEntry]) -> list[Said]:
    """Return all that an engine says of pushes that it gave up, each with the failed uploads before it."""
    said: list[Said] = []
    failed: list[LogEntry] = []
    for entry in entries:
        if _UPLOAD.search(entry.message):
            failed.append(entry)
        elif (why := given_up(entry)) is not None:
            grounds = [each for each in failed if why in each.message]
            said.append(Said("log:dockerd", "failed", why, entry, tuple(grounds)))
    return said


def registry_says(entries: Sequence[LogEntry], reference: Reference) -> Said | None:
    """Return how the registry says that it answered the last PUT of the manifest of ``reference``.

    Where no manifest came, its last refusal of a token for that repository is its word on the push.
    """
    path = f"/v2/{reference.repository}/manifests/{reference.wanted}"
    for entry in reversed(entries):
        fields = entry.fields
        status = fields.get("http.response.status", "")
        named = fields.get("http.request.uri", "").partition("?")[0] == path
        if named and fields.get("http.request.method") == "PUT" and status:
            done = status == "201"
            return Said("log:registry", "done" if done else "failed", "" if done else f"HTTP {status}", entry)
    for entry in reversed(entries):
        if entry.message == REFUSED and entry.fields.get("vars.name") == reference.repository:
            return Said("log:registry", "failed", entry.message, entry)
    return None
