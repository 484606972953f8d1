"""What can be made to go wrong in a system: the API away, downloads, completions, conductor, tokens."""

from __future__ import annotations

import pytest
from support.starlingx_lab import Lab

from harness.emulator.starlingx.curl import install_curl
from harness.emulator.starlingx.listening import Download, Listening
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


def test_agents_that_were_ended_take_no_order_before_they_run_again(lab: Lab) -> None:
    lab.apply(lab.upload("unsigned"))
    lab.system.run_agents(False)
    lab.update()
    assert lab.statuses() == ["pending"]
    lab.system.run_agents(True)
    assert lab.sysinv_host["device_image_update"] == "in-progress", "the order was lost with the agent"


def test_hosts_get_images_from_the_controller_with_curl(lab: Lab) -> None:
    uuid = lab.upload()
    install_curl(lab.hosts, Download({8080: 1}))
    assert lab.run("curl -s -S -f http://controller:81/device_images/x") == (
        "curl: (7) Failed to connect to controller port 81: Connection refused\n"
    )
    install_curl(lab.hosts, lab.fetch)
    place = f"http://controller:8080/device_images/functional-8086-0b30-{uuid}.bit"
    assert lab.run(f"curl -s -S -f {place}") == "some bytes"
    assert lab.run("curl -s -S -f").startswith("curl: (2) ")


def test_curl_fails_where_there_is_no_such_image(lab: Lab) -> None:
    def missing(port: int, path: str) -> bytes:
        raise OSError("HTTP Error 404: Not Found")

    install_curl(lab.hosts, missing)
    assert lab.run("curl -s -S -f http://controller:8080/device_images/x; echo $?") == (
        "curl: (22) The requested URL returned error: 404\n22\n"
    )


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


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("agents", "off", "true or false"),
        ("agents", None, "true or false"),
        ("conductor", 0, "true or false"),
        ("slow", -1, "a factor above 0"),
        ("slow", 0, "a factor above 0"),
        ("slow", "abc", "a factor above 0"),
        ("slow", float("nan"), "a factor above 0"),
        ("api-down-after-unlock", "x", "seconds, 0 or more"),
        ("api-down-after-unlock", None, "seconds, 0 or more"),
        ("completions", -5, "seconds, 0 or more, or no value: they are lost"),
        ("completions", True, "seconds, 0 or more, or no value: they are lost"),
        ("refuse-requests", 1.5, "a whole number, 0 or more"),
        ("refuse-requests", -1, "a whole number, 0 or more"),
        ("downloads", "half", "whole or missing or short"),
        ("restart", "now", "no value"),
        ("expire-tokens", False, "no value"),
    ],
)
def test_a_value_that_means_nothing_is_refused_before_anything_is_done(
    name: str, value: object, allowed: str
) -> None:
    listening = Listening()
    listening.add("sub", lambda fetch: pytest.fail("the system was asked"))
    with pytest.raises(ConfigurationError, match=f"trouble '{name}' was given") as caught:
        listening.trouble("sub", name, value)
    assert caught.value.hint == f"It takes {allowed}."
    listening.close()
