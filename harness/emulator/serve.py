"""The process of an emulated lab: a specification on standard input, hosts on loopback ports.

The first line of standard input is the specification, a JSON object; the first line of standard output
says where everything is. After that, the end of standard input is the end of the lab, so that it cannot
outlive whoever started it, however that one dies. A ``detached`` lab lives until it is told to stop.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import resource
import secrets
import shutil
import signal
import sys
import threading
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import paramiko

from harness.emulator.bmc import Controllers
from harness.emulator.card import CardProfile, CardSpec, CardState, CardStore
from harness.emulator.clock import LabClock
from harness.emulator.control import Control
from harness.emulator.faces.door import Door
from harness.emulator.host import EmulatedHost
from harness.emulator.runtime import CONTROL_NAME, make_runtime
from harness.emulator.ssh_server import LOOPBACK, USER, Listener, SshFace, new_key
from harness.errors import HarnessError, InfrastructureError
from harness.images.payload import PayloadTable, load_payload_table

FACES_NAME = "faces"
KEY_NAME = "client_key"
KNOWN_HOSTS_NAME = "known_hosts"
_DISK_HINT = "Is there room on the disk, and may you write there?"


def main() -> None:
    """Run the lab that standard input specifies until it is over."""
    line = sys.stdin.readline()
    if not line:
        return
    spec = json.loads(line)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each system listens on several ports
    runtime: Path | None = None
    try:
        runtime = make_runtime(spec["runtime_prefix"])
        _run(spec, runtime)
    except HarnessError as error:
        _tell({"error": error.message, "hint": error.hint, "kind": error.kind.value})
    except OSError as error:
        text = f"The emulated lab cannot use {error.filename or 'its files'}: {error.strerror}."
        _tell({"error": text, "hint": _DISK_HINT, "kind": "infrastructure"})
    except Exception:  # noqa: BLE001 -- whatever it was, its directory must go with it
        traceback.print_exc()
    _leave(runtime, 1)


def _run(spec: dict[str, Any], runtime: Path) -> NoReturn:
    # Held until the process ends, in every way that it can end.
    lock = _hold_pid_file(Path(spec["pid_file"])) if spec.get("pid_file") else None
    signal.signal(signal.SIGTERM, lambda number, frame: _leave(runtime, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which still wants answers
    gc.disable()  # what is built now stays: looking through it again and again doubles the start
    ready = LabProcess(spec, runtime).start()
    gc.freeze()
    gc.enable()
    _tell(ready)
    if spec.get("detached"):
        threading.Event().wait()
    while sys.stdin.readline():
        pass
    del lock
    _leave(runtime, 0)


def _tell(answer: dict[str, Any]) -> None:
    """Write the first line of output; whoever started us may be gone already."""
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(answer), flush=True)


def _leave(runtime: Path | None, status: int) -> NoReturn:
    """End at once. Every card's state is on disk already; threads have nothing to clean up."""
    if runtime is not None:
        shutil.rmtree(runtime, ignore_errors=True)
    os._exit(status)


