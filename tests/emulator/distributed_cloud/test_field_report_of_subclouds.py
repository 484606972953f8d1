"""The first field report, command for command: two rounds on four subclouds (section 5.3)."""

from __future__ import annotations

from support.cloud_lab import CloudLab, MakeCloud
from support.starlingx_lab import RECIPES

from harness.emulator.card import CardState

LABELS = ("subcloud=abc", "subcloud3=3", "subcloud4=4")
#: Label and card of each subcloud; those at b2 stand elsewhere from a boot to the reset after it.
OWN = {"sub1": "subcloud=abc", "sub2": "subcloud=abc", "sub3": "subcloud3=3", "sub4": "subcloud4=4"}
MOVING, STAYING = ("0000:b2:00.0", "0000:b3:00.0"), ("0000:b4:00.0", None)


def reported(make_cloud: MakeCloud, release: str, **more: object) -> CloudLab:
    """Return the cloud of the report: the card of the third subcloud has a root key."""
    keyed = CardState(sr_root=RECIPES["root-key-A"].root_entry_hash())
    return make_cloud(
        release,
        cards=(CardState(), CardState(), keyed, CardState()),
        places=(MOVING, MOVING, STAYING, STAYING),
        **more,
    )


def labels_of(lab: CloudLab, name: str) -> list[str]:
    found = lab.sub(name).get("/device_labels")["device_labels"]
    return [f"{entry['label_key']}={entry['label_value']}" for entry in found if entry["pcidevice_uuid"]]


def images_of(lab: CloudLab, name: str) -> dict[str, tuple[bool, object]]:
    found = lab.sub(name).get("/device_images")["device_images"]
    return {image["bitstream_id"]: (image["applied"], image["applied_labels"]) for image in found}


def first_round(lab: CloudLab) -> None:
    for name, label in OWN.items():
        lab.assign(name, label)
    eleven = lab.upload("A/csk1", bitstream_id="11")
    lab.change(eleven, "apply", *LABELS)
    lab.audit()
    assert lab.orchestrate(**{"subcloud-apply-type": "serial"}) == "complete"
    lab.audit()
    assert set(lab.statuses().values()) == {"in-sync"}
    lab.delete()


def second_round(lab: CloudLab) -> str:
    two = lab.upload("unsigned", bitstream_id="2")
    lab.change(two, "apply", *LABELS)
    lab.audit()
    state = lab.orchestrate(**{"max-parallel-subclouds": "4"})
    lab.audit()
    return state


def test_both_rounds_end_as_they_were_reported(make_cloud: MakeCloud) -> None:
    lab = reported(make_cloud, "stx-2020-07")
    first_round(lab)
    # "label as it got removed due to LP-1890296"
    assert [labels_of(lab, name) for name in OWN] == [[], [], ["subcloud3=3"], ["subcloud4=4"]]
    for name in ("sub1", "sub2"):
        lab.assign(name, OWN[name])
    assert second_round(lab) == "failed"
    # "second round finished with subcloud1 & 2 in-sync, but subcloud3 & 4 out-of-sync"
    assert lab.statuses() == {
        "sub1": "in-sync",
        "sub2": "in-sync",
        "sub3": "out-of-sync",
        "sub4": "out-of-sync",
    }
    assert lab.states() == {"sub1": "complete", "sub2": "complete", "sub3": "failed", "sub4": "complete"}
    central = lab.central.get("/device_images")["device_images"]
    every = [{"subcloud": "abc"}, {"subcloud3": "3"}, {"subcloud4": "4"}]
    assert {image["bitstream_id"]: image["applied_labels"] for image in central} == {"11": every, "2": every}
    assert images_of(lab, "sub4") == {"11": (False, None), "2": (True, [{"subcloud4": "4"}])}
    # "out-of-sync even though the device image state shows completed"
    states = lab.sub("sub4").get("/device_image_state")["device_image_state"]
    assert [state["status"] for state in states] == ["completed"]
    assert [labels_of(lab, name) for name in ("sub1", "sub2")] == [[], []]


def test_today_the_old_image_is_applied_to_the_labels_of_others(make_cloud: MakeCloud) -> None:
    lab = reported(make_cloud, "head")
    first_round(lab)
    assert [labels_of(lab, name) for name in OWN] == [[label] for label in OWN.values()]
    second_round(lab)
    # "today image 11 would show applied True with the two other labels"
    others = [{"subcloud": "abc"}, {"subcloud3": "3"}]
    assert images_of(lab, "sub4")["11"] == (True, others)
    # "FinishingFwUpdateState forces in-sync at the end, then the audit ... flips it to out-of-sync"
    assert lab.statuses()["sub4"] == "out-of-sync"


def test_the_old_image_that_is_removed_first_leaves_all_in_sync(make_cloud: MakeCloud) -> None:
    lab = reported(make_cloud, "head")
    first_round(lab)
    [eleven] = [image["uuid"] for image in lab.central.get("/device_images")["device_images"]]
    lab.change(eleven, "remove", *LABELS)
    second_round(lab)
    assert {name: status for name, status in lab.statuses().items() if name != "sub3"} == {
        "sub1": "in-sync",
        "sub2": "in-sync",
        "sub4": "in-sync",
    }
    assert lab.statuses()["sub3"] == "out-of-sync"  # its card refuses an unsigned image


def test_corrected_release_lists_one_image_and_fails_where_the_card_refuses(make_cloud: MakeCloud) -> None:
    lab = reported(make_cloud, "corrected")
    first_round(lab)
    assert second_round(lab) == "failed"
    assert lab.states() == {"sub1": "complete", "sub2": "complete", "sub3": "failed", "sub4": "complete"}
    assert lab.statuses() == {
        "sub1": "in-sync",
        "sub2": "in-sync",
        "sub3": "out-of-sync",
        "sub4": "in-sync",
    }
    central = lab.central.get("/device_images")["device_images"]
    assert {image["bitstream_id"]: image["applied"] for image in central} == {"11": False, "2": True}
