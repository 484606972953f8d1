"""The VIM's firmware strategy of one system: its API, its steps, its alarms (sections 3.6 and 5.5)."""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.starlingx_lab import Lab, MakeLab, labs

from harness.emulator.card import CardState

STRATEGY = "/api/orchestration/fw-update/strategy"
ROOT = "0123456789abcdef" * 4
STEPS = [
    "query-alarms",
    "fw-update-hosts",
    "lock-hosts",
    "system-stabilize",
    "unlock-hosts",
    "system-stabilize",
]


@pytest.fixture
def make_lab(tmp_path: Path) -> Iterator[MakeLab]:
    """Make systems whose time passes only while the test lets it."""
    with labs(tmp_path) as make, ExitStack() as still:

        def make_still(*words: Any, **options: Any) -> Lab:
            made = make(*words, **options)
            still.enter_context(made.clock.actor())
            return made

        yield make_still


def nfv(lab: Lab, method: str, path: str = STRATEGY, **options: Any) -> httpx.Response:
    return lab.ask("nfv", method, path, headers={"X-Auth-Token": lab.token}, **options)


def create(lab: Lab, **options: Any) -> dict[str, Any]:
    """Create a strategy as sw-manager does, and let it be built."""
    body = {
        "controller-apply-type": "ignore",
        "storage-apply-type": "ignore",
        "worker-apply-type": "serial",
        "default-instance-action": "stop-start",
        "alarm-restrictions": "strict",
    }
    answer = nfv(lab, "POST", json=body | options)
    assert answer.status_code == 200, answer.text
    assert answer.json()["strategy"]["state"] in ("building", "build-failed")
    sleep(lab, 20)
    return strategy(lab)


def sleep(lab: Lab, seconds: float) -> None:
    """Let lab time pass, and have a token that is still valid."""
    lab.clock.sleep(seconds)
    lab.login()


def strategy(lab: Lab) -> dict[str, Any]:
    return dict(nfv(lab, "GET").json()["strategy"])


def act(lab: Lab, action: str, **more: Any) -> httpx.Response:
    return nfv(lab, "POST", f"{STRATEGY}/actions", json={"action": action} | more)


def apply(lab: Lab, seconds: float) -> dict[str, Any]:
    assert act(lab, "apply-all").status_code == 202
    sleep(lab, seconds)
    return strategy(lab)


def ready(lab: Lab, recipe: str = "unsigned") -> str:
    """Apply an image and create a strategy that is ready; return the image's uuid."""
    uuid = lab.upload(recipe)
    lab.apply(uuid)
    assert create(lab)["state"] == "ready-to-apply"
    return uuid


def steps(shown: dict[str, Any], phase: str = "apply-phase") -> list[tuple[str, str, str]]:
    return [
        (step["step-name"], step["result"], step["reason"])
        for stage in shown[phase]["stages"]
        for step in stage["steps"]
    ]


def set_host(lab: Lab, **values: Any) -> None:
    (row,) = lab.system.database.all("i_host")
    lab.system.database.change("i_host", row["id"], **values)


def vim_alarms(lab: Lab) -> list[tuple[str, str, str]]:
    keys = ("alarm_id", "severity", "entity_instance_id")
    return [
        (alarm[keys[0]], alarm[keys[1]], alarm[keys[2]])
        for alarm in lab.alarms()
        if alarm["alarm_id"].startswith("900.3")
    ]


# -- building -----------------------------------------------------------------------------------


def test_a_pending_host_is_what_a_strategy_is_built_for(lab: Lab) -> None:
    ready(lab)
    shown = strategy(lab)
    assert (shown["current-phase"], shown["current-phase-completion-percentage"]) == ("build", 100)
    assert steps(shown, "build-phase") == [
        ("query-alarms", "success", ""),
        ("query-fw-update-host", "success", ""),
    ]
    assert [name for name, _, _ in steps(shown)] == STEPS
    (stage,) = shown["apply-phase"]["stages"]
    assert stage["steps"][1]["entity-names"] == ["controller-0"]
    assert stage["steps"][1]["timeout"] == 3600


def test_a_host_that_is_not_pending_needs_no_update(lab: Lab) -> None:
    shown = create(lab)
    build = shown["build-phase"]
    assert (shown["state"], build["result"], build["reason"]) == (
        "build-failed",
        "failed",
        "no firmware update required",
    )


