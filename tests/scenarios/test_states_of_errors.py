"""The run state that an exception stands for."""

import pytest

from harness.errors import BlockedError, InfrastructureError, NotOfferedError, RefusedError
from harness.scenarios.states import state_of


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (NotOfferedError("generation A has no such interface"), "NOT_APPLICABLE"),
        (BlockedError("no power control"), "BLOCKED"),
        (InfrastructureError("no route"), "INFRA"),
        (RefusedError("not permitted"), "REFUSED"),
        (ValueError("oops"), "BUG"),
    ],
)
def test_each_kind_of_error_has_its_state(error: Exception, state: str) -> None:
    found, reason = state_of(error)
    assert found == state
    assert str(error) in reason
