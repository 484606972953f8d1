"""Options, inventories and markers that are wrong: one clear message, no traceback, nothing run."""

import pytest
from support.plans import Ended, lines_with

ONE = """
def test_one(card):
    card.reset()
"""
BOTH = """
@pytest.mark.parametrize("image", ["x", "y"])
def test_card(card, image):
    pass

def test_host(host):
    pass

def test_of_a_card_and_its_host(card, host):
    pass

def test_plain():
    pass
"""


def collected(run: Ended) -> set[str]:
    return {line.split("::", 1)[1] for line in run.stdout.splitlines() if "::" in line}


def assert_one_message(run: Ended, message: str, hint: str) -> None:
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert [line for line in run.stderr.splitlines() if line] == [f"ERROR: {message}", f"  hint: {hint}"]
    assert not any(word in run.stdout for word in ("Traceback", "INTERNALERROR", "Error"))
    assert not (run.folder / "reports").exists()


def test_the_device_is_in_the_node_id(plan) -> None:
    assert collected(plan.run(BOTH, "--collect-only", "-q")) == {
        *(f"test_card[{device}-{image}]" for device in ("one/card0", "two/card0") for image in "xy"),
        *("test_host[one]", "test_host[two]"),
        *("test_of_a_card_and_its_host[one/card0]", "test_of_a_card_and_its_host[two/card0]"),
        "test_plain",
    }


@pytest.mark.parametrize(
    ("devices", "cards", "hosts"),
    [
        (["one"], {"one/card0"}, {"one"}),
        (["two/card0"], {"two/card0"}, {"two"}),
        (["one", "two/card0"], {"one/card0", "two/card0"}, {"one", "two"}),
    ],
)
def test_devices_are_chosen_by_host_and_by_card(
    plan, devices: list[str], cards: set[str], hosts: set[str]
) -> None:
    source = "def test_c(card): pass\n\ndef test_h(host): pass\n"
    found = collected(plan.run(source, "--collect-only", "-q", *(f"--hil-device={name}" for name in devices)))
    assert found == {f"test_c[{card}]" for card in cards} | {f"test_h[{host}]" for host in hosts}


def test_a_lab_without_cards_is_blocked_and_says_so(plan) -> None:
    path = plan.folder / "inventory.yaml"
    path.write_text(path.read_text().replace("      two:", "      three:\n        emulated: {}\n      two:"))
    run = plan.run(ONE, "--hil-device=three")
    assert run.states == {"test_one[no card]": "BLOCKED"}
    assert "the lab has no card, or --hil-device leaves none" in run.stdout


@pytest.mark.parametrize(
    ("option", "message", "hint"),
    [
        (
            "--hil-device=tow",
            "There is no card or host 'tow' in lab small.",
            "Did you mean 'two'? Known: one/card0, two/card0, one, two.",
        ),
        (
            "--hil-device=one/card1",
            "There is no card or host 'one/card1' in lab small.",
            "Did you mean 'one/card0'? Known: one/card0, two/card0, one, two.",
        ),
        (
            "--hil-lab=smal",
            "There is no lab 'smal' in inventory.yaml.",
            "Did you mean 'small'? Known: small.",
        ),
        (
            "--hil-irreversible=root-key,rootkey",
            "--hil-irreversible names 'rootkey', and there is no such irreversible act.",
            "Known: root-key,key-cancellation.",
        ),
        (
            "--hil-inventory=none.yaml",
            "The inventory none.yaml cannot be read: No such file or directory.",
            "Name another file with --inventory or HIL_INVENTORY.",
        ),
    ],
)
def test_wrong_option_is_told_with_what_is_known(plan, option: str, message: str, hint: str) -> None:
    plan.write(ONE, "test_another.py")
    assert_one_message(plan.run(ONE, option), message, hint)


def test_wrong_inventory_is_told_with_file_and_line(plan) -> None:
    path = plan.folder / "inventory.yaml"
    path.write_text(path.read_text().replace("address:", "adress:", 1))
    run = plan.run(ONE)
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert lines_with(run.stderr, "inventory.yaml:10", "adress")
    assert "Traceback" not in run.text


