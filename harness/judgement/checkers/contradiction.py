"""The flashing tool and the kernel's log say opposite things about the same update."""

from __future__ import annotations

from collections.abc import Iterator

from harness.judgement.checkers.flash import Landing
from harness.judgement.grouping import KERNEL_LOG, Operation
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.values import Unknown


def check_contradiction(operation: Operation, landing: Landing) -> Iterator[Verdict]:
    """Yield a verdict where a tool says done and the log shows that the card refused.

    It is held against the one that the truth does not bear out; against the tool where it is not known.
    """
    code = operation.auth_code
    if code is None:
        return
    log = next(claim for claim in reversed(operation.kernel_log) if "auth_code" in claim.statement)
    for claim in operation.claims:
        if claim.statement.get("result") != "done":
            continue
        log_is_wrong = not isinstance(landing.landed, Unknown) and landing.landed
        in_tool = f"{claim.reporter} says that {operation.image_name} was flashed"
        in_log = f"the kernel's log shows authentication code {code:#04x}"
        yield Verdict(
            VerdictKind.CONTRADICTION,
            "contradiction",
            KERNEL_LOG if log_is_wrong else claim.reporter,
            claim.subject,
            f"{in_log} while {in_tool}" if log_is_wrong else f"{in_tool} while {in_log}",
            landing.truth,
            landing.how_read,
            operation.intent.seq,
            (claim.seq, log.seq, *landing.records),
        )
