"""Each known defect, switched on alone in a corrected system, and that system without it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from support.starlingx_lab import CARD, Lab, MakeLab

from harness.emulator.distributed_cloud.known import CLOUD_DEFECTS
from harness.emulator.starlingx.defects import DEFECTS, RELEASES, Defects
from harness.errors import ConfigurationError

IMAGE_TOOL = "registry.local:9001/docker.io/starlingx/n3000-opae:stx.8.0-v1.0.2"


@dataclass(frozen=True)
class Case:
    """What makes a defect show: ``seen`` returns whether it does; ``beside``: others that it needs."""

    seen: Callable[[Lab], bool]
    beside: tuple[str, ...] = ()
    lab: tuple[tuple[str, Any], ...] = ()


CASES: dict[str, Case] = {}


def case(name: str, *beside: str, **lab: Any) -> Callable[[Callable[[Lab], bool]], Callable[[Lab], bool]]:
    """Note the function below as what shows the defect ``name``."""

    def note(seen: Callable[[Lab], bool]) -> Callable[[Lab], bool]:
        CASES[name] = Case(seen, beside, tuple(lab.items()))
        return seen

    return note


def two_functional(lab: Lab, *labels: str) -> list[bool]:
    uuids = [lab.upload(bitstream_id="11"), lab.upload(bitstream_id="2")]
    for uuid in uuids:
        lab.apply(uuid, *labels)
    return [lab.get(f"/device_images/{uuid}")["applied"] for uuid in uuids]


def host_value(lab: Lab) -> Any:
    return lab.sysinv_host["device_image_update"]


def hold_flash(lab: Lab) -> None:
    card = lab.machine.card("card0")
    card.hold("programming")
    lab.api("POST", f"/ihosts/{lab.sysinv_host['uuid']}/device_image_update")
    looked = threading.Event()
    for _ in range(3000):
        if card.held() == "programming":
            return
        looked.wait(0.005)
    raise AssertionError("the flash did not begin")


def release(lab: Lab) -> None:
    lab.machine.card("card0").release()
    assert lab.system.settle()


@case("two-images-on-floating-label", host=False)
def _(lab: Lab) -> bool:
    return two_functional(lab, "subcloud=abc") == [True, True]


@case("old-flag-kept")
def _(lab: Lab) -> bool:
    return two_functional(lab) == [True, True]


@case("labels-lost-on-move", moves=True)
def _(lab: Lab) -> bool:
    lab.assign("k=v")
    lab.reboot()
    assert lab.device["pciaddr"] == "0000:e2:00.0"
    return not lab.get("/device_labels")["device_labels"]


@case("labels-lost-at-boot", boots_at="0000:b3:00.0")
def _(lab: Lab) -> bool:
    lab.assign("k=v")
    lab.reboot()
    assert lab.device["pciaddr"] == CARD
    return not lab.get("/device_labels")["device_labels"]


@case("duplicate-applied-labels", cards=2)
def _(lab: Lab) -> bool:
    cards = [d for d in lab.get("/pci_devices")["pci_devices"] if d["pdevice_id"] == "0b30"]
    for card in cards:
        lab.assign("k=v", device=card["uuid"])
    shown = lab.apply(lab.upload(), "k=v")["applied_labels"]
    assert shown in ([{"k": "v"}], [{"k": "v"}] * 2)
    return len(shown) == 2


@case("host-not-pending-after-failure")
def _(lab: Lab) -> bool:
    lab.machine.condition("missing-fpgasupdate", True)
    lab.apply(lab.upload("unsigned"))
    lab.update()
    assert lab.statuses() == ["failed"]
    return host_value(lab) == ""


@case("failed-flash-not-reported")
def _(lab: Lab) -> bool:
    lab.apply(lab.upload("raw-file"))
    lab.update()
    assert lab.statuses() in (["in-progress"], ["failed"])
    return lab.statuses() == ["in-progress"]


@case("retimer-flag-after-failure")
def _(lab: Lab) -> bool:
    lab.apply(lab.upload("raw-file", bmc="true", retimer_included="true"))
    lab.update()
    assert lab.statuses() == ["failed"]
    return "No such file" not in lab.run("ls /etc/platform/.sysinv_n3000_retimer")


@case("failure-not-propagated")
def _(lab: Lab) -> bool:
    lab.apply(lab.upload("raw-file", "root-key"))
    lab.apply(lab.upload("unsigned"))
    lab.update()
    assert lab.statuses()[0] == "failed"
    return lab.statuses()[1] == "completed"


@case("audit-leaves-host-in-progress")
def _(lab: Lab) -> bool:
    lab.apply(lab.upload("unsigned"))
    hold_flash(lab)
    lab.run("systemctl stop sysinv-agent")
    release(lab)
    lab.pass_time(3600 + 301)
    lab.login()
    assert lab.statuses() == ["failed"]
    return host_value(lab) == "in-progress"


@case("remove-drops-running-state")
def _(lab: Lab) -> bool:
    uuid = lab.upload("unsigned")
    lab.apply(uuid)
    hold_flash(lab)
    answer = lab.change(uuid, "remove")
    release(lab)
    assert (answer.status_code == 200) == (host_value(lab) == "in-progress")
    return host_value(lab) == "in-progress"


@case("delete-orphans-states")
def _(lab: Lab) -> bool:
    uuid = lab.upload()
    lab.apply(uuid)
    assert lab.api("DELETE", f"/device_images/{uuid}").status_code == 202
    states = lab.get("/device_image_state")["device_image_state"]
    lab.update()
    assert (host_value(lab) == "in-progress") == bool(states)
    return [state["image_uuid"] for state in states] == [None]


@case("label-removal-breaks-list")
def _(lab: Lab) -> bool:
    label = lab.assign("k=v").json()["device_labels"][0]
    lab.apply(lab.upload(), "k=v")
    assert lab.api("DELETE", f"/device_labels/{label['uuid']}").status_code == 204
    answer = lab.api("GET", "/device_images")
    if answer.status_code != 200:
        assert (answer.status_code, lab.said(answer)) == (400, "No device label entry found for None")
    return answer.status_code != 200


@case("label-removal-drops-all-states")
def _(lab: Lab) -> bool:
    label = lab.assign("k1=1", "k2=2").json()["device_labels"][0]
    lab.apply(lab.upload(), "k1=1")
    lab.apply(lab.upload(kind="key-revocation"), "k2=2")
    lab.api("DELETE", f"/device_labels/{label['uuid']}")
    assert lab.statuses() in ([], ["pending"])
    return lab.statuses() == []


@case("label-assign-leaves-host-alone")
def _(lab: Lab) -> bool:
    lab.apply(lab.upload(), "k=v")
    lab.assign("k=v")
    assert lab.statuses() == ["pending"]
    assert host_value(lab) in (None, "pending")
    return host_value(lab) is None


@case("label-assign-keeps-both-images")
def _(lab: Lab) -> bool:
    lab.apply(lab.upload(bitstream_id="11"), "k1=1")
    lab.apply(lab.upload(bitstream_id="2"), "k2=2")
    lab.assign("k1=1", "k2=2")
    return lab.statuses() == ["pending", "pending"]


@case("duplicate-states")
def _(lab: Lab) -> bool:
    uuid = lab.upload()
    lab.apply(uuid, "k1=1", "k2=2")
    lab.assign("k1=1", "k2=2")
    twice = lab.statuses() == ["pending", "pending"]
    assert (lab.change(uuid, "remove", "k1=1").status_code == 500) == twice
    return twice


@case("remove-leaves-host-pending")
def _(lab: Lab) -> bool:
    uuid = lab.upload()
    lab.apply(uuid)
    lab.change(uuid, "remove")
    assert lab.statuses() == []
    return host_value(lab) == "pending"


@case("inventory-reported-once")
def _(lab: Lab) -> bool:
    lab.apply(lab.upload("root-key-A", "root-key"))
    lab.update()
    lab.run(f"rsu bmcimg {CARD}")
    lab.pass_time(120)
    return lab.device["root_key"] == ""


@case("third-identical-label")
def _(lab: Lab) -> bool:
    lab.assign("k=v")
    lab.assign("k=w")
    return lab.assign("k=v").status_code == 200


@case("any-device-labelled")
def _(lab: Lab) -> bool:
    other = next(d for d in lab.get("/pci_devices")["pci_devices"] if d["pdevice_id"] == "0b32")
    answer = lab.assign("k=v", device=other["uuid"])
    lab.apply(lab.upload(), "k=v")
    assert (lab.statuses() == ["pending"]) == (answer.status_code == 200)
    return answer.status_code == 200


def uploaded(lab: Lab, **fields: str) -> Any:
    form = {"bitstream_type": "functional", "pci_vendor": "8086", "pci_device": "0b30", "bitstream_id": "2"}
    return lab.api("POST", "/device_images", data=form | fields, files={"file": ("a", b"bytes")})


@case("device-id-not-checked")
def _(lab: Lab) -> bool:
    return bool(uploaded(lab, pci_device="0b31").json()["error"] == "")


@case("upload-id-not-checked")
def _(lab: Lab) -> bool:
    return bool(uploaded(lab, uuid="junk").json()["error"] == "")


@case("bmc-drops-user-image")
def _(lab: Lab) -> bool:
    user, bmc = lab.upload(bitstream_id="11"), lab.upload(bitstream_id="2", bmc="true")
    lab.apply(user)
    lab.apply(bmc)
    states = lab.get("/device_image_state")["device_image_state"]
    return [state["image_uuid"] for state in states] == [bmc]


@case("upload-booleans-fail")
def _(lab: Lab) -> bool:
    return uploaded(lab, bmc="true").status_code == 500


@case("alarm-without-update")
def _(lab: Lab) -> bool:
    uuid = lab.upload()
    lab.apply(uuid, "nobody=1")
    raised = bool(lab.alarms())
    lab.change(uuid, "remove", "nobody=1")
    lab.api("DELETE", f"/device_images/{uuid}")
    assert bool(lab.alarms()) == raised
    return raised


@case("floating-labels-left")
def _(lab: Lab) -> bool:
    uuid = lab.upload()
    lab.apply(uuid, "nobody=1")
    lab.api("DELETE", f"/device_images/{uuid}")
    return bool(lab.get("/device_labels")["device_labels"])


@case("root-key-blocks-itself")
def _(lab: Lab) -> bool:
    lab.assign("k1=1", "k2=2")
    return lab.change(lab.upload(kind="root-key"), "apply", "k1=1", "k2=2").status_code == 400


@case("apply-again-resets")
def _(lab: Lab) -> bool:
    uuid = lab.upload("unsigned")
    lab.apply(uuid)
    lab.update()
    assert lab.statuses() == ["completed"]
    lab.apply(uuid)
    return lab.statuses() == ["pending"]


@case("agent-not-installed")
def _(lab: Lab) -> bool:
    return lab.device["bitstream_id"] is None


@case("kernel-unknown-to-tools")
def _(lab: Lab) -> bool:
    assert lab.device["bmc_fw_version"] in ("", "D.2.0.21")
    return lab.device["bitstream_id"] == ""


@case("leftover-container", era="containerd", generation="A")
def _(lab: Lab) -> bool:
    assert lab.run(f"ctr -n=k8s.io run {IMAGE_TOOL} v1 true") == ""
    lab.reboot()
    locked = lab.sysinv_host["administrative"] == "locked"
    assert locked == ("No such file" in lab.run("ls /var/run/.sysinv_n3000_reset"))
    return locked


@case("custom-actions-denied")
def _(lab: Lab) -> bool:
    lab.apply(lab.upload("unsigned"))
    return lab.update().status_code == 403


#: What a distributed cloud adds has tests of its own.
OF_ONE_SYSTEM = [name for name in DEFECTS if name not in {defect.name for defect in CLOUD_DEFECTS}]


@pytest.mark.parametrize("name", OF_ONE_SYSTEM)
def test_defect_shows_when_it_is_on_and_not_when_it_is_off(make_lab: MakeLab, name: str) -> None:
    shown = CASES[name]
    assert shown.seen(make_lab("corrected", on=(name, *shown.beside), **dict(shown.lab)))
    assert not shown.seen(make_lab("corrected", on=shown.beside, **dict(shown.lab)))


def test_without_defects_the_alarm_ends_with_the_last_image_that_is_owed(make_lab: MakeLab) -> None:
    """Also where another image is there still, which nothing is owed of."""
    lab = make_lab("corrected")
    owed = lab.upload()
    lab.upload(kind="key-revocation")
    lab.apply(owed)
    assert [alarm["alarm_id"] for alarm in lab.alarms()] == ["900.006"]
    assert lab.api("DELETE", f"/device_images/{owed}").status_code == 202
    assert lab.alarms() == []


def test_corrected_release_has_none() -> None:
    assert not any(Defects("corrected").on(name) for name in DEFECTS)
    assert len(DEFECTS) >= 18


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        # By the dates of section 6.1: fixed in 2020-08, 2021-11, 2022-06; never.
        ("labels-lost-at-boot", {"stx-2020-07"}),
        ("bmc-drops-user-image", {"stx-2020-07"}),
        ("upload-booleans-fail", {"stx-6"}),
        ("leftover-container", {"stx-6", "stx-8"}),
        ("failed-flash-not-reported", {"stx-6", "stx-8", "head"}),
        ("two-images-on-floating-label", {"stx-2020-07", "stx-6", "stx-8", "head"}),
        ("upload-id-not-checked", set()),
    ],
)
def test_releases_have_what_was_not_yet_fixed(name: str, releases: set[str]) -> None:
    assert {release for release in RELEASES if Defects(release).on(name)} == releases


def test_unknown_names_are_told_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="no-such"):
        Defects("head", ["no-such"])
    with pytest.raises(ConfigurationError, match="stx-9"):
        Defects("stx-9")
    with pytest.raises(KeyError):
        Defects("head").on("no-such")
