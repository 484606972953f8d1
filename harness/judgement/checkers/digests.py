"""One client pushes one content twice and names two digests: one of its own reports denies the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.judgement.grouping import Block, word
from harness.judgement.model import Verdict, VerdictKind


def check_digest_drift(block: Block) -> Iterator[Verdict]:
    """Yield a CONTRADICTION for each push whose client named another digest for the same content before."""
    named: dict[tuple[str, str], tuple[str, int]] = {}
    for operation in block.operations:
        content = operation.intent.parameters.get("content")
        if operation.intent.operation != "push" or not isinstance(content, Mapping):
            continue
        identity = word(content, "config") or word(content, "digest")
        for claim in operation.claims:
            digest = word(claim.statement, "digest")
            if claim.statement.get("result") != "done" or not digest or not identity:
                continue
            first, seq = named.setdefault((claim.reporter, identity), (digest, claim.seq))
            if digest != first:
                yield Verdict(
                    VerdictKind.CONTRADICTION,
                    "digests",
                    claim.reporter,
                    claim.subject,
                    f"the digest is {digest}, and was {first} when the same content was pushed before",
                    f"the content is the same: {identity}",
                    "what the client was given, by its digest",
                    operation.intent.seq,
                    (seq, claim.seq),
                )
