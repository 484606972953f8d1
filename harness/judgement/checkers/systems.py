"""Runs the checkers of what control planes say and do over the records of one scenario."""

from __future__ import annotations

from harness.judgement.checkers.applied import check_applied
from harness.judgement.checkers.device_fields import check_device_fields
from harness.judgement.checkers.host_update import check_hosts
from harness.judgement.checkers.image_state import check_image_states
from harness.judgement.checkers.kept_states import check_kept_states
from harness.judgement.checkers.system_acts import CHANGES, act_outcome
from harness.judgement.checkers.update_alarm import check_update_alarm
from harness.judgement.grouping import Block
from harness.judgement.model import OutcomeOf, Verdict
from harness.judgement.system_story import stories_of


def check_systems(block: Block) -> tuple[list[OutcomeOf], list[Verdict]]:
    """Return the outcome of every change of a system, and the verdicts on all that systems said."""
    outcomes: list[OutcomeOf] = []
    verdicts: list[Verdict] = []
    for story in stories_of(block.system_records):
        own = {intent.seq for intent in story.changes}
        outcomes += [
            act_outcome(story, operation)
            for operation in block.operations
            if operation.intent.seq in own
            and operation.intent.operation in CHANGES
            and not operation.never_began
        ]
        verdicts += check_image_states(story, ended=block.ended)
        verdicts += check_kept_states(story)
        verdicts += check_applied(story)
        verdicts += check_hosts(story)
        verdicts += check_device_fields(story)
        verdicts += check_update_alarm(story)
    return outcomes, verdicts
