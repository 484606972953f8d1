"""Firmware of subclouds by orchestration, by API and by command, every statement held to every card.

What is expected: fact sheet of StarlingX, sections 5.1 to 5.6; Intel FPGA PAC N3000 Security User Guide
(683519).
"""

import pytest

pytestmark = [
    pytest.mark.hil_lab("emulated"),
    pytest.mark.hil_release("corrected"),
    pytest.mark.hil_requirement("CLOUD-SYNC"),
]


def label_all(cloud):
    """Give every card the label by which images are applied."""
    for subcloud in cloud.subclouds.values():
        subcloud.label(site="lab")


@pytest.mark.parametrize("hil_way", ["rest", "cli"])
@pytest.mark.parametrize("options", [{"subcloud_apply_type": "serial"}, {"max_parallel": 4}])
def test_one_image_after_another(cloud, options):
    """Upload, apply, orchestrate, and the same with a second image once the first one is removed."""
    label_all(cloud)
    first = cloud.controller.upload("A/csk0")
    cloud.controller.apply(first, site="lab")
    cloud.audit()
    assert cloud.orchestrate(**options).state == "complete"
    cloud.audit()
    cloud.delete_strategy()
    cloud.controller.remove(first, site="lab")
    cloud.controller.delete(first)
    cloud.controller.apply(cloud.controller.upload("A/csk1"), site="lab")
    cloud.audit()
    assert cloud.orchestrate(**options).state == "complete"
    cloud.audit()


def test_root_key_and_the_image_that_it_signs(cloud):
    """In one strategy, to every device: the key is written first."""
    cloud.controller.apply(cloud.controller.upload("root-key-A"))
    cloud.controller.apply(cloud.controller.upload("A/csk1"))
    cloud.audit()
    cloud.orchestrate()
    cloud.audit()


def test_each_subcloud_has_an_image_of_its_own(cloud):
    """By labels that differ; where none is applied to a label, nothing is written."""
    for name, subcloud in cloud.subclouds.items():
        subcloud.label(site=name)
    cloud.controller.apply(cloud.controller.upload("A/csk0"), site="subcloud1")
    cloud.controller.apply(cloud.controller.upload("A/csk1"), site="subcloud2")
    cloud.audit()
    cloud.orchestrate()
    cloud.audit()


def test_one_subcloud_alone(cloud):
    """The others wait for the next strategy, and are out of sync until then."""
    cloud.controller.apply(cloud.controller.upload("A/csk0"))
    cloud.audit()
    cloud.orchestrate(cloud_name="subcloud2")
    cloud.audit()
    cloud.delete_strategy()
    cloud.orchestrate(group="Default")
    cloud.audit()


@pytest.mark.hil_expects(outcome="FAILED")  # of the strategy that did not come to the other cards
def test_a_strategy_that_is_aborted_before_it_begins_with_all(cloud):
    """One subcloud after the other: the first one comes to its end, the rest is not begun with."""
    cloud.controller.apply(cloud.controller.upload("A/csk0"))
    cloud.audit()
    cloud.create_strategy(subcloud_apply_type="serial")
    with cloud.applied_until("subcloud1/card0", "programming"):
        cloud.abort_strategy()
    cloud.wait_for_strategy("aborted")
    cloud.audit()
    cloud.delete_strategy()
    cloud.orchestrate()
    cloud.audit()


@pytest.mark.hil_expects(outcome="FAILED")
def test_what_is_refused_is_refused_with_the_text_that_is_documented(cloud):
    """Nothing to do, a strategy that exists, an unknown subcloud, and a status that is not known yet."""
    refused = cloud.controller.refused
    cloud.audit()
    assert "Bad strategy request" in refused(cloud.create_strategy)
    assert "Subcloud nobody does not exist" in refused(cloud.create_strategy, cloud_name="nobody")
    cloud.controller.apply(cloud.controller.upload("A/csk0"))
    assert "unknown" in refused(cloud.create_strategy)
    cloud.audit()
    cloud.create_strategy()
    assert "already exists" in refused(cloud.create_strategy)
    assert "cannot be aborted" in refused(cloud.abort_strategy)
    cloud.delete_strategy()
