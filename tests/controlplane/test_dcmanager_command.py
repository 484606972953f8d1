"""The way in by the command dcmanager: what it prints, wrapped or not, and what of that is no answer."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.controlplane.cloud_cli import CloudCli
from harness.controlplane.cloud_protocol import Step, Strategy, StrategyChange, StrategyOptions
from harness.controlplane.gate import Permits
from harness.errors import ControlPlaneError, NoSuchRecordError, NotOfferedError
from harness.hosts.protocol import CommandResult
from harness.judgement.values import Unknown

STEP_COLUMNS = ("cloud", "stage", "state", "details", "started_at", "finished_at")
TIME = "2020-08-05 14:12:31.123456"
STRATEGY = {
    "strategy type": "firmware",
    "subcloud apply type": "parallel",
    "max parallel subclouds": "2",
    "stop on failure": "False",
    "state": "initial",
    "created_at": "2020-08-05T14:12:31.123456",
    "updated_at": "None",
}
#: As `dcmanager subcloud list` prints it (starlingx/test, dcmanager_table_parser_test.py).
SUBCLOUDS = """\
+----+-----------+------------+--------------+---------------+-------------+---------------+-----------------+
| id | name      | management | availability | deploy status | sync        | backup status | prestage status |
+----+-----------+------------+--------------+---------------+-------------+---------------+-----------------+
|  1 | subcloud1 | managed    | online       | complete      | in-sync     | None          | None            |
|  2 | subcloud2 | managed    | offline      | complete      | unknown     | None          | None            |
+----+-----------+------------+--------------+---------------+-------------+---------------+-----------------+
"""


def table(columns: Sequence[str], *rows: Sequence[str], width: int = 200) -> str:
    """Print a table as prettytable does; a cell that is wider than ``width`` is wrapped, a name never."""
    cells = [
        [[line for part in cell.split("\n") for line in textwrap.wrap(part, width) or [""]] for cell in row]
        for row in rows
    ]
    widths = [
        max(len(head), *(len(line) for row in cells for line in row[at])) for at, head in enumerate(columns)
    ]
    border = "+".join(["", *("-" * (wide + 2) for wide in widths), ""]) + "\n"

    def line(words: Sequence[str]) -> str:
        return "| " + " | ".join(word.ljust(wide) for word, wide in zip(words, widths, strict=True)) + " |\n"

    body = "".join(
        line([cell[at] if at < len(cell) else "" for cell in row])
        for row in cells
        for at in range(max(map(len, row)))
    )
    return border + line(columns) + border + body + border


def properties(shown: dict[str, str]) -> str:
    return table(("Field", "Value"), *shown.items())


@dataclass
class FakeHost:
    """A controller whose commands answer what a test says: text, or exit code and standard error."""

    answers: dict[str, str | tuple[int, str]]
    name: str = "controller-0"
    asked: list[str] = field(default_factory=list)

    def run(self, argv: Sequence[str], **options: Any) -> CommandResult:
        line = argv[-1] if argv[0] == "bash" else " ".join(argv)
        self.asked.append(line)
        answer = next(said for words, said in self.answers.items() if words in line)
        code, out, err = (0, answer, "") if isinstance(answer, str) else (answer[0], "", answer[1])
        return CommandResult(tuple(argv), code, out, err, 0.0)


def way(**answers: str | tuple[int, str]) -> CloudCli:
    """Return a way in; ``subcloud_list=...`` is what `dcmanager subcloud list` prints."""
    host = FakeHost({words.replace("__", "-").replace("_", " "): said for words, said in answers.items()})
    made = CloudCli("central", host)  # type: ignore[arg-type]
    made.host = host  # type: ignore[attr-defined]
    return made


def change(act: Any, **options: Any) -> Callable[[CloudCli], Strategy]:
    asked = StrategyChange(act, StrategyOptions(**options))
    return lambda found: found.carry_out(asked, Permits(asked, "a test"))


# -- what is read ------------------------------------------------------------------------------------------


def test_subclouds_and_their_endpoints() -> None:
    one = {"id": "1", "name": "subcloud1", "management": "managed", "availability": "online",
           "dc-cert_sync_status": "in-sync", "firmware_sync_status": "out-of-sync"}  # fmt: skip
    two = one | {"id": "2", "name": "subcloud2", "availability": "offline", "firmware_sync_status": "unknown"}
    found = way(
        subcloud_list=SUBCLOUDS,
        subcloud_show_subcloud1=properties(one),
        subcloud_show_subcloud2=properties(two),
    )
    first, second = found.subclouds()
    assert (first.id, first.name, first.sync, first.deploy_status) == (1, "subcloud1", "in-sync", "complete")
    assert first.endpoint_sync == {"dc-cert": "in-sync", "firmware": "out-of-sync"}
    assert (first.backup_status, first.firmware_sync_status) == (None, "out-of-sync")
    assert (second.availability, second.sync, second.firmware_sync_status) == (
        "offline",
        "unknown",
        "unknown",
    )
    assert "| subcloud2 |" in found.evidence.text and "firmware_sync_status" in found.evidence.text


def test_what_one_alone_does_not_show_is_unknown() -> None:
    found = way(subcloud_show=properties({"name": "subcloud1", "management": "managed"})).subcloud(
        "subcloud1"
    )
    assert isinstance(found.sync, Unknown) and isinstance(found.firmware_sync_status, Unknown)


def test_the_strategy() -> None:
    found = way(fw__update__strategy_show=properties(STRATEGY)).strategy()
    assert found == Strategy("firmware", "initial", "parallel", 2, False, "2020-08-05T14:12:31.123456", None)


def test_no_strategy_is_none() -> None:
    said = (1, "ERROR (app) The resource could not be found.  Strategy of type 'firmware' not found\n")
    assert way(fw__update__strategy_show=said).strategy() is None


@pytest.mark.parametrize("width", [*range(9, 40), 200])
def test_steps_that_are_wrapped_are_read_back_or_unknown(width: int) -> None:
    rows = [
        ("subcloud1", "Apply", "applying fw update strategy", "apply phase is 25% complete", TIME, "None"),
        ("subcloud2", "Create", "initial", "", "None", "None"),
        ("subcloud3", "Complete", "failed", "Not all images applied successfully", TIME, TIME),
    ]
    shown = table(STEP_COLUMNS, *rows, width=width)
    steps = way(strategy__step_list=shown).steps()
    assert [step.state for step in steps] == [row[2] for row in rows]
    for step, row in zip(steps, rows, strict=True):
        told = (step.cloud, step.stage, step.details, step.started_at)
        for said, true in zip(told, (*row[:2], *row[3:5]), strict=True):
            assert isinstance(said, Unknown) or said == (None if true == "None" else true)


def test_details_of_several_lines() -> None:
    row = ("subcloud1", "Complete", "failed", "first line\nsecond line", TIME, TIME)
    (step,) = way(strategy__step_list=table(STEP_COLUMNS, row)).steps()
    assert (step.cloud, step.state) == ("subcloud1", "failed")
    assert isinstance(step.details, Unknown) and "second line" in step.details.reason


# -- what is no answer -------------------------------------------------------------------------------------


def test_nothing_to_list_is_a_row_that_says_so() -> None:
    assert way(strategy__step_list=table(STEP_COLUMNS, ("<none>",) * 6)).steps() == []


@pytest.mark.parametrize("printed", ["", "\n", table(STEP_COLUMNS, ("x",) * 6).replace("x", " ")])
def test_a_command_that_ends_well_and_shows_nothing(printed: str) -> None:
    with pytest.raises(ControlPlaneError):
        way(strategy__step_list=printed).steps()


def test_a_table_without_rows_is_no_empty_list() -> None:
    header = table(STEP_COLUMNS, ("",) * 6).splitlines(keepends=True)
    with pytest.raises(ControlPlaneError, match="a table without rows"):
        way(strategy__step_list="".join([*header[:3], header[-1]])).steps()


@pytest.mark.parametrize(
    "printed", [properties({"strategy type": "patch", "state": "initial"}), properties({"state": "initial"})]
)
def test_an_apply_that_shows_another_strategy_is_no_success(printed: str) -> None:
    with pytest.raises(ControlPlaneError, match="no success"):
        change("strategy-apply")(way(fw__update__strategy_apply=printed))


# -- what is refused ---------------------------------------------------------------------------------------

REFUSALS = [
    "Unable to create strategy of type 'firmware': Bad strategy request: Subcloud nobody does not exist",
    "Unable to create strategy of type 'firmware': Bad strategy request: firmware sync status is unknown for "
    "one or more subclouds",
    "Unable to create strategy of type 'firmware': Bad strategy request: Strategy of type: 'firmware' "
    "already exists",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_told_with_the_systems_own_text(text: str) -> None:
    said = (1, f"ERROR (app) Unable to process the contained instructions  {text}\n")
    with pytest.raises(ControlPlaneError) as refusal:
        change("strategy-create")(way(fw__update__strategy_create=said))
    assert text in refusal.value.message


def test_a_question_for_what_there_is_not() -> None:
    said = (1, "ERROR (app) The resource could not be found.  Subcloud not found\n")
    with pytest.raises(NoSuchRecordError, match="Subcloud not found"):
        way(subcloud_show=said).subcloud("nobody")


def test_a_controller_without_the_command() -> None:
    with pytest.raises(NotOfferedError, match="no command `dcmanager`"):
        way(subcloud_list=(127, "bash: dcmanager: command not found\n")).subclouds()


# -- what is asked -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "options", "line"),
    [
        ("strategy-create", {}, "dcmanager fw-update-strategy create"),
        (
            "strategy-create",
            {"subcloud_apply_type": "serial", "stop_on_failure": True},
            "dcmanager fw-update-strategy create --subcloud-apply-type=serial --stop-on-failure",
        ),
        (
            "strategy-create",
            {"max_parallel": 4, "cloud_name": "subcloud1"},
            "dcmanager fw-update-strategy create --max-parallel-subclouds=4 subcloud1",
        ),
        ("strategy-create", {"group": "a group"}, "dcmanager fw-update-strategy create '--group=a group'"),
        ("strategy-apply", {}, "dcmanager fw-update-strategy apply"),
        ("strategy-abort", {}, "dcmanager fw-update-strategy abort"),
        ("strategy-delete", {}, "dcmanager fw-update-strategy delete"),
    ],
)
def test_the_command_line_of_a_change(act: str, options: dict[str, Any], line: str) -> None:
    found = way(dcmanager=properties(STRATEGY))
    change(act, **options)(found)
    (asked,) = found.host.asked  # type: ignore[attr-defined]
    assert asked == f"source /etc/platform/openrc >&2; CLI_CONFIRMATIONS=disabled {line}"


def test_steps_are_data() -> None:
    shown = {"cloud": "subcloud1", "stage": "Apply", "state": "aborted", "details": "", "started_at": TIME}
    step = way(strategy__step_show=properties(shown)).step("subcloud1")
    assert step == Step("subcloud1", "aborted", "Apply", "", TIME)
