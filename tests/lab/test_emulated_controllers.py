"""Emulated controllers of a lab: real HTTP, doors, releases, and nothing paid for before they are asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from harness.emulator.starlingx.defects import RELEASES
from harness.errors import ConfigurationError
from harness.images.recipes import build, load_recipes
from harness.inventory.load import load_inventory
from harness.inventory.model import EmulatedController
from harness.lab.emulator import Doors
from harness.lab.running import RunningLab, start_lab
from harness.lab.specification import specification

ROOT = Path(__file__).parents[2]
INVENTORY = """\
version: 1
default_lab: one
labs:
  one:
    controllers:
      central: {role: system-controller, emulated: true}
      sub: {role: subcloud, parent: central, emulated: RELEASE}
    hosts:
      sub:
        system: sub
        emulated: HOST
        cards:
          card0: {address: "0000:b2:00.0", identity: 64:4c:36:00:00:01}
      other:
        emulated: {hostname: other}
"""


def inventory(tmp_path: Path, release: str = "{release: head}", machine: str = "true") -> Any:
    path = tmp_path / "inventory.yaml"
    path.write_text(INVENTORY.replace("RELEASE", release).replace("HOST", machine))
    return load_inventory(path)


class Client:
    """What a client of a controller does: it logs in, and goes where the catalogue says."""

    def __init__(self, lab: RunningLab, name: str) -> None:
        door = lab.doors.controllers[name]
        user = {"name": door.user, "domain": {"name": "Default"}, "password": door.password}
        project = {"name": "admin", "domain": {"name": "Default"}}
        auth = {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": project},
        }
        answer = httpx.post(f"{door.url}/auth/tokens", json={"auth": auth})
        assert answer.status_code == 201, answer.text
        self.catalogue = answer.json()["token"]["catalog"]
        platform = next(entry for entry in self.catalogue if entry["type"] == "platform")
        self.regions = {endpoint["region"] for endpoint in platform["endpoints"]}
        headers = {"X-Auth-Token": answer.headers["X-Subject-Token"]}
        self.api = httpx.Client(base_url=platform["endpoints"][0]["url"], headers=headers)


def test_image_goes_from_an_upload_to_the_card_over_http(tmp_path: Path) -> None:
    recipes = load_recipes((ROOT / "fixtures/images.yaml").read_text())
    with start_lab(inventory(tmp_path)) as lab:
        client = Client(lab, "sub")
        api = client.api
        assert client.regions == {"RegionOne"}
        form = {
            "bitstream_type": "functional",
            "pci_vendor": "8086",
            "pci_device": "0b30",
            "bitstream_id": "2",
        }
        image = build(recipes["unsigned"])
        answer = api.post("/device_images", data=form, files={"file": ("a.bin", image)}).json()
        assert answer["error"] == ""
        uuid = answer["device_image"]["uuid"]
        device = next(d for d in api.get("/pci_devices").json()["pci_devices"] if d["pdevice_id"] == "0b30")
        labels = [{"k": "v"}, {"pcidevice_uuid": device["uuid"]}]
        assert api.post("/device_labels", json=labels).status_code == 200
        assert api.patch(f"/device_images/{uuid}?action=apply", json=[{"k": "v"}]).status_code == 200
        machine = api.get("/ihosts").json()["ihosts"][0]
        assert api.post(f"/ihosts/{machine['uuid']}/device_image_update").status_code == 200
        lab.bench.pass_time(300)  # type: ignore[union-attr]
        states = api.get("/device_image_state").json()["device_image_state"]
        assert [state["status"] for state in states] == ["completed"]
        lab.power("sub", "reboot")
        lab.bench.pass_time(300)  # type: ignore[union-attr]
        shown = api.get(f"/pci_devices/{device['uuid']}").json()["bitstream_id"]
        assert int(shown, 16) == recipes["unsigned"].bitstream_id
        oracle = lab.bench.oracle("sub/card0")  # type: ignore[union-attr]
        assert oracle["running_page"] == "user"
        central = Client(lab, "central")
        assert central.regions == {"RegionOne", "SystemController"}
        assert central.api.get("/device_images").json() == {"device_images": []}
        assert [host["hostname"] for host in central.api.get("/ihosts").json()["ihosts"]] == ["controller-0"]


def test_state_directory_keeps_the_system(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with start_lab(inventory(tmp_path), state_dir=state) as lab:
        api = Client(lab, "sub").api
        form = {"bitstream_type": "key-revocation", "pci_vendor": "8086", "pci_device": "0b30"}
        files = {"file": ("a.bin", b"bytes")}
        api.post("/device_images", data=form | {"revoke_key_id": "5"}, files=files)
        before = api.get("/device_images").json()
        assert [image["revoke_key_id"] for image in before["device_images"]] == [5]
    with start_lab(inventory(tmp_path), state_dir=state) as lab:
        assert Client(lab, "sub").api.get("/device_images").json() == before


def test_release_decides_what_hosts_are_like_unless_they_say_so(tmp_path: Path) -> None:
    def host(release: str, machine: str) -> tuple[str, str]:
        lab = inventory(tmp_path, release, machine)
        entry = specification(lab, lab.lab())["hosts"][0]
        return entry["era"], entry["generation"]

    assert host("{release: stx-2020-07}", "true") == ("docker", "A")
    assert host("{release: stx-8}", "true") == ("containerd", "A")
    assert host("{release: head}", "true") == ("host", "D")
    assert host("true", "true") == ("host", "D")
    assert host("{release: stx-2020-07}", "{generation: B}") == ("docker", "B")
    assert host("{release: stx-8}", "{era: host, generation: D}") == ("host", "D")


def test_unknown_defect_is_told_with_the_known_ones(tmp_path: Path) -> None:
    lab = inventory(tmp_path, "{defects: [no-such]}")
    with pytest.raises(ConfigurationError, match="no known defect 'no-such'") as caught:
        specification(lab, lab.lab())
    assert "old-flag-kept" in caught.value.hint


def test_inventory_and_emulator_know_the_same_releases() -> None:
    assert get_args(EmulatedController.model_fields["release"].annotation) == RELEASES


def test_doors_keep_what_they_say_and_show_no_password(tmp_path: Path) -> None:
    with start_lab(inventory(tmp_path)) as lab:
        doors = lab.doors
    assert Doors.from_json(json.loads(json.dumps(doors.to_json()))) == doors
    assert doors.controllers["sub"].password not in repr(doors)
    assert doors.controllers["sub"].password != doors.controllers["central"].password
