"""Processes that run trials are ended in order, and an impatient person ends them in disorder."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from harness.errors import ConfigurationError
from harness.scenarios.trial_process import wrong_plan

#: Ends a process that tells of Ctrl-C, and ends by itself when a line comes; then says how it ended.
ENDS = """
import subprocess, sys
from harness.scenarios.trial_process import end_in_order
shell = "trap 'echo told >&2' INT; echo ready; until read line; do :; done"
pipe = subprocess.PIPE
process = subprocess.Popen(["sh", "-c", shell], stdin=sys.stdin, stdout=pipe, start_new_session=True)
process.stdout.readline()
end_in_order([process])
print(process.returncode, flush=True)
"""


@pytest.mark.parametrize(("signals", "ended"), [(0, 0), (1, 0), (2, 0), (3, -signal.SIGKILL)])
def test_it_undoes_what_it_did_and_the_third_ctrl_c_kills_it(signals: int, ended: int) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", ENDS], stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stderr.readline() == "told\n"
        for number in range(1, signals + 1):
            process.send_signal(signal.SIGINT)
            if number < 3:
                assert f"undo what the trials did (signal {number};" in process.stderr.readline()
        if signals < 3:
            process.stdin.write("\n")
            process.stdin.flush()
        assert process.stdout.read() == f"{ended}\n"
        process.stdin.close()
    assert process.returncode == 0, "what was asked for is done: it is no error any more"


def test_what_pytest_says_of_a_plan_is_an_error_of_ours_with_its_hint() -> None:
    error = wrong_plan("a.scenario.yaml:5: unknown step\n  hint: Look at the steps.")
    assert isinstance(error, ConfigurationError)
    assert (error.message, error.hint) == ("a.scenario.yaml:5: unknown step", "Look at the steps.")
    assert wrong_plan("ERROR: no such option").message == "no such option"
    assert "hil run" in wrong_plan("ImportError: x").hint
