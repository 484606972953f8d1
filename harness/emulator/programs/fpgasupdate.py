"""``fpgasupdate`` (OPAE, driver generation D): its checks, texts, timing and exit codes (n3000.md 5.1).

Like the real tool it infers success: an idle status and an empty error at the moments when it looks.
"""

from __future__ import annotations

import errno
import signal
import time
from collections.abc import Callable
from typing import Final

from harness.emulator.process import Signalled
from harness.emulator.programs import opae
from harness.emulator.programs.base import Invocation, Main, ProgramExit, reason
from harness.emulator.programs.progress import Progress, duration

_LEVELS: Final = ("state", "ioctl", "debug", "info", "warning", "error", "critical")
_BLOCK0_MAGIC: Final = 0xB6EAFD19
_BLOCK0_BYTES: Final = 128
_MINIMUM_BYTES: Final = 1152
_GBS_GUID: Final = b"XeonFPGA\xb7GBSv001"
_SECTIONS: Final = {0: "Static Region", 1: "BMC Image", 2: "Green BitStream"}
_KINDS: Final = {0: "Update", 1: "Key Cancellation", 2: "Root Entry Hash 256", 3: "Root Entry Hash 384"}
_ANY_ADDRESS: Final = "ssss:bb:dd.f"
_COPY_RATE: Final = 43000.0  # bytes in a second that the tool reckons with, times 1.5 for an ageing flash
_SLACK: Final = 1.5
_POLL_SECONDS: Final = 1.0
_IDLE_POLLS, _PREPARE_POLLS, _WRITE_POLLS, _PROGRAM_POLLS = 300, 300, 2 * 3600, 3 * 3600
_USAGE: Final = (
    "usage: fpgasupdate [-h] [--log-level {state,ioctl,debug,info,warning,error,critical}] [-y] [-v]\n"
    "                   [file] [bdf]\n"
)


