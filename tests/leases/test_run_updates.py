"""The updates of a card that a run has begun: one count for all its processes, in both kinds of database."""

from __future__ import annotations

import subprocess
import sys

from harness.leases.owner import RunKey, run_of, this_process
from harness.leases.updates import UpdateStore

RUN, CARD = RunKey("20310203-040506-77", "bench7"), "64:4c:36:00:00:01"
BEGIN = """
import sys
from harness.leases.owner import RunKey
from harness.leases.updates import UpdateStore

with UpdateStore(sys.argv[1]) as store:
    for _ in range(20):
        store.begin(RunKey(sys.argv[2], sys.argv[3]), sys.argv[4])
"""


def test_a_run_and_a_card_have_a_count_of_their_own(url: str) -> None:
    with UpdateStore(url) as store:
        assert store.begun(RUN, CARD) == 0
        store.begin(RUN, CARD)
        store.begin(RUN, CARD, 3)
        assert store.begun(RUN, CARD) == 4
        assert store.begun(RUN, "64:4c:36:00:00:02") == 0
        assert store.begun(RunKey(RUN.name, "bench8"), CARD) == 0, "folders are named by each machine alone"
        assert store.begun(RunKey("20310203-040507-77", RUN.machine), CARD) == 0
    with UpdateStore(url) as later:
        assert later.begun(RUN, CARD) == 4


def test_no_update_is_lost_where_processes_count_at_once(url: str) -> None:
    with UpdateStore(url):
        pass  # the tables are there
    counting = [
        subprocess.Popen([sys.executable, "-c", BEGIN, url, RUN.name, RUN.machine, CARD]) for _ in range(3)
    ]
    assert [process.wait(120) for process in counting] == [0, 0, 0]
    with UpdateStore(url) as store:
        assert store.begun(RUN, CARD) == 60


def test_a_process_without_a_folder_is_a_run_of_its_own() -> None:
    owner = this_process("a sweep")
    assert run_of("20310203-040506-77", owner) == run_of("20310203-040506-77", owner)
    assert run_of("", owner) != run_of("", owner)
    assert len(run_of("", owner).name) <= 128  # as long as the table takes
