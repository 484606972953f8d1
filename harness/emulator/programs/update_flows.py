"""How ``fpgasupdate`` hands a file to the driver of each generation: by attributes, or by ioctls.

The steps, texts and time limits are those of the tool's source (OFS/opae-sdk): ``update_fw_sysfs`` for
generations B and D, ``update_fw_ioctl`` for C, and ``update_fw`` of OPAE 1.4 for A.
"""

from __future__ import annotations

import errno
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

from harness.emulator.ioctl import BlockDevice, ExclusiveDevice, ImageLoadDevice
from harness.emulator.process import Signalled
from harness.emulator.programs import opae
from harness.emulator.programs.base import Invocation, reason
from harness.emulator.programs.editions import Edition
from harness.emulator.programs.progress import Progress

Log = Callable[[str, str], None]
Flow = Callable[["Update", str, bytes], None]
D = TypeVar("D", bound=ExclusiveDevice)

_COPY_RATE: Final = 43000.0  # bytes in a second that the tool reckons with, times 1.5 for an ageing flash
_OLD_COPY_RATE: Final = 41000.0
_SLACK: Final = 1.5
_POLL_SECONDS: Final = 1.0
_IDLE_POLLS, _PREPARE_POLLS, _WRITE_POLLS, _PROGRAM_POLLS = 300, 300, 2 * 3600, 3 * 3600
_START_RETRIES: Final = 120
_BLOCK_BYTES: Final = 64 * 1024
_FIRMWARE: Final = "/usr/lib/firmware"
#: What the tool says last where all went well.
SECURE_UPDATE_OK: Final = "Secure update OK"
#: Error of generation C's driver -> what the tool calls it.
_IOCTL_WORDS: Final = {
    "hw-error": "hw_error",
    "user-abort": "canceled",
    "device-busy": "busy",
    "invalid-file-size": "invalid_size",
    "read-write-error": "rw_error",
    "flash-wearout": "flash_wearout",
}
_WORN: Final = (
    "Secure update is delayed due to excessive flash counts.\nPlease wait 30 seconds and try again."
)


