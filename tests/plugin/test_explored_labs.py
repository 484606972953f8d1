"""Explorations of a registry, a system and a card behind its driver: sound ones agree, defects are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.plans import INVENTORY, PROJECT, lay_out, real_inventory

from harness.inventory.load import load_inventory
from harness.judgement.judge import judge
from harness.lab.bench import Bench
from harness.lab.releases import Release
from harness.lab.running import start_lab
from harness.plugin.exploring import opening
from harness.record.history import History, read_history
from harness.scenarios.card_model import Step
from harness.scenarios.counterexample import scenario_of
from harness.scenarios.exploration import Budget, Disagreement, Explorable, Explored, explore
from harness.scenarios.files import load_scenario
from harness.scenarios.registry_model import Act as RegistryAct
from harness.scenarios.system_model import Act
from harness.scenarios.writing import scenario_text

#: The labs of this project.
LABS = load_inventory(PROJECT / "inventory.yaml")
PLACE = ("explored/one", "v1")


def found_by(explorable: Explorable[Any], steps: Sequence[Any]) -> str:
    """Return how the subject came to disagree with its model; empty where it did not. All steps are taken."""
    with closing(explorable.fresh()) as subject:
        try:
            for step in steps:
                subject.do(step)
        except Disagreement as found:
            return str(found)
        assert subject.steps == [*steps], "one of them was passed over"
        return ""


def saved(explorable: Explorable[Any], steps: Sequence[Any], folder: Path) -> Any:
    """Return the scenario file that a counterexample of these steps is, read back."""
    explored = Explored(len(steps), 0, 1.0, 1, tuple(steps), "something")
    path = folder / "found.scenario.yaml"
    path.write_text(scenario_text(opening.scenario_of(explorable, explored, "a document")))
    return load_scenario(path)


# -- a registry -------------------------------------------------------------------------------------------

LIFE_OF_IMAGES = (
    RegistryAct("push", ("", "tiny", *PLACE)),
    RegistryAct("copy", ("explored/one", "tiny", "explored/two", "v2")),
    RegistryAct("push-disturbed", ("shared", *PLACE, "before:manifest-put", "rotate-keys")),
    RegistryAct("push-disturbed", ("index", *PLACE, "before:manifest-put", "answer-403")),
    RegistryAct("delete", ("explored/two", "v2")),
    RegistryAct("disturb", ("collect-garbage",)),
    RegistryAct("push", ("", "tiny", "explored/two", "v2")),
    RegistryAct("pull", ("oci-pull", "explored/two", "v2")),
    RegistryAct("look-again", ()),
)


def test_a_sound_registry_keeps_what_it_is_given() -> None:
    assert found_by(opening.registry(LABS, None, None, []), LIFE_OF_IMAGES) == ""


@pytest.mark.parametrize(
    ("defect", "act", "said"),
    [
        ("layer-cut-short", LIFE_OF_IMAGES[0], "FAILED: it is CORRUPT"),
        ("kept-and-denied", LIFE_OF_IMAGES[0], "FALSE_FAILURE: verified-push"),
        ("tokens-denied", LIFE_OF_IMAGES[0], "verified-push does not know whether registry.local/"),
    ],
)
def test_a_defect_of_a_registry_is_found(defect: str, act: RegistryAct, said: str) -> None:
    explorable = opening.registry(LABS, None, None, [defect])
    assert found_by(explorable, [act]).startswith(said)


def test_a_client_that_cannot_read_back_what_it_pushed_need_not_know_what_became_of_it() -> None:
    """The token service refuses its reading; what was told 201 is there, and it does not say otherwise."""
    denied = RegistryAct("push-disturbed", ("shared", *PLACE, "before:blob-head", "deny-token"))
    assert found_by(opening.registry(LABS, None, None, []), [denied]) == ""


def test_what_is_found_of_a_client_is_a_scenario(tmp_path: Path) -> None:
    explorable = opening.registry(LABS, None, None, ["pushed-by-oci-once"])
    scenario = saved(explorable, LIFE_OF_IMAGES[2:4], tmp_path)
    assert [call.step.name for call in scenario.calls] == ["push", "look-again"], "it ends where it was found"
    assert scenario.calls[0].arguments["client"] == "oci-once"


# -- a system ---------------------------------------------------------------------------------------------

LIFE_OF_A_SYSTEM = (
    Act("label", label="site"),
    Act("apply", "A/csk0", "site"),
    Act("apply", "A/csk0-v2", "site"),
    Act("update"),
    Act("boot"),
    Act("audit"),
    Act("delete", "A/csk0-v2"),
    Act("remove", "A/csk0-v2", "site"),
    Act("unlabel", label="site"),
)


def test_a_system_without_defects_does_and_says_what_documents_have() -> None:
    explorable = opening.system(LABS, "device-images", "standard", Release(), "rest")
    assert found_by(explorable, LIFE_OF_A_SYSTEM) == ""


def test_the_alarm_of_updates_goes_with_the_last_image_although_its_host_is_to_be_booted() -> None:
    """As an exploration found it: section 3.6 of the fact sheet has it so, and the judge did not."""
    acts = (
        Act("label", label="site"),
        Act("apply", "unsigned", "site"),
        Act("update"),
        Act("remove", "unsigned", "site"),
        Act("delete", "unsigned"),
    )
    explorable = opening.system(LABS, "device-images", "standard", Release(), "rest")
    assert found_by(explorable, acts) == ""


def test_what_is_found_of_a_system_is_a_scenario(tmp_path: Path) -> None:
    explorable = opening.system(LABS, "device-images", "standard", Release(None, ("old-flag-kept",)), "rest")
    scenario = saved(explorable, [Act("apply", "A/csk0"), Act("apply", "A/csk0-v2"), Act("boot")], tmp_path)
    done = [call.step.name for call in scenario.calls]
    assert done == ["upload", "apply"] * 2, "it ends where it was found"
    assert scenario.variants[0].given.release.name == "corrected"


# -- a card behind its driver -----------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the hosts ``one`` and ``two``, a card each."""
    lay_out(tmp_path)
    return tmp_path


