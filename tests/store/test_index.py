"""The index of runs, in SQLite and in PostgreSQL: written while a run goes on, made again from histories."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from support.told_runs import LIE, Run

from harness.errors import ConfigurationError, InfrastructureError
from harness.judgement.judge import judge, scenario_records
from harness.judgement.records import (
    Claim,
    Environment,
    Evidence,
    Record,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
    Subject,
    to_json,
)
from harness.judgement.values import Unknown
from harness.record.runs import make_run_dir
from harness.store import tables
from harness.store.index import Index
from harness.store.opening import HEAD, missing_file, open_index, sqlite_url
from harness.store.past import courses, forget, older_than, past_runs, went_both_ways
from harness.store.place import index_url

MIGRATIONS = Path(tables.__file__).with_name("migrations") / "versions"


def kept(folder: Path, records: list[Record], *, whole: bool = True) -> Path:
    """Write a history as a run leaves it; one that is cut off has no end."""
    folder.mkdir(parents=True)
    lines = [json.dumps(to_json(record)) for record in (records if whole else records[:-1])]
    (folder / "history.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def run_of_three() -> list[Record]:
    run = Run()
    run.flash("plan.py::test_wrong[one/card0]", "one/card0")
    run.flash("plan.py::test_good[two/card0]", "two/card0", lies=False)
    run.blocked("plan.py::test_push", "no registry")
    return run.end()


def rows(index: Index, table: Any) -> list[dict[str, Any]]:
    with index.engine.connect() as connection:
        return [dict(row) for row in connection.execute(select(table).order_by(table.c.id)).mappings()]


def plain(found: list[dict[str, Any]], *without: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in without} for row in found]


def test_a_run_from_its_history(index: Index, tmp_path: Path) -> None:
    folder = kept(tmp_path / "run", run_of_three())
    assert index.take(folder) == ("20231114-221320-7", 3)
    found = [
        (row["scenario"], row["device"], row["state"], row["outcome"], row["worst"], row["seconds"])
        for row in rows(index, tables.SCENARIOS)
    ]
    assert found == [
        ("plan.py::test_wrong[one/card0]", "one/card0", "not-as-stated", "FAILED", "FALSE_SUCCESS", 9.0),
        ("plan.py::test_good[two/card0]", "two/card0", "as-stated", "AS_INTENDED", "MATCH", 9.0),
        ("plan.py::test_push", "", "BLOCKED", None, None, pytest.approx(0.1)),
    ]
    (run,) = rows(index, tables.RUNS)
    assert (run["state"], run["lab"], run["versions"]) == ("finished", "emulated", {"harness": "0.1.0"})


def test_a_divergence_has_its_words_and_the_records_it_rests_on(index: Index, tmp_path: Path) -> None:
    records = run_of_three()
    index.take(kept(tmp_path / "run", records))
    wrong = [row for row in rows(index, tables.VERDICTS) if row["kind"] != "MATCH"]
    assert [(row["reporter"], row["as_stated"]) for row in wrong] == [("fpgasupdate", False)]
    assert "flash count stayed 5" in wrong[0]["truth"]
    evidence = rows(index, tables.EVIDENCE)
    by_seq = {record.seq: to_json(record) for record in records}
    assert {row["record"]["kind"] for row in evidence} >= {"claim", "observation"}
    assert all(row["record"] == by_seq[row["seq"]] for row in evidence)


def test_what_cards_showed_and_what_faults_did(index: Index, tmp_path: Path) -> None:
    index.take(kept(tmp_path / "run", run_of_three()))
    devices = {row["device"]: row["environment"] for row in rows(index, tables.DEVICES)}
    assert devices == {
        name: {"address": "0000:b2:00.0", "identity": "64:4c:36:00:00:01"}
        for name in ("one/card0", "two/card0")
    }
    faults = [(row["action"], row["point"], row["state"]) for row in rows(index, tables.FAULTS)]
    assert faults == [("ignore-upload", "start", "armed"), ("ignore-upload", "start", "fired")]


def test_files_of_a_run_are_known_by_their_content(index: Index, tmp_path: Path) -> None:
    folder = kept(tmp_path / "run", run_of_three())
    index.take(folder)
    content = (folder / "history.jsonl").read_bytes()
    assert plain(rows(index, tables.ARTEFACTS), "id", "run_id") == [
        {"path": "history.jsonl", "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    ]


def test_written_while_the_run_goes_on_it_says_the_same_as_from_the_history(url: str, tmp_path: Path) -> None:
    records = run_of_three()
    folder = kept(tmp_path / "run", records)
    started = records[0]
    assert isinstance(started, RunStarted)
    with Index(url) as index:
        run = index.begin(started, folder)
        judgement = judge(records)
        for one, own in zip(judgement.scenarios, scenario_records(records), strict=True):
            index.add(run, one, own)
        index.end(run, folder, finished=judgement.finished)
        live = [rows(index, table) for table in (tables.SCENARIOS, tables.VERDICTS, tables.EVIDENCE)]
    with Index(url) as index:
        index.take(folder)
        again = [rows(index, table) for table in (tables.SCENARIOS, tables.VERDICTS, tables.EVIDENCE)]
    for one_way, other_way in zip(live, again, strict=True):
        assert plain(one_way, "id", "scenario_id") == plain(other_way, "id", "scenario_id")


def test_taken_again_nothing_is_there_twice(index: Index, tmp_path: Path) -> None:
    folder = kept(tmp_path / "run", run_of_three())
    index.take(folder)
    counts = {table.name: len(rows(index, table)) for table in tables.METADATA.sorted_tables}
    index.take(folder)
    assert {table.name: len(rows(index, table)) for table in tables.METADATA.sorted_tables} == counts


def test_a_run_that_was_killed_shows_as_interrupted(index: Index, tmp_path: Path) -> None:
    records = run_of_three()
    folder = kept(tmp_path / "run", records, whole=False)
    started = records[0]
    assert isinstance(started, RunStarted)
    held = make_run_dir(folder)
    index.begin(started, folder)
    assert [run.state for run in past_runs(index.engine)] == ["running"]
    os.close(held)  # as at the end of its process, however it ended
    assert [run.state for run in past_runs(index.engine)] == ["interrupted"]


def test_the_same_scenario_and_device_over_past_runs(index: Index, tmp_path: Path) -> None:
    for number, lies in enumerate((False, True, False)):
        run = Run()
        run._began += 100.0 * number
        run.records[0] = RunStarted(seq=1, time=run._began, run=f"run{number}", lab="emulated")
        run.flash("plan.py::test_a[one/card0]", "one/card0", lies=lies)
        run.flash("plan.py::test_b[one/card0]", "one/card0", lies=False)
        index.take(kept(tmp_path / f"run{number}", run.end()))
    found = {course.scenario: course for course in courses(index.engine)}
    a, b = found["plan.py::test_a[one/card0]"], found["plan.py::test_b[one/card0]"]
    assert [(r.run, r.state) for r in a.results] == [
        ("run2", "as-stated"),
        ("run1", "not-as-stated"),
        ("run0", "as-stated"),
    ]
    assert (a.flaky, b.flaky) == (True, False)
    assert [course.scenario for course in courses(index.engine, ["test_b", "one"])] == [b.scenario]
    assert [len(course.results) for course in courses(index.engine, last=2)] == [2, 2]
    assert courses(index.engine, device="two/card0") == []
    assert courses(index.engine, ["%"]) == []
    assert went_both_ways(index.engine, "emulated", days=1e6) == {"plan.py::test_a[one/card0]"}
    assert went_both_ways(index.engine, "another", days=1e6) == set()
    assert went_both_ways(index.engine, "emulated", days=1) == set()
    assert len(courses(index.engine, limit=1)) == 1


def test_old_runs_are_forgotten_with_all_that_is_theirs(index: Index, tmp_path: Path) -> None:
    index.take(kept(tmp_path / "run", run_of_three()))
    assert older_than(index.engine, days=100_000) == []
    old = older_than(index.engine, days=1)
    assert [run.run for run in old] == ["20231114-221320-7"]
    forget(index.engine, old)
    assert not any(rows(index, table) for table in tables.METADATA.sorted_tables)


def test_a_run_that_still_goes_on_is_never_old(index: Index, tmp_path: Path) -> None:
    started = run_of_three()[0]
    assert isinstance(started, RunStarted)
    folder = tmp_path / "run"
    held = make_run_dir(folder)
    index.begin(started, folder)
    assert older_than(index.engine, days=1) == []
    os.close(held)


WRITER = """
import sys, time
from pathlib import Path
from support.told_runs import Run
from harness.judgement.judge import judge, scenario_records
from harness.judgement.records import RunStarted
from harness.store.index import Index

