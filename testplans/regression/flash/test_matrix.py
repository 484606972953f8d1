"""Every kind of image on a card in every state of its root of trust, as the documents have it."""

from pathlib import Path

import pytest

from harness.scenarios.table import Cell, load_cells

pytestmark = pytest.mark.hil_requirement("FLASH-ROOT", "FLASH-CANCEL")

CELLS = load_cells(Path(__file__).with_name("matrix.yaml"))


@pytest.mark.parametrize(("cell", "given"), [pytest.param(c, c.given, id=c.id) for c in CELLS])
def test_flash(cell: Cell, given: dict[str, object], flash) -> None:
    """The card does with the image what documents promise, and every report of it is true."""
    flash(cell.image, cell.promise)
