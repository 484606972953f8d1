"""Every value of the emulated card that no document settles, each with its meaning and its source.

Sources: "3.1" and the like are sections of the N3000 fact sheet (docs/emulator-fidelity.md restates what
matters here). Marks: [D] stated by a document, [V] read in driver source, [I] inferred, [U] unknown.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from harness.errors import ConfigurationError

#: The checks that the card makes on an image, in order, with the code of a refusal (3.2, 3.3). Any of
#: them can be switched off by name, which makes a defective card: what a scenario must then catch.
CHECK_CODES: Final[dict[str, int]] = {
    "b0-magic": 0x01,
    "content-length": 0x02,
    "content-type": 0x03,
    "b1-magic": 0x04,
    "operation": 0x1B,
    "root-already-programmed": 0x1A,
    "root-key-payload-hash": 0x18,
    "root-not-programmed": 0x10,
    "root-magic": 0x05,
    "root-curve": 0x06,
    "root-permission": 0x07,
    "root-key-id": 0x08,
    "root-hash": 0x11,
    "csk-magic": 0x09,
    "csk-curve": 0x0A,
    "csk-permission": 0x0B,
    "csk-signature-magic": 0x0D,
    "csk-id-range": 0x14,
    "csk-cancelled": 0x15,
    "csk-signature": 0x12,
    "b0-entry-magic": 0x0E,
    "b0-entry-signature-magic": 0x0F,
    "b0-signature": 0x13,
    "payload-hash": 0x16,
    "cancellation-payload-hash": 0x17,
    "cancellation-id": 0x19,
}
#: What a defective card does besides leaving out checks: what a scenario must catch, too.
FLAWS: Final[dict[str, str]] = {
    "copy-dropped": "an image that was accepted is not copied: its page stays as it was",
    "copy-cut-short": "the second half of an image that was accepted is not copied",
    "refused-image-copied": "an image that was refused is copied to its page all the same",
    "factory-page-booted": "the FPGA is configured from the factory page although the user page is whole",
    "root-key-dropped": "a root entry hash that was accepted is not stored",
    "cancellation-dropped": "a cancellation that was accepted is not stored",
    "next-csk-cancelled": "a cancellation cancels the id after the one that it names",
    "root-key-lost": "a reset or a power cycle clears the root entry hash of SR",
    "cancellations-lost": "a reset or a power cycle clears the cancellations of SR",
    "root-key-ignored": "the root entry hash of SR is shown, and nothing is held against it",
    "reset-stays-away": "the card does not come back on the bus from any reset, until its power is cycled",
}


def _value(default: Any, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True, kw_only=True)
class CardProfile:
    """How one emulated card behaves where documents leave it open; times in lab seconds."""

    disabled_checks: frozenset[str] = _value(
        frozenset(), "Checks that this defective card does not make; names as in CHECK_CODES."
    )
    flaws: frozenset[str] = _value(
        frozenset(), "What else is wrong with this defective card; names as in FLAWS."
    )
    enforcement: Literal["after-reset", "at-once"] = _value(
        "after-reset",
        "When a root entry hash or cancellation just programmed counts: after reset or power cycle, or at"
        " once (3.1 [U]).",
    )
    payload_hash_on_unkeyed_card: bool = _value(
        True, "Whether the payload's hash is checked where the section has no root (3.3 [U])."
    )
    payload_sha384_checked: bool = _value(
        False, "Whether the SHA-384 of the payload is checked too; the firmware knows P-256 only (2.4 [I])."
    )
    csk_id_out_of_range_code: Literal[0x14, 0x0C] = _value(
        0x14, "Code for a CSK id of 128 or more (3.3: 0x14, 0x0C possible [I])."
    )
    pr_update: Literal["refused", "ignored"] = _value(
        "refused",
        "A PR user image: refused with 0x1B, or accepted without effect; no PR flow exists (2.3 [I]).",
    )
    cancelled_csk_locks_updates: bool = _value(
        False,
        "Whether an image with a cancelled CSK leaves the BMC busy until a power cycle"
        " (3.1 [D], its extent [U]).",
    )
    failed_authentication_counts: bool = _value(
        True, "Whether a refused image raises the flash count: its staging area was erased (4.6 [I])."
    )
    cancel_while_programming: Literal["busy", "ignored"] = _value(
        "busy",
        "A write to `cancel` in `programming`: EBUSY, or accepted and ignored (4.2 [V], kernels differ).",
    )
    empty_upload: Literal["invalid-file-size", "ignored"] = _value(
        "invalid-file-size", "An upload of no bytes: refused, or not started at all (4.4 step 1 [V])."
    )
    doorbell_label: Literal["Doorbell", "RSU error status"] = _value(
        "Doorbell", "How the driver's log names the doorbell register: from 6.3 on, or up to 6.2 (3.2 [V])."
    )
    half_written_copy: Literal["half", "erased"] = _value(
        "half",
        "What a power cut in copying leaves in the page: the part copied so far, or nothing (4.4 [I]).",
    )
    prepare_seconds: float = _value(
        20.0, "Time to erase the staging area; the driver waits 2 minutes at most (4.4 step 3, 4.6 [I])."
    )
    transfer_rate: float = _value(
        65_000.0, "Bytes in a second to staging; with copying 40 minutes (4.6 [I])."
    )
    authentication_seconds: float = _value(2.0, "Time for the BMC to authenticate staging (4.6 [I]).")
    copy_rate: float = _value(
        43_000.0, "Bytes in a second from staging to the page (4.6, the tool's figure [V])."
    )
    key_seconds: float = _value(
        1.0, "Time to program a root entry hash or a cancellation (4.6 [D]: seconds)."
    )
    host_timeout_seconds: float = _value(
        120.0, "After so long without a block in READY the BMC gives up with status 01 (3.2 [V], time [U])."
    )
    reset_seconds: float = _value(4.0, "From image_load until the card answers on the bus again (4.6 [I]).")
    retimer_seconds: float = _value(10.0, "Time that loading the retimer takes (4.5: at most 30 s [V]).")
    retimer_image: Literal["new", "duplicate"] = _value(
        "new",
        "Whether the retimer takes its image, or says 05, duplicate, and the driver ECANCELED (4.5 [V]).",
    )
    wear_first_count: int = _value(1000, "Flash count above which updates must wait (4.6 [D]).")
    wear_first_delay: float = _value(30.0, "The wait after boot and between updates above it (4.6 [D]).")
    wear_second_count: int = _value(2000, "Flash count above which they must wait longer (4.6 [D]).")
    wear_second_delay: float = _value(60.0, "That longer wait (4.6 [D]).")
    wearout_at_completion: bool = _value(
        False,
        "Whether a worn card says wear-out when an image has landed: driver generation B takes that for"
        " success, the others for a failure (4.4 [V]; whether a card does it [U]).",
    )
    user_image_is_fec: bool = _value(
        False, "Whether the user image turns the second function 8086:0b32 into 8086:0d8f (1.1 [V])."
    )

    def __post_init__(self) -> None:
        for what, names, known in (
            ("check", self.disabled_checks, CHECK_CODES),
            ("flaw", self.flaws, FLAWS),
        ):
            if unknown := sorted(names - known.keys()):
                raise _unknown_name(what, unknown[0], tuple(known))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> CardProfile:
        """Return the profile that an inventory entry states; what it leaves out has its default.

        :raises ConfigurationError: a name or a value that is not allowed, with the nearest name.
        """
        known: dict[str, Any] = {}
        types = get_type_hints(cls)
        for name, value in values.items():
            if name not in types:
                raise _unknown_name("profile value", name, profile_names())
            known[name] = _checked(name, value, types[name])
        return cls(**known)

    def to_mapping(self) -> dict[str, Any]:
        """Return every value as JSON can hold it; :meth:`from_mapping` takes it back."""
        return {
            f.name: sorted(value) if isinstance(value := getattr(self, f.name), frozenset) else value
            for f in fields(self)
        }


def profile_names() -> tuple[str, ...]:
    """Return the names that an inventory's ``profile:`` may use."""
    return tuple(f.name for f in fields(CardProfile))


