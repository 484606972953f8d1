"""The one family of errors: each says what happened, why, what to do next, and how `hil` exits."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar


class Kind(str, Enum):
    """Where the cause of an error lies; decides who should act on it."""

    CONFIGURATION = "configuration"
    INFRASTRUCTURE = "infrastructure"
    DEVICE = "device"
    REFUSED = "refused"
    BUG = "bug"


class HarnessError(Exception):
    """Base of every error that the harness raises on purpose.

    :param message: what happened and why, one or two sentences, no trailing newline.
    :param hint: what the reader can do next; empty where there is nothing to do.
    """

    kind: ClassVar[Kind] = Kind.BUG
    exit_code: ClassVar[int] = 5

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class ConfigurationError(HarnessError):
    """The inventory, a scenario, an option or a file given by the user is wrong."""

    kind = Kind.CONFIGURATION
    exit_code = 2


class NotAnImage(ConfigurationError, ValueError):
    """The bytes are no signed image: no Block 0 magic, or fewer bytes than the smallest one has."""


class InfrastructureError(HarnessError):
    """The lab failed, not the subject: a host is unreachable, a tool is missing, a disk is full."""

    kind = Kind.INFRASTRUCTURE
    exit_code = 3


class BlockedError(InfrastructureError):
    """The scenario could not run; the message names what is missing."""


class LeasedError(BlockedError):
    """Somebody else has the lease of a card; the message says who, why and until when."""


class LeaseLostError(InfrastructureError):
    """The lease of a card is another's by now, or was broken; nothing more is written to the card."""


class NotOfferedError(BlockedError):
    """The card's driver, or a system's release or way in, does not offer what was asked; nothing changed."""


class NothingThereError(InfrastructureError):
    """What a fault was to act on is not there at its point; nothing was disturbed."""


class DeadlineError(InfrastructureError):
    """A remote operation passed its deadline; the message says what it waited for and last saw."""


class CardLostError(InfrastructureError):
    """A card is not where it should be, or cannot be told from another one; it needs a person."""


class CardHangsError(DeadlineError):
    """A card does not end what it does; it needs a person, or a power cycle."""


class UnreachableError(InfrastructureError):
    """A host does not answer, or refuses who asks: nothing was asked of it yet."""


class LinkLostError(UnreachableError):
    """The link to a host broke while something was being asked of it."""


class NotActiveError(InfrastructureError):
    """A host is not the active controller of its system; its command was not let in, and asked nothing."""


class DeviceError(HarnessError):
    """The device under test answered with a failure of its own."""

    kind = Kind.DEVICE
    exit_code = 1


class ControlPlaneError(DeviceError):
    """A control plane refused, failed, or did not do what it says; the message has its own text."""


class TableError(ControlPlaneError):
    """What a control plane printed cannot be read as a table without guessing; the message has the line."""


class NoSuchRecordError(ConfigurationError):
    """A control plane knows no such image, label, host or device; nothing was changed."""


class LoginRefusedError(ConfigurationError):
    """A control plane does not take the login; it was tried once, so that no account is locked."""


class RefusedError(HarnessError):
    """The interlock said no; nothing was changed."""

    kind = Kind.REFUSED
    exit_code = 4


class HarnessBug(HarnessError):
    """An invariant of the harness itself does not hold."""


#: `hil run` reports one code when several hold; the first of these that occurred wins
#: (design, "Words": 5, 2, 1, 4, 3). An interrupted run ends with 130.
EXIT_PRECEDENCE: tuple[int, ...] = (5, 2, 1, 4, 3)
EXIT_INTERRUPTED = 130


def worst_exit_code(codes: set[int]) -> int:
    """Return the exit code that stands for a run in which all of ``codes`` occurred."""
    return next((code for code in EXIT_PRECEDENCE if code in codes), 0)
