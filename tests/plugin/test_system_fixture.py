"""Scenarios about a StarlingX system: what the fixture does, what is recorded, and how it ends."""

import pytest

from harness.judgement.records import Claim, Fault, Intent, Observation

INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    controllers:
      good: {role: system-controller, emulated: {release: corrected}}
      silent: {role: system-controller, emulated: {release: corrected, defects: [failed-flash-not-reported]}}
      empty: {role: system-controller, emulated: {release: corrected}}
    hosts:
      one:
        system: good
        emulated: {hostname: compute-0}
        cards: {card0: {address: '0000:b2:00.0', identity: '64:4c:36:00:00:01', irreversible: [root-key]}}
      two:
        system: silent
        emulated: {hostname: compute-0}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:00:00:02
            irreversible: [root-key]
            emulated: {sr_root: root-key-A}
"""

SCENARIOS = """
def test_runs_what_is_completed(system):
    image = system.upload("unsigned")
    system.apply(image)
    system.update()
    system.boot()

@pytest.mark.parametrize("system", ["silent"], indirect=True)
@pytest.mark.hil_expects(verdicts={"sysinv-image-state": "LOST"})
def test_never_says_that_it_failed(system):
    image = system.upload("root-key-B", promise="unchanged")
    system.apply(image)
    system.update()
    system.pass_time(200)

@pytest.mark.parametrize("system", ["silent"], indirect=True)
def test_is_not_permitted(system):
    system.upload("cancel-A-csk0")

@pytest.mark.parametrize("system", ["empty", "gone"], indirect=True)
def test_is_nowhere(system):
    system.look()

def test_is_refused(system):
    image = system.upload("unsigned")
    system.apply(image)
    system.update()
    assert "already been written to devices" in system.refused(system.delete, image)
    system.boot()

@pytest.mark.hil_expects(outcome="BREACH")
def test_takes_what_it_must_refuse(system):
    assert system.refused(system.upload, "unsigned") == ""

@pytest.mark.hil_expects(outcome="BREACH")
def test_refuses_what_it_must_take(system):
    assert system.taken(system.upload, "unsigned", pci_device="0b31") is None

@pytest.mark.hil_expects(verdicts={"sysinv-image-state": "LOST"})
def test_goes_on_without_its_agent(system):
    image = system.upload("root-key-A")
    system.apply(image)
    system.disturb("agents", False, at="programming")
    system.at("programming", system.look)
    system.update()
    system.disturb("agents", True)
    system.pass_time(200)

def test_nothing_comes_to_a_point(system):
    system.disturb("agents", False, at="programming")
    system.look()

@pytest.mark.hil_given(root="A")
def test_has_the_card_that_is_given(system):
    assert system.bench.cards["one/card0"].driver.truth().sr_root

@pytest.mark.parametrize("hil_way", ["cli"])
def test_asks_the_other_way(system):
    system.look()
"""


@pytest.fixture
def system_plan(plan):
    """A plan over a lab with two systems that have cards, and one that has none."""
    (plan.folder / "inventory.yaml").write_text(INVENTORY, encoding="utf-8")
    return plan


def test_scenarios_about_a_system_are_judged(system_plan) -> None:
    done = system_plan.run(SCENARIOS, "--hil-way=rest")
    assert done.states == {
        "test_runs_what_is_completed": "as-stated",
        "test_never_says_that_it_failed[silent]": "as-stated",
        "test_is_not_permitted[silent]": "REFUSED",
        "test_is_nowhere[empty]": "NOT_APPLICABLE",
        "test_is_nowhere[gone]": "NOT_APPLICABLE",
        "test_is_refused": "as-stated",
        "test_takes_what_it_must_refuse": "as-stated",
        "test_refuses_what_it_must_take": "as-stated",
        "test_goes_on_without_its_agent": "as-stated",
        "test_nothing_comes_to_a_point": "not-as-stated",
        "test_has_the_card_that_is_given": "as-stated",
        "test_asks_the_other_way[cli]": "NOT_APPLICABLE",
    }
    assert "key-cancellation" in done.scenarios["test_is_not_permitted[silent]"]["reason"]
    cards = [r for r in done.records if isinstance(r, Observation) and r.probe == "card"]
    assert {card.subject.identity for card in cards} == {"64:4c:36:00:00:01", "64:4c:36:00:00:02"}
    said = [r for r in done.records if isinstance(r, Claim | Intent | Observation)]
    assert all(record.source_time for record in said), "all of it has its lab time"
    struck = [(fault.action, fault.point, fault.state) for fault in done.records if isinstance(fault, Fault)]
    assert struck == [
        ("agents", "programming", "armed"),
        ("look", "programming", "armed"),
        ("agents", "programming", "fired"),
        ("look", "programming", "fired"),
        ("agents", "between-acts", "fired"),
        ("agents", "programming", "armed"),
        ("agents", "programming", "not-reached"),
    ]
    late = [
        r.source_time for r in said if "/state/" in r.subject.name and r.statement["status"] == "in-progress"
    ]
    assert max(late) - min(late) >= 200, "lab time passed, not ours"


def test_a_marker_that_names_no_lab_is_told(system_plan) -> None:
    done = system_plan.run("@pytest.mark.hil_lab()\ndef test_looks(system): system.look()")
    assert "the marker hil_lab names one lab" in done.text
    assert done.states == {"test_looks": "BLOCKED"}


def test_a_command_line_that_names_a_lab_overrides_the_marker(system_plan) -> None:
    plan = "@pytest.mark.hil_lab('elsewhere')\ndef test_looks(system): system.look()"
    assert system_plan.run(plan, "--hil-lab=small").states == {"test_looks": "as-stated"}


REBOOTED = """
def test_looks_after_a_reboot(system):
    system.apply(system.upload("unsigned"))
    system.disturb("reboot")
    system.update()
    system.boot()

def test_does_not_look_after_it(system):
    system.apply(system.upload("unsigned"))
    system.faults.disturb("reboot", None, "")
    system.update()
    system.boot()
"""


def test_a_reboot_straight_before_an_update_is_not_the_one_that_brings_its_image_up(system_plan) -> None:
    done = system_plan.run(REBOOTED, "--hil-way=rest")
    assert done.states == {
        "test_looks_after_a_reboot": "as-stated",
        "test_does_not_look_after_it": "as-stated",
    }
    fault = next(r for r in done.records if isinstance(r, Fault))
    order = next(r for r in done.records if isinstance(r, Intent) and r.operation == "host-update")
    read = [r for r in done.records if isinstance(r, Observation) and r.probe == "card"]
    assert len([seen for seen in read if fault.seq < seen.seq < order.seq]) == 1, "as it is after the reboot"
