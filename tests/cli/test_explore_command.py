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


def test_a_sound_card_ends_with_0_and_what_was_done() -> None:
    code, told = hil("explore", "cards", "--steps", "50", "--seed", "3")
    assert code == 0
    assert re.fullmatch(
        r"Card and documents agreed after every step: 50 steps, \d+ updates, [\d.]+ s \(\d+ steps/s\), "
        r"seed 3\.\n",
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
