"""Explains a log: which claims it makes, what truth each needs, and which contradict each other already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.judgement.labels import told as told_labels
from harness.judgement.records import to_json
from harness.record.redaction import REDACTOR
from harness.report.printable import printable
from harness.scenarios.field_logs.contradictions import Contradiction, contradictions
from harness.scenarios.field_logs.events import Event, Happened, Place, Told
from harness.scenarios.field_logs.moments import told_moment
from harness.scenarios.field_logs.needs import Need, needs_of
from harness.scenarios.field_logs.reading import FieldLog

SCHEMA: Final = "hil-explain/1"
#: Fields of a statement that say nothing about a device, or that its subject names.
_PLAIN: Final = (
    *("uuid", "name", "hostname", "address", "image_uuid", "alarm_id", "cloud", "type", "id", "pci_vendor"),
    *("pci_device", "created_at", "updated_at", "image", "endpoint_sync"),
)
_SHOWN: Final = 8


def explained(log: FieldLog) -> dict[str, Any]:
    """Return the document ``hil-explain/1``; claims are referred to by their ``id``."""
    found = contradictions(log)
    document = {
        "schema": SCHEMA,
        "files": list(log.files),
        "claims": [_claim(told) for told in log.of(Told)],
        "contradictions": [
            {
                "verdict": each.verdict.value,
                "reporter": each.reporter,
                "checker": each.checker,
                "why": each.why,
                "claims": [told.claim.seq for told in each.claims],
            }
            for each in found
        ],
        "happened": [_happened(event) for event in log.of(Happened)],
        "notes": list(log.notes),
    }
    masked: dict[str, Any] = REDACTOR.json(document)
    return masked


def _claim(told: Told) -> dict[str, Any]:
    claim = to_json(told.claim)
    return {
        "id": told.claim.seq,
        "reporter": told.claim.reporter,
        "subject": claim["subject"],
        "statement": claim["statement"],
        "said": said(told),
        "hearsay": told.hearsay,
        "time": told.time,
        "place": _placed(told.place),
        "last": _placed(told.last or told.place),
        "times": told.times,
        "evidence": claim["evidence"],
        "needs": [
            {
                "checker": need.checker,
                "question": need.question,
                "reporter": need.reporter,
                "observation": need.observation,
                "read_by": list(need.read_by),
                "false_as": need.false_as.value,
            }
            for need in needs_of(told.claim)
        ],
    }


def _happened(event: Happened) -> dict[str, Any]:
    return {
        "what": event.what,
        "subject": event.subject,
        "detail": event.detail,
        "time": event.time,
        "place": _placed(event.place),
    }


def _placed(place: Place) -> dict[str, Any]:
    return {"file": place.file, "line": place.line}


def said(told: Told) -> str:
    """Return what a claim states, in a few words."""
    statement = told.claim.statement
    shown = {
        name: value for name, value in statement.items() if name not in _PLAIN and value not in (None, "", ())
    }
    first = ["result", "status", "state", "firmware_sync_status", "sync", "applied", "applied_labels"]
    order = sorted(shown, key=lambda name: first.index(name) if name in first else len(first))
    words = [f"{name} {_value(name, shown[name])}" for name in order[:_SHOWN]]
    return (
        ", ".join(words) + (f", and {len(order) - _SHOWN} more" if len(order) > _SHOWN else "") or "nothing"
    )


def _value(name: str, value: Any) -> str:
    if name == "applied_labels" and isinstance(value, tuple):
        return told_labels(value)
    if name in ("bitstream_id", "bitstream_metadata") and isinstance(value, int):
        return f"{value:#x}"
    return str(value)[:80]


def explained_text(log: FieldLog) -> str:
    """Return the same for people: claims by subject, each with what it needs, and the contradictions."""
    claims = log.of(Told)
    lines = [f"{len(claims)} claims in {', '.join(log.files)}"]
    needs: dict[str, list[tuple[Need, int]]] = {}
    for subject, about in _by_subject(claims).items():
        lines += ["", subject]
        for told in about:
            lines += _told_lines(told, needs)
    lines += _needs_lines(needs)
    lines += _contradiction_lines(contradictions(log))
    lines += [f"note: {note}" for note in log.notes]
    return printable(REDACTOR.text("\n".join(lines)))


def _by_subject(claims: list[Told]) -> Mapping[str, list[Told]]:
    found: dict[str, list[Told]] = {}
    for told in claims:
        found.setdefault(str(told.claim.subject), []).append(told)
    return found


def _told_lines(told: Told, needs: dict[str, list[tuple[Need, int]]]) -> Iterator[str]:
    claim = told.claim
    whose = f"{claim.reporter}, as the writer says" if told.hearsay else claim.reporter
    yield f"  {claim.seq:>3}  {whose}: {said(told)}"
    again = f", {told.times} times, last in line {told.last.line}" if told.last is not None else ""
    yield f"       {_when(told)}{told.place}{again}"
    judged = []
    for need in needs_of(claim):
        needs.setdefault(need.checker, []).append((need, claim.seq))
        judged.append(f"{need.false_as.value} by {need.checker}")
    yield f"       if it is false: {', '.join(judged)}" if judged else "       no checker judges this"


def _when(event: Event) -> str:
    moment = told_moment(event.time)
    return f"{moment} UTC  " if moment else ""


def _needs_lines(needs: Mapping[str, list[tuple[Need, int]]]) -> Iterator[str]:
    """Yield what each checker asks; files that a checker before it reads too are not told again."""
    if needs:
        yield from ("", "WHAT TRUTH THEY NEED")
    told: set[tuple[str, ...]] = set()
    for checker, of_claims in needs.items():
        need = of_claims[0][0]
        reporters = dict.fromkeys(each.reporter for each, _ in of_claims)
        yield f"  {checker}: {need.question}"
        yield f"       verdict on  {', '.join(reporters)}; claims {_numbers([seq for _, seq in of_claims])}"
        yield f"       wanted      {need.observation}"
        command, *files = need.read_by
        yield f"       read by     {command}{' (and files as above)' if tuple(files) in told else ''}"
        if tuple(files) not in told:
            yield from (f"                   {file}" for file in files)
        told.add(tuple(files))
        if len({each.read_by for each, _ in of_claims}) > 1:
            yield "                   and so for each of the others"


def _numbers(claims: list[int]) -> str:
    shown = ", ".join(map(str, claims[:12]))
    return shown + (f" and {len(claims) - 12} more" if len(claims) > 12 else "")


def _contradiction_lines(found: list[Contradiction]) -> Iterator[str]:
    yield ""
    if not found:
        yield "No claim contradicts another one."
        return
    yield f"THEY CONTRADICT EACH OTHER ({len(found)})"
    for each in found:
        yield f"  {each.verdict.value:16} {each.reporter}, by {each.checker}"
        yield f"       {each.why}"
        yield f"       {', '.join(f'{told.claim.seq} ({told.place})' for told in each.claims)}"
