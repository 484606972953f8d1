"""`hil trace`: from requirements to the scenarios that prove them, with their last results, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.campaigns import is_there
from harness.cli.form import Form, FormOption
from harness.cli.history import ReportsOption, StoreOption

if TYPE_CHECKING:
    from harness.scenarios.requirements import Last, Traced

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_EPILOG = """Examples:

  hil trace

  hil trace FLASH-ROOT -o json

  hil trace testplans/regression/flash

The requirements stand in testplans/requirements.yaml. A scenario file says which it proves by `requirements`,
a scenario in Python by the marker hil_requirement.
"""


def requirement_ids(incomplete: str) -> list[str]:
    """Return the ids of the requirements, for completion."""
    from harness.scenarios.requirements import load_requirements

    return sorted(each for each in load_requirements() if each.startswith(incomplete))


@app.command(epilog=_EPILOG)
def trace(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="Requirements, or files and folders of scenarios; default: all.",
            autocompletion=requirement_ids,
        ),
    ] = None,
    inventory: Annotated[Path | None, typer.Option(help="The inventory file.")] = None,
    reports: ReportsOption = Path("reports"),
    store: StoreOption = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Show which scenarios prove each requirement, and how they went last; of scenarios, what they prove."""
    from harness.plugin.tracing import claimed_by
    from harness.scenarios.requirements import FILE, load_requirements, trace

    texts = load_requirements()
    wanted, places = _meant(words or [], texts)
    claimed = claimed_by(places or [str(FILE.parent)], inventory)
    found = trace(texts, claimed, _last(reports, store))
    found = [each for each in found if (each.id in wanted or not wanted) and (each.proofs or not places)]
    if output is Form.JSON:
        typer.echo(json.dumps(_as_json(found, claimed), indent=1))
        return
    for each in found:
        typer.echo(f"{each.id}: {each.text}")
        for proof in each.proofs:
            states = ", ".join(f"{count} {state}" for state, count in sorted(proof.states.items()))
            typer.echo(f"    {proof.scenario}: {states}" + (f" ({proof.run})" if proof.run else ""))
        if not each.proofs:
            typer.echo("    NO SCENARIO")
    if not wanted:
        silent = sum(not ids for ids in claimed.values())
        typer.echo(f"\n{_count(found)}; {silent} of {len(claimed)} scenarios name none")


def _meant(words: list[str], texts: dict[str, str]) -> tuple[set[str], list[str]]:
    """Return the requirements and the places that ``words`` name."""
    from harness.inventory.entries import unknown_name
    from harness.scenarios.requirements import FILE

    wanted = {word for word in words if word in texts}
    places = [word for word in words if word not in wanted]
    for place in places:
        if not is_there(place):
            raise unknown_name("requirement, file or folder", place, sorted(texts), str(FILE))
    return wanted, places


def _last(reports: Path, store: str | None) -> dict[str, Last]:
    """Return how each cell went when it ran last, on whatever lab; empty where there is no index of runs."""
    from harness.scenarios.requirements import Last, cell_of
    from harness.store.opening import missing_file
    from harness.store.place import index_url

    url = index_url(reports, store)
    if url is None or missing_file(url) is not None:
        return {}
    from harness.store.index import Index
    from harness.store.past import courses

    last: dict[str, Last] = {}
    with Index(url) as index:
        for course in courses(index.engine, last=1, limit=1_000_000):
            cell, result = cell_of(course.scenario), course.results[0]
            if cell not in last or last[cell].began < result.began:
                last[cell] = Last(result.state, result.run, result.began)
    return last


def _as_json(found: Iterable[Traced], claimed: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    proofs = [
        asdict(each) | {"proofs": [asdict(p) | {"state": p.state} for p in each.proofs]} for each in found
    ]
    return {"requirements": proofs, "scenarios": {name: list(ids) for name, ids in claimed.items()}}


def _count(found: list[Traced]) -> str:
    without = sum(not each.proofs for each in found)
    return f"{len(found)} requirements, {without} without a scenario"
