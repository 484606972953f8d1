"""`hil sweep update`: the points that are passed, what it prints, and what is told of mistakes."""

from __future__ import annotations

import json

import pytest

INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    controllers:
      standard: {role: system-controller, emulated: true}
    hosts:
      all-in-one:
        system: standard
        emulated: {hostname: controller-0}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:00:00:01
            irreversible: [root-key, key-cancellation]
"""
SWEEP = ("sweep", "update", "--lab", "small")


@pytest.fixture
def system(project):
    (project.folder / "inventory.yaml").write_text(INVENTORY, encoding="utf-8")
    return project


def test_an_update_is_disturbed_by_the_command_of_the_system_too(system) -> None:
    words = (*SWEEP, "--way", "cli", "--action", "disk-full", "--point", "before-update", "-o", "json")
    ended = system.hil(*words)
    assert ended.code == 0, ended.text
    told = json.loads(ended.stdout)
    (trial,) = told["trials"]
    names = ("system", "image", "point", "action", "reported", "truth", "verdict")
    assert [trial[name] for name in names] == [
        *("standard", "A/csk0", "before-update", "disk-full"),
        *("failed", "old", "NOT_ATTEMPTED"),
    ]
    assert told["operation"] == "update"
    assert told["systems"]["standard"]["points"]["A/csk0"][-2:] == ["copying", "reported"]
    assert (
        "1/1 standard A/csk0 disk-full before-update: reported failed, it is old  (0 s left)" in ended.stderr
    )
    (run,) = (each for each in (system.folder / "reports").iterdir() if not each.is_symlink())
    assert json.loads((run / "sweep.json").read_text()) == told
    system.assert_nothing_left()


def test_the_points_that_an_update_passes_can_be_listed(system) -> None:
    """A root key passes no copying: fact sheet of the N3000, section 4.4."""
    ended = system.hil(*SWEEP, "--image", "root-key-A", "--list")
    assert ended.code == 0, ended.text
    points = (
        "before-upload, before-apply, before-update, preparing, transferring, programming, authenticating"
    )
    assert ended.stdout == f"standard  root-key-A: {points}, reported\n"
    assert not (system.folder / "reports").exists(), "nothing is kept of it"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--action", "agent-kiled"), "Did you mean 'agent-killed'?"),
        (("--system", "standrad"), "Did you mean 'standard'?"),
        (("--release", "stx-2020-70"), "Did you mean 'stx-2020-07'?"),
    ],
)
def test_a_mistake_is_told_at_once(system, words, hint) -> None:
    ended = system.hil(*SWEEP, *words)
    assert ended.code == 2, ended.text
    assert hint in ended.stderr
    assert not (system.folder / "reports").exists()