class _Ended(Exception):
    """The update is over for the tool, with an exit status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message


class Update:
    """One update of ``pac``. ``place``: the driver's directory or device; ``chatty``: log the progress."""

    def __init__(
        self, run: Invocation, edition: Edition, pac: opae.Pac, place: str, log: Log, *, chatty: bool
    ) -> None:
        self._run = run
        self._edition = edition
        self._pac = pac
        self._place = place
        self._log = log
        self._chatty = chatty
        self._interrupt: Callable[[], None] = lambda: None

    def run(self, flow: Flow, name: str, data: bytes) -> tuple[int, str]:
        """Carry ``flow`` out under the card's lock; return exit status and last message.

        :raises ProgramExit: after the traceback of an exception that the tool does not catch.
        """
        device = self._run.vfs.node(f"/dev/{(self._pac.fme or '').rpartition('/')[2]}")
        if not self._run.host.locks.acquire(device, self._run.process, exclusive=True):
            blocked = OSError(errno.EAGAIN, "Resource temporarily unavailable")
            raise opae.traceback(self._run, f"BlockingIOError: {opae.os_error_text(blocked)}")
        try:
            flow(self, name, data)
        except _Ended as end:
            return end.status, _WORN if end.message == "flash_wearout" else end.message
        except Signalled as caught:
            if caught.number == signal.SIGTERM:
                return 1, "Caught SIGTERM"  # the driver is not asked to stop
            if caught.number != signal.SIGINT:
                raise
            self._or_traceback(self._interrupt)
            return 1, "Interrupted"
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            raise opae.traceback(self._run, f"{type(error).__name__}: {opae.os_error_text(error)}") from None
        finally:
            self._run.host.locks.release(device, self._run.process)
        return 0, SECURE_UPDATE_OK

    def _or_traceback(self, act: Callable[[], None]) -> None:
        try:
            act()
        except OSError as error:
            raise opae.traceback(self._run, f"{type(error).__name__}: {opae.os_error_text(error)}") from None

    def _progress(self, *, total_bytes: int = 0, total_seconds: float = 0.0) -> Progress:
        return Progress(
            self._run.streams.stdout,
            self._run.host.wall_clock,  # as time.time(), by which the tool's bars go
            (lambda text: self._log("debug", text)) if self._chatty else None,
            self._edition,
            total_bytes=total_bytes,
            total_seconds=total_seconds,
        )

    def _sleep(self, seconds: float = _POLL_SECONDS) -> None:
        self._run.process.sleep(seconds)

    def _poll(
        self,
        polls: int,
        done: Callable[[], bool],
        each: Callable[[], None] = lambda: None,
        sleep: float = _POLL_SECONDS,
    ) -> None:
        """Look every ``sleep`` seconds until ``done``. :raises _Ended: it took more than so many looks."""
        while not done():
            if polls == 0:
                raise _Ended(errno.ETIMEDOUT, "Secure update timed out")
            polls -= 1
            if sleep:
                self._sleep(sleep)
            each()

    def _wait(self, seconds: float) -> None:
        """Be in a system call that no signal cuts short."""
        self._run.streams.stdout.flush()
        self._run.host.clock.sleep(seconds)

    # -- generations B and D: attributes ----------------------------------------------------------

    def by_attributes(self, name: str, data: bytes) -> None:
        """``update_fw_sysfs``: the file to ``data``, or its name to ``update/filename``."""
        upload = _Attributes(self._run, self._place)
        self._interrupt = lambda: upload.write("cancel", b"1")
        self._log("info", f"updating from file {name} with size {len(data)}")
        copied = self._copy_for_loader(data) if upload.legacy else ""
        self._log("info", "waiting for idle")
        try:
            self._poll(_IDLE_POLLS, lambda: upload.status() == "idle")
            if copied:
                upload.write("filename", copied.removeprefix(f"{_FIRMWARE}/").encode())
            else:
                upload.write("loading", b"1")
                upload.write("data", data)
                upload.write("loading", b"0")
            self._log("info", "preparing image file")
            self._poll(_PREPARE_POLLS, lambda: upload.status() not in _PREPARING)
        except Signalled as caught:
            if caught.number == signal.SIGINT and copied:
                self._run.vfs.unlink(copied)
            raise  # on SIGTERM and SIGKILL the copy stays
        if copied:
            self._run.vfs.unlink(copied)
        upload.check_error()
        if "fpgasupdate-misses-phase" in self._run.host.defects:
            self._sleep()
            self._poll(_PREPARE_POLLS, lambda: upload.status() in _TRANSFERRING)
        self._log("info", "writing image file")
        with self._progress(total_bytes=len(data)) as progress:
            self._poll(
                _WRITE_POLLS,
                lambda: upload.remaining() == 0 or upload.status() == "idle",
                lambda: progress.update(len(data) - upload.remaining()),
            )
            upload.check_error()
        self._log("info", "programming image file")
        with self._progress(total_seconds=len(data) / _COPY_RATE * _SLACK) as progress:
            self._poll(_PROGRAM_POLLS, lambda: upload.status() not in _PROGRAMMING, progress.tick)
        upload.check_error()
        self._log("info", f"update of {self._pac.address} complete")

    def _copy_for_loader(self, data: bytes) -> str:
        """Copy the file to where the kernel's firmware loader finds it; return its path."""
        files = self._run.vfs
        if not files.exists(_FIRMWARE):
            self._log("error", f"Can't find {_FIRMWARE}")
            raise _Ended(1, "Secure update failed")
        if not files.exists(f"{_FIRMWARE}/intel"):
            files.mkdir(f"{_FIRMWARE}/intel")
        path = f"{_FIRMWARE}/intel/tmp{secrets.token_hex(4)}"
        files.write(path, data)
        return path

    # -- generation C: the ioctls of fpga_image_load -----------------------------------------------

    def by_image_load(self, name: str, data: bytes) -> None:
        """``update_fw_ioctl``: one ioctl starts the kernel's worker, another asks how far it is."""
        self._log("info", f"updating from file {name} with size {len(data)}")
        with self._opened(ImageLoadDevice) as device:
            try:
                self._image_load(device, data)
            except Signalled as caught:
                if caught.number == signal.SIGINT:  # caught while the device is still open
                    self._or_traceback(device.cancel)
                raise
            except OSError:
                raise _Ended(1, "OS Error") from None

    def _image_load(self, device: ImageLoadDevice, data: bytes) -> None:
        self._log("info", "waiting for idle")
        self._poll(_IDLE_POLLS, lambda: device.status()[1] == "idle")
        device.write(data)
        self._log("info", "preparing image file")
        self._poll(_PREPARE_POLLS, lambda: device.status()[1] not in _PREPARING)
        _check(device)
        self._log("info", "writing image file")
        with self._progress(total_bytes=len(data)) as progress:
            # Versions of that age wait for the last byte alone; here an update that ended ends it too.
            self._poll(
                _WRITE_POLLS,
                lambda: device.status()[0] == 0 or device.status()[1] == "idle",
                lambda: progress.update(len(data) - device.status()[0]),
            )
            _check(device)
        self._log("info", "programming image file")
        with self._progress(total_seconds=len(data) / _COPY_RATE * _SLACK) as progress:
            self._poll(_PROGRAM_POLLS, partial(self._programmed, device, progress), sleep=0.0)
        _check(device)
        self._log("info", f"update of {self._pac.address} complete")

    def _programmed(self, device: ImageLoadDevice, progress: Progress) -> bool:
        """Look, and wait a second where the card still programs. Ctrl-C only asks the driver to cancel."""
        if device.status()[1] not in _PROGRAMMING:
            return True
        try:
            self._sleep()
            progress.tick()
        except Signalled as caught:
            if caught.number != signal.SIGINT:
                raise
            device.cancel()
            if device.status()[1] == "programming":
                self._log("warning", "Ignoring Ctrl+C: programming phase is not interruptable")
        return False

    # -- generation A: the ioctls of ifpga_sec_mgr ---------------------------------------------------

    def by_blocks(self, name: str, data: bytes) -> None:
        """``update_fw`` of OPAE 1.4: the tool erases, sends block by block, and asks until it is done."""
        self._log("info", f"updating from file {name} with size {len(data)}")
        self._interrupt = self._cancel_blocks
        with self._opened(BlockDevice) as device:
            self._retry(device.start)
            self._log("info", "writing to staging area")
            with self._progress(total_bytes=len(data)) as progress:
                for offset in range(0, len(data), _BLOCK_BYTES):
                    block = data[offset : offset + _BLOCK_BYTES]
                    self._ioctl(partial(device.write_block, offset, block, self._wait))
                    self._run.process.check()
                    progress.update(offset + len(block))
            self._ioctl(device.data_sent)
            self._log("info", "applying update")
            with self._progress(total_seconds=len(data) / _OLD_COPY_RATE) as progress:
                while not self._ready(device.check_complete):
                    progress.tick()
                    self._sleep(_POLL_SECONDS / 2)

    def _cancel_blocks(self) -> None:
        with self._opened(BlockDevice) as device:
            try:
                device.cancel()
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise

    def _retry(self, call: Callable[[], None]) -> None:
        for _ in range(_START_RETRIES):
            if self._ready(call):
                return
            self._sleep()
        self._ioctl(call)

    def _ready(self, call: Callable[[], None]) -> bool:
        """Return whether the ioctl ``call`` is over; False for EAGAIN. :raises _Ended: it failed."""
        try:
            call()
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return False
            raise _Ended(error.errno or 1, reason(error)) from None
        return True

    def _ioctl(self, call: Callable[[], None]) -> None:
        if not self._ready(call):
            raise _Ended(errno.EAGAIN, "Resource temporarily unavailable")

    # -- devices ----------------------------------------------------------------------------------

    @contextmanager
    def _opened(self, kind: type[D]) -> Iterator[D]:
        """Have the driver's device open for a while."""
        device = self._run.vfs.node(self._place)
        assert isinstance(device, kind)
        device.acquire()
        try:
            yield device
        finally:
            device.release(self._wait)


