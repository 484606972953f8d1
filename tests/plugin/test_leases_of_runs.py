"""Runs on cards that others can reach: one run writes to a card at a time, and is told when that ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.databases import server
from support.plans import LEAN
from support.postgres import Server
from support.processes import wait_until

from harness.judgement.records import Intent
from harness.leases.owner import Owner
from harness.leases.store import LeaseStore

__all__ = ["server"]

ONE, TWO = "64:4c:36:00:00:01", "64:4c:36:00:00:02"
ADA = Owner("ada@desk", "desk")
RESET = """
def test_reset(card):
    card.reset()
"""


@pytest.fixture
def leases(plan, monkeypatch: pytest.MonkeyPatch) -> Iterator[LeaseStore]:
    """The leases that the plan's runs use."""
    monkeypatch.setenv("HIL_LEASES", f"sqlite:///{plan.folder}/leases.sqlite")
    with LeaseStore(os.environ["HIL_LEASES"]) as store:
        yield store


def test_a_card_of_somebody_else_is_blocked_and_others_are_given_back(plan, real, leases: LeaseStore) -> None:
    real()
    leases.acquire(ONE, "one/card0", ADA, "console by hand", 3600)
    run = plan.run(
        """
        import os
        from harness.leases.store import LeaseStore

        def test_reset(card):
            card.reset()

        def test_who_has_it(card):
            card.reset()
            held = {h.lease.name: h.owner for h in LeaseStore(os.environ["HIL_LEASES"]).all()}
            assert held.pop("one/card0", None)
            assert [owner.pid for owner in held.values()] == [os.getpid()]
        """
    )
    assert run.states == {
        "test_reset[one/card0]": "BLOCKED",
        "test_who_has_it[one/card0]": "BLOCKED",
        "test_reset[two/card0]": "as-stated",
        "test_who_has_it[two/card0]": "as-stated",
    }
    assert "ada@desk has the lease of one/card0" in run.scenarios["test_reset[one/card0]"]["reason"]
    assert {r.subject.name for r in run.records if isinstance(r, Intent)} == {"two/card0"}
    assert [held.owner for held in leases.all()] == [ADA]


def test_a_run_whose_lease_was_broken_writes_no_more(plan, real, leases: LeaseStore) -> None:
    real()
    run = plan.run(
        """
        import os
        from harness.leases.store import LeaseStore

        def test_taken_over(card, images):
            card.reset()
            with LeaseStore(os.environ["HIL_LEASES"]) as leases:
                assert leases.broken("64:4c:36:00:00:01", "eve@desk", "needed at once")
            before = card.truth().flash_count
            with pytest.raises(Exception) as refused:
                card.flash(images["unsigned"].data, "unsigned", None)
            assert "eve@desk broke it (needed at once)" in str(refused.value)
            assert card.truth().flash_count == before
            card.reset()

        def test_later(card):
            card.reset()
        """,
        "--hil-device=one",
    )
    assert run.states == {"test_taken_over[one/card0]": "INFRA", "test_later[one/card0]": "INFRA"}
    assert "eve@desk broke it" in run.scenarios["test_later[one/card0]"]["reason"]


def test_without_its_leases_a_run_writes_nothing(plan, real) -> None:
    real()
    run = plan.run(RESET, "--hil-leases=postgresql://hil:geheim@127.0.0.1:1/hil", "--hil-device=one")
    assert run.states == {"test_reset[one/card0]": "INFRA"}
    assert "nothing is written to a card" in run.scenarios["test_reset[one/card0]"]["reason"]
    assert not any(isinstance(record, Intent) for record in run.records)
    assert "geheim" not in run.text


def test_where_the_leases_go_away_in_the_middle_nothing_more_is_written(plan, real, server: Server) -> None:
    real()
    url = server.new_database()
    source = f"""
        import psycopg

        def test_reset(card):
            card.reset()

        def test_flash(card, images):
            before = card.truth().flash_count
            with psycopg.connect("{url.rpartition("/")[0]}/postgres", autocommit=True) as others:
                others.execute("DROP DATABASE {url.rpartition("/")[2]} WITH (FORCE)")
            try:
                card.flash(images["unsigned"].data, "unsigned", None)
            finally:
                assert card.truth().flash_count == before
        """
    run = plan.run(source, f"--hil-leases={url}", "--hil-device=one")
    assert run.states == {"test_reset[one/card0]": "as-stated", "test_flash[one/card0]": "INFRA"}
    assert "nothing is written to a card" in run.scenarios["test_flash[one/card0]"]["reason"]
    (plan.folder / "reports").rename(plan.folder / "earlier")
    run = plan.run(RESET, f"--hil-leases={server.new_database()}", "--hil-device=one")
    assert run.states == {"test_reset[one/card0]": "as-stated"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "SIGKILL"])
def test_the_next_run_has_what_one_that_was_ended_had(plan, real, leases: LeaseStore, number: int) -> None:
    real()
    path = plan.write(
        """
        import time
        from pathlib import Path

        def test_stays(card):
            Path(__file__).with_name("begun").touch()
            time.sleep(600)
        """
    )
    argv = [sys.executable, "-m", "pytest", *LEAN, "-p", "no:xdist", str(path), "--hil-device=one"]
    process = subprocess.Popen(argv, cwd=plan.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until((plan.folder / "begun").exists, "the run to have its card")
        (held,) = leases.all()
        assert held.owner.pid == process.pid
        process.send_signal(number)
        process.wait(60)
        assert bool(leases.all()) == (number == signal.SIGKILL), "Ctrl-C gives it back at once"
    finally:
        process.kill()
        process.wait()
    path.unlink()
    for folder in Path(plan.folder, "reports").iterdir():
        folder.rename(plan.folder / "killed") if folder.is_dir() and not folder.is_symlink() else None
    run = plan.run(RESET, "--hil-device=one")
    assert run.states == {"test_reset[one/card0]": "as-stated"}


def test_an_emulated_lab_of_a_run_needs_none(plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_LEASES", "postgresql://hil@127.0.0.1:1/nowhere")
    run = plan.run(RESET, "--hil-device=one")
    assert run.states == {"test_reset[one/card0]": "as-stated"}
