"""`hil run`: exit codes and their precedence, JSON, what may be blocked, what is said of wrong words."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import EXIT_PRECEDENCE, ConfigurationError, InfrastructureError
from harness.plugin.exit_codes import Observer, is_part_of
from harness.report.results import SCHEMA

PLAN = """
from harness.errors import InfrastructureError

@pytest.mark.hil_given(root="A")
def test_green(flash):
    flash("unsigned", unchanged("0x11", source=DOC))

@pytest.mark.hil_given(root="A")
def test_breach(flash):
    flash("A/csk0", unchanged("0x11", source=DOC))

@pytest.mark.hil_given(root="A")
def test_never_reached(flash, faults):
    faults.arm("copying", "cancel")
    flash("unsigned", unchanged("0x11", source=DOC))

def test_author(card):
    card.reset()
    assert card is None

def test_misspelt(flash):
    flash("A/csk9", lands(DOC))

def test_infra(card):
    raise InfrastructureError("The cable is cut.")

@pytest.mark.hil_requires("power")
def test_blocked(card):
    card.reset()

def test_refused(card, images):
    card.flash(images["root-key-A"].data, "root-key-A", lands(DOC))

def test_irreversible(flash):
    flash("root-key-A", lands(DOC))

def test_bug(card):
    raise ZeroDivisionError("a bug")

def test_host(host):
    raise InfrastructureError("The host is gone.")
"""


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ("green", 0),
        ("green or irreversible", 0),
        ("breach", 1),
        ("never_reached", 1),
        ("author", 1),
        ("misspelt", 2),
        ("infra", 3),
        ("host", 3),
        ("blocked", 3),
        ("refused", 4),
        ("bug", 5),
        ("green or breach or infra or refused", 1),
        ("breach or misspelt or infra", 2),
        ("infra or refused", 4),
    ],
)
def test_exit_codes(project, names: str, code: int) -> None:
    project.write(PLAN)
    run = project.hil("run", "test_plan.py", "--device", "two", "-k", names)
    assert run.code == code, run.text
    project.assert_nothing_left()


def test_everything_at_once_is_a_bug_and_every_state_is_shown(project) -> None:
    project.write(PLAN)
    run = project.hil("run", "test_plan.py", "-o", "json", "-n", "2", "--device", "two")
    assert run.code == 5
    results = json.loads(run.stdout)
    assert results["schema"] == SCHEMA
    assert {found["state"] for found in results["scenarios"]} == {
        *("as-stated", "not-as-stated", "INFRA", "BLOCKED", "REFUSED", "NOT_APPLICABLE", "BUG")
    }
    assert results == run.results
    assert "NOT AS STATED" in run.stderr
    project.assert_nothing_left()


def test_what_is_installed_is_told_on_the_terminal(project) -> None:
    project.write("""
def test_that_needs_a_program():
    from harness.packages import say_aloud

    say_aloud("Installing skopeo with apt-get as root.")