_PREPARING: Final = ("receiving", "read_file", "reading", "preparing")
_TRANSFERRING: Final = ("transferring", "writing")
_PROGRAMMING: Final = (*_TRANSFERRING, "programming")


def _check(device: ImageLoadDevice) -> None:
    """End with the driver's error where it is idle again and has one."""
    _, progress, error = device.status()
    if progress == "idle" and error:
        raise _Ended(1, _IOCTL_WORDS.get(error, error))


class _Attributes:
    """The driver's directory: ``firmware/secure-updateN`` or ``ifpga_secN``."""

    def __init__(self, run: Invocation, directory: str) -> None:
        self._run = run
        #: Whether a file is named to it instead of written.
        self.legacy = run.vfs.exists(f"{directory}/update/filename")
        self._directory = f"{directory}/update" if self.legacy else directory

    def read(self, name: str) -> str:
        return self._run.vfs.read(f"{self._directory}/{name}").decode("utf-8", "replace").strip()

    def write(self, name: str, data: bytes) -> None:
        self._run.vfs.open(f"{self._directory}/{name}", read=False, write=True).write(data)

    def status(self) -> str:
        return self.read("status")

    def remaining(self) -> int:
        return int(self.read("remaining_size"))

    def check_error(self) -> None:
        """End with the driver's error where it is idle again and has one; busy is no error yet."""
        try:
            text = self.read("error")
        except OSError as error:
            if error.errno == errno.EBUSY:
                return
            raise
        if text:
            raise _Ended(1, text)


def interface_of(pac: opae.Pac) -> tuple[Flow, str] | None:
    """Return how the driver of ``pac`` takes an update, and where; None where it does not."""
    files = pac.run.vfs
    if directory := pac.bmc("*-secure.*.auto/*fpga_sec_mgr/*fpga_sec*"):
        return Update.by_attributes, directory
    if directory := pac.bmc("*-sec*.auto/firmware/secure-update*"):
        return Update.by_attributes, directory
    for pattern, flow in (
        ("*-sec*.auto/fpga_image_load/fpga_image_load*", Update.by_image_load),
        ("ifpga_sec_mgr/ifpga_sec*", Update.by_blocks),
    ):
        directory = pac.bmc(pattern)
        device = f"/dev/{(directory or '').rpartition('/')[2]}"
        if directory and files.exists(device):
            return flow, device
    return None
