"""A firmware strategy from its creation to its end, and what it says meanwhile (sections 5.4 to 5.6)."""

from __future__ import annotations

import pytest
from support.cloud_lab import CloudLab, MakeCloud

from harness.emulator.card import CardState


def prepare(lab: CloudLab, recipe: str = "unsigned") -> str:
    """Label the card of every subcloud, and have an image applied to that label on the controller."""
    for name in lab.machines:
        lab.assign(name, "k=v")
    uuid = lab.upload(recipe)
    lab.change(uuid, "apply", "k=v")
    lab.audit()
    return uuid


@pytest.mark.parametrize("release", ["stx-2020-07", "stx-6", "stx-8", "head", "corrected"])
def test_strategy_brings_the_image_to_every_card(make_cloud: MakeCloud, release: str) -> None:
    lab = make_cloud(release, cards=(CardState(), CardState()))
    assert lab.statuses() == {"sub1": "in-sync", "sub2": "in-sync"}
    before = lab.device("sub1")["bitstream_id"]
    uuid = prepare(lab)
    assert lab.statuses() == {"sub1": "out-of-sync", "sub2": "out-of-sync"}
    assert lab.orchestrate() == "complete"
    assert lab.states() == {"sub1": "complete", "sub2": "complete"}
    lab.audit()
    assert lab.statuses() == {"sub1": "in-sync", "sub2": "in-sync"}
    for name in lab.machines:
        assert lab.device(name)["bitstream_id"] != before
        assert [image["uuid"] for image in lab.sub(name).get("/device_images")["device_images"]] == [uuid]
    lab.delete()
    assert lab.central.api("dcmanager", "GET", "/v1.0/sw-update-strategy?type=firmware").status_code == 404
    assert lab.system("sub1").vim.strategy() is None


def test_what_the_controller_does_not_list_any_more_is_taken_from_the_subcloud(make_cloud: MakeCloud) -> None:
    lab = make_cloud("corrected")
    first = prepare(lab)
    assert lab.orchestrate() == "complete"
    lab.delete()
    lab.change(first, "remove", "k=v")
    second = lab.upload("bmc-A/csk0", bitstream_id="11", bmc="true")  # beside which a user image stays
    lab.change(second, "apply", "k=v")
    lab.audit()
    lab.orchestrate()  # whether the card takes it is another matter
    applied = {i["uuid"]: i["applied"] for i in lab.sub("sub1").get("/device_images")["device_images"]}
    assert applied == {first: False, second: True}


def test_a_strategy_that_is_left_in_a_vim_makes_room(make_cloud: MakeCloud) -> None:
    lab = make_cloud("head")
    vim = lab.system("sub1").vim
    vim.create()
    lab.pass_time(300)
    left = vim.strategy()
    assert left is not None and left["state"] == "build-failed"
    prepare(lab)
    assert lab.orchestrate() == "complete"
    there = vim.strategy()
    assert there is not None and there["uuid"] != left["uuid"]


def test_an_image_that_is_deleted_leaves_the_vault(make_cloud: MakeCloud) -> None:
    lab = make_cloud("head")
    uuid = lab.upload("unsigned")
    image = lab.central.get(f"/device_images/{uuid}")
    assert lab.cloud.vault.read(image) is not None
    assert lab.central.api("proxy", "DELETE", f"/v1/device_images/{uuid}").status_code == 202
    assert lab.cloud.vault.read(image) is None


def test_a_host_that_is_off_leaves_the_status_as_it_is(make_cloud: MakeCloud) -> None:
    lab = make_cloud("corrected")
    prepare(lab)
    assert lab.orchestrate() == "complete"
    lab.machines["sub1"].power_off()
    lab.cloud.audit_now()
    assert lab.statuses() == {"sub1": "in-sync"}
