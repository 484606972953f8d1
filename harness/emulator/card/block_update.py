"""The driver's side of an update that the tool itself drives, block by block (generation A: five ioctls).

What calls them, in which order and what it repeats, is in the vendor's tool of that age (OPAE 1.4); the
driver is out of tree, and how it answers beyond that is inferred.
"""

from __future__ import annotations

import errno
from typing import Final

from harness.emulator.card.upload import SecureUpdate, os_error
from harness.images.layout import STAGING_SIZE

#: Error of the update -> what the ioctl that meets it returns.
_ERRNO: Final[dict[str, int]] = {
    "hw-error": errno.EIO,
    "timeout": errno.ETIMEDOUT,
    "user-abort": errno.ECANCELED,
    "device-busy": errno.EBUSY,
    "flash-wearout": errno.EBUSY,
}


class BlockUpdate(SecureUpdate):
    """``SECURE_UPDATE_START``, ``_WRITE_BLK``, ``_DATA_SENT``, ``_CHECK_COMPLETE`` and ``_CANCEL``.

    :raises OSError: as the ioctls do; EAGAIN: ask again.
    """

    #: Whether the tool that has the device open has started an update.
    _started = False
    #: Whether that is none: the condition ``ignore-upload``.
    _ignored = False
    _writing = False

    def start_blocks(self) -> None:
        """Erase the staging area. EAGAIN until that is done."""
        with self._guard:
            if self._status == "preparing":
                raise os_error(errno.EAGAIN)
            if self._started:
                self._meet_error()
                return
            self._ignored = not self._begin()
            self._started = True
            if self._ignored:
                return
            self._status, self._error = "receiving", ""
            self._prepare()
            self._meet_error()
            raise os_error(errno.EAGAIN)

    def write_block(self, offset: int, block: bytes) -> float:
        """Take a block into staging; return the seconds after which :attr:`writing` is over."""
        with self._guard:
            if self._ignored:
                return 0.0
            self._expect("transferring")
            if offset + len(block) > STAGING_SIZE:
                raise os_error(errno.EINVAL)
            seconds = len(block) / self._bmc.profile.transfer_rate

            def written() -> None:
                self._writing = False
                if self._cancel_requested:
                    self._abort()
                else:
                    self._bmc.write(offset, block)

            self._writing = True
            self._phases.begin("transferring", seconds, written)
            return seconds

    @property
    def writing(self) -> bool:
        """Whether a block is on its way."""
        return self._writing and self._status == "transferring"

    def data_sent(self) -> None:
        """All blocks are there: have the card authenticate and copy them."""
        with self._guard:
            if not self._ignored:
                self._expect("transferring")
                self._program()

    def check_complete(self) -> None:
        """Return when the card is done. EAGAIN until then."""
        with self._guard:
            self._check_present()
            if self._status == "programming":
                raise os_error(errno.EAGAIN)
            self._meet_error()

    def cancel_blocks(self) -> None:
        """Give the update up. EBUSY once the card programs."""
        with self._guard:
            if self._status == "programming":
                raise os_error(errno.EBUSY)
            self.released()

    def released(self) -> None:
        """The tool has closed the device. What the card programs it goes on with; all else ends."""
        with self._guard:
            self._started = self._ignored = False
            if self._status == "transferring" and not self._writing:
                self._abort()
            else:
                self._cancel_requested = True

    def forget(self) -> None:
        """The host went down."""
        with self._guard:
            super().forget()
            self._started = self._ignored = self._writing = False

    def _transfer(self, offset: int) -> None:
        """The blocks come from the tool."""

    def _size_allowed(self) -> bool:
        return True  # nobody knows yet how long it will be

    def _expect(self, status: str) -> None:
        self._check_present()
        if self._status != status:
            self._meet_error()
            raise os_error(errno.EINVAL)

    def _meet_error(self) -> None:
        """:raises OSError: for the error that the update ended with, once."""
        error, self._error = self._error, ""
        if error:
            raise os_error(_ERRNO[error.partition(":")[2]])
