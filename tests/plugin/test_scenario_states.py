"""What pytest says of a scenario, by every way in which it can end. One inner run answers all questions."""

import pytest
from support.plans import Ended, lines_with

from harness.judgement.judge import judge

PLAN = """
from harness.errors import ConfigurationError, InfrastructureError

@pytest.mark.hil_given(root="none")
def test_lands(flash):
    flash("A/csk0", lands(DOC))

@pytest.mark.hil_given(root="A")
def test_diverges(flash, faults):
    faults.arm("programming", "sigterm")
    flash("A/csk0", lands(DOC))

@pytest.mark.hil_given(root="A")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "FALSE_FAILURE"})
def test_diverges_as_stated(flash, faults):
    faults.arm("programming", "sigterm")
    flash("A/csk0", lands(DOC))

@pytest.mark.hil_given(root="none")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "FALSE_FAILURE"})
def test_stated_divergence_is_missing(flash):
    flash("A/csk0", lands(DOC))

@pytest.mark.hil_given(root="A")
def test_breach(flash):
    flash("A/csk0", unchanged("0x11", source=DOC))

@pytest.mark.hil_given(root="A")
def test_point_never_comes(flash, faults):
    faults.arm("copying", "cancel")
    flash("unsigned", unchanged("0x11", source=DOC))

@pytest.mark.hil_given(root="none")
def test_irreversible(flash):
    flash("root-key-A", lands(DOC))

@pytest.mark.hil_given(root="A")
def test_refused(card, images):
    card.flash(images["root-key-B"].data, "root-key-B", lands(DOC))

@pytest.mark.hil_requires("power")
def test_needs_power(card):
    card.reset()

def test_infra(card):
    raise InfrastructureError("The cable is cut.", hint="Look behind the rack.")

def test_wrongly_asked(card, images):
    images["A/csk9"]

def test_bug(card):
    raise ZeroDivisionError("of the author")

def test_skipped(card):
    pytest.skip("no time today")

@pytest.mark.skip(reason="not this week")
def test_marked_skip(card):
    pass

@pytest.mark.skipif(True, reason="an old kernel")
def test_marked_skipif(card):
    pass

@pytest.fixture
def broken(card):
    raise ZeroDivisionError("in a fixture")

def test_broken_fixture(broken):
    pass

@pytest.fixture
def broken_first():
    raise ZeroDivisionError("before the card")

def test_broken_before_the_card(broken_first, card):
    pass

@pytest.mark.hil_given(root="none")
def test_own_assertion(flash):
    flash("A/csk0", lands(DOC))
    assert flash is None, "the author's own words"

def test_nothing_done(card):
    pass

def test_of_a_host(host):
    assert host.run(["uname"]).exit_code == 0

def test_of_a_host_that_is_gone(host):
    raise InfrastructureError("The host is gone.")

def test_of_nothing():
    pass
"""
_runs: list[Ended] = []


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Ended:
    """The plan's run, made once for each process of tests."""
    if not _runs:
        _runs.append(request.getfixturevalue("plan").run(PLAN, "--junitxml=junit.xml", "-rA"))
    return _runs[0]


STATES = {
    "test_lands": "as-stated",
    "test_diverges": "not-as-stated",
    "test_diverges_as_stated": "as-stated",
    "test_stated_divergence_is_missing": "not-as-stated",
    "test_breach": "not-as-stated",
    "test_point_never_comes": "not-as-stated",
    "test_infra": "INFRA",
    "test_wrongly_asked": "BLOCKED",
    "test_bug": "BUG",
    "test_skipped": "BLOCKED",
    "test_marked_skip": "BLOCKED",
    "test_marked_skipif": "BLOCKED",
    "test_broken_fixture": "BUG",
    "test_broken_before_the_card": "BUG",
    "test_own_assertion": "not-as-stated",  # its reason is the assertion
    "test_nothing_done": "not-as-stated",
}
BY_DEVICE = {
    ("test_irreversible", "one/card0"): "as-stated",
    ("test_irreversible", "two/card0"): "NOT_APPLICABLE",
    ("test_refused", "one/card0"): "not-as-stated",  # the card refuses it, as any second root key
    ("test_refused", "two/card0"): "REFUSED",
    ("test_needs_power", "one/card0"): "as-stated",
    ("test_needs_power", "two/card0"): "BLOCKED",
}


def test_every_scenario_is_listed_with_its_state_for_each_device(run: Ended) -> None:
    expected = {
        f"{name}[{device}/card0]": state for name, state in STATES.items() for device in ("one", "two")
    }
    expected |= {f"{name}[{device}]": state for (name, device), state in BY_DEVICE.items()}
    assert run.states == expected