""")
    run = project.hil("run", "test_plan.py")
    assert run.code == 0
    assert "Installing skopeo with apt-get as root.\n" in run.stdout


# -- the same, without a lab ----------------------------------------------------------------------------


def report(**properties: Any) -> Any:
    when = properties.pop("when", "call")
    failed = properties.pop("failed", True)
    return SimpleNamespace(
        when=when,
        failed=failed,
        nodeid="plans/test_a.py::test_b[one/card0]",
        user_properties=list(properties.items()),
    )


CAUSES: dict[str, tuple[int, Any]] = {
    "bug": (5, report(run_state="BUG")),
    "dead worker": (5, report(when="???")),
    "bug in a teardown": (5, report(when="teardown", teardown="BUG")),
    "wrong recipe": (2, report(run_state="BLOCKED", cause="configuration")),
    "not as stated": (1, report(as_stated="no")),
    "own assertion": (1, report()),
    "assertion in a teardown": (1, report(when="teardown", teardown="finished")),
    "refused": (4, report(run_state="REFUSED", cause="refused")),
    "infra": (3, report(run_state="INFRA", cause="infrastructure")),
    "blocked": (3, report(run_state="BLOCKED", cause="infrastructure")),
    "host gone in a teardown": (3, report(when="teardown", teardown="INFRA")),
    "not applicable": (0, report(run_state="NOT_APPLICABLE", failed=False)),
    "passed": (0, report(as_stated="yes", failed=False)),
}


@pytest.mark.parametrize("first", CAUSES)
@pytest.mark.parametrize("second", CAUSES)
def test_of_two_causes_the_worse_is_reported(first: str, second: str) -> None:
    observer = Observer()
    for name in (first, second):
        observer.pytest_runtest_logreport(CAUSES[name][1])
    codes = {CAUSES[first][0], CAUSES[second][0]}
    # The published order: 5, 2, 1, 4, 3.
    assert observer.exit_code(0) == next((code for code in (5, 2, 1, 4, 3) if code in codes), 0)
    assert EXIT_PRECEDENCE == (5, 2, 1, 4, 3)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (pytest.ExitCode.OK, 0),
        (pytest.ExitCode.INTERNAL_ERROR, 5),
        (pytest.ExitCode.USAGE_ERROR, 2),
        (pytest.ExitCode.NO_TESTS_COLLECTED, 2),
    ],
)
def test_how_pytest_itself_ended_counts(status: int, code: int) -> None:
    assert Observer().exit_code(status) == code


def test_interruption_comes_before_everything() -> None:
    observer = Observer()
    observer.pytest_runtest_logreport(report(run_state="BUG"))
    observer.pytest_keyboard_interrupt(SimpleNamespace(value=KeyboardInterrupt()))
    assert observer.exit_code(pytest.ExitCode.INTERRUPTED) == 130
    stopped = Observer()
    stopped.pytest_keyboard_interrupt(SimpleNamespace(value=pytest.Session.Interrupted("no more disk")))
    stopped.pytest_hil_run_trouble(InfrastructureError("no more disk"))
    assert stopped.exit_code(pytest.ExitCode.INTERRUPTED) == 3
    worker = Observer()
    worker.pytest_testnodedown(None, "keyboard-interrupt")
    assert worker.exit_code(pytest.ExitCode.INTERRUPTED) == 130


def test_trouble_of_the_run_counts_by_its_kind() -> None:
    observer = Observer()
    observer.pytest_hil_run_trouble(InfrastructureError("no more disk"))
    assert observer.exit_code(1) == 3
    observer.pytest_hil_run_trouble(ConfigurationError("not a history"))
    assert observer.exit_code(1) == 2


@pytest.mark.parametrize(
    ("part", "inside"),
    [
        ("plans", True),
        ("plans/", True),
        ("./plans/test_a.py", True),
        ("plans/test_a.py::test_b", True),
        ("plans/test_a.py::test_b[one/card0]", True),
        ("plan", False),
        ("test_a.py", False),
        ("plans/test_a.py::test", False),
        ("card0", False),
    ],
)
def test_part_of_a_plan_is_a_path_and_no_substring(part: str, inside: bool) -> None:
    assert is_part_of("plans/test_a.py::test_b[one/card0]", part) is inside
    observer = Observer([part])
    observer.pytest_runtest_logreport(CAUSES["blocked"][1])
    assert observer.exit_code(1) == (0 if inside else 3)
    observer.pytest_runtest_logreport(CAUSES["infra"][1])
    assert observer.exit_code(1) == 3, "only what is blocked is accepted"


# -- words that are wrong -------------------------------------------------------------------------------


def test_blocked_scenarios_are_accepted_where_that_is_said(project) -> None:
    project.write(PLAN)
    words = ("run", "test_plan.py", "--device", "two", "-k", "green or blocked")
    assert project.hil(*words, "--allow-blocked", "test_plan.py").code == 0
    project.write("def test_nothing(): pass\n", "test_other.py")
    assert project.hil(*words, "--allow-blocked", "test_other.py").code == 3


def test_blocked_scenarios_are_accepted_by_the_name_of_their_folder_below_a_target(project) -> None:
    blocked = (
        "from harness.errors import BlockedError\ndef test_it(card):\n    raise BlockedError('No tool.')\n"
    )
    for folder in ("plans/registry", "plans/deep/registry", "plans/flash"):
        (project.folder / folder).mkdir(parents=True)
    project.write(blocked, "plans/registry/test_one.py")
    project.write(blocked, "plans/deep/registry/test_two.py")
    words = ("run", "plans", "--device", "two")
    assert project.hil(*words).code == 3
    assert project.hil(*words, "--allow-blocked", "registry").code == 0
    wrong = project.hil(*words, "--allow-blocked", "registri")
    assert wrong.code == 2
    assert "There is nothing to run at registri." in wrong.stderr
    assert "deep, flash, registry" in wrong.stderr
    project.write(blocked, "plans/flash/test_three.py")
    assert project.hil(*words, "--allow-blocked", "registry").code == 3, "flash is not accepted"


def test_text_may_be_called_table_as_other_commands_have_it(project) -> None:
    project.write(PLAN)
    words = ("run", "test_plan.py", "--device", "two", "-k", "green")
    assert "ALL AS STATED" in project.hil(*words, "-o", "table").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no/such/plan"], "There is nothing to run at no/such/plan."),
        (["inventory.yaml"], "inventory.yaml is no file of scenarios."),
        (["test_plan.py", "--allow-blocked", "no_plan.py"], "There is nothing to run at no_plan.py."),
        (["test_plan.py", "--device", "tow"], "There is no card or host 'tow' in lab small."),
        (["test_plan.py", "--lab", "big"], "There is no lab 'big' in inventory.yaml."),
        (
            ["test_plan.py", "--inventory", "no.yaml"],
            "The inventory no.yaml cannot be read: No such file or directory.",
        ),
        (["test_plan.py", "--irreversible", "rootkey"], "--irreversible names 'rootkey'"),
        (["test_plan.py", "-k", "nothing_of_that_name"], "No scenario matches."),
    ],
)
def test_wrong_words_are_one_message_with_a_hint(project, words: list[str], message: str) -> None:
    project.write(PLAN)
    for output in ("text", "json"):
        run = project.hil("run", *words, "-o", output)
        assert run.code == 2
        told = [line for line in run.stderr.splitlines() if line]
        assert told[0].startswith(f"Error: {message}")
        assert told[1].startswith("  hint: ")
        assert len(told) == 2
        if message == "No scenario matches." and output == "json":
            assert json.loads(run.stdout)["scenarios"] == []
        else:
            assert run.stdout.strip() == ""
    assert not (project.folder / "reports").exists()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import no_such_module\n", ["no_such_module", "test_plan.py"]),
        ("def test_a(card:\n", ["SyntaxError", "test_plan.py"]),
        (
            "@pytest.mark.hil_expects(outcome='GOOD')\ndef test_a(card): pass\n",
            ["the outcome 'GOOD'", "hint: Known: "],
        ),
        ("@pytest.mark.hil_expekts()\ndef test_a(card): pass\n", ["hil_expekts"]),
    ],
)
@pytest.mark.parametrize("workers", ["0", "2"])
def test_file_that_is_no_plan_is_the_authors_mistake(
    project, source: str, words: list[str], workers: str
) -> None:
    (project.folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    project.write(source)
    run = project.hil("run", "test_plan.py", "-n", workers)
    assert run.code == 2, run.text
    for word in words:
        assert word in run.text
    assert "INTERNALERROR" not in run.text
    assert "NOTHING WAS JUDGED" not in run.stdout


def test_module_that_skips_itself_is_not_silent(project) -> None:
    project.write("pytest.skip('no time', allow_module_level=True)\n", "test_skips.py")
    project.write(PLAN)
    words = ("run", "test_skips.py", "test_plan.py", "--device", "one", "-k", "green")
    assert project.hil(*words).code == 3
    assert project.hil(*words, "--allow-blocked", "test_skips.py").code == 0


def test_node_id_that_is_not_there(project) -> None:
    project.write(PLAN)
    run = project.hil("run", "test_plan.py::test_gren")
    assert run.code == 2
    assert "test_gren" in run.stderr
    assert "Traceback" not in run.text


def test_first_failure_ends_the_run_where_that_is_wanted(project) -> None:
    project.write(PLAN)
    run = project.hil("run", "test_plan.py", "-x", "--device", "one")
    assert run.code == 1
    assert run.states == {"test_green[one/card0]": "as-stated", "test_breach[one/card0]": "not-as-stated"}


def test_reports_go_where_they_are_wanted_and_allure_too(project) -> None:
    project.write(PLAN)
    run = project.hil("run", "test_plan.py", "-k", "green", "--reports", "deep/er", "--allure", "allure")
    assert run.code == 0
    assert (project.folder / "deep/er/latest/results.json").exists()
    assert len(list((project.folder / "allure").glob("*-result.json"))) == 2
    assert not (project.folder / "reports").exists()


@pytest.mark.parametrize("limit", [1_000, 60_000])
def test_full_disk_ends_with_3_and_what_was_recorded_stays(project, limit: int) -> None:
    project.write(
        f"""
        import resource

        def pytest_hil_lab_started(lab):
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, hard))
        """,
        "conftest.py",
    )
    project.write(
        """
        @pytest.mark.hil_given(root="A")
        @pytest.mark.parametrize("number", range(20))
        def test_flash(flash, number):
            flash("unsigned", unchanged("0x11", source=DOC))
        """
    )
    run = project.hil("run", "test_plan.py", "--device", "one", "-o", "json")
    assert run.code == 3, run.text
    results = json.loads(run.stdout)
    assert [found["state"] for found in results["scenarios"]][-1] == "INFRA"
    assert run.stderr.count("ERROR: The history") == 1
    assert "cannot be written: File too large" in run.stderr
    history = (run.run_dir / "history.jsonl").read_bytes()
    assert history.endswith(b"\n")
    assert len(history) <= limit
    for line in history.splitlines():
        json.loads(line)
    again = project.hil("judge", str(run.run_dir))
    assert again.code == 130
    assert "Traceback" not in again.text + run.text
    project.assert_nothing_left()


def test_a_folder_that_allure_cannot_write_to_is_told_before_anything_runs(project) -> None:
    project.write(PLAN)
    (project.folder / "taken").write_text("a file")
    run = project.hil("run", "test_plan.py", "-k", "green", "--allure", "taken/results")
    assert run.code == 3
    told = "Error: The folder taken/results for Allure's results cannot be written: Not a directory."
    assert run.stderr.startswith(told)
    assert "INTERNALERROR" not in run.text and "Traceback" not in run.text
    assert not (project.folder / "reports").exists()


def test_reports_that_cannot_be_made_end_with_3(project) -> None:
    project.write(PLAN)
    (project.folder / "taken").write_text("a file")
    run = project.hil("run", "test_plan.py", "-k", "green", "--reports", "taken")
    assert run.code == 3
    assert "ERROR: The folder taken/" in run.stdout
    assert "Traceback" not in run.text