def test_a_label_that_is_assigned_later_leaves_the_host_without_an_update(lab: Lab) -> None:
    # Section 4.5: the state is pending, the host is not.
    lab.apply(lab.upload("unsigned"), "k=v")
    lab.assign("k=v")
    assert lab.statuses() == ["pending"]
    assert create(lab)["build-phase"]["reason"] == "no firmware update required"


def test_a_locked_host_is_not_looked_at(lab: Lab) -> None:
    lab.apply(lab.upload("unsigned"))
    set_host(lab, administrative="locked", operational="disabled")
    shown = create(lab)
    assert steps(shown, "build-phase") == [("query-alarms", "success", "")]
    assert shown["build-phase"]["reason"] == "no firmware update required"


@pytest.mark.parametrize(
    "alarm", ["700.004", "280.002", "900.006", "900.301", "200.001", "100.119", "900.701"]
)
def test_these_alarms_keep_nobody_from_updating(lab: Lab, alarm: str) -> None:
    lab.apply(lab.upload("unsigned"))
    lab.system.alarms.set(alarm, "host=controller-0", "major", "an alarm")
    assert create(lab)["state"] == "ready-to-apply"


def test_any_other_alarm_fails_the_build_as_the_sample_shows(lab: Lab) -> None:
    lab.apply(lab.upload("unsigned"))
    lab.system.alarms.set(
        "100.104", "host=controller-0.filesystem=/", "major", "File System threshold exceeded"
    )
    shown = create(lab)
    assert (shown["state"], shown["build-phase"]["result"]) == ("build-failed", "failed")
    assert shown["build-phase"]["reason"] == "alarms ['100.104'] from platform are present"


def test_relaxed_restrictions_let_pass_what_does_not_affect_management(lab: Lab) -> None:
    lab.apply(lab.upload("unsigned"))
    lab.system.alarms.set("100.104", "host=controller-0", "minor", "", affects_management=False)
    assert create(lab)["state"] == "build-failed"
    assert nfv(lab, "DELETE", json={"force": False}).status_code == 200
    assert create(lab, **{"alarm-restrictions": "relaxed"})["state"] == "ready-to-apply"


def test_there_is_one_strategy_at_a_time(lab: Lab) -> None:
    assert nfv(lab, "GET").json() == {"strategy": None}
    ready(lab)
    assert nfv(lab, "POST", json={}).status_code == 409
    assert nfv(lab, "DELETE", json={}).status_code == 200
    assert nfv(lab, "GET").json() == {"strategy": None}
    assert nfv(lab, "DELETE", json={}).status_code == 404


@pytest.mark.parametrize("count", [1, 6])
def test_workers_in_parallel_are_two_to_five(lab: Lab, count: int) -> None:
    answer = nfv(lab, "POST", json={"worker-apply-type": "parallel", "max-parallel-worker-hosts": count})
    assert (answer.status_code, answer.json()["faultstring"]) == (
        400,
        "Invalid value for max-parallel-worker-hosts",
    )


def test_controllers_are_updated_one_by_one_and_workers_in_groups(lab: Lab) -> None:
    database = lab.system.database
    set_host(lab, device_image_update="pending")
    for number, personality in enumerate(["controller", *["worker"] * 5], start=1):
        database.add(
            "i_host",
            hostname=f"{personality}-{number}",
            personality=personality,
            subfunctions="worker",
            administrative="unlocked",
            operational="enabled",
            availability="available",
            device_image_update="pending" if number != 4 else "",
            task="",
        )
    shown = create(lab, **{"worker-apply-type": "parallel", "max-parallel-worker-hosts": 3})
    stages = shown["apply-phase"]["stages"]
    assert [stage["steps"][1]["entity-names"] for stage in stages] == [
        ["controller-0"],
        ["controller-1"],
        ["worker-2", "worker-3", "worker-5"],
        ["worker-6"],
    ]
    swacts = ["swact-hosts" in [step["step-name"] for step in stage["steps"]] for stage in stages]
    assert swacts == [True, True, False, False]


# -- applying -----------------------------------------------------------------------------------


def test_a_strategy_writes_the_card_and_has_it_run_the_image(lab: Lab) -> None:
    ready(lab)
    shown = apply(lab, 1200)
    assert (shown["state"], shown["apply-phase"]["result"]) == ("applied", "success")
    assert steps(shown) == [(name, "success", "") for name in STEPS]
    assert lab.statuses() == ["completed"]
    host = lab.sysinv_host
    assert (host["administrative"], host["operational"], host["device_image_update"]) == (
        "unlocked",
        "enabled",
        "",
    )
    assert lab.machine.card("card0").running_page == "user"
    assert lab.alarms() == []


