"""What keeps a scenario from this lab that the inventory alone tells: asked where nothing is started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.plugin.markers import required_by
from harness.plugin.registry_fixtures import registry_of
from harness.plugin.scenario import device_of
from harness.plugin.session import HilSession
from harness.plugin.system_fixtures import Kind, chosen, way_of_run

if TYPE_CHECKING:
    from harness.lab.system_bench import Way

_OURS = "harness.plugin."
_SYSTEMS: tuple[Kind, ...] = ("system", "cloud")


def kept_from(item: pytest.Item, hil: HilSession) -> tuple[str, str] | None:
    """Return the run state that a scenario would end with before it began, and why; None: it may begin."""
    from harness.errors import HarnessError
    from harness.judgement.model import RunState
    from harness.scenarios.prepare import NotApplicable
    from harness.scenarios.states import state_of

    if (skipped := item.get_closest_marker("skip")) is not None:
        return RunState.BLOCKED.value, f"skipped: {skipped.kwargs.get('reason', '')}"
    try:
        _asked(item, hil)
    except (NotApplicable, HarnessError) as error:
        return state_of(error)
    return None


def _asked(item: pytest.Item, hil: HilSession) -> None:
    """Raise what the fixtures of ``item`` would."""
    callspec = getattr(item, "callspec", None)
    way: Way = (callspec.params if callspec else {}).get("hil_way", way_of_run(item.config))
    for kind in _SYSTEMS:
        if _is_ours(item, kind):
            chosen(item, hil, way, kind)
    if _is_ours(item, "registry"):
        registry_of(item, hil)
    if _is_ours(item, "card") or _is_ours(item, "host"):
        _device(item, hil)


def _device(item: pytest.Item, hil: HilSession) -> None:
    from harness.lab.capabilities import require

    device = device_of(item)
    if "/" in device:
        hil.require_card(device)
    if device:
        require(hil.lab_entry.host(device.partition("/")[0]), required_by(item))


def _is_ours(item: pytest.Item, name: str) -> bool:
    """Return whether an item asks for the plugin's own fixture ``name``, and not one of its project."""
    known = getattr(item, "_fixtureinfo", None)
    definitions = known.name2fixturedefs.get(name, ()) if known is not None else ()
    return any((each.func.__module__ or "").startswith(_OURS) for each in definitions)