def profile_docs() -> dict[str, str]:
    """Return each profile value's meaning and source, in one line."""
    return {f.name: str(f.metadata["doc"]) for f in fields(CardProfile)}


_NUMBERS = {float: "a number", int: "a whole number"}


def _checked(name: str, value: Any, kind: Any) -> Any:
    if get_origin(kind) is Literal:
        if value not in get_args(kind) or isinstance(value, bool):
            allowed = ", ".join(map(repr, get_args(kind)))
            raise ConfigurationError(f"The profile value {name} is {value!r}; allowed are {allowed}.")
        return value
    if kind == frozenset[str]:
        if isinstance(value, str) or not all(isinstance(item, str) for item in value):
            raise ConfigurationError(f"The profile value {name} is {value!r}; a list of names is due.")
        return frozenset(value)
    rate = name.endswith("_rate")
    if kind is bool:
        fits = isinstance(value, bool)
    else:  # int or float, neither negative; a rate divides
        fits = isinstance(value, (int, float) if kind is float else int) and not isinstance(value, bool)
        fits = fits and math.isfinite(value) and value >= 0 and not (rate and value == 0)
    if not fits:
        due = "true or false" if kind is bool else f"{_NUMBERS[kind]} {'above' if rate else 'of at least'} 0"
        raise ConfigurationError(f"The profile value {name} is {value!r}; {due} is due.")
    return value


def _unknown_name(what: str, name: str, allowed: tuple[str, ...]) -> ConfigurationError:
    near = difflib.get_close_matches(name, allowed, 1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    return ConfigurationError(
        f"There is no {what} {name!r} of an emulated card.{meant}", hint=f"Known: {', '.join(allowed)}."
    )