def test_a_sound_card_over_ssh_agrees_and_a_tool_that_lies_is_found(project: Path) -> None:
    inventory = load_inventory(project / "inventory.yaml")
    with opening.card(inventory, None, "one/card0", reports=project) as explorable:
        assert (
            found_by(
                explorable,
                [
                    Step("flash", "root-key-A"),
                    Step("move", word="away"),
                    Step("reset", word="bmc_user"),
                    Step("flash", "unsigned", code=0x11),
                    Step("second", "unsigned", code=0x11, word="A/csk0"),
                    Step("cut", "A/csk0", "copying"),
                    Step("reset", word="bmc_user"),
                    Step("reboot", "A/csk1", "transferring"),
                    Step("flash", "A/csk0"),
                    Step("reset", word="bmc_user"),
                ],
            )
            == ""
        )
        found = explore(explorable.fresh, explorable.rules, Budget(10, 60, 100), seed=1, length=10, burst=5)
        assert (found.steps, found.reason) == (10, "")
    defect = ["fpgasupdate-ignores-error"]
    with opening.card(inventory, None, "one/card0", defects=defect, reports=project) as explorable:
        said = found_by(explorable, [Step("flash", "tampered-payload", code=0x16)])
    assert said.startswith("CONTRADICTION: fpgasupdate"), "the kernel's log has the code of the card"


def test_a_second_updater_that_is_let_in_is_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "second_update", lambda bench, card, image: "")
    inventory = load_inventory(project / "inventory.yaml")
    with opening.card(inventory, None, "one/card0", reports=project) as explorable:
        said = found_by(explorable, [Step("second", "A/csk0", word="unsigned")])
    assert said.endswith(
        "a second updater wanted to write unsigned to one/card0 while an update ran, and was let in"
    )


RESET = Step("reset", word="bmc_user")
A, B = Step("flash", "A/csk0"), Step("flash", "B/csk0")