def test_plain_pytest_keeps_its_own_exit_code(run: Ended) -> None:
    assert run.code == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("test_diverges", ["FALSE_FAILURE: fpgasupdate claimed: ", "Caught SIGTERM", "; true: ", "; read: "]),
        ("test_stated_divergence_is_missing", ["stated: FALSE_FAILURE"]),
        ("test_breach", ["the outcome is BREACH, stated is AS_INTENDED"]),
        ("test_point_never_comes", ["the fault cancel at copying was NOT_REACHED on one/card0"]),
        ("test_nothing_done", ["no operation was recorded"]),
    ],
)
def test_what_is_not_as_stated_fails_with_the_verdict_in_words(
    run: Ended, name: str, words: list[str]
) -> None:
    message = run.junit[f"{name}[one/card0]"]["failure"]
    assert message.startswith("not as stated: ") or "\nnot as stated: " in message
    for word in words:
        assert word in message
    assert "Traceback" not in message
    assert "harness/plugin" not in message


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("test_refused[two/card0]", "failure", "REFUSED: The image does what cannot be undone"),
        ("test_needs_power[two/card0]", "error", "BLOCKED: The power of two cannot be switched."),
        ("test_infra[one/card0]", "failure", "INFRA: The cable is cut.\n  hint: Look behind the rack."),
        ("test_wrongly_asked[one/card0]", "failure", "BLOCKED: No image recipe is called 'A/csk9'."),
        ("test_skipped[one/card0]", "failure", "BLOCKED: skipped: no time today"),
        ("test_marked_skip[one/card0]", "error", "BLOCKED: skipped: not this week"),
        ("test_marked_skipif[two/card0]", "error", "BLOCKED: skipped: an old kernel"),
        ("test_of_a_host_that_is_gone[two]", "failure", "INFRA: The host is gone."),
        ("test_irreversible[two/card0]", "skipped", "two/card0 is not permitted root-key"),
    ],
)
def test_run_state_is_told_with_its_reason_and_no_traceback(
    run: Ended, name: str, kind: str, message: str
) -> None:
    told = run.junit[name][kind]
    assert message in told
    assert "Error:" not in told
    assert ".py:" not in told.replace("test_plan.py:", "")


@pytest.mark.parametrize(
    ("name", "kind", "cause"),
    [
        ("test_bug", "failure", "of the author"),
        ("test_broken_fixture", "error", "in a fixture"),
        ("test_broken_before_the_card", "error", "before the card"),
    ],
)
def test_bug_and_own_assertion_keep_their_traceback(run: Ended, name: str, kind: str, cause: str) -> None:
    case = run.junit[f"{name}[one/card0]"]
    assert f"ZeroDivisionError: {cause}" in case[kind]
    assert "test_plan.py:" in case[kind]
    assert f"raise ZeroDivisionError({cause!r})".replace("'", '"') in run.stdout
    assert "the author's own words" in run.junit["test_own_assertion[one/card0]"]["failure"]


def test_summary_says_what_can_be_done_about_a_state(run: Ended) -> None:
    shown = run.stdout.splitlines()
    at = shown.index("INFRA (2) The cable is cut.")
    assert shown[at + 1] == "    hint:    Look behind the rack."
    assert lines_with(run.stdout, "hint:    Remove `power: false` of two from the inventory.")


def test_states_have_words_and_counts_of_their_own(run: Ended) -> None:
    assert lines_with(run.stdout, "NOT_APPLICABLE (1) two/card0 is not permitted root-key")
    closing = run.stdout.splitlines()[-1]
    for part in ("1 not applicable", "9 blocked", "4 infra", "1 refused"):
        assert part in closing
    assert "skipped" not in closing


def test_letters_show_states_apart(run: Ended) -> None:
    (progress,) = lines_with(run.stdout, "test_plan.py .")
    for letter, count in {"n": 1, "B": 9, "I": 4, "R": 1, "!": 6}.items():
        assert progress.count(letter) == count + (letter == "n") * 1  # the n of test_plan.py
    assert "s" not in progress.partition("test_plan.py")[2]


def test_junit_carries_device_outcome_verdicts_and_state(run: Ended) -> None:
    case = run.junit["test_diverges[one/card0]"]
    assert (case["device"], case["outcome"], case["verdict.fpgasupdate"], case["verdict.rsu"]) == (
        "one/card0",
        "AS_INTENDED",
        "FALSE_FAILURE",
        "MATCH",
    )
    assert case["as_stated"] == "no"
    assert run.junit["test_lands[two/card0]"]["as_stated"] == "yes"
    assert run.junit["test_infra[two/card0]"]["run_state"] == "INFRA"
    assert run.junit["test_marked_skip[two/card0]"]["run_state"] == "BLOCKED"
    assert run.junit["test_of_a_host[two]"]["device"] == "two"
    assert run.junit["test_of_nothing"] == {}


def test_a_test_of_a_host_alone_is_held_to_its_assertions(run: Ended) -> None:
    assert "failure" not in run.junit["test_of_a_host[one]"]
    assert not any("test_of_a_host" in name for name in run.states)


def test_judged_again_from_disk_it_is_the_same(run: Ended) -> None:
    again = judge(run.records)
    assert {s.name.split("::", 1)[1]: s.as_stated for s in again.scenarios} == {
        name: found["as_stated"] for name, found in run.scenarios.items()
    }
    assert again.finished
