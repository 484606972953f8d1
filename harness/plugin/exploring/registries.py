"""Explores a real registry: pushes, faults, deletions, collections, restarts; beside a model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from harness.errors import BlockedError
from harness.judgement.records import Claim, Observation
from harness.plugin.exploring.played import Played, Recorded, Run
from harness.plugin.pushing import ContentShelf, Push
from harness.scenarios.exploration import Disagreement
from harness.scenarios.registry_model import (
    ALWAYS,
    ANSWERED,
    CLIENTS,
    COLLECTING,
    CONTENTS,
    OUTLIVED,
    REFUSING,
    REPOSITORIES,
    TAGS,
    WHERE_NEW,
    Act,
    RegistryModel,
)

if TYPE_CHECKING:
    from harness.inventory.registries import Registry
    from harness.lab.push_bench import PushBench
    from harness.registry.engine import Engine

SOURCE: Final = "OCI distribution specification; distribution 2.8, garbage collection and deletion"
PULLING: Final = "oci-pull"
_PLACES: Final = tuple(product(REPOSITORIES, TAGS))
_PUSHES: Final = tuple(product(CONTENTS, REPOSITORIES, TAGS))


def _disturbed(points: tuple[str, ...], actions: tuple[str, ...]) -> tuple[Act, ...]:
    return tuple(
        Act("push-disturbed", (*push, at, action)) for push in _PUSHES for at in points for action in actions
    )


#: Everything that can be done to a registry, kind by kind.
RULES: Final[tuple[tuple[Act, ...], ...]] = (
    tuple(Act("push", ("", *push)) for push in _PUSHES),
    tuple(Act("push", (client, *push)) for client in CLIENTS for push in _PUSHES),
    _disturbed((*ALWAYS, *WHERE_NEW, *ANSWERED), OUTLIVED),
    _disturbed(("before:manifest-put", *ANSWERED), OUTLIVED),
    _disturbed(("before:blob-head", "before:manifest-put"), REFUSING),
    *(_disturbed(("before:manifest-put",), COLLECTING),) * 2,
    tuple(
        Act("copy", (source, content, *place))
        for source in REPOSITORIES
        for content in CONTENTS
        for place in _PLACES
    ),
    tuple(Act("delete", place) for place in _PLACES),
    tuple(Act("pull", (PULLING, *place)) for place in _PLACES),
    tuple(Act("disturb", (name,)) for name in ("collect-garbage", "collect-garbage-restart")),
    tuple(Act("disturb", (name,)) for name in ("restart", "restart-kill", "rotate-keys")),
    (Act("look-again"),),
)


class ExploredRegistry(Played):
    """A registry of its own, as an inventory's entry has it, beside its model.

    :param entry: with the defects that it has. :raises BlockedError: it cannot be had here, or is real.
    """

    def __init__(self, entry: Registry) -> None:
        from harness.lab.defective import struck_by
        from harness.lab.registries import emulated_bench

        self.steps: list[Act] = []
        self.updates = 0
        self._open = ExitStack()
        try:
            bench: PushBench = self._open.enter_context(emulated_bench(entry))
            recorded = Recorded(f"explore {entry.name}")
            shelf = ContentShelf(recorded.name)
            self._push = Push(
                Run(None, recorded), bench, shelf, REPOSITORIES[0], _no_engine, struck_by(entry)
            )
            self._open.callback(self._push.undo_all)
            super().__init__(recorded, {"push": self._push}, SOURCE)
            self.model = RegistryModel(entry.push_client)
        except BaseException:
            self.close()
            raise

    def do(self, step: Act) -> None:
        """Take a step; what documents say nothing of is passed over."""
        plan = self.model.plan(step)
        if plan is None:
            return
        self.steps.append(step)
        self.model = plan.after
        first = len(self.recorded.records)
        self.take(plan.steps, may_fail=plan.may_fail)
        if not plan.may_fail:
            self._hold_to_a_word(first)
        self.take(self.model.look(), written=False)
        self._compare()

    def _hold_to_a_word(self, first: int) -> None:
        """Hold a client whose push must land to saying so, from the record ``first`` on."""
        for record in self.recorded.records[first:]:
            if isinstance(record, Claim) and record.statement.get("result") == "unknown":
                raise Disagreement(
                    f"{record.reporter} does not know whether {record.subject.name} was pushed "
                    f"({record.statement.get('error')}), and by the documents it must find out"
                )

    def _compare(self) -> None:
        """Hold what is under each tag to the model."""
        seen = self._seen()
        digests = {name: self._push.shelf[name].digest for name in CONTENTS}
        for (repository, tag), found in self.model.tags.items():
            values = seen[f"{repository}:{tag}"]
            due = {digests[name] if name else "" for name in found.possible}
            lost = {each["state"] for each in values["findings"]} & {"CORRUPT", "PARTIAL"}
            digest = values["digest"] if isinstance(values["digest"], str) else ""
            if digest not in due or lost:
                wanted = " or ".join(sorted(name or "nothing" for name in found.possible))
                raise Disagreement(
                    f"{repository}:{tag} is {values['state']} ({digest or 'nothing'}), and by the documents "
                    f"there is {wanted}"
                )

    def _seen(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what was read last under each tag."""
        found = {}
        for record in self.recorded.records:
            if isinstance(record, Observation):
                found[record.subject.name.partition("/")[2]] = record.values
        return found

    @property
    def last_look(self) -> list[Any]:
        """What a scenario of all this does at its end."""
        return self.model.look()

    def close(self) -> None:
        """End the registry."""
        self._open.close()


def _no_engine() -> Engine:
    raise BlockedError("No Docker engine is opened for an exploration.", hint="Its clients need none.")
