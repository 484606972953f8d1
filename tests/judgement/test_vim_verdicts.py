"""What the VIM of a subcloud says of its own strategy, held to its hosts and cards (section 5.5)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.judgement.model import VerdictKind
from harness.judgement.values import Unknown
from tests.judgement.cloud_records import HOST, IMAGE_2, IMAGE_11, KEY_A, ROOT_A, Cloud, unread

VIM = "vim-strategy"
TIMED_OUT = "fw-update-hosts timed out"


@pytest.fixture
def cloud() -> Cloud:
    """A subcloud that owes one image to its card, and whose strategy has begun."""
    made = Cloud("sub")
    made.look()
    made.label("sub", subcloud="abc")
    made.apply(made.upload(IMAGE_11), subcloud="abc")
    made["sub"].images["image-11"] = {"subcloud": "abc"}
    made["sub"].states["image-11"] = "pending"
    made.look()
    return made


def say(cloud: Cloud, result: str, reason: str = "", *, state: str = "applying", uuid: str = "one") -> None:
    """Have the VIM say from now on how its update of the host stands."""
    update = {"hosts": [HOST], "result": result, "reason": reason}
    cloud["sub"].vim = {"uuid": uuid, "state": state, "updates": [update]}


def kinds(cloud: Cloud) -> list[str]:
    return [v.kind.value for v in cloud.judged().judged if v.reporter == VIM]


def test_an_update_that_goes_on_is_waited_for(cloud: Cloud) -> None:
    say(cloud, "wait")
    cloud["sub"].states["image-11"] = "in-progress"
    for _ in range(4):
        cloud.look(1000)
    assert kinds(cloud) == ["MATCH"] * 4


def test_an_image_that_was_not_begun_is_waited_for(cloud: Cloud) -> None:
    say(cloud, "wait")
    cloud.look()
    cloud.look(1000)
    assert kinds(cloud) == ["MATCH"] * 2


@pytest.mark.parametrize(("seconds", "kind"), [(120, "MATCH"), (121, "STALE")])
@pytest.mark.parametrize("status", ["failed", "completed"])
def test_the_vim_knows_of_the_end_of_an_update_after_two_of_its_looks(
    cloud: Cloud, status: str, seconds: int, kind: str
) -> None:
    say(cloud, "wait")
    cloud["sub"].states["image-11"] = status
    cloud.look()
    cloud.look(seconds)
    assert kinds(cloud) == ["MATCH", kind]


def test_an_image_of_the_host_that_is_still_written_keeps_the_vim_waiting(cloud: Cloud) -> None:
    say(cloud, "wait")
    cloud["sub"].states = {"image-11": "failed"}
    cloud.look()
    cloud["sub"].states["other"] = "in-progress"
    cloud.upload(KEY_A | {"name": "other"})
    cloud.look(100)
    del cloud["sub"].states["other"]
    cloud.look(100)
    assert kinds(cloud) == ["MATCH"] * 3


class TestHowItEnded:
    def test_a_failure_of_hosts_whose_cards_were_written_is_none(self, cloud: Cloud) -> None:
        cloud.write("sub", "image-11", boot=False)
        say(cloud, "timed-out", TIMED_OUT, state="aborted")
        cloud.look()
        verdict = cloud.last(VIM)
        assert verdict.kind is VerdictKind.FALSE_FAILURE
        assert TIMED_OUT in verdict.claimed and "the strategy is aborted" in verdict.claimed
        assert verdict.truth == "image-11 is completed; written to the cards: yes"

    def test_what_the_card_runs_needs_no_counter(self, cloud: Cloud) -> None:
        cloud.write("sub", "image-11")
        unread("flash_count")(cloud["sub"])
        say(cloud, "failed", state="aborted")
        cloud.look()
        assert cloud.kind(VIM) is VerdictKind.FALSE_FAILURE

    def test_a_card_whose_counter_stands_was_not_written(self, cloud: Cloud) -> None:
        """sysinv says completed, and the card shows no write: the VIM's failure is none of its own making."""
        cloud["sub"].states["image-11"] = "completed"
        say(cloud, "timed-out", state="aborted")
        cloud.look()
        assert cloud.kind(VIM) is VerdictKind.MATCH
        say(cloud, "success", state="applied", uuid="two")
        cloud.look()
        assert cloud.kind(VIM) is VerdictKind.FALSE_SUCCESS

    def test_a_counter_that_was_not_read_decides_nothing(self, cloud: Cloud) -> None:
        cloud.write("sub", "image-11", boot=False)
        unread("flash_count")(cloud["sub"])
        say(cloud, "timed-out", state="aborted")
        cloud.look()
        assert cloud.kind(VIM) is VerdictKind.UNVERIFIABLE

    def test_a_root_key_shows_at_once(self, cloud: Cloud) -> None:
        cloud["sub"].states.clear()
        cloud.upload(KEY_A)
        cloud["sub"].states["key-a"] = "completed"
        say(cloud, "success", state="applied")
        cloud.look()
        assert cloud.kind(VIM) is VerdictKind.FALSE_SUCCESS
        cloud["sub"].card["sr_root"] = ROOT_A
        say(cloud, "success", state="applied", uuid="two")
        cloud.look()
        assert cloud.kind(VIM) is VerdictKind.MATCH

    @pytest.mark.parametrize(
        ("result", "kind"), [("failed", "MATCH"), ("timed-out", "MATCH"), ("success", "FALSE_SUCCESS")]
    )
    def test_an_image_that_failed(self, cloud: Cloud, result: str, kind: str) -> None:
        cloud.fail("sub", "image-11")
        say(cloud, result)
        cloud.look()
        assert kinds(cloud) == [kind]

    def test_a_host_without_any_state_decides_nothing(self, cloud: Cloud) -> None:
        cloud["sub"].states.clear()
        say(cloud, "success", state="applied")
        cloud.look()
        assert cloud.kind(VIM) is VerdictKind.UNVERIFIABLE

    def test_an_end_is_judged_by_what_was_so_then(self, cloud: Cloud) -> None:
        """An image that is owed later is for the next strategy."""
        cloud.write("sub", "image-11")
        say(cloud, "success", state="applied")
        cloud.look()
        cloud.upload(IMAGE_2)
        cloud["sub"].images["image-2"] = {"subcloud": "abc"}
        cloud["sub"].states["image-2"] = "pending"
        cloud.look()
        assert kinds(cloud) == ["MATCH"]
        say(cloud, "success", state="applied", uuid="two")
        cloud.look()
        assert kinds(cloud) == ["MATCH", "FALSE_SUCCESS"]


@pytest.mark.parametrize("result", ["initial", "aborted", ""])
def test_what_was_not_begun_or_was_aborted_says_nothing_of_hosts(cloud: Cloud, result: str) -> None:
    say(cloud, result)
    cloud.look()
    assert kinds(cloud) == []


@pytest.mark.parametrize(
    "updates", [None, "x", Unknown("not shown"), [None], [{}], [{"hosts": "x", "result": 4}]]
)
def test_an_update_of_any_form_is_judged(cloud: Cloud, updates: Any) -> None:
    cloud["sub"].vim = {"uuid": 4, "state": None, "updates": updates}
    cloud.look()
    assert kinds(cloud) == []
