"""A system controller: what it says of subclouds and strategy is recorded, what is asked is permitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from harness.controlplane.cloud_gate import CloudGate
from harness.controlplane.cloud_protocol import (
    ENDED,
    FIRMWARE,
    CloudWayIn,
    Step,
    Strategy,
    StrategyChange,
    StrategyOptions,
    Subcloud,
)
from harness.controlplane.protocol import Reading
from harness.controlplane.told import Told, shown
from harness.errors import ConfigurationError, ControlPlaneError
from harness.record.operations import Recording

#: Seconds: an hour for a step of a subcloud before dcmanager itself gives it up (section 5.5), twice.
STRATEGY_DEADLINE: Final = 2 * 3600.0


class CloudDriver(Told[CloudWayIn]):
    """dcmanager of one system controller.

    :param gate: its interlock. :param images: the controller's images, as the strategy takes them.
    The rest as for :class:`harness.controlplane.told.Told`.
    """

    def __init__(
        self,
        way: CloudWayIn,
        gate: CloudGate,
        images: Reading,
        history: Recording,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(way, history, clock=clock)
        self._gate = gate
        self._images = images

    # -- what it says ---------------------------------------------------------------------------------

    def subclouds(self) -> list[Subcloud]:
        """Return all subclouds."""
        return self._claimed(self._way.subclouds())

    def subcloud(self, name: str) -> Subcloud:
        """Return one subcloud, with what there is of each endpoint."""
        return self._claimed([self._way.subcloud(name)])[0]

    def strategy(self) -> Strategy | None:
        """Return the firmware strategy; None where there is none."""
        found = self._way.strategy()
        return None if found is None else self._claimed([found])[0]

    def progress(self) -> list[Strategy | Step]:
        """Return the strategy and its steps; nothing where there is no strategy."""
        return self._claimed(self._way.progress())

    def steps(self) -> list[Step]:
        """Return the steps of the strategy; none where there is no strategy."""
        return self._claimed(self._way.steps())

    def step(self, cloud: str) -> Step:
        """Return the step of one subcloud."""
        return self._claimed([self._way.step(cloud)])[0]

    # -- what is asked of it --------------------------------------------------------------------------

    def create_strategy(self, options: StrategyOptions | None = None) -> Strategy:
        """Create the firmware strategy; its steps are there when this returns.

        :raises ControlPlaneError: none can be made, such as where no subcloud is out of sync.
        :raises ConfigurationError: the options exclude each other.
        """
        options = options or StrategyOptions()
        if options.group and (options.cloud_name or options.subcloud_apply_type or options.max_parallel):
            raise ConfigurationError(
                "A strategy for a group has the subclouds, the apply type and the parallelism of the group.",
                hint="Leave out cloud_name, subcloud_apply_type and max_parallel.",
            )
        return self._change(StrategyChange("strategy-create", options))

    def apply_strategy(self) -> Strategy:
        """Have the strategy begin; the answer may show it as it was before.

        :raises RefusedError: it may bring to a card what cannot be undone, and that is not permitted there.
        """
        return self._change(StrategyChange("strategy-apply"))

    def abort_strategy(self) -> Strategy:
        """Ask that no more subclouds are begun with; the answer may show the strategy as it was before."""
        return self._change(StrategyChange("strategy-abort"))

    def delete_strategy(self) -> Strategy:
        """Have the strategy deleted; the answer shows it as it was, and it is gone a while later."""
        return self._change(StrategyChange("strategy-delete"))

    # -- waiting --------------------------------------------------------------------------------------

    def wait_for_strategy(self, *states: str, deadline: float = STRATEGY_DEADLINE) -> Strategy:
        """Wait until the strategy has one of ``states`` (without any: has ended somehow); return it.

        What is shown right after a change may be of before, so that ``initial`` after an apply is waited
        through; one of the states on the way can have passed before it is seen.

        :param deadline: seconds. :raises DeadlineError: it does not, in time; with the steps as last seen.
        :raises ControlPlaneError: it has ended otherwise, or there is none.
        """
        wanted = states or ENDED

        def over(seen: Sequence[Strategy | Step]) -> bool:
            return not seen or seen[0].state in (*wanted, *ENDED)

        what = f"the strategy is {' or '.join(wanted)}"
        seen = self.wait_until(what, lambda way: way.progress(), over, deadline=deadline)
        strategy = seen[0] if seen else None
        if not isinstance(strategy, Strategy):
            raise ControlPlaneError(
                f"{self.name} has no strategy of type {FIRMWARE!r} that could become {' or '.join(wanted)}.",
                hint="It was deleted meanwhile, or never created.",
            )
        if strategy.state not in wanted:
            raise ControlPlaneError(
                f"The strategy of {self.name} is not {' or '.join(wanted)}: {'; '.join(map(shown, seen))}.",
                hint="See the details of its steps.",
            )
        return strategy

    def wait_until_deleted(self, *, deadline: float = 60.0) -> None:
        """Wait until there is no strategy. :raises DeadlineError: there still is one."""
        self.wait_until(
            "the strategy is gone",
            lambda way: [found] if (found := way.strategy()) is not None else [],
            lambda seen: not seen,
            deadline=deadline,
        )

    def wait_for_subclouds(
        self, what: str, done: Callable[[Subcloud], bool], *, deadline: float, names: Sequence[str] = ()
    ) -> list[Subcloud]:
        """Wait until ``done`` of every subcloud, or of those named; return them.

        :raises DeadlineError: not in time; the message has them as last seen.
        """

        def look(way: CloudWayIn) -> list[Subcloud]:
            return [one for one in way.subclouds() if not names or one.name in names]

        def over(seen: Sequence[Subcloud]) -> bool:
            return {one.name for one in seen} >= set(names) and all(map(done, seen))

        return self.wait_until(what, look, over, deadline=deadline)

    # -- recording ------------------------------------------------------------------------------------

    def _change(self, change: StrategyChange) -> Strategy:
        with self._recorded(change.act, f"strategy/{FIRMWARE}", change.options.given()) as intent:
            permits = self._gate.strategy_permits(change, self._images)
            return self._claimed([self._way.carry_out(change, permits)], intent)[0]
