"""Every step of scenario files: importing this fills them; and those that are more than one method's call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

# Imported for the steps that their classes' methods are.
from harness.plugin import cloud_steps, clouds, existing_images, operations, pushing, systems  # noqa: F401
from harness.plugin.scenario import step
from harness.registry.images import ImageRecipe, sized_layers
from harness.scenarios.steps import is_step

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.faults.injector import Injector
    from harness.plugin.downloading import Download
    from harness.plugin.operations import Flash
    from harness.plugin.pushing import Push
    from harness.plugin.scenario import Scenario
    from harness.registry.clients.sysinv_download import Form
    from harness.registry.push_driver import Transfer
    from harness.scenarios.conductor import Conductor

#: Bytes of each of the two layers of an image that is downloaded.
_LAYER = 1 << 16

# -- cards --------------------------------------------------------------------------------------------


@is_step("fault", of="faults", action="flash-action", at="flash-point")
def fault(faults: Injector, action: str, at: str) -> None:
    """Arm a disturbance at a point of the next flash or reset; at `start` it strikes at once."""
    faults.arm(at, action)


@is_step("end-faults", of="faults")
def end_faults(faults: Injector) -> None:
    """Undo the disturbances that have struck, so that the scenario goes on undisturbed."""
    faults.undo()


@is_step("power-cycle", of="faults")
def power_cycle(faults: Injector) -> None:
    """Switch the card's host off and on, which resets the card; the lab must offer `power`."""
    faults.cycle_power()


@is_step("cancel", of="card")
def cancel(card: CardDriver) -> None:
    """Ask the card's driver to cancel an update, outside of one that the scenario makes."""
    card.cancel_update()


@is_step("read-card", of="card")
def read_card(card: CardDriver) -> None:
    """Read the card, and record what is true of it."""
    card.observe()


@is_step("report", of="card")
def report(card: CardDriver) -> None:
    """Ask fpgainfo what it says of the card."""
    card.report()


@is_step("runs", of="flash", image="image")
def runs(flash: Flash, image: str) -> None:
    """Hold what the card runs now to an image: its bitstream id."""
    wanted, found = flash.shelf[image].facts.bitstream_id, flash.card.truth().bitstream_id
    assert found == wanted, f"{flash.card.name} runs {found}, and {image} is {wanted}"


# -- registries ---------------------------------------------------------------------------------------


@is_step("restart", of="push")
def restart(push: Push) -> None:
    """Restart the registry between pushes."""
    push.disturb("restart")


@is_step("download", of="download", app="text", images="texts", tag="text", form="form", release="text",
         hold="texts", meanwhile="steps")  # fmt: skip
def download(
    download: Download,
    app: str,
    images: Iterable[str],
    *,
    tag: str = "v1",
    form: Form = "historical",
    release: str = "",
    hold: Iterable[str] = (),
    meanwhile: Callable[[], object] | None = None,
) -> dict[str, Transfer]:
    """Download an application's images as the control plane does; those in `hold` wait for `meanwhile`."""
    seed = f"{download.push.repository} {release}"
    recipes = {each: ImageRecipe(sized_layers(2, _LAYER, seed=f"{seed} {each}")) for each in images}
    told = (meanwhile.__name__, lambda: str(meanwhile())) if meanwhile is not None else None
    return download(app, recipes, tag=tag, form=form, hold=tuple(hold), meanwhile=told)


@is_step("application", of="conductor", name="text", state="application-state")
def application(conductor: Conductor, name: str, state: str) -> None:
    """Say in which state the control plane has an application."""
    conductor.applications[name] = state


@is_step("defer-certificates", of="conductor")
def defer_certificates(conductor: Conductor) -> None:
    """Let the conductor defer certificates while applications are brought in, as since 2023-03."""
    conductor.defers = True


@is_step("install-certificate", of="conductor")
def install_certificate(conductor: Conductor) -> str:
    """Have the registry's certificate installed: new keys, the registry restarts, then the token service."""
    return conductor.install_certificate()


@is_step("audit", of="conductor")
def audit(conductor: Conductor) -> str:
    """Let the conductor do what it has deferred."""
    return conductor.audit()


@is_step("restart-conductor", of="conductor")
def restart_conductor(conductor: Conductor) -> None:
    """Restart the conductor, which forgets what it keeps in memory alone."""
    conductor.restart()


# -- what came of it ----------------------------------------------------------------------------------


@is_step("check", of="hil_scenario", result="result", only="texts", verdicts="verdicts", truth="truth",
         says="labels")  # fmt: skip
def check(
    scenario: Scenario,
    result: Transfer | Mapping[str, Transfer],
    *,
    only: Iterable[str] = (),
    verdicts: Mapping[str, str] | None = None,
    truth: str = "",
    says: Mapping[str, str] | None = None,
) -> None:
    """Hold single pushes to verdicts, to what is true of them, and to words that a reporter said."""
    by_name = result if isinstance(result, Mapping) else {"": result}
    if unknown := set(only) - by_name.keys():
        raise AssertionError(f"{', '.join(sorted(unknown))} is none of {', '.join(by_name)}")
    with step(scenario.session, scenario.name.rpartition("::")[2], "check"):
        wrong = [
            f"{name or each.reference}: {why}"
            for name, each in by_name.items()
            if not only or name in only
            for why in _differences(scenario, each, verdicts or {}, truth, says or {})
        ]
    assert not wrong, "; ".join(wrong)


def _differences(
    scenario: Scenario, transfer: Transfer, verdicts: Mapping[str, str], truth: str, says: Mapping[str, str]
) -> Iterable[str]:
    found = {v.reporter: v.kind.value for v in scenario.judge().judged if v.intent == transfer.intent}
    for reporter, kind in verdicts.items():
        if found.get(reporter) != kind:
            yield f"{reporter} is {found.get(reporter, 'silent')}, stated {kind}"
    if truth and transfer.truth.state.value != truth:
        yield f"it is {transfer.truth.state.value}, stated {truth}"
    said = {r.reporter: r.evidence.text for r in _claims(scenario) if r.intent == transfer.intent}
    for reporter, words in says.items():
        if words not in said.get(reporter, ""):
            yield f"{reporter} did not say {words!r}"


def _claims(scenario: Scenario) -> Iterable[Any]:
    return (record for record in scenario.session.history.records if record.kind == "claim")
