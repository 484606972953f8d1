"""Which run state an error stands for that kept a scenario from its end."""

from __future__ import annotations

from harness.errors import BlockedError, HarnessError, Kind, NotOfferedError
from harness.judgement.model import RunState
from harness.scenarios.prepare import NotApplicable

_STATES = {
    Kind.INFRASTRUCTURE: RunState.INFRA,
    Kind.CONFIGURATION: RunState.BLOCKED,
    Kind.REFUSED: RunState.REFUSED,
    Kind.BUG: RunState.BUG,
}
FINISHED, INTERRUPTED = "finished", "interrupted"


def state_of(error: BaseException | None) -> tuple[str, str]:
    """Return the state and the reason with which a scenario ends, as its last record has them.

    :param error: what it raised. A device that answers with a failure, or an assertion that does not
        hold, is a result: the scenario is finished, and not as stated for that reason.
    """
    if error is None or isinstance(error, AssertionError):
        return FINISHED, str(error).partition("\n")[0] if error is not None else ""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "the run was interrupted"
    if isinstance(error, (NotApplicable, NotOfferedError)):
        return RunState.NOT_APPLICABLE.value, str(error)
    if isinstance(error, BlockedError):
        return RunState.BLOCKED.value, str(error)
    if isinstance(error, HarnessError):
        state = _STATES.get(error.kind)
        return (FINISHED, "") if state is None else (state.value, str(error))
    return RunState.BUG.value, f"{type(error).__name__}: {error}"
