"""The kernel's side of an update on one card: a worker that carries it out (generations B, C and D).

States, errors and errno follow ``drivers/base/firmware_loader/sysfs_upload.c`` and
``drivers/fpga/intel-m10-bmc-sec-update.c`` as the fact sheet, 4.2 and 4.4, has them; in what the older
generations differ is in :mod:`harness.emulator.card.dialects`. The driver does not
poll here: the BMC tells it when its progress changes, and its time limits are events.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Final, Literal

from harness.emulator.card.bmc import Bmc, Progress, Status
from harness.emulator.card.dialects import Dialect
from harness.emulator.card.guard import Guard
from harness.emulator.card.phases import Phases
from harness.emulator.clock import Event, LabClock
from harness.images.layout import STAGING_SIZE

UploadStatus = Literal["idle", "receiving", "preparing", "transferring", "programming"]

BLOCK_SIZE: Final = 0x4000
HANDSHAKE_SECONDS: Final = 5.0
PREPARE_SECONDS: Final = 120.0
PROGRAM_SECONDS: Final = 2400.0
#: Errors at which generation B keeps the BMC's registers (``m10bmc_sec_hw_errinfo``).
_WITH_REGISTERS: Final = frozenset({"hw-error", "timeout", "device-busy", "flash-wearout"})
_TRUE_WORDS: Final = (b"1", b"y", b"Y", b"t", b"T", b"on", b"ON", b"On", b"oN")


def os_error(number: int) -> OSError:
    """Return the error that a system call with this errno raises."""
    return OSError(number, os.strerror(number))


class SecureUpdate:
    """The driver's update of one card, by default as ``firmware/secure-update*/`` offers it.

    Every method is safe to call from any thread. Words are those of generation D.

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
        dialect: Dialect,
    ) -> None:
        self.dialect = dialect
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
        self._hw_errinfo = 0
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
                self.start(data)
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

    def hw_errinfo(self) -> int:
        """Doorbell and authentication result of an update that failed (generation B). EBUSY unless idle."""
        with self._guard:
            if self._status != "idle":
                raise os_error(errno.EBUSY)
            return self._hw_errinfo

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

    def abandon(self) -> None:
        """Ask for an end wherever one is still to be had, as generation C does when its device is closed."""
        with self._guard:
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
            self._status, self._error, self._remaining, self._hw_errinfo = "idle", "", 0, 0

    def _check_present(self) -> None:
        if not self.present:
            raise os_error(errno.ENODEV)

    def start(self, data: bytes | bytearray) -> None:
        """Begin an update with ``data``. The status has left ``idle`` before this returns."""
        with self._guard:
            if self._begin() and (data or self._bmc.profile.empty_upload != "ignored"):
                self._data, self._remaining = memoryview(data), len(data)
                self._receive(self._prepare)

    def start_from(self, read: Callable[[], bytes]) -> None:
        """Begin an update with the file that ``read`` gives, as the kernel's firmware loader does."""
        with self._guard:
            if self._begin():
                self._cancel_requested = False
                self._receive(lambda: self._read_file(read))

    def _begin(self) -> bool:
        """Return whether an update may begin. :raises OSError: ENODEV, EBUSY."""
        self._check_present()
        if self.busy:
            raise os_error(errno.EBUSY)
        return "ignore-upload" not in self._conditions

    def _receive(self, step: Callable[[], None]) -> None:
        """Leave ``idle``, and have the worker take ``step``."""
        self._status, self._error, self._hw_errinfo = "receiving", "", 0
        self._step = self._clock.at(self._clock.now(), self._phases.guarded(step))

    def _read_file(self, read: Callable[[], bytes]) -> None:
        if self._status != "receiving":
            return  # the host went down meanwhile
        try:
            data = read()
        except OSError:
            data = b""
        if not data:  # the loader takes no empty file
            self._fail("file-read-error")
            return
        if self._cancel_requested:
            self._fail("user-abort")
            return
        self._data, self._remaining = memoryview(data), len(data)
        self._prepare()

    def _prepare(self) -> None:
        if self._status != "receiving":
            return  # the host went down meanwhile
        self._status = "preparing"
        self._cancel_requested = False
        if not self._size_allowed():
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

    def _size_allowed(self) -> bool:
        return 0 < len(self._data) <= STAGING_SIZE

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
        if self._bmc.status in self.dialect.good_at_end:
            self._finish("")
        else:
            self._hardware_error()

    def _abort(self) -> None:
        self._bmc.on_progress = None
        self._bmc.abort()
        self._fail("user-abort")

    def _hardware_error(self) -> None:
        label = self.dialect.doorbell_label or self._bmc.profile.doorbell_label
        register = self.dialect.register.format
        self._log(f"{label}: {register(self._bmc.doorbell)}")
        self._log(f"RSU auth result: {register(self._bmc.auth_result)}")
        self._fail("hw-error")

    def _timed_out(self) -> None:
        if self.busy and self._limit is not None and self._limit.when <= self._clock.now():
            self._fail("timeout")

    def _fail(self, name: str) -> None:
        if name in _WITH_REGISTERS:
            self._hw_errinfo = self._bmc.doorbell << 32 | self._bmc.auth_result
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
