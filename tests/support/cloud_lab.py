"""An emulated distributed cloud with its subclouds, and clients of all APIs, in the memory of the test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from support.starlingx_lab import PASSWORD, RECIPES, START, login

from harness.emulator.card import CardProfile, CardSpec, CardState
from harness.emulator.clock import LabClock
from harness.emulator.distributed_cloud.cloud import Cloud
from harness.emulator.distributed_cloud.profile import CloudProfile
from harness.emulator.host import EmulatedHost
from harness.emulator.starlingx.defects import HOSTS_OF, Defects
from harness.emulator.starlingx.system import System
from harness.emulator.starlingx.web import SERVICES, Site
from harness.images.recipes import build

#: How long a strategy of these labs may take, in real seconds.
_LONGEST = 60.0
#: A little longer than from one pass of the audit to the next.
_PASS = 41.0


class Client:
    """Asks the services of one system of the lab, as its administrator."""

    def __init__(self, site: Site) -> None:
        self._apps = site.apps()
        self._urls = site.urls
        self.catalogue = self._log_in()

    def _log_in(self) -> list[dict[str, Any]]:
        answer = self.ask("identity", "POST", "/v3/auth/tokens", json=login())
        self._headers = {"X-Auth-Token": answer.headers["X-Subject-Token"]}
        return list(answer.json()["token"]["catalog"])

    def ask(self, service: str, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask a service over HTTP, in memory."""

        async def call() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._apps[service])
            async with httpx.AsyncClient(transport=transport, base_url=self._urls[service]) as client:
                return await client.request(method, path, **options)

        return asyncio.run(call())

    def api(self, service: str, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask a service with a token."""
        more = options.pop("headers", {})
        answer = self.ask(service, method, path, headers=self._headers | more, **options)
        if answer.status_code == 401:  # hours of lab time have passed
            self._log_in()
            answer = self.ask(service, method, path, headers=self._headers | more, **options)
        return answer

    def get(self, path: str, service: str = "platform") -> Any:
        """Return the body of what must be there."""
        answer = self.api(service, "GET", ("/v1.0" if service == "dcmanager" else "/v1") + path)
        assert answer.status_code == 200, answer.text
        return answer.json()


class CloudLab:
    """A controller `central` without hosts, and subclouds `sub1`... with one card each.

    ``cards``: state of the card of each subcloud. ``places``: its address and where it comes up at a boot,
    where that is another; all at one place where nothing is said.
    """

    def __init__(
        self,
        folder: Path,
        release: str = "head",
        *,
        on: tuple[str, ...] = (),
        off: tuple[str, ...] = (),
        cards: tuple[CardState, ...] = (CardState(),),
        places: tuple[tuple[str, str | None], ...] = (),
        profile: CloudProfile | None = None,
    ) -> None:
        self.clock = LabClock(start=START)
        self.folder = folder
        self._defects = Defects(release, on, off)
        self._profile = profile
        era, generation = HOSTS_OF[release]
        self.machines = {}
        for number, state in enumerate(cards, 1):
            machine = EmulatedHost(f"sub{number}", self.clock, generation=generation, era=era)
            address, boots_at = places[number - 1] if places else ("0000:b2:00.0", None)
            spec = CardSpec("card0", f"64:4c:36:00:0{number}:01", (address,), boots_at)
            machine.add_card(spec, state, CardProfile())
            machine.power_on()
            self.machines[machine.name] = machine
        #: Those that somebody asked for.
        self.systems: dict[str, System] = {}
        self.begin()
        central = {service: f"http://central-{service}" for service in SERVICES}
        self.central = Client(Site(lambda: self.controller, central, lambda: self.cloud))
        self._clients: dict[str, Client] = {}

    def begin(self) -> None:
        """Begin controller and dcmanager, with what is on disk."""
        self.controller = self._system("central", [], ("RegionOne", "SystemController"))
        fetch = {name: partial(self.system, name) for name in self.machines}
        self.cloud = Cloud(self.controller, fetch, self.folder / "dc", profile=self._profile)
        self.cloud.activate()

    def system(self, name: str) -> System:
        """Return a subcloud's system, made by whoever asks first."""
        if name not in self.systems:
            self.systems[name] = self._system(name, [self.machines[name]], ("RegionOne",))
        return self.systems[name]

    def _system(self, name: str, hosts: list[EmulatedHost], regions: tuple[str, ...]) -> System:
        folder = self.folder / name

        def fetch(port: int, path: str) -> bytes:
            return (folder / "device_images" / path.rpartition("/")[2]).read_bytes()

        folder.mkdir(exist_ok=True)
        system = System(
            name,
            hosts,
            self.clock,
            folder,
            fetch=fetch,
            password=PASSWORD,
            defects=self._defects,
            regions=regions,
        )
        system.activate()
        return system

    def sub(self, name: str) -> Client:
        """Return a client of a subcloud."""
        if name not in self._clients:
            urls = {service: f"http://{name}-{service}" for service in SERVICES}
            self._clients[name] = Client(Site(partial(self.system, name), urls))
        return self._clients[name]

    # -- what tests do again and again ----------------------------------------------------------

    def upload(
        self, recipe: str = "", kind: str = "functional", service: str = "proxy", **fields: str
    ) -> str:
        """Upload an image to the controller; return its uuid."""
        content = build(RECIPES[recipe]) if recipe else b"some bytes"
        needed = {
            "functional": "bitstream_id",
            "root-key": "key_signature",
            "key-revocation": "revoke_key_id",
        }
        form = {"bitstream_type": kind, "pci_vendor": "8086", "pci_device": "0b30", needed[kind]: "2"}
        answer = self.central.api(
            service, "POST", "/v1/device_images", data=form | fields, files={"file": ("a.bin", content)}
        )
        body = answer.json()
        assert body["error"] == "", body
        return str(body["device_image"]["uuid"])

    def change(self, uuid: str, action: str, *labels: str) -> dict[str, Any]:
        """Apply an image on the controller, or remove it."""
        pairs = [dict([label.split("=")]) for label in labels]
        answer = self.central.api(
            "proxy", "PATCH", f"/v1/device_images/{uuid}", params={"action": action}, json=pairs
        )
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def device(self, name: str) -> dict[str, Any]:
        """Return the PCI device of a subcloud's card."""
        found = self.sub(name).get("/pci_devices")["pci_devices"]
        return next(device for device in found if device["pdevice_id"] == "0b30")

    def assign(self, name: str, *labels: str) -> None:
        """Give a subcloud's card labels."""
        body = [dict([label.split("=")]) for label in labels]
        body.append({"pcidevice_uuid": self.device(name)["uuid"]})
        answer = self.sub(name).api("platform", "POST", "/v1/device_labels", json=body)
        assert answer.status_code == 200, answer.text

    def statuses(self) -> dict[str, str]:
        """Return the firmware sync status of each subcloud."""
        found = self.central.get("/subclouds", "dcmanager")["subclouds"]
        return {entry["name"]: sync_of(entry) for entry in found}

    def alarms(self) -> list[tuple[str, str]]:
        """Return id and entity of the controller's alarms."""
        found = self.central.api("faultmanagement", "GET", "/v1/alarms").json()["alarms"]
        return [(alarm["alarm_id"], alarm["entity_instance_id"]) for alarm in found]

    def create(self, **options: str) -> httpx.Response:
        """Create a firmware strategy."""
        return self.central.api(
            "dcmanager", "POST", "/v1.0/sw-update-strategy/", json={"type": "firmware"} | options
        )

    def act(self, action: str) -> httpx.Response:
        """Apply the strategy or abort it."""
        path = "/v1.0/sw-update-strategy/actions?type=firmware"
        return self.central.api("dcmanager", "POST", path, json={"action": action})

    def delete(self) -> None:
        """Delete the strategy, and let it happen."""
        answer = self.central.api("dcmanager", "DELETE", "/v1.0/sw-update-strategy?type=firmware")
        assert answer.status_code == 200, answer.text
        self.pass_time(30)

    def strategy(self) -> dict[str, Any]:
        """Return the strategy."""
        return dict(self.central.get("/sw-update-strategy?type=firmware", "dcmanager"))

    def steps(self) -> dict[str, dict[str, Any]]:
        """Return the step of each subcloud."""
        found = self.central.get("/sw-update-strategy/steps", "dcmanager")["strategy-steps"]
        return {step["cloud"]: step for step in found}

    def states(self) -> dict[str, str]:
        """Return the state of each step."""
        return {name: step["state"] for name, step in self.steps().items()}

    def orchestrate(self, **options: str) -> str:
        """Create a strategy, apply it and let it come to its end; return its state then."""
        answer = self.create(**options)
        assert answer.status_code == 200, answer.text
        answer = self.act("apply")
        assert answer.status_code == 200, answer.text
        self.run_out()
        return str(self.strategy()["state"])

    def run_out(self) -> None:
        """Let the strategy come to its end, and no lab time pass after it: nothing draws it any more."""
        deadline = time.monotonic() + _LONGEST
        while (state := self.strategy()["state"]) not in ("complete", "failed", "aborted"):
            assert time.monotonic() < deadline, f"the strategy is {state}, its steps {self.steps()}"
            time.sleep(0.005)
        self.settle()

    def wait_held(self, name: str, phase: str) -> None:
        """Wait until a phase of a subcloud's card, which is to be held, has come."""
        card = self.machines[name].card("card0")
        deadline = time.monotonic() + _LONGEST
        while card.held() != phase:
            assert time.monotonic() < deadline, f"{phase} of {name} does not come: {self.steps()}"
            time.sleep(0.005)

    def audit(self) -> None:
        """Let the next pass of the audit happen."""
        self.pass_time(_PASS)

    def pass_time(self, seconds: float) -> None:
        """Let lab time pass, and all that it brings."""
        self.clock.sleep(seconds)
        self.settle()

    def settle(self) -> None:
        """Wait until nobody is at anything."""
        assert self.cloud.settle()
        for system in [self.controller, *self.systems.values()]:
            assert system.settle()

    def close(self) -> None:
        """End it all."""
        self.cloud.close()
        for system in [self.controller, *self.systems.values()]:
            system.close()
        self.clock.close()


MakeCloud = Callable[..., CloudLab]


def sync_of(subcloud: dict[str, Any], endpoint: str = "firmware") -> str:
    """Return one sync status of what the API shows of a subcloud."""
    found = {entry["endpoint_type"]: entry["sync_status"] for entry in subcloud["endpoint_sync_status"]}
    return str(found[endpoint])
