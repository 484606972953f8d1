"""The first field report (2020-08-05), command for command: four subclouds, two rounds of orchestration.

Two functional images are applied to the same labels on the system controller, where no device carries one.
On each card of a subcloud the second takes the place of the first. References: fact sheet of StarlingX,
sections 4.6 and 5.3; Intel FPGA PAC N3000 Security User Guide (683519).
"""

import pytest

pytestmark = pytest.mark.hil_lab("emulated")
BOTH_WAYS = pytest.mark.parametrize("hil_way", ["cli", "rest"])

SIGNED = "5gldpc_1x2x25g_20ww2.3_swap_ddr4_2xrefresh-signed-ssl-csk1.bin"
UNSIGNED = "5gldpc_1x2x25g_20ww2.3_swap_ddr4_2xrefresh-unsigned.bin"
#: The labels that each image is applied to, and the label of each subcloud's card.
EVERY = {"subcloud": "abc", "subcloud3": "3", "subcloud4": "4"}
OWN = {
    "subcloud1": {"subcloud": "abc"},
    "subcloud2": {"subcloud": "abc"},
    "subcloud3": {"subcloud3": "3"},
    "subcloud4": {"subcloud4": "4"},
}


@pytest.fixture
def reported(cloud):
    """Have the cards as they were: the third has a root key, two move from b3 to b2 at their reset."""
    cloud.given("subcloud3/card0", root="A")
    cloud.given("subcloud1/card0", boots_at="0000:b3:00.0")
    cloud.given("subcloud2/card0", boots_at="0000:b3:00.0")
    return cloud


def first_round(cloud):
    """Bring the signed image, bitstream id 11, to all, one after another; return its uuid."""
    for name, labels in OWN.items():
        cloud.subclouds[name].label(**labels)
    eleven = cloud.controller.upload("report/11", filename=SIGNED, bitstream_id="11", name=None)
    cloud.controller.apply(eleven, **EVERY)
    cloud.audit()
    assert cloud.orchestrate(subcloud_apply_type="serial").state == "complete"
    cloud.audit()
    cloud.delete_strategy()  # which the report does not write down: there is one strategy at most
    return eleven


def second_round(cloud):
    """Bring the unsigned image, bitstream id 2, to all, four at a time."""
    two = cloud.controller.upload("report/2", filename=UNSIGNED, bitstream_id="2", name=None)
    cloud.controller.apply(two, **EVERY)
    cloud.audit()
    assert cloud.orchestrate(max_parallel=4).state == "failed"  # on subcloud3, whose card refuses it
    cloud.audit()


def last_said(judged, reporter):
    """Return the last verdict on what a reporter says of each of its subjects, by the subject's name."""
    return {verdict.subject.name: verdict for verdict in judged.judged if verdict.reporter == reporter}


def firmware(judged):
    """Return what the controller last said of the firmware of each subcloud, and whether that is so."""
    return {verdict.claimed: verdict.kind.value for verdict in last_said(judged, "dcmanager-sync").values()}


@BOTH_WAYS
@pytest.mark.hil_release("stx-2020-07")
@pytest.mark.hil_expects(
    verdicts={
        # Controller and subcloud contradict each other about image 11, and each card holds one image.
        "controller-applied": "CONTRADICTION",
        "sysinv-applied": "CONTRADICTION",  # on the controller itself: two images for the same labels
        # Subclouds 1 and 2: their labels are gone again, so that nobody compares anything. 3 and 4: true.
        "dcmanager-sync": "FALSE_SUCCESS",
        # What else this release gets wrong of the image that subcloud3's card rightly refuses, and of none.
        "sysinv-host": "FALSE_SUCCESS",  # LP 1890296: a host with a failed image has nothing to update
        "alarm-900.006": "STALE",  # LP 1883293: it stands on the controller, which has no card
    }
)
def test_two_rounds(reported, judge):
    """In-sync for the wrong reason, out-of-sync although every state says completed, and a right refusal."""
    eleven = first_round(reported)
    for name in ("subcloud1", "subcloud2"):  # "label as it got removed due to LP-1890296"
        reported.subclouds[name].label(**OWN[name])
    second_round(reported)
    judged = judge()
    assert firmware(judged) == {
        "the firmware of subcloud1 is in-sync": "FALSE_SUCCESS",
        "the firmware of subcloud2 is in-sync": "FALSE_SUCCESS",
        "the firmware of subcloud3 is out-of-sync": "MATCH",
        "the firmware of subcloud4 is out-of-sync": "MATCH",
    }
    verdict = last_said(judged, "controller-applied")[f"subcloud4/image/{eleven}"]
    assert verdict.kind.value == "CONTRADICTION", verdict
    assert ["applied True" in said for said in verdict.claims] == [True, False], verdict


@BOTH_WAYS
@pytest.mark.hil_release(
    "stx-2020-07",
    corrected_defects=(
        *("labels-lost-at-boot", "duplicate-applied-labels", "host-not-pending-after-failure"),
        "alarm-without-update",
    ),
)
def test_the_workaround(reported, judge):
    """The old image is removed before the new one is applied: everything that is said is true.

    Four defects of the release that have nothing to do with the two images are corrected: labels that are
    lost at a boot and what else LP 1890296 is about, and an alarm without an update (LP 1883293). The third
    card refuses the unsigned image as before: its step fails, and its subcloud is out-of-sync.
    """
    eleven = first_round(reported)
    reported.controller.remove(eleven, **EVERY)
    second_round(reported)
    assert firmware(judge()) == {
        "the firmware of subcloud1 is in-sync": "MATCH",
        "the firmware of subcloud2 is in-sync": "MATCH",
        "the firmware of subcloud3 is out-of-sync": "MATCH",
        "the firmware of subcloud4 is in-sync": "MATCH",
    }
