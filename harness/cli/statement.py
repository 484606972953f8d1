"""`hil report statement` and `verify`: GO or NO-GO from runs and a kill matrix, and evidence that is held."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from harness.errors import BlockedError, ConfigurationError

if TYPE_CHECKING:
    from harness.judgement.judge import Judgement
    from harness.report.statement.rules import Basis, Requirement

STATEMENT_EPILOG: Final = """Examples:

  hil report statement reports/latest --to statement

  hil report verify statement
"""


def statement(
    runs: Annotated[list[Path], typer.Argument(help="The folders of the runs that qualify.")],
    to: Annotated[Path, typer.Option(help="A new folder for the statement and its evidence.")],
    qualification: Annotated[
        Path | None, typer.Option(help="The kill matrix: what `hil qualify -o json` printed.")
    ] = None,
    waivers: Annotated[Path | None, typer.Option(help="Who answers for which deviation.")] = None,
    title: Annotated[str, typer.Option(help="What is qualified.")] = "Qualification",
) -> None:
    """Write a qualification statement, GO or NO-GO.

    With copies of its evidence. Exits with 1 where it is NO-GO.
    """
    import datetime

    from harness.record.runs import read_run, sha256_of
    from harness.report.statement.facts import facts_of
    from harness.report.statement.manifest import FILE_NAME
    from harness.report.statement.rules import decide
    from harness.report.statement.waivers import read_waivers
    from harness.report.statement.writing import Statement, write_statement

    folders = _folders(runs)
    basis = _basis(folders, qualification)
    waived = read_waivers(waivers) if waivers else []
    today = datetime.datetime.now(datetime.UTC).date()
    decision = decide(basis, waived, today)
    facts = facts_of(record for folder in folders for record in read_run(folder))
    said = Statement(title, today, decision, facts, basis.judgement, basis.requirements, basis.qualification)
    evidence = {f"run-{number}/{folder.name}": folder for number, folder in enumerate(folders, 1)}
    evidence |= {"kill-matrix.json": qualification} if qualification else {}
    evidence |= {"waivers.yaml": waivers} if waivers else {}
    lacking: BlockedError | None = None
    try:
        write_statement(said, to, evidence)
    except BlockedError as error:
        lacking = error
    typer.echo(f"{to / 'statement.html'}\nmanifest SHA-256 {sha256_of(to / FILE_NAME)}")
    open_ones = [one for one in decision.deviations if one.waiver is None]
    typer.echo("GO" if decision.go else f"NO-GO: deviations that nobody answers for: {len(open_ones)}")
    if not decision.go:
        if lacking is not None:
            typer.echo(str(lacking), err=True)
        raise typer.Exit(1)
    if lacking is not None:
        raise lacking


def verify(
    folder: Annotated[Path, typer.Argument(help="What `hil report statement` wrote.")],
    sha256: Annotated[str, typer.Option(help="What the manifest's own SHA-256 must be.")] = "",
) -> None:
    """Hold the evidence of a statement to its manifest.

    Exits with 1 where a file is another one.
    """
    from harness.record.runs import sha256_of
    from harness.report.printable import printable
    from harness.report.statement.manifest import FILE_NAME, departures

    found = departures(folder)
    own = sha256_of(folder / FILE_NAME)
    if sha256 and own != sha256.lower():
        found = [f"{FILE_NAME}: its SHA-256 is {own}, and was {sha256}", *found]
    for departure in found:
        typer.echo(printable(departure, ""))
    if found:
        raise typer.Exit(1)
    typer.echo(f"{folder}: every file is as the manifest has it\nmanifest SHA-256 {own}")


def _folders(runs: Sequence[Path]) -> list[Path]:
    """Return the folders of runs, each once."""
    from harness.cli.report import run_folder

    found = {run_folder(run).resolve(): run_folder(run) for run in runs}
    return list(found.values())


def _basis(folders: Sequence[Path], qualification: Path | None) -> Basis:
    """Return what is held to the rules: the runs judged anew, and what they and a qualification lack."""
    from harness.judgement.judge import judge
    from harness.lab.known_defects import known_defects
    from harness.record.runs import read_run
    from harness.report.statement.rules import Basis

    judgement = judge(record for folder in folders for record in read_run(folder))
    return Basis(
        judgement,
        _requirements(judgement),
        _qualification(qualification) if qualification else None,
        [defect["name"] for defect in known_defects()],
        [folder.name for folder in folders if not judge(read_run(folder)).finished],
        _lost(folders, judgement),
    )


def _lost(folders: Sequence[Path], judgement: Judgement) -> list[str]:
    """Return the scenarios that results list and histories do not have: a part of these is gone."""
    import json

    listed = set()
    for folder in folders:
        try:
            results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
            listed |= {str(one["name"]) for one in results["scenarios"]}
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue  # made again from the history at any time: the history is what counts
    return sorted(listed - {one.name for one in judgement.scenarios})


def _qualification(path: Path) -> dict[str, Any]:
    import json

    try:
        made = json.loads(path.read_text(encoding="utf-8"))
        if made["schema"] != "hil-qualify/1":
            raise ValueError(f"its schema is {made['schema']!r}")
        matrix = made["kill_matrix"]
        whole = all({"id", "reference", "predicts", "detected_by"} <= row.keys() for row in matrix["defects"])
        if not whole or not all({"scenario", "unstated"} <= row.keys() for row in matrix["false_alarms"]):
            raise ValueError("a row of it lacks something")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigurationError(
            f"{path} holds no kill matrix: {error}.", hint="hil qualify -o json > kill-matrix.json"
        ) from None
    return dict(made)


def _requirements(judgement: Judgement) -> list[Requirement]:
    """Return the requirements of the project, with how their scenarios went in the judged runs."""
    from harness.plugin.tracing import claimed_by
    from harness.report.statement.rules import Requirement
    from harness.scenarios.requirements import FILE, Last, cell_of, load_requirements, trace

    if not FILE.exists():
        return []
    last = {cell_of(one.name): Last(one.state, "", 0.0) for one in judgement.scenarios}
    ran = {name.partition("[")[0] for name in last}
    return [
        Requirement(each.id, each.text, {p.scenario: p.state for p in each.proofs if p.scenario in ran})
        for each in trace(load_requirements(), claimed_by([str(FILE.parent)], None), last)
    ]
