"""Drafts a scenario from what was read: about what most of it is, or about what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, get_args

from harness.errors import ConfigurationError
from harness.scenarios.field_logs.acts import acts_of
from harness.scenarios.field_logs.contradictions import contradictions
from harness.scenarios.field_logs.draft import Draft, draft_text, safe
from harness.scenarios.field_logs.draft_cards import draft_cards
from harness.scenarios.field_logs.draft_pushes import draft_pushes
from harness.scenarios.field_logs.draft_systems import SystemDrafter
from harness.scenarios.field_logs.events import CENTRAL, Command, Happened, Told
from harness.scenarios.field_logs.reading import FieldLog
from harness.scenarios.field_logs.stand_ins import Images, cloud_offered, stand_ins, system_offered

if TYPE_CHECKING:
    from harness.images.recipes import Recipe
    from harness.inventory.model import Inventory

About = Literal["cloud", "system", "pushes", "cards"]
ABOUT: Final[tuple[About, ...]] = get_args(About)


def draft_scenario(
    log: FieldLog,
    *,
    about: About | None = None,
    inventory: Inventory | None = None,
    recipes: Mapping[str, Recipe] | None = None,
) -> str:
    """Return the text of a scenario file that `hil scenario check` passes.

    :param about: what it is to be about; None: what the files are about most.
    :param inventory: of the lab that it is for; None: the emulated one that comes with the harness.
    :param recipes: what stands for images of the field; None: those that come with the harness.
    :raises ConfigurationError: nothing that a scenario could be made of was found.
    """
    weights = _weights(log)
    chosen = about if about is not None else _most(weights)
    if not weights[chosen]:
        raise _nothing(log, about)
    draft = Draft(_about(log), f"drafted from {', '.join(log.files)}")
    images = Images(stand_ins(recipes))
    drafters: dict[About, Callable[[], None]] = {
        "cloud": lambda: SystemDrafter(log, images, cloud_offered(inventory, _systems(log)), draft).run(),
        "system": lambda: SystemDrafter(log, images, system_offered(inventory), draft).run(),
        "pushes": lambda: draft_pushes(log, draft),
        "cards": lambda: draft_cards(log, images, draft),
    }
    drafters[chosen]()
    if not draft.steps:
        raise _nothing(log, about)
    for other, weight in weights.items():
        if other != chosen and weight and {other, chosen} != {"cloud", "system"}:
            draft.open.append(f"what the files have about {other} ({weight} pieces); see --about {other}")
    return draft_text(draft, log.files, log.notes)


def _nothing(log: FieldLog, about: About | None) -> ConfigurationError:
    """Return the error that there is nothing to draft a scenario of."""
    files = ", ".join(log.files)
    return ConfigurationError(
        f"No {about} to draft a scenario of: {files}."
        if about
        else f"Nothing to draft a scenario of was found in {files}.",
        hint="`hil explain` shows what is read of them; it goes by command lines, tables and logs.",
    )


def _most(weights: Mapping[About, int]) -> About:
    most: About = ABOUT[0]
    for each in ABOUT:
        most = each if weights[each] > weights[most] else most
    return most


def _about(log: FieldLog) -> str:
    """Return in a few sentences what the files come to: which claims contradict each other."""
    of: dict[tuple[str, str], list[str]] = {}
    for each in contradictions(log):
        of.setdefault((each.reporter, each.checker), []).append(each.why)
    told = [why[0] + (f" ({len(why) - 1} more like it)" if len(why) > 1 else "") for why in of.values()]
    return safe("; ".join(told) or "What a report of the field tells of, as far as it could be recovered")


def _systems(log: FieldLog) -> list[str]:
    names = [act.system for act in acts_of(log)] + [told.system for told in log.of(Told)]
    return [name for name in dict.fromkeys(names) if name and name != CENTRAL]


def _weights(log: FieldLog) -> dict[About, int]:
    """Return how many pieces of the log speak of what; the first of equals is the one that is drafted."""
    weights: dict[About, int] = dict.fromkeys(ABOUT, 0)
    for event in log.events:
        if isinstance(event, Command):
            weights["cards"] += event.words[0] in ("fpgasupdate", "rsu")
            weights["pushes"] += event.words[0] in ("docker", "skopeo")
        elif isinstance(event, Happened):
            weights["pushes"] += event.what in ("download-started", "push-over")
            weights["cards"] += event.what == "unended"
        elif isinstance(event, Told):
            kind, statement = event.claim.subject.kind, event.claim.statement
            weights["pushes"] += kind == "registry-image"
            weights["cards"] += event.claim.reporter in ("fpgasupdate", "rsu")
            weights["system"] += "bitstream_type" in statement
    changes = [act for act in acts_of(log) if act.kind not in ("flash", "reset", "push", "list")]
    weights["system"] += len(changes)
    of_cloud = any(act.kind.endswith("strategy") for act in changes) or any(
        told.system == CENTRAL for told in log.of(Told)
    )
    if of_cloud and weights["system"]:
        weights["cloud"] = weights["system"] + 1
    return weights
