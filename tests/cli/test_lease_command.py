"""`hil lease`, and a kept lab that somebody else has: `hil card` writes nothing to it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.mounted import HIL
from support.plans import lay_out

from harness.inventory.load import load_inventory
from harness.lab.background import background_lab
from harness.lab.leasing import lease_key
from harness.leases.owner import Owner
from harness.leases.store import LeaseStore

Hil = Callable[..., "subprocess.CompletedProcess[str]"]
BOB = Owner("run-of-bob", "bench8", 4712, "2", "elsewhere")


@pytest.fixture
def hil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hil:
    monkeypatch.setenv("HIL_LEASES", f"sqlite:///{tmp_path}/leases.sqlite")
    lay_out(tmp_path)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([HIL, *words], cwd=tmp_path, capture_output=True, text=True, timeout=90)

    return run


@pytest.fixture
def store(hil: Hil, tmp_path: Path) -> Iterator[LeaseStore]:
    with LeaseStore(f"sqlite:///{tmp_path}/leases.sqlite") as opened:
        yield opened


def test_a_card_is_kept_for_a_person(hil: Hil) -> None:
    assert hil("lease", "take", "one/card0", "--reason", "by hand", "--ttl", "2h").returncode == 0
    (held,) = json.loads(hil("lease", "list", "-o", "json").stdout)["leases"]
    assert (held["card"], held["reason"], held["token"], held["pid"]) == ("one/card0", "by hand", 1, None)
    assert 7100 < held["seconds_left"] <= 7200
    again = hil("lease", "take", "one/card0", "--reason", "me too")
    assert again.returncode == 3
    assert "has the lease of one/card0" in again.stderr
    assert hil("lease", "release", "one/card0").returncode == 0
    assert hil("lease", "list").stdout == "Nobody has a card.\n"


def test_what_others_have_is_broken_and_not_released(hil: Hil, store: LeaseStore, tmp_path: Path) -> None:
    inventory = load_inventory(tmp_path / "inventory.yaml")
    kept = str(background_lab(inventory).directory.resolve())
    lease = store.acquire(
        lease_key(*inventory.lab().card("one/card0"), kept), "one/card0", BOB, "regression", 60
    )
    refused = hil("lease", "release", "one/card0")
    assert refused.returncode == 2
    assert "run-of-bob (process 4712 on bench8) does" in refused.stderr
    assert hil("lease", "break", "one/card0", "--reason", "bench8 is off").returncode == 0
    (broken,) = json.loads(hil("lease", "list", "-o", "json").stdout)["broken"]
    assert (broken["card"], broken["token"], broken["reason"]) == ("one/card0", lease.token, "bench8 is off")
    assert broken["owner"] == "run-of-bob (process 4712 on bench8)"
    assert hil("lease", "break", "one/card0", "--reason", "again").returncode == 2


def test_what_somebody_gives_as_a_reason_is_one_line_of_text(hil: Hil) -> None:
    hil("lease", "take", "one/card0", "--reason", "a\x1b[31mb\none/card1   free")
    (line,) = hil("lease", "list").stdout.splitlines()
    assert line.endswith(r"a\x1b[31mb\none/card1   free")
    assert r"(a\x1b[31mb\n" in hil("lease", "break", "one/card0", "--reason", "x").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("take", "one/card7", "--reason", "x"), "card7"),
        (("take", "one/card0", "--reason", "x", "--ttl", "soon"), "'soon' is no time."),
        (("take", "one/card0", "--reason", "x", "--ttl", f"1{'0' * 400}d"), "too long a time"),
        (("take", "one/card0", "--reason", "x", "--ttl", "367d"), "'367d' is too long a time."),
        (("list", "--leases", "none"), "cannot be switched off"),
    ],
)
def test_what_is_wrong_is_told(hil: Hil, words: tuple[str, ...], said: str) -> None:
    done = hil("lease", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_kept_lab_is_not_written_to_while_somebody_has_it(hil: Hil, tmp_path: Path) -> None:
    inventory = load_inventory(tmp_path / "inventory.yaml")
    lab = background_lab(inventory)
    lab.up(inventory)
    try:
        assert hil("lease", "take", "one/card0", "--reason", "by hand").returncode == 0
        refused = hil("card", "reset", "one/card0")
        assert refused.returncode == 3
        assert "by hand; nothing was changed" in refused.stderr
        assert hil("card", "show", "one/card0").returncode == 0, "to read it needs no lease"
        assert hil("lease", "release", "one/card0").returncode == 0
        done = hil("card", "reset", "one/card0")
        assert done.returncode == 0, done.stderr
        assert hil("lease", "list").stdout == "Nobody has a card.\n"
    finally:
        lab.down(forget=True)
