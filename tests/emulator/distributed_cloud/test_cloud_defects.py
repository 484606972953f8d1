"""Each known defect of dcmanager and proxy, switched on alone in a corrected cloud, and without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from support.cloud_lab import CloudLab, MakeCloud, sync_of
from support.starlingx_lab import RECIPES

from harness.emulator.card import CardState
from harness.emulator.distributed_cloud.known import CLOUD_DEFECTS
from harness.emulator.starlingx.defects import RELEASES, Defects

KEYED = CardState(sr_root=RECIPES["root-key-A"].root_entry_hash())


@dataclass(frozen=True)
class Case:
    """What makes a defect show: ``seen`` returns whether it does; ``beside``: others that it needs."""

    seen: Callable[[CloudLab], bool]
    beside: tuple[str, ...] = ()
    cards: tuple[CardState, ...] = (CardState(),)


CASES: dict[str, Case] = {}


def case(name: str, *beside: str, cards: tuple[CardState, ...] = (CardState(),)) -> Callable[[Any], Any]:
    """Note the function below as what shows the defect ``name``."""

    def note(seen: Callable[[CloudLab], bool]) -> Callable[[CloudLab], bool]:
        CASES[name] = Case(seen, beside, cards)
        return seen

    return note


def apply(lab: CloudLab, recipe: str = "unsigned", *labels: str, **fields: str) -> str:
    """Have an image applied on the controller, and the audit look."""
    uuid = lab.upload(recipe, **fields)
    lab.change(uuid, "apply", *labels)
    lab.audit()
    return uuid


def refit(lab: CloudLab) -> None:
    """Put a new card into the first subcloud, which holds nothing of what its rows say."""
    lab.machines["sub1"].card("card0").fit(CardState())
    lab.cloud.audit_now()


@case("no-labels-in-sync")
def _(lab: CloudLab) -> bool:
    lab.assign("sub1", "k=v")
    apply(lab, "unsigned", "k=v")
    assert lab.orchestrate() == "complete"
    [label] = lab.sub("sub1").get("/device_labels")["device_labels"]
    lab.sub("sub1").api("platform", "DELETE", f"/v1/device_labels/{label['uuid']}")
    refit(lab)
    return lab.statuses() == {"sub1": "in-sync"}


@case("sync-from-rows-only")
def _(lab: CloudLab) -> bool:
    apply(lab)
    assert lab.orchestrate() == "complete"
    refit(lab)
    return lab.statuses() == {"sub1": "in-sync"}


@case("sync-by-uuid", "sync-from-rows-only")
def _(lab: CloudLab) -> bool:
    apply(lab)
    assert lab.orchestrate() == "complete"
    lab.delete()
    # The controller has the same image by another uuid, as one has that took over a subcloud.
    for image in lab.central.get("/device_images")["device_images"]:
        lab.change(image["uuid"], "remove")
    apply(lab)
    return lab.statuses() == {"sub1": "out-of-sync"}


@case("key-images-not-audited")
def _(lab: CloudLab) -> bool:
    apply(lab, "root-key-A", kind="root-key")
    return lab.statuses() == {"sub1": "unknown"}


@case("status-stays-unknown")
def _(lab: CloudLab) -> bool:
    apply(lab)
    return lab.statuses() == {"sub1": "unknown"}


@case("no-devices-in-sync")
def _(lab: CloudLab) -> bool:
    sub = lab.sub("sub1")
    host = sub.get("/ihosts")["ihosts"][0]["uuid"]
    lock = [{"op": "replace", "path": "/action", "value": "lock"}]
    sub.api("platform", "PATCH", f"/v1/ihosts/{host}", json=lock)
    lab.pass_time(10)
    for device in sub.get("/pci_devices")["pci_devices"]:
        disable = [{"op": "replace", "path": "/enabled", "value": "false"}]
        answer = sub.api("platform", "PATCH", f"/v1/pci_devices/{device['uuid']}", json=disable)
        assert answer.status_code == 200, answer.text
    apply(lab)
    return lab.statuses() == {"sub1": "in-sync"}


@case("regionone-error-in-sync")
def _(lab: CloudLab) -> bool:
    apply(lab)
    assert lab.statuses() == {"sub1": "out-of-sync"}
    lab.controller.troubles.refuse_requests(1)
    lab.cloud.audit_now()
    return lab.statuses() == {"sub1": "in-sync"}


def manage(lab: CloudLab, state: str) -> None:
    answer = lab.central.api("dcmanager", "PATCH", "/v1.0/subclouds/sub1", json={"management-state": state})
    assert answer.status_code == 200, answer.text


@case("unmanaged-in-sync")
def _(lab: CloudLab) -> bool:
    manage(lab, "unmanaged")
    apply(lab)
    return lab.statuses() == {"sub1": "in-sync"}


@case("forced-audit-lost")
def _(lab: CloudLab) -> bool:
    apply(lab)
    manage(lab, "unmanaged")
    lab.audit()
    manage(lab, "managed")
    lab.audit()
    [listed] = lab.central.get("/subclouds", "dcmanager")["subclouds"]
    lost = sync_of(listed) == "unknown"
    lab.pass_time(3600)
    assert lab.statuses() == {"sub1": "out-of-sync"}
    return lost


@case("out-of-sync-until-all-finish", cards=(CardState(), CardState()))
def _(lab: CloudLab) -> bool:
    apply(lab)
    card = lab.machines["sub2"].card("card0")
    card.hold("programming")
    assert lab.create(**{"subcloud-apply-type": "serial"}).status_code == 200
    lab.act("apply")
    lab.wait_held("sub2", "programming")
    assert lab.states() == {"sub1": "complete", "sub2": "applying fw update strategy"}
    status = lab.statuses()["sub1"]
    card.release()
    lab.run_out()
    assert lab.strategy()["state"] == "complete"
    lab.audit()
    assert lab.statuses() == {"sub1": "in-sync", "sub2": "in-sync"}
    return status == "out-of-sync"


@case("finishing-forces-in-sync", "two-images-on-floating-label")
def _(lab: CloudLab) -> bool:
    lab.assign("sub1", "k=v")
    apply(lab, "A/csk0", "k=v", bitstream_id="11")
    apply(lab, "unsigned", "k=v")
    assert lab.orchestrate() == "complete"
    forced = lab.statuses() == {"sub1": "in-sync"}
    lab.audit()
    assert lab.statuses() == {"sub1": "out-of-sync"}
    return forced


@case("finishing-without-retries")
def _(lab: CloudLab) -> bool:
    apply(lab)
    lab.system("sub1").troubles.go_away_after_unlock(600)
    failed = lab.orchestrate() == "failed"
    assert not failed or lab.steps()["sub1"]["details"].startswith("finishing fw update: ")
    lab.pass_time(600)
    lab.cloud.audit_now()
    assert lab.statuses() == {"sub1": "in-sync"}
    return failed


@case("subcloud-labels-applied")
def _(lab: CloudLab) -> bool:
    lab.assign("sub1", "k=v")
    apply(lab, "unsigned", "k=v", "other=1")
    assert lab.orchestrate() == "complete"
    [image] = lab.sub("sub1").get("/device_images")["device_images"]
    assert image["applied_labels"] in ([{"k": "v"}], [{"k": "v"}, {"other": "1"}])
    return image["applied_labels"] == [{"k": "v"}]


@case("revocation-upload-fails", cards=(KEYED,))
def _(lab: CloudLab) -> bool:
    apply(lab, "cancel-A-csk1", kind="key-revocation", revoke_key_id="1")
    failed = lab.orchestrate() == "failed"
    assert failed == lab.steps()["sub1"]["details"].startswith("importing firmware: ")
    assert (lab.machines["sub1"].card("card0").cancelled("SR") == {1}) is not failed
    return failed


@case("rerun-alternates-images", "two-images-on-floating-label", "sync-from-rows-only")
def _(lab: CloudLab) -> bool:
    lab.assign("sub1", "k=v")
    apply(lab, "A/csk0", "k=v", bitstream_id="11")
    apply(lab, "unsigned", "k=v")
    found = []
    for _ in range(3):
        lab.orchestrate()
        lab.audit()
        assert lab.statuses() == {"sub1": "out-of-sync"}
        lab.delete()
        found.append(lab.device("sub1")["bitstream_id"])
    assert (found[0] == found[2]) or found[0] == found[1]
    return found[0] != found[1]


@case("leftover-vim-strategy", cards=(KEYED,))
def _(lab: CloudLab) -> bool:
    refused = apply(lab, "unsigned")
    assert lab.orchestrate() == "failed"
    lab.delete()
    lab.change(refused, "remove")
    apply(lab, "A/csk0", bitstream_id="11")
    failed = lab.orchestrate() == "failed"
    assert failed == ("There already is an existing strategy" in lab.steps()["sub1"]["details"])
    return failed


@case("upload-without-vault-file")
def _(lab: CloudLab) -> bool:
    lab.cloud.vault.take_files(False)
    form = {"bitstream_type": "functional", "pci_vendor": "8086", "pci_device": "0b30", "bitstream_id": "2"}
    answer = lab.central.api("proxy", "POST", "/v1/device_images", data=form, files={"file": ("a", b"x")})
    assert answer.status_code == 200
    taken = answer.json()["error"] == ""
    assert taken == bool(lab.central.get("/device_images")["device_images"])
    return bool(taken)


@pytest.mark.parametrize("name", CASES)
def test_defect_shows_when_it_is_on_and_not_when_it_is_off(make_cloud: MakeCloud, name: str) -> None:
    shown = CASES[name]
    assert shown.seen(make_cloud("corrected", on=(name, *shown.beside), cards=shown.cards))
    assert not shown.seen(make_cloud("corrected", on=shown.beside, cards=shown.cards))


def test_every_defect_that_is_not_the_vims_is_shown() -> None:
    assert {defect.name for defect in CLOUD_DEFECTS if not defect.name.startswith("vim-")} == set(CASES)


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        # By the dates of section 6.1: fixed in 2020-08, 2021-11, 2022-03; came and went; never.
        ("leftover-vim-strategy", {"stx-2020-07"}),
        ("sync-by-uuid", {"stx-2020-07"}),
        ("key-images-not-audited", {"stx-6"}),
        ("unmanaged-in-sync", set()),
        ("finishing-forces-in-sync", {"stx-6", "stx-8", "head"}),
        ("no-labels-in-sync", {"stx-2020-07", "stx-6", "stx-8", "head"}),
    ],
)
def test_releases_of_a_cloud_have_what_was_not_yet_fixed(name: str, releases: set[str]) -> None:
    assert {release for release in RELEASES if Defects(release).on(name)} == releases
