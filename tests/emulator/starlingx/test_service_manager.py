"""`sm-restart-safe` of an emulated controller (fact sheet of StarlingX, section 7.4)."""

from __future__ import annotations

import pytest
from support.starlingx_lab import MakeLab

from harness.emulator.process import Buffer, Bytes
from harness.emulator.programs.base import Streams
from harness.emulator.starlingx.service_manager import install_service_manager


@pytest.mark.parametrize(
    ("words", "code", "restarts"),
    [("service vim", 0, 1), ("service nobody", 0, 0), ("vim", 1, 0), ("service", 1, 0)],
)
def test_it_restarts_the_service_that_it_is_told(
    make_lab: MakeLab, words: str, code: int, restarts: int
) -> None:
    lab, asked = make_lab(), []
    install_service_manager(lab.hosts, {"vim": lambda: asked.append("vim")})
    assert lab.machine.run(f"sm-restart-safe {words}", Streams(Bytes(), Buffer(), Buffer())) == code
    assert len(asked) == restarts
