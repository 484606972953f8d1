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


@dataclass(frozen=True, slots=True)
class Said:
    """What a log claims of a push, and the line that says it. ``reporter``: such as ``log:sysinv``."""

    reporter: str
    result: Literal["done", "failed"]
    error: str
    entry: LogEntry


def sysinv_says(entries: Iterable[LogEntry], reference: Reference) -> Said | None:
    """Return sysinv's last word on the download of ``reference`` into its registry."""
    last = None
    for entry in entries:
        found = _SYSINV.search(entry.message)
        if found is not None and found["image"] == str(reference):
            failed = found["how"] == "failed"
            last = Said("log:sysinv", "failed" if failed else "done", found["why"] if failed else "", entry)
    return last


def dockerd_says(entries: Iterable[LogEntry]) -> Said | None:
    """Return an engine's last word on a push that it gave up; it says nothing of one that it did not.

    These lines name no image: ``entries`` are those that were logged while this push alone ran.
    """
    last = None
    for entry in entries:
        found = _DOCKERD.search(entry.message)
        if found is not None:
            last = Said("log:dockerd", "failed", found["why"], entry)
    return last


def registry_says(entries: Sequence[LogEntry], reference: Reference) -> Said | None:
    """Return how the registry says that it answered the last PUT of the manifest of ``reference``."""
    path = f"/v2/{reference.repository}/manifests/{reference.wanted}"
    for entry in reversed(entries):
        fields = entry.fields
        status = fields.get("http.response.status", "")
        named = fields.get("http.request.uri", "").partition("?")[0] == path
        if named and fields.get("http.request.method") == "PUT" and status:
            done = status == "201"
            return Said("log:registry", "done" if done else "failed", "" if done else f"HTTP {status}", entry)
    return None
