"""`hil card`: list, show, flash, reset; judged and recorded however it ends."""

import json
import resource
import signal

import pytest

from harness.inventory.load import load_inventory
from harness.judgement.records import Intent, RunEnded, ScenarioEnded
from harness.lab.background import background_lab
from harness.lab.bench import Bench

BITSTREAM = "0x23000410010311"  # of the recipe A/csk0, as fixtures/images.yaml states it


def test_list_reaches_nothing(project) -> None:
    heads, *rows = (line.split() for line in project.hil("card", "list").stdout.splitlines())
    assert heads == [
        "CARD",
        "ADDRESS",
        "IDENTITY",
        "PERMITS",
        "HEALTH",
        "SINCE",
        "IN",
        "USE",
        "BY",
        "LAST",
        "RESULT",
    ]
    assert rows == [
        ["one/card0", "0000:b2:00.0", "64:4c:36:00:00:01", "root-key,key-cancellation", "good", *"---"],
        ["two/card0", "0000:b2:00.0", "64:4c:36:00:00:02", "none", "good", *"---"],
    ]
    listed = json.loads(project.hil("card", "list", "-o", "json").stdout)
    assert listed[1] == {
        "name": "two/card0",
        "address": "0000:b2:00.0",
        "identity": "64:4c:36:00:00:02",
        "real": False,
        "irreversible": [],
        "health": "good",
        "since": 0.0,
        "by": "",
        "reason": "",
        "lease": "",
        "last": "",
    }
    assert list(project.runtime.iterdir()) == []
    assert not (project.folder / "reports").exists(), "no database is made by looking"


def test_show_says_what_is_true_and_keeps_nothing(project) -> None:
    table = project.hil("card", "show", "one/card0")
    assert table.code == 0
    rows = dict(line.split(None, 1) for line in table.stdout.splitlines())
    assert rows["identity"] == "64:4c:36:00:00:01"
    assert rows["sr_root"] == "not programmed"
    assert rows["sr_cancelled"] == "none"
    assert rows["flash_count"] == "0"
    assert rows["device_id"] == "0xb30"
    as_json = json.loads(project.hil("card", "show", "one/card0", "-o", "json").stdout)
    assert as_json["card"] == "one/card0"
    assert as_json["values"]["sr_root"] == ""
    assert as_json["values"]["flash_count"] == 0
    assert as_json["sources"]["flash_count"].endswith("/security/flash_count")
    assert not (project.folder / "reports").exists()
    project.assert_nothing_left()


def test_flash_lands_and_says_so(project) -> None:
    run = project.hil("card", "flash", "one/card0", "A/csk0")
    assert run.code == 0, run.text
    assert "ALL AS STATED: 1 as stated" in run.stdout
    phases = [line.removesuffix(" ...") for line in run.stderr.splitlines() if line.endswith(" ...")]
    assert phases == ["waiting", "preparing", "transferring", "programming", "resetting"]
    assert "%" not in run.stderr, "how far it has come is for terminals"
    assert [scenario["state"] for scenario in run.results["scenarios"]] == ["as-stated"]
    project.assert_nothing_left()


def test_file_is_flashed_and_told_by_its_bytes(project) -> None:
    assert project.hil("image", "build", "damage/payload-bit", "-o", "my-image.bin").code == 0
    run = project.hil("card", "flash", "one/card0", "my-image.bin")
    assert run.code == 1
    assert "NOT AS STATED" in run.stdout
    run = project.hil(
        "card", "flash", "one/card0", "my-image.bin", "--expect", "unchanged", "--reports", "more"
    )
    assert run.code == 0, run.text


def test_what_cannot_be_undone_is_refused_recorded_and_judged(project) -> None:
    run = project.hil("card", "flash", "two/card0", "root-key-A")
    assert run.code == 4
    assert run.stderr.splitlines()[-2].startswith("Error: The image does what cannot be undone (root-key")
    assert run.stderr.splitlines()[-1].startswith("  hint: ")
    assert [scenario["state"] for scenario in run.results["scenarios"]] == ["REFUSED"]
    assert [record.operation for record in run.records if isinstance(record, Intent)] == ["flash"]
    assert "Traceback" not in run.text


