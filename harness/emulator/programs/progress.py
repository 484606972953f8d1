"""The progress bars of the OPAE tools."""

from __future__ import annotations

from collections.abc import Callable

from harness.emulator.process import Out
from harness.emulator.programs.editions import Edition

_BARS = 20
_WIDTH = 80


class Progress:
    """A bar that grows with bytes or with time; printed only when its percentage has grown.

    Leaving it without an exception completes it, even where the update behind it has failed.
    """

    def __init__(
        self,
        out: Out,
        now: Callable[[], float],
        log: Callable[[str], None] | None,
        edition: Edition,
        *,
        total_bytes: int = 0,
        total_seconds: float = 0.0,
    ) -> None:
        self._out = out
        self._now = now
        self._log = log
        self._edition = edition
        self._bytes = total_bytes
        self._seconds = total_seconds
        self._began = now()
        self._shown = 0

    def update(self, done: int) -> None:
        """``done`` bytes are through."""
        self._show(done / self._bytes if self._bytes else 1.0, f" [{done}/{self._bytes} bytes]")

    def tick(self) -> None:
        """Some time has passed."""
        self._show((self._now() - self._began) / self._seconds, "")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None:
            if self._seconds:
                self._show(1.0, "")
            else:
                self.update(self._bytes)
        self._out.write(b"\n")

    def _show(self, ratio: float, detail: str) -> None:
        ratio = min(ratio, 1.0)
        percent = int(ratio * 100)
        if percent <= self._shown:
            return
        self._shown = percent
        bars = int(ratio * _BARS) * "█"
        elapsed = f"{self._edition.time_label}{self._edition.duration(self._now() - self._began)}"
        text = f"({percent:3}%) [{bars:{_BARS}}]{detail}[{elapsed}]"
        if self._log is not None:
            self._log(text)
            return
        end = "\r" if self._out.isatty() else "\n"
        self._out.write(f"{text:{_WIDTH}}{end}".encode())
