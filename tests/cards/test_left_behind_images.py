"""An image that a killed run has left on a host is removed by the next run that flashes the same card."""

from pathlib import Path

import pytest
from support.plans import lay_out

from harness.cards.driver import CardDriver
from harness.hosts.connect import connect
from harness.hosts.permits import Authority, Permit
from harness.images.recipes import build, load_recipes
from harness.inventory.load import load_inventory
from harness.lab.running import start_lab
from harness.record.history import History
from harness.scenarios.promises import lands

CARDS = Authority("cards")
FIXTURES = Path(__file__).parents[2] / "fixtures"


class Killed(BaseException):
    """The end of a run that cleans up nothing."""


def test_the_next_flash_of_the_card_removes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path)
    image = build(load_recipes((FIXTURES / "images.yaml").read_text())["A/csk0"])
    with (
        start_lab(load_inventory(tmp_path / "inventory.yaml")) as lab,
        History(tmp_path / "history.jsonl") as history,
    ):
        entry, card_entry = lab.entry.card("one/card0")
        host = connect(entry, lab.access("one"))
        others = "/tmp/hil-644c36999999-00ff.bin"  # of another card, whose run may go on
        other = CARDS.command("upload", "one", ("cp", "/etc/hostname", others), "test")
        assert host.run(other.argv, permit=other).exit_code == 0

        def images() -> list[str]:
            return [name for name in host.list("/tmp") if name.startswith("hil-")]

        with monkeypatch.context() as killed:
            run = host.run

            def dies(argv: list[str], *, permit: Permit | None = None, **options: object) -> object:
                if permit is not None and permit.act in ("flash", "remove"):
                    raise Killed
                return run(argv, permit=permit, **options)  # type: ignore[arg-type]

            killed.setattr(host, "run", dies)
            card = CardDriver(host, card_entry, history, real=False, settle=0.2)
            with pytest.raises(Killed):
                card.flash(image, "A/csk0", lands("a document"))
        assert len(images()) == 2
        card = CardDriver(host, card_entry, history, real=False, settle=0.2)
        card.flash(image, "A/csk0", lands("a document"))
        assert images() == [others.rsplit("/", 1)[1]]
        host.close()