def test_reset_is_judged(project) -> None:
    run = project.hil("card", "reset", "one/card0")
    assert run.code == 0
    assert run.results["counts"]["verdicts"] == {"MATCH": 1}


def test_cards_of_a_lab_that_is_kept_running_keep_what_was_flashed(project) -> None:
    assert project.hil("lab", "up").code == 0
    try:
        assert project.hil("card", "flash", "one/card0", "A/csk0").code == 0
        shown = project.hil("card", "show", "one/card0")
        assert f"bitstream_id         {BITSTREAM}" in shown.stdout
        assert shown.stderr == ""
    finally:
        assert project.hil("lab", "down").code == 0
    project.assert_nothing_left()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "one/card9"], "There is no card 'one/card9' in lab small."),
        (["flash", "one", "A/csk0"], "There is no card 'one' in lab small."),
        (["flash", "one/card0", "A/csk9"], "There is no file A/csk9, and no recipe of that name."),
        (["flash", "one/card0", "A/csk0", "--irreversible", "rootkey"], "--irreversible names 'rootkey'"),
        (["reset", "one/card0", "--lab", "big"], "There is no lab 'big' in inventory.yaml."),
    ],
)
def test_wrong_words_are_one_message_with_a_hint_and_nothing_begins(
    project, words: list[str], message: str
) -> None:
    run = project.hil("card", *words)
    assert run.code == 2
    assert run.stdout == ""
    told = run.stderr.splitlines()
    assert told[0].startswith(f"Error: {message}")
    assert told[1].startswith("  hint: ")
    assert len(told) == 2
    assert not (project.folder / "reports").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_flash_that_is_stopped_is_judged_and_leaves_nothing(project, number: int) -> None:
    assert project.hil("lab", "up").code == 0
    lab = background_lab(load_inventory(project.folder / "inventory.yaml"))
    bench = Bench(lab.doors().control)
    bench.hold("one/card0", "programming")
    process = project.start("card", "flash", "one/card0", "A/csk0")
    bench.wait_held("one/card0", "programming")
    process.send_signal(number)
    run = project.end(process)
    bench.release("one/card0")
    assert project.hil("lab", "down").code == 0
    assert run.code == 130, run.text
    assert "Traceback" not in run.text
    assert "1 interrupted" in run.stdout
    assert [r.state for r in run.records if isinstance(r, ScenarioEnded)] == ["interrupted"]
    assert [r.how for r in run.records if isinstance(r, RunEnded)] == ["interrupted"]
    # The tool on the host is ended, too: nobody follows it any more.
    assert [r.operation for r in run.records if isinstance(r, Intent)] == ["flash", "signal"]
    assert run.results["finished"] is False
    project.assert_nothing_left()


@pytest.mark.parametrize("missing", ["most", "the last record"])
def test_full_disk_ends_with_3_and_is_told_once(project, missing: str) -> None:
    """What is not recorded in the middle, and what is only not recorded at the very end."""
    limit = 3_000
    if missing == "the last record":
        whole = project.hil("card", "reset", "one/card0", "--reports", "before")
        assert whole.code == 0, whole.text
        # The last record is longer than this, and nothing else that is written is as long as the history.
        limit = _history_size(project) - 20
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        process = project.start("card", "reset", "one/card0")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    run = project.end(process)
    assert run.code == 3, run.text
    assert "Error: The history" in run.stderr
    assert "cannot be written: File too large" in run.stderr
    assert "Traceback" not in run.text
    lines = (run.run_dir / "history.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert "run-ended" not in kinds
    assert ("scenario-ended" in kinds) is (missing == "the last record")
    project.assert_nothing_left()


def _history_size(project) -> int:
    (history,) = (project.folder / "before").glob("2*/history.jsonl")
    return history.stat().st_size
