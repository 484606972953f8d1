"""The pytest plugin: options, markers, one run per session, and judgement before teardown.

Idle (no test asks for a lab) it opens nothing and imports nothing heavy; see ``plugin/session.py``.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import ConfigurationError
from harness.interruption import uninterrupted
from harness.plugin import hookspecs
from harness.plugin.markers import check_markers, parametrizes
from harness.plugin.releases import MARKER_LINE, add_options, release_of_run
from harness.plugin.session import RUN_DIR_KEY, SEED_KEY, SESSION, HilSession

if TYPE_CHECKING:
    from pathlib import Path

    from _pytest.terminal import TerminalReporter

_MARKERS = (
    "hil_given(root=, cancelled=, flash_count=, bmc_root=): the state that the scenario's card starts from",
    "hil_expects(outcome=, verdicts={reporter: verdict}): what the scenario states; default: as intended, "
    "every report a MATCH",
    "hil_requires(*capabilities): what the lab must offer for the card's host, such as 'power'",
    "hil_lab(name): the lab of the inventory that the system of the scenario is in, unless --hil-lab says it",
    "hil_registry(name): the registry of the lab that the scenario is about, unless --hil-registry says it",
    "hil_wear(flashes): how many updates the scenario costs its card; default: 1 where it flashes",
    "hil_requirement(*ids): the requirements that the scenario is a proof of; see `hil trace`",
    MARKER_LINE,
)

_OUR_FIXTURES = ("harness.plugin.fixtures", "harness.plugin.registry_fixtures")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Offer the plugin's own hooks."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ``--hil-*`` options."""
    group = parser.getgroup("hil", "hardware in the loop")
    group.addoption("--hil-inventory", metavar="FILE", help="the inventory (default: inventory.yaml)")
    group.addoption("--hil-lab", metavar="NAME", help="the lab (default: the inventory's default_lab)")
    group.addoption(
        "--hil-device",
        action="append",
        metavar="HOST[/CARD]",
        help="only these devices; may be given several times",
    )
    group.addoption(
        "--hil-way", choices=("rest", "cli"), help="ask StarlingX systems by their API, or by their command"
    )
    add_options(group)
    group.addoption("--hil-campaign", metavar="FILE", help="run this campaign")
    group.addoption("--hil-duration", metavar="TIME", help="how long a campaign goes on, in place of its own")
    group.addoption("--hil-seed", metavar="NUMBER", type=int, help="the seed of its random order")
    group.addoption(
        "--hil-image",
        metavar="NAME=FILE",
        action="append",
        default=[],
        help="the image that scenarios call NAME is this file; may be given several times",
    )
    group.addoption("--hil-registry", metavar="NAME", help="the registry (default: the lab's first)")
    group.addoption(
        "--hil-irreversible",
        metavar="NAMES",
        help="what may be done to REAL cards that cannot be undone, beside the inventory's own permit: "
        "root-key,key-cancellation",
    )
    group.addoption(
        "--hil-plan-only",
        action="store_true",
        help="run nothing: say what the scenarios would do to cards that wears them or cannot be undone",
    )
    group.addoption(
        "--hil-reports", default="reports", metavar="DIR", help="where runs are kept (default: reports)"
    )
    group.addoption(
        "--hil-store",
        metavar="URL",
        help="index of runs: sqlite:///FILE, postgresql://..., none (default: HIL_STORE, else index.sqlite "
        "where runs are kept)",
    )
    group.addoption(
        "--hil-leases",
        metavar="URL",
        help="leases of cards that others can reach: sqlite:///FILE for one machine, postgresql://... for "
        "several (default: HIL_LEASES, else the database of the index)",
    )
    group.addoption(
        "--hil-lease-wait",
        metavar="SECONDS",
        type=float,
        default=0.0,
        help="how long a card that another run has is waited for (default: 0, the scenario is blocked)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register markers, fixtures and the session's state."""
    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    config.stash[SESSION] = HilSession(config)
    from harness.plugin import cloud_fixtures, fixtures, registry_fixtures, system_fixtures
    from harness.plugin.indexing import INDEXING, Indexing

    config.pluginmanager.register(fixtures, "hil-fixtures")
    config.pluginmanager.register(registry_fixtures, "hil-registry-fixtures")
    config.pluginmanager.register(system_fixtures, "hil-system-fixtures")
    if config.getoption("hil_campaign") or any(arg.endswith(".campaign.yaml") for arg in config.args):
        _begin_campaign(config)
    config.pluginmanager.register(cloud_fixtures, "hil-cloud-fixtures")
    config.pluginmanager.register(Indexing(config), INDEXING)
    if config.getoption("hil_plan_only"):
        from harness.plugin.planning import begin

        begin(config)
    if config.stash[SESSION].allure:
        _prepare_allure(config)


def _prepare_allure(config: pytest.Config) -> None:
    import allure_commons

    from harness.plugin.allure_results import AllureEvidence, AllureSecrets

    config.pluginmanager.register(AllureEvidence(), "hil-allure")
    masking = AllureSecrets()
    allure_commons.plugin_manager.register(masking)
    config.add_cleanup(lambda: allure_commons.plugin_manager.unregister(masking))


def _begin_campaign(config: pytest.Config) -> None:
    from harness.plugin.campaigns import begin

    try:
        begin(config)
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give each worker of xdist the run folder of the controlling process, and a campaign's seed."""
    node.workerinput[RUN_DIR_KEY] = str(node.config.stash[SESSION].run_dir)
    node.workerinput[SEED_KEY] = node.config.getoption("hil_seed")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodeready(node: Any) -> None:
    """Know the workers, so that they can be told of an interruption."""
    session = node.config.stash[SESSION]
    session.workers.add(node)
    session.take_places()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give all tests of a device to one worker, in runs that are about devices."""
    from harness.plugin.scheduling import scheduling

    return scheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Start a worker for each card, in runs that open a lab."""
    from harness.plugin.scheduling import workers

    return workers(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect scenario files beside those of Python."""
    if not file_path.name.endswith(".scenario.yaml"):
        return None
    from harness.plugin.scenario_files import ScenarioModule

    module: pytest.Collector = ScenarioModule.from_parent(parent, path=file_path)
    return module


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a card (or a host) once per card (or host) of the lab."""
    session = metafunc.config.stash[SESSION]
    try:
        release_of_run(metafunc.config)
        check_markers(metafunc.definition, session, metafunc.fixturenames)
        if _is_ours(metafunc, "card"):
            if not parametrizes(metafunc.definition, "card"):
                _parametrize(metafunc, "card", session.card_names())
        elif _is_ours(metafunc, "host") and not parametrizes(metafunc.definition, "host"):
            _parametrize(metafunc, "host", session.host_names())
        if _is_ours(metafunc, "registry"):
            _ = session.registry_name
    except ConfigurationError as error:
        session.misconfigured = error
        raise pytest.Collector.CollectError(str(error)) from None


def _parametrize(metafunc: pytest.Metafunc, what: str, names: list[str]) -> None:
    if names:
        metafunc.parametrize(what, names, ids=names, indirect=True)
        return
    none = pytest.mark.skip(reason=f"the lab has no {what}, or --hil-device leaves none")
    metafunc.parametrize(what, [pytest.param("", id=f"no {what}", marks=none)], indirect=True)


def _is_ours(metafunc: pytest.Metafunc, name: str) -> bool:
    """Return whether the fixture ``name`` of a test is the plugin's own, or one made from it.

    Other projects, and the harness's own tests, have fixtures of these names too.
    """
    for definition in reversed(metafunc._arg2fixturedefs.get(name, ())):
        if definition.func.__module__ in _OUR_FIXTURES:
            return True
        if name not in definition.argnames:
            return False
    return False


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Tell what is wrong with options, inventory or markers once, not for each module that needs them."""
    report = yield
    session = collector.config.stash[SESSION]
    # A worker of xdist has no one to tell but its controlling process, which is given the report.
    if session.misconfigured is not None and not session.worker:
        raise pytest.UsageError(str(session.misconfigured))
    return report


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """End and judge a scenario that does not get to its call."""
    return (yield from _concluded(item, over=False))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """End a scenario with its call and judge it, before its teardown; hold it to what it states."""
    return (yield from _concluded(item, over=True))


def _concluded(item: pytest.Item, *, over: bool) -> Generator[None, object, object]:
    if "hil" not in getattr(item, "fixturenames", ()):
        return (yield)
    result: object = None
    raised: BaseException | None = None
    try:
        result = yield
    except BaseException as error:  # noqa: BLE001 -- whatever it is, it ends the scenario, and is raised again
        raised = error
    if raised is not None or over:
        from harness.plugin.judging import conclude

        told = conclude(item, raised)
        if told is not None and told is not raised:
            raise told from raised
    if raised is not None:
        raise raised
    return result


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the report of a scenario say its run state; quarantine a card whose teardown failed."""
    from harness.plugin.secrets import mask_report

    report = yield
    if call.excinfo is not None:
        from harness.plugin.judging import shown

        shown(item, call, report)
    mask_report(report)
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Show run states as what they are, not as skips and failures."""
    if report.when == "teardown":
        return None
    letters = {"NOT_APPLICABLE": "n", "BLOCKED": "B", "INFRA": "I", "REFUSED": "R"}
    # The report of a file that cannot be collected has no properties.
    properties = getattr(report, "user_properties", ())
    state = next((str(value) for name, value in properties if name == "run_state"), "")
    if state in letters:
        return state.lower().replace("_", " "), letters[state], state
    if state == "BUG":  # its traceback is shown with those of other failures
        return "failed" if report.when == "call" else "error", "!", "BUG"
    return None


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Print what diverged, on which device, who claimed what, what is true, how it was read."""
    from harness.plugin.results import print_summary

    print_summary(terminalreporter, config)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(
    session: pytest.Session, exitstatus: int | pytest.ExitCode
) -> Generator[None, None, None]:
    """Close the lab and the history, then judge the whole run and write its results.

    What is still to be undone is undone first (the fixtures of a scenario that was interrupted), and an
    error of that keeps the run from being judged no more than Ctrl-C does.
    """
    from harness.plugin.results import finish_run

    with uninterrupted("undo what the scenarios did, and judge the run"):
        try:
            if exitstatus == pytest.ExitCode.INTERRUPTED:
                session.config.stash[SESSION].workers.end()
            yield
        finally:
            finish_run(session, interrupted=exitstatus == pytest.ExitCode.INTERRUPTED)
