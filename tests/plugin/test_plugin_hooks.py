"""The plugin's own hooks are called with what they promise; fixtures of the same names are left alone."""

import json

from support.plans import lines_with


def test_every_hook_is_called_in_its_place(plan) -> None:
    plan.write(
        """
        import json
        from pathlib import Path

        def note(*words):
            with Path(__file__).with_name("calls").open("a") as calls:
                calls.write(json.dumps(words) + "\\n")

        def pytest_hil_lab_started(lab):
            note("lab", lab.name, sorted(lab.entry.hosts))

        def pytest_hil_card_prepare(card, given):
            note("prepare", card.name, given.sr_root, card.truth().sr_root)

        def pytest_hil_progress(device, doing):
            note("progress", device, doing)

        def pytest_hil_scenario_judged(item, judgement):
            note("judged", item.name, judgement.as_stated)

        def pytest_hil_run_judged(run_dir, judgement):
            note("run", len(judgement.scenarios), (run_dir / "results.json").exists())

        def pytest_runtest_teardown(item):
            note("teardown")
        """,
        "conftest.py",
    )
    run = plan.run(
        """
        @pytest.mark.hil_given(root="none", cancelled=[])
        def test_flash(flash):
            flash("A/csk0", lands(DOC))

        def test_plain():
            pass
        """,
        "--hil-device=one",
    )
    assert run.code == 0, run.text
    calls = [json.loads(line) for line in (plan.folder / "calls").read_text().splitlines()]
    progress = [call[2] for call in calls if call[0] == "progress"]
    assert progress[:2] == ["prepare: root none, cancelled []", "flash A/csk0"]
    assert progress[-1] == "reset"
    assert any(doing.startswith("flash A/csk0: programming") for doing in progress)
    assert {call[1] for call in calls if call[0] == "progress"} == {"one/card0"}
    assert [call for call in calls if call[0] != "progress"] == [
        ["lab", "small", ["one", "two"]],
        ["prepare", "one/card0", "", ""],
        ["judged", "test_flash[one/card0]", True],
        ["teardown"],
        ["teardown"],
        ["run", 1, True],
    ]


def test_fixtures_of_the_same_names_elsewhere_are_left_alone(plan) -> None:
    plan.write(
        """
        import pytest

        @pytest.fixture
        def card():
            return "visiting card"

        @pytest.fixture
        def host():
            return "of a party"
        """,
        "conftest.py",
    )
    (plan.folder / "inventory.yaml").unlink()
    run = plan.run(
        "def test_party(card, host):\n    assert (card, host) == ('visiting card', 'of a party')\n"
    )
    assert run.code == 0, run.text
    assert lines_with(run.stdout, "1 passed")
    assert not (plan.folder / "reports").exists()


def test_a_fixture_made_from_ours_runs_for_each_device(plan) -> None:
    run = plan.run(
        """
        @pytest.fixture
        def card(card):
            card.extra = "mine"
            return card

        def test_mine(card):
            assert card.extra == "mine"
            card.reset()
        """
    )
    assert run.states == {"test_mine[one/card0]": "as-stated", "test_mine[two/card0]": "as-stated"}


def test_a_test_may_choose_its_devices_itself(plan) -> None:
    run = plan.run(
        """
        @pytest.mark.parametrize("card", ["two/card0"], indirect=True)
        def test_chosen(card, host):
            assert host.name == "two"
            card.reset()
        """
    )
    assert run.states == {"test_chosen[two/card0]": "as-stated"}


def test_judge_history_and_lab_are_at_hand(plan) -> None:
    run = plan.run(
        """
        @pytest.mark.hil_given(root="A")
        def test_at_hand(flash, judge, history, lab, images):
            assert judge().outcome is None
            flash(images["unsigned"], unchanged("0x11", source=DOC))
            assert judge().outcome == "AS_INTENDED"
            assert judge().verdicts["fpgasupdate"] == "MATCH"
            kinds = [record.kind for record in history.records]
            assert kinds[:2] == ["run-started", "scenario-started"]
            assert lab.name == "small"
        """,
        "--hil-device=one",
    )
    assert run.states == {"test_at_hand[one/card0]": "as-stated"}, run.text


def test_a_host_goes_with_its_card(plan) -> None:
    run = plan.run(
        """
        def test_both(card, host):
            assert card.host is host
            card.reset()
        """,
        "--hil-device=two",
    )
    assert run.states == {"test_both[two/card0]": "as-stated"}


def test_the_lab_is_closed_where_a_hook_of_its_start_fails(plan) -> None:
    plan.write(
        """
        import os
        from pathlib import Path

        def pytest_hil_lab_started(lab):
            Path(__file__).with_name("pid").write_text(str(lab.process_id))
            raise ZeroDivisionError("in a hook")
        """,
        "conftest.py",
    )
    run = plan.run(
        """
        import os
        from pathlib import Path

        def test_first(card):
            pass

        def test_lab_is_there():
            os.kill(int(Path(__file__).with_name("pid").read_text()), 0)
        """,
        "--hil-device=one",
    )
    assert lines_with(run.stdout, "1 passed", "1 error"), run.text
    assert "ZeroDivisionError: in a hook" in run.stdout