def test_inventory_is_not_asked_for_where_no_test_needs_a_lab(plan) -> None:
    (plan.folder / "inventory.yaml").unlink()
    assert plan.run("def test_plain(): pass\n", "--hil-device=nowhere").code == 0
    run = plan.run(ONE)
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert "There is no inventory.yaml in" in run.stderr


@pytest.mark.parametrize(
    ("markers", "message", "hint"),
    [
        (
            "hil_expects(outcome='FAILD')",
            "the marker hil_expects says the outcome 'FAILD'.",
            "Known: BREACH, FAILED, UNKNOWN, AS_INTENDED.",
        ),
        (
            "hil_expects(verdicts={'rsu': 'FALSE_SUCCES'})",
            "the marker hil_expects says the verdict 'FALSE_SUCCES'.",
            "Known: FALSE_SUCCESS, LOST, FALSE_FAILURE, NOT_ATTEMPTED, UNKNOWN_AS_VALUE, CONTRADICTION, "
            "MISREPORT, STALE, UNVERIFIABLE, MATCH.",
        ),
        (
            "hil_expects(verdict={'rsu': 'FALSE_SUCCESS'})",
            "the marker hil_expects says (verdict={'rsu': 'FALSE_SUCCESS'}).",
            "It takes outcome='FAILED' and verdicts={'fpgasupdate': 'FALSE_SUCCESS'}, each optional.",
        ),
        (
            "hil_expects('FAILED')",
            "the marker hil_expects says ('FAILED').",
            "It takes outcome='FAILED' and verdicts={'fpgasupdate': 'FALSE_SUCCESS'}, each optional.",
        ),
        (
            "hil_expects(verdicts='FALSE_SUCCESS')",
            "the marker hil_expects says verdicts='FALSE_SUCCESS'.",
            "It takes outcome='FAILED' and verdicts={'fpgasupdate': 'FALSE_SUCCESS'}, each optional.",
        ),
        (
            "hil_given(roots='A')",
            "the marker hil_given says (roots='A').",
            "It takes root='A', cancelled=[0], flash_count=1500 and bmc_root='A', each optional.",
        ),
        (
            "hil_given(root='A', cancelled='0')",
            "hil_given: cancelled is '0', and no list of CSK ids.",
            "It takes whole numbers from 0 to 127, such as [0, 5].",
        ),
        (
            "hil_given(flash_count='many')",
            "hil_given: flash_count is 'many', and no whole number.",
            "It is the number of updates that the card has behind it at least.",
        ),
        (
            "hil_requires('pwoer')",
            "hil_requires: There is no capability 'pwoer' in any host of a lab.",
            "Did you mean 'power'? Known: power, bench.",
        ),
        (
            "hil_requires(power=True)",
            "the marker hil_requires says (power=True).",
            "It takes names: hil_requires('power').",
        ),
    ],
)
def test_marker_with_a_wrong_value_is_told_before_anything_runs(
    plan, markers: str, message: str, hint: str
) -> None:
    run = plan.run(f"{ONE}\n@pytest.mark.{markers}\ndef test_two(card):\n    pass\n")
    assert_one_message(run, f"test_plan.py::test_two: {message}", hint)


def test_unknown_root_key_lists_the_known_ones(plan) -> None:
    run = plan.run("@pytest.mark.hil_given(root='C')\ndef test_two(card):\n    pass\n")
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert "test_plan.py::test_two: hil_given: Unknown root key 'C'." in run.stderr
    assert "'none'" in run.stderr
    assert " A," in run.stderr


def test_marker_about_a_card_needs_one(plan) -> None:
    run = plan.run("@pytest.mark.hil_given(root='A')\ndef test_two(lab):\n    pass\n")
    assert_one_message(
        run,
        "test_plan.py::test_two: hil_given is about a card or a system, and the test asks for none.",
        "Give it the fixture 'card', or one that needs it, such as 'flash'.",
    )


def test_given_as_a_parameter_is_held_to_the_same_rules(plan) -> None:
    run = plan.run(
        "@pytest.mark.parametrize('given', [{'rot': 'A'}])\ndef test_two(card, given):\n    pass\n",
        "--hil-device=one",
    )
    assert run.states == {"test_two[one/card0-given0]": "BLOCKED"}
    assert run.scenarios["test_two[one/card0-given0]"]["reason"].startswith("Unknown state 'rot'.")
