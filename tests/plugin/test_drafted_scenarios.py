"""A scenario that was drafted from a bug report comes to the divergence that the report is about."""

import re
from pathlib import Path

from support.plans import LEAN, Ended

from harness.inventory.load import load_inventory
from harness.scenarios.field_logs.drafting import draft_scenario
from harness.scenarios.field_logs.reading import read_field_logs

PROJECT = Path(__file__).parents[2]
#: A cloud of one subcloud, which has another name than in the report.
INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    controllers:
      center: {role: system-controller, emulated: true}
      far: {role: subcloud, parent: center, emulated: true}
    hosts:
      desk: {system: center, emulated: {}}
      node:
        system: far
        emulated: {}
        cards: {card0: {address: '0000:b4:00.0', identity: '64:4c:36:00:7a:01'}}
"""


def report() -> str:
    """Return the report that the documents draft a scenario of."""
    page = (PROJECT / "docs/reproducing-a-field-failure.md").read_text("utf-8")
    found = re.search(r"^```text file=report\.txt\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_two_images_of_which_a_subcloud_has_one(pytester, monkeypatch) -> None:
    monkeypatch.delenv("HIL_INVENTORY", raising=False)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    (pytester.path / "inventory.yaml").write_text(INVENTORY, encoding="utf-8")
    (pytester.path / "fixtures").mkdir()
    (pytester.path / "fixtures/images.yaml").write_bytes((PROJECT / "fixtures/images.yaml").read_bytes())
    (pytester.path / "report.txt").write_text(report(), encoding="utf-8")
    log = read_field_logs([str(pytester.path / "report.txt")])
    text = draft_scenario(log, inventory=load_inventory(pytester.path / "inventory.yaml"))
    (pytester.path / "drafted.scenario.yaml").write_text(text, encoding="utf-8")

    ran = pytester.runpytest_subprocess(*LEAN, "drafted.scenario.yaml", timeout=110)

    done = Ended(pytester.path, int(ran.ret), ran.stdout.str(), ran.stderr.str())
    (found,) = done.scenarios.values()
    assert found["outcome"] == "AS_INTENDED", done.text
    assert found["verdicts"]["controller-applied"] == "CONTRADICTION"
    assert found["verdicts"]["sysinv-applied"] == "CONTRADICTION"
    assert [reason for reason in found["reasons"] if "alarm-900.006" not in reason] == [], (
        "but for an alarm that the report says nothing of, all is as the draft states"
    )
