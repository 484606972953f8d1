"""How a campaign is shared out among workers of xdist: each has one scenario in hand, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessBug
from harness.plugin.rounds import IDLE, place_of, turn_at
from harness.scenarios.campaign_course import Cell, Course, Turn

if TYPE_CHECKING:
    import pytest
    from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

    from harness.plugin.campaigns import CampaignRun


class ByCampaign:
    """A scheduling of xdist: the controlling process says what is next, by what has arrived until then.

    A device stays with the worker that had it first, and a real host with it. A worker that dies gives its
    devices free; the scenario in which it died is not tried again.

    :param group: what a scenario's device belongs to: the device itself, or its real host.
    """

    def __init__(self, config: pytest.Config, run: CampaignRun, group: Any) -> None:
        self._expected = int(config.getoption("numprocesses") or 0)
        self._run = run
        self._group = group
        self._ids: list[str] = []
        self._course: Course | None = None
        #: Worker -> the turn that it has in hand.
        self._hand: dict[WorkerController, Turn | None] = {}
        self._ready: set[WorkerController] = set()
        self._owners: dict[str, WorkerController] = {}

    @property
    def nodes(self) -> list[WorkerController]:
        """The workers."""
        return list(self._hand)

    @property
    def collection_is_completed(self) -> bool:
        """Whether all workers that there are to be have collected."""
        return self._course is not None and len(self._ready) >= min(self._expected, len(self._hand))

    @property
    def has_pending(self) -> bool:
        """Whether a worker has something in hand."""
        return any(turn is not None for turn in self._hand.values())

    @property
    def tests_finished(self) -> bool:
        """Whether the campaign is over, and what was in hand has come to its end."""
        return self._course is not None and self._course.ended and not self.has_pending

    def add_node(self, node: WorkerController) -> None:
        """Take a worker that is going to collect."""
        self._hand[node] = None

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take what a worker has collected; the first one says what there is."""
        if self._course is None:
            self._ids = list(collection)
            self._course = self._run.began_workers(self._ids, self._cell)
        elif list(collection) != self._ids:
            raise HarnessBug(
                f"The worker {node.gateway.id} has collected other scenarios than the first one."
            )
        self._ready.add(node)

    def _cell(self, nodeid: str) -> Cell:
        return Cell(nodeid.partition("[")[0], self._group(nodeid))

    def schedule(self) -> None:
        """Give each worker that has nothing in hand what is next for it."""
        for node, turn in list(self._hand.items()):
            if turn is None and node in self._ready and not node.shutting_down:
                self._give(node)

    def _give(self, node: WorkerController) -> None:
        assert self._course is not None
        turn = self._course.next(lambda cell: self._owners.get(cell.device, node) is node)
        if turn is None:
            return
        self._hand[node] = turn
        nodeid = self._ids[turn.at]
        if group := self._group(nodeid):
            self._owners[group] = node
        # It begins one when it knows what follows.
        node.send_runtest_some([place_of(turn, len(self._ids)), IDLE])

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Take back what a worker had in hand, and go on."""
        if item_index == IDLE:
            return
        if self._hand.get(node) == turn_at(item_index, len(self._ids)):
            self._hand[node] = None
        self.schedule()

    def mark_test_pending(self, item: str) -> None:
        """Do nothing: what a worker died of is not tried again."""

    def remove_pending_tests_from_node(self, node: WorkerController, indices: Sequence[int]) -> None:
        """Do nothing: nothing is taken away from a worker."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a worker that is gone; return the scenario in which it died."""
        turn = self._hand.pop(node)
        self._ready.discard(node)
        self._owners = {group: owner for group, owner in self._owners.items() if owner is not node}
        if self._course is not None:
            self.schedule()
        return None if turn is None else self._run.name_of(self._ids[turn.at], turn)
