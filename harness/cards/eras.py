"""Where a host has the vendor's tools: of its own, or in an image that docker or containerd runs.

The command lines are those by which StarlingX runs them (starlingx.md 3.2, 3.3): on the host from 2026 on,
by `ctr` from 2021 on, by `docker` before.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.hosts.protocol import CommandResult, Host

Era = Literal["host", "docker", "containerd"]
Tool = Literal["fpgasupdate", "fpgainfo", "rsu"]

#: Era -> the engine's client, and how that lists images; the newer era first.
_ENGINES: Mapping[Era, str] = {"containerd": "ctr", "docker": "docker"}
_LISTING: Mapping[Era, tuple[str, ...]] = {
    # Without the limit a host with the client alone is waited for 10 s (measured with containerd 1.6).
    "containerd": ("--connect-timeout=2s", "-n=k8s.io", "images", "list", "-q"),
    "docker": ("images", "--format", "{{.Repository}}:{{.Tag}}"),
}
_REPOSITORY = "registry.local:9001/docker.io/starlingx/n3000-opae"
#: The image of each engine where the host has none: the last that StarlingX had in that era.
DEFAULT_IMAGES: Mapping[Era, str] = {
    "docker": f"{_REPOSITORY}:stx.6.0-v1.0.1",
    "containerd": f"{_REPOSITORY}:stx.8.0-v1.0.2",
}
IMAGE = re.compile(r"[a-z0-9][a-z0-9.:/_-]*/n3000-opae:[A-Za-z0-9._-]{1,128}")
#: Where the folder of images is in a container.
MOUNTED = "/mnt/images"
_LOCALE = ("LC_ALL=en_US.UTF-8", "LANG=en_US.UTF-8")
#: Name of the container that flashes, and of the one that resets.
FLASHER, RESETTER = "n3000-opae", "v1"
#: What only a StarlingX host has: there an engine without the image means that the tool is missing.
_PLATFORM = "/etc/platform/platform.conf"
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tools of one host are, and how they are run there.

    ``image``: what the engine of the era runs. ``tools``: tool or engine -> name or path on the host.
    """

    era: Era
    image: str = ""
    tools: Mapping[str, str] = field(default_factory=dict)

    def flash(self, path: str, address: str) -> list[str]:
        """Return the command that flashes the file ``path`` of the host to the card at ``address``."""
        options = ("fpgasupdate", "-y", "--log-level", "debug")
        folder, name = posixpath.split(path)
        inside = (*options, f"{MOUNTED}/{name}", address)
        if self.era == "docker":
            env = [word for pair in _LOCALE for word in ("-e", pair)]
            mount = ("-v", f"{folder}:{MOUNTED}")
            return [self._named("docker"), "run", "-t", "--privileged", *env, *mount, self.image, *inside]
        if self.era == "containerd":
            env = [word for pair in _LOCALE for word in ("--env", pair)]
            mount = ("--mount", f"type=bind,src={folder},dst={MOUNTED},options=rbind:ro")
            return [*self._ctr_run(), *env, "--cgroup", "platform", *mount, self.image, FLASHER, *inside]
        return [self._named("fpgasupdate"), *options[1:], path, address]

    def ask(self, tool: Tool, *words: str) -> list[str]:
        """Return the command that runs ``tool`` where it needs no file."""
        if self.era == "docker":
            return [self._named("docker"), "run", "-t", "--privileged", self.image, tool, *words]
        if self.era == "containerd":
            return [*self._ctr_run(), self.image, RESETTER, tool, *words]
        return [self._named(tool), *words]

    def containers(self) -> list[str]:
        """Return the command that lists what is left of earlier runs; empty where nothing can be."""
        if self.era != "containerd":
            return []
        return [self._named("ctr"), "-n=k8s.io", "container", "list", f"image=={self.image}"]

    def remove(self, container: str) -> list[str]:
        """Return the command that removes the left-over ``container``, which keeps its name taken."""
        return [self._named("ctr"), "-n=k8s.io", "container", "rm", container]

    def _ctr_run(self) -> list[str]:
        return [self._named("ctr"), "-n=k8s.io", "run", "--rm", "--privileged"]

    def _named(self, program: str) -> str:
        return self.tools.get(program, program)


def find_place(host: Host, tools: Mapping[str, str] | None = None, *, deadline: float = 30.0) -> Place:
    """Return where ``host`` has the vendor's tools, by looking which programs and images are there.

    A host without any of them counts as one that should have them of its own: so does who runs a tool there
    hear that it is missing.

    :param tools: tool or engine -> name or path on the host.
    :raises InfrastructureError: the host cannot be asked.
    """
    tools = tools or {}
    names = {program: tools.get(program, program) for program in ("fpgasupdate", "docker", "ctr")}
    found = _lines(host.run(["which", *names.values()], deadline=deadline))
    there = {program for program, name in names.items() if any(_is(path, name) for path in found)}
    if "fpgasupdate" in there or not there:
        return Place("host", tools=tools)
    engines: list[Era] = [era for era, program in _ENGINES.items() if program in there]
    for era in engines:
        listing = [names[_ENGINES[era]], *_LISTING[era]]
        if image := _newest(_lines(host.run(listing, deadline=deadline))):
            return Place(era, image, tools)
    if host.run(["ls", _PLATFORM], deadline=deadline).exit_code != 0:
        return Place("host", tools=tools)
    return Place(engines[0], DEFAULT_IMAGES[engines[0]], tools)


def _lines(result: CommandResult) -> list[str]:
    return [line.strip() for line in result.stdout.splitlines() if line.strip()]


def _is(path: str, name: str) -> bool:
    return path == name or posixpath.basename(path) == name


def _newest(images: Sequence[str]) -> str:
    """Return the tool image with the highest version among ``images``; empty where none is one."""
    tools = [image for image in images if IMAGE.fullmatch(image)]
    return max(
        tools, key=lambda image: [int(n) for n in _NUMBERS.findall(image.rpartition(":")[2])], default=""
    )


def left_over(listed: str, container: str) -> bool:
    """Return whether the text of ``ctr container list`` has ``container``."""
    return any(line.split()[:1] == [container] for line in listed.splitlines())
