"""What goes wrong between a controller and its subclouds in the middle of an orchestration (section 5.5)."""

from __future__ import annotations

import pytest
from support.cloud_lab import CloudLab, MakeCloud

from harness.emulator.card import CardState
from harness.emulator.distributed_cloud.profile import CloudProfile
from harness.emulator.starlingx.listening import Listening
from harness.errors import ConfigurationError

HOUR = 3600.0


@pytest.fixture
def lab(make_cloud: MakeCloud) -> CloudLab:
    """Two subclouds as users would want them, and an image that both need."""
    return needing(make_cloud("corrected", cards=(CardState(), CardState())))


def needing(lab: CloudLab) -> CloudLab:
    lab.change(lab.upload("unsigned"), "apply")
    lab.audit()
    return lab


def begin(lab: CloudLab, **options: str) -> None:
    """Begin a strategy whose first flash is held."""
    lab.machines["sub1"].card("card0").hold("programming")
    assert lab.create(**options).status_code == 200
    lab.act("apply")
    lab.wait_held("sub1", "programming")


def release(lab: CloudLab) -> None:
    lab.machines["sub1"].card("card0").release()


def test_a_file_that_the_vault_has_lost_fails_the_step(lab: CloudLab) -> None:
    uuid = lab.central.get("/device_images")["device_images"][0]["uuid"]
    lab.cloud.lose_file(uuid)
    assert lab.orchestrate() == "failed"
    path = f"/opt/dc-vault/device_images/functional-8086-0b30-{uuid}.bit"
    details = {step["details"] for step in lab.steps().values()}
    assert details == {f"importing firmware: File does not exist: {path}"}
    with pytest.raises(ConfigurationError, match="has no file"):
        lab.cloud.lose_file(uuid)


def test_a_subcloud_that_is_away_for_less_than_thirty_polls_goes_on(lab: CloudLab) -> None:
    begin(lab)
    lab.cloud.cut_off("sub1")
    release(lab)
    lab.pass_time(1000)
    assert lab.states()["sub1"] == "applying fw update strategy"
    lab.cloud.cut_off("-sub1")
    lab.run_out()
    assert lab.states() == {"sub1": "complete", "sub2": "complete"}


def test_a_subcloud_that_stays_away_fails_after_thirty_polls(lab: CloudLab) -> None:
    begin(lab)
    lab.cloud.cut_off("sub1")
    release(lab)
    lab.run_out()
    assert lab.states() == {"sub1": "failed", "sub2": "complete"}
    step = lab.steps()["sub1"]
    assert step["details"].startswith("applying fw update strategy: Timeout during recovery")
    assert lab.strategy()["state"] == "failed"


def test_an_offline_subcloud_is_unknown_and_no_step_of_a_strategy(lab: CloudLab) -> None:
    lab.cloud.cut_off("sub1")
    lab.audit()
    assert lab.statuses()["sub1"] == "out-of-sync"  # missed once
    lab.audit()
    shown = lab.central.get("/subclouds/sub1", "dcmanager")
    assert shown["availability-status"] == "offline"
    assert {entry["sync_status"] for entry in shown["endpoint_sync_status"]} == {"unknown"}
    assert lab.create().status_code == 200
    assert set(lab.steps()) == {"sub2"}
    lab.cloud.cut_off("-sub1")
    lab.audit()
    assert lab.statuses()["sub1"] == "out-of-sync"


def test_updates_that_never_end_time_out_after_sixty_polls_without_progress(make_cloud: MakeCloud) -> None:
    # Nobody hears that the image is written: sysinv's audit fails the state after an hour, and does not call
    # the next; the VIM waits, and dcmanager gives up first.
    lab = needing(make_cloud("head"))
    lab.system("sub1").troubles.delay_completions(None)
    before = lab.clock.now()
    assert lab.orchestrate() == "failed"
    assert (
        lab.steps()["sub1"]["details"] == "applying fw update strategy: Timeout applying firmware strategy."
    )
    assert HOUR - 60 <= lab.clock.now() - before < HOUR + 600


def test_updates_may_take_longer_than_sixty_polls_while_there_is_progress(make_cloud: MakeCloud) -> None:
    lab = needing(make_cloud("head"))
    lab.system("sub1").troubles.delay_completions(2400)  # 40 polls for the flash,
    lab.system("sub1").troubles.slow_down(20)  # and 20 for the boot
    before = lab.clock.now()
    assert lab.orchestrate() == "complete"
    assert lab.clock.now() - before > HOUR


