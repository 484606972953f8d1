"""What the documents about a StarlingX system leave open: each value has a name here and can be changed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SystemProfile:
    """Values that the fact sheet does not state, or marks as inferred. Times are lab seconds.

    ``token_seconds``: how long a token is valid (Keystone's own default).
    ``agent_audit_seconds``: from one audit of a host's agent to the next.
    ``reset_tries``, ``reset_wait_seconds``: how often the boot manifest tries the reset of the cards (these
    two are stated, section 3.3).
    ``boot_seconds``: from the start of a host to the start of its agent.
    ``lock_seconds``: from the request to lock a host to its being locked.
    ``download_seconds``: how long the agent's download of an image takes.
    ``unreadable``: what the agent reports for an attribute that it cannot read.
    ``availability_after_failed_reset``: of a host whose boot manifest failed.
    """

    token_seconds: float = 3600.0
    agent_audit_seconds: float = 60.0
    reset_tries: int = 60
    reset_wait_seconds: float = 1.0
    boot_seconds: float = 60.0
    lock_seconds: float = 5.0
    download_seconds: float = 1.0
    unreadable: str = ""
    availability_after_failed_reset: str = "online"
