"""Reads command lines out of prose: with a prompt, with the name of a system before them, or bare."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from harness.record.redaction import redact
from harness.scenarios.field_logs.events import CENTRAL, Command, Context, Event, Place, place_of
from harness.scenarios.field_logs.lines import Line

#: How each command that matters begins, so that prose about it is none: "system controller" is no command.
_COMMAND: Final = re.compile(
    r"(?:sudo +)?(?:"
    r"system +(?:--?[\w-]+(?:[= ] *\S+)? +){0,6}"
    r"(?:device|host|application|certificate)-[a-z-]+(?= |$)"
    r"|dcmanager +(?:--?[\w-]+(?:[= ] *\S+)? +){0,6}"
    r"(?:subcloud|fw-update-strategy|strategy-step|strategy-config|subcloud-group|alarm)(?= |$)"
    r"|sw-manager +(?:fw-update-strategy)(?= |$)"
    r"|fm +(?:alarm-list|alarm-show)(?= |$)"
    r"|(?:/usr/(?:local/)?bin/)?fpgasupdate +\S"
    r"|(?:/usr/(?:local/)?bin/)?rsu +(?:bmcimg|bmc|fpga|retimer|sdm|-)"
    r"|(?:/usr/(?:local/)?bin/)?fpgainfo +(?:fme|bmc|security|phy|errors|temp|power|port)(?= |$)"
    r"|docker +(?:push|pull|tag)(?= |$)"
    r"|skopeo +(?:copy|--)"
    r")"
)
_PROMPT: Final = re.compile(
    r"(?:\[[\w.-]+@[\w.-]+[^\]]{0,80}\]|(?:[\w.-]+@)?[\w.-]+:[^$#\s]{0,80}|)(?:[$#>]) *"
)
_BULLET: Final = re.compile(r"(?:[-*\u2022]|\d{1,3}[.)]) +")
_NAMED: Final = re.compile(r"(?P<name>[A-Za-z][\w.-]{0,62}) ?: +")
#: Lines that one command may go on for.
_LONGEST: Final = 20
_REGION: Final = re.compile(r"--os-region-name[= ]+SystemController\b")
_SYSTEMS: Final = ("central", "systemcontroller", "system-controller", "system_controller", "controller")


@dataclass
class CommandReader:
    """Yields a command for each command line."""

    hints: tuple[str, ...] = (
        *("device-", "host-", "dcmanager", "sw-manager", "fpgasupdate", "rsu ", "fpgainfo", "docker p"),
        *("docker tag", "skopeo ", "application-", "certificate-", "alarm-"),
    )
    _begun: list[str] = field(default_factory=list)
    _place: Place | None = None
    _system: str = ""

    @property
    def busy(self) -> bool:
        """Whether a command goes on in the next line."""
        return bool(self._begun)

    def take(self, line: Line, context: Context) -> Iterator[Event]:
        """Yield the command that ends in this line."""
        text = line.text.strip()
        if not self._begun:
            found = command_in(text)
            if found is None:
                return
            self._system, text = found
            self._place = place_of(line)
        self._begun.append(text.removesuffix("\\"))
        if not text.endswith("\\") or len(self._begun) >= _LONGEST:
            yield from self.end(context)

    def end(self, context: Context) -> Iterator[Event]:
        """Yield the command that was begun."""
        if not self._begun or self._place is None:
            return
        text = redact(" ".join(part.strip() for part in self._begun))
        self._begun = []
        words = _words(text)
        program = words[0].rpartition("/")[2]
        if _REGION.search(text) or program == "dcmanager":
            self._system = CENTRAL
        context.system = self._system or context.system
        context.command = text
        yield Command(place=self._place, words=(program, *words[1:]), text=text, system=context.system)


def command_in(text: str) -> tuple[str, str] | None:
    """Return the system that is named before a command, and the command; None where the line is none."""
    if bullet := _BULLET.match(text):
        text = text[bullet.end() :]
    system = ""
    if (named := _NAMED.match(text)) and (
        _COMMAND.match(text, named.end()) or _PROMPT.match(text, named.end())
    ):
        system = system_called(named["name"])
        text = text[named.end() :]
    if prompt := _PROMPT.match(text):
        text = text[prompt.end() :]
    return (system, text.removeprefix("sudo ").strip()) if _COMMAND.match(text) else None


def system_called(name: str) -> str:
    """Return the system that is called ``name``; empty for the name of a host, which any system has."""
    plain = name.lower()
    if re.fullmatch(r"(?:controller|compute|worker|storage)-\d+", plain):
        return ""
    return CENTRAL if plain.replace(" ", "") in _SYSTEMS else plain


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that nothing closes
        words = text.split()
    return [word for word in words if word != "sudo"] or [text]
