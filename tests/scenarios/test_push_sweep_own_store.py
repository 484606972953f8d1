"""Sweeps whose registry needs a store on a file system of its own: a full disk, and a kill at an opening."""

from pathlib import Path

import pytest
from support.engine import private_engine

from harness.errors import BlockedError, ConfigurationError
from harness.faults.own_store import check_can_mount
from harness.faults.registry_points import FaultPoint
from harness.scenarios.push_points import default_points
from harness.scenarios.push_sweep import EngineOpener, PushSweep
from harness.scenarios.push_trials import PushPlan
from harness.scenarios.sweep import Sweep
from harness.scenarios.sweep_results import SweepResult

LAYER = 1 << 16
POISON = "kill-at-open:manifest-blob"


@pytest.fixture(autouse=True)
def mounting() -> None:
    """What these tests need; without it they say so."""
    try:
        check_can_mount(64 << 20)
    except BlockedError as error:
        pytest.fail(f"BLOCKED: {error}", pytrace=False)


def swept(
    folder: Path,
    action: str,
    *clients: str,
    points: tuple[str, ...] = (),
    engine: EngineOpener = lambda: None,
) -> SweepResult:
    chosen = tuple(map(FaultPoint.parse, points)) or default_points(LAYER)
    plan = PushPlan((action,), chosen, layers=2, layer_size=LAYER)
    return Sweep(PushSweep(clients, plan, engine), folder).run()


def test_a_manifest_lost_in_a_crash_is_believed_by_all_but_who_reads_it_back(tmp_path: Path) -> None:
    """Fact sheet of the registry, section 3: the re-push is OK with a digest to skopeo and to the SDK."""
    with private_engine() as engine:
        result = swept(tmp_path, POISON, "skopeo", "docker-stream", "verified-push", engine=lambda: engine)
    seen = {each.lane: (each.at_first, each.reported, each.verdict) for each in result.trials}
    assert seen == {
        "skopeo": ("failed", "done", "FALSE_SUCCESS"),
        "docker-stream": ("failed", "done", "FALSE_SUCCESS"),
        "verified-push": ("failed", "failed", "MATCH"),
    }
    # Of the points of the default it strikes at one, where the manifest is written.
    assert [each.point for each in result.trials] == ["before:manifest-put#1"] * 3
    assert {each.truth for each in result.trials} == {"CORRUPT"}
    assert result.exit_code() == 1


def test_a_layer_link_lost_in_a_crash_blocks_who_asks_first(tmp_path: Path) -> None:
    """The same table: HEAD of the blob is 500, for good. Measured, skopeo uploaded anyway and healed it: from
    an archive, whose layers it packs anew and cannot ask for. From a folder it knows the digests, and asks.
    """
    (trial,) = swept(tmp_path, "kill-at-open:layer-link", "skopeo", points=("before:blob-put",)).trials
    assert (trial.at_first, trial.reported, trial.truth) == ("failed", "failed", "ABSENT")


def test_a_full_disk_is_reported_and_pushed_once(tmp_path: Path) -> None:
    (trial,) = swept(tmp_path, "disk-full", "oci-once", points=("before:manifest-put",)).trials
    assert (trial.at_first, trial.reported, trial.truth, trial.verdict) == ("", "failed", "ABSENT", "MATCH")


def test_a_point_where_it_never_strikes_is_told(tmp_path: Path) -> None:
    (trial,) = swept(tmp_path, POISON, "oci-once", points=("after:manifest-put",)).trials
    assert (trial.verdict, trial.reason) == ("NOT_REACHED", f"{POISON} strikes only at before:manifest-put")


@pytest.mark.parametrize("action", ["disk-full", "reset"])
def test_random_instants_are_none_for_it(tmp_path: Path, action: str) -> None:
    plan = PushPlan(("restart", action), default_points(LAYER), soak=1.0)
    with pytest.raises(ConfigurationError, match=f"{action} does not strike at random instants"):
        Sweep(PushSweep(("oci-once",), plan, lambda: None), tmp_path).run()
    assert not list(tmp_path.iterdir())
