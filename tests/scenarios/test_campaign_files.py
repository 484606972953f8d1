"""Campaign files: what may stand in them, how they are found by name, what is said of errors."""

from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.scenarios.campaigns import campaign_files, find_campaign, load_campaign, seconds_of

PROJECT = Path(__file__).parents[2]
HEAD = "about: What is run.\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with plans and campaigns, in which we are."""
    monkeypatch.chdir(tmp_path)
    campaigns = tmp_path / "testplans" / "campaigns"
    for path in (campaigns, tmp_path / "testplans" / "flash", tmp_path / "testplans" / "other"):
        path.mkdir(parents=True)
    return campaigns


def load(folder: Path, text: str):
    path = folder / "mine.campaign.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return load_campaign(path)


def test_everything_that_a_campaign_says(folder: Path) -> None:
    found = load(
        folder,
        """\
scenarios:
  - ../flash
  - {path: ../other, keyword: not slow, ids: [test_a, "test_b[x]"], requirements: R-1}
devices: bench1
lab: rack7
allow_blocked: ../other
repeat: 3
duration: 1.5 h
order: random
seed: 7
stop: {not_as_stated: 2, could_not_run: 1}
budget: {time: 30 min, flashes: 0}
""",
    )
    first, second = found.scenarios
    assert (found.name, first.path, first.ids) == ("mine", folder.parent / "flash", ())
    assert (second.keyword, second.ids, second.requirements) == (
        "not slow",
        ("test_a", "test_b[x]"),
        ("R-1",),
    )
    assert (found.devices, found.lab, found.allow_blocked) == (
        ("bench1",),
        "rack7",
        (folder.parent / "other",),
    )
    assert (found.rounds, found.duration, found.order, found.seed) == (3, 5400, "random", 7)
    assert (found.stop.not_as_stated, found.stop.could_not_run) == (2, 1)
    assert (found.budget.time, found.budget.flashes) == (1800, 0)


def test_what_is_left_out(folder: Path) -> None:
    found = load(folder, "scenarios: ../flash\n")
    assert (found.rounds, found.order) == (1, "fixed")
    assert load(folder, "scenarios: ../flash\nduration: 90 s\n").rounds is None, "as often as there is time"


@pytest.mark.parametrize(("text", "seconds"), [("10 s", 10), ("1.5 min", 90), ("2h", 7200)])
def test_a_time_is_read(text: str, seconds: float) -> None:
    assert seconds_of(text, "--duration") == seconds


@pytest.mark.parametrize("text", ["10", "0 s", "s", "1 d", "-1 s", ""])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--duration .* is no time: write it as 90 s"):
        seconds_of(text, "--duration")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "scenarios: ../flsh\n",
            "mine.campaign.yaml:2: scenarios.0.path: there is no ../flsh beside the campaign",
        ),
        ("scenarios: []\n", ":2: scenarios: is empty"),
        ("scenaros: ../flash\n", ":2: scenaros: unknown key; did you mean 'scenarios'?"),
        ("scenarios: [{path: ../flash, keywords: x}]\n", "keywords: unknown key; did you mean 'keyword'?"),
        (
            "scenarios: {path: ../flash, keyword: (a}\n",
            ":2: scenarios.0.keyword: '(a' is no keyword expression",
        ),
        ("scenarios: ../flash\nrepeat: 0\n", ":3: repeat: should be greater than or equal to 1 (it is 0)"),
        ("scenarios: ../flash\nduration: 2 hours\n", "'2 hours' is no time: write it as 90 s, 30 min or 2 h"),
        ("scenarios: ../flash\nduration: 0 s\n", "'0 s' is no time"),
        ("scenarios: ../flash\norder: rndom\n", "'rndom' is not allowed; did you mean 'random'?"),
        ("scenarios: ../flash\nstop: {failures: 1}\n", "stop.failures: unknown key"),
        ("scenarios: ../flash\nbudget: {flashes: -1}\n", "budget.flashes: should be greater"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(folder: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(folder, text)
    assert said in caught.value.message
    assert caught.value.hint


def test_a_list_is_empty_where_nothing_stands_in_it_and_not_where_that_is_wrong(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="scenarios: is empty; give at least one"):
        load(folder, "scenarios: []\n")
    with pytest.raises(ConfigurationError) as wrong:
        load(folder, "scenarios: [gone.scenario.yaml]\n")
    assert "there is no gone.scenario.yaml" in wrong.value.message
    assert "is empty" not in wrong.value.message


def test_a_campaign_stands_for_the_scenarios_of_another(folder: Path) -> None:
    (folder / "inner.campaign.yaml").write_text(
        HEAD + "scenarios: [../other, {path: ../flash, keyword: x}]\nallow_blocked: ../other\nrepeat: 9\n"
    )
    found = load(folder, "scenarios: [../flash, inner.campaign.yaml]\n")
    chosen = [(each.path.name, each.keyword) for each in found.scenarios]
    assert chosen == [("flash", ""), ("other", ""), ("flash", "x")]
    assert (found.allow_blocked, found.rounds) == ((folder.parent / "other",), 1)


def test_campaigns_in_a_circle_are_told_with_all_of_it(folder: Path) -> None:
    mine = "scenarios:\n  - ../flash\n  - inner.campaign.yaml\n"
    (folder / "inner.campaign.yaml").write_text(HEAD + "scenarios: mine.campaign.yaml\n")
    (folder / "mine.campaign.yaml").write_text(HEAD + mine)
    with pytest.raises(ConfigurationError) as caught:
        load(folder, mine)
    assert (
        "inner.campaign.yaml:2: scenarios.0: the campaigns go in a circle: mine.campaign.yaml names "
        "inner.campaign.yaml names mine.campaign.yaml" in caught.value.message
    )


def test_of_a_campaign_nothing_is_chosen(folder: Path) -> None:
    (folder / "inner.campaign.yaml").write_text(HEAD + "scenarios: ../flash\n")
    with pytest.raises(ConfigurationError, match=r":2: scenarios\.0: a campaign stands for all"):
        load(folder, "scenarios: {path: inner.campaign.yaml, keyword: x}\n")


def test_a_campaign_is_found_by_its_name(folder: Path) -> None:
    load(folder, "scenarios: ../flash\n")
    assert find_campaign("mine") == Path("testplans/campaigns/mine.campaign.yaml")
    assert find_campaign("testplans") is None
    assert find_campaign("elsewhere/x.campaign.yaml") == Path("elsewhere/x.campaign.yaml")
    with pytest.raises(ConfigurationError, match="file, folder or campaign 'mnie'") as caught:
        find_campaign("mnie")
    assert "Did you mean 'mine'?" in caught.value.hint
    (folder.parent / "mine.campaign.yaml").write_text(HEAD + "scenarios: flash\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="Several campaigns are called mine"):
        find_campaign("mine")


def test_the_projects_own_campaigns_are_good_and_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each use, of each part of the lab and of all together."""
    monkeypatch.chdir(PROJECT)
    found = {load_campaign(path).name for path in campaign_files()}
    parts = ("", "-cards", "-registry", "-control-plane")
    assert found >= {f"{use}{part}" for use in ("regression", "qualification", "soak") for part in parts}
