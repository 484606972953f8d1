"""What can be made to go wrong in a system: the API away, downloads, completions, conductor, tokens."""

from __future__ import annotations

import pytest
from support.starlingx_lab import Lab

from harness.emulator.starlingx.listening import Listening
from harness.errors import ConfigurationError


def test_refused_requests_are_counted(lab: Lab) -> None:
    lab.system.troubles.refuse_requests(2)
    answers = [lab.api("GET", "/ihosts").status_code for _ in range(3)]
    assert answers == [503, 503, 200]


@pytest.mark.parametrize(
    ("how", "status", "content"),
    [("missing", 404, b"Not Found"), ("short", 200, b"some "), ("whole", 200, b"some bytes")],
)
def test_downloads(lab: Lab, how: str, status: int, content: bytes) -> None:
    uuid = lab.upload()
    lab.system.troubles.set_downloads(how)
    answer = lab.ask("files", "GET", f"/device_images/functional-8086-0b30-{uuid}.bit")
    assert (answer.status_code, answer.content) == (status, content)


def test_unknown_way_of_a_download(lab: Lab) -> None:
    with pytest.raises(ConfigurationError, match="twice"):
        lab.system.troubles.set_downloads("twice")


def test_lost_completion_leaves_the_state_in_progress(lab: Lab) -> None:
    lab.system.troubles.delay_completions(None)
    lab.apply(lab.upload("unsigned"))
    lab.update()
    assert lab.statuses() == ["in-progress"]
    lab.reboot()
    # The card has it; the system does not know.
    assert lab.device["boot_page"] == "user"
    assert lab.statuses() == ["in-progress"]


def test_late_completion_comes_after_its_delay(lab: Lab) -> None:
    lab.system.troubles.delay_completions(1000)
    lab.apply(lab.upload("unsigned"))
    before = lab.clock.now()
    lab.update()
    lab.pass_time(1001)
    assert lab.clock.now() - before > 1000
    assert lab.statuses() == ["completed"]


def test_conductor_that_is_down_loses_what_it_is_told(lab: Lab) -> None:
    lab.apply(lab.upload("unsigned"))
    lab.system.casts.stop()
    assert lab.update().status_code == 200
    assert lab.statuses() == ["pending"]
    assert lab.sysinv_host["device_image_update"] == "pending"
    lab.system.casts.start()
    lab.update()
    assert lab.statuses() == ["completed"]


def test_expired_token_is_refused_and_a_new_one_is_had(lab: Lab) -> None:
    lab.system.identity.revoke_all()
    assert lab.api("GET", "/ihosts").status_code == 401
    lab.login()
    assert lab.api("GET", "/ihosts").status_code == 200


def test_trouble_is_named(lab: Lab) -> None:
    listening = Listening()
    listening.add("sub", lambda fetch: lab.system)
    listening.trouble("sub", "refuse-requests", 1)
    assert lab.api("GET", "/ihosts").status_code == 503
    with pytest.raises(ConfigurationError, match="no trouble 'rain'") as caught:
        listening.trouble("sub", "rain")
    assert "expire-tokens" in caught.value.hint
    with pytest.raises(ConfigurationError, match="no system 'other'"):
        listening.trouble("other", "restart")
    listening.close()
