"""The card's management controller: doorbell, staging, authentication, copying, and what it boots.

Registers and their values: fact sheet 3.2 and 4.3 (kernel header ``intel-m10-bmc.h``). It knows nothing of
the host's driver (:mod:`harness.emulator.card.upload`), which rings its doorbell and reads it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from typing import Final, Literal

from harness.emulator.card import authentication
from harness.emulator.card.flash import FACTORY_BMC, SECTIONS, CardState, Section
from harness.emulator.card.phases import Phases
from harness.emulator.card.profile import CardProfile
from harness.emulator.clock import Event, LabClock
from harness.images.layout import HEADER_SIZE, MAX_CSK_ID, STAGING_SIZE
from harness.images.payload import (
    BmcIdentity,
    PayloadIdentity,
    PayloadTable,
    read_bmc_descriptor,
    read_descriptor,
    reverse_bits,
)

ALL_ONES: Final = 0xFFFFFFFF
AUTH_IDLE: Final = 0xFE
Page = Literal["user", "factory"]


class Progress(IntEnum):
    """Doorbell bits 7:4."""

    IDLE = 0
    PREPARE = 1
    READY = 3
    AUTHENTICATING = 4
    COPYING = 5
    UPDATE_CANCEL = 6
    PROGRAM_KEY_HASH = 7
    RSU_DONE = 8
    PKVL_PROM_DONE = 9


class Status(IntEnum):
    """Doorbell bits 23:16, as far as the emulated card uses them."""

    NORMAL = 0x00
    HOST_TIMEOUT = 0x01
    AUTH_FAIL = 0x02
    PKVL_REJECT = 0x05
    NON_INCREMENTAL = 0x06
    WEAROUT = 0x08
    USER_OK = 0x81
    FACTORY_OK = 0x82


class HostStatus(IntEnum):
    """Doorbell bits 11:8."""

    IDLE = 0
    WRITE_DONE = 1
    ABORT = 2


class Bmc:
    """The management controller of one card. Every method is called with the card's guard held.

    ``state`` is what flash holds; ``save`` is called after each change of it. ``on_progress`` is the
    driver's: called when the progress changes by itself.
    """

    def __init__(
        self,
        state: CardState,
        profile: CardProfile,
        clock: LabClock,
        phases: Phases,
        save: Callable[[CardState], None],
        payloads: PayloadTable,
    ) -> None:
        self.state = state
        self.profile = profile
        self._clock = clock
        self._phases = phases
        self._save = save
        self._payloads = payloads
        self.on_progress: Callable[[], None] | None = None
        self.stuck = False
        self._copy: tuple[authentication.StorePayload, float, float] | None = None
        self._host_timeout: Event | None = None
        self._reset_registers(Status.NORMAL)
        self.trust: dict[Section, authentication.SectionTrust] = {}
        self.fpga: PayloadIdentity | None = None
        self.fpga_page: Page = "factory"
        self.bmc_page: Page = "user"
        self.versions: BmcIdentity = FACTORY_BMC
        self._last_update = clock.now()

    # --- registers -------------------------------------------------------------------------------

    @property
    def doorbell(self) -> int:
        """The doorbell register."""
        return (
            self.progress << 4
            | self.host << 8
            | self.status << 16
            | (self.bmc_page == "factory") << 28
        )  # fmt: skip

    @property
    def accepts_request(self) -> bool:
        """Whether the progress lets an update or a reset begin."""
        return not self.stuck and self.progress in (
            Progress.IDLE,
            Progress.RSU_DONE,
            Progress.PKVL_PROM_DONE,
        )

    def _reset_registers(self, status: Status) -> None:
        self.progress = Progress.IDLE
        self.status = status
        self.host = HostStatus.IDLE
        self.auth_result = AUTH_IDLE
        self.staging = bytearray()

    # --- an update, step by step (4.4) -----------------------------------------------------------

    def request(self) -> None:
        """RSU request: erase staging, or say wear-out."""
        self._reset_registers(Status.NORMAL)
        if self._clock.now() < self._last_update + self._wear_delay():
            self.status = Status.WEAROUT
            return
        if self.profile.failed_authentication_counts:
            self._store(replace(self.state, flash_count=self.state.flash_count + 1))
        self.progress = Progress.PREPARE
        self._phases.begin("preparing", self.profile.prepare_seconds, self._ready)

    def write(self, offset: int, block: bytes | memoryview) -> None:
        """Take one block into staging. Blocks must follow each other."""
        if offset != len(self.staging) or offset + len(block) > STAGING_SIZE:
            self._finish(Progress.IDLE, Status.NON_INCREMENTAL)
            return
        self.staging += block
        self._watch_host()

    def write_done(self) -> None:
        """The host has written everything: authenticate it."""
        self._forget_host()
        self.host = HostStatus.WRITE_DONE
        self.progress = Progress.AUTHENTICATING
        self._phases.begin("authenticating", self.profile.authentication_seconds, self._authenticate)

    def abort(self) -> None:
        """The host gives up; only heard in READY."""
        if self.progress == Progress.READY:
            self.host = HostStatus.ABORT
            self._finish(Progress.IDLE, Status.NORMAL)

    def _ready(self) -> None:
        self.progress = Progress.READY
        self._watch_host()
        self._tell()

    def _flawed(self, name: str) -> bool:
        return name in self.profile.flaws

    def _authenticate(self) -> None:
        decision = authentication.authenticate(self.staging, self.trust, self.profile)
        self.auth_result = decision.code
        if not decision.accepted:
            if self._flawed("refused-image-copied"):
                payload = bytes(self.staging[HEADER_SIZE:])
                self._store(replace(self.state, user_page=payload))
            if decision.check == "csk-cancelled" and self.profile.cancelled_csk_locks_updates:
                self.stuck = True
            self._finish(Progress.IDLE, Status.AUTH_FAIL)
            return
        if not self.profile.failed_authentication_counts:
            self._store(replace(self.state, flash_count=self.state.flash_count + 1))
        effect = decision.effect
        if effect is None:
            self._finish(Progress.RSU_DONE, Status.NORMAL)
        elif isinstance(effect, authentication.StorePayload):
            self._begin_copy(effect)
        else:
            key = isinstance(effect, authentication.ProgramRoot)
            self.progress = Progress.PROGRAM_KEY_HASH if key else Progress.UPDATE_CANCEL
            self._phases.begin("keys", self.profile.key_seconds, lambda: self._program(effect))
        self._tell()

    def _program(self, effect: authentication.ProgramRoot | authentication.CancelKey) -> None:
        if isinstance(effect, authentication.ProgramRoot):
            if not self._flawed("root-key-dropped"):
                self._store(self.state.with_root(effect.section, effect.root))
        elif not self._flawed("cancellation-dropped"):
            csk_id = effect.csk_id + self._flawed("next-csk-cancelled")
            self._store(self.state.with_cancelled(effect.section, csk_id % (MAX_CSK_ID + 1)))
        self._load_trust(at_boot=False)
        self._finish(Progress.RSU_DONE, Status.NORMAL)

    def _begin_copy(self, effect: authentication.StorePayload) -> None:
        if self._flawed("copy-dropped"):
            self._finish(Progress.RSU_DONE, Status.NORMAL)
            return
        self.progress = Progress.COPYING
        self._store(_with_page(self.state, effect.section, b""))
        seconds = len(effect.payload) / self.profile.copy_rate
        self._copy = (effect, self._clock.now(), seconds)
        self._phases.begin("copying", seconds, self._copied)

    def _copied(self) -> None:
        assert self._copy is not None
        effect, self._copy = self._copy[0], None
        length = len(effect.payload) // (2 if self._flawed("copy-cut-short") else 1)
        self._store(_with_page(self.state, effect.section, effect.payload[:length]))
        worn = self.profile.wearout_at_completion and self._wear_delay() > 0
        self._finish(Progress.RSU_DONE, Status.WEAROUT if worn else Status.NORMAL)

    def _finish(self, progress: Progress, status: Status) -> None:
        self._forget_host()
        self.staging = bytearray()
        self.progress = progress
        self.status = status
        self._last_update = self._clock.now()
        self._tell()

    def _tell(self) -> None:
        if self.on_progress is not None:
            self.on_progress()

    def _store(self, state: CardState) -> None:
        self.state = state
        self._save(state)

    def _wear_delay(self) -> float:
        if self.state.flash_count > self.profile.wear_second_count:
            return self.profile.wear_second_delay
        return (
            self.profile.wear_first_delay if self.state.flash_count > self.profile.wear_first_count else 0.0
        )

    # --- a host that went away -------------------------------------------------------------------

    def _watch_host(self) -> None:
        self._forget_host()
        when = self._clock.now() + self.profile.host_timeout_seconds
        self._host_timeout = self._clock.at(when, self._phases.guarded(self._host_silent), background=True)

    def _host_silent(self) -> None:
        due = self._host_timeout
        if self.progress == Progress.READY and due is not None and due.when <= self._clock.now():
            self._finish(Progress.IDLE, Status.HOST_TIMEOUT)

    def _forget_host(self) -> None:
        if self._host_timeout is not None:
            self._host_timeout.cancel()
            self._host_timeout = None

    # --- power and boot --------------------------------------------------------------------------

    def stop(self) -> None:
        """Lose power, or reboot: whatever ran ends where it is. A page in copying stays half written."""
        self._phases.stop()
        self._forget_host()
        if self._copy is not None:
            effect, begun, seconds = self._copy
            self._copy = None
            if self.profile.half_written_copy == "half":
                done = (self._clock.now() - begun) / seconds if seconds else 0.0
                length = min(int(len(effect.payload) * done), len(effect.payload) - 1)
                self._store(_with_page(self.state, effect.section, effect.payload[:length]))

    def boot(self, page: Page = "user") -> None:
        """Boot the BMC from ``page``, and configure the FPGA from its user or else its factory page."""
        self.stuck = False
        self._forget_keys()
        self._load_trust(at_boot=True)
        self._boot_bmc(page)
        self._configure_fpga()
        self._reset_registers(Status.USER_OK if self.fpga_page == "user" else Status.FACTORY_OK)
        self._last_update = self._clock.now()

    def _forget_keys(self) -> None:
        """Lose what a defective card does not keep."""
        if self._flawed("root-key-lost") and self.state.sr_root is not None:
            self._store(replace(self.state, sr_root=None))
        if self._flawed("cancellations-lost") and self.state.sr_cancelled:
            self._store(replace(self.state, sr_cancelled=frozenset()))

    def _load_trust(self, *, at_boot: bool) -> None:
        for section in SECTIONS:
            root = self.state.root(section)
            if section == "SR" and self._flawed("root-key-ignored"):
                self.trust[section] = authentication.SectionTrust(programmed=root is not None)
                continue
            if at_boot or self.profile.enforcement == "at-once":
                trust = authentication.SectionTrust(root, root is not None, self.state.cancelled(section))
            else:
                trust = replace(self.trust[section], programmed=root is not None)
            self.trust[section] = trust

    def _boot_bmc(self, page: Page) -> None:
        user = self._bmc_identity(self.state.bmc_user_page) if page == "user" else None
        self.bmc_page = "factory" if user is None else "user"
        factory = self._bmc_identity(self.state.bmc_factory_page)
        self.versions = user or factory or FACTORY_BMC

    def _configure_fpga(self) -> None:
        self.fpga_page, self.fpga = "user", self._fpga_identity(self.state.user_page)
        if self.fpga is None or self._flawed("factory-page-booted"):
            self.fpga_page, self.fpga = "factory", self._fpga_identity(self.state.factory_page)

    def _fpga_identity(self, page: bytes | None) -> PayloadIdentity | None:
        if not page:
            return None
        return read_descriptor(reverse_bits(page)) or self._payloads.sr.get(_digest(page))

    def _bmc_identity(self, page: bytes | None) -> BmcIdentity | None:
        if not page:
            return None
        return read_bmc_descriptor(page) or self._payloads.bmc.get(_digest(page))


def _digest(page: bytes) -> str:
    return hashlib.sha256(page).hexdigest()


def _with_page(state: CardState, section: Section, content: bytes) -> CardState:
    if section == "BMC":
        return replace(state, bmc_user_page=content)
    return replace(state, user_page=content)
