"""The times and counts of dcmanager, and what documents leave open about it: each value has a name here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CloudProfile:
    """Values of one distributed cloud; times in lab seconds.

    Stated (sections 5.5 and 5.6):
    ``audit_pass_seconds``: from one pass of the audit's loop to the next. ``firmware_audit_seconds``: from
    one firmware audit that nobody asked for to the next. ``build_poll_seconds``, ``build_polls``: how a VIM
    strategy that is being built is waited for. ``apply_poll_seconds``, ``apply_polls``: how one that is being
    applied is, polls without any progress counted; ``failed_polls``: how many in a row may fail.
    ``finish_retry_seconds``, ``finish_retries``: how a subcloud's API is waited for in the last step.

    Inferred:
    ``orchestrator_seconds``: from one look of the orchestrator at its strategy to the next.
    ``passes_to_offline``: how often in a row a subcloud must not be reached before it is offline.
    ``resumes_after_restart``: whether a strategy goes on, each step from the beginning of its state, once
    dcmanager runs again; else the steps that were under way have failed.
    ``default_group``: name of the group that every subcloud begins in.
    """

    audit_pass_seconds: float = 40.0
    firmware_audit_seconds: float = 3600.0
    build_poll_seconds: float = 10.0
    build_polls: int = 180
    apply_poll_seconds: float = 60.0
    apply_polls: int = 60
    failed_polls: int = 30
    finish_retry_seconds: float = 60.0
    finish_retries: int = 30
    orchestrator_seconds: float = 10.0
    passes_to_offline: int = 2
    resumes_after_restart: bool = True
    default_group: str = "Default"
