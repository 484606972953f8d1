"""Which boot brings up what was written: one that follows the order to write, and none that came before it.

What is completed is active only after the boot that follows (fact sheet of StarlingX, section 3.4).
"""

from __future__ import annotations

import pytest

from harness.judgement.checkers.sync_status import REPORTER as SYNC
from harness.judgement.model import Outcome, VerdictKind
from harness.judgement.records import Fault, Subject
from tests.judgement.cloud_records import CONTROLLER, IMAGE_11, Cloud
from tests.judgement.system_records import HOST, NEW, SYSTEM, USER, Story, worst

STATE = "sysinv-image-state"


@pytest.fixture
def story() -> Story:
    """A system that owes an image to its card, and was looked at."""
    made = Story()
    made.owe(USER)
    return made


def reboot(story: Story, boot_id: str, by: str = "reboot") -> None:
    """Have the host boot, and nobody look: by a fault, or because it was asked for."""
    if by in ("reboot", "power-cut"):
        subject = Subject("record", SYSTEM)
        story.add(Fault(point="between-acts", action=by, subject=subject, state="fired"))
    else:
        story.act(by, target=HOST)
    story.card["boot_id"] = boot_id


BOOTS = pytest.mark.parametrize("by", ["reboot", "power-cut", "host-unlock", "host-reboot"])


@BOOTS
def test_after_a_boot_straight_before_the_order_what_was_written_is_not_active_yet(
    story: Story, by: str
) -> None:
    reboot(story, "second", by)
    story.update(user="completed")
    judged = story.end()
    assert judged.verdicts[STATE] is VerdictKind.UNVERIFIABLE
    assert judged.outcomes[-1].outcome is Outcome.UNKNOWN
    truth = next(v.truth for v in judged.judged if v.reporter == STATE and "completed" in v.claimed)
    assert "the host was booted before the image was to be written, and nobody looked between both" in truth


@pytest.mark.parametrize(
    ("shows", "verdict", "outcome"),
    [({"bitstream_id": NEW}, "MATCH", "AS_INTENDED"), ({}, "FALSE_SUCCESS", "FAILED")],
)
def test_the_boot_that_follows_tells_all_the_same(
    story: Story, shows: dict[str, int], verdict: str, outcome: str
) -> None:
    reboot(story, "second")
    story.update(user="completed")
    story.boot(boot_id="third", **shows)
    judged = story.end()
    assert judged.verdicts[STATE] is VerdictKind(verdict)
    assert {each.outcome for each in judged.outcomes} == {Outcome(outcome)}


def test_a_boot_that_somebody_looked_after_is_told_from_those_that_follow(story: Story) -> None:
    """The card was read after it: it is known that no boot has followed the order."""
    reboot(story, "second")
    story.look()
    story.update(user="completed")
    story.host["reboot_needed"] = False
    story.look()
    judged = story.end()
    assert judged.verdicts[STATE] is VerdictKind.UNVERIFIABLE
    assert judged.verdicts["sysinv-host"] is VerdictKind.FALSE_SUCCESS  # it is to be booted


def test_whether_a_boot_is_needed_is_not_known_after_one_that_nobody_looked_after(story: Story) -> None:
    reboot(story, "second")
    story.update(user="completed")
    story.host["reboot_needed"] = False
    story.look()
    assert worst(story, "sysinv-host") == "MATCH"


@pytest.mark.parametrize("state", ["armed", "not-reached"])
def test_a_fault_that_never_struck_has_booted_nothing(story: Story, state: str) -> None:
    """The boot is one that nobody here made, and the look after the update shows it, as ever."""
    subject = Subject("record", SYSTEM)
    story.add(Fault(point="programming", action="reboot", subject=subject, state=state))  # type: ignore[arg-type]
    story.card["boot_id"] = "second"
    story.update(user="completed")
    assert worst(story, STATE) == "FALSE_SUCCESS"


def test_a_boot_in_the_middle_of_the_update_counts(story: Story) -> None:
    story.act("host-update", target=HOST)
    reboot(story, "second")
    story.states["user"] = "completed"
    story.card["flash_count"] += 1
    story.look()
    assert worst(story, STATE) == "FALSE_SUCCESS"


def test_an_order_that_was_refused_wrote_nothing(story: Story) -> None:
    """The boot lies between both, and the image is of the first: it must be active."""
    story.act("host-update", target=HOST)
    reboot(story, "second")
    story.act("host-update", "raised", "device", target=HOST)
    story.states["user"] = "completed"
    story.card["flash_count"] += 1
    story.look()
    assert worst(story, STATE) == "FALSE_SUCCESS"


@pytest.mark.parametrize(("landed", "verdict"), [(True, "FALSE_FAILURE"), (False, "MATCH")])
def test_a_second_try_that_is_said_to_have_failed_shows_after_the_boot_that_follows_it(
    story: Story, landed: bool, verdict: str
) -> None:
    """The boot between two tries shows what became of the first one, and of no other."""
    story.update(user="failed")
    story.boot()
    story.update(user="failed")
    story.act("image-remove", target="user")
    story.states.clear()
    story.boot(boot_id="third", **({"bitstream_id": NEW} if landed else {}))
    assert worst(story, STATE) == verdict


@pytest.mark.parametrize(
    ("booted", "verdict"), [("before", "UNVERIFIABLE"), ("after", "FALSE_SUCCESS"), ("both", "FALSE_SUCCESS")]
)
def test_a_subcloud_need_not_run_what_a_strategy_wrote_after_its_boot(booted: str, verdict: str) -> None:
    cloud = Cloud("sub")
    cloud.apply(cloud.upload(IMAGE_11))
    cloud.look()
    if booted != "after":
        cloud.act("sub", "host-reboot", target=HOST)
        cloud["sub"].card["boot_id"] += "+"
    cloud.act(CONTROLLER, "strategy-apply")
    cloud.write("sub", "image-11", {}, boot=False)
    if booted != "before":
        if booted == "both":
            cloud.look()
        cloud["sub"].card["boot_id"] += "+"
    cloud.look()
    cloud.look()
    assert cloud.kind(SYNC) is VerdictKind(verdict)


@pytest.mark.parametrize("how", ["timed-out", "never"])
def test_an_order_of_which_no_answer_came_may_have_written(story: Story, how: str) -> None:
    """As one that returned: what the boot before it brought up, if anything, is not this image."""
    reboot(story, "second")
    story.act("host-update", how, target=HOST)
    story.states["user"] = "completed"
    story.card["flash_count"] += 1
    story.look()
    assert worst(story, STATE) == "UNVERIFIABLE"


def test_a_boot_of_another_host_resets_no_card_here(story: Story) -> None:
    """The card's own host shows the same boot as before: what was written is not active yet."""
    story.act("host-reboot", target="controller-9")
    story.update(user="completed")
    story.host["reboot_needed"] = False
    story.look()
    assert worst(story, "sysinv-host") == "FALSE_SUCCESS", "it is to be booted"
