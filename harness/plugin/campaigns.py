"""A campaign while it runs: its scenarios in their order and rounds, until something ends it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import ConfigurationError
from harness.plugin.judging import AS_STATED, run_state_of
from harness.plugin.markers import REQUIREMENT, WEAR
from harness.plugin.rounds import Idle, RoundItems, item_of, numbered
from harness.plugin.scenario import device_of
from harness.plugin.scheduling import CAMPAIGN
from harness.plugin.session import SEED_KEY, SESSION, HilSession
from harness.report.files import write_whole
from harness.scenarios.campaign_course import DURATION, Cell, Course, Turn

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from harness.judgement.judge import Judgement
    from harness.scenarios.campaigns import Campaign, Selection

FILE_NAME = "campaign.json"
#: What workers tell the controlling process of their items, while it runs.
COSTS = ".campaign-costs.json"


class CampaignRun:
    """A pytest plugin: chooses what runs, makes it round by round, and leaves out what is over budget.

    Where workers run it, the controlling process has the course, and each worker the items.
    """

    def __init__(self, campaign: Campaign, config: pytest.Config) -> None:
        self._campaign = campaign
        self._config = config
        self._seed: int = config.getoption("hil_seed")
        self._course: Course | None = None
        self._ran = 0

    @property
    def _session(self) -> HilSession:
        return self._config.stash[SESSION]

    def facts(self) -> dict[str, Any]:
        """Return what is known of the campaign so far, as the history and ``campaign.json`` have it."""
        campaign, course = self._campaign, self._course
        order = {"order": campaign.order, **({"seed": self._seed} if campaign.order == "random" else {})}
        facts: dict[str, Any] = {"campaign": campaign.name, "file": str(campaign.path), **order}
        if campaign.rounds is not None:
            facts["rounds"] = campaign.rounds
        if course is None or not self._ran:
            return facts
        left = course.left(self._ran)
        return facts | {
            "rounds": course.rounds if campaign.rounds is None else campaign.rounds,
            "seconds": round(course.seconds, 1),
            "planned": course.planned,
            "ran": self._ran,
            "left": left,
            "ended": course.over,
            "partial": any(not why.startswith(DURATION) for why in left),
        }

    # -- what runs ------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Choose what a round has, in the order of the campaign."""
        chosen = self._chosen(items)
        kept = set(chosen)
        self._config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen

    def _plan(self, session: pytest.Session) -> None:
        """Make the course of what is left, once nobody leaves anything out any more."""
        items = session.items
        self._course = Course([self._cell(item) for item in items], self._campaign, self._seed)
        if self._config.option.collectonly and self._campaign.rounds is not None:
            session.items = [self._item(items, turn) for turn in iter(self._course.next, None)]

    def _chosen(self, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        chosen: dict[pytest.Item, None] = {}
        for at, selection in enumerate(self._campaign.scenarios):
            found = [item for item in items if _selects(selection, item)]
            if not found:
                raise pytest.UsageError(
                    f"{self._campaign.path}: scenarios.{at}: nothing in {selection.path} is chosen by it."
                )
            chosen |= dict.fromkeys(found)
        return list(chosen)

    def _cell(self, item: pytest.Item) -> Cell:
        """Return an item with the real card that it wears, and by how many updates."""
        scenario, device = item.nodeid.partition("[")[0], device_of(item)
        host, slash, _ = device.partition("/")
        if not slash or host not in self._session.lab_entry.hosts or not self._session.is_real(host):
            return Cell(scenario, device)
        marker = item.get_closest_marker(WEAR)
        flashes = marker.args[0] if marker else int("flash" in getattr(item, "fixturenames", ()))
        return Cell(scenario, device, device if flashes else "", flashes)

    def _item(self, items: Sequence[pytest.Item], turn: Turn) -> pytest.Item:
        return items[turn.at] if self._campaign.rounds == 1 else item_of(items[turn.at], turn.number)

    @property
    def _workers(self) -> bool:
        return bool(self._config.getoption("numprocesses", None))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run one turn after the other until something ends it, where this process runs them itself."""
        collected = not session.testsfailed or session.config.option.continue_on_collection_errors
        course = self._course
        if course is None or self._workers or not collected or session.config.option.collectonly:
            return None  # pytest's own, or xdist's, says what there is to say
        turn = course.next()
        item = self._item(session.items, turn) if turn else None
        while item is not None:
            following = course.next()
            upcoming = self._item(session.items, following) if following else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=upcoming)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = None if course.over else upcoming
            if item is None and following is not None:
                course.give_back(following)
        return True

    # -- workers --------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Let a scenario of a real card make no more updates than were reserved for it; do nothing idly."""
        if isinstance(item, Idle):
            return True
        cell = self._cell(item)
        if cell.card and self._campaign.budget.flashes is not None:
            self._session.wear.allow(cell.card, cell.cost)
        return None

    def began_workers(self, ids: Sequence[str], cell_of: Callable[[str], Cell]) -> Course:
        """Return the course of a campaign whose items workers have collected."""
        costs = self._costs()
        cells = [replace(cell_of(each), **costs.get(each, {})) for each in ids]
        self._course = Course(cells, self._campaign, self._seed)
        return self._course

    def name_of(self, nodeid: str, turn: Turn) -> str:
        """Return the node id of a scenario in its round."""
        return nodeid if self._campaign.rounds == 1 else numbered(nodeid, turn.number)

    def _costs(self) -> dict[str, dict[str, Any]]:
        """Return what workers have said that their items cost; nothing where no budget asks for it."""
        try:
            found: dict[str, dict[str, Any]] = json.loads(self._told.read_text(encoding="utf-8"))
            return found
        except FileNotFoundError:
            return {}

    @property
    def _told(self) -> Path:
        return self._session.run_dir / COSTS

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say how it runs, with the seed by which it runs so again; a worker says what its items cost."""
        if not self._session.worker:
            if not self._workers:
                self._plan(session)
                self._begun()
            return
        cells = {item.nodeid: self._cell(item) for item in session.items}
        if self._campaign.budget.flashes is not None and any(cell.card for cell in cells.values()):
            said = {name: {"card": cell.card, "cost": cell.cost} for name, cell in cells.items() if cell.card}
            self._told.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._told, json.dumps(said), what="The costs of scenarios", hint="Make room.")
        session.items = RoundItems(session.items, session, single=self._campaign.rounds == 1)

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Say it once, where workers collect."""
        if self._course is None:
            self._begun()

    def _begun(self) -> None:
        """Say how it runs, once it is known what there is."""
        facts, rounds = self.facts(), self._campaign.rounds
        how_often = f", {rounds} rounds" if rounds is not None and rounds > 1 else ""
        if rounds is None:
            how_often = f", rounds for {self._campaign.duration:g} s"
        told = f"campaign {facts['campaign']}: {_order(facts)}{how_often}"
        self._config.hook.pytest_hil_campaign_begun(told=told, rounds=rounds)

    # -- when it ends ---------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what the campaign may be stopped by, as it arrives."""
        if self._course is not None and report.failed and report.when != "teardown":
            stated = (AS_STATED, "no") in report.user_properties or not run_state_of(report)
            self._course.counted("not_as_stated" if stated else "could_not_run")

    def pytest_runtest_logstart(self) -> None:
        """Note when the first scenario begins."""
        if self._course is not None:
            self._course.begin()

    def pytest_runtest_logfinish(self) -> None:
        """Count what ran."""
        self._ran += 1

    # -- what is said of it ---------------------------------------------------------------------------

    def pytest_hil_run_judged(self, run_dir: Path, judgement: Judgement) -> None:
        """Write what became of it beside the run's results."""
        facts = self.facts()
        with suppress(OSError):  # a full disk: it is told all the same
            (run_dir / FILE_NAME).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        with suppress(OSError):
            self._told.unlink()
        self._config.hook.pytest_hil_campaign_over(campaign=facts)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Say how much of it ran, and why not all."""
        for line in told(self.facts()):
            terminalreporter.line(line)


def told(facts: dict[str, Any]) -> Iterator[str]:
    """Yield what there is to say of a campaign at its end."""
    if "ran" in facts:
        yield f"campaign    {facts['campaign']}: {facts['ran']} of {facts['planned']} ran, {_order(facts)}"
        if facts["ended"] and facts["ended"] not in facts["left"]:
            yield f"            {facts['ended']}"
        for why, count in facts["left"].items():
            yield f"            {'' if why.startswith(DURATION) else 'PARTIAL: '}{why}: {count} left out"


def _order(facts: dict[str, Any]) -> str:
    return f"{facts['order']} order" + (f", seed {facts['seed']}" if "seed" in facts else "")


def begin(config: pytest.Config) -> None:
    """Let the run be the campaign of ``--hil-campaign``, or the one that stands in the place of a test file.

    :raises ConfigurationError: the campaign is wrong, or cannot be run in this way.
    """
    from harness.scenarios.campaigns import SUFFIX, load_campaign, seconds_of

    options, session = config.option, config.stash[SESSION]
    named = [arg for arg in config.args if arg.endswith(SUFFIX)]
    if named and (len(config.args) > 1 or options.hil_campaign):
        raise ConfigurationError(f"{named[0]} is a campaign, which is run by itself.")
    if named:
        options.hil_campaign = named[0]
    campaign = load_campaign(Path(options.hil_campaign))
    if options.hil_duration is not None:
        duration = seconds_of(options.hil_duration, "--duration")
        campaign = campaign.model_copy(update={"duration": duration})
    if config.getoption("numprocesses", None) and config.getoption("dist", "load") != "load":
        raise ConfigurationError(
            f"The campaign {campaign.name} shares its scenarios out among workers itself.",
            hint="Leave --dist out.",
        )
    if options.hil_seed is None:
        of_the_run = getattr(config, "workerinput", {}).get(SEED_KEY, campaign.seed)
        options.hil_seed = secrets.randbelow(1 << 32) if of_the_run is None else of_the_run
    if campaign.lab and not options.hil_lab:
        options.hil_lab = campaign.lab
    session.expected = campaign.devices
    if named or config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args[:] = [str(selection.path) for selection in campaign.scenarios]
    run = CampaignRun(campaign, config)
    session.campaign = run.facts()
    config.pluginmanager.register(run, CAMPAIGN)


def _selects(selection: Selection, item: pytest.Item) -> bool:
    if not item.path.resolve().is_relative_to(selection.path.resolve()):
        return False
    name = item.nodeid.partition("::")[2]
    if selection.ids and not any(name == each or name.startswith(f"{each}[") for each in selection.ids):
        return False
    proven = {each for marker in item.iter_markers(REQUIREMENT) for each in marker.args}
    if selection.requirements and not proven & set(selection.requirements):
        return False
    return not selection.keyword or _matches(selection.keyword, item)


def _matches(keyword: str, item: pytest.Item) -> bool:
    from _pytest.mark import KeywordMatcher
    from _pytest.mark.expression import Expression

    return Expression.compile(keyword).evaluate(KeywordMatcher.from_item(item))
