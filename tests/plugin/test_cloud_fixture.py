"""Scenarios about a distributed cloud: what the fixture does, what is recorded, and how it ends."""

from unittest.mock import Mock

import pytest

from harness.errors import ConfigurationError
from harness.inventory.load import load_inventory
from harness.judgement.records import Claim, Fault, Intent, Observation
from harness.lab.cloud_bench import narrowed_to_cloud
from harness.lab.running import start_lab
from harness.plugin.clouds import Cloud

INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    controllers:
      alone: {role: system-controller, emulated: true}
      center: {role: system-controller, emulated: {release: corrected}}
      sub1: {role: subcloud, parent: center, emulated: {release: corrected}}
      sub2: {role: subcloud, parent: center, emulated: {release: corrected}}
    hosts:
      desk: {system: center, emulated: {}}
      node1:
        system: sub1
        emulated: {}
        cards: {card0: {address: '0000:b2:00.0', identity: '64:4c:36:00:79:01', irreversible: [root-key]}}
      node2:
        system: sub2
        emulated: {}
        cards: {card0: {address: '0000:b4:00.0', identity: '64:4c:36:00:79:02'}}
"""

SCENARIOS = """
import pytest

def test_is_flashed_while_a_subcloud_is_away(cloud):
    cloud.given("node2/card0", root="A", boots_at="0000:b8:00.0")
    cloud.subclouds["sub2"].label(site="lab")
    cloud.controller.apply(cloud.controller.upload("A/csk0"), site="lab")
    cloud.audit()
    cloud.create_strategy()
    with cloud.applied_until("node2/card0", "transferring") as go_on:
        cloud.disturb("subcloud-offline", "sub2")
        go_on("programming")
        cloud.disturb("subcloud-offline", "-sub2")
    assert cloud.wait_for_strategy().state == "complete"
    cloud.delete_strategy()
    cloud.audit()

def test_is_refused(cloud):
    cloud.controller.apply(cloud.controller.upload("root-key-A"))
    cloud.audit()
    cloud.orchestrate()

def test_the_point_does_not_come(cloud):
    cloud.controller.apply(cloud.controller.upload("A/csk0"))
    cloud.audit()
    cloud.create_strategy(cloud_name="sub1")
    with cloud.applied_until("node2/card0", "programming"):
        raise AssertionError("it has come")

@pytest.mark.hil_release("stx-2020-07")
def test_has_the_release_that_it_names(cloud):
    cloud.look()

@pytest.mark.parametrize("cloud", ["alone", "nowhere"], indirect=True)
def test_is_no_cloud(cloud):
    raise AssertionError("it is one")

@pytest.mark.parametrize("hil_way", ["rest", "cli"])
def test_asks_by_both_ways(cloud, hil_way):
    assert cloud.driver.reporter == {"rest": "dcmanager", "cli": "dcmanager-cli"}[hil_way]
"""


@pytest.fixture
def cloud_plan(plan):
    """A plan over a lab with a cloud of two subclouds, and a system that is none."""
    (plan.folder / "inventory.yaml").write_text(INVENTORY, encoding="utf-8")
    return plan


def test_scenarios_about_a_cloud_are_judged(cloud_plan) -> None:
    done = cloud_plan.run(SCENARIOS, "--hil-way=cli")
    assert done.states == {
        "test_is_flashed_while_a_subcloud_is_away": "as-stated",
        "test_is_refused": "REFUSED",
        "test_the_point_does_not_come": "not-as-stated",
        "test_has_the_release_that_it_names": "as-stated",
        "test_is_no_cloud[alone]": "NOT_APPLICABLE",
        "test_is_no_cloud[nowhere]": "NOT_APPLICABLE",
        "test_asks_by_both_ways[rest]": "NOT_APPLICABLE",
        "test_asks_by_both_ways[cli]": "as-stated",
    }
    assert done.scenarios["test_is_refused"]["reason"].startswith("sub2, image ")
    faults = [r for r in done.records if isinstance(r, Fault)]
    assert [(fault.action, fault.point, fault.state, fault.detail) for fault in faults[:2]] == [
        ("subcloud-offline", "transferring", "fired", "sub2"),
        ("subcloud-offline", "programming", "fired", "-sub2"),
    ]
    assert [(fault.action, fault.state, fault.subject.name) for fault in faults[2:]] == [
        ("hold", "not-reached", "node2/card0")
    ]
    said = [r for r in done.records if isinstance(r, Claim | Intent | Observation)]
    assert all(record.source_time for record in said), "all of it has its lab time"
    looked = {
        str(r.parameters["subclouds"]) for r in said if isinstance(r, Intent) and "subclouds" in r.parameters
    }
    assert looked == {"['sub1', 'sub2']"}


REAL = """
import pytest

