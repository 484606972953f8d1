"""What truth a claim needs: which checker judges it, what is read for that and how, its name if false.

The question is the checker's own, the first line of its module; reporters and verdicts are as it has them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from harness.cards.generations import attributes_of
from harness.judgement.checkers import (
    across,
    applied,
    contradiction,
    device_fields,
    fields,
    flash,
    floating_labels,
    host_update,
    image_state,
    orchestration,
    push,
    reset,
    stored_images,
    sync_alarm,
    sync_status,
    update_alarm,
    vim_strategy,
)
from harness.judgement.model import VerdictKind
from harness.judgement.records import Claim
from harness.scenarios.field_logs.events import CENTRAL

_CARD: Final = "hil card show HOST/CARD"
_STATUS: Final = "hil status"
#: The newest driver generation, whose paths stand for all.
_GENERATION: Final = "D"
#: What shows whether an image landed (docs/verdicts.md, "A flash").
_LANDING: Final = ("flash_count", "bitstream_id", "sr_root", "sr_cancelled")
_DONE: Final = {
    "done": VerdictKind.FALSE_SUCCESS,
    "failed": VerdictKind.FALSE_FAILURE,
    "interrupted": VerdictKind.FALSE_FAILURE,
    "not-sent": VerdictKind.FALSE_FAILURE,
}
_STATES: Final = {
    "completed": VerdictKind.FALSE_SUCCESS,
    "failed": VerdictKind.FALSE_FAILURE,
    "in-progress": VerdictKind.STALE,
    "pending": VerdictKind.MISREPORT,
}
_SYNC: Final = {
    "in-sync": VerdictKind.FALSE_SUCCESS,
    "out-of-sync": VerdictKind.FALSE_FAILURE,
    "unknown": VerdictKind.STALE,
}
_ENDED: Final = {"complete": VerdictKind.FALSE_SUCCESS, "failed": VerdictKind.FALSE_FAILURE}
_CLIENTS: Final = ("log:sysinv", "log:dockerd", "log:registry", "docker-stream")


@dataclass(frozen=True, slots=True)
class Need:
    """What a claim needs to be judged.

    ``checker``: the module of :mod:`harness.judgement.checkers`; ``reporter``: who its verdict is on;
    ``observation``: what is to be read; ``read_by``: commands of `hil`, paths and requests; ``false_as``: how
    the claim is called where what is read does not bear it out.
    """

    checker: str
    question: str
    reporter: str
    observation: str
    read_by: tuple[str, ...]
    false_as: VerdictKind


@dataclass(frozen=True, slots=True)
class _Rule:
    """Which claims a checker judges. ``false_as``: how it calls one that is false."""

    module: ModuleType
    reporter: str
    observation: str
    read_by: Callable[[Claim], tuple[str, ...]]
    false_as: Callable[[Claim], VerdictKind | None]


def needs_of(claim: Claim) -> list[Need]:
    """Return what a claim needs, by every checker that judges claims of its kind; nothing where none does."""
    return [
        Need(
            rule.module.__name__.rpartition(".")[2],
            (inspect.getdoc(rule.module) or "").partition("\n")[0],
            rule.reporter or claim.reporter,
            rule.observation,
            rule.read_by(claim),
            verdict,
        )
        for rule in RULES
        if (verdict := rule.false_as(claim)) is not None
    ]


def _paths(*names: str) -> tuple[str, ...]:
    """Return the files in which drivers show fields of a card, below its PCI device."""
    found = (each.pattern for name in names for each in attributes_of(name, _GENERATION))
    return tuple(f"sysfs: {pattern}" for pattern in dict.fromkeys(found))


def _of_card(*names: str) -> Callable[[Claim], tuple[str, ...]]:
    return lambda claim: (_CARD, *_paths(*names))


def _of_systems(claim: Claim) -> tuple[str, ...]:
    return (_STATUS, *_paths("bitstream_id", "sr_root", "sr_cancelled"))


def _of_shown_fields(claim: Claim) -> tuple[str, ...]:
    return (_CARD, *_paths(*sorted(claim.statement)))


def _of_image(claim: Claim) -> tuple[str, ...]:
    registry, _, rest = claim.subject.name.partition("/")
    name, colon, tag = rest.rpartition(":")
    named = (name, tag) if colon and "/" not in tag else (rest or "NAME", "TAG")
    return (
        "step `check` of a scenario, after its push",
        f"GET https://{registry if rest else 'REGISTRY'}/v2/{named[0]}/manifests/{named[1]}, and each blob",
        "the files of the registry's store, hashed",
    )


def _by(key: str, table: Mapping[str, VerdictKind], *reporters: str) -> Callable[[Claim], VerdictKind | None]:
    """Return what calls a claim by the word under ``key``, of these reporters alone."""
    return lambda claim: table.get(str(claim.statement.get(key))) if claim.reporter in reporters else None


def _record(part: str, verdict: VerdictKind, *keys: str) -> Callable[[Claim], VerdictKind | None]:
    """Return what calls claims about one kind of record that have these keys."""
    return lambda claim: verdict if f"/{part}/" in claim.subject.name and _states_all(claim, *keys) else None


def _states_all(claim: Claim, *keys: str) -> bool:
    """Return whether a claim states all of these."""
    return all(key in claim.statement for key in keys)


def _status(claim: Claim) -> VerdictKind | None:
    shown = claim.statement.get("firmware_sync_status", claim.statement.get("sync"))
    return _SYNC.get(str(shown)) if "/subcloud/" in claim.subject.name else None


def _host(claim: Claim) -> VerdictKind | None:
    if not _states_all(claim, "device_image_update"):
        return None
    busy = claim.statement["device_image_update"] in ("pending", "in-progress")
    return VerdictKind.STALE if busy else VerdictKind.FALSE_SUCCESS


def _alarm(ident: str) -> Callable[[Claim], VerdictKind | None]:
    return lambda claim: VerdictKind.STALE if claim.statement.get("alarm_id") == ident else None


def _across(claim: Claim) -> VerdictKind | None:
    of_image = _states_all(claim, "bitstream_type", "applied")
    return VerdictKind.CONTRADICTION if of_image and claim.subject.name.startswith(f"{CENTRAL}/") else None


def _floats(claim: Claim) -> VerdictKind | None:
    floating = _states_all(claim, "label_key") and not claim.statement.get("hostname")
    return VerdictKind.STALE if floating else None


def _uploaded(claim: Claim) -> VerdictKind | None:
    return VerdictKind.MISREPORT if _states_all(claim, "bitstream_type", "uuid") else None


def _ended(part: str) -> Callable[[Claim], VerdictKind | None]:
    def judged(claim: Claim) -> VerdictKind | None:
        if f"/{part}/" not in claim.subject.name:
            return None
        return _ENDED.get(str(claim.statement.get("state")), VerdictKind.STALE)

    return judged


def _updated(claim: Claim) -> VerdictKind | None:
    """Of the VIM's own strategy: its checker judges the updates of hosts that it shows."""
    updates = claim.statement.get("updates")
    if "/vim-strategy/" not in claim.subject.name or not isinstance(updates, (list, tuple)) or not updates:
        return None
    results = {str(step.get("result")) for step in updates}
    if results & {"wait", "inprogress"}:
        return VerdictKind.STALE
    return VerdictKind.FALSE_SUCCESS if results == {"success"} else VerdictKind.FALSE_FAILURE