def test_sysinv_that_is_away_after_the_unlock_is_waited_for(lab: CloudLab) -> None:
    lab.system("sub1").troubles.go_away_after_unlock(900)
    begin(lab)
    release(lab)
    lab.run_out()
    assert lab.states() == {"sub1": "complete", "sub2": "complete"}
    finished = {name: step["finished-at"] for name, step in lab.steps().items()}
    assert finished["sub1"] > finished["sub2"]


def test_sysinv_that_stays_away_fails_the_step_after_thirty_tries(lab: CloudLab) -> None:
    lab.system("sub1").troubles.go_away_after_unlock(3 * HOUR)
    begin(lab)
    release(lab)
    lab.run_out()
    assert lab.states() == {"sub1": "failed", "sub2": "complete"}
    assert lab.steps()["sub1"]["details"] == "finishing fw update: Timeout waiting to query subcloud hosts"


def test_a_slow_subcloud_takes_longer(lab: CloudLab) -> None:
    lab.system("sub1").troubles.slow_down(10)
    assert lab.orchestrate() == "complete"
    finished = {name: step["finished-at"] for name, step in lab.steps().items()}
    assert finished["sub1"] > finished["sub2"]


@pytest.mark.parametrize("kept", [True, False])
def test_dcmanager_that_was_down_goes_on_or_not(make_cloud: MakeCloud, kept: bool) -> None:
    lab = needing(make_cloud("corrected", profile=CloudProfile(resumes_after_restart=kept)))
    begin(lab)
    lab.cloud.run(False)
    assert lab.central.api("dcmanager", "GET", "/v1.0/subclouds").status_code == 503
    release(lab)
    lab.pass_time(HOUR)
    lab.cloud.run(True)
    lab.run_out()
    assert lab.states() == {"sub1": "complete" if kept else "failed"}
    assert lab.strategy()["state"] == ("complete" if kept else "failed")


def test_a_controller_that_is_restarted_takes_up_its_strategy(lab: CloudLab) -> None:
    begin(lab)
    lab.cloud.close()
    lab.controller.close()
    lab.begin()
    release(lab)
    lab.run_out()
    assert lab.states() == {"sub1": "complete", "sub2": "complete"}


def test_abort_leaves_out_what_has_not_begun(lab: CloudLab) -> None:
    begin(lab, **{"subcloud-apply-type": "serial"})
    assert lab.act("abort").json()["state"] == "abort requested"
    release(lab)
    lab.run_out()
    assert lab.states() == {"sub1": "complete", "sub2": "aborted"}
    assert lab.strategy()["state"] == "aborted"


@pytest.mark.parametrize(("stop", "second"), [("true", "initial"), ("false", "complete")])
def test_a_failure_stops_the_strategy_where_that_is_asked(lab: CloudLab, stop: str, second: str) -> None:
    lab.system("sub1").troubles.set_downloads("missing")
    lab.machines["sub1"].condition("missing-fpgasupdate", True)
    assert lab.orchestrate(**{"subcloud-apply-type": "serial", "stop-on-failure": stop}) == "failed"
    assert lab.states() == {"sub1": "failed", "sub2": second}


def test_troubles_of_a_cloud_are_named(lab: CloudLab) -> None:
    listening = Listening()
    listening.add("sub", lambda fetch: lab.system("sub1"))
    listening.add("central", lambda fetch: lab.controller, lambda controller: lab.cloud)
    listening.trouble("central", "subcloud-offline", "sub1")
    assert lab.cloud.regions["sub1"].offline
    listening.trouble("central", "subcloud-offline", "-sub1")
    assert not lab.cloud.regions["sub1"].offline
    listening.trouble("sub", "slow", 3)
    assert lab.system("sub1").troubles.slow == 3
    with pytest.raises(ConfigurationError, match="'audit-now': it is one of a system controller"):
        listening.trouble("sub", "audit-now")
    wrong = [("dcmanager", "off"), ("vault-takes-files", 1), ("subcloud-offline", None), ("audit-now", True)]
    for name, value in wrong:
        with pytest.raises(ConfigurationError, match=f"trouble '{name}' was given"):
            listening.trouble("central", name, value)
    assert lab.cloud.runs
    with pytest.raises(ConfigurationError, match="has no subcloud 'sub9'"):
        listening.trouble("central", "subcloud-offline", "sub9")
    listening.close()
