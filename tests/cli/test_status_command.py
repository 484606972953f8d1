"""`hil status`: what a system says of a card beside what the card holds, and the verdict."""

import json

import pytest

INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    controllers:
      good: {role: system-controller, emulated: {release: corrected}}
      blind: {role: system-controller, emulated: {release: corrected}}
    hosts:
      one:
        system: good
        emulated: {hostname: compute-0}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:00:00:01
            emulated: {sr_root: root-key-A, sr_cancelled: [1, 2]}
      two: # Its tools do not know the drivers of its kernel.
        system: blind
        emulated: {hostname: compute-0, era: containerd}
        cards: {card0: {address: '0000:b2:00.0', identity: '64:4c:36:00:00:02'}}
"""


@pytest.fixture
def systems(project):
    """A project whose lab has two systems."""
    (project.folder / "inventory.yaml").write_text(INVENTORY, encoding="utf-8")
    return project


@pytest.mark.parametrize("way", ["rest", "cli"])
def test_a_card_is_shown_beside_what_its_system_says(systems, way: str) -> None:
    done = systems.hil("status", "good", "--way", way)
    assert done.code == 0, done.text
    rows = {line.split()[1]: line.split() for line in done.stdout.splitlines()}
    assert rows["bitstream_id"] == [
        "one/card0",
        "bitstream_id",
        "0x23001410010310",
        "0x23001410010310",
        "MATCH",
    ]
    assert rows["revoked_key_ids"][-2:] == ["1,2", "MATCH"]
    assert "two/card0" not in done.stdout
    assert rows["alarm"][-1] == "MATCH"


def test_what_differs_is_told_and_counts(systems) -> None:
    done = systems.hil("status", "-o", "json")
    assert done.code == 1
    rows = {(row["device"], row["what"]): row for row in json.loads(done.stdout)}
    assert rows["one/card0", "root_key"]["verdict"] == "MATCH"
    blind = rows["two/card0", "bitstream_id"]
    assert (blind["said"], blind["verdict"]) == ("empty", "UNKNOWN_AS_VALUE")
    assert blind["truth"].startswith("0x23001410010310")
    assert not (systems.folder / "reports").exists(), "nothing is written"


def test_a_wrong_name_is_told(systems, project) -> None:
    done = systems.hil("status", "goud")
    assert done.code == 2
    assert "Did you mean 'good'?" in done.text or "did you mean 'good'?" in done.text