url, folder, name, times = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
run = Run()
for number in range(times):
    run.flash(f"plan.py::test_{name}_{number}", "one/card0")
records = run.end()
with Index(url) as index:
    number = index.begin(records[0], folder)
    for one, own in zip(judge(records).scenarios, scenario_records(records)):
        index.add(number, one, own)
"""


def test_several_processes_write_to_one_index_at_once(url: str, tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, url, str(tmp_path), name, "10"],
            env=os.environ | {"PYTHONPATH": path},
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in "abc"
    ]
    for writer in writers:
        _, said = writer.communicate(timeout=60)
        assert writer.returncode == 0, said
    with Index(url) as index:
        assert len(rows(index, tables.RUNS)) == 1
        assert len({row["scenario"] for row in rows(index, tables.SCENARIOS)}) == 30


# -- opening ------------------------------------------------------------------------------------------------


def test_the_tables_are_those_that_the_migrations_make(url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    engine = open_index(url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.METADATA) == []
    engine.dispose()


def test_the_newest_form_is_the_last_migration() -> None:
    assert sorted(path.name for path in MIGRATIONS.glob("*.py"))[-1].startswith(f"{HEAD}_")


def test_an_index_of_a_later_harness_is_left_alone(url: str) -> None:
    engine = open_index(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    with pytest.raises(InfrastructureError, match="its tables are of version 9999") as told:
        open_index(url)
    assert "HIL_STORE=none" in str(told.value)


@pytest.mark.parametrize("url", ["mysql://x/y", "nonsense", "oracle+what://", "sqlite+nothing:///x"])
def test_a_url_of_no_database_that_serves(url: str) -> None:
    with pytest.raises(ConfigurationError, match="no URL that can be used"):
        open_index(url)


def test_a_server_that_is_not_there_is_told_without_its_password() -> None:
    with pytest.raises(InfrastructureError, match="cannot be used") as told:
        open_index("postgresql://hil:hunter2@127.0.0.1:1/hil?connect_timeout=2")
    assert "hunter2" not in str(told.value)


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(InfrastructureError, match="not a database"):
        open_index(f"sqlite:///{tmp_path}/index.sqlite")


def test_where_the_index_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIL_STORE", raising=False)
    reports = Path("reports")
    assert index_url(reports) == "sqlite:///reports/index.sqlite"
    assert index_url(reports, "postgresql://h/d") == "postgresql://h/d"
    assert index_url(reports, "none") is None
    monkeypatch.setenv("HIL_STORE", "none")
    assert index_url(reports) is None
    assert index_url(reports, "sqlite:///x") == "sqlite:///x"


def test_opening_an_index_that_is_up_to_date_imports_no_migrations(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/index.sqlite"
    open_index(url).dispose()
    code = (
        "import sys; from harness.store.opening import open_index; open_index(sys.argv[1]).dispose();"
        "print('alembic' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_a_writer_waits_for_another_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/index.sqlite"
    with Index(url) as index, Index(url) as other:
        connection = other.engine.connect()
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        import threading

        done = threading.Event()
        folder = kept(tmp_path / "run", run_of_three())
        writer = threading.Thread(target=lambda: (index.take(folder), done.set()))
        writer.start()
        time.sleep(0.2)  # long enough for it to have tried; what is held is that it has not failed
        assert not done.is_set()
        connection.rollback()
        connection.close()
        writer.join(30)
        assert done.is_set()


def test_lies_that_are_stated_are_told_from_the_others(index: Index, tmp_path: Path) -> None:
    run = Run()
    run.flash("plan.py::test_stated", "one/card0", **LIE)
    index.take(kept(tmp_path / "run", run.end()))
    (wrong,) = [row for row in rows(index, tables.VERDICTS) if row["kind"] != "MATCH"]
    assert wrong["as_stated"] is True


def test_what_hosts_and_systems_run_with(index: Index, tmp_path: Path) -> None:
    run = good_start()
    run._add(1.0, Environment(part="node7", values={"kernel": "6.1", "fpgasupdate": Unknown("no such tool")}))
    host = Subject("record", "standard/host/controller-0")
    said = {"hostname": "controller-0", "sw_version": "22.12"}
    run._add(1.0, Claim(reporter="sysinv", subject=host, statement=said, evidence=Evidence("")))
    run._add(1.0, ScenarioEnded(scenario="plan.py::test"))
    index.take(kept(tmp_path / "run", run.end()))
    assert {row["device"]: row["environment"] for row in rows(index, tables.DEVICES)} == {
        "node7": {"kernel": "6.1", "fpgasupdate": "unknown (no such tool)"},
        "standard": {"release": "22.12"},
    }


def good_start() -> Run:
    run = Run()
    run._add(0.0, ScenarioStarted(scenario="plan.py::test"))
    return run


def test_text_that_no_database_takes_is_kept_as_people_read_it(index: Index, tmp_path: Path) -> None:
    run = Run(lab="a\x00b")
    run.flash("plan.py::test[\udc80]", "one/card0", text="\udcff\x00")
    folder = tmp_path / "run"
    folder.mkdir()
    lines = [json.dumps(to_json(record)) for record in run.end()]
    (folder / "history.jsonl").write_text("\n".join(lines) + "\n")
    index.take(folder)
    (row,) = rows(index, tables.SCENARIOS)
    assert row["scenario"] == "plan.py::test[\\udc80]"
    assert [run["lab"] for run in rows(index, tables.RUNS)] == ["a\\x00b"]


def test_a_run_that_was_moved_is_where_it_was_taken_from_last(index: Index, tmp_path: Path) -> None:
    index.take(kept(tmp_path / "run", run_of_three()))
    (tmp_path / "run").rename(tmp_path / "moved")
    index.take(tmp_path / "moved")
    assert [run["folder"] for run in rows(index, tables.RUNS)] == [str(tmp_path / "moved")]


def test_a_killed_run_whose_folder_is_gone_is_no_longer_running(index: Index, tmp_path: Path) -> None:
    started = run_of_three()[0]
    assert isinstance(started, RunStarted)
    index.begin(started, tmp_path / "gone")
    assert [run.state for run in past_runs(index.engine)] == ["interrupted"]


def test_a_path_may_have_any_characters(tmp_path: Path) -> None:
    folder = tmp_path / "a?b #c%20d"
    folder.mkdir()
    url = index_url(folder, None if "HIL_STORE" not in os.environ else sqlite_url(folder / "index.sqlite"))
    assert url is not None
    assert missing_file(url) == folder / "index.sqlite"
    open_index(url).dispose()
    assert missing_file(url) is None
    assert (folder / "index.sqlite").exists()


def test_a_migration_that_was_killed_has_changed_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/index.sqlite"
    code = (
        "import os, sys; from alembic import op; made = op.create_table; count = [0]\n"
        "def create(*words, **options):\n"
        "    count[0] += 1\n"
        "    os._exit(9) if count[0] == 3 else made(*words, **options)\n"
        "op.create_table = create\n"
        "from harness.store.opening import open_index; open_index(sys.argv[1])"
    )
    assert subprocess.run([sys.executable, "-c", code, url], check=False).returncode == 9
    with Index(url) as index:
        assert rows(index, tables.RUNS) == []


def test_tables_of_no_known_version_are_told(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/index.sqlite"
    engine = open_index(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0000'")
    engine.dispose()
    with pytest.raises(InfrastructureError, match="of no version that this harness knows") as told:
        open_index(url)
    assert "move the file away, then `hil history import`" in told.value.hint