def test_is_orchestrated(cloud):
    cloud.controller.apply(cloud.controller.upload("A/csk0"))
    cloud.audit()
    assert cloud.orchestrate().state == "complete"
    cloud.audit()

def test_what_cannot_be_undone_needs_the_command_line(cloud):
    cloud.controller.upload("root-key-A")

def test_nothing_is_brought_about(cloud):
    cloud.disturb("dcmanager", False)

@pytest.mark.hil_release("corrected")
def test_no_real_cloud_is_without_defects(cloud):
    raise AssertionError("it is")
"""
#: Lab seconds that pass in one of a real cloud, so that its audits come.
SCALE = 60.0


@pytest.fixture
def real_plan(plan, monkeypatch, tmp_path):
    """A plan over a cloud that the harness takes for a real one: by URL and over SSH, without a bench."""
    own = tmp_path / "inventory.yaml"
    own.write_text(INVENTORY, encoding="utf-8")
    with start_lab(narrowed_to_cloud(load_inventory(own), None, "center"), scale=SCALE) as lab:
        doors, lines = lab.doors, ["version: 1", "default_lab: real", "labs:", "  real:", "    controllers:"]
        for name, door in doors.controllers.items():
            monkeypatch.setenv(f"PASSWORD_{name}", door.password)
            role = "role: system-controller" if name == "center" else "role: subcloud, parent: center"
            login = f"user: {door.user}, credentials: {{env: PASSWORD_{name}}}"
            lines.append(f"      {name}: {{{role}, url: '{door.url}', {login}}}")
        lines.append("    hosts:")
        for name, door in doors.hosts.items():
            host = lab.entry.hosts[name]
            cards = [f"{card.name}: {{address: '{card.address}'}}" for card in host.cards.values()]
            lines += [
                f"      {name}:",
                f"        system: {host.system}",
                f"        ssh: {{address: {door.address}, port: {door.port}, user: {door.user}, "
                f"known_hosts: '{doors.known_hosts}', credentials: {{key_file: '{doors.key_file}'}}}}",
                f"        cards: {{{', '.join(cards)}}}",
            ]
        (plan.folder / "inventory.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        yield plan


def test_a_real_cloud_is_driven_like_an_emulated_one(real_plan) -> None:
    done = real_plan.run(REAL, "--hil-way=cli")
    assert done.states == {
        "test_is_orchestrated": "as-stated",
        "test_what_cannot_be_undone_needs_the_command_line": "REFUSED",
        "test_nothing_is_brought_about": "NOT_APPLICABLE",
        "test_no_real_cloud_is_without_defects": "NOT_APPLICABLE",
    }
    running = [
        r.values["bitstream_id"] for r in done.records if r.kind == "observation" and r.probe == "card"
    ]
    assert running[-1] != running[0], "the image runs"
    looks = [r for r in done.records if isinstance(r, Intent) and r.operation == "look"]
    assert {look.parameters["asked"].count("alarm") for look in looks} == {2}


@pytest.mark.parametrize("name", ["slow", "api-down-after-unlock"])
def test_a_trouble_of_a_subcloud_needs_one(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is one of a subcloud, and none is named"):
        Cloud.disturb(Mock(spec=Cloud), name, 10)
