"""Allure results: steps and device of each scenario where they are asked for; nothing of Allure otherwise."""

import json
from pathlib import Path
from typing import Any

from support.plans import Ended

PLAN = """
@pytest.mark.hil_given(root="none")
def test_lands(flash):
    flash("A/csk0", lands(DOC))

@pytest.mark.hil_given(root="A")
def test_breach(flash):
    flash("A/csk0", unchanged("0x11", source=DOC))

@pytest.mark.hil_requires("power")
def test_power(card):
    card.reset()

def test_irreversible(flash):
    flash("root-key-A", lands(DOC))

def test_loaded():
    import sys
    assert "allure" in sys.modules
"""


def read(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*-result.json"))]


def by_name(run: Ended) -> dict[tuple[str, str], dict[str, Any]]:
    """Return test function and device -> its result."""
    found = {}
    for result in read(run.folder / "allure"):
        parameters = {p["name"]: p["value"].strip("'") for p in result.get("parameters", ())}
        found[result["fullName"].rpartition("#")[2], parameters.get("device", "")] = result
    return found


def test_each_device_has_a_result_with_steps_and_the_status_of_its_judgement(plan) -> None:
    run = plan.run(PLAN, "--alluredir=allure", plugins=("allure_pytest",))
    results = by_name(run)
    devices = ("one/card0", "two/card0")
    assert set(results) == {
        *(
            (name, device)
            for name in ("test_lands", "test_breach", "test_power", "test_irreversible")
            for device in devices
        ),
        ("test_loaded", ""),
    }
    assert len(read(run.folder / "allure")) == 9, "two devices never share a result"
    assert len({result["historyId"] for result in results.values()}) == 9
    lands = results["test_lands", "one/card0"]
    assert lands["status"] == "passed"
    assert [step["name"] for step in lands["steps"]] == ["flash A/csk0 on one/card0", "reset on one/card0"]
    statuses = {key: result["status"] for key, result in results.items()}
    assert statuses["test_breach", "two/card0"] == "failed"
    assert statuses["test_power", "two/card0"] == "broken"
    assert statuses["test_irreversible", "two/card0"] == "skipped"
    breach = results["test_breach", "two/card0"]["statusDetails"]["message"]
    assert "not as stated: the outcome is BREACH, stated is AS_INTENDED" in breach


def test_preparation_is_a_step_of_the_fixture(plan) -> None:
    plan.run(PLAN, "--alluredir=allure", "--hil-device=one", "-k", "lands", plugins=("allure_pytest",))
    containers = [json.loads(path.read_text()) for path in (plan.folder / "allure").glob("*-container.json")]
    steps = [
        step["name"]
        for c in containers
        for fixture in c.get("befores", ())
        for step in fixture.get("steps", ())
    ]
    assert steps == ["prepare: root none on one/card0"]


def test_without_it_nothing_of_allure_is_there(plan) -> None:
    source = """
    @pytest.mark.hil_given(root="none")
    def test_lands(flash):
        flash("A/csk0", lands(DOC))

    def test_not_loaded():
        import sys
        assert "allure" not in sys.modules
    """
    assert plan.run(source, "--hil-device=one").code == 0
    run = plan.run(source, "-k", "lands", "--hil-reports=more", plugins=("allure_pytest",))
    assert run.code == 0
    assert not list(plan.folder.rglob("*-result.json"))


def test_what_diverged_is_attached_with_its_evidence(plan) -> None:
    source = """
    @pytest.mark.hil_expects(outcome="FAILED", verdicts={"fpgasupdate": "FALSE_SUCCESS"})
    def test_nothing_flashed(flash, faults):
        faults.arm("start", "ignore-upload")
        flash("A/csk0", lands(DOC))
    """
    words = ("--alluredir=allure", "--hil-device=one")
    assert plan.run(source, *words, plugins=("allure_pytest",)).code == 0
    (result,) = read(plan.folder / "allure")
    (attached,) = [one for one in result["attachments"] if one["name"].startswith("FALSE_SUCCESS")]
    assert attached["name"] == "FALSE_SUCCESS fpgasupdate on one/card0 (0000:b2:00.0)"
    text = (plan.folder / "allure" / attached["source"]).read_text()
    assert text.startswith("claimed: A/csk0 was flashed (exit 0)\ntrue:    nothing was written to the card")
    assert "--- claim of fpgasupdate, record " in text
    assert "Secure update OK" in text
