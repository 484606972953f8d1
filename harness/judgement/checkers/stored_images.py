"""Is what was uploaded what a system shows of it, what it lists, and what its controller gives out?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.judgement.grouping import field_of, number, source_of, word
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim, Intent, Observation
from harness.judgement.system_story import Look, SystemStory
from harness.judgement.values import Unknown

REPORTER: Final = "sysinv-image"
FILE_SERVER: Final = "file-server"
_SAID: Final = (
    "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature", "revoke_key_id", "name",
    "description", "image_version", "bmc", "retimer_included",
)  # fmt: skip


def check_stored_images(story: SystemStory) -> Iterator[Verdict]:
    """Yield a verdict on each download, on each image that is shown otherwise, and on each that is gone."""
    for download in story.downloads:
        yield _given(story, download)
    uploads = {
        word(answer.statement, "uuid"): change
        for change in story.changes
        if change.operation == "image-upload" and (answer := story.answers.get(change.seq)) is not None
    }
    for look in story.looks:
        for claim in look.said["image"]:
            upload = uploads.get(word(claim.statement, "uuid"))
            if upload is not None and upload.seq < look.seq:
                yield _shown(story, claim, upload)
    yield from _gone(story)


def _given(story: SystemStory, download: Observation) -> Verdict:
    """Hold what the controller gives of an image to the bytes that it was given (section 3.2)."""
    image = download.subject.name.rpartition("/")[2]
    uploaded, given = story.facts(image).get("sha256"), field_of(download, "sha256")
    truth = f"{field_of(download, 'size')} bytes come, SHA-256 {str(given)[:16]}"
    if isinstance(given, Unknown):
        kind = VerdictKind.LOST if _answered(download) else VerdictKind.UNVERIFIABLE
        truth = str(given)
    elif not isinstance(uploaded, str):
        kind, truth = VerdictKind.UNVERIFIABLE, f"{truth}; what was uploaded is not known"
    else:
        kind = VerdictKind.MATCH if given == uploaded else VerdictKind.MISREPORT
    size = story.facts(image).get("size", "unknown")
    return Verdict(
        kind,
        "stored-images",
        FILE_SERVER,
        download.subject,
        f"{story.image_name(image)} is there: {size} bytes, SHA-256 {str(uploaded)[:16]}",
        truth,
        source_of(download, "sha256"),
        download.intent,
        (download.seq,),
    )


def _answered(download: Observation) -> bool:
    """Whether the file server answered at all."""
    status = download.values.get("http_status")
    return isinstance(status, (int, str)) and bool(status)


def _shown(story: SystemStory, claim: Claim, upload: Intent) -> Verdict:
    """Hold what is shown of an image to what its upload said."""
    fields = upload.parameters.get("fields")
    said: Mapping[str, Any] = fields if isinstance(fields, Mapping) else {}
    other = [
        f"{name} {claim.statement[name]!r} for {said[name]!r}"
        for name in _SAID
        if name in said and name in claim.statement and not _same(claim.statement[name], said[name])
    ]
    return Verdict(
        VerdictKind.MISREPORT if other else VerdictKind.MATCH,
        "stored-images",
        REPORTER,
        claim.subject,
        f"{story.image_name(word(claim.statement, 'uuid'))} is {', '.join(other) or 'as it was uploaded'}",
        "its upload said otherwise" if other else "its upload said so",
        "the fields of the upload",
        claim.intent,
        (claim.seq, upload.seq),
    )


def _same(shown: Any, said: Any) -> bool:
    """Whether a value is the one of the upload, whatever its spelling; what is not shown may be any."""
    if isinstance(shown, Unknown) or str(shown) == str(said):
        return True
    if isinstance(shown, str) and isinstance(said, str):
        one, other = (number(f"0x{text.lower().removeprefix('0x')}") for text in (shown, said))
        return one is not None and one == other
    return False


def _gone(story: SystemStory) -> Iterator[Verdict]:
    """Yield LOST for each image that was listed and is not any more, and that nobody deleted."""
    listed: dict[str, Claim] = {}
    last: Look | None = None
    for look in story.looks:
        deleted = {
            word(c.parameters, "target")
            for c in story.changes
            if c.operation == "image-delete" and (last.seq if last else 0) < c.seq < look.seq
        }
        here = {word(claim.statement, "uuid"): claim for claim in look.said["image"]}
        refused = bool(look.refusal) and not here
        if "image" in look.asked and (look.whole or refused):
            for uuid in listed.keys() - here.keys() - deleted:
                yield _lost(story, look, listed[uuid], uuid)
            listed, last = here, look


def _lost(story: SystemStory, look: Look, claim: Claim, uuid: str) -> Verdict:
    return Verdict(
        VerdictKind.LOST,
        "stored-images",
        REPORTER,
        claim.subject,
        f"the system does not list {story.image_name(uuid)} any more",
        look.refusal or "it was listed before, and nobody deleted it",
        "the list before it",
        None,
        (claim.seq, look.seq),
    )
