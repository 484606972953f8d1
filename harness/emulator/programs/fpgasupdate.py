"""``fpgasupdate`` (OPAE): its checks, texts and exit codes (n3000.md 5.1), in the edition of its tool era.

Like the real tool it infers success: an idle status and an empty error at the moments when it looks. How it
hands a file to the driver of each generation is in :mod:`harness.emulator.programs.update_flows`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from harness.emulator.programs import opae
from harness.emulator.programs.base import Invocation, Main, ProgramExit, reason
from harness.emulator.programs.editions import Edition
from harness.emulator.programs.update_flows import SECURE_UPDATE_OK, Update, interface_of

_LEVELS: Final = ("state", "ioctl", "debug", "info", "warning", "error", "critical")
_BLOCK0_MAGIC: Final = 0xB6EAFD19
_MINIMUM_BYTES: Final = 1152
_SECTIONS: Final = {0: "Static Region", 1: "BMC Image", 2: "Green BitStream"}
_KINDS: Final = {0: "Update", 1: "Key Cancellation", 2: "Root Entry Hash 256", 3: "Root Entry Hash 384"}
_ANY_ADDRESS: Final = "ssss:bb:dd.f"
_USAGE: Final = (
    "usage: fpgasupdate [-h] [--log-level {state,ioctl,debug,info,warning,error,critical}] [-y] [-v]\n"
    "                   [file] [bdf]\n"
)


class _Tool:
    def __init__(self, run: Invocation, edition: Edition) -> None:
        self._run = run
        self._edition = edition
        self._now = run.host.wall_clock
        self._level = "info"

    def log(self, level: str, text: str) -> None:
        if _LEVELS.index(level) < _LEVELS.index(self._level):
            return
        self._run.out(f"[{self._edition.stamp(self._now())}] [{level.upper():<8}] {text}\n")

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
                self._run.out(f"fpgasupdate {self._edition.version}\n")
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
        if "fpgasupdate-refuses-board" in self._run.host.defects:
            self.log("error", f"Failed to read fpga_boot_image of {pac.address}")
            return 1
        self.log("warning", "Update starting. Please do not interrupt.")
        began = self._now()
        interface = interface_of(pac)
        if interface is None:
            if self._edition.modern:
                missing = "AttributeError: 'NoneType' object has no attribute 'find_one'"
                raise opae.traceback(self._run, missing)
            self.log("error", f"Failed to find secure device for PAC {pac.address}")
            return 1
        flow, place = interface
        self.log("debug", f"Found secure device for PAC {pac.address} : {place}")
        chatty = self._level in ("state", "ioctl", "debug")
        update = Update(self._run, self._edition, pac, place, self.log, chatty=chatty)
        status, message = update.run(flow, name, data)
        if status and "fpgasupdate-ignores-error" in self._run.host.defects:
            status, message = 0, SECURE_UPDATE_OK
        self.log("error" if status else "info", message)
        self.log("info", f"Total time: {self._edition.duration(self._now() - began)}")
        return 0 if "fpgasupdate-exits-0" in self._run.host.defects else status


def _fpgasupdate(edition: Edition, run: Invocation) -> int:
    with run.host.clock.actor():
        return _Tool(run, edition).main()


def programs(edition: Edition) -> dict[str, Main]:
    """Return ``fpgasupdate``, which writes a signed image to a card."""
    return {"fpgasupdate": partial(_fpgasupdate, edition)}
