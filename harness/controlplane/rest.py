"""The REST way into a StarlingX system (fact sheet of StarlingX, sections 2 to 2.6)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

from harness.controlplane.changes import Change, PermitMaker
from harness.controlplane.connections import form_body, json_body, queried
from harness.controlplane.covered import IMAGES
from harness.controlplane.protocol import (
    Alarm,
    DeviceImage,
    DeviceImageState,
    DeviceLabel,
    HostState,
    PciDevice,
    Said,
    Upload,
)
from harness.controlplane.reading import from_json
from harness.controlplane.session import Login, Session
from harness.controlplane.vim import PATH, VimStrategy, from_answer
from harness.errors import ControlPlaneError, HarnessBug, NoSuchRecordError
from harness.hosts.permits import genuine
from harness.judgement.records import Evidence
from harness.judgement.values import Unknown

_UPLOAD_DEADLINE: Final = 600.0
_GONE: Final = Unknown("the system shows no such host or device any more")
#: Act -> what sysinv's actions on a host are called.
_HOST_ROUTES: Final = {"host-update": "device_image_update", "host-abort": "device_image_update_abort"}
_HOST_ACTIONS: Final = {"host-lock": "lock", "host-unlock": "unlock", "host-reboot": "reboot"}
Objects = list[Mapping[str, Any]]


class RestWay:
    """Asks one system over HTTP.

    :param name: the controller's name in the inventory. :param page: how many images are asked for at once.
    :param deadline: seconds for one request with its repetitions.
    """

    reporter: Final = "sysinv"

    def __init__(self, name: str, login: Login, *, page: int = 100, deadline: float = 60.0) -> None:
        self.name = name
        self.evidence = Evidence("", "")
        self._session = Session(name, login, deadline=deadline)
        self._page = page
        self._answers: dict[tuple[str, str, bool], tuple[Any, Evidence]] | None = None

    @contextmanager
    def one_look(self) -> Iterator[None]:
        """Ask for each thing once while the block lasts; what else needs it has the same answer."""
        self._answers = {}
        try:
            yield
        finally:
            self._answers = None

    def close(self) -> None:
        """Close the connections; may be called twice."""
        self._session.close()

    # -- reading --------------------------------------------------------------------------------------

    def images(self) -> list[DeviceImage]:
        """Return all images, page by page."""
        shown: Objects = []
        seen: set[str] = set()
        texts: list[str] = []
        while True:
            query: dict[str, str | int] = {"limit": self._page}
            if shown:
                query["marker"] = str(shown[-1]["uuid"])
            page = self._objects(queried("/device_images", query), "device_images")
            texts.append(self.evidence.text)
            fresh = [entry for entry in page if str(entry.get("uuid")) not in seen]
            if page and len(fresh) < len(page) and shown:
                raise ControlPlaneError(
                    f"{self.name} answers with images again that stood on an earlier page.",
                    hint="Its release may not know pages; choose a larger one.",
                )
            shown += fresh
            seen |= {str(entry.get("uuid")) for entry in fresh}
            if len(page) != self._page:  # more than asked for: it knows no pages, and this is all
                break
        self.evidence = Evidence("\n".join(texts), "GET /device_images")
        return [from_json(DeviceImage, entry) for entry in shown]

    def image(self, ident: str) -> DeviceImage:
        """Return one image by uuid, id or name."""
        return from_json(DeviceImage, self._get(f"/device_images/{quote(ident, safe='')}", names=True))

    def states(self) -> list[DeviceImageState]:
        """Return what became of each image on each device."""
        shown = self._objects("/device_image_state", "device_image_state")
        said = self.evidence
        hosts, devices = (self._by_uuid("ihosts"), self._by_uuid("pci_devices")) if shown else ({}, {})
        self.evidence = said
        return [
            from_json(
                DeviceImageState,
                entry,
                hostname=hosts.get(entry.get("host_uuid"), {}).get("hostname", _GONE),
                address=devices.get(entry.get("pcidevice_uuid"), {}).get("pciaddr", _GONE),
            )
            for entry in shown
        ]

    def labels(self) -> list[DeviceLabel]:
        """Return all labels."""
        shown = self._objects("/device_labels", "device_labels")
        said = self.evidence
        placed = any(entry.get("pcidevice_uuid") for entry in shown)
        hosts, devices = (self._by_uuid("ihosts"), self._by_uuid("pci_devices")) if placed else ({}, {})
        self.evidence = said
        return [self._label(entry, hosts, devices) for entry in shown]

    @staticmethod
    def _label(entry: Mapping[str, Any], hosts: Any, devices: Any) -> DeviceLabel:
        host, device = entry.get("host_uuid"), entry.get("pcidevice_uuid")
        return from_json(
            DeviceLabel,
            entry,
            hostname=hosts.get(host, {}).get("hostname", _GONE) if host else None,
            device=devices.get(device, {}).get("name", _GONE) if device else None,
        )

    def devices(self, hostname: str) -> list[PciDevice]:
        """Return the PCI devices of a host, disabled ones too."""
        uuid = self._host(hostname)["uuid"]
        if self._told("/pci_devices"):  # of all hosts, in this look
            shown = [e for e in self._objects("/pci_devices", "pci_devices") if e.get("host_uuid") == uuid]
        else:
            shown = self._objects(f"/ihosts/{uuid}/pci_devices", "pci_devices")
        return [from_json(PciDevice, entry, hostname=hostname) for entry in shown]

    def device(self, hostname: str, device: str) -> PciDevice:
        """Return one PCI device of a host by name or address."""
        found = self.devices(hostname)
        for candidate in found:
            if device in (candidate.name, candidate.address):
                return candidate
        raise NoSuchRecordError(
            f"{self.name}: host {hostname} has no PCI device {device}.",
            hint=f"It has {', '.join(entry.address for entry in found) or 'none'}.",
        )

    def hosts(self) -> list[HostState]:
        """Return all hosts."""
        return [from_json(HostState, entry) for entry in self._objects("/ihosts", "ihosts")]

    def host(self, hostname: str) -> HostState:
        """Return one host by its hostname."""
        return from_json(HostState, self._host(hostname))

    def alarms(self) -> list[Alarm]:
        """Return the alarms that are set."""
        return [
            from_json(Alarm, entry)
            for entry in self._objects("/v1/alarms", "alarms", service="faultmanagement")
        ]

    def vim_strategy(self) -> list[VimStrategy]:
        """Return the firmware strategy of the system's VIM; nothing where there is none."""
        return from_answer(self._get(PATH, service="nfv"))

    # -- changing -------------------------------------------------------------------------------------

    def carry_out(self, change: Change, permits: PermitMaker) -> list[Said]:
        """Carry out a change once, with the one request that its permit covers."""
        if change.act == "image-upload":
            return [self._upload(change.image, permits)]
        if change.act == "label-remove":
            self._remove_labels(change, permits)
            return []
        method, path, body = self._request(change)
        answer = self._changed(method, path, body, permits)
        if change.act == "image-delete":
            return []
        if change.act == "label-assign":
            return [from_json(DeviceLabel, entry) for entry in self._listed(answer, "device_labels", path)]
        if change.act in ("image-apply", "image-remove"):
            return [from_json(DeviceImage, answer)]
        if change.act == "device-modify":
            return [from_json(PciDevice, answer, hostname=change.target)]
        return [from_json(HostState, answer)]

    def _request(self, change: Change) -> tuple[str, str, Any]:
        target = quote(change.target, safe="")
        if change.act in ("image-apply", "image-remove"):
            action = change.act.removeprefix("image-")
            pairs = [{key: value} for key, value in change.labels]
            return "PATCH", f"/device_images/{target}?action={action}", pairs
        if change.act == "image-delete":
            return "DELETE", f"/device_images/{target}", None
        if change.act == "label-assign":
            device = self.device(change.target, change.device).uuid
            body = [*({key: value} for key, value in change.labels), {"pcidevice_uuid": device}]
            return "POST", f"/device_labels?overwrite={change.overwrite}", body
        if change.act == "device-modify":
            device = self.device(change.target, change.device).uuid
            wanted = str(change.enabled).lower()  # as text, which the command sends too (section 2.7)
            return "PATCH", f"/pci_devices/{device}", [_replaced("enabled", wanted)]
        host = self._host(change.target)["uuid"]
        if change.act in _HOST_ROUTES:
            return "POST", f"/ihosts/{host}/{_HOST_ROUTES[change.act]}", None
        action = ("force-" if change.force else "") + _HOST_ACTIONS[change.act]
        return "PATCH", f"/ihosts/{host}", [_replaced("action", action)]

    def _changed(self, method: str, path: str, body: Any, permits: PermitMaker) -> Any:
        """Make one request that changes something, if its permit is for exactly that."""
        words = (method, path, json.dumps(body))
        permit = genuine(permits.command(self.name, words))
        permit.check_command(self.name, words)
        permit.spend()
        carried = None if body is None else json_body(body)
        answer, text = self._session.ask(method, path, names=True, body=carried)
        self.evidence = Evidence(text, f"{method} {path}")
        return answer

    def _upload(self, image: Upload | None, permits: PermitMaker) -> DeviceImage:
        """Upload an image: 200 is answered whatever was wrong (section 2.1), so that the text decides."""
        import hashlib

        if image is None:
            raise HarnessBug("An upload without an image was to be carried out.")
        path, digest = IMAGES, hashlib.sha256(image.content).hexdigest()
        permit = genuine(permits.write(self.name, path))
        permit.check_write(self.name, path, digest)
        permit.spend()
        body = form_body(image.form(), image.filename, image.content)
        answer, text = self._session.ask("POST", path, body=body, deadline=_UPLOAD_DEADLINE)
        self.evidence = Evidence(text, f"POST {path}")
        said = answer if isinstance(answer, dict) else {}
        if said.get("error") or not said.get("device_image"):
            why = said.get("error") or text[:200] or "no answer"
            raise ControlPlaneError(
                f"{self.name} did not take {image.filename}: {why}",
                hint="Nothing was kept of it.",
            )
        return from_json(DeviceImage, said["device_image"])

    def _remove_labels(self, change: Change, permits: PermitMaker) -> None:
        device = self.device(change.target, change.device)
        labels = self._objects("/device_labels", "device_labels")
        mine = [entry for entry in labels if entry.get("pcidevice_uuid") == device.uuid]
        for key in change.keys:
            found = [entry for entry in mine if entry.get("label_key") == key]
            if not found:
                raise NoSuchRecordError(
                    f"{self.name}: {change.device} of {change.target} has no label {key}.",
                    hint=f"It has {', '.join(str(entry.get('label_key')) for entry in mine) or 'none'}.",
                )
            for entry in found:
                self._changed("DELETE", f"/device_labels/{entry['uuid']}", None, permits)

    # -- asking ---------------------------------------------------------------------------------------

    def _told(self, path: str) -> bool:
        """Whether the look that lasts has asked sysinv for this already."""
        return self._answers is not None and ("platform", path, False) in self._answers

    def _get(self, path: str, *, names: bool = False, service: str = "platform") -> Any:
        key = (service, path, names)
        if self._answers is not None and key in self._answers:
            answer, self.evidence = self._answers[key]
            return answer
        answer, text = self._session.ask("GET", path, names=names, service=service)
        self.evidence = Evidence(text, f"GET {path}")
        if self._answers is not None:
            self._answers[key] = answer, self.evidence
        return answer

    def _objects(self, path: str, key: str, *, service: str = "platform") -> Objects:
        return self._listed(self._get(path, service=service), key, path)

    def _listed(self, answer: Any, key: str, path: str) -> Objects:
        found = answer.get(key) if isinstance(answer, dict) else None
        if not isinstance(found, Sequence) or not all(isinstance(entry, dict) for entry in found):
            raise ControlPlaneError(f"{self.name} answers no list of {key} to {path}: {str(answer)[:120]}.")
        return list(found)

    def _by_uuid(self, kind: str) -> dict[Any, Mapping[str, Any]]:
        return {entry.get("uuid"): entry for entry in self._objects(f"/{kind}", kind)}

    def _host(self, hostname: str) -> Mapping[str, Any]:
        found = self._objects("/ihosts", "ihosts")
        for entry in found:
            if entry.get("hostname") == hostname and entry.get("uuid"):
                return entry
        known = ", ".join(str(entry.get("hostname")) for entry in found)
        raise NoSuchRecordError(
            f"{self.name}: host not found: {hostname}", hint=f"There are {known or 'none'}."
        )


def _replaced(name: str, value: str) -> dict[str, str]:
    """Return the one operation of a JSON patch that replaces a field."""
    return {"op": "replace", "path": f"/{name}", "value": value}
