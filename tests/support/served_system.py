"""An emulated StarlingX system, reached as a real one is: over HTTP, and over SSH to its controller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from support.starlingx_lab import PASSWORD, Lab

from harness.controlplane.session import Login
from harness.emulator.ssh_server import Listener, SshFace, new_key
from harness.emulator.starlingx.controllers import install_commands
from harness.emulator.starlingx.defects import Defects
from harness.emulator.starlingx.listening import Listening
from harness.hosts.access import Access
from harness.hosts.ssh import SshHost


@dataclass
class Served:
    """A lab whose system answers at ``login``; its controller has the command `system`."""

    lab: Lab
    login: Login
    listening: Listening = field(repr=False)
    folder: Path
    _faces: dict[str, SshFace] = field(default_factory=dict)
    _reached: list[SshHost] = field(default_factory=list)

    @classmethod
    def begin(cls, folder: Path, release: str = "head", *, on: tuple[str, ...] = (), **more: Any) -> Served:
        lab = Lab(folder, Defects(release, on), **more)
        listening = Listening()
        url = listening.add("system1", lambda fetch: lab.system)
        listening.serve()
        install_commands(lab.hosts, release, url, PASSWORD)
        return cls(lab, Login(url, "admin", PASSWORD), listening, folder)

    def trouble(self, name: str, value: Any = None) -> None:
        """Make something go wrong in the system, or right again."""
        self.listening.trouble("system1", name, value)

    def controller(self, number: int = 0) -> SshHost:
        """Return the first controller, or another host, reached over SSH."""
        machine = self.lab.hosts[number]
        folder = self.folder / machine.name
        if machine.name not in self._faces:
            folder.mkdir()
            user_key = new_key()
            user_key.write_private_key_file(str(folder / "key"))
            face = self._faces[machine.name] = SshFace(machine, new_key(), user_key)
            _listener().add(face)
            line = f"[127.0.0.1]:{face.port} {face.key.get_name()} {face.key.get_base64()}\n"
            (folder / "known_hosts").write_text(line)
        port = self._faces[machine.name].port
        access = Access("127.0.0.1", port, "root", folder / "known_hosts", key_file=folder / "key")
        self._reached.append(SshHost(f"{machine.hostname}.system1", access))
        return self._reached[-1]

    def close(self) -> None:
        for reached in self._reached:
            reached.close()
        self.listening.close()
        self.lab.close()
        for face in self._faces.values():
            face.socket.close()


@cache
def _listener() -> Listener:
    """Return what accepts connections to all controllers of the test process."""
    return Listener()


Serve = Callable[..., Served]
