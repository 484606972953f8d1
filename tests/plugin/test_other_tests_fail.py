"""The plugin takes no failure away from tests that are no scenarios.

A plugin that did so would also hide what a usual test found out about it; these tests are expected to fail,
and strictly: where one passes, pytest itself says so.
"""

import pytest


@pytest.fixture
def broken() -> None:
    """A fixture that cannot be set up."""
    raise LookupError


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="it is what a failing test does")
def test_a_failing_test_fails() -> None:
    raise AssertionError


@pytest.mark.xfail(strict=True, raises=LookupError, reason="it is what a test without its fixture does")
def test_a_broken_fixture_fails_its_test(broken: None) -> None:
    pass
