"""Sweeps of real pushes: what each client reports at each point, against the measured tables."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.engine import private_engine
from support.processes import wait_until

from harness.cli.sweep_text import closing, render
from harness.errors import BlockedError
from harness.faults.proxy.exchanges import Exchange
from harness.faults.registry_points import FaultPoint
from harness.judgement.judge import judge
from harness.judgement.model import VerdictKind
from harness.judgement.records import Fault, Observation
from harness.record.runs import read_run
from harness.registry.clients import oci_http
from harness.registry.clients.protocol import Report
from harness.registry.clients.skopeo_program import find_skopeo
from harness.registry.process import find_registry
from harness.scenarios import sweep_results
from harness.scenarios.push_points import default_points, passed
from harness.scenarios.push_sweep import EngineOpener, PushSweep
from harness.scenarios.push_trials import PushPlan
from harness.scenarios.sweep import Sweep, Untold
from harness.scenarios.sweep_results import NOT_REACHED, LaneResult, SweepResult, Trial

LAYER = 1 << 16
OK, FAIL, FALSE_FAIL = ("done", "MATCH"), ("failed", "MATCH"), ("failed", "FALSE_FAILURE")
#: Fact sheet of the registry, section 3, "rotate": columns raw once, raw refresh, skopeo, and skopeo with
#: retries. Clients that send a blob by one PUT have no PATCH; the measured raw client's is their PUT.
ROTATE = {
    "before:ping#1": (OK, OK, OK, OK),
    "before:blob-post#1": (FAIL, OK, FAIL, FAIL),
    "after:blob-post#1": (FAIL, OK, FAIL, FAIL),
    "mid@32768:blob-patch#1": (None, None, FAIL, OK),
    "mid@32768:blob-put#1": (FAIL, OK, None, None),
    # With retries measured ok at the two marked points, where four layers went up at once: another one's
    # connection broke, which skopeo retries. Here they go up one by one, from a folder, each request on a
    # connection of its own: all that skopeo gets to see is the 401, which it does not retry at any point.
    "after:blob-patch#1": (None, None, FAIL, FAIL),  # marked
    "before:blob-put#1": (FAIL, OK, FAIL, FAIL),  # marked
    "after:blob-put#1": (FAIL, OK, FAIL, FAIL),
    "before:blob-put#last": (FAIL, OK, FAIL, FAIL),
    "before:manifest-put#1": (FAIL, OK, FAIL, FAIL),
    "after:manifest-put#1": (OK, OK, OK, OK),
    "cut:manifest-put#1": (FALSE_FAIL, OK, FALSE_FAIL, OK),
}
CLIENTS = ("oci-once", "oci-renew", "skopeo", "skopeo-retry")
#: The same table's columns naive and stream, where no layer's connection breaks: then dockerd waits 5 s.
LOSS = ("done", "FALSE_SUCCESS")
ENGINE_ROTATE = {
    "before:blob-post": (LOSS, FAIL),
    "before:manifest-put": (LOSS, FAIL),
    "after:manifest-put": (OK, OK),
    "cut:manifest-put": (OK, FALSE_FAIL),
}
ENGINE_CLIENTS = ("docker-naive", "docker-stream")


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    """What these tests need; they install nothing."""
    try:
        find_registry(install=False)
        find_skopeo(install=False)
    except BlockedError as error:
        pytest.fail(f"These tests need a real registry and skopeo. {error}", pytrace=False)


class Telling(Untold):
    """Tells a test of each trial."""

    def __init__(self, told: Callable[[Trial], None]) -> None:
        self.told = told  # type: ignore[method-assign]


def no_engine() -> None:
    raise BlockedError("No Docker engine here.", hint="hil engine up")


def swept(
    folder: Path,
    clients: tuple[str, ...],
    actions: tuple[str, ...],
    *points: str,
    engine: EngineOpener = no_engine,
    **options: float,
) -> Sweep:
    chosen = tuple(map(FaultPoint.parse, points)) or default_points(LAYER)
    plan = replace(PushPlan(actions, chosen, layers=2, layer_size=LAYER), **options)  # type: ignore[arg-type]
    return Sweep(PushSweep(clients, plan, engine), folder, asked=tuple(map(str, chosen)) if points else ())


@pytest.fixture(scope="module")
def rotated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SweepResult]:
    """All points of the default, keys rotated at each."""
    folder = tmp_path_factory.mktemp("rotated")
    result = swept(folder, CLIENTS, ("rotate-keys",)).run()
    assert not [lane.failed or lane.blocked for lane in result.lanes if lane.failed or lane.blocked]
    return folder, result


@pytest.mark.parametrize("point", ROTATE)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_rotation_of_keys_gives_what_was_measured(rotated, client, point) -> None:
    _, result = rotated
    (trial,) = [each for each in result.trials if (each.lane, each.point) == (client, point)]
    expected = ROTATE[point][CLIENTS.index(client)]
    if expected is None:
        assert (trial.outcome, trial.verdict, trial.reported) == (NOT_REACHED, NOT_REACHED, "")
    else:
        assert (trial.reported, trial.verdict) == expected
        there = expected != FAIL
        assert trial.truth == ("COMPLETE" if there else "ABSENT")
        assert trial.outcome == ("AS_INTENDED" if there else "FAILED")


def test_the_sdk_loses_images_where_it_was_measured_to(tmp_path) -> None:
    with private_engine() as engine:
        result = swept(
            tmp_path, ENGINE_CLIENTS, ("rotate-keys",), *ENGINE_ROTATE, engine=lambda: engine
        ).run()
    seen = {
        (each.lane, each.point.partition("#")[0]): (each.reported, each.verdict) for each in result.trials
    }
    assert seen == {
        (client, point): cells[ENGINE_CLIENTS.index(client)]
        for point, cells in ENGINE_ROTATE.items()
        for client in ENGINE_CLIENTS
    }
    assert result.exit_code() == 0, "docker-naive is known to"


def test_every_point_of_the_default_is_in_the_measured_table() -> None:
    assert [str(point) for point in default_points(LAYER)] == list(ROTATE)


def test_api_and_store_agree_in_all_of_them(rotated) -> None:
    """As they did in all 308 measured trials, also after a restart."""
    folder, result = rotated
    seen = [record for record in read_run(folder) if isinstance(record, Observation)]
    assert {each.moment for each in seen} == {"after", "after-restart"}
    assert not [each.values["disagreement"] for each in seen if each.values["disagreement"]]
    assert all("registry-api" not in trial.others for trial in result.trials)


def test_every_fault_is_in_the_history_with_the_request_that_it_held(rotated) -> None:
    folder, result = rotated
    faults = [record for record in read_run(folder) if isinstance(record, Fault)]
    struck = [each for each in result.trials if each.reached]
    fired = [each for each in faults if each.state == "fired"]
    assert len(fired) == len(struck) == len([each for each in faults if each.state == "undone"])
    held = next(each for each in fired if each.point == "before:manifest-put#1")
    assert "PUT /v2/sweep/" in held.detail
    assert "gave way to" in held.detail


def test_a_stored_sweep_is_judged_to_the_same(rotated) -> None:
    folder, result = rotated
    again = judge(read_run(folder))
    assert again.finished
    counted = sum(each.kind.value == "FALSE_FAILURE" and each.checker == "push" for each in again.verdicts)
    assert counted == sum(each.verdict == "FALSE_FAILURE" for each in result.trials) == 2


def test_a_sweep_of_honest_clients_is_green_and_says_what_it_saw(rotated) -> None:
    _, result = rotated
    assert result.exit_code() == 0
    text = "\n".join(closing(result))
    assert "oci-once reported failed once while the image was there" in text
    assert "Right in every trial: oci-renew (10), skopeo-retry (11)." in text
    assert "NOT_REACHED oci-once" in text
    assert max(map(len, render(result, colour=False).splitlines())) <= 120


def test_a_client_that_says_done_whatever_happens_is_caught(tmp_path, monkeypatch) -> None:
    honest = oci_http.OciPush.push

    def naive(self, content, destination, *, deadline=120.0) -> Report:
        return replace(honest(self, content, destination, deadline=deadline), result="done")

    monkeypatch.setattr(oci_http.OciPush, "push", naive)
    result = swept(tmp_path, ("oci-once",), ("rotate-keys",), "before:manifest-put").run()
    (trial,) = result.trials
    assert (trial.reported, trial.truth, trial.verdict) == ("done", "ABSENT", "FALSE_SUCCESS")
    assert result.exit_code() == 1
    assert "oci-once reported done once while the image was lost" in "\n".join(closing(result))


def test_a_patient_client_gets_through_a_kill(tmp_path) -> None:
    """Fact sheet of the registry, section 3, "restart_kill": raw refresh is ok at all points."""
    points = ("mid@32768:blob-put", "after:blob-put", "cut:manifest-put")
    result = swept(tmp_path, ("oci-renew",), ("restart-kill",), *points).run()
    assert [(each.reported, each.verdict) for each in result.trials] == [OK] * 3


def test_a_token_is_held_at_its_own_service(tmp_path) -> None:
    """One that is asked for before the rotation and given after it is good; else it is lost."""
    result = swept(tmp_path, ("oci-once",), ("rotate-keys",), "before:token", "after:token").run()
    assert [(each.reported, each.verdict) for each in result.trials] == [OK, FAIL]


@pytest.mark.parametrize(
    ("action", "why"),
    [("remove-blob", "There is not one repository"), ("expire-token:300", "No token was issued yet")],
)
def test_a_point_before_there_is_anything_to_disturb_is_not_reached(tmp_path, action: str, why: str) -> None:
    (trial,) = swept(tmp_path, ("oci-once",), (action,), "before:ping").run().trials
    assert (trial.reported, trial.truth, trial.verdict) == ("done", "COMPLETE", NOT_REACHED)
    faults = [each for each in read_run(tmp_path) if isinstance(each, Fault)]
    assert [each.state for each in faults] == ["armed", "not-reached"]
    assert faults[1].detail.startswith(why)


def test_after_such_a_point_the_sweep_goes_on(tmp_path) -> None:
    result = swept(tmp_path, ("oci-once",), ("remove-blob",), "before:ping", "after:manifest-put").run()
    assert [each.verdict for each in result.trials] == [NOT_REACHED, "FALSE_SUCCESS"]


def test_random_instants_are_tried_until_the_time_is_over(tmp_path) -> None:
    result = swept(tmp_path, ("oci-renew",), ("restart",), soak=1.0).run()
    assert result.trials
    assert {each.point for each in result.trials} == {"random"}
    assert all(each.at.startswith("random@") for each in result.trials)


def test_a_client_without_its_engine_is_blocked_and_says_what_helps(tmp_path) -> None:
    result = swept(tmp_path, ("docker-naive", "oci-once"), ("restart",), "after:manifest-put").run()
    assert result.exit_code() == 3
    assert result.exit_code(allow_blocked=True) == 0
    text = "\n".join(closing(result))
    assert "BLOCKED docker-naive: No Docker engine here." in text
    assert "hint: hil engine up" in text


def test_what_a_registry_says_does_not_steer_the_terminal() -> None:
    lane = LaneResult("skopeo", failed="404 \x1b]0;mine\x07\x1b[2J")
    text = render(SweepResult(sweep_results.PUSH, (lane,), 1.0), colour=False)
    assert r"INFRA skopeo: 404 \x1b]0;mine\x07\x1b[2J" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("kind", [kind for kind in VerdictKind if kind is not VerdictKind.MATCH])
def test_no_divergence_is_called_right(kind: VerdictKind) -> None:
    trial = Trial("skopeo", "before:ping#1", "remove-blob", outcome="FAILED", verdict=kind.value)
    text = "\n".join(closing(SweepResult(sweep_results.PUSH, (LaneResult("skopeo", (trial,)),), 1.0)))
    assert "Right in every trial" not in text


def test_what_a_full_disk_does_not_take_is_judged_from_memory(tmp_path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def full(trial: Trial) -> None:
        """Let no file grow any more, as on a full disk."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))

    plan = PushPlan(("delay:0",), (FaultPoint.parse("before:ping"),), repeat=50, layers=1, layer_size=LAYER)
    try:
        (lane,) = (
            Sweep(PushSweep(["oci-once"], plan, lambda: None), tmp_path, progress=Telling(full)).run().lanes
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "cannot be written: File too large" in lane.failed
    assert [trial.verdict for trial in lane.trials] == ["MATCH"]


def test_a_second_ctrl_c_does_not_lose_what_there_is(tmp_path, capsys) -> None:
    """The second one comes while the first one's undoing is under way, which has handlers of its own."""

    def twice(trial: Trial) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(lambda: signal.getsignal(signal.SIGINT) is not handler, "the undoing")
        os.kill(os.getpid(), signal.SIGINT)

    plan = PushPlan(("restart",), (FaultPoint.parse("before:ping"),), repeat=50, layers=1, layer_size=LAYER)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    handler = signal.getsignal(signal.SIGINT)
    try:
        result = Sweep(PushSweep(["oci-once"], plan, lambda: None), tmp_path, progress=Telling(twice)).run()
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.interrupted
    assert [trial.verdict for trial in result.trials] == ["MATCH"]
    assert "the pushes under way end first" in capsys.readouterr().err


def test_a_sweep_that_is_told_to_end_gives_what_there_is(tmp_path) -> None:
    sweep = swept(
        tmp_path, ("oci-renew",), ("restart",), "before:ping", "after:blob-post", "cut:manifest-put"
    )
    sweep.progress = Telling(lambda trial: sweep.end())
    result = sweep.run()
    assert [each.point for each in result.trials] == ["before:ping#1"]
    assert result.trials[0].verdict == "MATCH"
    assert not judge(read_run(tmp_path)).finished


# --- which points a push passes -----------------------------------------------------------------------


def exchange(number: int, step: str, received: int = 0) -> Exchange:
    return Exchange(number, 1, "PUT", "/v2/", step, "a/b", 0.0, received=received)  # type: ignore[arg-type]


PUSH = [
    exchange(1, "ping"),
    exchange(2, "blob-post"),
    exchange(3, "blob-patch", 200),
    exchange(3, "blob-patch", 1000),
    exchange(4, "blob-put"),
    exchange(5, "blob-put"),
    exchange(6, "manifest-put", 300),
]


@pytest.mark.parametrize(
    ("point", "at"),
    [
        ("before:ping", "before:ping#1"),
        ("before:blob-put#last", "before:blob-put#2"),
        ("before:blob-put#2", "before:blob-put#2"),
        ("before:blob-put#3", None),
        ("mid@999:blob-patch", "mid@999:blob-patch#1"),
        ("mid@1000:blob-patch", None),
        ("mid@100:blob-patch#last", "mid@100:blob-patch#2"),
        ("mid@500:blob-patch#last", "mid@500:blob-patch#1"),
        ("mid@1:blob-put", None),
        ("before:blob-head", None),
        ("before:blob-get#last", None),
    ],
)
def test_what_a_recorded_push_passes(point, at) -> None:
    found = passed(FaultPoint.parse(point), PUSH)
    assert (str(found) if found is not None else None) == at


# --- how a sweep ends ---------------------------------------------------------------------------------

MATCH = Trial("oci-once", "before:ping#1", "restart", "done", "COMPLETE", "AS_INTENDED", "MATCH")
LIE = replace(MATCH, truth="ABSENT", outcome="FAILED", verdict="FALSE_SUCCESS")
NEVER = Trial("oci-once", "mid@1:blob-patch#1", "restart")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda: ending(MATCH), 0),
        (lambda: ending(LIE), 1),
        (lambda: ending(MATCH, replace(LIE, lane="docker-naive")), 0),
        (lambda: ending(MATCH, replace(LIE, lane="sysinv-download")), 0),
        (lambda: ending(MATCH, NEVER), 0),
        (lambda: ending(MATCH, NEVER, asked=(NEVER.point,)), 1),
        (lambda: ending(NEVER), 3),
        (lambda: ending(), 3),
        (lambda: ending(LIE, interrupted=True), 130),
        (lambda: ending(LIE, failed="the disk is full"), 1),
        (lambda: ending(MATCH, failed="the disk is full"), 3),
    ],
)
def test_the_exit_code_says_whether_a_client_lied(change: Callable[[], SweepResult], code) -> None:
    assert change().exit_code() == code


def ending(
    *trials: Trial, asked: tuple[str, ...] = (), interrupted: bool = False, failed: str = ""
) -> SweepResult:
    return SweepResult(
        sweep_results.PUSH, (LaneResult("oci-once", trials, failed=failed),), 1.0, interrupted, asked
    )
