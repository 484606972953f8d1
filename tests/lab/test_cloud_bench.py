"""A distributed cloud of a lab, end to end: by API and by command, in both regions, past the interlock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from harness.controlplane.cloud_protocol import (
    CENTRAL_REGION,
    Step,
    Strategy,
    StrategyChange,
    StrategyOptions,
)
from harness.controlplane.cloud_rest import CloudRest
from harness.controlplane.gate import Permits
from harness.controlplane.protocol import Upload
from harness.errors import ConfigurationError, ControlPlaneError, NoSuchRecordError, RefusedError
from harness.images.facts import image_facts
from harness.images.recipes import build, load_recipes
from harness.inventory.load import load_inventory
from harness.judgement.judge import judge_scenario
from harness.judgement.model import VerdictKind
from harness.judgement.records import Claim, Completion, Intent, Observation, ScenarioStarted
from harness.judgement.values import Unknown
from harness.lab.cloud_bench import CloudBench, clouds_of, narrowed_to_cloud
from harness.lab.running import RunningLab, start_lab
from harness.lab.system_bench import SystemBench
from harness.lab.systems import login_of
from harness.record.history import History

RECIPES = load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())
INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    controllers:
      center: {role: system-controller, emulated: {release: corrected}}
      sub1: {role: subcloud, parent: center, emulated: {release: corrected}}
      sub2: {role: subcloud, parent: center, emulated: {release: corrected}}
      alone: {role: system-controller, emulated: true}
    hosts:
      desk: {system: center, emulated: {}}
      node1:
        system: sub1
        emulated: {}
        cards: {card0: {address: '0000:b2:00.0', identity: '64:4c:36:00:78:00', irreversible: [root-key]}}
      node2:
        system: sub2
        emulated: {}
        cards: {card0: {address: '0000:b4:00.0', identity: '64:4c:36:00:78:01'}}
"""
Open = Callable[..., CloudBench]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    file = tmp_path_factory.mktemp("inventory") / "inventory.yaml"
    file.write_text(INVENTORY)
    with start_lab(narrowed_to_cloud(load_inventory(file), None, "center")) as running:
        yield running


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    found = History(tmp_path / "history.jsonl")
    yield found
    found.close()


@pytest.fixture
def cloud(lab: RunningLab, history: History) -> Iterator[Open]:
    """Opens the cloud, its cards as new; afterwards there is neither a strategy nor an image."""
    assert lab.bench is not None
    for card in ("node1/card0", "node2/card0"):
        lab.bench.fit(card, {})
    opened: list[CloudBench] = []

    def give(way: Any = "rest") -> CloudBench:
        opened.append(CloudBench(lab, "center", history, way=way))
        return opened[-1]

    yield give
    first = opened[0]
    if first.driver.strategy() is not None:
        first.driver.delete_strategy()
        first.driver.wait_until_deleted(deadline=30)
    for part in (first.region_one, *first.subclouds.values()):
        for image in part.driver.images():
            if image.applied:
                part.driver.remove(image.uuid)
            part.driver.delete(image.uuid)
    for each in opened:
        each.close()


def upload(bench: CloudBench, recipe: str, *, own: bool = False) -> str:
    part = bench.region_one if own else bench.controller
    kind = {"bitstream_type": "functional", "bitstream_id": "0x1"}
    if recipe.startswith("root-key"):
        kind = {"bitstream_type": "root-key", "key_signature": "aa"}
    return part.driver.upload(Upload(build(RECIPES[recipe]), "image.bin", **kind)).uuid  # type: ignore[arg-type]


def out_of_sync(bench: CloudBench, recipe: str) -> str:
    """Apply an image to every card, so that every subcloud needs it."""
    uuid = upload(bench, recipe)
    bench.controller.driver.apply(uuid)
    bench.pass_time(90)
    return uuid


def firmware(bench: CloudBench) -> list[Any]:
    return [one.firmware_sync_status for one in bench.driver.subclouds()]


