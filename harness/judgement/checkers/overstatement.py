"""A registry's API answers as if an image were whole that its store does not hold: caches overstate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.judgement.checkers.push import FALSE_STATES, findings_of
from harness.judgement.grouping import Block, word
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Observation

#: The registry itself, as its API speaks.
REPORTER = "registry-api"


def check_overstatement(block: Block) -> Iterator[Verdict]:
    """Yield FALSE_SUCCESS for each reading in which the API shows a whole image and the store does not."""
    for events in block.image_events.values():
        for seen in events:
            if not isinstance(seen, Observation):
                continue
            api, store = seen.values.get("api"), seen.values.get("store")
            if not isinstance(api, Mapping) or not isinstance(store, Mapping):
                continue
            if word(api, "state") == "COMPLETE" and word(store, "state") in FALSE_STATES:
                yield Verdict(
                    VerdictKind.FALSE_SUCCESS,
                    "overstatement",
                    REPORTER,
                    seen.subject,
                    f"{seen.subject.name} is whole: every part was fetched and has its digest",
                    f"the store says {word(store, 'state')} ({findings_of(store)})",
                    seen.sources.get("store", "the store"),
                    seen.intent,
                    (seen.seq,),
                )
