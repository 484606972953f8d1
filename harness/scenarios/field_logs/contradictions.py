"""Which claims of a log contradict each other already: one of them is false, whatever the truth is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from types import ModuleType
from typing import Final

from harness.errors import ConfigurationError
from harness.judgement.checkers import across, applied, contradiction, orchestration, push, sync_status
from harness.judgement.labels import told as told_labels
from harness.judgement.model import VerdictKind
from harness.registry.reference import parse_reference
from harness.scenarios.field_logs.acts import Label, applied_labels, carried_labels
from harness.scenarios.field_logs.events import CENTRAL, Told
from harness.scenarios.field_logs.reading import FieldLog

#: Seconds after a download is said to have succeeded, in which a refusal of its push may still be logged.
_LATE: Final = 5.0
#: Pairs of images of one system that are compared; a system has a handful of images.
_MOST_PAIRS: Final = 1000


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Claims that cannot all be true. ``verdict``: how the checker calls what ``reporter`` says.

    ``checker``: the module that judges it. ``stated``: whether a scenario that replays this can state it.
    """

    verdict: VerdictKind
    reporter: str
    checker: str
    claims: tuple[Told, ...]
    why: str
    stated: bool = True


def _found(
    module: ModuleType,
    verdict: VerdictKind,
    reporter: str,
    claims: tuple[Told, ...],
    why: str,
    *,
    stated: bool = True,
) -> Contradiction:
    """Return a contradiction of the kind that the checker in ``module`` finds."""
    return Contradiction(verdict, reporter, module.__name__.rpartition(".")[2], claims, why, stated)


def contradictions(log: FieldLog) -> list[Contradiction]:
    """Return what contradicts what in a log, by the rules that the checkers have for it."""
    return [
        *_rivals(log),
        *_across(log),
        *_in_sync(log),
        *_out_of_sync(log),
        *_flags(log),
        *_pushes(log),
        *_tools(log),
        *_strategies(log),
    ]


def rows_of(log: FieldLog) -> dict[str, dict[str, Told]]:
    """Return, for each system, the last row of each image that is shown with its type."""
    found: dict[str, dict[str, Told]] = {}
    for told in log.of(Told):
        if "bitstream_type" in told.claim.statement:
            found.setdefault(told.system, {})[str(told.claim.statement["uuid"])] = told
    return found


def _name(told: Told) -> str:
    statement = told.claim.statement
    ident = statement.get("bitstream_id")
    return f"image {ident if ident is not None else str(statement['uuid'])[:8]}"


def rivals_of(log: FieldLog, system: str) -> list[tuple[Told, Told, list[Label]]]:
    """Return pairs of functional images that a system says are applied to the same labels, and these."""
    rows = [
        told
        for told in rows_of(log).get(system, {}).values()
        if told.claim.statement["bitstream_type"] == "functional"
        and told.claim.statement.get("bmc") is not True
    ]
    return [
        (one, other, shared)
        for one, other in islice(combinations(rows, 2), _MOST_PAIRS)
        if (shared := sorted(applied_labels(one) & applied_labels(other)))
    ]


def _rivals(log: FieldLog) -> Iterator[Contradiction]:
    for system in rows_of(log):
        for one, other, shared in rivals_of(log, system):
            why = (
                f"{_name(one)} and {_name(other)} are both applied to {told_labels(shared)}: "
                "a device can hold one functional image"
            )
            yield _found(applied, VerdictKind.CONTRADICTION, applied.REPORTER, (one, other), why)


def _across(log: FieldLog) -> Iterator[Contradiction]:
    rows, carried = rows_of(log), carried_labels(log)
    for system, theirs in rows.items():
        if system == CENTRAL:
            continue
        for uuid, row in rows.get(CENTRAL, {}).items():
            own = theirs.get(uuid)
            shared = applied_labels(row) & carried.get(system, set())
            if own is None or not shared or applied_labels(own) & shared:
                continue
            why = (
                f"{CENTRAL} applies {_name(row)} to {told_labels(sorted(shared))}, which {system} has, and "
                f"{system} says applied {own.claim.statement.get('applied')}"
            )
            yield _found(across, VerdictKind.CONTRADICTION, across.REPORTER, (row, own), why)


def _statuses(log: FieldLog, status: str) -> Iterator[tuple[str, Told]]:
    """Yield each subcloud that was last said to have that status of its firmware."""
    last: dict[str, Told] = {}
    for told in log.of(Told):
        statement = told.claim.statement
        if "firmware_sync_status" in statement or "sync" in statement:
            last[str(statement.get("name"))] = told
    for name, told in last.items():
        statement = told.claim.statement
        if statement.get("firmware_sync_status", statement.get("sync")) == status:
            yield name, told