def test_what_a_saved_counterexample_states_of_a_sound_card_is_what_comes_of_it(project: Path) -> None:
    """Two user images without a reset between them, among others: only what nobody can tell is UNKNOWN."""
    stated = {
        (A, A): "UNKNOWN",
        (A, B): "UNKNOWN",
        (A, Step("cancel", "A/csk0", "transferring")): "UNKNOWN",
        (Step("cancel", "A/csk0", "preparing"), A): "UNKNOWN",
        (A, RESET, Step("cancel", "A/csk0", "transferring")): "UNKNOWN",
        (A, RESET, B): "AS_INTENDED",
        (A, Step("cut", "A/csk0", "copying")): "UNKNOWN",
        (Step("cut", "A/csk0", "copying"), B): "UNKNOWN",
        (A, RESET, Step("cut", "A/csk0", "copying")): "AS_INTENDED",
        (A, Step("cancel", "B/csk0", "preparing")): "AS_INTENDED",
        (Step("second", "A/csk0", word="B/csk0"),): "AS_INTENDED",
        (Step("second", "A/csk0", word="B/csk0"), B): "UNKNOWN",
    }
    inventory = load_inventory(project / "inventory.yaml")
    came = {}
    with opening.card(inventory, None, "one/card0", reports=project) as explorable:
        for steps in stated:
            with closing(explorable.fresh()) as subject:
                for step in (*steps, RESET):
                    subject.do(step)
                came[steps] = subject.expectation().get("outcome", "AS_INTENDED")
    assert came == stated
    saved_as = {
        steps: scenario_of(steps, "something")["expect"].get("outcome", "AS_INTENDED") for steps in stated
    }
    assert saved_as == stated


def test_what_an_emulated_card_does_not_permit_is_not_done_to_it(project: Path) -> None:
    inventory = load_inventory(project / "inventory.yaml")
    with opening.card(inventory, None, "two/card0", reports=project) as explorable:
        images = {image for rule in explorable.rules for step in rule for image in step.images}
    assert images & {"A/csk0", "unsigned"}
    assert "second" in {step.name for rule in explorable.rules for step in rule}
    assert not {image for image in images if image.startswith(("root-key", "cancel"))}


@pytest.fixture
def real(project: Path) -> Iterator[Path]:
    """The project, its two hosts real as far as the harness can tell: reached over SSH, no bench."""
    (project / "inventory.yaml").write_text(INVENTORY.replace("{power: false}", "{}"))
    with start_lab(load_inventory(project / "inventory.yaml")) as lab:
        (project / "inventory.yaml").write_text(real_inventory(lab.doors, "[root-key]"))
        yield project


def explored_real(real: Path, wear: int) -> tuple[Any, Any, History]:
    """Explore a real card for 12 steps; return what was found, the rules and the history that is kept."""
    inventory, seconds = load_inventory(real / "inventory.yaml"), 120.0
    path = real / f"history-{wear}.jsonl"
    with (
        closing(History(path)) as kept,
        opening.card(inventory, None, "one/card0", wear=wear, reports=real, kept=kept) as explorable,
    ):
        budget = Budget(12, seconds, wear)
        found = explore(explorable.fresh, explorable.rules, budget, seed=2, length=6, burst=1)
        return found, explorable, kept


def flashed(kept: History) -> list[str]:
    """Return the images that were flashed, by the history on disk."""
    intents = [r for r in read_history(kept.path) if getattr(r, "operation", "") == "flash"]
    return [intent.parameters["name"] for intent in intents]


def test_a_real_card_wears_only_as_far_as_it_is_told(real: Path) -> None:
    found, explorable, kept = explored_real(real, wear=0)
    assert (found.updates, flashed(kept), found.reason) == (0, [], "")
    assert explorable.wears
    found, _, kept = explored_real(real, wear=2)
    assert len(flashed(kept)) == found.updates == 2
    assert found.reason == ""
    assert judge(read_history(kept.path)).outside_divergences == ()


def test_a_real_card_is_given_nothing_that_cannot_be_undone_unless_both_say_so(real: Path) -> None:
    """Its entry permits root-key; a key cancellation is not done even where the command line names it."""
    everything = frozenset({"root-key", "key-cancellation"})
    inventory = load_inventory(real / "inventory.yaml")
    for allowed, keys in ((frozenset[str](), set[str]()), (everything, {"root-key-A", "root-key-B"})):
        with opening.card(inventory, None, "one/card0", allowed=allowed, wear=1, reports=real) as explorable:
            pass
        images = {step.image for rule in explorable.rules for step in rule}
        assert {image for image in images if image.startswith(("root-key", "cancel"))} == keys
