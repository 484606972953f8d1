"""The way into dcmanager by its own command over SSH (fact sheet of StarlingX, section 5.4).

A list without entries is a row of ``<none>``; a command that ends well and shows no table at all, or an empty
one, has said nothing, and is no empty list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.controlplane.active import Controllers
from harness.controlplane.changes import PermitMaker
from harness.controlplane.cloud_protocol import (
    FIRMWARE,
    Step,
    Strategy,
    StrategyChange,
    Subcloud,
    together,
)
from harness.controlplane.command import Command
from harness.controlplane.reading import from_table
from harness.controlplane.tables import Row, only_table
from harness.errors import ControlPlaneError, NoSuchRecordError
from harness.hosts.protocol import Host
from harness.judgement.records import Evidence
from harness.judgement.values import Unknown, Value

_NONE: Final = "<none>"
_STATUS: Final = "_sync_status"
_OPTIONS: Final = {
    "subcloud_apply_type": "--subcloud-apply-type",
    "max_parallel": "--max-parallel-subclouds",
    "group": "--group",
}


class CloudCli:
    """Asks one system controller by its command `dcmanager`.

    :param name: the controller's name in the inventory. :param hosts: of which one is the active controller.
    :param deadline: seconds for one command.
    """

    reporter: Final = "dcmanager-cli"

    def __init__(self, name: str, *hosts: Host, deadline: float = 60.0) -> None:
        self.name = name
        self.evidence = Evidence("", "")
        self._dcmanager = Command(name, Controllers(name, hosts), ("dcmanager",), deadline=deadline)

    def close(self) -> None:
        """Release the connection to the controller; may be called twice."""
        self._dcmanager.close()

    # -- reading --------------------------------------------------------------------------------------

    def subclouds(self) -> list[Subcloud]:
        """Return all subclouds; a list shows nothing of their endpoints, so that each is asked for."""
        rows = self._listing("subcloud", "list")
        answers = [self.evidence]
        found = []
        for row in rows:
            found.append(_subcloud(self._properties("subcloud", "show", str(row["name"])) | row))
            answers.append(self.evidence)
        self.evidence = together(*answers)
        return found

    def subcloud(self, name: str) -> Subcloud:
        """Return one subcloud; its `sync` of all endpoints is not shown of one alone."""
        return _subcloud(self._properties("subcloud", "show", name))

    def strategy(self) -> Strategy | None:
        """Return the firmware strategy; None where there is none."""
        try:
            return from_table(Strategy, self._properties("fw-update-strategy", "show"))
        except NoSuchRecordError:
            return None

    def steps(self) -> list[Step]:
        """Return the steps of the strategy; none where there is no strategy."""
        return [from_table(Step, row) for row in self._listing("strategy-step", "list")]

    def progress(self) -> list[Strategy | Step]:
        """Return the strategy and its steps; nothing where there is no strategy."""
        strategy, said = self.strategy(), self.evidence
        if strategy is None:
            return []
        steps = self.steps()
        self.evidence = together(said, self.evidence)
        return [strategy, *steps]

    def step(self, cloud: str) -> Step:
        """Return the step of one subcloud."""
        return from_table(Step, self._properties("strategy-step", "show", cloud))

    # -- changing -------------------------------------------------------------------------------------

    def carry_out(self, change: StrategyChange, permits: PermitMaker) -> Strategy:
        """Carry out a change once, by the one command that its permit covers."""
        words = ["fw-update-strategy", change.act.removeprefix("strategy-"), *_words(change)]
        shown = self._dcmanager.change(words, permits)
        self.evidence = self._dcmanager.evidence
        row = only_table(shown).properties()
        if row.get("strategy type") != FIRMWARE:
            raise self._dcmanager.no_success(words, shown)
        return from_table(Strategy, row)

    # -- asking ---------------------------------------------------------------------------------------

    def _listing(self, *words: str) -> Sequence[Row]:
        rows = only_table(self._asked(*words)).rows
        if not rows:
            raise ControlPlaneError(
                f"`dcmanager {' '.join(words)}` of {self.name} ended well, and showed a table without rows.",
                hint=f"Where there is nothing to list it shows one of {_NONE}; ask again, or ask the API.",
            )
        return () if all(value == _NONE for value in rows[0].values()) else rows

    def _properties(self, *words: str) -> Row:
        return only_table(self._asked(*words)).properties()

    def _asked(self, *words: str) -> str:
        try:
            return self._dcmanager.ask(*words)
        finally:
            self.evidence = self._dcmanager.evidence


def _words(change: StrategyChange) -> list[str]:
    given = change.options.given()
    words = [f"{option}={given[name]}" for name, option in _OPTIONS.items() if name in given]
    words += ["--stop-on-failure"] if change.options.stop_on_failure else []
    return [*words, *([change.options.cloud_name] if change.options.cloud_name else [])]


def _subcloud(row: Row) -> Subcloud:
    """Return a subcloud; what is shown of one alone has a row for each endpoint."""
    endpoints = {
        name.removesuffix(_STATUS): str(value)
        for name, value in row.items()
        if name.endswith(_STATUS) and not isinstance(value, Unknown)
    }
    more: dict[str, Value[object]] = {"endpoint_sync": endpoints} if endpoints else {}
    return from_table(Subcloud, {name.replace(" ", "_"): value for name, value in row.items()}, **more)
