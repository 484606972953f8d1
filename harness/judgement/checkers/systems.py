"""Runs the checkers of what control planes say and do over the records of one scenario."""

from __future__ import annotations

from collections.abc import Iterator

from harness.judgement.checkers.across import check_across
from harness.judgement.checkers.applied import check_applied
from harness.judgement.checkers.device_fields import check_device_fields
from harness.judgement.checkers.floating_labels import check_floating_labels
from harness.judgement.checkers.host_update import check_hosts
from harness.judgement.checkers.image_state import check_image_states
from harness.judgement.checkers.kept_states import check_kept_states
from harness.judgement.checkers.orchestration import check_orchestration, strategy_outcomes
from harness.judgement.checkers.stored_images import check_stored_images
from harness.judgement.checkers.sync_alarm import check_sync_alarms
from harness.judgement.checkers.sync_status import check_sync_status
from harness.judgement.checkers.system_acts import CHANGES, act_outcome
from harness.judgement.checkers.update_alarm import check_update_alarm
from harness.judgement.checkers.vault import check_vault
from harness.judgement.checkers.vim_strategy import check_vim_strategy
from harness.judgement.cloud_story import CloudStory, clouds_of
from harness.judgement.grouping import Block, Operation
from harness.judgement.model import OutcomeOf, Verdict
from harness.judgement.system_story import SystemStory, stories_of


def check_systems(block: Block) -> tuple[list[OutcomeOf], list[Verdict]]:
    """Return the outcome of every change of a system, and the verdicts on all that systems said."""
    outcomes: list[OutcomeOf] = []
    verdicts: list[Verdict] = []
    operations = {operation.intent.seq: operation for operation in block.operations}
    stories = stories_of(block.system_records)
    clouds = {cloud.controller.name: cloud for cloud in clouds_of(stories)}
    for story in stories:
        for change in story.changes:
            operation = operations[change.seq]
            if change.operation in CHANGES and not operation.never_began:
                outcomes += _outcomes(story, clouds.get(story.name), operation)
        verdicts += check_image_states(story, ended=block.ended)
        verdicts += check_kept_states(story)
        verdicts += check_applied(story)
        verdicts += check_hosts(story)
        verdicts += check_device_fields(story)
        verdicts += check_update_alarm(story)
        verdicts += check_stored_images(story)
        verdicts += check_floating_labels(story)
        verdicts += check_vim_strategy(story)
    for cloud in clouds.values():
        verdicts += check_cloud(cloud, ended=block.ended)
    return outcomes, verdicts


def check_cloud(cloud: CloudStory, *, ended: bool) -> Iterator[Verdict]:
    """Yield the verdicts on all that a system controller says of its subclouds."""
    yield from check_sync_status(cloud)
    yield from check_across(cloud)
    yield from check_orchestration(cloud, ended=ended)
    yield from check_sync_alarms(cloud)
    yield from check_vault(cloud)


def _outcomes(story: SystemStory, cloud: CloudStory | None, operation: Operation) -> list[OutcomeOf]:
    done = operation.completion
    returned = done is not None and done.how == "returned"
    if operation.intent.operation == "strategy-apply" and returned and cloud is not None:
        return strategy_outcomes(cloud, operation.intent.seq)
    return [act_outcome(story, operation)]
