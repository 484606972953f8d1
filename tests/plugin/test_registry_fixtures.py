"""Scenarios that push to a registry: what the fixtures give, what is recorded, and each run state."""

from pathlib import Path

import pytest
from support.plans import INVENTORY

from harness.errors import BlockedError
from harness.judgement.records import Fault, Intent
from harness.registry.process import find_registry

WITH_REGISTRY = (
    INVENTORY
    + """\
    registries:
      registry.local: {emulated: true}
      plain: {emulated: {tls: false, tokens: false}}
"""
)


@pytest.fixture
def push_plan(plan, monkeypatch: pytest.MonkeyPatch):
    """A plan over a lab with two registries, whose program is there; tests install nothing."""
    try:
        program = find_registry(install=False)
    except BlockedError as error:
        pytest.fail(f"These tests need a real registry. {error}", pytrace=False)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    (plan.folder / "inventory.yaml").write_text(WITH_REGISTRY, encoding="utf-8")
    return plan


SCENARIOS = """
def test_lands(push, pull, registry, contents, hil):
    pushed = push("oci-once", "tiny")
    assert pushed.report.result == "done"
    assert pushed.expected.digest == contents["tiny"].digest
    pull("oci-pull", pushed)
    push.look_again(pushed)
    assert len(registry.registry.restarts) == 1
    assert hil._lab is None, "no card was asked for"

@pytest.mark.hil_expects(outcome="FAILED")
def test_fails_and_says_so(push, registry):
    push("oci-once", "tiny", at="before:manifest-put", action="rotate-keys-registry-only")

def test_after_a_fault_all_is_well_again(push):
    push("oci-once", "tiny")

@pytest.mark.hil_expects(outcome="FAILED")
def test_states_what_is_not_so(push):
    push("oci-once", "tiny")

def test_never_comes_there(push):
    push("oci-once", "tiny", at="before:blob-post#99", action="restart")

def test_names_no_client(push):
    push("oci-onse", "tiny")

def test_forgets_the_action(push):
    push("oci-once", "tiny", at="before:manifest-put")

def test_breaks(push):
    raise ZeroDivisionError("a bug")
"""


def test_pushes_are_judged_and_every_run_state_is_told(push_plan) -> None:
    done = push_plan.run(SCENARIOS)
    assert done.states == {
        "test_lands": "as-stated",
        "test_fails_and_says_so": "as-stated",
        "test_after_a_fault_all_is_well_again": "as-stated",
        "test_states_what_is_not_so": "not-as-stated",
        "test_never_comes_there": "not-as-stated",
        "test_names_no_client": "BLOCKED",
        "test_forgets_the_action": "BLOCKED",
        "test_breaks": "BUG",
    }
    assert "Did you mean 'oci-once'?" in done.text
    assert "A fault needs both a point and an action." in done.text
    pushes = [r for r in done.records if isinstance(r, Intent) and r.operation == "push"]
    assert len({push.subject.name for push in pushes}) == len(pushes), "each scenario has its repository"
    faults = [(r.point, r.action, r.state) for r in done.records if isinstance(r, Fault)]
    assert faults == [
        *(
            ("before:manifest-put#1", "rotate-keys-registry-only", state)
            for state in ("armed", "fired", "undone")
        ),
        *(("before:blob-post#99", "restart", state) for state in ("armed", "not-reached")),
    ]
    fired = next(r for r in done.records if isinstance(r, Fault) and r.state == "fired")
    assert fired.intent in {push.seq for push in pushes}
    assert "/manifests/v1" in fired.detail, "it says which request was held"


TWO = """
@pytest.mark.parametrize("number", [1, 2])
def test_lands(push, registry, number):
    push("oci-once", "tiny")
    print("BENCH", registry.lab.folder, registry.registry.settings.tls is not None)
"""


def test_each_worker_has_a_registry_of_its_own(push_plan) -> None:
    done = push_plan.run(TWO, "-n", "2", "--dist", "each", "-rP", plugins=("xdist",))
    assert set(done.states.values()) == {"as-stated"}
    benches = {line for line in done.stdout.splitlines() if line.startswith("BENCH")}
    assert len(benches) == 2, benches
    assert not any(Path(line.split()[1]).exists() for line in benches), "all of them are gone"


def test_an_option_chooses_the_registry(push_plan) -> None:
    done = push_plan.run(TWO, "--hil-registry", "plain", "-k", "1", "-rP")
    assert "False" in next(line for line in done.stdout.splitlines() if line.startswith("BENCH"))
    wrong = push_plan.run(TWO, "--hil-registry", "plane")
    assert wrong.code == pytest.ExitCode.USAGE_ERROR
    assert "There is no registry 'plane'" in wrong.text
    assert "Did you mean 'plain'?" in wrong.text


def test_a_lab_without_a_registry_does_not_apply(plan) -> None:
    done = plan.run(TWO, "-k", "1")
    assert (done.code, done.states) == (0, {"test_lands[1]": "NOT_APPLICABLE"})
    assert "the lab small has no registry" in done.text


WITHOUT_PACKAGE = """
import harness.packages

def unpacked(*words, **more):
    raise harness.packages.PackageError("no network")

harness.packages.installed = lambda program: None
harness.packages._root_prefix = lambda: None
harness.packages.unpacked = unpacked
"""


def test_without_the_package_it_is_blocked_with_the_command_that_helps(push_plan) -> None:
    (push_plan.folder / "conftest.py").write_text(WITHOUT_PACKAGE, encoding="utf-8")
    done = push_plan.run(TWO)
    assert done.states == {"test_lands[1]": "BLOCKED", "test_lands[2]": "BLOCKED"}
    assert "sudo apt-get install docker-registry" in done.text


WITHOUT_ENGINE = """
from harness.errors import BlockedError
from harness.registry.engines import choose

def open_engine():
    raise BlockedError("no engine")

choose.open_engine = open_engine
"""
DEPTHS = """
from pathlib import Path

def pytest_runtest_makereport(call):
    if call.excinfo is not None:
        with Path(__file__).with_name("depths").open("a") as file:
            print(len(call.excinfo.traceback), file=file)
"""
FOUR = """
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_lands(push, number):
    push("docker-naive", "tiny")
"""


@pytest.mark.parametrize("lacking", [WITHOUT_ENGINE, WITHOUT_PACKAGE], ids=["engine", "registry"])
def test_what_is_missing_costs_the_last_scenario_no_more_than_the_second(push_plan, lacking: str) -> None:
    """An error that is raised again keeps the frames of each time before; reports of pytest read them all."""
    (push_plan.folder / "conftest.py").write_text(lacking + DEPTHS, encoding="utf-8")
    done = push_plan.run(FOUR)
    assert set(done.states.values()) == {"BLOCKED"}
    _, *later = (push_plan.folder / "depths").read_text().split()
    assert len(later) == 3
    assert len(set(later)) == 1
