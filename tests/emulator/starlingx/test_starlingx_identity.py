"""Keystone and the policy of sysinv: what a client must have to be let in (sections 2 and 8.1)."""

from __future__ import annotations

from datetime import datetime

import pytest
from support.starlingx_lab import START, URLS, Lab, login


def test_version_document_tells_v3(lab: Lab) -> None:
    answer = lab.ask("identity", "GET", "/v3")
    assert answer.status_code == 200
    version = answer.json()["version"]
    assert version["id"].startswith("v3")
    assert version["links"] == [{"rel": "self", "href": "http://controller:5000/v3/"}]


def test_token_is_in_the_header_and_the_catalogue_leads_to_sysinv(lab: Lab) -> None:
    answer = lab.ask("identity", "POST", "/v3/auth/tokens", json=login())
    assert answer.status_code == 201
    assert answer.headers["X-Subject-Token"]
    token = answer.json()["token"]
    platform = next(entry for entry in token["catalog"] if entry["type"] == "platform")
    assert platform["name"] == "sysinv"
    assert {(e["interface"], e["region"], e["url"]) for e in platform["endpoints"]} == {
        (interface, "RegionOne", f"{URLS['platform']}/v1") for interface in ("admin", "internal", "public")
    }
    assert {role["name"] for role in token["roles"]} == {"admin", "member", "reader"}
    assert datetime.fromisoformat(token["expires_at"]).timestamp() == START + 3600


@pytest.mark.parametrize("words", [{"password": "wrong"}, {"user": "nobody"}, {"project": "nowhere"}])
def test_wrong_login_is_refused(lab: Lab, words: dict[str, str]) -> None:
    answer = lab.ask("identity", "POST", "/v3/auth/tokens", json=login(**words))
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == 401
    assert "X-Subject-Token" not in answer.headers


def test_what_is_no_login_is_a_bad_request(lab: Lab) -> None:
    assert lab.ask("identity", "POST", "/v3/auth/tokens", content=b"{").status_code == 400
    assert lab.ask("identity", "POST", "/v3/auth/tokens", json={"auth": []}).status_code == 400


@pytest.mark.parametrize("header", [{}, {"X-Auth-Token": "none"}])
def test_without_a_token_nothing_is_answered(lab: Lab, header: dict[str, str]) -> None:
    assert lab.ask("platform", "GET", "/v1/device_images", headers=header).status_code == 401


def test_token_expires_in_lab_time(lab: Lab) -> None:
    lab.pass_time(3599)
    assert lab.api("GET", "/device_images").status_code == 200
    lab.pass_time(2)
    assert lab.api("GET", "/device_images").status_code == 401


@pytest.mark.parametrize("user", ["reader", "member"])
def test_who_is_no_administrator_may_only_look(lab: Lab, user: str) -> None:
    uuid = lab.upload()
    lab.login(user)
    assert lab.api("GET", "/device_images").status_code == 200
    for method, path in [
        ("PATCH", f"/device_images/{uuid}?action=apply"),
        ("DELETE", f"/device_images/{uuid}"),
        ("POST", f"/ihosts/{lab.sysinv_host['uuid']}/device_image_update"),
    ]:
        answer = lab.api(method, path)
        assert answer.status_code == 403
        assert lab.said(answer) == "The requested action is not authorized"
    assert lab.get("/device_images")["device_images"][0]["applied"] is False


def test_tokens_survive_a_restart(lab: Lab) -> None:
    again = lab.restarted()
    assert again.api("GET", "/device_images").status_code == 200
