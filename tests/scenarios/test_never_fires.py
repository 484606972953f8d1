"""Faults that can never fire: said of a scenario file before it runs, where its steps tell."""

from pathlib import Path

import pytest

from harness.plugin import steps  # noqa: F401 -- it knows them all
from harness.scenarios.files import load_scenario
from harness.scenarios.never_fires import never_fires

HEAD = "about: x\nsource: y\nsteps:\n"
FLASH = "  - flash: A/csk0\n    promise: lands\n"


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Returns what is said of the steps of a file."""
    monkeypatch.chdir(tmp_path)

    def of(text: str) -> list[str]:
        (tmp_path / "it.scenario.yaml").write_text(HEAD + text, encoding="utf-8")
        return never_fires(load_scenario(tmp_path / "it.scenario.yaml"))

    return of


def fault(action: str, at: str) -> str:
    return f"  - fault: {action}\n    at: {at}\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (fault("sigterm", "programming") + "  - reset\n", ": no flash follows it"),
        (FLASH + fault("cancel", "transferring"), ": no flash follows it"),
        (fault("sigint", "start") + FLASH, ": nothing runs at the point start"),
        (
            fault("power-cut", "copying") + "  - flash: unsigned\n    promise: unchanged 0x11\n",
            ": the flash that follows (it.scenario.yaml:6) is refused before the card copies",
        ),
        (
            fault("sigterm", "programming") + FLASH + "    by: firmware-upload\n",
            ": the flash that follows (it.scenario.yaml:6) is by firmware-upload",
        ),
    ],
    ids=["no flash", "too late", "nothing runs", "refused", "no phases"],
)
def test_a_fault_in_vain_is_told_with_its_line(said, text, why) -> None:
    (found,) = said(text)
    line = 6 if text.startswith(FLASH) else 4
    assert found.startswith(f"it.scenario.yaml:{line}: fault: ")
    assert f"never fires{why}" in found


def test_a_second_updater_in_vain_is_told_too(said) -> None:
    other = "  - second-updater: unsigned\n    at: {}\n"
    assert said(other.format("preparing") + FLASH) == []
    (found,) = said(other.format("start") + FLASH)
    assert found.startswith("it.scenario.yaml:4: second-updater: at start never fires: nothing runs")
    (found,) = said(FLASH + other.format("preparing"))
    assert found.startswith("it.scenario.yaml:6: second-updater: at preparing never fires: no flash follows")


def test_a_push_that_its_action_never_strikes_is_told(said) -> None:
    push = "  - push: small\n    client: oci-once\n    at: after:blob-post\n"
    (found,) = said(f"{push}    action: kill-at-open:manifest-blob\n")
    assert found.startswith("it.scenario.yaml:4: push: kill-at-open:manifest-blob at after:blob-post")
    assert found.endswith("it strikes only at before:manifest-put")


@pytest.mark.parametrize(
    "text",
    [
        fault("sigterm", "copying") + FLASH,
        fault("move", "start") + "  - reset\n",
        fault("note", "start") + "  - reset\n",
        fault("cancel", "transferring") + "  - report\n" + FLASH,
        fault("power-cut", "authenticating") + "  - flash: unsigned\n    promise: unchanged 0x11\n",
        fault("power-cut", "copying") + "  - flash: A/csk0\n    promise: unchanged\n",
        "  - push: small\n    client: oci-once\n    at: before:manifest-put\n    action: rotate-keys\n",
    ],
)
def test_one_that_may_fire_is_not(said, text) -> None:
    assert said(text) == []
