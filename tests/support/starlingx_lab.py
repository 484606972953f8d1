"""An emulated StarlingX system with one host, and a client of its API, in the memory of the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from harness.emulator.card import CardProfile, CardSpec, CardState
from harness.emulator.clock import LabClock
from harness.emulator.host import EmulatedHost, ToolEra
from harness.emulator.process import Buffer, Bytes
from harness.emulator.programs.base import Streams
from harness.emulator.starlingx.defects import Defects
from harness.emulator.starlingx.profile import SystemProfile
from harness.emulator.starlingx.system import System
from harness.emulator.starlingx.web import Site
from harness.images.recipes import build, load_recipes

ROOT = Path(__file__).resolve().parents[2]
#: 2026-11-30 09:00:00 UTC
START = 1796029200.0
PASSWORD = "Li69nux*"
CARD = "0000:b2:00.0"
URLS = {
    "identity": "http://controller:5000",
    "platform": "http://controller:6385",
    "files": "http://controller:8080",
    "faultmanagement": "http://controller:18002",
    "nfv": "http://controller:4545",
}
RECIPES = load_recipes((ROOT / "fixtures/images.yaml").read_text())


def login(user: str = "admin", password: str = PASSWORD, project: str = "admin") -> dict[str, Any]:
    """Return a request for a token, as keystoneauth sends it."""
    name = {"name": user, "domain": {"name": "Default"}, "password": password}
    return {
        "auth": {
            "identity": {"methods": ["password"], "password": {"user": name}},
            "scope": {"project": {"name": project, "domain": {"name": "Default"}}},
        }
    }


class Lab:
    """One system with one host that has one card, and clients of it."""

    def __init__(
        self,
        folder: Path,
        defects: Defects | None = None,
        *,
        cards: int = 1,
        generation: Any = "D",
        era: ToolEra = "host",
        host: bool = True,
        standby: bool = False,
        state: CardState | None = None,
        moves: bool = False,
        boots_at: str | None = None,
    ) -> None:
        self.clock = LabClock(start=START)
        self.hosts = []
        if host:
            self.machine = EmulatedHost("host1", self.clock, generation=generation, era=era)
            for number in range(cards):
                bus = 0xB2 - 8 * number
                places = (f"0000:{bus:02x}:00.0", *(("0000:e2:00.0",) if moves else ()))
                spec = CardSpec(f"card{number}", f"64:4c:36:00:0{number}:01", places, boots_at)
                self.machine.add_card(spec, state or CardState(), CardProfile())
            self.machine.power_on()
            self.hosts.append(self.machine)
        if standby:
            self.hosts.append(EmulatedHost("host2", self.clock, "controller-1", era=era))
            self.hosts[-1].power_on()
        self.folder = folder
        self._defects = defects
        self.system = self._begin()
        self._apps = Site(lambda: self.system, URLS).apps()
        self.login()

    def _begin(self) -> System:
        system = System(
            "system1",
            self.hosts,
            self.clock,
            self.folder,
            fetch=self.fetch,
            password=PASSWORD,
            defects=self._defects,
            profile=SystemProfile(),
        )
        system.activate()
        return system

    def fetch(self, port: int, path: str) -> bytes:
        """Give an agent a file, as the controller's web server would."""
        return (self.system.images_folder / path.rpartition("/")[2]).read_bytes()

    def ask(self, service: str, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask one service over HTTP, in memory."""

        async def call() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._apps[service])
            async with httpx.AsyncClient(transport=transport, base_url=URLS[service]) as client:
                return await client.request(method, path, **options)

        return asyncio.run(call())

    def login(self, user: str = "admin") -> None:
        """Get a token."""
        answer = self.ask("identity", "POST", "/v3/auth/tokens", json=login(user))
        self.token = answer.headers["X-Subject-Token"]

    def api(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask sysinv as the administrator."""
        return self.ask("platform", method, f"/v1{path}", headers={"X-Auth-Token": self.token}, **options)

    def get(self, path: str) -> Any:
        """Return the body of what must be there."""
        answer = self.api("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    # -- what tests do again and again ----------------------------------------------------------

    def upload(self, recipe: str = "", kind: str = "functional", **fields: str) -> str:
        """Upload an image that a recipe makes (or a few bytes); return its uuid."""
        content = build(RECIPES[recipe]) if recipe else b"some bytes"
        needed = {
            "functional": "bitstream_id",
            "root-key": "key_signature",
            "key-revocation": "revoke_key_id",
        }
        form = {"bitstream_type": kind, "pci_vendor": "8086", "pci_device": "0b30", needed[kind]: "2"}
        answer = self.api("POST", "/device_images", data=form | fields, files={"file": ("a.bin", content)})
        body = answer.json()
        assert body["error"] == "", body
        return str(body["device_image"]["uuid"])

    def change(self, uuid: str, action: str, *labels: str) -> httpx.Response:
        """Apply or remove an image."""
        pairs = [dict([label.split("=")]) for label in labels]
        return self.api("PATCH", f"/device_images/{uuid}", params={"action": action}, json=pairs)

    def apply(self, uuid: str, *labels: str) -> dict[str, Any]:
        """Apply an image, which must succeed; return it."""
        answer = self.change(uuid, "apply", *labels)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    @property
    def device(self) -> dict[str, Any]:
        """The first card's PCI device."""
        return next(d for d in self.get("/pci_devices")["pci_devices"] if d["pdevice_id"] == "0b30")

    @property
    def sysinv_host(self) -> dict[str, Any]:
        """The host as sysinv shows it."""
        return dict(self.get("/ihosts")["ihosts"][0])

    def assign(self, *labels: str, overwrite: bool = False, device: str = "") -> httpx.Response:
        """Give the card labels."""
        body = [dict([label.split("=")]) for label in labels]
        body.append({"pcidevice_uuid": device or self.device["uuid"]})
        return self.api("POST", "/device_labels", params={"overwrite": str(overwrite)}, json=body)

    def statuses(self) -> list[str]:
        """Return the status of every state, in order."""
        return [state["status"] for state in self.get("/device_image_state")["device_image_state"]]

    def update(self) -> httpx.Response:
        """Start the update of the host and wait until all that follows is done."""
        answer = self.api("POST", f"/ihosts/{self.sysinv_host['uuid']}/device_image_update")
        assert self.system.settle()
        return answer

    def host_action(self, action: str) -> httpx.Response:
        """Lock, unlock or reboot the host, and let it happen."""
        patch = [{"op": "replace", "path": "/action", "value": action}]
        answer = self.api("PATCH", f"/ihosts/{self.sysinv_host['uuid']}", json=patch)
        if answer.status_code == 200:
            self.pass_time(600)
        return answer

    def pass_time(self, seconds: float) -> None:
        """Let lab time pass, and all that it brings."""
        self.clock.sleep(seconds)
        assert self.system.settle()

    def reboot(self) -> None:
        """Reboot the host and wait for its agent's report."""
        self.machine.reboot()
        self.pass_time(600)

    def run(self, command: str) -> str:
        """Run a command on the host."""
        out = Buffer()
        self.machine.run(command, Streams(Bytes(), out, out))
        return out.data.decode()

    def alarms(self) -> list[dict[str, Any]]:
        """Return what the fault manager shows."""
        answer = self.ask("faultmanagement", "GET", "/v1/alarms", headers={"X-Auth-Token": self.token})
        return list(answer.json()["alarms"])

    def said(self, answer: httpx.Response) -> str:
        """Return the text of an error: JSON in JSON."""
        return str(json.loads(answer.json()["error_message"])["faultstring"])

    def restarted(self) -> Lab:
        """Return a lab on the same host, with the service begun anew from what it kept on disk."""
        again = object.__new__(Lab)
        again.__dict__ |= self.__dict__
        self.system.close()
        again.system = self.system = self._begin()
        again._apps = self._apps = Site(lambda: again.system, URLS).apps()
        return again

    def close(self) -> None:
        """End the lab's time and close its files."""
        for machine in self.hosts:
            machine.power_off()
        self.system.close()
        self.clock.close()


MakeLab = Callable[..., Lab]


@contextmanager
def labs(folder: Path) -> Iterator[MakeLab]:
    """Make labs, each with a folder of its own in ``folder``; they end with the context."""
    made: list[Lab] = []

    def make(
        release: str = "head", *, on: tuple[str, ...] = (), off: tuple[str, ...] = (), **more: Any
    ) -> Lab:
        own = folder / f"system{len(made)}"
        own.mkdir()
        made.append(Lab(own, Defects(release, on, off), **more))
        return made[-1]

    try:
        yield make
    finally:
        for lab in made:
            lab.close()