def test_the_host_is_looked_at_every_minute_while_it_is_updated(lab: Lab) -> None:
    ready(lab)
    begun = lab.clock.now()
    shown = apply(lab, 1200)
    update = shown["apply-phase"]["stages"][0]["steps"][1]
    took = _moment(update["end-date-time"]) - _moment(update["start-date-time"])
    assert took % 60 == 0
    assert took > 0
    assert _moment(update["start-date-time"]) == pytest.approx(begun, abs=2)


def _moment(text: str) -> float:
    return float(calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M:%S")))


def test_an_alarm_stands_while_it_is_applied(lab: Lab) -> None:
    ready(lab)
    assert vim_alarms(lab) == []
    assert apply(lab, 10)["state"] == "applying"
    assert vim_alarms(lab) == [("900.301", "major", "orchestration=fw-update")]
    sleep(lab, 1200)
    assert vim_alarms(lab) == []


def test_a_failed_update_fails_the_strategy_which_is_aborted(make_lab: MakeLab) -> None:
    lab = make_lab(off=("failed-flash-not-reported",), state=CardState(sr_root=ROOT))
    ready(lab)  # unsigned, which a card with a root key refuses
    shown = apply(lab, 1200)
    assert shown["state"] == "aborted"
    apply_phase = shown["apply-phase"]
    assert (apply_phase["result"], apply_phase["reason"]) == (
        "failed",
        "Firmware update failed ; controller-0 ",
    )
    assert shown["abort-phase"]["result"] == "success"
    assert lab.system.vim.log == ["controller-0 firmware update failed ; needs retry"]
    assert lab.sysinv_host["administrative"] == "unlocked"
    assert vim_alarms(lab) == [("900.303", "critical", "orchestration=fw-update")]
    assert nfv(lab, "DELETE", json={}).status_code == 200
    assert vim_alarms(lab) == []


def test_an_alarm_that_came_after_the_build_fails_the_apply(lab: Lab) -> None:
    ready(lab)
    lab.system.alarms.set("100.104", "host=controller-0", "major", "")
    shown = apply(lab, 5)
    assert (shown["state"], shown["apply-phase"]["reason"]) == (
        "aborted",
        "alarms ['100.104'] from platform are present",
    )
    assert lab.statuses() == ["pending"]


def test_a_host_that_changes_while_the_system_stabilizes_fails_the_strategy(lab: Lab) -> None:
    ready(lab)
    act(lab, "apply-all")
    while steps(strategy(lab))[-1][1] != "wait":
        sleep(lab, 1)
    set_host(lab, operational="disabled")
    sleep(lab, 70)
    assert steps(strategy(lab))[-1] == (
        "system-stabilize",
        "failed",
        "host controller-0 changed state unexpectedly",
    )


def test_an_aborted_update_fails(lab: Lab) -> None:
    ready(lab)
    apply(lab, 30)
    set_host(lab, device_image_update="in-progress-aborted")
    sleep(lab, 90)
    assert strategy(lab)["apply-phase"]["result"] == "failed"
    assert lab.system.vim.log == ["controller-0 firmware update aborted while in progress"]


def test_an_update_that_never_ends_times_out_after_an_hour(lab: Lab) -> None:
    ready(lab)
    lab.system.casts.stop()  # nobody takes the request, and the host stays as it is
    act(lab, "apply-all")
    sleep(lab, 2)
    set_host(lab, device_image_update="in-progress")
    sleep(lab, 3580)
    assert strategy(lab)["state"] == "applying"
    sleep(lab, 30)
    shown = strategy(lab)
    assert (shown["apply-phase"]["result"], shown["apply-phase"]["reason"]) == (
        "timed-out",
        "fw-update-hosts timed out",
    )


def test_abort_lets_the_step_end_and_begins_no_other(lab: Lab) -> None:
    ready(lab)
    apply(lab, 10)
    assert act(lab, "abort-stage", **{"stage-id": None}).status_code == 202
    assert strategy(lab)["state"] == "aborting"
    assert vim_alarms(lab) == [("900.302", "major", "orchestration=fw-update")]
    sleep(lab, 1200)
    shown = strategy(lab)
    assert shown["apply-phase"]["result"] == "aborted"
    assert lab.statuses() == ["completed"]
    assert steps(shown)[2] == ("lock-hosts", "initial", "")
    assert lab.sysinv_host["reboot_needed"] is True


def test_abort_after_the_lock_unlocks_the_host_again(lab: Lab) -> None:
    ready(lab)
    act(lab, "apply-all")
    while steps(strategy(lab))[2][1] != "success":
        sleep(lab, 1)
    assert act(lab, "abort").status_code == 202
    sleep(lab, 1200)
    shown = strategy(lab)
    assert (shown["state"], shown["abort-phase"]["result"]) == ("aborted", "success")
    assert "unlock-hosts" in [name for name, _, _ in steps(shown, "abort-phase")]
    assert lab.sysinv_host["administrative"] == "unlocked"


def test_what_cannot_be_done_now_is_refused(lab: Lab) -> None:
    assert act(lab, "apply-all").status_code == 404
    ready(lab)
    answer = act(lab, "abort")
    assert (answer.status_code, answer.json()["faultstring"]) == (400, "apply not inprogress")
    assert act(lab, "abort-stage").status_code == 400
    assert act(lab, "dance").status_code == 400
    apply(lab, 10)
    assert nfv(lab, "DELETE", json={"force": False}).status_code == 409
    sleep(lab, 1200)
    assert act(lab, "apply-all").status_code == 500
    assert nfv(lab, "DELETE", json={"force": False}).status_code == 200


def test_only_an_administrator_has_strategies(lab: Lab) -> None:
    lab.login("reader")
    assert nfv(lab, "GET").status_code == 200
    assert nfv(lab, "POST", json={}).status_code == 403
    lab.token = "none"
    assert nfv(lab, "GET").status_code == 401


# -- restarts and defects -----------------------------------------------------------------------


@pytest.mark.parametrize("before", ["system-stabilize", "unlock-hosts"])
def test_a_strategy_goes_on_after_a_restart(lab: Lab, before: str) -> None:
    ready(lab)
    act(lab, "apply-all")
    while (before, "wait", "") not in steps(strategy(lab)):
        sleep(lab, 1)
    sleep(lab, 5)
    with lab.clock.waiting():
        again = lab.restarted()
    sleep(again, 1500)
    shown = strategy(again)
    assert shown["state"] == "applied"
    assert steps(shown) == [(name, "success", "") for name in STEPS]
    assert again.sysinv_host["administrative"] == "unlocked"
    assert again.machine.card("card0").running_page == "user"


def test_a_restart_of_the_vim_breaks_its_looks_where_lp_1929251_is(make_lab: MakeLab) -> None:
    for on, result in ((("vim-restart-traceback",), "timed-out"), ((), "success")):
        lab = make_lab(on=on, off=("vim-restart-traceback",) if not on else ())
        ready(lab)
        apply(lab, 5)
        restart_vim(lab)
        sleep(lab, 5000)
        assert steps(strategy(lab))[1][1] == result
        assert lab.statuses() == ["completed"]
        assert any("_wait_time" in line for line in lab.system.vim.log) == bool(on)


def restart_vim(lab: Lab) -> None:
    """End the VIM alone, as on a controller whose VIM dies, and begin it anew."""
    lab.system.vim.close()
    lab.system._vim = None
    assert lab.system.vim.strategy() is not None


def test_a_host_that_goes_from_in_progress_to_pending_hangs_the_vim_where_lp_1890915_is(
    make_lab: MakeLab,
) -> None:
    for on, state in ((("vim-hangs-on-pending",), "applying"), ((), "aborted")):
        lab = make_lab(on=on, off=("failed-flash-not-reported",), state=CardState(sr_root=ROOT))
        ready(lab)
        assert apply(lab, 3000)["state"] == state
        assert lab.sysinv_host["device_image_update"] == "pending"
        if on:
            sleep(lab, 700)
            assert strategy(lab)["apply-phase"]["reason"] == "fw-update-hosts timed out"


def test_a_host_that_says_nothing_is_waited_for_until_the_timeout(make_lab: MakeLab) -> None:
    for off, result in (((), "timed-out"), (("vim-ignores-null",), "success")):
        lab = make_lab(off=off)
        ready(lab)
        apply(lab, 1)
        sleep(lab, 50)
        set_host(lab, device_image_update=None)
        sleep(lab, 4000)
        assert steps(strategy(lab))[1][1] == result
