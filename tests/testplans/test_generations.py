"""A short form of the regression plan on one card of every driver generation and tool era, unchanged."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PLAN = PROJECT / "testplans" / "regression" / "flash"
ERAS = ("host", "docker", "containerd")
CARDS = [f"{generation}-{era}" for generation in "abcd" for era in ERAS]

#: Cells that every card can do: what lands, what is refused and by which check, what a reset, a lost power
#: and a lying tool do.
FOR_ALL = (
    "test_matrix.py::test_flash[{card}/card0-no-root--unsigned]",
    "test_matrix.py::test_flash[{card}/card0-no-root--root-key-A]",
    "test_matrix.py::test_flash[{card}/card0-root-A--A/csk0]",
    "test_matrix.py::test_flash[{card}/card0-root-A--unsigned]",
    "test_matrix.py::test_flash[{card}/card0-root-A--cancel-A-csk0]",
    "test_matrix.py::test_flash[{card}/card0-root-A-csk0-cancelled--A/csk0]",
    "test_matrix.py::test_flash[{card}/card0-root-A--raw-file]",
    "test_checks.py::test_damaged_image[{card}/card0-root-A--damage/csk-signature]",
    "test_interrupted.py::test_ctrl_c_before_programming[{card}/card0-transferring]",
    "test_interrupted.py::test_power_cut_before_copying[{card}/card0-transferring]",
    "test_interrupted.py::test_power_cut_while_copying[{card}/card0]",
    "test_reports.py::test_fpgainfo_tells_the_truth[{card}/card0]",
    "test_reports.py::test_all_ones_is_no_value[{card}/card0]",
    "test_reset.py::test_reset_activates[{card}/card0]",
    "test_reset.py::test_address_moves[{card}/card0]",
    "test_reset.py::test_wear_out[{card}/card0]",
)
#: Cells that need a driver which takes an update, or shows how far one is, by attributes: not A and C.
BY_ATTRIBUTES = (
    "test_checks.py::test_uploaded_past_the_tool[{card}/card0-root-A--unsigned]",
    "test_interrupted.py::test_sigterm_ends_only_the_tool[{card}/card0-programming]",
    "test_interrupted.py::test_ctrl_c_while_programming[{card}/card0]",
    "test_interrupted.py::test_cancel_while_transferring[{card}/card0]",
    "test_interrupted.py::test_cancel_while_programming[{card}/card0]",
)


def inventory() -> str:
    """Return an inventory with one host and card of every generation and era."""
    lines = ["version: 1", "default_lab: generations", "labs:", "  generations:", "    hosts:"]
    for number, name in enumerate(CARDS):
        generation, _, era = name.partition("-")
        lines += [
            f"      {name}:",
            f"        emulated: {{generation: {generation.upper()}, era: {era}}}",
            f"        cards: {{card0: {{address: '0000:b2:00.0', identity: '02:00:00:00:01:{number:02x}', "
            "irreversible: [root-key, key-cancellation]}}",
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, tuple[str, str]]]:
    """Run the cells once; return card -> cell -> state and its reason."""
    folder = tmp_path_factory.mktemp("generations")
    (folder / "inventory.yaml").write_text(inventory(), encoding="utf-8")
    (folder / "fixtures").symlink_to(PROJECT / "fixtures")
    cells = [f"{PLAN}/{cell}" for cell in (*FOR_ALL, *BY_ATTRIBUTES)]
    targets = [cell.format(card=card) for card in CARDS for cell in cells]
    (folder / "targets").write_text("\n".join(targets), encoding="utf-8")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", f"@{folder / 'targets'}", "-q", "-p", "no:allure_pytest"),
            *("-p", "no:xdist", "-c", str(PROJECT / "testplans" / "pytest.ini")),
            f"--hil-inventory={folder / 'inventory.yaml'}",
            f"--hil-reports={folder / 'reports'}",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    file = folder / "reports" / "latest" / "results.json"
    assert file.exists(), run.stdout + run.stderr
    found: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for scenario in json.loads(file.read_text(encoding="utf-8"))["scenarios"]:
        card = scenario["subject"]["host"]
        cell = (
            scenario["name"].rpartition("/flash/")[2].replace(f"[{card}/", "[{card}/")
        )  # as it is written above
        found[card][cell] = (scenario["state"], "; ".join((scenario["reason"], *scenario["reasons"])))
    return found


@pytest.mark.parametrize("card", CARDS)
def test_every_cell_is_as_stated_or_says_why_it_does_not_apply(
    results: dict[str, dict[str, tuple[str, str]]], card: str
) -> None:
    found = results[card]
    assert set(found) == {*FOR_ALL, *BY_ATTRIBUTES}
    assert {cell: found[cell] for cell in FOR_ALL if found[cell][0] != "as-stated"} == {}
    by_attributes = card[0] in "bd"
    for cell in BY_ATTRIBUTES:
        state, reason = found[cell]
        if by_attributes:
            assert state == "as-stated", (cell, reason)
        else:
            assert state == "NOT_APPLICABLE", (cell, reason)
            assert f"of generation {card[0].upper()}: its update interface is an ioctl" in reason
