"""What must hold of a card, of its driver and of the tools that flash and show it, before a release is used.

Nothing here states a divergence: on a lab without known defects every report is true. What is expected of
each image is in the tables of the regression.
"""

from pathlib import Path

import pytest

from harness.scenarios.promises import lands, returns, unchanged
from harness.scenarios.table import Cell, load_cells

TABLES = Path(__file__).parents[1] / "regression" / "flash"
GUIDE = "Intel FPGA PAC N3000 Security User Guide (683519)"


def cells_of(*tables: str):
    """The cells of tables, as parameters ``cell`` and ``given``."""
    found = [cell for table in tables for cell in load_cells(TABLES / table)]
    return pytest.mark.parametrize(("cell", "given"), [pytest.param(c, c.given, id=c.id) for c in found])


@pytest.mark.hil_given(root="none")
def test_a_root_key_holds_from_the_next_reset_on(card, flash) -> None:
    """It is programmed once, survives every reset, and nothing without it is taken any more."""
    flash("root-key-A", lands(GUIDE))
    flash.reset()
    card.report()
    flash("unsigned", unchanged("0x11", source=GUIDE))
    flash("root-key-B", unchanged("0x1A", source=GUIDE))
    flash("A/csk0", lands(GUIDE))


@pytest.mark.hil_given(root="A")
def test_a_cancellation_holds_from_the_next_reset_on(card, flash) -> None:
    """It concerns the one key that it names, and survives every reset."""
    flash("cancel-A-csk0", lands(GUIDE))
    flash.reset()
    card.report()
    flash("A/csk0", unchanged("0x15", source=GUIDE))
    flash("A/csk1", lands(GUIDE))


@pytest.mark.hil_given(root="A", cancelled=[1])
def test_what_is_shown_of_a_card_is_true_before_and_after_an_update(card, flash) -> None:
    """Versions, keys, counter and page, as fpgainfo prints them."""
    card.report()
    flash("A/csk0", lands(GUIDE))
    card.report()
    flash("unsigned", unchanged("0x11", source=GUIDE))
    card.report()


@pytest.mark.hil_given(root="none")
def test_a_card_comes_back_from_a_reset(card) -> None:
    """At whatever address."""
    card.reset(promise=returns(GUIDE))


@cells_of("matrix.yaml", "checks.yaml")
def test_every_image_meets_its_promise(cell: Cell, given: dict[str, object], flash) -> None:
    """Sound and damaged images, on cards in every state of their root of trust."""
    flash(cell.image, cell.promise)


@cells_of("uploads.yaml")
def test_every_image_meets_its_promise_past_the_tool(cell: Cell, given: dict[str, object], flash) -> None:
    """What the tool does not send, the card's driver is given."""
    flash(cell.image, cell.promise, by="firmware-upload")
