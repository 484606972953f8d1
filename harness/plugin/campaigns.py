"""A campaign while it runs: its scenarios in their order and rounds, until something ends it."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import ConfigurationError
from harness.judgement.records import Intent
from harness.plugin.judging import AS_STATED, run_state_of
from harness.plugin.markers import REQUIREMENT, WEAR
from harness.plugin.scenario import device_of
from harness.plugin.session import SEED_KEY, SESSION, HilSession

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from harness.judgement.judge import Judgement
    from harness.scenarios.campaigns import Campaign, Selection

#: The parameter that tells the rounds of one scenario apart.
_ROUND = "hil_round"
FILE_NAME = "campaign.json"
#: How the reason begins for which a soak ends as it should.
_OVER = "the duration"
_STOPS = {"not_as_stated": "are not as stated", "could_not_run": "could not run"}


class CampaignRun:
    """A pytest plugin: chooses, repeats and orders what was collected, and leaves out what is over budget."""

    def __init__(self, campaign: Campaign, config: pytest.Config) -> None:
        self._campaign = campaign
        self._config = config
        self._seed: int = config.getoption("hil_seed")
        self._began: float | None = None
        self._planned = 0
        self._ran = 0
        self._counts: Counter[str] = Counter()
        #: Why scenarios were left out -> how many.
        self._left: Counter[str] = Counter()

    @property
    def _session(self) -> HilSession:
        return self._config.stash[SESSION]

    def facts(self) -> dict[str, Any]:
        """Return what is known of the campaign so far, as the history and ``campaign.json`` have it."""
        campaign = self._campaign
        order = {"order": campaign.order, **({"seed": self._seed} if campaign.order == "random" else {})}
        facts = {"campaign": campaign.name, "file": str(campaign.path), **order, "rounds": campaign.rounds}
        if self._began is None:
            return facts
        return facts | {
            "seconds": round(self._seconds(), 1),
            "planned": self._planned,
            "ran": self._ran,
            "left": self.left_out,
            "partial": any(not why.startswith(_OVER) for why in self._left),
        }

    @property
    def left_out(self) -> dict[str, int]:
        """Why scenarios were left out -> how many."""
        return dict(self._left)

    # -- what runs ------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make an item of each round, which its node id names."""
        if self._campaign.rounds > 1:
            metafunc.fixturenames.append(_ROUND)
            rounds = range(1, self._campaign.rounds + 1)
            metafunc.parametrize(_ROUND, rounds, ids=[f"round{number}" for number in rounds])

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Choose and order; leave out what would cost more updates of a real card than the budget has."""
        chosen = self._chosen(items)
        if self._campaign.order == "random":
            Random(self._seed).shuffle(chosen)
        chosen.sort(key=_round_of)  # keeps the order within each round
        affordable = set(map(id, self._affordable(chosen)))
        kept = [item for item in chosen if id(item) in affordable]
        self._config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept
        self._planned = len(chosen)
        self._left[self._out_of_flashes()] += len(chosen) - len(kept)
        self._left += Counter()  # forgets what is zero

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

    def _affordable(self, items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
        """Yield what the budget of updates allows: first one cell of every scenario, then their others."""
        nth: Counter[tuple[int, str]] = Counter()
        by_need: list[tuple[int, int, pytest.Item]] = []
        for item in items:
            key = (_round_of(item), item.nodeid.partition("[")[0])
            by_need.append((key[0], nth[key], item))
            nth[key] += 1
        spent: Counter[str] = Counter()
        for _, _, item in sorted(by_need, key=lambda each: each[:2]):
            card, cost = self._cost(item)
            if card and self._campaign.budget.flashes is not None:
                if spent[card] + cost > self._campaign.budget.flashes:
                    continue
                spent[card] += cost
            yield item

    def _cost(self, item: pytest.Item) -> tuple[str, int]:
        """Return the real card that an item wears, and by how many updates; no card where it wears none."""
        host, slash, _ = (card := device_of(item)).partition("/")
        if not slash or host not in self._session.lab_entry.hosts or not self._session.is_real(host):
            return "", 0
        marker = item.get_closest_marker(WEAR)
        flashes = marker.args[0] if marker else int("flash" in getattr(item, "fixturenames", ()))
        return (card, flashes) if flashes else ("", 0)

    def _out_of_flashes(self) -> str:
        return f"the budget of {self._campaign.budget.flashes} updates of each real card is used up"

    # -- when it ends ---------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Leave out what comes when the campaign is over, or its budget is used up."""
        if why := self._over(item):
            self._left[why] += 1
            return True
        return None

    def _over(self, item: pytest.Item) -> str:
        campaign, seconds = self._campaign, self._seconds()
        for kind, most in campaign.stop.model_dump(exclude_none=True).items():
            if self._counts[kind] >= most:
                return f"it was to stop after {most} that {_STOPS[kind]}"
        if campaign.budget.time is not None and seconds >= campaign.budget.time:
            return f"the budget of {campaign.budget.time:g} s is used up"
        if campaign.duration is not None and seconds >= campaign.duration:
            return f"{_OVER} of {campaign.duration:g} s is over"
        card, _ = self._cost(item)
        if card and campaign.budget.flashes is not None and self._flashed(card) >= campaign.budget.flashes:
            return self._out_of_flashes()
        return ""

    def _seconds(self) -> float:
        return 0.0 if self._began is None else time.monotonic() - self._began

    def _flashed(self, card: str) -> int:
        records = self._session.opened.records if self._session.opened is not None else ()
        return sum(
            isinstance(record, Intent) and record.operation == "flash" and record.subject.name == card
            for record in records
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what the campaign may be stopped by."""
        if report.failed and report.when != "teardown":
            stated = (AS_STATED, "no") in report.user_properties or not run_state_of(report)
            self._counts["not_as_stated" if stated else "could_not_run"] += 1

    def pytest_runtest_logstart(self) -> None:
        """Note when the first scenario begins."""
        self._began = time.monotonic() if self._began is None else self._began

    def pytest_runtest_logfinish(self) -> None:
        """Count what ran."""
        self._ran += 1

    # -- what is said of it ---------------------------------------------------------------------------

    def pytest_collection_finish(self) -> None:
        """Say how it runs, with the seed by which it runs so again."""
        self._begun(self._planned)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Say it once, where workers collect."""
        if not self._planned:
            self._begun(len(ids))

    def _begun(self, planned: int) -> None:
        self._planned = planned
        facts = self.facts()
        rounds = f", {facts['rounds']} rounds" if facts["rounds"] > 1 else ""
        self._config.hook.pytest_hil_campaign_begun(
            told=f"campaign {facts['campaign']}: {_order(facts)}{rounds}"
        )

    def pytest_hil_run_judged(self, run_dir: Path, judgement: Judgement) -> None:
        """Write what became of it beside the run's results."""
        facts = self.facts()
        with suppress(OSError):  # a full disk: it is told all the same
            (run_dir / FILE_NAME).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
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
        for why, count in facts["left"].items():
            yield f"            {'' if why.startswith(_OVER) else 'PARTIAL: '}{why}: {count} left out"


def _order(facts: dict[str, Any]) -> str:
    return f"{facts['order']} order" + (f", seed {facts['seed']}" if "seed" in facts else "")


def begin(config: pytest.Config) -> None:
    """Let the run be the campaign of ``--hil-campaign``, or the one that stands in the place of a test file.

    :raises ConfigurationError: the campaign is wrong, or cannot be run in this way.
    """
    from harness.scenarios.campaigns import SUFFIX, load_campaign

    options, session = config.option, config.stash[SESSION]
    named = [arg for arg in config.args if arg.endswith(SUFFIX)]
    if named and (len(config.args) > 1 or options.hil_campaign):
        raise ConfigurationError(f"{named[0]} is a campaign, which is run by itself.")
    if named:
        options.hil_campaign = named[0]
    campaign = load_campaign(Path(options.hil_campaign))
    if campaign.in_one_process and (session.worker or config.getoption("numprocesses", None)):
        raise ConfigurationError(
            f"The campaign {campaign.name} ends by what happens in it, and so runs in one process.",
            hint="Leave -n out, or its stop, duration and budget.",
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
    config.pluginmanager.register(run, "hil-campaign-run")


def _round_of(item: pytest.Item) -> int:
    callspec = getattr(item, "callspec", None)
    return int(callspec.params.get(_ROUND, 1)) if callspec else 1


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
