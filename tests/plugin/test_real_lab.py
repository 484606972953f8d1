"""Scenarios on a lab that counts as real: no bench, so the card's state, permits and reach decide."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.plans import lines_with

from harness.judgement.records import Intent

PROGRAM = """
@pytest.mark.hil_given(root="A")
def test_on_a_keyed_card(flash):
    flash("unsigned", unchanged("0x11", source=DOC))

@pytest.mark.hil_given(root="none")
def test_root_key(flash):
    flash("root-key-A", lands(DOC))

@pytest.mark.hil_given(flash_count=10_000)
def test_worn(flash):
    pass
"""


def test_state_and_permits_decide_what_applies(plan, real) -> None:
    real("[root-key]")
    run = plan.run(PROGRAM, "--hil-device=one")
    assert run.code == 0
    reasons = {name.partition("[")[0]: found["reason"] for name, found in run.scenarios.items()}
    assert set(run.states.values()) == {"NOT_APPLICABLE"}
    assert reasons["test_on_a_keyed_card"].startswith(
        "one/card0: SR root entry hash is not programmed, wanted "
    )
    assert reasons["test_root_key"] == "one/card0 is not permitted root-key"
    assert reasons["test_worn"] == "one/card0: flash count is 0, wanted at least 10000"
    assert lines_with(run.stdout, "3 not applicable")


@pytest.mark.parametrize(
    ("permit", "option", "missing"),
    [
        ("[]", "key-cancellation", "the inventory does not permit that on card0; nothing was changed"),
        ("[key-cancellation]", "root-key", "--hil-irreversible=key-cancellation"),
        ("[key-cancellation]", "", "--hil-irreversible=key-cancellation"),
    ],
)
def test_what_cannot_be_undone_needs_inventory_and_command_line(
    plan, real, permit: str, option: str, missing: str
) -> None:
    real(permit)
    run = plan.run(
        """
        def test_first(card, images):
            card.flash(images["cancel-A-csk0"].data, "cancel-A-csk0", lands(DOC))
        """,
        *("--hil-device=one", f"--hil-irreversible={option}"),
    )
    assert run.states == {"test_first[one/card0]": "REFUSED"}
    assert missing in run.scenarios["test_first[one/card0]"]["reason"]
    (flash,) = [record for record in run.records if isinstance(record, Intent)]
    assert flash.parameters["image"]["cancel_id"] == 0, "the refusal is in the history"


def test_a_flash_lands_and_is_not_repeated(plan, real) -> None:
    """The card ``two`` is flashed by no other test of this module."""
    real("[root-key]")
    source = """
    def test_lands(flash):
        flash("A/csk0-v2", lands(DOC))

    def test_again(flash):
        flash("A/csk0-v2", lands(DOC))

    @pytest.mark.hil_requires("power")
    def test_power(flash):
        pass

    @pytest.mark.hil_requires("bench")
    def test_bench(flash):
        pass

    def test_only_a_card_can_tell(flash, faults):
        faults.arm("copying", "cancel")

    def test_circumstance(flash, faults):
        faults.arm("start", "busy")

    def test_no_power(flash, faults):
        faults.arm("programming", "power-cut")
        flash("A/csk0", lands(DOC))
    """
    run = plan.run(source, "--hil-device=two")
    assert {name.partition("[")[0]: state for name, state in run.states.items()} == {
        "test_lands": "as-stated",
        "test_again": "NOT_APPLICABLE",
        **dict.fromkeys(["test_power", "test_no_power"], "BLOCKED"),
        **dict.fromkeys(["test_bench", "test_only_a_card_can_tell", "test_circumstance"], "NOT_APPLICABLE"),
    }
    assert "already runs A/csk0-v2" in run.scenarios["test_again[two/card0]"]["reason"]
    assert sum(1 for r in run.records if isinstance(r, Intent) and r.operation == "flash") == 1


@contextmanager
def refusing_port() -> Iterator[int]:
    """Give a port at which nobody answers, and which nobody else can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_a_host_that_is_gone_is_infrastructure(plan, real) -> None:
    source = """
    def test_first(flash):
        flash("A/csk0", lands(DOC))

    def test_second(host):
        host.run(["uname"])
    """
    with refusing_port() as port:
        real(port=port)
        began = time.monotonic()
        run = plan.run(source, "--hil-device=one", "--junitxml=junit.xml")
    assert time.monotonic() - began < 30
    assert run.states == {"test_first[one/card0]": "INFRA"}
    assert lines_with(run.stdout, "2 infra")
    told = run.junit["test_first[one/card0]"]["error"]
    assert "INFRA: one" in told
    assert "Traceback" not in run.text


def test_workers_take_turns_on_a_real_host(plan, real) -> None:
    real()
    run = plan.run(
        """
        import time
        from pathlib import Path

        LOG = Path(__file__).with_name("log")

        @pytest.mark.parametrize("number", range(6))
        def test_turn(card, number):
            with LOG.open("a") as log:
                log.write(f"{card.name} in\\n")
            card.truth()
            time.sleep(0.05)  # long enough for another worker to come in between, were it let
            with LOG.open("a") as log:
                log.write(f"{card.name} out\\n")
        """,
        *("-n", "2", "--maxfail=100"),
        plugins=("xdist",),
    )
    assert len(run.states) == 12
    assert len(list(run.run_dir.glob("history-gw*.jsonl"))) == 2, "both workers had something to do"
    for host in ("one", "two"):
        moves = [
            line.split()[1]
            for line in (plan.folder / "log").read_text().splitlines()
            if line.startswith(host)
        ]
        assert moves == ["in", "out"] * 6
    assert not (run.run_dir / ".hosts").exists()


def test_quarantine_of_a_real_card_holds_for_all_workers(plan, real) -> None:
    """Only the first worker's teardown fails; the second begins when that is over."""
    real()
    plan.write(
        """
        import os
        from pathlib import Path

        def pytest_runtest_logfinish(nodeid):
            if os.environ.get("PYTEST_XDIST_WORKER") == "gw0":
                Path(__file__).with_name("over").touch()
        """,
        "conftest.py",
    )
    run = plan.run(
        """
        import os, time
        from pathlib import Path

        WORKER = os.environ["PYTEST_XDIST_WORKER"]

        @pytest.fixture(autouse=True)
        def in_turn():
            end = time.monotonic() + 60
            while WORKER == "gw1" and not Path(__file__).with_name("over").exists():
                assert time.monotonic() < end
                time.sleep(0.01)

        @pytest.fixture
        def shaky(card):
            yield
            if WORKER == "gw0":
                raise RuntimeError("stuck")

        def test_once(card, shaky):
            card.reset()
        """,
        *("-n", "2", "--hil-device=one", "--dist=each"),
        plugins=("xdist",),
    )
    found = run.results["scenarios"]
    assert sorted(scenario["state"] for scenario in found) == ["BLOCKED", "as-stated"]
    assert any("one/card0 is quarantined" in scenario["reason"] for scenario in found)
