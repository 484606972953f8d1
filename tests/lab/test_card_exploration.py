"""Exploration of cards: a sound one never disagrees with the documents, a defective one soon and shortly."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.images.recipes import load_recipes
from harness.lab.card_exploration import cards, opened, probes_after
from harness.plugin import steps as _fill_the_steps  # noqa: F401
from harness.scenarios.counterexample import scenario_of
from harness.scenarios.exploration import Budget
from harness.scenarios.files import load_scenario
from harness.scenarios.writing import scenario_text

RECIPES = load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())


def explored(*defects: str, steps: int = 20_000, wear: int = 1 << 30, seed: int = 5):
    with opened(RECIPES, defects) as explorable:
        return explorable.shrunk(explorable.explored(Budget(steps, 30.0, wear), seed=seed))


def test_a_sound_card_agrees_after_every_step() -> None:
    found = explored(steps=1500)
    assert (found.reason, found.counterexample) == ("", ())
    assert found.steps == 1500


def test_wear_is_a_budget() -> None:
    found = explored(wear=100)
    assert found.updates == 100
    assert found.steps < 1500


def test_a_seed_decides_what_is_done() -> None:
    first, again, other = (explored("csk-cancelled-not-checked", seed=seed) for seed in (1, 1, 2))
    assert (first.steps, first.counterexample) == (again.steps, again.counterexample)
    assert first.steps != other.steps


@pytest.mark.parametrize(
    ("defect", "said", "most"),
    [
        ("csk-cancelled-not-checked", "documents say code 0x15", 5),
        ("root-hash-not-checked", "documents say code 0x11", 3),
        ("b0-signature-not-checked", "documents say code 0x13", 3),
        ("next-csk-cancelled", "sr_cancelled is", 3),
        ("root-key-lost", "sr_root is", 2),
        ("cancellations-lost", "sr_cancelled is", 4),
        ("root-key-ignored", "documents say code", 3),
        ("copy-dropped", "bitstream_id is", 2),
        ("factory-page-booted", "bitstream_id is", 2),
        ("reset-stays-away", "address is None", 1),
    ],
)
def test_a_defective_card_is_found_in_few_steps(defect: str, said: str, most: int) -> None:
    found = explored(defect)
    assert said in found.reason
    assert 0 < len(found.counterexample) <= most


def test_a_defect_that_is_none_of_a_card_is_told() -> None:
    with pytest.raises(ConfigurationError, match="rsu-resets-nothing"):
        explored("rsu-resets-nothing")


def test_a_counterexample_is_a_scenario_file(tmp_path: Path) -> None:
    found = explored("root-key-lost")
    probes = probes_after(found.counterexample, cards(RECIPES, ["root-key-lost"]))
    path = tmp_path / "found.scenario.yaml"
    path.write_text(scenario_text(scenario_of(found.counterexample, found.reason, probes)))
    scenario, text = load_scenario(path), path.read_text()
    assert "unchanged 0x11" in text, "what the lost key would have refused is tried"
    done = [(call.step.name, call.arguments.get("image", "")) for call in scenario.calls]
    assert done[0] in (("flash", "root-key-A"), ("flash", "root-key-B"))
    assert ("flash", "unsigned") in done
