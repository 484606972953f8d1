"""An emulated controller for the tests of power."""

from collections.abc import Iterator

import pytest
from support.bmc import Bmc, Machine


@pytest.fixture
def bmc() -> Iterator[Bmc]:
    with Bmc(Machine()) as served:
        yield served
