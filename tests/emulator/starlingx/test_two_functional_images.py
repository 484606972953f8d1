"""Two functional images: what is applied, and what a device is owed (the table of section 4.6)."""

from __future__ import annotations

from typing import Any

import pytest
from support.starlingx_lab import Lab, MakeLab

FIELD_LABELS = ("subcloud=abc", "subcloud3=3", "subcloud4=4")


def pairs(*labels: str) -> list[dict[str, str]]:
    return [dict([tuple(label.split("="))]) for label in labels]  # type: ignore[list-item]


def applied(lab: Lab, *uuids: str) -> list[Any]:
    images = {image["uuid"]: image for image in lab.get("/device_images")["device_images"]}
    return [(images[uuid]["applied"], images[uuid]["applied_labels"]) for uuid in uuids]


def pending(lab: Lab) -> list[str]:
    states = lab.get("/device_image_state")["device_image_state"]
    assert {state["status"] for state in states} <= {"pending"}
    return [state["image_uuid"] for state in states]


def both(lab: Lab, **second: str) -> tuple[str, str]:
    return lab.upload(bitstream_id="11"), lab.upload(bitstream_id="2", **second)


def test_system_controller_has_both_applied_and_no_state(make_lab: MakeLab) -> None:
    lab = make_lab(host=False)
    first, second = both(lab)
    for uuid in (first, second):
        lab.apply(uuid, *FIELD_LABELS)
    assert applied(lab, first, second) == [(True, pairs(*FIELD_LABELS))] * 2
    assert pending(lab) == []


def test_only_the_label_in_the_body(lab: Lab) -> None:
    lab.assign("subcloud4=4")
    first, second = both(lab)
    for uuid in (first, second):
        lab.apply(uuid, "subcloud4=4")
    assert applied(lab, first, second) == [(False, None), (True, pairs("subcloud4=4"))]
    assert pending(lab) == [second]


def test_labels_of_other_subclouds_in_the_body(lab: Lab) -> None:
    lab.assign("subcloud4=4")
    first, second = both(lab)
    for uuid in (first, second):
        lab.apply(uuid, *FIELD_LABELS)
    assert applied(lab, first, second) == [
        (True, pairs("subcloud=abc", "subcloud3=3")),
        (True, pairs(*FIELD_LABELS)),
    ]
    assert pending(lab) == [second]


def test_without_labels(lab: Lab) -> None:
    first, second = both(lab)
    for uuid in (first, second):
        lab.apply(uuid)
    assert applied(lab, first, second) == [(True, [{}])] * 2
    assert pending(lab) == [second]


def test_one_device_with_the_labels_of_both(lab: Lab) -> None:
    lab.assign("k1=1", "k2=2")
    first, second = both(lab)
    lab.apply(first, "k1=1")
    lab.apply(second, "k2=2")
    assert applied(lab, first, second) == [(True, pairs("k1=1")), (True, pairs("k2=2"))]
    assert pending(lab) == [second]


def test_user_and_bmc_image_stay_side_by_side(lab: Lab) -> None:
    user, bmc = both(lab, bmc="true")
    for uuid in (user, bmc):
        lab.apply(uuid)
    assert applied(lab, user, bmc) == [(True, [{}])] * 2
    assert pending(lab) == [user, bmc]


def test_bmc_image_after_one_with_retimer_stays_beside_it(lab: Lab) -> None:
    plain = lab.upload(bitstream_id="11", bmc="true")
    retimer = lab.upload(bitstream_id="2", bmc="true", retimer_included="true")
    for uuid in (plain, retimer):
        lab.apply(uuid)
    assert pending(lab) == [retimer]
    lab.apply(plain)
    assert pending(lab) == [retimer, plain]


def test_both_on_a_floating_label_that_a_device_is_given(lab: Lab) -> None:
    first, second = both(lab)
    for uuid in (first, second):
        lab.apply(uuid, "k=v")
    lab.assign("k=v")
    assert pending(lab) == [first, second]
    # Section 4.5: the host is not told, and no alarm is raised.
    assert lab.sysinv_host["device_image_update"] is None
    assert lab.alarms() == []


def test_one_image_on_two_floating_labels_of_one_device(lab: Lab) -> None:
    image = lab.upload()
    lab.apply(image, "k1=1", "k2=2")
    lab.assign("k1=1", "k2=2")
    assert pending(lab) == [image, image]
    answer = lab.change(image, "remove", "k1=1")
    assert answer.status_code == 500
    assert lab.said(answer) == "Multiple rows were found when exactly one was required"


@pytest.mark.parametrize("labels", [(), FIELD_LABELS])
def test_corrected_system_keeps_one_image_for_a_label(make_lab: MakeLab, labels: tuple[str, ...]) -> None:
    lab = make_lab("corrected")
    first, second = both(lab)
    for uuid in (first, second):
        lab.apply(uuid, *labels)
    assert [known for known, _ in applied(lab, first, second)] == [False, True]
