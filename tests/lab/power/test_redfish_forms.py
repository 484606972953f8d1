"""What Redfish documents mean: DSP0266 and DSP0268 have the forms."""

import json
from typing import Any

import pytest

from harness.errors import BlockedError, InfrastructureError
from harness.lab.power.redfish_forms import local_path, only_member, system_of, told


def computer(**changes: Any) -> bytes:
    action = {"target": "/reset", "ResetType@Redfish.AllowableValues": ["On", "ForceOff"]}
    return json.dumps({"PowerState": "On", "Actions": {"#ComputerSystem.Reset": action}} | changes).encode()


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("On", "on"),
        ("Off", "off"),
        ("PoweringOff", None),
        ("PoweringOn", None),
        ("Paused", None),
        (None, None),
    ],
)
def test_power_states(said: str | None, state: str | None) -> None:
    assert system_of(computer(PowerState=said)).power.state == state


def test_a_power_cut_is_no_shutdown() -> None:
    found = system_of(computer())
    assert (found.target, found.reset_type("off"), found.reset_type("on")) == ("/reset", "ForceOff", "On")


@pytest.mark.parametrize(
    ("offered", "on"), [(["ForceOff", "ForceOn"], "ForceOn"), (None, "On"), (["ForceOn", "On"], "On")]
)
def test_what_a_controller_offers_is_taken(offered: list[str] | None, on: str) -> None:
    action = {"target": "/r"} | ({"ResetType@Redfish.AllowableValues": offered} if offered else {})
    assert system_of(computer(Actions={"#ComputerSystem.Reset": action})).reset_type("on") == on


def test_a_controller_that_cannot_cut_the_power() -> None:
    action = {"target": "/r", "ResetType@Redfish.AllowableValues": ["GracefulShutdown", "On"]}
    with pytest.raises(BlockedError, match="by GracefulShutdown, On, and not by ForceOff"):
        system_of(computer(Actions={"#ComputerSystem.Reset": action})).reset_type("off")
    with pytest.raises(BlockedError, match="no reset action"):
        system_of(computer(Actions={})).reset_type("off")


@pytest.mark.parametrize("members", [[], [{"@odata.id": "/a"}, {"@odata.id": "/b"}], "x"])
def test_which_computer_must_be_clear(members: object) -> None:
    with pytest.raises(InfrastructureError, match=r"The controller has [02] computers") as failure:
        only_member(json.dumps({"Members": members}).encode())
    assert "system:" in failure.value.hint


@pytest.mark.parametrize(
    "path", ["http://elsewhere/reset", "//elsewhere/reset", "/\\elsewhere", "/a\r\nb", "", 7, None]
)
def test_a_login_is_never_sent_elsewhere(path: object) -> None:
    assert local_path(path) == ""


def test_errors_have_the_words_of_the_service() -> None:
    info = [{"MessageId": "x", "Message": "First."}, {"Message": "Second."}]
    body = {"error": {"code": "c", "message": "General.", "@Message.ExtendedInfo": info}}
    assert told(400, json.dumps(body).encode()) == "400: First. Second."
    assert told(400, json.dumps({"error": {"message": "General."}}).encode()) == "400: General."
    assert told(503, b"<html>") == "503: Service Unavailable"
    assert told(799, b"") == "799: an unknown status"
