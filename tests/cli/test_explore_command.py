"""`hil explore`: what it prints, its exit codes, its forms, and what is found is reproduced by `hil run`."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli import root
from harness.errors import ConfigurationError
from harness.lab.explored_card import ExploredCard
from harness.scenarios.card_model import Step
from harness.scenarios.counterexample import scenario_of
from harness.scenarios.exploration import Budget, Explored
from harness.scenarios.writing import scenario_text

PROJECT = Path(__file__).parents[2]


def hil(*words: str) -> tuple[int, str]:
    """Run `hil` in this process; return exit code and standard output."""
    ran = CliRunner().invoke(root, [*words])
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran.exit_code, ran.stdout


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)


@pytest.mark.parametrize(
    ("steps", "at_once", "told_of"),
    [("50", (), ""), ("61", ("--jobs", "2"), "2 jobs, ")],
    ids=["alone", "two"],
)
def test_a_sound_card_ends_with_0_and_what_was_done(
    steps: str, at_once: tuple[str, ...], told_of: str
) -> None:
    code, told = hil("explore", "cards", "--steps", steps, "--seed", "3", *at_once)
    assert code == 0
    assert re.fullmatch(
        rf"Card and documents agreed after every step: {steps} steps, \d+ updates, [\d.]+ s \(\d+ steps/s\), "
        rf"{told_of}seed 3\.\n",
        told,
    )


def test_where_no_step_could_be_made_nothing_is_said_to_agree() -> None:
    with pytest.raises(ConfigurationError, match="Nothing was tried"):
        hil("explore", "cards", "--wear", "0", "--steps", "50")


def test_as_json_it_has_the_keys_of_the_page() -> None:
    code, told = hil(
        "explore", "cards", "--steps", "400", "--seed", "3", "--defect", "copy-dropped", "-o", "json"
    )
    found = json.loads(told)
    row = re.search(r"^\| `hil explore cards`.*\| `(hil-explore/\d)` \| (.*) \|$", _page(), re.MULTILINE)
    assert row is not None
    assert (found["schema"], set(found)) == (row[1], set(re.findall(r"`(\w+)`", row[2])))
    assert (code, found["saved"]) == (1, None)
    assert found["counterexample"]


def test_what_one_of_several_found_its_seed_finds_again() -> None:
    asked = ("explore", "cards", "--steps", "4000", "--defect", "cancellations-lost", "-o", "json")
    code, told = hil(*asked, "--seed", "3", "--jobs", "3")
    found = json.loads(told)
    assert (code, found["jobs"]) == (1, 3)
    again = json.loads(hil(*asked, "--seed", str(found["seed"]), "--jobs", "1")[1])
    assert (again["counterexample"], again["reason"]) == (found["counterexample"], found["reason"])
    assert (again["jobs"], again["seed"]) == (1, found["seed"])


@pytest.mark.parametrize(("given", "jobs"), [((), 3), (("--seed", "1"), 1), (("--jobs", "2"), 2)])
def test_over_ssh_all_cores_explore_where_no_seed_is_given(
    given: tuple[str, ...], jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explored(opens: object, budget: Budget, seed: int, asked: int) -> Explored[Step]:
        return Explored(budget.steps, 0, 1.0, seed, jobs=asked)

    monkeypatch.setattr("harness.cli.explore.cores", lambda: 3)
    monkeypatch.setattr("harness.cli.explore.explored", explored)
    told = hil("explore", "cards", "--over", "ssh", *given, "-o", "json")[1]
    assert json.loads(told)["jobs"] == jobs


def test_a_card_over_ssh_is_explored_by_two_at_once() -> None:
    code, told = hil("explore", "cards", "--device", "bench1/card0", "--steps", "4", "--jobs", "2")
    assert (code, "4 steps, " in told, "2 jobs" in told) == (0, True, True), told


def test_one_real_card_is_not_explored_by_two(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(
        "version: 1\ndefault_lab: small\nlabs:\n  small:\n    hosts:\n      one:\n"
        "        ssh: {address: 192.0.2.1, user: hil}\n"
        "        cards: {card0: {address: '0000:b2:00.0', identity: '64:4c:36:00:00:01'}}\n"
    )
    asked = ("explore", "cards", "--device", "one/card0", "--inventory", str(inventory), "--jobs", "2")
    with pytest.raises(ConfigurationError, match="one/card0 is one real card") as told:
        hil(*asked)
    assert (told.value.exit_code, told.value.hint.startswith("Leave --jobs out")) == (2, True)


@pytest.mark.parametrize("kind", ["registry", "system"])
def test_registries_and_systems_are_explored_by_two_at_once(kind: str) -> None:
    code, told = hil("explore", kind, "--steps", "2", "--jobs", "2", "--seed", "1", "-o", "json")
    assert (code, json.loads(told)["steps"], json.loads(told)["jobs"]) == (0, 2, 2)


@pytest.fixture
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody presses Ctrl-C in the 30th step."""
    do = ExploredCard.do

    def interrupted(card: ExploredCard, step: Step) -> None:
        do(card, step)
        if len(card.steps) == 30:
            raise KeyboardInterrupt

    monkeypatch.setattr(ExploredCard, "do", interrupted)


