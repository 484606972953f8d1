"""What a host says that it runs with, kernel and tools: results come about with these, none rests on them."""

from __future__ import annotations

from typing import Final

from harness.errors import HarnessError
from harness.hosts.protocol import Host
from harness.judgement.records import Environment
from harness.judgement.values import Unknown, Value

_KERNEL: Final = "/proc/sys/kernel/osrelease"
_TOOLS: Final = ("fpgasupdate",)
_SECONDS: Final = 10.0


def environment_of(host: Host) -> Environment:
    """Return the versions of a host's kernel and tools; what cannot be read says why."""
    values: dict[str, Value[str]] = {"kernel": _kernel(host)}
    sources = {"kernel": _KERNEL}
    for tool in _TOOLS:
        values[tool] = _version(host, tool)
        sources[tool] = f"{tool} --version"
    return Environment(part=host.name, values=values, sources=sources)


def _kernel(host: Host) -> Value[str]:
    try:
        return host.read(_KERNEL, deadline=_SECONDS).decode(errors="replace").strip()
    except (OSError, HarnessError) as error:
        return Unknown(str(error).partition("\n")[0])


def _version(host: Host, tool: str) -> Value[str]:
    """Return the last line of what a tool says of its version: others may be warnings."""
    try:
        said = host.run([tool, "--version"], deadline=_SECONDS)
    except (OSError, HarnessError) as error:
        return Unknown(str(error).partition("\n")[0])
    lines = [line for line in (said.stdout + said.stderr).splitlines() if line.strip()]
    if said.exit_code != 0 or not lines:
        return Unknown(lines[-1] if lines else f"it said nothing, and ended with {said.exit_code}")
    return lines[-1].strip()