class _Ended(Exception):
    """The update is over for the tool, with an exit status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message


class _Tool:
    def __init__(self, run: Invocation) -> None:
        self._run = run
        self._now = run.host.clock.now
        self._level = "info"

    def log(self, level: str, text: str) -> None:
        if _LEVELS.index(level) < _LEVELS.index(self._level):
            return
        now = self._now()
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now))
        self._run.out(f"[{stamp}.{int(now % 1 * 100):02d}] [{level.upper():<8}] {text}\n")

    # -- before the card ------------------------------------------------------------------------

    def _arguments(self) -> tuple[str, str, bool]:
        """Return file, address and whether to ask. :raises ProgramExit: usage."""
        words: list[str] = []
        ask = True
        pending = self._run.argv[1:]
        while pending:
            word = pending.pop(0)
            if word in ("-h", "--help"):
                self._run.out(_USAGE)
                raise ProgramExit(0)
            if word in ("-v", "--version"):
                self._run.out("fpgasupdate 2.14.0\n")
                raise ProgramExit(0)
            if word in ("-y", "--yes"):
                ask = False
            elif word.startswith("--log-level"):
                _, equals, value = word.partition("=")
                self._level = value if equals else pending.pop(0) if pending else ""
                if self._level not in _LEVELS:
                    choices = ", ".join(map(repr, _LEVELS))
                    raise self._usage(
                        f"argument --log-level: invalid choice: '{self._level}' (choose from {choices})"
                    )
            elif word.startswith("-"):
                raise self._usage(f"unrecognized arguments: {word}")
            else:
                words.append(word)
        if len(words) > 2:
            raise self._usage(f"unrecognized arguments: {' '.join(words[2:])}")
        if not words:
            self._run.out("Error: file is a required argument\n\n")
            self._run.err(_USAGE)
            raise ProgramExit(1)
        return words[0], words[1] if len(words) > 1 else _ANY_ADDRESS, ask

    def _usage(self, message: str) -> ProgramExit:
        self._run.err(f"{_USAGE}fpgasupdate: error: {message}\n")
        return ProgramExit(2)

    def _check_file(self, name: str, data: bytes, ask: bool) -> None:
        """Decide as the tool does: by size and magic alone (n3000.md 2.8)."""
        if len(data) < _MINIMUM_BYTES:
            minimum = f"{name} does not meet the minimum file size requirement of {_MINIMUM_BYTES}"
            self.log("warning", minimum)
        elif int.from_bytes(data[:4], "little") == _BLOCK0_MAGIC:
            self.log("debug", f"hash256: {data[0x10:0x30].hex().encode()!r}")
            self.log("debug", f"hash384: {data[0x30:0x60].hex().encode()!r}")
            section, kind = _SECTIONS.get(data[8], "<unknown>"), _KINDS.get(data[9], "<unknown>")
            self.log("debug", f"file type: {section} ({kind})")
            if data[9] in (1, 2, 3) and ask:
                self._confirm()
            return
        self.log("error", f"Unknown file format in {name}")
        raise ProgramExit(1)

    def _confirm(self) -> None:
        while True:
            self._run.out(
                "*** Programming a Root Entry Hash or Key Cancellation cannot be undone! Continue? [yes/No]> "
            )
            self._run.streams.stdout.flush()
            answer = bytearray()
            with self._run.host.clock.waiting():  # for a person, who may take long
                while (byte := self._run.streams.stdin.read(1)) not in (b"", b"\n"):
                    answer += byte
            if not byte and not answer:
                raise opae.traceback(self._run, "EOFError: EOF when reading a line")
            text = answer.decode("utf-8", "replace").lower()
            if text.startswith("yes"):
                return
            if not text or text.startswith("n"):
                self.log("info", "Operation canceled by user.")
                raise ProgramExit(1)

    def _card(self, address: str) -> opae.Pac:
        found = opae.cards(self._run)
        if address == _ANY_ADDRESS:
            if not found:
                self.log("error", "No suitable PAC found.")
            elif len(found) > 1:
                self.log("error", f"More than one PAC found. Please specify an {_ANY_ADDRESS}")
            else:
                return found[0]
            raise ProgramExit(1)
        canonical = opae.canonical_address(address)
        if canonical is None:
            self.log("error", f"{address} is not a valid PCIe address. Use {_ANY_ADDRESS}")
            raise ProgramExit(1)
        for pac in found:
            if pac.address == canonical.lower():
                return pac
        self.log("error", f"Failed to find PAC at {canonical}")
        raise ProgramExit(1)

    # -- the update -----------------------------------------------------------------------------

    def main(self) -> int:
        name, address, ask = self._arguments()
        try:
            data = self._run.vfs.read(self._run.path(name))
        except OSError as error:
            described = f"[Errno {error.errno}] {reason(error)}: '{name}'"
            raise self._usage(f"argument file: can't open '{name}': {described}") from None
        self.log("debug", f"fw file: {name}")
        self.log("debug", f"addr: {address}")
        self._check_file(name, data, ask)
        pac = self._card(address)
        self.log("warning", "Update starting. Please do not interrupt.")
        began = self._now()
        directory = pac.bmc("*-sec*.auto/firmware/secure-update*")
        if directory is None:
            raise opae.traceback(self._run, "AttributeError: 'NoneType' object has no attribute 'find_one'")
        self.log("debug", f"Found secure device for PAC {pac.address} : {directory}")
        status, message = self._guarded_update(pac, directory, name, data)
        self.log("error" if status else "info", message)
        self.log("info", f"Total time: {duration(self._now() - began)}")
        return status

    def _guarded_update(self, pac: opae.Pac, directory: str, name: str, data: bytes) -> tuple[int, str]:
        device = self._run.vfs.node(f"/dev/{(pac.fme or '').rpartition('/')[2]}")
        if not self._run.host.locks.acquire(device, self._run.process, exclusive=True):
            blocked = OSError(errno.EAGAIN, "Resource temporarily unavailable")
            raise opae.traceback(self._run, f"BlockingIOError: {opae.os_error_text(blocked)}")
        try:
            self._update(pac, _Upload(self._run, directory), name, data)
        except _Ended as end:
            return end.status, end.message
        except Signalled as caught:
            if caught.number == signal.SIGTERM:
                return 1, "Caught SIGTERM"  # the driver is not asked to stop
            if caught.number != signal.SIGINT:
                raise
            try:
                _Upload(self._run, directory).write("cancel", b"1")
            except OSError as error:
                raise opae.traceback(
                    self._run, f"{type(error).__name__}: {opae.os_error_text(error)}"
                ) from None
            return 1, "Interrupted"
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            raise opae.traceback(self._run, f"{type(error).__name__}: {opae.os_error_text(error)}") from None
        finally:
            self._run.host.locks.release(device, self._run.process)
        return 0, "Secure update OK"

    def _update(self, pac: opae.Pac, upload: _Upload, name: str, data: bytes) -> None:
        self.log("info", f"updating from file {name} with size {len(data)}")
        self.log("info", "waiting for idle")
        self._poll(_IDLE_POLLS, lambda: upload.status() == "idle")
        upload.write("loading", b"1")
        upload.write("data", data)
        upload.write("loading", b"0")
        self.log("info", "preparing image file")
        self._poll(_PREPARE_POLLS, lambda: upload.status() not in ("receiving", "preparing"))
        self._check_error(upload)
        self.log("info", "writing image file")
        with self._progress(total_bytes=len(data)) as progress:
            self._poll(
                _WRITE_POLLS,
                lambda: upload.remaining() == 0 or upload.status() == "idle",
                lambda: progress.update(len(data) - upload.remaining()),
            )
            self._check_error(upload)
        self.log("info", "programming image file")
        with self._progress(total_seconds=len(data) / _COPY_RATE * _SLACK) as progress:
            self._poll(
                _PROGRAM_POLLS,
                lambda: upload.status() not in ("transferring", "programming"),
                progress.tick,
            )
        self._check_error(upload)
        self.log("info", f"update of {pac.address} complete")

    def _progress(self, *, total_bytes: int = 0, total_seconds: float = 0.0) -> Progress:
        log = (lambda text: self.log("debug", text)) if self._level in ("state", "ioctl", "debug") else None
        out = self._run.streams.stdout
        return Progress(out, self._now, log, total_bytes=total_bytes, total_seconds=total_seconds)

    def _poll(self, polls: int, done: Callable[[], bool], each: Callable[[], None] = lambda: None) -> None:
        """Look once a second until ``done``. :raises _Ended: it took more than so many looks."""
        while not done():
            if polls == 0:
                raise _Ended(errno.ETIMEDOUT, "Secure update timed out")
            polls -= 1
            self._run.process.sleep(_POLL_SECONDS)
            each()

    @staticmethod
    def _check_error(upload: _Upload) -> None:
        """End with the driver's error where it is idle again and has one; busy is no error yet."""
        try:
            text = upload.read("error")
        except OSError as error:
            if error.errno == errno.EBUSY:
                return
            raise
        if text:
            raise _Ended(1, text)


class _Upload:
    """The driver's firmware-upload directory."""

    def __init__(self, run: Invocation, directory: str) -> None:
        self._run = run
        self._directory = directory

    def read(self, name: str) -> str:
        return self._run.vfs.read(f"{self._directory}/{name}").decode("utf-8", "replace").strip()

    def write(self, name: str, data: bytes) -> None:
        self._run.vfs.open(f"{self._directory}/{name}", read=False, write=True).write(data)

    def status(self) -> str:
        return self.read("status")

    def remaining(self) -> int:
        return int(self.read("remaining_size"))


def fpgasupdate(run: Invocation) -> int:
    """Write a signed image to a card."""
    with run.host.clock.actor():
        return _Tool(run).main()


PROGRAMS: dict[str, Main] = {"fpgasupdate": fpgasupdate}
