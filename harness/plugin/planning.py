"""`--hil-plan-only`: says what the collected scenarios would do to cards, and runs none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from harness.plugin.lacking import kept_from
from harness.plugin.markers import given_of
from harness.plugin.scenario import device_of
from harness.plugin.scenario_files import variant_of
from harness.plugin.session import SESSION, HilSession

if TYPE_CHECKING:
    from harness.images.facts import ImageFacts
    from harness.scenarios.foreseen import Foreseen
    from harness.scenarios.plan import Plan, Target

_OURS = ("harness.", "_pytest.", "pytest", "xdist.", "allure_pytest.", "_hypothesis_pytestplugin")


class Planning:
    """A pytest plugin that takes the place of running. :param tell: writes a line."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Tell the plan instead of running."""
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors while scenarios were collected")
        session.config.hook.pytest_hil_planned(plan=plan_of(session))
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_hil_planned(self, plan: Plan) -> bool:
        """Tell it to people."""
        from harness.scenarios.plan import told

        for line in told(plan):
            self._tell(line)
        return True


def begin(config: pytest.Config) -> None:
    """Plan in this session. :raises UsageError: it is to run in several processes, which collect apart."""
    if getattr(config.option, "numprocesses", None) or getattr(config.option, "tx", None):
        raise pytest.UsageError("--hil-plan-only runs nothing, in one process: leave -n out.")
    terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
    config.pluginmanager.register(Planning(terminal.write_line if terminal else print), "hil-planning")


def plan_of(session: pytest.Session) -> Plan:
    """Return what the collected items would do."""
    from harness.plugin.campaigns import CampaignRun
    from harness.scenarios.plan import Plan, PlannedScenario, planned

    hil = session.config.stash[SESSION]
    scenarios = []
    for item in session.items:
        if "hil" not in getattr(item, "fixturenames", ()):
            continue
        given, target = given_of(item), _target(item, hil)
        if (kept := kept_from(item, hil)) is not None:
            of_it = (target.device, target.real, given)
            scenarios.append(PlannedScenario(item.nodeid, *of_it, state=kept[0], reason=kept[1]))
            continue
        scenarios.append(planned(item.nodeid, target, given, _foreseen(item), _facts(hil)))
    run = next((p for p in session.config.pluginmanager.get_plugins() if isinstance(p, CampaignRun)), None)
    facts: Mapping[str, Any] = run.facts() if run else {}
    apart = any("hil_round" in getattr(getattr(i, "callspec", None), "params", ()) for i in session.items)
    rounds = "" if run is None or apart else str(facts.get("rounds", "as many rounds as its time allows"))
    return Plan(hil.lab_entry.name, tuple(scenarios), str(facts.get("campaign", "")), rounds)


def _facts(hil: HilSession) -> Callable[[str], ImageFacts]:
    return lambda name: hil.images[name].facts


def _target(item: pytest.Item, hil: HilSession) -> Target:
    from harness.scenarios.plan import Target

    device = device_of(item)
    lab, allowed = hil.lab_entry, hil.allowed_on_real
    name = device.partition("/")[0]
    if name not in lab.hosts:
        real = any(host.real for host in lab.hosts.values())
        return Target(device, None, real, allowed)
    host = lab.hosts[name]
    card = host.cards.get(device.partition("/")[2])
    return Target(device, card, host.real, allowed)


def _foreseen(item: pytest.Item) -> Foreseen:
    from harness.scenarios.foreseen import Foreseen, foreseen_of_function, foreseen_of_steps

    variant = variant_of(item)
    if variant is not None:
        return foreseen_of_steps(variant.calls)
    function = getattr(item, "function", None)
    if function is None:
        return Foreseen((), ("it is no function of Python and no scenario file",))
    callspec = getattr(item, "callspec", None)
    values = dict(callspec.params) if callspec else {}
    return foreseen_of_function(function, values, _makers(item))


def _makers(item: pytest.Item) -> dict[str, Callable[..., Any] | None]:
    """Return the fixtures of an item, with what makes those that are the project's own."""
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs if info is not None else {}
    makers: dict[str, Callable[..., Any] | None] = {}
    for name, found in definitions.items():
        made = found[-1].func
        ours = (getattr(made, "__module__", "") or "").startswith(_OURS)
        makers[name] = None if ours else made
    return makers
