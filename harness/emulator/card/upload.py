"""The kernel's side of an update: driver generation D (firmware-upload interface) on one card.

States, errors and errno follow ``drivers/base/firmware_loader/sysfs_upload.c`` and
``drivers/fpga/intel-m10-bmc-sec-update.c`` as the fact sheet, 4.2 and 4.4, has them. The driver does not
poll here: the BMC tells it when its progress changes, and its time limits are events.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Final, Literal

from harness.emulator.card.bmc import Bmc, Progress, Status
from harness.emulator.card.guard import Guard
from harness.emulator.card.phases import Phases
from harness.emulator.clock import Event, LabClock
from harness.images.layout import STAGING_SIZE

UploadStatus = Literal["idle", "receiving", "preparing", "transferring", "programming"]

BLOCK_SIZE: Final = 0x4000
HANDSHAKE_SECONDS: Final = 5.0
PREPARE_SECONDS: Final = 120.0
PROGRAM_SECONDS: Final = 2400.0
#: What the BMC's status may be at the end of an update (4.4 step 5).
_GOOD_STATUS: Final = frozenset({0x00, 0x80, 0x81, 0x82})
_TRUE_WORDS: Final = (b"1", b"y", b"Y", b"t", b"T", b"on", b"ON", b"On", b"oN")


def os_error(number: int) -> OSError:
    """Return the error that a system call with this errno raises."""
    return OSError(number, os.strerror(number))


class SecureUpdate:
    """``firmware/secure-update*/`` of one card; every method is safe to call from any thread.

    :raises OSError: as the kernel would, with its errno.
    """

    def __init__(
        self,
        bmc: Bmc,
        clock: LabClock,
        phases: Phases,
        guard: Guard,
        log: Callable[[str], None],
        conditions: set[str],
    ) -> None:
        self._bmc = bmc
        self._clock = clock
        self._phases = phases
        self._guard = guard
        self._log = log
        self._conditions = conditions
        #: Whether the card is on the bus; without it there is no device to write to.
        self.present = False
        self._loading = False
        self._buffer = bytearray()
        self._data = memoryview(b"")
        self._status: UploadStatus = "idle"
        self._error = ""
        self._remaining = 0
        self._cancel_requested = False
        self._step: Event | None = None
        self._limit: Event | None = None

    # --- the attributes --------------------------------------------------------------------------

    def read_loading(self) -> str:
        """``loading``: 1 while the file is being written to ``data``."""
        return "1" if self._loading else "0"

    def write_loading(self, text: bytes) -> None:
        """``loading``: 1 takes a new file, 0 starts the update with it, -1 drops it.

        The status has left ``idle`` before this returns.
        """
        with self._guard:
            self._check_present()
            word = text.strip()
            if word == b"1":
                self._buffer = bytearray()
                self._loading = True
            elif word == b"0" and self._loading:
                self._loading = False
                data, self._buffer = self._buffer, bytearray()
                self._start(data)
            else:
                if word != b"-1":
                    self._log(f"firmware_loading_store: unexpected value ({word.decode('ascii', 'replace')})")
                self._loading = False
                self._buffer = bytearray()

    def write_data(self, data: bytes, offset: int = 0) -> None:
        """``data``: a part of the file."""
        with self._guard:
            self._check_present()
            if not self._loading:
                raise os_error(errno.ENODEV)
            if offset == len(self._buffer):
                self._buffer += data
                return
            if offset > len(self._buffer):
                self._buffer.extend(bytes(offset - len(self._buffer)))
            self._buffer[offset : offset + len(data)] = data

    def status(self) -> UploadStatus:
        """``status``."""
        return self._status

    def error(self) -> str:
        """``error``: ``<phase>:<error>`` of the last update, or empty. EBUSY unless idle."""
        with self._guard:
            if self._status != "idle":
                raise os_error(errno.EBUSY)
            return self._error

    def remaining_size(self) -> int:
        """``remaining_size``: bytes not yet in staging; keeps its value after an error."""
        return self._remaining

    def cancel(self, text: bytes = b"1") -> None:
        """``cancel``: ask for an end; heard at the driver's next step. ENODEV when idle."""
        with self._guard:
            if text.strip() not in _TRUE_WORDS:
                raise os_error(errno.EINVAL)
            if self._status == "idle":
                raise os_error(errno.ENODEV)
            if self._status == "programming":
                if self._bmc.profile.cancel_while_programming == "busy":
                    raise os_error(errno.EBUSY)
                return
            self._cancel_requested = True

    @property
    def busy(self) -> bool:
        """Whether an update holds the driver."""
        return self._status != "idle"

    # --- the worker ------------------------------------------------------------------------------

    def forget(self) -> None:
        """The host went down: its driver, and what it was about to do, is gone. The card is not told."""
        with self._guard:
            if self._phases.current == "transferring":
                self._phases.stop()
            self._stop_events()
            self._bmc.on_progress = None
            self._loading, self._buffer, self._data = False, bytearray(), memoryview(b"")
            self._status, self._error, self._remaining = "idle", "", 0

    def _check_present(self) -> None:
        if not self.present:
            raise os_error(errno.ENODEV)

    def _start(self, data: bytearray) -> None:
        if self.busy:
            raise os_error(errno.EBUSY)
        if "ignore-upload" in self._conditions:
            return
        if not data and self._bmc.profile.empty_upload == "ignored":
            return
        self._status, self._error = "receiving", ""
        self._data, self._remaining = memoryview(data), len(data)
        self._step = self._clock.at(self._clock.now(), self._phases.guarded(self._prepare))

    def _prepare(self) -> None:
        if self._status != "receiving":
            return  # the host went down meanwhile
        self._status = "preparing"
        self._cancel_requested = False
        if not 0 < len(self._data) <= STAGING_SIZE:
            self._fail("invalid-file-size")
        elif "all-ones" in self._conditions or "busy" in self._conditions or not self._bmc.accepts_request:
            self._fail("device-busy")
        elif "silent" in self._conditions:
            self._set_limit(HANDSHAKE_SECONDS)
        else:
            self._set_limit(PREPARE_SECONDS)
            self._bmc.on_progress = self._progressed
            self._bmc.request()
            if self._bmc.status == Status.WEAROUT:
                self._log("Excessive flash update count detected")
                self._fail("flash-wearout")

    def _progressed(self) -> None:
        """The BMC's progress changed while this driver waited for it."""
        progress = self._bmc.progress
        if self._status == "preparing" and progress == Progress.READY:
            self._clear_limit()
            if self._cancel_requested:
                self._abort()
                return
            self._status = "transferring"
            self._transfer(0)
        elif self._status == "programming" and progress in (Progress.IDLE, Progress.RSU_DONE):
            self._complete()
        elif self._status == "transferring" and progress != Progress.READY:
            self._hardware_error()

    def _transfer(self, offset: int) -> None:
        block = self._data[offset : offset + BLOCK_SIZE]
        end = offset + len(block)
        last = end == len(self._data)

        def write() -> None:
            if self._cancel_requested:
                self._abort()
                return
            self._bmc.write(offset, block)
            if self._status != "transferring":
                return  # the BMC refused the block
            self._remaining = len(self._data) - end
            if last:
                self._program()
            else:
                self._transfer(end)

        seconds = len(block) / self._bmc.profile.transfer_rate
        self._phases.begin("transferring", seconds, write, last=last)

    def _program(self) -> None:
        self._status = "programming"
        self._set_limit(PROGRAM_SECONDS)
        self._bmc.write_done()

    def _complete(self) -> None:
        if self._bmc.status in _GOOD_STATUS:
            self._finish("")
        else:
            self._hardware_error()

    def _abort(self) -> None:
        self._bmc.on_progress = None
        self._bmc.abort()
        self._fail("user-abort")

    def _hardware_error(self) -> None:
        label = self._bmc.profile.doorbell_label
        self._log(f"{label}: 0x{self._bmc.doorbell:08x}")
        self._log(f"RSU auth result: 0x{self._bmc.auth_result:08x}")
        self._fail("hw-error")

    def _timed_out(self) -> None:
        if self.busy and self._limit is not None and self._limit.when <= self._clock.now():
            self._fail("timeout")

    def _fail(self, name: str) -> None:
        self._finish(f"{self._status}:{name}")

    def _finish(self, error: str) -> None:
        self._stop_events()
        self._bmc.on_progress = None
        if self._status != "preparing":
            self._bmc.abort()  # the driver's clean-up; it makes none where preparing failed
        self._data = memoryview(b"")
        self._error = error
        self._status = "idle"

    def _set_limit(self, seconds: float) -> None:
        self._clear_limit()
        when = self._clock.now() + seconds
        self._limit = self._clock.at(when, self._phases.guarded(self._timed_out))

    def _clear_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _stop_events(self) -> None:
        self._clear_limit()
        if self._step is not None:
            self._step.cancel()
            self._step = None
