"""Starts the process of an emulated lab and says where its doors are."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.errors import ConfigurationError, InfrastructureError, Kind

_RUNTIME_PREFIX = "hil-lab-"
_START_SECONDS = 30.0
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class BmcDoor:
    """Where the management controller of an emulated host is reached, and a throw-away login."""

    url: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Door:
    """Where a host of an emulated lab is reached, and its management controller, if it has one."""

    address: str
    port: int
    user: str
    bmc: BmcDoor | None = None

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Door:
        """Return what the lab says of a host."""
        bmc = values.get("bmc")
        return cls(values["address"], values["port"], values["user"], BmcDoor(**bmc) if bmc else None)


@dataclass(frozen=True, slots=True)
class ControllerDoor:
    """Where an emulated StarlingX system is reached: URL of its Keystone, and a throw-away login."""

    url: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Doors:
    """Everything that a started emulated lab says about itself."""

    pid: int
    control: Path
    faces: Path
    key_file: Path
    known_hosts: Path
    hosts: Mapping[str, Door]
    controllers: Mapping[str, ControllerDoor] = field(default_factory=dict)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Doors:
        """Return what the lab's first line of output, or a stored :meth:`to_json`, says."""
        return cls(
            pid=int(values["pid"]),
            control=Path(values["control"]),
            faces=Path(values["faces"]),
            key_file=Path(values["key_file"]),
            known_hosts=Path(values["known_hosts"]),
            hosts={name: Door.from_json(door) for name, door in values["hosts"].items()},
            controllers={
                name: ControllerDoor(**door) for name, door in values.get("controllers", {}).items()
            },
        )

    def to_json(self) -> dict[str, Any]:
        """Return the same as a JSON object."""
        return {
            "pid": self.pid,
            "control": str(self.control),
            "faces": str(self.faces),
            "key_file": str(self.key_file),
            "known_hosts": str(self.known_hosts),
            "hosts": {name: asdict(door) for name, door in self.hosts.items()},
            "controllers": {name: asdict(door) for name, door in self.controllers.items()},
        }

    @property
    def runtime(self) -> Path:
        """The lab's own directory, which goes with it."""
        return self.control.parent


class EmulatorProcess:
    """The process behind an emulated lab. It ends with us: by :meth:`close`, or when we die in any way."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        *,
        state: Path | None = None,
        pid_file: Path | None = None,
        log: Path | None = None,
    ) -> None:
        """Start it and wait until it is ready.

        ``pid_file``: makes it a detached one that outlives us, with its output in ``log``.

        :raises InfrastructureError: it did not start; the message has what it said.
        :raises ConfigurationError: it rejected the specification or a stored state.
        """
        full = {**spec, "runtime_prefix": _RUNTIME_PREFIX, "state": str(state) if state else None}
        if pid_file is not None:
            full |= {"detached": True, "pid_file": str(pid_file)}
        self._log = _log_file(log)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "harness.emulator.serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # a Ctrl-C is for us; the lab is still needed to undo and to judge
            # Hundreds of short-lived threads would each leave an arena of freed memory behind.
            env=os.environ | {"PYTHONUNBUFFERED": "1", "MALLOC_ARENA_MAX": "1"},
        )
        self._ready: Doors | None = None
        try:
            self._ready = self._wait_ready(full)
        except BaseException:
            self.close()
            raise

    @property
    def doors(self) -> Doors:
        """Where the lab is reached."""
        assert self._ready is not None
        return self._ready

    def _wait_ready(self, spec: Mapping[str, Any]) -> Doors:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it died; its output says why
            self._process.stdin.write(json.dumps(spec).encode() + b"\n")
            self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], _START_SECONDS)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            raise InfrastructureError(
                f"The emulated lab {spec['name']!r} did not start"
                f"{'' if ready else f' within {_START_SECONDS:g} s'}: "
                f"{self._last_words() or 'it said nothing'}"
            )
        answer = json.loads(line)
        if "error" in answer:
            lab_failed = answer.get("kind") == Kind.INFRASTRUCTURE.value
            raise (InfrastructureError if lab_failed else ConfigurationError)(
                answer["error"], hint=answer["hint"]
            )
        return Doors.from_json(answer)

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace").strip()[-2000:]

    def detach(self) -> Doors:
        """Let go of a detached lab and return its doors."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._log.close()
        self._process.returncode = 0  # it is nobody's child now: no warning when this object goes
        return self.doors

    def close(self) -> None:
        """End the lab and wait for its end; may be called twice."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        if self._ready is not None:
            remove_runtime(self._ready.runtime)  # left where it was killed


def remove_runtime(directory: Path) -> None:
    """Remove a lab's own directory; anything else that a damaged record may name stays."""
    if not directory.name.startswith(_RUNTIME_PREFIX):
        return
    with contextlib.suppress(OSError):
        status = directory.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
            shutil.rmtree(directory, ignore_errors=True)


def _log_file(path: Path | None) -> IO[bytes]:
    """Return where the lab's standard error goes: to ``path``, or to a file that goes with us.

    :raises InfrastructureError: it cannot be made.
    """
    try:
        return path.open("w+b") if path else tempfile.TemporaryFile()
    except OSError as error:
        place = path or tempfile.gettempdir()
        raise InfrastructureError(
            f"The log of the emulated lab cannot be made in {place}: {error.strerror}.",
            hint="Is there room on the disk, and may you write there?",
        ) from error
