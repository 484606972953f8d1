"""One fault of one push: what becomes of it when nobody wants to wait for it any more."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from support.processes import wait_until

from harness.faults.push_fault import PushFault
from harness.faults.registry_actions import registry_action
from harness.faults.registry_points import FaultPoint
from harness.judgement.records import Fault
from harness.lab.registry_bench import RegistryBench
from harness.record.history import History
from harness.registry.images import ImageRecipe, make_image, sized_layers
from harness.registry.process import find_registry
from harness.registry.push_driver import PushDriver

IMAGE = make_image(ImageRecipe(sized_layers(2, 2000)))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RegistryBench]:
    with RegistryBench(tmp_path / "bench", program=find_registry(install=False)) as made:
        yield made


@pytest.mark.parametrize("action", ["pause:600", "stop"])
def test_a_service_that_is_away_comes_back_at_once_when_the_fault_is_given_up(
    bench: RegistryBench, tmp_path: Path, action: str
) -> None:
    with History(tmp_path / "history.jsonl") as history, ThreadPoolExecutor() as pool:
        driver = PushDriver(history, bench.push_client("oci-renew"), bench.probe)
        fault = PushFault(bench, history, registry_action(action), FaultPoint.parse("before:manifest-put"))
        destination = bench.destination("a/b", "v1", client="oci-renew")
        with fault.armed(destination.reference):
            push = pool.submit(driver.push, IMAGE, destination, meanwhile=fault.strike)
            wait_until(lambda: fault.struck, "the strike")
            fault.give_up()
            bench.registry.wait_ready()
            assert push.result(60).report.result == "done"
        states = [record.state for record in history.records if isinstance(record, Fault)]
        assert states == ["armed", "fired", "undone"]


def test_a_point_that_is_given_up_is_not_reached_any_more(bench: RegistryBench, tmp_path: Path) -> None:
    with History(tmp_path / "history.jsonl") as history:
        driver = PushDriver(history, bench.push_client("oci-renew"), bench.probe)
        fault = PushFault(bench, history, registry_action("pause"), FaultPoint.parse("before:manifest-put"))
        destination = bench.destination("a/b", "v1", client="oci-renew")
        with fault.armed(destination.reference):
            fault.give_up()
            assert driver.push(IMAGE, destination, meanwhile=fault.strike).report.result == "done"
        assert not fault.struck


def test_a_push_that_does_not_come_in_time_is_not_said_to_have_ended(
    bench: RegistryBench, tmp_path: Path
) -> None:
    with History(tmp_path / "history.jsonl") as history:
        point = FaultPoint.parse("before:manifest-put")
        fault = PushFault(bench, history, registry_action("pause"), point, deadline=0.01)
        with fault.armed(bench.destination("a/b", "v1", client="oci-renew").reference):
            fault.strike(1, Future())
    last = history.records[-1]
    assert isinstance(last, Fault)
    assert (last.state, last.detail) == (
        "not-reached",
        "the push did not come to this point within 0.01 s",
    )
