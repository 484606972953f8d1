"""What a registry truly holds of an image: the states, what was found, and two truths compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from harness.judgement.values import Unknown, Value
from harness.registry.reference import Reference

Source = Literal["api", "store"]
#: What of an image a finding is about.
Part = Literal["tag", "manifest", "config", "layer", "child"]


class TruthState(str, Enum):
    """What is true of an image under its reference.

    ``ABSENT``: nothing is there. ``COMPLETE``: everything is, by its hash. ``PARTIAL``: something that the
    manifest names is missing. ``CORRUPT``: something is not what its digest promises. ``WRONG``: the tag
    leads to other content than expected. ``UNREADABLE``: it could not be told.
    """

    ABSENT = "ABSENT"
    COMPLETE = "COMPLETE"
    PARTIAL = "PARTIAL"
    CORRUPT = "CORRUPT"
    WRONG = "WRONG"
    UNREADABLE = "UNREADABLE"


#: When several hold, the first that was found is the state; the findings have all. What is known to be
#: false stands before what is unknown, and that before what is true.
PRECEDENCE = (
    TruthState.WRONG,
    TruthState.CORRUPT,
    TruthState.PARTIAL,
    TruthState.ABSENT,
    TruthState.UNREADABLE,
    TruthState.COMPLETE,
)
#: The image is known not to be there as it should.
FALSE_STATES = frozenset(PRECEDENCE[:4])


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should: which part, by its digest (of a tag: by its name), and why."""

    state: TruthState
    part: Part
    which: str
    reason: str

    def __str__(self) -> str:
        return f"{self.part} {self.which}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Expected:
    """What ought to be under a reference; empty members are not looked at.

    ``digest``: of the manifest. ``config``: digest of the config, for clients that pack the layers anew
    and so write another manifest for the same image.
    """

    digest: str = ""
    config: str = ""


#: Whatever is under the reference will do, if it is whole.
ANYTHING = Expected()


@dataclass(frozen=True, slots=True)
class ImageTruth:
    """What was read of one image by one way.

    ``digest``: of the manifest that the reference leads to. ``config``: what that names as config (none
    for an index). ``hashed``: bytes that were read and hashed.
    """

    source: Source
    reference: Reference
    state: TruthState
    digest: Value[str]
    config: Value[str]
    findings: tuple[Finding, ...] = ()
    hashed: int = 0
    seconds: float = 0.0
    moment: str = ""

    def __str__(self) -> str:
        way = f"the {self.source} {self.moment}".rstrip()
        return f"{way} says {self.state.value}" + (f" ({self.why})" if self.findings else "")

    @property
    def why(self) -> str:
        """The findings in one line."""
        return "; ".join(map(str, self.findings))

    def to_json(self) -> dict[str, Any]:
        """Return it as values of an observation."""
        return {
            "state": self.state.value,
            "digest": self.digest,
            "config": self.config,
            "findings": [
                {"state": each.state.value, "part": each.part, "which": each.which, "reason": each.reason}
                for each in self.findings
            ],
            "hashed": self.hashed,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The truths of one image by several ways, in the order in which they were read.

    ``state``: what counts. ``disagreement``: who says otherwise, in words; empty where all agree on whether
    the image is there as it should.
    """

    truths: tuple[ImageTruth, ...]
    state: TruthState
    disagreement: str

    @property
    def agrees(self) -> bool:
        """Whether all ways gave the same answer: yes, no, or none."""
        return not self.disagreement


def state_of(findings: Sequence[Finding]) -> TruthState:
    """Return the state that ``findings`` make; COMPLETE without any."""
    found = {finding.state for finding in findings}
    return next((state for state in PRECEDENCE if state in found), TruthState.COMPLETE)


def departures(digest: str, config: Value[str], expected: Expected, tag: str) -> list[Finding]:
    """Return how what is under a reference departs from what is expected there."""
    if expected.digest and digest != expected.digest:
        return [Finding(TruthState.WRONG, "tag", tag, f"leads to {digest} instead of {expected.digest}")]
    if expected.config and not isinstance(config, Unknown) and config != expected.config:
        return [
            Finding(
                TruthState.WRONG, "tag", tag, f"leads to the config {config} instead of {expected.config}"
            )
        ]
    return []


def compare(*truths: ImageTruth) -> Comparison:
    """Return what counts of several truths of one image.

    A way that sees something missing or damaged is believed against one that sees nothing: the API
    answers from caches for as long as its process lives (fact sheet of the registry, section 5). Between
    two that see damage the store counts. What could not be read hides nothing, and proves nothing.

    :raises ValueError: none was given, or they are not of one image.
    """
    if not truths or len({str(truth.reference) for truth in truths}) != 1:
        raise ValueError("truths of one image are compared")
    false = [truth for truth in truths if truth.state in FALSE_STATES]
    unread = [truth for truth in truths if truth.state is TruthState.UNREADABLE]
    if false:
        chosen = next((truth for truth in false if truth.source == "store"), false[-1])
    else:
        chosen = (unread or list(truths))[-1]
    others = [str(truth) for truth in truths if _answer(truth) != _answer(chosen)]
    return Comparison(truths, chosen.state, f"{chosen}, {', '.join(others)}" if others else "")


def _answer(truth: ImageTruth) -> bool | None:
    """Return whether the image is there as it should; None where that could not be told.

    What of it is damaged may differ by the way: a blob that is missing is announced by a cache, and comes
    as one without content.
    """
    if truth.state is TruthState.UNREADABLE:
        return None
    return truth.state is TruthState.COMPLETE