def _hold_pid_file(path: Path) -> int:
    """Write our id to ``path`` and lock it for as long as we live: that, not the id, says that we do."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # whoever looks whether we live holds it for an instant
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor


class LabProcess:
    """Builds the hosts and cards of a specification and opens their doors."""

    def __init__(self, spec: dict[str, Any], runtime: Path) -> None:
        self._spec = spec
        self._runtime = runtime
        self._clock = LabClock(scale=spec.get("scale"), start=spec.get("start", time.time()))
        self._state = Path(spec["state"]) if spec.get("state") else None
        self._hosts: dict[str, EmulatedHost] = {}
        self._control = Control(self._hosts, self._clock, lambda: _leave(runtime, 0))

    def start(self) -> dict[str, Any]:
        """Start everything; return what the first line of output says.

        :raises HarnessError: the specification or a stored state is wrong.
        """
        user_key = new_key()
        key_file = self._runtime / KEY_NAME
        user_key.write_private_key_file(str(key_file))
        table = self._spec.get("payloads")
        payloads = load_payload_table(table) if table else None
        listener = Listener()
        found: dict[str, Any] = {}
        known_hosts = []
        bmcs = Controllers()
        for entry in self._spec["hosts"]:
            host = self._host(entry, payloads)
            face = SshFace(host, self._host_key(host.name), user_key)
            host.power_on()
            listener.add(face)
            known_hosts.append(f"[{LOOPBACK}]:{face.port} {face.key.get_name()} {face.key.get_base64()}\n")
            found[host.name] = {"address": LOOPBACK, "port": face.port, "user": USER}
            if entry.get("bmc"):
                found[host.name]["bmc"] = bmcs.add(host, LOOPBACK)
        bmcs.serve()
        known_hosts_file = self._runtime / KNOWN_HOSTS_NAME
        known_hosts_file.write_text("".join(known_hosts))
        controllers = self._start_systems(payloads)
        control = self._runtime / CONTROL_NAME
        self._control.serve(control)
        faces = self._runtime / FACES_NAME
        Door(self._hosts).serve(faces)
        return {
            "pid": os.getpid(),
            "control": str(control),
            "faces": str(faces),
            "key_file": str(key_file),
            "known_hosts": str(known_hosts_file),
            "hosts": found,
            "controllers": controllers,
        }

    def _start_systems(self, payloads: PayloadTable | None) -> dict[str, Any]:
        """Open the doors of the StarlingX systems; nothing of one is there before somebody comes in."""
        entries = self._spec.get("systems", [])
        if not entries:
            return {}
        from harness.emulator.starlingx.controllers import install_commands
        from harness.emulator.starlingx.curl import install_curl
        from harness.emulator.starlingx.listening import Listening, cloud_maker, maker
        from harness.emulator.starlingx.service_manager import install_service_manager

        listening = Listening()
        doors = {}
        for entry in entries:
            password = secrets.token_urlsafe(12)
            hosts = [self._hosts[name] for name in entry["hosts"]]
            folder = (self._state or self._runtime) / "systems" / entry["name"]
            subclouds = entry["subclouds"]
            cloud = cloud_maker(listening, subclouds, folder / "dcmanager", payloads) if subclouds else None
            make = maker(entry, hosts, self._clock, folder, password)
            url = listening.add(entry["name"], make, cloud)
            install_commands(hosts, entry["release"], url, password)
            install_curl(hosts, listening.download(entry["name"]))
            install_service_manager(hosts, {"vim": partial(listening.restart_vim, entry["name"])})
            doors[entry["name"]] = {"url": url, "user": "admin", "password": password}
        self._control.on_settle.append(listening.settle)
        self._control.on_trouble = listening.trouble
        listening.serve()
        return doors

    def _host(self, entry: dict[str, Any], payloads: PayloadTable | None) -> EmulatedHost:
        if "recording" in entry:
            return self._replayed(entry)
        host = EmulatedHost(
            entry["name"],
            self._clock,
            hostname=entry["hostname"],
            generation=entry.get("generation", "D"),
            era=entry.get("era", "host"),
            defects=frozenset(entry.get("tool_defects", ())),
        )
        self._hosts[host.name] = host
        for card in entry["cards"]:
            spec = CardSpec(card["name"], card["mac"], tuple(card["addresses"]), card.get("boots_at"))
            profile = CardProfile.from_mapping(card.get("profile", {}))
            store = CardStore(self._state / "cards" / host.name / spec.name) if self._state else None
            kept = store.load() if store else None
            state = kept or CardState.from_json(card.get("state", {}))
            host.add_card(spec, state, profile, store, payloads).on_lost = self._out_of_order
        return host

    def _out_of_order(self, error: InfrastructureError) -> None:
        """The disk takes no more of what a card holds: cut the power of every host, and say why.

        A lab that went on would show states that are gone with its end. In a thread of its own: what
        ends connections may wait for the thread that found it out.
        """
        self._control.fail(error)
        for host in self._hosts.values():
            for process in host.processes.all():
                process.send(signal.SIGKILL)  # now: no tool is to report what the disk does not hold
        with contextlib.suppress(OSError):  # the log may be on the disk that is full
            print(f"The lab is out of order: {error}", file=sys.stderr, flush=True)

        def cut() -> None:
            for host in self._hosts.values():
                host.power_off()

        threading.Thread(target=cut, name="out-of-order", daemon=True).start()

    def _replayed(self, entry: dict[str, Any]) -> EmulatedHost:
        from harness.emulator.replay import ReplayHost  # most labs have none
        from harness.recordings.model import Recording

        recording = Recording.from_json(entry["recording"])
        host = ReplayHost(entry["name"], self._clock, hostname=entry["hostname"], recording=recording)
        self._hosts[host.name] = host
        return host

    def _host_key(self, name: str) -> paramiko.PKey:
        """Return the host's key: the same one each time the lab keeps state."""
        if self._state is None:
            return new_key()
        path = self._state / "host_keys" / name
        if path.exists():
            return paramiko.ECDSAKey.from_private_key_file(str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        key = new_key()
        unfinished = path.with_name(f".{name}.new")
        key.write_private_key_file(str(unfinished))
        unfinished.replace(path)
        return key


if __name__ == "__main__":
    main()
