"""What commands on one card have in common: its lab, its driver, an image, the history that is judged."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from harness.errors import ConfigurationError, InfrastructureError

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.cards.tool_output import Progress
    from harness.hosts.protocol import Host
    from harness.inventory.model import Inventory, Lab
    from harness.lab.background import BackgroundLab
    from harness.lab.running import RunningLab
    from harness.leases.holder import LeaseHolder
    from harness.plugin.images import Image
    from harness.plugin.run_history import RunHistory
    from harness.record.history import History


def image_of(name: str, inventory: Inventory) -> Image:
    """Return the image in the file ``name``, or that of the recipe of that name.

    :raises ConfigurationError: there is neither.
    """
    from harness.lab.background import project_of
    from harness.plugin.images import ImageShelf

    project = project_of(inventory)
    if Path(name).is_file():
        return ImageShelf.of(project, recipes=False).file(Path(name))
    shelf = ImageShelf.of(project)
    try:
        return shelf[name]
    except ConfigurationError as error:
        raise ConfigurationError(
            f"There is no file {name}, and no recipe of that name.", hint=error.hint
        ) from None


def show_progress(progress: Progress) -> None:
    """Say the phase; on a terminal, how far it has come as well."""
    if progress.percent is None:
        typer.echo(f"{progress.phase} ...", err=True)
    elif sys.stderr.isatty():
        typer.echo(f"\r{progress.phase} {progress.percent:g} %\x1b[K\r", err=True, nl=False)


@contextmanager
def opened(
    card: str,
    inventory: Inventory,
    lab: str | None,
    history: History,
    irreversible: str = "",
    *,
    scale: float | None = None,
    through: Callable[[Host], Host] | None = None,
    leased: str = "",
    reports: Path = Path("reports"),
    leases: str | None = None,
) -> Iterator[CardDriver]:
    """Give the driver of ``card`` in its lab, which is started for as long where it is not kept running.

    :param through: puts something between the driver and its host.
    :param scale: lab seconds in a real one, for a lab that is started here; None: as many as there are.
    :param leased: what the card's lease is taken for, from the start; else before the first write.
    :param leases: where leases are, if it is said.
    """
    from harness.cards.driver import CardDriver
    from harness.cards.interlock import named_acts
    from harness.hosts.connect import connect
    from harness.lab.background import chosen_lab
    from harness.lab.leasing import leases_of
    from harness.record.operations import record_refusal

    allowed = named_acts(irreversible, "--irreversible")
    entry, kept = chosen_lab(inventory, lab)
    host, card_entry = entry.card(card)
    run = history.path.parent.name
    with (
        closing(leases_of(run, reports, leases, folder=run)) as holder,
        running_lab(inventory, entry, scale, holder, kept=kept) as running,
    ):
        if leased:
            running.leases.reason = leased
            running.leases.hold(card)
        refused = partial(record_refusal, history, host.name)
        reached = connect(host, running.access(host.name), refused=refused)
        try:
            yield CardDriver(
                through(reached) if through else reached,
                card_entry,
                history,
                real=host.real,
                allowed=allowed,
                sysfs=host.sysfs,
                tools=host.tools.model_dump(),
                upload_dir=host.upload_dir,
                fence=partial(running.leases.check, card),
                updates=running.leases.updates,
            )
        finally:
            reached.close()


@contextmanager
def recorded(
    card: str,
    inventory: Inventory,
    lab: str | None,
    reports: Path,
    irreversible: str = "",
    *,
    command: str = "hil card",
    scale: float | None = None,
    through: Callable[[Host], Host] | None = None,
    leases: str | None = None,
) -> Iterator[CardDriver]:
    """Give the driver of ``card``; record what it does, judge that and print it, however it ends.

    :param command: what is recorded as the scenario.
    :param scale: as :func:`opened` has it, and ``through``, and ``leases``.

    :raises typer.Exit: with 1 where what was recorded is not as expected.
    """
    from harness.cards.interlock import named_acts
    from harness.interruption import stopped_is_interrupted
    from harness.judgement.model import Expectation
    from harness.judgement.records import RunStarted, ScenarioStarted, Subject
    from harness.lab.background import chosen_lab

    entry, _ = chosen_lab(inventory, lab)
    host, _ = entry.card(card)
    scenario = f"{command} {card}"
    named_acts(irreversible, "--irreversible")
    failure: BaseException | None = None
    with stopped_is_interrupted(), _history(reports) as history:
        history.add(RunStarted(run=history.path.parent.name, lab=entry.name))
        subject, expects = Subject("card", card, host=host.name), Expectation().to_json()
        history.add(ScenarioStarted(scenario=scenario, subject=subject, expects=expects))
        try:
            with opened(
                card,
                inventory,
                lab,
                history,
                irreversible,
                scale=scale,
                through=through,
                leased=command,
                reports=reports,
                leases=leases,
            ) as driver:
                yield driver
        except BaseException as error:
            failure = error
            raise
        finally:
            as_stated = _concluded(scenario, history, failure)
        if history.failure is not None:
            raise history.failure
    if not as_stated:
        raise typer.Exit(1)


def _concluded(scenario: str, history: RunHistory, failure: BaseException | None) -> bool:
    """End the history, judge it and print that; return whether all is as expected."""
    from harness.interruption import uninterrupted
    from harness.judgement.records import RunEnded, ScenarioEnded
    from harness.scenarios.states import INTERRUPTED, state_of

    state, reason = state_of(failure)
    how: Literal["interrupted", "finished"] = "interrupted" if state == INTERRUPTED else "finished"
    with uninterrupted("judge what was recorded"):
        # What a full disk does not take is judged from memory; the history remembers the error.
        with suppress(InfrastructureError):
            history.add(ScenarioEnded(scenario=scenario, state=state, reason=reason))
        with suppress(InfrastructureError):
            history.add(RunEnded(how=how))
        return _tell(history)


def running_lab(
    inventory: Inventory,
    entry: Lab,
    scale: float | None = None,
    leases: LeaseHolder | None = None,
    *,
    kept: BackgroundLab,
) -> RunningLab:
    """Return the emulated lab that `hil lab up` keeps running, where it does; else start one for now.

    :param leases: as :func:`harness.lab.running.start_lab` has it.
    :param kept: where it is kept, if it is, as :func:`harness.lab.background.chosen_lab` has found it.
    """
    from harness.lab.running import start_lab

    if kept.pid() is not None:
        return kept.attach(inventory, leases)
    if entry.emulated:
        typer.echo("(an emulated lab for this command only; `hil lab up` keeps one)", err=True)
    return start_lab(inventory, entry.name, scale=scale, leases=leases)


@contextmanager
def _history(reports: Path) -> Iterator[RunHistory]:
    """Give a history in a new run folder, which is held until it is judged."""
    from harness.plugin.run_history import RunHistory
    from harness.record.runs import make_run_dir, new_run_dir

    folder = new_run_dir(reports)
    hold = make_run_dir(folder)
    try:
        history = RunHistory(folder / "history.jsonl")
        with closing(history):
            yield history
    finally:
        os.close(hold)


def _tell(history: History) -> bool:
    """Judge what was recorded and print it; return whether it is as expected."""
    from harness.judgement.judge import judge
    from harness.report.results import write_results
    from harness.report.summary import render

    judgement = judge(history.records)
    typer.echo(render(judgement, history.path.parent, colour=sys.stdout.isatty()))
    with suppress(InfrastructureError):  # the history is there, and `hil judge` makes them from it
        write_results(history.path.parent, judgement)
    return judgement.as_stated
