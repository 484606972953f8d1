"""Judgement comes before teardown; what a teardown leaves quarantines the card and hides no verdict."""

from pathlib import Path

from support.plans import lines_with

from harness.judgement.records import Fault, ScenarioEnded

#: Writes what happens, in its order, to a file of the plan.
DIARY = """
from pathlib import Path

DIARY = Path(__file__).with_name("diary")

def note(text):
    with DIARY.open("a") as diary:
        diary.write(text + "\\n")
"""

CONFTEST = (
    DIARY
    + """
def pytest_hil_scenario_judged(item, judgement):
    note(f"judged {item.name}: {judgement.as_stated}")

def pytest_hil_lab_started(lab):
    fit = lab.bench.fit
    def noted(card, state, profile=None):
        note(f"fit {card} {state}")
        fit(card, state, profile)
    lab.bench.fit = noted
"""
)


def diary(folder: Path) -> list[str]:
    return (folder / "diary").read_text(encoding="utf-8").splitlines()


def test_judgement_comes_before_teardown_and_a_failing_one_hides_nothing(plan) -> None:
    plan.write(CONFTEST, "conftest.py")
    run = plan.run(
        """
        from conftest import note

        @pytest.fixture
        def shaky(card):
            yield
            note("teardown")
            raise RuntimeError("the crane is stuck\\nand more")

        @pytest.mark.hil_given(root="A")
        def test_first(flash, shaky, faults):
            faults.arm("programming", "sigterm")
            flash("A/csk0", lands(DOC))

        def test_second(card):
            card.reset()

        def test_third(flash):
            flash.reset()
        """,
        "--hil-device=one",
        "--junitxml=junit.xml",
    )
    assert diary(plan.folder)[:3] == [
        next(line for line in diary(plan.folder) if line.startswith("fit one/card0")),
        "judged test_first[one/card0]: False",
        "teardown",
    ]
    assert run.states == {
        "test_first[one/card0]": "not-as-stated",
        "test_second[one/card0]": "BLOCKED",
        "test_third[one/card0]": "BLOCKED",
    }
    assert run.scenarios["test_second[one/card0]"]["reason"] == (
        "one/card0 is quarantined: the teardown of test_plan.py::test_first[one/card0] failed: "
        "RuntimeError: the crane is stuck."
    )
    # JUnit has the verdict and the teardown's error, both.
    assert run.junit["test_first[one/card0]"]["verdict.fpgasupdate"] == "FALSE_FAILURE"
    assert "FALSE_FAILURE" in run.junit["test_first[one/card0]"]["failure"]
    assert "the crane is stuck" in run.junit["test_first[one/card0]"]["error"]


def test_the_quarantine_is_of_one_card_and_ends_with_the_run(plan) -> None:
    source = """
        @pytest.fixture
        def shaky(card):
            yield
            if card.name == "one/card0":
                raise RuntimeError("stuck")

        def test_a(card, shaky):
            card.reset()

        def test_b(card):
            card.reset()
    """
    run = plan.run(source)
    assert run.states["test_b[one/card0]"] == "BLOCKED"
    assert run.states["test_b[two/card0]"] == "as-stated"
    again = plan.run(source, "-k", "test_b", "--hil-reports=again")
    assert again.code == 0


def test_a_card_is_restored_after_a_failure_and_only_then(plan) -> None:
    plan.write(CONFTEST, "conftest.py")
    plan.run(
        """
        from conftest import note

        @pytest.mark.parametrize("how", ["passes", "diverges", "asserts", "skips", "not-applicable"])
        def test_ends(how, card, flash, images):
            note(how)
            flash.reset()
            if how == "diverges":
                flash("A/csk0", unchanged("0x11", source=DOC))
            assert how != "asserts"
            if how == "skips":
                pytest.skip("for a reason")
            if how == "not-applicable":
                flash("root-key-A", lands(DOC))
        """,
        "--hil-device=two",
    )
    noted = [line for line in diary(plan.folder) if not line.startswith("judged")]
    assert noted == [
        "passes",
        *("diverges", "fit two/card0 {}"),
        *("asserts", "fit two/card0 {}"),
        *("skips", "fit two/card0 {}"),
        "not-applicable",
    ]


def test_a_fault_that_cannot_be_undone_quarantines_the_card(plan) -> None:
    plan.write(
        """
        from harness.errors import InfrastructureError

        def pytest_hil_lab_started(lab):
            condition = lab.bench.condition
            def stuck(subject, name, on):
                if not on:
                    raise InfrastructureError("The bench is stuck.", hint="Push it.")
                condition(subject, name, on)
            lab.bench.condition = stuck
        """,
        "conftest.py",
    )
    run = plan.run(
        """
        def test_first(flash, faults):
            faults.arm("start", "busy")
            flash("unsigned", unchanged(source=DOC), activate=False)

        def test_second(card):
            card.reset()
        """,
        "--hil-device=one",
        "--junitxml=junit.xml",
    )
    assert run.states == {"test_first[one/card0]": "as-stated", "test_second[one/card0]": "BLOCKED"}
    assert "The bench is stuck." in run.scenarios["test_second[one/card0]"]["reason"]
    told = run.junit["test_first[one/card0]"]["error"]
    assert "the teardown failed: The bench is stuck.\n  hint: Push it." in told
    assert "Traceback" not in told


def test_faults_are_undone_in_the_teardown_and_that_is_in_the_history(plan) -> None:
    run = plan.run(
        """
        @pytest.mark.hil_given(root="none")
        def test_first(flash, faults, card):
            faults.arm("start", "busy")
            flash("unsigned", unchanged(source=DOC), activate=False)

        @pytest.mark.hil_given(root="none")
        def test_second(flash):
            flash("unsigned", lands(DOC))
        """,
        "--hil-device=one",
    )
    assert run.code == 0, run.text
    kinds = [
        record.state if isinstance(record, Fault) else "end"
        for record in run.records
        if isinstance(record, (Fault, ScenarioEnded))
    ]
    assert kinds == ["armed", "fired", "end", "undone", "end"]


def test_a_scenario_whose_setup_fails_is_torn_down_and_judged_too(plan) -> None:
    run = plan.run(
        """
        @pytest.fixture
        def late(flash, faults):
            faults.arm("start", "busy")
            raise RuntimeError("too late")

        def test_first(late):
            pass

        @pytest.mark.hil_given(root="none")
        def test_second(flash):
            flash("unsigned", lands(DOC))
        """,
        "--hil-device=one",
    )
    assert run.states == {"test_first[one/card0]": "BUG", "test_second[one/card0]": "as-stated"}
    assert [r.state for r in run.records if isinstance(r, Fault)] == ["armed", "fired", "undone"]
    assert lines_with(run.stdout, "1 passed", "1 error")
