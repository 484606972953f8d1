"""dcmanager's API: what its routes answer, and how they say no (section 5.4)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.cloud_lab import CloudLab, MakeCloud

from harness.emulator.card import CardState

STRATEGY = {
    "id", "type", "subcloud-apply-type", "max-parallel-subclouds", "stop-on-failure", "state", "created-at",
    "updated-at", "extra-args",
}  # fmt: skip
STEP = {
    "id", "cloud", "stage", "state", "details", "started-at", "finished-at", "created-at", "updated-at",
}  # fmt: skip
UNABLE = "Unable to create strategy of type 'firmware': Bad strategy request: "


@pytest.fixture
def lab(make_cloud: MakeCloud) -> CloudLab:
    """Two subclouds, and an image that both need."""
    made = make_cloud("head", cards=(CardState(), CardState()))
    made.change(made.upload("unsigned"), "apply")
    made.audit()
    return made


def said(answer: Any) -> tuple[int, str]:
    """Return status and text of an error, as the public client reads it from the page."""
    text = re.sub(r"<[^>]*>", "", re.sub(r"(?s).*<body>|</body>.*", "", answer.text))
    lines = [line.strip() for line in text.strip().split("\n")[1:]]
    for code, letter in (("&#x27;", "'"), ("&quot;", '"')):
        lines = [line.replace(code, letter) for line in lines]
    return answer.status_code, lines[1]


def test_subclouds_are_listed_with_the_status_of_each_endpoint(lab: CloudLab) -> None:
    first = lab.central.get("/subclouds/", "dcmanager")["subclouds"][0]
    assert (first["id"], first["name"], first["management-state"], first["availability-status"]) == (
        1,
        "sub1",
        "managed",
        "online",
    )
    assert [entry["endpoint_type"] for entry in first["endpoint_sync_status"]] == [
        "platform", "identity", "dc-cert", "firmware", "kubernetes", "kube-rootca", "software",
    ]  # fmt: skip
    assert first["sync_status"] == "out-of-sync"
    shown = lab.central.get("/subclouds/sub1", "dcmanager")
    assert shown == lab.central.get("/subclouds/1", "dcmanager")
    assert "sync_status" not in shown
    detailed = lab.central.get("/subclouds/sub1/detail", "dcmanager")
    assert shown.items() <= detailed.items()
    assert "oam_floating_ip" in detailed


def test_unknown_subcloud_is_a_404(lab: CloudLab) -> None:
    answer = lab.central.api("dcmanager", "GET", "/v1.0/subclouds/sub9")
    assert said(answer) == (404, "Subcloud not found")


def test_an_error_is_json_for_who_takes_nothing_else(lab: CloudLab) -> None:
    headers = {"Accept": "application/json"}
    answer = lab.central.api("dcmanager", "GET", "/v1.0/subclouds/sub9", headers=headers)
    assert answer.json() == {"status": 404, "title": "Not Found", "description": "Subcloud not found"}


def test_a_token_is_asked_for(lab: CloudLab) -> None:
    assert lab.central.ask("dcmanager", "GET", "/v1.0/subclouds").status_code == 401


def test_strategy_has_these_keys_and_defaults(lab: CloudLab) -> None:
    made = lab.create().json()
    assert set(made) == STRATEGY
    assert (made["type"], made["state"], made["max-parallel-subclouds"], made["stop-on-failure"]) == (
        "firmware",
        "initial",
        2,
        False,
    )
    step = lab.steps()["sub1"]
    assert set(step) == STEP
    assert (step["stage"], step["state"], step["details"], step["started-at"]) == (1, "initial", "", None)
    assert lab.central.get("/sw-update-strategy/steps/sub1", "dcmanager") == step


@pytest.mark.parametrize(
    ("options", "parallel", "stop"),
    [
        ({"subcloud-apply-type": "serial", "max-parallel-subclouds": "7"}, 1, False),
        ({"subcloud-apply-type": "parallel", "max-parallel-subclouds": "7"}, 7, False),
        ({"stop-on-failure": "true"}, 2, True),
    ],
)
def test_options_of_a_strategy(lab: CloudLab, options: dict[str, str], parallel: int, stop: bool) -> None:
    made = lab.create(**options).json()
    assert (made["max-parallel-subclouds"], made["stop-on-failure"]) == (parallel, stop)


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        ({"type": "tea"}, 400, "type invalid"),
        ({"subcloud-apply-type": "both"}, 400, "subcloud-apply-type invalid"),
        ({"max-parallel-subclouds": "0"}, 400, "max-parallel-subclouds invalid"),
        ({"stop-on-failure": "yes"}, 400, "stop-on-failure invalid"),
        ({"subcloud_group": "none"}, 400, "Invalid group_id"),
        (
            {"subcloud_group": "Default", "cloud_name": "sub1"},
            400,
            "cloud_name and subcloud_group are mutually exclusive",
        ),
        ({"cloud_name": "sub9"}, 422, f"{UNABLE}Subcloud sub9 does not exist"),
    ],
)
def test_strategy_that_cannot_be(lab: CloudLab, options: dict[str, str], status: int, text: str) -> None:
    assert said(lab.create(**options)) == (status, text)


def test_one_strategy_of_any_type_is_all(lab: CloudLab) -> None:
    assert lab.create().status_code == 200
    assert said(lab.create()) == (422, f"{UNABLE}Strategy of type: 'firmware' already exists")
    kubernetes = lab.create(type="kubernetes")
    assert said(kubernetes)[1].endswith("Strategy of type: 'firmware' already exists")


def test_a_subcloud_in_sync_needs_no_strategy(lab: CloudLab) -> None:
    lab.change(lab.central.get("/device_images")["device_images"][0]["uuid"], "remove")
    lab.audit()
    assert said(lab.create(cloud_name="sub1")) == (
        422,
        f"{UNABLE}Subcloud sub1 does not require firmware update",
    )
    assert said(lab.create()) == (422, f"{UNABLE}Strategy has no steps to apply")


def test_an_unknown_status_stands_in_the_way(lab: CloudLab) -> None:
    lab.upload("A/csk0")
    assert said(lab.create()) == (
        422,
        f"{UNABLE}firmware sync status is unknown for one or more subclouds",
    )


def test_named_subcloud_is_the_only_step(lab: CloudLab) -> None:
    lab.create(cloud_name="sub2")
    assert set(lab.steps()) == {"sub2"}


def test_a_group_has_its_own_subclouds_and_way(lab: CloudLab) -> None:
    group = {"name": "north", "update_apply_type": "serial", "max_parallel_subclouds": 5}
    assert lab.central.api("dcmanager", "POST", "/v1.0/subcloud-groups/", json=group).status_code == 200
    answer = lab.central.api(
        "dcmanager", "PATCH", "/v1.0/subclouds/sub2", files={"group_id": (None, "north")}
    )
    assert answer.status_code == 200
    assert [
        s["name"] for s in lab.central.get("/subcloud-groups/north/subclouds", "dcmanager")["subclouds"]
    ] == ["sub2"]
    made = lab.create(subcloud_group="north").json()
    assert (made["subcloud-apply-type"], made["max-parallel-subclouds"]) == ("serial", 1)
    assert set(lab.steps()) == {"sub2"}


def test_acts_in_another_state_are_refused(lab: CloudLab) -> None:
    lab.create()
    text = "Unable to abort strategy of type 'firmware': Bad strategy request: "
    assert said(lab.act("abort")) == (422, f"{text}Strategy in state initial cannot be aborted")
    lab.act("apply")
    lab.run_out()
    text = "Unable to apply strategy of type 'firmware': Bad strategy request: "
    assert said(lab.act("apply")) == (422, f"{text}Strategy in state complete cannot be applied")


def test_a_running_strategy_cannot_be_deleted(lab: CloudLab) -> None:
    lab.machines["sub1"].card("card0").hold("programming")
    lab.create()
    lab.act("apply")
    lab.wait_held("sub1", "programming")
    answer = lab.central.api("dcmanager", "DELETE", "/v1.0/sw-update-strategy?type=firmware")
    text = "Unable to delete strategy of type 'firmware': Bad strategy request: "
    assert said(answer) == (422, f"{text}Strategy in state applying cannot be deleted")
    lab.machines["sub1"].card("card0").release()
    lab.run_out()


def test_no_strategy_is_a_404(lab: CloudLab) -> None:
    answer = lab.central.api("dcmanager", "GET", "/v1.0/sw-update-strategy?type=firmware")
    assert said(answer) == (404, "Strategy of type 'firmware' not found")
    answer = lab.central.api("dcmanager", "GET", "/v1.0/sw-update-strategy/steps/sub1")
    assert said(answer) == (404, "Strategy step not found")


def test_regions_of_the_catalogue(lab: CloudLab) -> None:
    urls = {
        (service["type"], entry["region"]): entry["url"]
        for service in lab.central.catalogue
        for entry in service["endpoints"]
    }
    assert urls["platform", "RegionOne"] == "http://central-platform/v1"
    assert urls["platform", "SystemController"] == "http://central-proxy/v1"
    assert urls["dcmanager", "RegionOne"] == "http://central-dcmanager/v1.0"