def agree(by_api: list[Any], by_command: list[Any]) -> None:
    """Both ways say the same, but for what one of them does not show, and the name of a step's stage."""
    assert [type(one) for one in by_api] == [type(one) for one in by_command]
    for one, other in zip(by_api, by_command, strict=True):
        for each in fields(one):
            said = getattr(one, each.name), getattr(other, each.name)
            if each.name != "stage" and not any(isinstance(value, Unknown) for value in said):
                assert said[0] == said[1], f"{each.name} of {one}"


# -- what is said ------------------------------------------------------------------------------------------


def test_both_ways_say_the_same(cloud: Open) -> None:
    api, command = cloud("rest"), cloud("cli")
    agree([], api.driver.progress())
    agree(api.driver.progress(), command.driver.progress())
    for _ in out_of_sync(api, "A/csk0"), api.driver.create_strategy():
        agree(api.driver.subclouds(), command.driver.subclouds())
    assert firmware(command) == ["out-of-sync", "out-of-sync"]
    agree(api.driver.progress(), command.driver.progress())
    agree([api.driver.step("sub1")], [command.driver.step("sub1")])
    agree(api.controller.driver.images(), command.controller.driver.images())
    (said,) = [each for each in api.driver.steps() if each.cloud == "sub1"]
    assert (said.state, said.finished_at) == ("initial", None)


@pytest.mark.parametrize("way", ["rest", "cli"])
def test_an_image_comes_to_every_card(cloud: Open, history: History, way: str) -> None:
    bench = cloud(way)
    recipe = "A/csk0" if way == "rest" else "A/csk1"
    out_of_sync(bench, recipe)
    bench.driver.create_strategy(StrategyOptions("serial"))
    bench.driver.apply_strategy()
    assert bench.driver.wait_for_strategy(deadline=60).state == "complete"
    assert {step.state for step in bench.driver.steps()} == {"complete"}
    bench.pass_time(90)
    begun = len(history.records)
    bench.look()
    looked = history.records[begun:]
    systems = [record.subject.name for record in looked if isinstance(record, Intent)]
    assert systems == ["center", "sub1", "sub2"]
    assert len({record.source_time for record in looked if not isinstance(record, Completion)}) == 1
    cards = [r.values for r in looked if isinstance(r, Observation) and r.probe == "card"]
    assert [card["bitstream_id"] for card in cards] == [image_facts(build(RECIPES[recipe])).bitstream_id] * 2
    said = [r for r in looked if isinstance(r, Claim) and "/subcloud/" in r.subject.name]
    assert [claim.statement["firmware_sync_status"] for claim in said] == ["in-sync", "in-sync"]


def test_an_image_of_the_own_region_is_nobody_elses(cloud: Open) -> None:
    """What the proxy is told makes every status unknown until the audit; what sysinv is told, does not."""
    bench = cloud()
    bench.pass_time(90)
    assert firmware(bench) == ["in-sync", "in-sync"]
    upload(bench, "A/csk0", own=True)
    assert firmware(bench) == ["in-sync", "in-sync"]
    upload(bench, "A/csk1")
    assert firmware(bench) == ["unknown", "unknown"]
    bench.pass_time(90)
    assert firmware(bench) == ["in-sync", "in-sync"], "neither is applied"


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["rest", "cli"])
def test_refusals_have_the_systems_own_text(cloud: Open, way: str) -> None:
    bench = cloud(way)
    driver = bench.driver
    uuid = upload(bench, "A/csk0")
    bench.controller.driver.apply(uuid)
    with pytest.raises(ControlPlaneError, match="sync status is unknown for one or more subclouds"):
        driver.create_strategy()
    with pytest.raises(ControlPlaneError, match="Subcloud nobody does not exist"):
        driver.create_strategy(StrategyOptions(cloud_name="nobody"))
    bench.pass_time(90)
    driver.create_strategy()
    with pytest.raises(ControlPlaneError, match="Strategy of type: 'firmware' already exists"):
        driver.create_strategy()
    with pytest.raises(ControlPlaneError, match="Strategy in state initial cannot be aborted"):
        driver.abort_strategy()
    with pytest.raises(NoSuchRecordError, match="Subcloud not found"):
        driver.subcloud("nobody")


