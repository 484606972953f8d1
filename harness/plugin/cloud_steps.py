"""The steps of scenario files about a distributed cloud; what a system does, its controller does there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.scenarios.steps import is_step

if TYPE_CHECKING:
    from harness.plugin.clouds import Cloud


@is_step("subcloud", of="cloud", name="text", do="steps")
def subcloud(cloud: Cloud, name: str, do: Callable[..., Any]) -> None:
    """Take steps of a system on a subcloud, where they would else be the system controller's."""
    from harness.inventory.entries import unknown_name

    if name not in cloud.subclouds:
        raise unknown_name("subcloud", name, list(cloud.subclouds), cloud.bench.name)
    do(system=cloud.subclouds[name])


@is_step("card-of-cloud", of="cloud", card="text", root="root", boots_at="text")
def card_of_cloud(cloud: Cloud, card: str, *, root: str | None = None, boots_at: str | None = None) -> None:
    """Have a card of a subcloud in a state, and at an address from each boot to the reset that follows."""
    cloud.given(card, boots_at=boots_at, **({} if root is None else {"root": root}))


@is_step(
    "create-strategy",
    of="cloud",
    subcloud_apply_type="apply-type",
    max_parallel="count",
    stop_on_failure="flag",
    group="text",
    cloud_name="text",
)
def create_strategy(
    cloud: Cloud,
    subcloud_apply_type: str | None = None,
    *,
    max_parallel: int | None = None,
    stop_on_failure: bool = False,
    group: str | None = None,
    cloud_name: str | None = None,
) -> None:
    """Create the firmware strategy: serial or parallel."""
    cloud.create_strategy(
        subcloud_apply_type=subcloud_apply_type,
        max_parallel=max_parallel,
        stop_on_failure=stop_on_failure,
        group=group,
        cloud_name=cloud_name,
    )


@is_step("apply-strategy", of="cloud")
def apply_strategy(cloud: Cloud) -> None:
    """Have the strategy begin; it goes on by itself."""
    cloud.apply_strategy()


@is_step("hold-strategy", of="cloud", card="text", at="flash-point", meanwhile="steps")
def hold_strategy(cloud: Cloud, card: str, at: str, meanwhile: Callable[..., Any]) -> None:
    """Have the strategy begin, and hold it where a card is in a phase of its update, for some steps."""
    with cloud.applied_until(card, at):
        meanwhile()


@is_step("apply-strategy-for", of="cloud", seconds="seconds", meanwhile="steps")
def apply_strategy_for(cloud: Cloud, seconds: float, meanwhile: Callable[..., Any]) -> None:
    """Have the strategy begin, and stop lab time so many seconds later, for some steps."""
    with cloud.applied_for(seconds):
        meanwhile()


@is_step("wait-for-strategy", of="cloud", state="strategy-state")
def wait_for_strategy(cloud: Cloud, state: str = "") -> None:
    """Wait until the strategy has a state, such as complete; without one: has ended."""
    cloud.wait_for_strategy(*([state] if state else []))


@is_step("abort-strategy", of="cloud")
def abort_strategy(cloud: Cloud) -> None:
    """Ask that the strategy begins with no more subclouds."""
    cloud.abort_strategy()


@is_step("delete-strategy", of="cloud")
def delete_strategy(cloud: Cloud) -> None:
    """Delete the strategy, and wait until it is gone."""
    cloud.delete_strategy()


@is_step(
    "orchestrate",
    of="cloud",
    state="strategy-state",
    subcloud_apply_type="apply-type",
    max_parallel="count",
    stop_on_failure="flag",
    group="text",
    cloud_name="text",
)
def orchestrate(
    cloud: Cloud,
    state: str = "",
    *,
    subcloud_apply_type: str | None = None,
    max_parallel: int | None = None,
    stop_on_failure: bool = False,
    group: str | None = None,
    cloud_name: str | None = None,
) -> None:
    """Create a strategy, apply it, wait until it has ended, and hold it to the state that it must end in."""
    found = cloud.orchestrate(
        subcloud_apply_type=subcloud_apply_type,
        max_parallel=max_parallel,
        stop_on_failure=stop_on_failure,
        group=group,
        cloud_name=cloud_name,
    ).state
    assert not state or found == state, f"the strategy is {found}, and it must be {state}"


@is_step("restart-vim", of="cloud", subcloud="text")
def restart_vim(cloud: Cloud, subcloud: str) -> None:
    """Restart the VIM of a subcloud alone; the strategy that it carries out goes on."""
    from harness.inventory.entries import unknown_name

    if subcloud not in cloud.subclouds:
        raise unknown_name("subcloud", subcloud, list(cloud.subclouds), cloud.bench.name)
    cloud.restart_vim(subcloud)


@is_step("audit-cloud", of="cloud")
def audit_cloud(cloud: Cloud) -> None:
    """Let the audit pass that a change or the end of a strategy has forced, and look."""
    cloud.audit()


@is_step("disturb-cloud", of="cloud", name="text", value="value", subcloud="text")
def disturb_cloud(cloud: Cloud, name: str, value: Any = None, *, subcloud: str | None = None) -> None:
    """Make something go wrong on the system controller or a subcloud, or right again."""
    cloud.disturb(name, value, subcloud=subcloud)
