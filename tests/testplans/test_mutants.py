"""The regression plan catches a card that leaves out any one of its checks, and no sound card."""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.emulator.card.profile import CHECK_CODES
from harness.scenarios.table import load_cells

PROJECT = Path(__file__).parents[2]
FLASH = PROJECT / "testplans" / "regression" / "flash"
FILES = {
    "test_matrix.py::test_flash": "matrix.yaml",
    "test_checks.py::test_damaged_image": "checks.yaml",
    "test_checks.py::test_uploaded_past_the_tool": "uploads.yaml",
}
CONTROL = "control"


def cells_with(code: str) -> Iterator[str]:
    """Yield the node id (but for the device) of every cell for which documents name ``code``."""
    for test, table in FILES.items():
        for cell in load_cells(FLASH / table):
            if code in cell.promise.codes:
                yield f"{FLASH}/{test}[{{card}}/card0-{cell.id}]"


def node_ids() -> list[str]:
    """Return the cells that each defective card must fail, and all of those for the sound one."""
    ids = []
    for check, number in CHECK_CODES.items():
        for cell in cells_with(f"0x{number:02X}"):
            ids += [cell.format(card=check), cell.format(card=CONTROL)]
    return list(dict.fromkeys(ids))


def inventory() -> str:
    """Return an inventory with one card per check, each without that check, and one sound card."""
    lines = ["version: 1", "default_lab: mutants", "labs:", "  mutants:", "    hosts:"]
    for number, check in enumerate([CONTROL, *CHECK_CODES]):
        disabled = f", emulated: {{profile: {{disabled_checks: [{check}]}}}}" if check != CONTROL else ""
        lines += [
            f"      {check}:",
            "        emulated: {}",
            f"        cards: {{card0: {{address: '0000:b2:00.0', identity: '02:00:00:00:00:{number:02x}', "
            f"irreversible: [root-key, key-cancellation]{disabled}}}}}",
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Run the cells once; return card -> scenario -> state."""
    folder = tmp_path_factory.mktemp("mutants")
    (folder / "inventory.yaml").write_text(inventory(), encoding="utf-8")
    (folder / "fixtures").symlink_to(PROJECT / "fixtures")
    (folder / "targets").write_text("\n".join(node_ids()), encoding="utf-8")
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
    results = folder / "reports" / "latest" / "results.json"
    assert results.exists(), run.stdout + run.stderr
    states: dict[str, dict[str, str]] = defaultdict(dict)
    for scenario in json.loads(results.read_text(encoding="utf-8"))["scenarios"]:
        card = scenario["subject"]["host"]
        states[card][scenario["name"]] = scenario["state"]
    return states


def test_a_sound_card_is_as_stated(verdicts: dict[str, dict[str, str]]) -> None:
    assert verdicts[CONTROL]
    assert set(verdicts[CONTROL].values()) == {"as-stated"}


@pytest.mark.parametrize("check", CHECK_CODES)
def test_a_card_without_the_check_is_caught(check: str, verdicts: dict[str, dict[str, str]]) -> None:
    assert "not-as-stated" in verdicts[check].values(), verdicts[check]