def _always(verdict: VerdictKind, reporter: str) -> Callable[[Claim], VerdictKind | None]:
    return lambda claim: verdict if claim.reporter == reporter else None


def _told_done(table: Mapping[str, VerdictKind]) -> Callable[[Claim], VerdictKind | None]:
    def judged(claim: Claim) -> VerdictKind | None:
        of_image = claim.subject.kind == "registry-image" and claim.reporter in _CLIENTS
        return table.get(str(claim.statement.get("result"))) if of_image else None

    return judged


_HOLDS: Final = "whether each card holds what is listed for it"
RULES: Final = (
    _Rule(flash, "", "the card before, after, and after the reset that follows", _of_card(*_LANDING),
          _by("result", _DONE, "fpgasupdate")),
    _Rule(reset, "", "whether the card is found again, by its identity, and what it runs",
          _of_card("identity", "bitstream_id"), _by("result", _DONE, "rsu")),
    _Rule(contradiction, "", "the card before, after, and after the reset that follows", _of_card(*_LANDING),
          _always(VerdictKind.CONTRADICTION, "kernel-log")),
    _Rule(fields, "", "the same fields, read from the driver", _of_shown_fields,
          _always(VerdictKind.MISREPORT, "fpgainfo")),
    _Rule(push, "", "whether the registry holds the whole image", _of_image, _told_done(_DONE)),
    _Rule(image_state, image_state.REPORTER, "whether the card holds the image", _of_systems,
          _by("status", _STATES, "system", "sysinv")),
    _Rule(applied, applied.REPORTER, "images, labels and states of the system in one look", _of_systems,
          _record("image", VerdictKind.CONTRADICTION, "applied")),
    _Rule(across, across.REPORTER, "the images of controller and subcloud in one look, and the card",
          _of_systems, _across),
    _Rule(stored_images, stored_images.REPORTER, "the image as it was uploaded", _of_systems, _uploaded),
    _Rule(device_fields, device_fields.REPORTER, "the same fields, read from the driver", _of_systems,
          _record("device", VerdictKind.MISREPORT, "bitstream_id")),
    _Rule(host_update, host_update.REPORTER, "states of the host's images, and its cards", _of_systems,
          _host),
    _Rule(floating_labels, floating_labels.REPORTER, "labels and images of the system in one look",
          _of_systems, _floats),
    _Rule(sync_status, sync_status.REPORTER, _HOLDS, _of_systems, _status),
    _Rule(orchestration, orchestration.STEP, _HOLDS, _of_systems, _ended("step")),
    _Rule(orchestration, orchestration.STRATEGY, _HOLDS, _of_systems, _ended("strategy")),
    _Rule(vim_strategy, vim_strategy.REPORTER, "states of the images of its hosts, and their cards",
          _of_systems, _updated),
    _Rule(update_alarm, update_alarm.REPORTER, "states of images, and hosts that are to be booted",
          _of_systems, _alarm(update_alarm.ALARM)),
    _Rule(sync_alarm, sync_alarm.REPORTER, "what dcmanager says of the subcloud", _of_systems,
          _alarm(sync_alarm.ALARM)),
)  # fmt: skip
