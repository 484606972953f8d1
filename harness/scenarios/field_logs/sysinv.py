"""Reads sysinv's logs: downloads of images, certificates, restarts, updates of devices that timed out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.judgement.records import Claim, Evidence, Subject
from harness.record.redaction import redact
from harness.registry.log_claims import sysinv_said
from harness.registry.logs import LogEntry
from harness.scenarios.field_logs.events import (
    Context,
    Event,
    Happened,
    LineReader,
    Told,
    What,
    place_of,
)
from harness.scenarios.field_logs.lines import Line

_STARTED: Final = re.compile(
    r"Image (?P<image>\S{1,300}) is not available in local registry, download started"
)
_OVER: Final = re.compile(r"Remove image (?P<image>\S{1,300}) after push to local registry")
_ALL: Final = re.compile(
    r"All docker images for application (?P<name>[\w.-]{1,100}) were successfully downloaded"
)
_CERTIFICATE: Final = re.compile(
    r"Docker registry certificate install|config_certificate mode=docker_registry"
    r"|platform::dockerdistribution::runtime"
)
_RESTART: Final = re.compile(
    r"Executing:? '(?:sm-restart(?:-safe)? service|systemctl restart) (?P<name>[\w.-]+)'"
)
_RESTARTED: Final = re.compile(r"Exec\[sm-restart-(?P<name>[\w.-]+)\]/returns: executed successfully")
_APPLICATION: Final = re.compile(
    r"[Aa]pplication (?P<name>[\w.-]{1,100}) .{0,60}?\b(?:status|state)\b.{0,20}?\b"
    r"(?P<state>restore-requested|applying)\b"
)
#: The audit of device images gives one up (fact sheet of StarlingX, section 4.7).
_TIMED_OUT: Final = re.compile(
    r"Device image update timed out host=(?P<host>\S+) device=(?P<device>\S+) image=(?P<image>[\w-]+)"
)
_SAID_LONG: Final = 600


@dataclass
class SysinvReader(LineReader):
    """Yields what each line of sysinv, its agent or its puppet says."""

    def __post_init__(self) -> None:
        self.hints = (
            *(
                "local registry",
                "Image ",
                "were successfully downloaded",
                "certificate install",
                "sm-restart",
            ),
            *("mode=docker_registry", "dockerdistribution::runtime", "Device image update timed out"),
            *("systemctl restart", "restore-requested"),
        )

    def take(self, line: Line, context: Context) -> Iterator[Event]:
        """Yield what the line says."""
        found = [*self._happened(line), *self._told(line)]
        if found:
            context.heard = line.number
        yield from found

    def _happened(self, line: Line) -> Iterator[Event]:
        said: tuple[tuple[re.Pattern[str], What], ...] = (
            (_STARTED, "download-started"),
            (_OVER, "push-over"),
            (_RESTARTED, "restarted"),
            (_RESTART, "restart"),
            (_CERTIFICATE, "certificate"),
            (_APPLICATION, "application"),
        )
        for pattern, what in said:
            if (found := pattern.search(line.text)) is None:
                continue
            named = found.groupdict()
            subject = named.get("image") or named.get("name") or ""
            yield Happened(
                place=place_of(line), what=what, subject=redact(subject), detail=named.get("state") or ""
            )
            return

    def _told(self, line: Line) -> Iterator[Event]:
        text = redact(line.text)[:_SAID_LONG]
        image, said = sysinv_said(LogEntry(text, text))
        if said is not None:
            statement = {"result": said.result, "error": said.error.strip()}
            subject = Subject("registry-image", image)
        elif every := _ALL.search(text):
            statement = {"result": "done", "error": ""}
            subject = Subject("record", f"system/application/{every['name']}")
        elif late := _TIMED_OUT.search(text):
            statement = {"status": "failed", "image_uuid": late["image"]}
            subject = Subject("record", f"system/state/{late['host']}/{late['device']}/{late['image']}")
        else:
            return
        reporter = "sysinv" if "status" in statement else "log:sysinv"
        yield Told(
            place=place_of(line),
            claim=Claim(reporter=reporter, subject=subject, statement=statement, evidence=Evidence(text)),
        )
