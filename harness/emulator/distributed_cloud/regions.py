"""How dcmanager asks one system: its sysinv, its VIM, and, as users would want it, its cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from harness.emulator.starlingx.agent_tools import CommandFailed
from harness.emulator.starlingx.answers import Refused, Unhandled
from harness.emulator.starlingx.identity import Caller
from harness.emulator.starlingx.sysinv import Request, Sysinv
from harness.emulator.starlingx.system import System

_DCMANAGER: Final = Caller("dcmanager", "services", ("admin", "member", "reader"))
_BASE: Final = "http://sysinv"

Entry = dict[str, Any]
Labels = Sequence[Mapping[str, str]]


class RegionError(Exception):
    """A system did not do what dcmanager asked of it; the text says why."""


class Region:
    """One system as dcmanager reaches it. Each method is one request, and raises :class:`RegionError`.

    ``fetch``: gives the system, brought up. ``offline``: whether the way to it is cut.
    """

    def __init__(self, name: str, fetch: Callable[[], System]) -> None:
        self.name = name
        self.offline = False
        self._fetch = fetch

    def _ask(self, route: str, *path: str, **request: Any) -> Any:
        def ask(system: System) -> Any:
            if system.troubles.is_away(system.clock.now()):
                raise RegionError(f"sysinv of {self.name} does not answer: 503 Service Unavailable")
            return getattr(Sysinv(system), route)(Request(_DCMANAGER, _BASE, **request), *path)[1]

        return self._asked(ask)

    def _asked(self, ask: Callable[[System], Any]) -> Any:
        if self.offline:
            raise RegionError(f"Unable to reach {self.name}: No route to host")
        system = self._fetch()
        if system.troubles.refuses():
            raise RegionError(f"{self.name} does not answer: 503 Service Unavailable")
        try:
            with system.lock:
                return ask(system)
        except Refused as refusal:
            raise RegionError(refusal.text) from refusal
        except (Unhandled, CommandFailed) as error:
            raise RegionError(str(error)) from error

    # -- sysinv ---------------------------------------------------------------------------------

    def images(self) -> list[Entry]:
        """Return the device images."""
        return list(self._ask("images")["device_images"])

    def image(self, uuid: str) -> Entry:
        """Return one device image."""
        return dict(self._ask("image", uuid))

    def devices(self) -> list[Entry]:
        """Return the PCI devices of all hosts."""
        return list(self._ask("devices")["pci_devices"])

    def states(self) -> list[Entry]:
        """Return the states of images on devices."""
        return list(self._ask("states")["device_image_state"])

    def labels(self) -> list[Entry]:
        """Return the labels of devices."""
        return list(self._ask("labels")["device_labels"])

    def apply(self, uuid: str, labels: Labels) -> None:
        """Apply an image to labels; to all devices where there are none."""
        self._ask("change_image", uuid, query={"action": "apply"}, body=list(labels))

    def remove(self, uuid: str, labels: Labels) -> None:
        """Take an image from labels; from all devices where there are none."""
        self._ask("change_image", uuid, query={"action": "remove"}, body=list(labels))

    def upload(self, fields: Mapping[str, str], filename: str, content: bytes) -> None:
        """Upload an image."""
        answer = self._ask("upload_image", fields=fields, filename=filename, content=content)
        if answer["error"]:
            raise RegionError(str(answer["error"]))

    # -- VIM ------------------------------------------------------------------------------------

    def strategy(self) -> Entry | None:
        """Return the VIM's firmware strategy, if there is one."""
        found: Entry | None = self._asked(lambda system: system.vim.strategy())
        return found

    def create_strategy(self) -> Entry:
        """Have the VIM build a strategy; dcmanager always asks for two workers at once (section 5.5)."""
        return dict(self._asked(lambda system: system.vim.create(max_parallel_workers=2)))

    def apply_strategy(self) -> Entry:
        """Have the VIM carry its strategy out."""
        return dict(self._asked(lambda system: system.vim.apply()))

    def delete_strategy(self) -> None:
        """Have the VIM delete its strategy."""
        self._asked(lambda system: system.vim.delete())

    # -- cards ----------------------------------------------------------------------------------

    def cards(self) -> dict[str, Mapping[str, str]]:
        """Return what is read from each card of the system's hosts, by the uuid of its device."""
        return dict(self._asked(_cards))


def _cards(system: System) -> dict[str, Mapping[str, str]]:
    found: dict[str, Mapping[str, str]] = {}
    for hostname, agent in system.agents.items():
        if not agent.host.powered:
            raise RegionError(f"{hostname} of {system.name} does not answer")
        host = system.database.one("i_host", hostname=hostname)
        read = {card["pciaddr"]: card for card in agent.read_cards()}
        for device in system.database.all("pci_devices", host_id=host["id"] if host else None):
            if device["pciaddr"] in read:
                found[device["uuid"]] = read[device["pciaddr"]]
    return found
