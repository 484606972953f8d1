"""The checkers: pure functions from the records of one scenario to outcomes and verdicts."""

from __future__ import annotations

from collections.abc import Iterator

from harness.judgement.checkers.acknowledged import check_acknowledged
from harness.judgement.checkers.address import check_addresses
from harness.judgement.checkers.contradiction import check_contradiction
from harness.judgement.checkers.digests import check_digest_drift
from harness.judgement.checkers.fields import check_state_claim
from harness.judgement.checkers.flash import check_flash_claims, flash_outcome, landing_of
from harness.judgement.checkers.overstatement import check_overstatement
from harness.judgement.checkers.push import check_image_claims, pull_outcome, push_outcome, standing_of
from harness.judgement.checkers.reset import check_reset_claims, reset_outcome, return_of
from harness.judgement.checkers.silence import check_silence
from harness.judgement.checkers.systems import check_systems
from harness.judgement.grouping import Block, Operation
from harness.judgement.model import OutcomeOf, Verdict

__all__ = ["check_block"]

#: Operations after which the card is expected back; the first is reported by a tool.
RESETS = frozenset({"reset", "power-cycle", "power-on", "reboot"})

#: Operations that move an image to a registry, or from it.
TRANSFERS = frozenset({"push", "pull"})


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
        elif operation.intent.operation in TRANSFERS:
            outcomes.append(_check_transfer(block, operation, verdicts))
    verdicts.extend(_of_states(block))
    if block.image_events:
        verdicts.extend(_of_images(block))
    if block.system_records:
        of_systems, said = check_systems(block)
        outcomes.extend(of_systems)
        verdicts.extend(said)
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


def _check_transfer(block: Block, operation: Operation, verdicts: list[Verdict]) -> OutcomeOf:
    standing = standing_of(operation)
    verdicts.extend(check_image_claims(operation, standing))
    verdicts.extend(check_silence(block, operation, standing.there, standing.truth, standing.how_read))
    outcome_of = push_outcome if operation.intent.operation == "push" else pull_outcome
    return outcome_of(operation, standing)


def _of_images(block: Block) -> Iterator[Verdict]:
    yield from check_acknowledged(block)
    yield from check_digest_drift(block)
    yield from check_overstatement(block)


def _of_states(block: Block) -> Iterator[Verdict]:
    for held in block.state_claims:
        yield from check_state_claim(held)
    yield from check_addresses(block)
