"""Which scenarios say that they are a proof of a requirement: collected by pytest, nothing is run."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.plugin.markers import REQUIREMENT


class _Collected:
    """A pytest plugin that keeps what the scenarios say."""

    def __init__(self) -> None:
        self.claimed: dict[str, tuple[str, ...]] = {}
        self.wrong: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the requirements of each."""
        for item in session.items:
            ids = [str(each) for marker in item.iter_markers(REQUIREMENT) for each in marker.args]
            self.claimed[item.nodeid] = tuple(dict.fromkeys(ids))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what cannot be read."""
        if report.failed:
            self.wrong.append(report.longreprtext.strip())


def claimed_by(targets: Sequence[str], inventory: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Return node id -> the requirements that a scenario says it proves, of all below ``targets``.

    :raises ConfigurationError: a file cannot be read as scenarios, or the inventory is wrong.
    """
    found = _Collected()
    arguments = [*targets, f"--rootdir={Path.cwd()}", "--collect-only", "-qq"]
    arguments += [f"--hil-inventory={inventory}"] if inventory else []
    arguments += ["-p", "no:xdist", "-p", "no:allure_pytest", "-p", "no:hypothesispytest"]
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):  # noqa: PTH123
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = pytest.main(arguments, plugins=[found])
    if found.wrong or status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise ConfigurationError("\n".join(found.wrong) or said.getvalue().strip().removeprefix("ERROR: "))
    return found.claimed
