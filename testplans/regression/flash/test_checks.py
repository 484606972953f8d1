"""One damage per check of the card: each is refused for the documented reason."""

from pathlib import Path

import pytest

from harness.scenarios.driver_needs import require_update_attributes
from harness.scenarios.table import Cell, load_cells

pytestmark = pytest.mark.hil_requirement("FLASH-CHECKS")

CELLS = load_cells(Path(__file__).with_name("checks.yaml"))


@pytest.mark.parametrize(("cell", "given"), [pytest.param(c, c.given, id=c.id) for c in CELLS])
def test_damaged_image(cell: Cell, given: dict[str, object], flash) -> None:
    """A card with a root entry hash refuses the damaged image with the code of the broken rule."""
    flash(cell.image, cell.promise)


UPLOADED = load_cells(Path(__file__).with_name("uploads.yaml"))


@pytest.mark.parametrize(("cell", "given"), [pytest.param(c, c.given, id=c.id) for c in UPLOADED])
def test_uploaded_past_the_tool(cell: Cell, given: dict[str, object], card, flash) -> None:
    """What the tool refuses by itself the card refuses too, when the kernel's interface hands it over."""
    require_update_attributes(card)
    flash(cell.image, cell.promise, by="firmware-upload")
