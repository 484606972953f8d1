"""Updates of real cards in a campaign: reserved before a scenario begins, and never more than that."""

import pytest

from harness.errors import RefusedError
from harness.judgement.records import Intent, Record, Subject
from harness.plugin.wear import Wear


class Records:
    """Numbered as a history numbers them."""

    def __init__(self) -> None:
        self.all: list[Record] = []

    def begin(self, operation: str, card: str = "one/card0") -> None:
        seq = len(self.all) + 1
        self.all.append(Intent(operation=operation, subject=Subject("card", card), seq=seq))


def test_an_update_that_was_not_reserved_is_refused_and_what_follows_is_not() -> None:
    wear, records = Wear(), Records()
    wear.allow("one/card0", 1)
    records.begin("flash")
    wear.check("one/card0", records.all)
    records.begin("reset")
    wear.check("one/card0", records.all)
    records.begin("flash")
    with pytest.raises(RefusedError, match="1 updates of one/card0 were reserved") as told:
        wear.check("one/card0", records.all)
    assert "hil_wear(2)" in told.value.hint
    records.begin("reset")
    wear.check("one/card0", records.all)
    wear.allow("one/card0", 1)
    records.begin("flash")
    wear.check("one/card0", records.all)  # the one that was refused wore nothing


def test_a_card_that_nothing_is_reserved_for_is_free() -> None:
    wear, records = Wear(), Records()
    wear.allow("one/card0", 0)
    records.begin("flash", "two/card0")
    wear.check("two/card0", records.all)


def test_a_budget_of_updates_is_not_exceeded_by_a_scenario_that_says_less_than_it_does(plan, real) -> None:
    """Also where workers run it, and the controlling process knows of costs by what they tell."""
    real()
    (plan.folder / "mine.campaign.yaml").write_text(
        "about: x\nscenarios: test_plan.py\ndevices: one\nrepeat: 3\nbudget: {flashes: 2}\n"
    )
    source = """
    def test_twice(flash):
        flash("A/csk0", lands(DOC), activate=False)
        flash("A/csk1", lands(DOC), activate=False)

    def test_report(card):
        card.report()
    """
    plan.write(source)
    run = plan.run(source, "mine.campaign.yaml", "-n", "2", plugins=("xdist",))
    states = list(run.states.values())
    assert states.count("REFUSED") == 2, run.text
    assert states.count("as-stated") == 3
    flashed = [
        record for record in run.records if record.kind == "claim" and record.reporter == "fpgasupdate"
    ]
    assert len(flashed) == 2, "one of each of the two that were reserved"
    assert "PARTIAL: the budget of 2 updates of each real card is used up: 1 left out" in run.text
