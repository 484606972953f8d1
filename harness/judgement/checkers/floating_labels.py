"""A label that no device carries is there for images that are applied to it; without one it is left over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.judgement.grouping import word
from harness.judgement.labels import labels_of, told
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.system_story import SystemStory

REPORTER: Final = "sysinv-label"


def check_floating_labels(story: SystemStory) -> Iterator[Verdict]:
    """Yield a verdict on each floating label in each look (fact sheet of StarlingX, sections 1.2 and 4.4)."""
    for look in story.whole_looks:
        applied = [labels_of(claim) for claim in look.said["image"]]
        if any(labels is None for labels in applied):
            continue  # this way in does not show them
        used = {label for labels in applied for label in labels or ()}
        for claim in look.said["label"]:
            label = word(claim.statement, "label_key"), word(claim.statement, "label_value")
            if claim.statement.get("device") is not None:
                continue
            yield Verdict(
                VerdictKind.MATCH if label in used else VerdictKind.STALE,
                "floating-labels",
                REPORTER,
                claim.subject,
                f"the label {told([label])} is there, and no device carries it",
                "an image is applied to it" if label in used else "no image is applied to it",
                "the images of the same look",
                claim.intent,
                (claim.seq, look.seq),
            )
