"""Scenario files are tests like any other: ids, rows, workers, run states; a wrong one starts nothing."""

from pathlib import Path

import pytest
from support.plans import Ended

HEAD = "about: What is done.\nsource: a document\n"

FILES = {
    "rows": HEAD
    + """\
given: {card: {root: $root}}
over:
  - {id: fresh, root: none, promise: lands}
  - {id: keyed, root: A, promise: unchanged 0x11}
steps:
  - flash: unsigned
    promise: $promise
""",
    "breach": HEAD
    + """\
given: {card: {root: A}}
steps:
  - flash: unsigned
    promise: lands
expect: {outcome: BREACH}
""",
    "stated": HEAD
    + """\
given: {card: {root: A}}
steps:
  - fault: ignore-upload
    at: start
  - flash: A/csk0
    promise: lands
expect: {outcome: FAILED, verdicts: {fpgasupdate: FALSE_SUCCESS}}
""",
    "unreached": HEAD
    + """\
steps:
  - fault: sigterm
    at: programming
  - reset
""",
    "elsewhere": HEAD
    + """\
given: {devices: [one/card0, nine/card0]}
steps: [reset]
""",
    "asserted": HEAD
    + """\
given: {card: {root: none}}
steps:
  - flash: A/csk0
    promise: lands
  - runs: A/csk1
""",
    "needing": HEAD + "given: {needs: power}\nsteps: [reset]\n",
    "operated": HEAD
    + """\
given: {card: {root: A}, needs: power}
steps:
  - flash: A/csk0-v2
    promise: lands
    activate: false
  - power-cycle
  - runs: A/csk0-v2
  - reset: bmcimg
    page: user
  - cancel
  - read-card
  - fault: note
    at: copying
  - flash: A/csk0
    promise: lands
""",
}


@pytest.fixture
def write(plan):
    """Writes scenario files to the plan."""

    def write(**files: str) -> None:
        for name, text in files.items():
            Path(plan.folder / f"{name}.scenario.yaml").write_text(text, encoding="utf-8")

    return write


PYTHON = "def test_python(card):\n    card.reset()\n"


@pytest.fixture
def run(plan, write) -> Ended:
    write(**FILES)
    return plan.run(PYTHON, "-n", "2", plugins=("xdist",))


def test_each_is_collected_beside_those_of_python_and_ends_as_they_do(run: Ended) -> None:
    assert run.code == 1, run.text
    states = {name.replace("/card0", ""): state for name, state in run.states.items()}
    both = ("one", "two")
    assert states == {
        **{f"test_python[{host}]": "as-stated" for host in both},
        **{f"rows[{host}-{row}]": "as-stated" for host in both for row in ("fresh", "keyed")},
        **{f"breach[{host}]": "as-stated" for host in both},
        **{f"stated[{host}]": "as-stated" for host in both},
        **{f"unreached[{host}]": "not-as-stated" for host in both},
        **{f"asserted[{host}]": "not-as-stated" for host in both},
        "elsewhere[one]": "as-stated",
        "elsewhere[nine]": "BLOCKED",
        "needing[one]": "as-stated",
        "needing[two]": "BLOCKED",
        "operated[one]": "as-stated",
        "operated[two]": "BLOCKED",
    }
    assert "NOT_REACHED" in run.scenarios["unreached[one/card0]"]["reasons"][0]
    assert "no card nine/card0" in run.scenarios["elsewhere[nine/card0]"]["reason"]
    (why,) = run.scenarios["asserted[one/card0]"]["reasons"]
    assert why.startswith("asserted.scenario.yaml:7: runs: one/card0 runs ")
    acts = [
        record.operation
        for record in run.records
        if record.kind == "intent" and record.operation in ("power-cycle", "cancel-update")
    ]
    assert sorted(acts) == ["cancel-update", "power-cycle"]
    assert "execution.py" not in run.text, "whoever writes scenario files sees no line of Python"


def test_a_wrong_file_is_told_before_anything_runs(plan, write) -> None:
    write(good=FILES["needing"], wrong=HEAD + "steps:\n  - reset\n  - flash: unsignd\n    promise: lands\n")
    run = plan.run(PYTHON)
    assert run.code == 2
    assert (
        "wrong.scenario.yaml:5: steps.1.flash: no image recipe is called 'unsignd'; did you mean" in run.text
    )
    assert not (plan.folder / "reports").exists()