def test_interrupted_it_prints_what_it_came_to_as_json(ctrl_c: None) -> None:
    code, told = hil("explore", "cards", "--seed", "3", "-o", "json")
    found = json.loads(told)
    assert (code, found["interrupted"], found["steps"]) == (130, True, 30)
    assert (found["counterexample"], found["reason"], found["saved"]) == ([], "", None)


def test_interrupted_it_says_so(ctrl_c: None) -> None:
    code, told = hil("explore", "cards", "--seed", "3")
    assert code == 130
    assert told.startswith("Interrupted; until then card and documents agreed after every step: 30 steps, ")


def _page() -> str:
    return (PROJECT / "docs/json.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cards", "--defect", "old-flag-kept"), "known defect 'old-flag-kept'"),
        (("cards", "--device", "bench1/card7"), "card7"),
        (("cards", "--recipes", "nowhere.yaml"), "nowhere.yaml cannot be read"),
        (("registry", "--registry", "elsewhere"), "elsewhere"),
        (("registry", "--defect", "nothing"), "known defect 'nothing'"),
        (("system", "--system", "pair"), "of one card"),
        (("system", "--release", "stx-0"), "stx-0"),
    ],
)
def test_what_is_not_there_is_told_and_ends_with_2(words: tuple[str, ...], said: str) -> None:
    from harness.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match=re.escape(said)) as told:
        hil("explore", *words)
    assert told.value.exit_code == 2


def test_a_counterexample_of_a_card_is_reproduced_by_hil_run(project, tmp_path: Path) -> None:
    """On a card with the defect it is not as stated, on one without it is."""
    found = tmp_path / "found.scenario.yaml"
    defect = ("--defect", "csk-cancelled-not-checked")
    code, told = hil("explore", "cards", "--seed", "5", *defect, "--save", str(found))
    assert code == 1
    assert f"saved as {found}: hil run {found} --defect csk-cancelled-not-checked" in told
    assert project.hil("run", str(found), "--device", "one", *defect).code == 1
    sound = project.hil("run", str(found), "--device", "one")
    assert sound.code == 0, sound.stdout


def test_two_updaters_at_once_are_saved_run_exported_and_run_again(project, tmp_path: Path) -> None:
    found, again = tmp_path / "found.scenario.yaml", tmp_path / "again.scenario.yaml"
    found.write_text(scenario_text(scenario_of([Step("second", "A/csk0", word="unsigned")], "something")))
    assert "second-updater: unsigned\n" in found.read_text()
    ran = project.hil("run", str(found), "--device", "one")
    assert ran.code == 0, ran.stdout
    exported = project.hil("export", "reports/latest", "--save", str(again))
    assert exported.code == 0, exported.stdout
    assert "second-updater: unsigned\n" in again.read_text()
    assert project.hil("run", str(again), "--device", "one").code == 0