def _in_sync(log: FieldLog) -> Iterator[Contradiction]:
    carried, rivals = carried_labels(log), rivals_of(log, CENTRAL)
    for name, told in _statuses(log, "in-sync"):
        for one, other, shared in rivals:
            if its := sorted(set(shared) & carried.get(name, set())):
                why = (
                    f"{name} is said to be in-sync, and {_name(one)} and {_name(other)} are both applied to "
                    f"its label {told_labels(its)}: its device can hold one of them"
                )
                claims = (told, one, other)
                yield _found(sync_status, VerdictKind.FALSE_SUCCESS, sync_status.REPORTER, claims, why)


def _out_of_sync(log: FieldLog) -> Iterator[Contradiction]:
    states: dict[str, list[Told]] = {}
    for told in log.of(Told):
        if "status" in told.claim.statement:
            states.setdefault(told.system, []).append(told)
    for name, told in _statuses(log, "out-of-sync"):
        own = states.get(name, [])
        if own and all(state.claim.statement["status"] == "completed" for state in own):
            why = f"{name} is said to be out-of-sync, and every image state there completed"
            kind, reporter = VerdictKind.CONTRADICTION, sync_status.REPORTER
            yield _found(sync_status, kind, reporter, (told, *own), why, stated=False)


def _flags(log: FieldLog) -> Iterator[Contradiction]:
    for told in (row for rows in rows_of(log).values() for row in rows.values()):
        statement = told.claim.statement
        flag, labels = statement.get("applied"), statement.get("applied_labels", "")
        known = labels is None or isinstance(labels, tuple)
        if isinstance(flag, bool) and known and flag != bool(labels):
            why = f"{_name(told)}: applied is {flag}, and its labels are {told_labels(labels or ())}"
            yield _found(applied, VerdictKind.CONTRADICTION, applied.REPORTER, (told,), why)


def repository_of(image: str) -> str:
    """Return an image's registry and repository, without its tag."""
    try:
        reference = parse_reference(image)
    except ConfigurationError:
        return image
    return "/".join(filter(None, (reference.registry, reference.repository)))


def _pushes(log: FieldLog) -> Iterator[Contradiction]:
    said: dict[str, list[Told]] = {}
    for told in log.of(Told):
        if told.claim.subject.kind == "registry-image":
            said.setdefault(repository_of(told.claim.subject.name), []).append(told)
    for about in said.values():
        refused = _last(about, "log:registry")
        done = _last(about, "log:sysinv") or _last(about, "docker-stream")
        if refused is None or done is None or refused.claim.statement["result"] != "failed":
            continue
        if done.claim.statement["result"] != "done" or _after(refused, done):
            continue
        why = (
            f"{done.claim.reporter} says that {done.claim.subject.name} was brought into the registry, "
            f"and the registry's last word on it is: {refused.claim.statement['error']}"
        )
        yield _found(push, VerdictKind.FALSE_SUCCESS, done.claim.reporter, (done, refused), why)


def _last(about: list[Told], reporter: str) -> Told | None:
    return next((told for told in reversed(about) if told.claim.reporter == reporter), None)


def _after(refused: Told, done: Told) -> bool:
    """Whether a refusal is of a later push than the one that is said to be done."""
    return refused.time is not None and done.time is not None and refused.time > done.time + _LATE


def _tools(log: FieldLog) -> Iterator[Contradiction]:
    done: Told | None = None
    for told in log.of(Told):
        if told.claim.reporter == "fpgasupdate":
            done = told if told.claim.statement.get("result") == "done" else None
        code = str(told.claim.statement.get("auth_code", "0x00"))
        if told.claim.reporter == "kernel-log" and done is not None and int(code, 16):
            why = f"fpgasupdate says that the image was flashed, and the kernel's log shows code {code}"
            yield _found(contradiction, VerdictKind.CONTRADICTION, "fpgasupdate", (done, told), why)


def _strategies(log: FieldLog) -> Iterator[Contradiction]:
    """A strategy that is complete although a step of it has failed."""
    whole: Told | None = None
    failed: Told | None = None
    for told in log.of(Told):
        state = told.claim.statement.get("state")
        if told.claim.subject.name.startswith(f"{CENTRAL}/strategy/"):
            whole = told if state == "complete" else None
        elif told.claim.subject.name.startswith(f"{CENTRAL}/step/") and state == "failed":
            failed = told
    if whole is not None and failed is not None:
        why = f"the strategy is complete, and the step of {failed.claim.statement['cloud']} has failed"
        reporter = orchestration.STRATEGY
        yield _found(orchestration, VerdictKind.CONTRADICTION, reporter, (whole, failed), why)
