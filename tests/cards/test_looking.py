"""What is read around an operation comes in few exchanges, and a card that is busy is left alone."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.cards import SR_ROOT, FileCard, Programs, add_card

from harness.cards.driver import CardDriver
from harness.cards.looking import CardReader, Look
from harness.cards.truth import CardTruth, read_truth
from harness.hosts.local import LocalHost
from harness.hosts.permits import Authority, Permit
from harness.hosts.protocol import Asked, CommandResult, Host
from harness.hosts.ssh import SshHost
from harness.images.recipes import build, load_recipes
from harness.judgement.records import Promise
from harness.judgement.values import Unknown

IMAGE = build(load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())["A/csk0"])
OTHER = "0000:b4:00.0"
STATUS = "sec/firmware/secure-update0/status"


@pytest.fixture(params=["sh", "openssh"])
def machine(request: pytest.FixtureRequest, programs: Programs) -> Iterator[Host]:
    if request.param == "sh":
        yield LocalHost("bench", tools=programs.tools)
        return
    found = SshHost("bench", request.getfixturevalue("access"), tools=programs.tools)
    yield found
    found.close()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "hil-1.bin"
    path.write_bytes(b"image")
    return path


def removal(path: Path) -> Permit:
    return Authority("cards").command("remove", "bench", ["rm", "-f", str(path)], "test")


def test_several_cards_are_read_at_once(machine: Host, file_card: FileCard) -> None:
    add_card(file_card.sysfs, OTHER, "64:4c:36:00:12:b0").write("sec/security/flash_count", "7\n")
    reader = CardReader(machine, str(file_card.sysfs))
    for _ in range(2):
        truths = reader.truths([file_card.address, OTHER, "0000:b6:00.0"])
        assert [truth.flash_count for truth in truths.values()][:2] == [12, 7]
        assert truths[OTHER].identity == "64:4c:36:00:12:b0"
        assert truths["0000:b6:00.0"].address == Unknown("no device at 0000:b6:00.0")


def test_a_look_has_the_card_and_the_log(machine: Host, file_card: FileCard, programs: Programs) -> None:
    seen = CardReader(machine, str(file_card.sysfs)).look(file_card.address)
    assert seen.truth.flash_count == 12
    assert seen.log == (programs.folder / "dmesg.txt").read_text()
    assert "n3000bmc-sec-update.5.auto" in seen.devices


def test_a_log_that_may_not_be_read_is_unknown(
    machine: Host, file_card: FileCard, programs: Programs
) -> None:
    (programs.folder / "dmesg").write_text("#!/bin/sh\necho 'dmesg: Operation not permitted' >&2; exit 1\n")
    seen = CardReader(machine, str(file_card.sysfs)).look(file_card.address)
    assert seen.truth.flash_count == 12
    assert seen.log == Unknown("dmesg: Operation not permitted")


def tidy(host: Host, card: FileCard, before: CardTruth, image: Path) -> Look | None:
    return CardReader(host, str(card.sysfs)).remove_and_look(removal(image), before, card.address)


def test_an_idle_card_is_looked_at_when_its_image_is_removed(
    machine: Host, file_card: FileCard, image: Path
) -> None:
    before = read_truth(machine, file_card.address, sysfs=str(file_card.sysfs))
    file_card.write("sec/security/flash_count", "13\n")
    seen = tidy(machine, file_card, before, image)
    assert seen is not None
    assert seen.truth.flash_count == 13
    assert not image.exists()


@pytest.mark.parametrize("status", ["programming\n", "not idle\n", "\n", None])
def test_a_card_that_is_not_idle_is_not_read(
    machine: Host, file_card: FileCard, image: Path, status: str | None
) -> None:
    before = read_truth(machine, file_card.address, sysfs=str(file_card.sysfs))
    if status is None:
        file_card.file(STATUS).unlink()
    else:
        file_card.write(STATUS, status)
    assert tidy(machine, file_card, before, image) is None
    assert not image.exists()


def test_a_card_whose_driver_shows_no_update_is_not_read_at_once(
    machine: Host, file_card: FileCard, image: Path
) -> None:
    file_card.file(STATUS).unlink()
    before = read_truth(machine, file_card.address, sysfs=str(file_card.sysfs))
    assert tidy(machine, file_card, before, image) is None
    assert not image.exists()


def test_a_host_that_cannot_be_asked_is_no_error_yet(file_card: FileCard, image: Path) -> None:
    before = read_truth(LocalHost("bench"), file_card.address, sysfs=str(file_card.sysfs))
    assert tidy(LocalHost("elsewhere"), file_card, before, image) is None  # the permit is for another


@pytest.mark.parametrize("generation", "ABCD")
def test_what_is_not_looked_for_again_is_not_exposed(tmp_path: Path, generation: str) -> None:
    """Once the generation is known, the truth is the same to the letter, sources and all."""
    card = add_card(tmp_path / "sys", generation=generation)
    host = LocalHost("bench")
    reader = CardReader(host, str(card.sysfs))
    whole = read_truth(host, card.address, sysfs=str(card.sysfs))
    assert whole.generation == generation
    for again in (reader.truth(card.address), reader.truth(card.address), reader.look(card.address).truth):
        assert again == whole


def test_another_generation_after_a_boot_is_noticed(tmp_path: Path) -> None:
    card = add_card(tmp_path / "sys", generation="D")
    reader = CardReader(LocalHost("bench"), str(card.sysfs))
    assert reader.truth(card.address).generation == "D"
    shutil.rmtree(card.sysfs)
    add_card(card.sysfs, generation="A")
    truth = reader.truth(card.address)
    assert truth == read_truth(LocalHost("bench"), card.address, sysfs=str(card.sysfs))
    assert (truth.generation, truth.sr_root) == ("A", SR_ROOT)


def test_another_generation_is_noticed_in_a_sweep(tmp_path: Path) -> None:
    card = add_card(tmp_path / "sys", generation="D")
    reader = CardReader(LocalHost("bench"), str(card.sysfs))
    assert reader.truths([card.address])[card.address].generation == "D"
    shutil.rmtree(card.sysfs)
    add_card(card.sysfs, generation="B")
    assert reader.truths([card.address])[card.address].sr_root == SR_ROOT


class Counted(LocalHost):
    """Counts the exchanges that its operations would take over a network."""

    exchanges = 0

    def run(self, argv: Sequence[str], **options: Any) -> CommandResult:
        self.exchanges += 1
        return super().run(argv, **options)

    def run_all(self, commands: Sequence[Asked], **options: Any) -> list[CommandResult]:
        before = self.exchanges
        results = super().run_all(commands, **options)
        self.exchanges = before + 1
        return results


def test_a_flash_takes_few_exchanges(
    kept: Any, entry: Any, file_card: FileCard, programs: Programs, tmp_path: Path
) -> None:
    """To look, to read back what arrived, to find the tool (once), to run it, to tidy up and look again."""
    host = Counted("bench", tools=programs.tools)
    card = CardDriver(
        host,
        entry(),
        kept,
        real=False,
        sysfs=str(file_card.sysfs),
        tools=programs.tools,
        upload_dir=str(tmp_path),
        locks=str(programs.folder),
    )
    result = card.flash(IMAGE, "A/csk0", Promise("lands", source="test"))
    assert (result.before.flash_count, result.after.flash_count) == (12, 13)
    assert host.exchanges <= 5
