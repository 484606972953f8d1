"""What checks find of a card and of its host: a tree of real files as sysfs, real programs that read it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cards import FileCard, add_card, attributes_of

from harness.cards.truth import CardTruth
from harness.errors import InfrastructureError
from harness.health.card_checks import idle_check, updater, wear_check
from harness.health.checks import Check, Grade, worst
from harness.health.host_checks import (
    LARGEST_IMAGE,
    Moment,
    clock_check,
    host_checks,
    host_questions,
    space_check,
)
from harness.health.known_troubles import tool_checks, version_of
from harness.health.looking import look_at_card, look_at_host
from harness.hosts.local import LocalHost
from harness.hosts.protocol import CommandResult
from harness.inventory.model import Card, Host
from harness.judgement.values import NOT_EXPOSED, Unknown

MAC, OTHER = "64:4c:36:00:12:a0", "64:4c:36:00:12:b0"
TOOLS = ("fpgasupdate", "rsu", "fpgainfo")
#: A host without cards is asked nothing more, whatever it says.
HOST = Host.model_validate({"name": "one", "local": True})
ASKED = host_questions(HOST)
NOBODY: Any = None
#: Where no other test has a card: processes of this machine are looked through for this address.
ADDRESS, ELSEWHERE = "0000:a7:00.0", "0000:a9:00.0"


@dataclass
class Bench:
    """A host of files and its one card."""

    folder: Path
    card: FileCard

    def entry(self, **card: Any) -> tuple[Host, Card]:
        """Return the host as an inventory has it, with what is said of its card."""
        stated = {"name": "card0", "address": ADDRESS, "identity": MAC} | card
        known = {key: value for key, value in stated.items() if value is not None}
        tools = {name: str(self.folder / name) for name in TOOLS}
        host = Host.model_validate(
            {
                "name": "one",
                "local": True,
                "sysfs": str(self.folder / "sys"),
                "upload_dir": str(self.folder),
                "tools": tools,
                "cards": {"card0": known},
            }
        )
        return host, host.cards["card0"]

    def look(self, **card: Any) -> dict[str, Check]:
        """Return the checks of the card by name; those of the host where it has no such name."""
        host, entry = self.entry(**card)
        looked = look_at_card(host, entry, LocalHost("one", tools=host.tools.model_dump()))
        return {check.name: check for check in looked.checks}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    for name in TOOLS:
        (tmp_path / name).write_text("#!/bin/sh\necho 'fpgasupdate 2.14.0'\n")
        (tmp_path / name).chmod(0o755)
    made = Bench(tmp_path, add_card(tmp_path / "sys", ADDRESS, MAC))
    made.card.write("sec/control/image_load", "")
    return made


def test_a_card_that_is_well(bench: Bench) -> None:
    found = bench.look()
    assert {name: check.grade for name, check in found.items() if name != "account"} == dict.fromkeys(
        ("kernel", "clock", "tools", "upload_dir", "card", "driver", "idle", "wear"), Grade.OK
    )
    assert found["tools"].finding == "fpgasupdate 2.14.0"
    assert found["wear"].finding == "12 updates"


Trouble = Callable[[Bench], object]
#: What is wrong -> how, which check says so, how bad that is, and words of what it says.
TROUBLES: dict[str, tuple[Trouble, str, Grade, str]] = {
    "another card stands there": (
        lambda b: b.card.write("bmc/mac_address", OTHER + "\n"),
        "card",
        Grade.BAD,
        f"another card: {OTHER} answers at {ADDRESS}, and {MAC} is nowhere",
    ),
    "no card": (
        lambda b: b.card.device.unlink(),
        "card",
        Grade.BAD,
        f"no card at {ADDRESS}",
    ),
    "it moved": (lambda b: b.card.move(ELSEWHERE), "card", Grade.OK, f"{MAC} at {ELSEWHERE}"),
    "two say that they are it": (
        lambda b: add_card(b.folder / "sys", ELSEWHERE, MAC),
        "card",
        Grade.BAD,
        f"two cards say that they are {MAC}",
    ),
    "its MAC cannot be read": (
        lambda b: b.card.file("bmc/mac_address").unlink(),
        "card",
        Grade.BAD,
        "which card stands",
    ),
    "another function": (
        lambda b: b.card.write("device", "0x0d58\n"),
        "pci id",
        Grade.BAD,
        "8086:0d58 stands at",
    ),
    "it fell off the bus": (
        lambda b: b.card.write("fme/bitstream_id", "0xffffffffffffffff\n"),
        "driver",
        Grade.BAD,
        "all ones",
    ),
    "no driver": (
        lambda b: b.card.write("uevent", "PCI_ID=8086:0B30\n"),
        "driver",
        Grade.BAD,
        "no driver bound",
    ),
    "no driver of its updates": (
        lambda b: shutil.rmtree(b.card.file("sec/firmware")),
        "driver",
        Grade.BAD,
        "no update interface",
    ),
    "an update runs": (
        lambda b: b.card.write("sec/firmware/secure-update0/status", "programming\n"),
        "idle",
        Grade.BAD,
        "an update runs: programming",
    ),
    "a kernel whose driver does not reset it": (
        lambda b: shutil.rmtree(b.card.file("sec/control")),
        "reset",
        Grade.WARN,
        "LP 2160223",
    ),
    "a kernel that shows no keys": (
        lambda b: [b.card.file(f"sec/security/{s}_root_entry_hash").unlink() for s in ("sr", "bmc", "pr")],
        "security",
        Grade.WARN,
        "opae-sdk #3172",
    ),
    "a tool that is old": (
        lambda b: (b.folder / "fpgasupdate").write_text("#!/bin/sh\necho 'fpgasupdate 2.3.1'\n"),
        "tool version",
        Grade.WARN,
        "opae-sdk #2816",
    ),
    "a tool is missing": (
        lambda b: (b.folder / "rsu").unlink(),
        "tools",
        Grade.BAD,
        "rsu is missing",
    ),
}


@pytest.mark.parametrize("name", TROUBLES)
def test_each_trouble_is_found_and_has_a_hint(bench: Bench, name: str) -> None:
    make, check, grade, words = TROUBLES[name]
    make(bench)
    found = bench.look()[check]
    assert (found.grade, words in found.finding) == (grade, True), found
    assert found.hint


def test_a_card_that_moved_is_checked_where_it_is(bench: Bench) -> None:
    bench.card.move(ELSEWHERE)
    bench.card.write("sec/security/flash_count", "77\n")
    found = bench.look()
    assert found["driver"].grade is Grade.OK
    assert found["wear"].finding == "77 updates"


def test_the_flash_of_a_card_that_is_busy_is_not_read(bench: Bench) -> None:
    bench.card.write("sec/firmware/secure-update0/status", "transferring\n")
    assert "wear" not in bench.look()


def test_a_card_whose_identity_nobody_stated_is_told_how_to_state_it(bench: Bench) -> None:
    found = bench.look(identity=None)["card"]
    assert found.grade is Grade.OK
    assert f"identity: {MAC}" in found.hint


@pytest.mark.parametrize("generation", ["A", "B", "C"])
def test_other_generations_are_well_too(tmp_path: Path, bench: Bench, generation: str) -> None:
    card = add_card(tmp_path / "other/sys", ADDRESS, MAC, generation)
    assert attributes_of(generation)
    other = Bench(tmp_path / "other", card)
    for name in TOOLS:
        shutil.copy(tmp_path / name, tmp_path / "other" / name)
    found = other.look()
    assert worst(check for name, check in found.items() if name != "account") is Grade.OK
    assert f"generation {generation}" in found["driver"].finding


@pytest.mark.parametrize(
    ("count", "limit", "grade", "words"),
    [
        (12, None, Grade.OK, "12 updates"),
        (1000, None, Grade.OK, "1000 updates"),
        (1001, None, Grade.OK, "delays each by 30 s"),
        (2001, None, Grade.OK, "delays each by 60 s"),
        (89, 100, Grade.OK, "89 updates of 100"),
        (100, 100, Grade.WARN, "its entry allows 100"),
        (Unknown("Input/output error"), None, Grade.OK, "Input/output error"),
        (
            Unknown("Input/output error"),
            100,
            Grade.WARN,
            "no further update begins",
        ),  # as the interlock has it
    ],
)
def test_wear_is_told_as_the_card_and_its_entry_take_it(
    count: int | Unknown, limit: int | None, grade: Grade, words: str
) -> None:
    found = wear_check(count, limit)
    assert (found.grade, words in found.finding) == (grade, True), found


def test_the_allowance_of_the_inventory_is_what_counts(bench: Bench) -> None:
    assert bench.look(wear={"flash_count": 12})["wear"].grade is Grade.WARN
    assert bench.look(wear={"flash_count": 13})["wear"].hint
    assert not bench.look(wear={"flash_count": 20})["wear"].hint


SH = "7 sh -c LC_ALL=C.UTF-8 fpgasupdate --version; echo 0000:a7:00.0"


@pytest.mark.parametrize(
    ("listed", "process"),
    [
        ("", ""),
        (SH, ""),
        ("9 vi fpgasupdate.py", ""),
        (f"9 python3 /usr/bin/fpgasupdate -y image.bin {ELSEWHERE}", ""),
        (f"{SH}\n9 python3 /usr/bin/fpgasupdate -y image.bin {ADDRESS}", "9"),
        (f"9 python3 /usr/bin/rsu bmcimg {ADDRESS}", "9"),
        (f"9 docker run -t --privileged img fpgasupdate -y /mnt/images/x {ADDRESS}", "9"),
    ],
)
def test_a_process_that_works_on_the_card_is_seen(listed: str, process: str) -> None:
    assert updater(listed, ADDRESS).partition(" ")[0] == process
    truth = CardTruth(address=ADDRESS, update_status=NOT_EXPOSED)
    assert idle_check(truth, listed).grade is (Grade.BAD if process else Grade.OK)


def test_a_status_that_cannot_be_read_is_no_idle_card() -> None:
    truth = CardTruth(address=ADDRESS, update_status=Unknown("Input/output error"))
    assert idle_check(truth, "").grade is Grade.WARN


def said(out: str, code: int = 0, err: str = "") -> CommandResult:
    return CommandResult(("x",), code, out, err, 0.1)


@pytest.mark.parametrize(
    ("clock", "grade", "words"),
    [
        ("1000", Grade.OK, ""),
        ("995", Grade.OK, ""),
        ("1015", Grade.OK, ""),
        ("400", Grade.WARN, "599 s behind"),
        ("4600", Grade.WARN, "3590 s ahead"),
        ("", Grade.WARN, "does not say"),
        ("soon", Grade.WARN, "does not say"),
    ],
)
def test_a_clock_is_wrong_as_far_as_the_exchange_shows_it(clock: str, grade: Grade, words: str) -> None:
    """The host was asked between second 1000 and 1010: whatever fits into that is no skew."""
    found = clock_check(said(clock + "\n"), Moment(1000.0, 1010.0))
    assert (found.grade, words in found.finding) == (grade, True), found


def df(free_kib: int) -> CommandResult:
    head = "Filesystem 1024-blocks Used Available Capacity Mounted on\n"
    return said(f"{head}/dev/sda2 524288 2 {free_kib} 0% /\n")


@pytest.mark.parametrize(
    ("result", "grade"),
    [
        (df(LARGEST_IMAGE // 1024 * 2), Grade.OK),
        (df(LARGEST_IMAGE // 1024 * 2 - 1), Grade.WARN),
        (df(LARGEST_IMAGE // 1024), Grade.WARN),
        (df(LARGEST_IMAGE // 1024 - 1), Grade.BAD),
        (df(0), Grade.BAD),
        (said("", 1, "df: /images: No such file or directory\n"), Grade.BAD),
        (said("nonsense\n"), Grade.BAD),
    ],
)
def test_an_image_of_any_size_must_find_room(result: CommandResult, grade: Grade) -> None:
    found = space_check("/images", result)
    assert found.grade is grade
    assert bool(found.hint) == (grade is not Grade.OK)


@pytest.mark.parametrize(
    ("text", "version"),
    [("fpgasupdate 2.14.0", (2, 14, 0)), ("2.4.0-1", (2, 4, 0)), ("1.4", (1, 4, 0)), ("", None), ("x", None)],
)
def test_versions_are_read_from_what_tools_say(text: str, version: tuple[int, ...] | None) -> None:
    assert version_of(text) == version


def test_an_old_tool_is_well_with_drivers_that_do_not_transfer() -> None:
    assert list(tool_checks(CardTruth(generation="B"), "fpgasupdate 1.4.1")) == []


@given(st.text(), st.text(), st.integers(-1, 255))
def test_no_text_of_a_host_is_an_error(out: str, err: str, code: int) -> None:
    """Whatever a damaged host answers: a check says something of it, and what is bad has a hint."""
    answer = said(out, code, err)
    for check in (clock_check(answer, Moment(0.0, 1.0)), space_check("/images", answer)):
        assert check.finding
        assert check.grade is Grade.OK or check.hint
    assert isinstance(updater(out, ADDRESS), str)
    assert version_of(out) is None or version_of(out) >= (0, 0, 0)


@given(st.lists(st.text(max_size=30), min_size=len(ASKED), max_size=len(ASKED)), st.integers(0, 127))
def test_nor_are_all_of_its_answers_together(answers: list[str], code: int) -> None:
    results = [said(text, code) for text in answers]
    assert all(check.name for check in host_checks(HOST, NOBODY, results, Moment(0.0, 1.0)))


class Sudo:
    """A host on which sudo lets us, or does not."""

    def __init__(self, error: InfrastructureError | None) -> None:
        self._error = error

    def run(self, argv: list[str]) -> CommandResult:
        assert argv == ["dmesg"], "what only reads, and needs root"
        if self._error:
            raise self._error
        return said("")


@pytest.mark.parametrize(
    ("sudo", "error", "grade", "words"),
    [
        (True, None, Grade.OK, "lab (uid 1000), and sudo"),
        (True, InfrastructureError("sudo asks for a password", hint="Give it one."), Grade.BAD, "asks for a"),
        (False, None, Grade.WARN, "is not root"),
    ],
)
def test_who_is_not_root_needs_sudo_and_it_must_work(
    sudo: bool, error: InfrastructureError | None, grade: Grade, words: str
) -> None:
    ssh = {"address": "10.0.0.1", "user": "lab", "sudo": sudo}
    host = Host.model_validate({"name": "one", "ssh": ssh, "cards": {"c": {"address": ADDRESS}}})
    answers = [
        said("6.18"),
        said("1000\n"),
        said("0"),
        df(1 << 20),
        said("fpgasupdate\nrsu\nflock\nsha256sum"),
    ]
    reached: Any = Sudo(error)
    found = {c.name: c for c in host_checks(host, reached, [*answers, said("2.14")], Moment(0.0, 1.0))}
    assert (found["account"].grade, words in found["account"].finding) == (grade, True), found
    assert bool(found["account"].hint) == (grade is not Grade.OK)


def test_a_host_without_cards_needs_no_tools(tmp_path: Path) -> None:
    host = Host.model_validate({"name": "one", "local": True, "tools": {"fpgasupdate": "/none"}})
    began = time.time()
    found = {check.name for check in look_at_host(host, LocalHost("one")).checks}
    assert time.time() - began < 60
    assert found == {"kernel", "account", "clock"}
