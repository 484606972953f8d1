"""A firmware strategy from its creation to its end, and what it says meanwhile (sections 5.4 to 5.6)."""

from __future__ import annotations

import pytest
from support.cloud_lab import CloudLab, MakeCloud

from harness.emulator.card import CardState

KEYED = CardState(sr_root="ab" * 32)


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
