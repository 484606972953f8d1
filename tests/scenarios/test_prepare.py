"""A scenario does not apply to a card whose budget of updates is used up; it is listed, not refused."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.scenarios.prepare import NotApplicable, require_budget


def test_a_used_up_budget_is_the_state_of_a_card() -> None:
    card: Any = SimpleNamespace(name="bench/card0", used_up=lambda: "its budget of 900 updates is used up")
    with pytest.raises(NotApplicable, match="bench/card0: its budget of 900 updates is used up"):
        require_budget(card)


def test_a_card_with_some_left_is_used() -> None:
    card: Any = SimpleNamespace(name="bench/card0", used_up=lambda: "")
    require_budget(card)
