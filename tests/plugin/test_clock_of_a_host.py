"""The clock of a host is set ahead and back amid flashes: no verdict, order or duration goes by it."""

import itertools
import re
import time

import pytest

from harness.judgement.records import Claim, Completion, Intent

#: Each change is made while the card is held in a phase, so that the tool goes on with the other time.
PLAN = """
def at(bench, card, phase, changes):
    bench.hold(card.name, phase)

    def change(reached):
        if reached == phase:
            bench.wait_held(card.name, phase)
            for name, on in changes.items():
                bench.condition(card.host.name, name, on)
            bench.release(card.name)

    return change

def test_jumps(card, lab, images):
    flash = lambda image, promise, at_phase: card.flash(
        images[image].data, image, promise, at_phase=at_phase
    )
    try:
        ahead = at(lab.bench, card, "transferring", {"clock-ahead": True})
        flash("A/csk0", lands(DOC), ahead)
        card.reset()
        back = at(lab.bench, card, "programming", {"clock-ahead": False, "clock-behind": True})
        flash("A/csk0-v2", lands(DOC), back)
        card.reset()
    finally:
        for name in ("clock-ahead", "clock-behind"):
            lab.bench.condition(card.host.name, name, False)

@pytest.mark.hil_given(root="A")
def test_a_refusal_has_its_code(card, lab, images):
    try:
        ahead = at(lab.bench, card, "programming", {"clock-behind": True})
        card.flash(images["unsigned"].data, "unsigned", unchanged("0x11", source=DOC), at_phase=ahead)
        card.reset()
    finally:
        lab.bench.condition(card.host.name, "clock-behind", False)
"""
STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.\d\d\]", re.MULTILINE)


def steps(text: str) -> list[float]:
    """Return the seconds between a tool's lines, by the clock of its host."""
    at = [time.mktime(time.strptime(stamp, "%Y-%m-%d %H:%M:%S")) for stamp in STAMP.findall(text)]
    return [later - earlier for earlier, later in itertools.pairwise(at)]


@pytest.mark.timeout(120)
def test_a_clock_that_is_set_turns_no_verdict_false(plan) -> None:
    began = time.monotonic()
    run = plan.run(PLAN, "--hil-device=one")
    took = time.monotonic() - began
    assert run.states == {
        "test_jumps[one/card0]": "as-stated",
        "test_a_refusal_has_its_code[one/card0]": "as-stated",
    }
    said = [r for r in run.records if isinstance(r, Claim) and r.reporter == "fpgasupdate"]
    jumps = [steps(claim.evidence.text) for claim in said]
    assert max(jumps[0]) >= 3600 and min(jumps[1]) <= -86400 - 3600 + 600 and min(jumps[2]) < -80_000, jumps
    assert re.search(r"^reports +6 MATCH$", run.stdout, re.MULTILINE), run.stdout
    (code,) = [r.statement for r in run.records if isinstance(r, Claim) and r.statement.get("auth_code")]
    assert code["auth_code"] == "0x11"
    ends = {r.intent: r.time for r in run.records if isinstance(r, Completion)}
    for intent in (r for r in run.records if isinstance(r, Intent)):
        assert 0 <= ends[intent.seq] - intent.time <= took
