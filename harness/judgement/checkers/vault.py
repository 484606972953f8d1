"""An image that was uploaded to a system controller is one that its subclouds can get."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from harness.judgement.cloud_story import CloudLook, CloudStory
from harness.judgement.grouping import word
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim

REPORTER: Final = "controller-upload"
#: How a step says that the vault has no file (fact sheet of StarlingX, section 5.1); its name has the uuid.
_MISSING: Final = re.compile(r"File does not exist: \S*?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def check_vault(cloud: CloudStory) -> Iterator[Verdict]:
    """Yield a verdict on each image of the controller that a subcloud has, or that a step did not find."""
    for look in cloud.looks:
        missing = _missing(look)
        there = {
            word(claim.statement, "uuid") for own in look.subclouds.values() for claim in own.said["image"]
        }
        for claim in look.own.said["image"]:
            uuid = word(claim.statement, "uuid")
            if uuid in missing:
                yield _verdict(VerdictKind.FALSE_SUCCESS, cloud, claim, missing[uuid])
            elif uuid in there:
                yield _verdict(VerdictKind.MATCH, cloud, claim, None)


def _missing(look: CloudLook) -> dict[str, Claim]:
    found = {}
    for claim in look.own.said["step"]:
        for uuid in _MISSING.findall(str(claim.statement.get("details"))):
            found[uuid] = claim
    return found


def _verdict(kind: VerdictKind, cloud: CloudStory, claim: Claim, step: Claim | None) -> Verdict:
    truth = "a subcloud has it"
    if step is not None:
        truth = f"the step of {word(step.statement, 'cloud')} says: {step.statement.get('details')}"
    return Verdict(
        kind,
        "vault",
        REPORTER,
        claim.subject,
        f"{cloud.name_of(claim)} is uploaded",
        truth,
        "the images of the subclouds, and the steps, of the same look",
        claim.intent,
        (claim.seq, *((step.seq,) if step is not None else ())),
    )