def test_what_cannot_be_undone_is_not_orchestrated_to_a_card_that_does_not_permit_it(
    cloud: Open, history: History
) -> None:
    """One card permits it, so that the controller gets the image; the other one does not."""
    bench = cloud()
    out_of_sync(bench, "root-key-A")
    bench.driver.create_strategy()
    with pytest.raises(RefusedError, match=r"sub2, image .*cannot be undone"):
        bench.driver.apply_strategy()
    strategy = bench.driver.strategy()
    assert strategy is not None and strategy.state == "initial"
    (refused,) = [
        r for r in history.records if isinstance(r, Completion) and r.error.get("kind") == "refused"
    ]
    asked = next(r for r in history.records if r.seq == refused.intent)
    assert isinstance(asked, Intent) and asked.operation == "strategy-apply"


def test_a_permit_for_something_else_is_none(cloud: Open, lab: RunningLab) -> None:
    cloud()
    way = CloudRest("center", login_of(lab, lab.entry.controllers["center"], CENTRAL_REGION))
    change = StrategyChange("strategy-create")

    class Other(Permits):
        def command(self, host: str, words: Any) -> Any:
            return super().command(host, ["GET", "/", "null"])

    try:
        with pytest.raises(RefusedError, match="does not cover"):
            way.carry_out(change, Other(change, "a test"))
        assert way.strategy() is None
    finally:
        way.close()


# -- what goes on ------------------------------------------------------------------------------------------


def test_tokens_that_expire_are_renewed(cloud: Open, lab: RunningLab) -> None:
    bench = cloud()
    assert lab.bench is not None
    bench.driver.subclouds()
    lab.bench.trouble("center", "expire-tokens")
    assert len(bench.driver.subclouds()) == 2


def test_clouds_of_a_lab(tmp_path: Path) -> None:
    file = tmp_path / "inventory.yaml"
    file.write_text(INVENTORY)
    inventory = load_inventory(file)
    assert clouds_of(inventory.lab()) == {"center": ["sub1", "sub2"]}
    assert list(narrowed_to_cloud(inventory, None, "center").lab().hosts) == ["desk", "node1", "node2"]
    with pytest.raises(ConfigurationError, match="no system controller alone of subclouds"):
        narrowed_to_cloud(inventory, None, "alone")


@pytest.mark.parametrize("real", [True, False])
def test_an_alarm_that_comes_amid_a_look_at_a_real_cloud_contradicts_nothing(
    cloud: Open, history: History, monkeypatch: pytest.MonkeyPatch, real: bool
) -> None:
    """Time goes on while a real system is looked at: its alarms are asked for before all else and after it.

    In an emulated cloud, whose time stands then, it is a contradiction.
    """
    monkeypatch.setattr(SystemBench, "time_goes_on", real)
    bench = cloud()
    bench.controller.driver.apply(upload(bench, "A/csk0"))
    progress = bench.driver.progress

    def audited_meanwhile() -> list[Strategy | Step]:
        bench.pass_time(90)
        return progress()

    monkeypatch.setattr(bench.driver, "progress", audited_meanwhile)
    history.add(ScenarioStarted(scenario="amid a look"))
    bench.look()
    said = [v for v in judge_scenario(history.records).judged if v.reporter == "alarm-280.002"]
    true = [f"the firmware of {name} is said to be unknown" for name in ("sub1", "sub2")]
    assert [verdict.truth for verdict in said] == true
    how = "came or went amid the look" if real else "stands"
    assert [verdict.claimed for verdict in said] == [f"280.002 {how} for {name}" for name in ("sub1", "sub2")]
    assert {verdict.kind for verdict in said} == {VerdictKind.MATCH if real else VerdictKind.STALE}
