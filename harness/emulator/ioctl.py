"""The character devices by whose ioctls generations A and C take an update; the emulated tools open them.

They are part of the emulated kernel, for the emulated tools alone: no file system face hands ioctls on.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from harness.emulator.vfs import Device

if TYPE_CHECKING:
    from harness.emulator.card import BlockUpdate, SecureUpdate

#: Lets lab time pass for the caller, whatever signal it gets: as a system call that cannot be interrupted.
Wait = Callable[[float], object]

_STEP_SECONDS = 0.1


class ExclusiveDevice(Device):
    """A character device that one process at a time may have open."""

    __slots__ = ("_opened",)

    def __init__(self) -> None:
        super().__init__()
        self._opened = False

    def acquire(self) -> None:
        """``open(2)``. :raises OSError: EBUSY: another has it open."""
        if self._opened:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        self._opened = True

    def release(self, wait: Wait) -> None:
        """``close(2)``, or the end of the process."""
        self._opened = False


class BlockDevice(ExclusiveDevice):
    """``/dev/ifpga_secN`` (generation A): the tool sends block by block (0xb900 to 0xb904)."""

    __slots__ = ("_drops", "_forgets", "_update")

    def __init__(self, update: BlockUpdate, defects: Collection[str] = ()) -> None:
        super().__init__()
        self._update = update
        self._drops = "driver-starts-nothing" in defects
        self._forgets = "driver-forgets-error" in defects

    def start(self) -> None:
        """0xb900. :raises OSError: EAGAIN while staging is erased, EBUSY, ETIMEDOUT."""
        if not self._drops:
            self._update.start_blocks()

    def write_block(self, offset: int, block: bytes, wait: Wait) -> None:
        """0xb901; returns when the block is in staging."""
        if self._drops:
            return
        wait(self._update.write_block(offset, block))
        while self._update.writing:
            wait(_STEP_SECONDS)

    def data_sent(self) -> None:
        """0xb902."""
        if not self._drops:
            self._update.data_sent()

    def check_complete(self) -> None:
        """0xb903. :raises OSError: EAGAIN while the card is busy; else what went wrong."""
        try:
            self._update.check_complete()
        except OSError as error:
            if error.errno == errno.EAGAIN or not self._forgets:
                raise

    def cancel(self) -> None:
        """0xb904. :raises OSError: EBUSY once the card programs."""
        self._update.cancel_blocks()

    def release(self, wait: Wait) -> None:
        """What was not sent to its end is given up."""
        self._update.released()
        super().release(wait)


class ImageLoadDevice(ExclusiveDevice):
    """``/dev/fpga_image_loadN`` (generation C): a worker of the kernel carries the update out."""

    __slots__ = ("_drops", "_forgets", "_update")

    def __init__(self, update: SecureUpdate, defects: Collection[str] = ()) -> None:
        super().__init__()
        self._update = update
        self._drops = "driver-starts-nothing" in defects
        self._forgets = "driver-forgets-error" in defects

    def write(self, data: bytes) -> None:
        """``FPGA_IMAGE_LOAD_WRITE``, 0x4018b900. :raises OSError: EINVAL for no bytes."""
        if not data:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if not self._drops:
            self._update.start(data)

    def status(self) -> tuple[int, str, str]:
        """``FPGA_IMAGE_LOAD_STATUS``, 0x8010b901: bytes left, progress, error of the last update."""
        progress = self._update.status()
        error = self._update.error() if progress == "idle" and not self._forgets else ""
        return self._update.remaining_size(), progress, error.partition(":")[2]

    def cancel(self) -> None:
        """``FPGA_IMAGE_LOAD_CANCEL``, 0xb902. :raises OSError: ENODEV when idle."""
        if not self._update.busy:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        self._update.abandon()

    def release(self, wait: Wait) -> None:
        """Cancel what can be cancelled, and wait for the worker (``fpga_image_load_release``)."""
        if self._update.busy:
            self._update.abandon()
            while self._update.busy:
                wait(_STEP_SECONDS)
        super().release(wait)
