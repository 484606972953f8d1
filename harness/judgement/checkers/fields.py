"""Holds the fields that a state reporter shows, such as fpgainfo, to the same fields of the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.judgement.grouping import NOT_OBSERVED, StateClaim, field_of, show, source_of
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Observation
from harness.judgement.values import Unknown


def check_state_claim(held: StateClaim) -> Iterator[Verdict]:
    """Yield one verdict per field that does not match, and one MATCH for all that do."""
    claim = held.claim
    matching: list[str] = []
    seqs = (claim.seq, *(observation.seq for observation in held.truths))
    for name, claimed in claim.statement.items():
        kind, observation = _verdict_on(name, claimed, held.truths)
        if kind is None:
            continue
        if kind is VerdictKind.MATCH:
            matching.append(name)
            continue
        truth = field_of(observation, name)
        yield Verdict(
            kind,
            "fields",
            claim.reporter,
            claim.subject,
            f"{name} is {show(name, claimed)}",
            f"{name} is {show(name, truth)}",
            source_of(observation, name),
            claim.intent,
            seqs,
        )
    if matching:
        yield Verdict(
            VerdictKind.MATCH,
            "fields",
            claim.reporter,
            claim.subject,
            f"{', '.join(matching)} are as it shows them",
            "each of them is the same on the device",
            "the device's own attributes",
            claim.intent,
            seqs,
        )


def _verdict_on(
    name: str, claimed: Any, truths: list[Observation]
) -> tuple[VerdictKind | None, Observation | None]:
    """Return the verdict on one field (None: nothing was claimed) and the observation it rests on.

    A field that changed while it was being reported matches if it was so on either side.
    """
    seen = [(observation, field_of(observation, name)) for observation in truths]
    known = [(observation, value) for observation, value in seen if not isinstance(value, Unknown)]
    if isinstance(claimed, Unknown):
        return (None, None) if known else (VerdictKind.UNVERIFIABLE, _read(seen))
    for observation, value in known:
        if _plain(name, value) == _plain(name, claimed):
            return VerdictKind.MATCH, observation
    if known:
        # An address is kept, not read: the keeper of one that moved was right once.
        return (VerdictKind.STALE if name == "address" else VerdictKind.MISREPORT), known[-1][0]
    read = _read(seen)
    return (VerdictKind.UNKNOWN_AS_VALUE if read else VerdictKind.UNVERIFIABLE), read


def _read(seen: list[tuple[Observation, Any]]) -> Observation | None:
    """Return the observation that tried to read the field, if any did."""
    return next((observation for observation, value in seen if value != NOT_OBSERVED), None)


def _plain(name: str, value: Any) -> Any:
    """Return a value without the differences in spelling that tools and drivers have (n3000.md 6)."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return frozenset(map(repr, value))
    if isinstance(value, str):
        text = value.strip().lower()
        if text == "hash not programmed":
            return ""
        text = text.removeprefix("0x")
        if name.startswith("bitstream_"):
            try:
                return int(text, 16)
            except ValueError:
                return text
        return text.replace("-", "") if name == "interface_id" else text
    return value
