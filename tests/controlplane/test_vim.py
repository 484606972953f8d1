"""What the VIM says of its own strategy, by its API and by `sw-manager` (section 5.5; the sample's text)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.controlplane.protocol import NOT_SHOWN
from harness.controlplane.vim import VimStrategy, from_answer, from_output
from harness.errors import ControlPlaneError

UUID = "00000000-0000-4000-8000-000000000001"
#: From the keywords of starlingx/test (swmanager_vertical_table_parser.py).
BUILD_FAILED = f"""\
Strategy Firmware Update Strategy:
  strategy-uuid:                          {UUID}
  controller-apply-type:                  ignore
  storage-apply-type:                     ignore
  worker-apply-type:                      serial
  default-instance-action:                stop-start
  alarm-restrictions:                     strict
  current-phase:                          build
  current-phase-completion:               100%
  state:                                  build-failed
  build-result:                           failed
  build-reason:                           alarms ['100.104'] from platform are present
"""
DETAILS = f"""\
Strategy Firmware Update Strategy:
  strategy-uuid:                          {UUID}
  current-phase:                          abort
  state:                                  aborted
  build-phase:
    total-stages:                         1
    result:                               success
    reason:
    stages:
        stage-id:                         0
        steps:
            step-id:                      0
            step-name:                    fw-update-hosts
            entity-names:                 ['compute-9']
            result:                       success
            reason:
  apply-phase:
    total-stages:                         1
    result:                               failed
    reason:                               Firmware update failed ; compute-0
    stages:
        stage-id:                         0
        result:                           failed
        reason:                           Firmware update failed ; compute-0
        steps:
            step-id:                      0
            step-name:                    query-alarms
            result:                       success
            reason:

            step-id:                      1
            step-name:                    fw-update-hosts
            entity-type:                  hosts
            entity-names:                 ['compute-0', 'compute-1']
            timeout:                      3600 seconds
            start-date-time:              2020-08-05 10:00:00
            result:                       failed
            reason:                       Firmware update failed ; compute-0

  abort-phase:
    total-stages:                         0
    result:                               success
"""
UPDATE: dict[str, Any] = {
    "hosts": ["compute-0", "compute-1"],
    "result": "failed",
    "reason": "Firmware update failed ; compute-0",
}
ABORTED = VimStrategy("aborted", UUID, "abort", "failed", UPDATE["reason"], (UPDATE,))


def answer(**changed: Any) -> dict[str, Any]:
    """The API's answer that says what DETAILS prints."""
    step = {"step-name": "fw-update-hosts", "entity-names": UPDATE["hosts"], "result": "failed",
            "reason": UPDATE["reason"]}  # fmt: skip
    stages = [{"steps": [{"step-name": "query-alarms", "result": "success"}, step]}]
    phase = {"result": "failed", "reason": UPDATE["reason"], "stages": stages}
    shown = {"uuid": UUID, "state": "aborted", "current-phase": "abort", "apply-phase": phase}
    return {"strategy": shown | changed}


def test_text_and_answer_of_one_strategy_say_the_same() -> None:
    assert from_output(DETAILS) == from_answer(answer()) == [ABORTED]


def test_a_strategy_whose_build_failed_has_no_result_of_an_apply() -> None:
    (said,) = from_output(BUILD_FAILED)
    assert said == VimStrategy("build-failed", UUID, "build", NOT_SHOWN, NOT_SHOWN, ())


def test_no_strategy_is_no_strategy() -> None:
    assert from_output("No strategy available\n") == from_answer({"strategy": None}) == []


@pytest.mark.parametrize(
    "text", ["", "Authorization failed\n", "Strategy Firmware Update Strategy:\n  current-phase: build\n"]
)
def test_what_prints_no_strategy_is_an_error_and_not_none(text: str) -> None:
    with pytest.raises(ControlPlaneError):
        from_output(text)


@pytest.mark.parametrize("given", [None, [], "x", {"strategy": []}, {"strategy": {}}, answer(state=None)])
def test_what_answers_no_strategy_is_an_error_and_not_none(given: Any) -> None:
    with pytest.raises(ControlPlaneError):
        from_answer(given)


@pytest.mark.parametrize(
    "stages", [None, "x", [None], [{"steps": "x"}], [{"steps": [None, {"step-name": 4}]}]]
)
def test_stages_that_are_none_have_no_updates(stages: Any) -> None:
    (said,) = from_answer(answer(**{"apply-phase": {"stages": stages}}))
    assert said.updates == ()
