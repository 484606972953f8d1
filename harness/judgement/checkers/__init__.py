"""The checkers: pure functions from the records of one scenario to outcomes and verdicts."""

from __future__ import annotations

from collections.abc import Iterator

from harness.judgement.checkers.address import check_addresses
from harness.judgement.checkers.contradiction import check_contradiction
from harness.judgement.checkers.fields import check_state_claim
from harness.judgement.checkers.flash import check_flash_claims, flash_outcome, landing_of
from harness.judgement.checkers.reset import check_reset_claims, reset_outcome, return_of
from harness.judgement.checkers.silence import check_silence
from harness.judgement.grouping import Block, Operation
from harness.judgement.model import OutcomeOf, Verdict

__all__ = ["check_block"]

#: Operations after which the card is expected back; the first is reported by a tool.
RESETS = frozenset({"reset", "power-cycle", "power-on", "reboot"})


def check_block(block: Block) -> tuple[list[OutcomeOf], list[Verdict]]:
    """Run every checker over the records of one scenario."""
    outcomes: list[OutcomeOf] = []
    verdicts: list[Verdict] = []
    for operation in block.operations:
        if operation.never_began:
            continue
        if operation.intent.operation == "flash":
            outcomes.append(_check_flash(block, operation, verdicts))
        elif operation.intent.operation in RESETS:
            outcomes.append(_check_reset(block, operation, verdicts))
    verdicts.extend(_of_states(block))
    return outcomes, verdicts


def _check_flash(block: Block, operation: Operation, verdicts: list[Verdict]) -> OutcomeOf:
    landing = landing_of(block, operation)
    verdicts.extend(check_flash_claims(operation, landing))
    verdicts.extend(check_contradiction(operation, landing))
    verdicts.extend(check_silence(block, operation, landing.attempted, landing.truth, landing.how_read))
    return flash_outcome(block, operation, landing)


def _check_reset(block: Block, operation: Operation, verdicts: list[Verdict]) -> OutcomeOf:
    back = return_of(block, operation)
    verdicts.extend(check_reset_claims(operation, back))
    verdicts.extend(check_silence(block, operation, back.changed, back.truth, back.how_read))
    return reset_outcome(operation, back)


def _of_states(block: Block) -> Iterator[Verdict]:
    for held in block.state_claims:
        yield from check_state_claim(held)
    yield from check_addresses(block)
