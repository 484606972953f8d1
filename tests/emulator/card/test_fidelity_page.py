"""The page on the emulated card names every profile value, check, code and condition."""

import re
from pathlib import Path

from harness.emulator.card import CHECK_CODES, CONDITIONS, profile_names
from harness.emulator.card.profile import FLAWS

PAGE = (Path(__file__).resolve().parents[3] / "docs/emulator-fidelity.md").read_text()


def test_every_name_is_on_the_page() -> None:
    named = set(re.findall(r"`([a-z0-9_-]+)`", PAGE))
    assert {*profile_names(), *CHECK_CODES, *FLAWS, *CONDITIONS} - named == set()


def test_single_checks_have_their_code_on_the_page() -> None:
    rows = dict(re.findall(r"^\| \d+ \| `([a-z0-9-]+)` \| (0x[0-9A-F]{2}) \|", PAGE, re.MULTILINE))
    assert len(rows) >= 10
    assert {name: int(code, 16) for name, code in rows.items()} == {name: CHECK_CODES[name] for name in rows}
