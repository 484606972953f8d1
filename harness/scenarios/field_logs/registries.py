"""Reads logs of registries, engines and token services, as far as they speak of pushes and of restarts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.judgement.records import Claim, Evidence, Subject
from harness.record.redaction import redact
from harness.registry.log_claims import REFUSED, given_up
from harness.registry.logs import LogEntry, parse_line
from harness.scenarios.field_logs.events import (
    Context,
    Event,
    Happened,
    LineReader,
    Told,
    place_of,
)
from harness.scenarios.field_logs.lines import Line

#: What a registry says of a token that it does not take, where it says why (fact sheet of the registry, 3).
_TOKEN: Final = re.compile(
    r"token (?:not to be used|from untrusted issuer|intended for another audience|signed by untrusted key)"
    r"|unable to (?:verify certificate chain|get token signing key)|invalid refresh token"
)
_LISTENS: Final = re.compile(r"^listening on ")
_MANIFEST: Final = re.compile(r"^/v2/(?P<name>.{1,255})/manifests/(?P<tag>[^?]{1,140})")
#: What the stream that an engine sends to its client of a push says at last.
_STREAM_DONE: Final = re.compile(r'"aux" ?: ?\{.{0,40}"Digest" ?: ?"(?P<digest>sha256:[0-9a-f]{64})"')
_STREAM_FAILED: Final = re.compile(r'"errorDetail" ?: ?\{.{0,40}"message" ?: ?"(?P<why>[^"]{0,300})')
_SAID_LONG: Final = 800
#: An engine names no image where it gives up a push.
ENGINE: Final = Subject("registry-image", "a push of this engine")


@dataclass
class RegistryReader(LineReader):
    """Yields what each line of a registry, an engine or a token service says."""

    def __post_init__(self) -> None:
        self.hints = (
            *(
                "msg=",
                '"msg"',
                "push after error",
                "errorDetail",
                '"aux"',
                "/manifests/",
                "invalid refresh token",
            ),
            "Upload failed",
        )

    def take(self, line: Line, context: Context) -> Iterator[Event]:
        """Yield what the line says."""
        entry = parse_line(line.text)
        if _LISTENS.match(entry.message) and entry.form != "plain":
            context.heard = line.number
            name = "registry-token-server" if "token" in entry.program else "docker-distribution"
            yield Happened(place=place_of(line), what="restarted", subject=name)
            return
        said = _said(entry)
        if said is None:
            return
        context.heard = line.number
        reporter, subject, statement = said
        text = redact(line.text)[:_SAID_LONG]
        cleaned = {name: redact(value) for name, value in statement.items()}
        yield Told(
            place=place_of(line),
            claim=Claim(reporter=reporter, subject=subject, statement=cleaned, evidence=Evidence(text)),
            system="",
        )


def _said(entry: LogEntry) -> tuple[str, Subject, dict[str, Any]] | None:
    """Return who says what of which image; None where nothing is said of a push."""
    fields = entry.fields
    host = fields.get("http.request.host", "")
    if entry.message == REFUSED and (name := fields.get("vars.name")):
        return "log:registry", _image(host, name), {"result": "failed", "error": entry.message}
    path = fields.get("http.request.uri") or fields.get("uri") or ""
    method = fields.get("http.request.method") or fields.get("method")
    status = fields.get("http.response.status") or fields.get("status") or ""
    if method == "PUT" and status and (found := _MANIFEST.match(path)):
        done = status == "201"
        result = {"result": "done" if done else "failed", "error": "" if done else f"HTTP {status}"}
        return "log:registry", _image(host, found["name"], found["tag"]), result
    if (why := given_up(entry)) is not None:
        return "log:dockerd", ENGINE, {"result": "failed", "error": why}
    if _TOKEN.search(entry.message):
        return (
            "log:registry",
            Subject("record", "registry/token"),
            {"result": "failed", "error": entry.message},
        )
    if found := _STREAM_FAILED.search(entry.raw):
        return "docker-stream", ENGINE, {"result": "failed", "error": found["why"]}
    if found := _STREAM_DONE.search(entry.raw):
        return "docker-stream", ENGINE, {"result": "done", "error": "", "digest": found["digest"]}
    return None


def _image(host: str, name: str, tag: str = "") -> Subject:
    named = "/".join(filter(None, (host, name)))
    separator = "@" if tag.startswith("sha256:") else ":" if tag else ""
    return Subject("registry-image", redact(f"{named}{separator}{tag}"))
