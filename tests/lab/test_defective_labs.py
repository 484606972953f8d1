"""Known defects of cards, tools, registries and clients: a lab gets each by its name, and gets rid of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harness.emulator.card.profile import CHECK_CODES, FLAWS, CardProfile
from harness.emulator.tool_defects import TOOL_DEFECTS
from harness.errors import BlockedError, ConfigurationError
from harness.faults.registry_actions import registry_action
from harness.faults.registry_points import FaultPoint
from harness.inventory.load import load_inventory
from harness.inventory.model import Lab
from harness.judgement.model import Outcome, VerdictKind
from harness.lab.defective import OF_EQUIPMENT, defective, struck_by
from harness.lab.known_defects import catalogue
from harness.lab.registries import Registries
from harness.lab.specification import specification
from harness.registry.clients.catalogue import PUSH_CLIENTS

PROJECT = Path(__file__).parents[2]
INVENTORY = load_inventory(PROJECT / "inventory.yaml")
LAB = INVENTORY.lab("qualification")


def switches(kind: str) -> list[Any]:
    return [each.switch for each in OF_EQUIPMENT.values() if each.kind == kind]


def spec_of(lab: Lab) -> dict[str, Any]:
    inventory = INVENTORY.model_copy(update={"labs": {lab.name: lab}, "default_lab": lab.name})
    return specification(inventory, lab)


def test_every_check_and_flaw_of_the_card_and_every_defect_of_a_tool_is_in_the_catalogue() -> None:
    cards = switches("card")
    assert {each["disabled_checks"] for each in cards if "disabled_checks" in each} == set(CHECK_CODES)
    assert {each["flaws"] for each in cards if "flaws" in each} == set(FLAWS)
    assert set(switches("tool")) == set(TOOL_DEFECTS)


def test_every_client_but_the_reference_is_in_the_catalogue() -> None:
    assert set(switches("client")) == set(PUSH_CLIENTS) - {"verified-push"}


def test_every_defect_of_a_registry_is_an_action_at_a_point() -> None:
    for struck in switches("registry"):
        registry_action(struck.action)
        FaultPoint.parse(struck.point)


def test_every_entry_says_what_detects_it() -> None:
    words = {kind.value for kind in (*Outcome, *VerdictKind)} - {"AS_INTENDED", "MATCH"}
    for each in catalogue():
        assert each.predicts in words and each.reference and each.claims


@pytest.mark.parametrize("name", [n for n, each in OF_EQUIPMENT.items() if each.kind in ("card", "tool")])
def test_a_card_or_a_tool_has_it_in_the_specification_and_is_rid_of_it(name: str) -> None:
    generation = OF_EQUIPMENT[name].generation

    def told(lab: Lab, generation: str = generation or "D") -> dict[str, Any]:
        hosts = [host for host in spec_of(lab)["hosts"] if host["generation"] == generation]
        host = next(host for host in hosts if host["cards"])
        profile = host["cards"][0].get("profile", {})
        CardProfile.from_mapping(profile)
        return {"tools": host["tool_defects"], **{k: v for k, v in profile.items() if v}}

    ill = defective(LAB, [name])
    switch = OF_EQUIPMENT[name].switch
    expected = (
        {"tools": [switch]}
        if isinstance(switch, str)
        else {"tools": []} | {key: [value] for key, value in switch.items()}
    )
    assert told(ill) == expected
    if generation:
        assert told(ill, "D") == {"tools": []}
    assert told(defective(ill, [], [name])) == told(LAB) == {"tools": []}


def test_a_registry_strikes_every_push_and_is_rid_of_it() -> None:
    ill = defective(LAB, ["left-read-only"])
    struck = struck_by(ill.registry())
    assert struck is not None
    assert struck.action == "read-only"
    assert struck_by(defective(ill, [], ["left-read-only"]).registry()) is None
    assert struck_by(LAB.registry()) is None


@pytest.mark.parametrize("name", [n for n, each in OF_EQUIPMENT.items() if each.kind == "registry"])
def test_a_registry_has_a_store_of_its_own_where_its_defect_needs_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That takes root; where there is none, nothing is pushed, and the scenario is blocked."""

    def no_root(size: int) -> None:
        raise BlockedError("only root may mount")

    monkeypatch.setattr("harness.faults.own_store.check_can_mount", no_root)
    registries = Registries(defective(LAB, [name]), host=lambda host: pytest.fail(host))
    with registries:
        if name in ("disk-full", "killed-at-manifest"):
            with pytest.raises(BlockedError, match="only root may mount"):
                registries.bench()
        else:
            assert registries.bench().registry.instance is not None


def test_a_lab_pushes_through_the_client_that_it_is_given() -> None:
    ill = defective(LAB, ["pushed-by-skopeo"])
    assert (LAB.registry().push_client, ill.registry().push_client) == ("verified-push", "skopeo")
    assert defective(ill, [], ["pushed-by-skopeo"]).registry().push_client == "verified-push"


def test_a_registry_with_a_defect_that_there_is_not_is_told() -> None:
    registry = LAB.registry()
    assert registry.emulated is not None
    odd = registry.emulated.model_copy(update={"defects": ("left-read-onyl",)})
    with pytest.raises(ConfigurationError) as told:
        struck_by(registry.model_copy(update={"emulated": odd}))
    assert "left-read-only" in told.value.hint


def test_no_scenario_of_the_qualification_names_a_defect() -> None:
    names = {each.name for each in catalogue()}
    for path in (PROJECT / "testplans" / "qualification").rglob("*.*"):
        if path.suffix in (".py", ".yaml"):
            assert not names & set(re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)+", path.read_text())), path
