"""The pytest plugin: options, markers, one run per session, and judgement before teardown.

Idle (no test asks for a lab) it opens nothing and imports nothing heavy; see ``plugin/session.py``.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from harness.plugin import hookspecs
from harness.plugin.session import RUN_DIR_KEY, SESSION, HilSession

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

_MARKERS = (
    "hil_given(root=, cancelled=, flash_count=): the state of the card that the scenario starts from",
    "hil_expects(outcome=, verdicts={reporter: verdict}): what the scenario states; default: as intended, "
    "every report a MATCH",
    "hil_requires(*capabilities): what the lab must offer for the card's host, such as 'power'",
)


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
        "--hil-irreversible",
        metavar="NAMES",
        help="what may be done to REAL cards that cannot be undone, beside the inventory's own permit: "
        "root-key,key-cancellation",
    )
    group.addoption(
        "--hil-reports", default="reports", metavar="DIR", help="where runs are kept (default: reports)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register markers, fixtures and the session's state."""
    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    config.stash[SESSION] = HilSession(config)
    from harness.plugin import fixtures

    config.pluginmanager.register(fixtures, "hil-fixtures")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give each worker of xdist the run folder of the controlling process."""
    node.workerinput[RUN_DIR_KEY] = str(node.config.stash[SESSION].run_dir)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a card (or a host) once per card (or host) of the lab."""
    names = metafunc.fixturenames
    if "card" not in names and "host" not in names:
        return
    session = metafunc.config.stash[SESSION]
    if "card" in names:
        cards = session.card_names()
        metafunc.parametrize("card", cards, ids=cards, indirect=True)
    elif "host" in names:
        hosts = list(session.lab_entry.hosts)
        metafunc.parametrize("host", hosts, ids=hosts, indirect=True)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge a scenario when its call ends, before its teardown, and hold it to what it states."""
    report = yield
    from harness.plugin.judging import judge_phase

    return judge_phase(item, call, report)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Show run states as what they are, not as skips and failures."""
    state = next((str(value) for name, value in report.user_properties if name == "run_state"), "")
    if not state or report.when == "teardown":
        return None
    letters = {"NOT_APPLICABLE": "n", "BLOCKED": "B", "INFRA": "I", "REFUSED": "R", "BUG": "!"}
    if state in letters:
        return state.lower().replace("_", " "), letters[state], state
    return None


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Print what diverged, on which device, who claimed what, what is true, how it was read."""
    from harness.plugin.results import print_summary

    print_summary(terminalreporter, config)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
    """Close the lab and the history, then judge the whole run and write its results."""
    from harness.plugin.results import finish_run

    finish_run(session.config, interrupted=exitstatus == pytest.ExitCode.INTERRUPTED)
