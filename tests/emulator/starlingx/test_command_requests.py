"""The requests of each command of `system`: those of the table in section 2.7, and no others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.controller_shell import Shell, shell_on
from support.starlingx_lab import CARD, Lab

from harness.emulator.starlingx.cli_client import Client
from harness.emulator.starlingx.defects import Defects


@dataclass
class Wire:
    """A controller whose requests are written down; ``names``: uuid -> what it stands for in the table."""

    shell: Shell
    names: dict[str, str]
    image: str
    seen: list[tuple[str, str, dict[str, str], bytes | None]] = field(default_factory=list)

    def requests(self, words: str) -> list[str]:
        """Return the requests of a command to sysinv: method, path, and a body that is JSON."""
        self.seen.clear()
        self.shell.shown(words)
        found = []
        for method, url, headers, body in self.seen:
            path = re.sub(r"^http://[^/]+", "", url)
            if path.startswith("/v1"):
                if method != "POST" or "python-requests" not in headers["User-Agent"]:
                    assert headers["User-Agent"] == "cgtsclient"
                    assert headers["Accept"] == "application/json"
                    kind = "application/octet-stream" if method == "DELETE" else "application/json"
                    assert headers["Content-Type"] == kind
                    path += "" if body is None else f" {json.dumps(json.loads(body))}"
                for uuid, name in self.names.items():
                    path = path.replace(uuid, name)
                found.append(f"{method} {path}")
        return found


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """One image, applied to the label of the one card, with a state there; and one in the registry."""
    lab = Lab(tmp_path_factory.mktemp("system"), Defects("head"))
    lab.assign("k=v")
    image = lab.upload()
    lab.apply(image, "k=v", "floating=1")
    lab.system.database.add("registry_images", name="docker.io/starlingx/n3000-opae", tag="1.0")
    label = next(entry["uuid"] for entry in lab.get("/device_labels")["device_labels"] if entry["host_uuid"])
    names = {image: "X", lab.device["uuid"]: "DEVICE", lab.sysinv_host["uuid"]: "HOST", label: "LABEL"}
    exchange = Client._exchange
    with shell_on(lab) as shell, pytest.MonkeyPatch.context() as patch:
        found = Wire(shell, names, image)

        def noted(method: str, url: str, body: bytes | None, headers: dict[str, str]) -> Any:
            found.seen.append((method, url, headers, body))
            return exchange(method, url, body, headers)

        patch.setattr(Client, "_exchange", staticmethod(noted))
        yield found
    lab.close()


HOST = ["GET /v1/ihosts", "GET /v1/ihosts/HOST/pci_devices"]
H_D = f"controller-0 {CARD}"
TABLE = [
    ("device-image-list", ["GET /v1/device_images"]),
    ("device-image-show {X}", ["GET /v1/device_images/X"]),
    ("device-image-apply {X} a=1 b=2", ['PATCH /v1/device_images/X?action=apply [{"a": "1"}, {"b": "2"}]']),
    ("device-image-remove {X} a=1 b=2", ['PATCH /v1/device_images/X?action=remove [{"a": "1"}, {"b": "2"}]']),
    ("device-image-apply {X}", ["PATCH /v1/device_images/X?action=apply []"]),
    (
        "device-image-state-list",
        ["GET /v1/device_image_state", "GET /v1/pci_devices/DEVICE", "GET /v1/ihosts/HOST"],
    ),
    ("device-label-list", ["GET /v1/device_labels", "GET /v1/pci_devices/DEVICE", "GET /v1/ihosts/HOST"]),
    (f"host-device-label-list {H_D}", [*HOST, "GET /v1/device_labels"]),
    (f"host-device-label-remove {H_D} p q", [*HOST, *["GET /v1/device_labels"] * 2]),
    (
        f"host-device-label-remove {H_D} k",
        [*HOST, "GET /v1/device_labels", "DELETE /v1/device_labels/LABEL"],
    ),
    ("host-device-list controller-0", HOST),
    (f"host-device-show {H_D}", HOST),
    (
        f"host-device-modify {H_D} --name card",
        [*HOST, 'PATCH /v1/pci_devices/DEVICE [{"op": "replace", "path": "/name", "value": "card"}]'],
    ),
    ("host-list", ["GET /v1/ihosts"]),
    ("host-show controller-0", ["GET /v1/ihosts"]),
    ("host-show 1", ["GET /v1/ihosts/1"]),
    ("registry-image-list", ["GET /v1/registry_image"]),
    (
        "registry-image-tags docker.io/starlingx/n3000-opae",
        ["GET /v1/registry_image?image_name=docker.io/starlingx/n3000-opae"],
    ),
    (
        "registry-image-delete docker.io/starlingx/n3000-opae:1.0",
        ["DELETE /v1/registry_image?image_name_and_tag=docker.io/starlingx/n3000-opae:1.0"],
    ),
    ("registry-garbage-collect", ["POST /v1/registry_image?garbage_collect=True {}"]),
    (
        "host-device-image-update controller-0",
        ["GET /v1/ihosts", "POST /v1/ihosts/HOST/device_image_update", "GET /v1/ihosts/1"],
    ),
]


def test_requests_are_those_of_the_table(wire: Wire) -> None:
    """In this order: each command finds what the ones before it left."""
    host_locked_for_modify = {"administrative": "locked", "operational": "disabled"}
    database = wire.shell.lab.system.database
    for words, expected in TABLE:
        if words.startswith("host-device-modify"):
            database.change("i_host", 1, **host_locked_for_modify)
        found = wire.requests(words.replace("{X}", wire.image))
        if words.startswith("host-device-modify"):
            database.change("i_host", 1, administrative="unlocked", operational="enabled")
        assert found == expected, words
    assert wire.shell.lab.system.settle()


def test_an_abort_is_asked_for_without_a_body(wire: Wire) -> None:
    database = wire.shell.lab.system.database
    database.change("i_host", 1, device_image_update="in-progress")
    assert wire.requests("host-device-image-update-abort controller-0") == [
        "GET /v1/ihosts",
        "POST /v1/ihosts/HOST/device_image_update_abort",
        "GET /v1/ihosts/1",
    ]
    assert wire.shell.lab.system.settle()


def test_labels_are_assigned_and_each_is_asked_for(wire: Wire) -> None:
    for option, value in (("", "False"), ("--overwrite", "True")):
        found = wire.requests(f"host-device-label-assign {option} {H_D} m=1 n=2")
        body = '[{"m": "1"}, {"n": "2"}, {"pcidevice_uuid": "DEVICE"}]'
        assert found[:3] == [*HOST, f"POST /v1/device_labels?overwrite={value} {body}"]
        assert [re.sub("[0-9a-f-]{36}", "U", request) for request in found[3:]] == [
            "GET /v1/device_labels/U"
        ] * 2


def test_an_upload_has_its_fields_in_this_order_and_the_file_last(wire: Wire) -> None:
    wire.shell.lab.machine.vfs.write("/root/a.bin", b"image")
    words = (
        "device-image-upload a.bin functional 8086 0b30 --image-version v --bmc --name n --bitstream-id 0x2 "
        "--description d --retimer-included --uuid 0f3c1d1e-7a3c-4f0e-9f55-4f8a5e3f3a01"
    )
    assert wire.requests(words) == ["POST /v1/device_images"]
    (headers, body) = next((h, b) for _, url, h, b in wire.seen if url.endswith("/device_images"))
    assert headers["User-Agent"].startswith("python-requests")
    assert re.findall(rb'name="(\w+)"(?:; filename="([^"]*)")?', body or b"") == [
        *((name, b"") for name in (
            b"bitstream_type", b"pci_vendor", b"pci_device", b"bitstream_id", b"name", b"description",
            b"image_version", b"uuid", b"bmc", b"retimer_included",
        )),
        (b"file", b"a.bin"),
    ]  # fmt: skip


def test_an_image_is_deleted(wire: Wire) -> None:
    uuid = wire.shell.lab.upload()
    assert wire.requests(f"device-image-delete {uuid}") == [f"DELETE /v1/device_images/{uuid}"]


def test_the_login_is_looked_for_and_then_made(wire: Wire) -> None:
    """Version discovery, and one token by password for the project (section 2.7)."""
    wire.requests("host-list")
    (method, url, _, _), (posted, tokens, _, body) = wire.seen[:2]
    assert (method, posted) == ("GET", "POST")
    assert (url[-3:], tokens) == ("/v3", f"{url}/auth/tokens")
    asked = json.loads(body or b"")["auth"]
    assert (asked["identity"]["methods"], asked["scope"]["project"]["name"]) == (["password"], "admin")


@pytest.mark.parametrize("name", ["two words", "50%", "a?b#c", "ümlaut"])
def test_names_are_percent_encoded(wire: Wire, name: str) -> None:
    uuid = wire.shell.lab.upload(name=name)
    assert wire.shell.properties(f"device-image-show '{name}'")["uuid"] == uuid
