"""Follows one flash or reset while the driver performs it: what the tool prints, what the kernel shows."""

from __future__ import annotations

import posixpath
import re
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cards.eras import MOUNTED
from harness.cards.tool_output import PID_MARK
from harness.errors import HarnessBug, InfrastructureError
from harness.hosts.permits import Permit
from harness.hosts.protocol import Asked, CommandResult, Host
from harness.recordings.capture import UPTIME
from harness.recordings.model import (
    FOLDER_WORD,
    IMAGE_WORD,
    NAME_WORD,
    RESOLUTION,
    Act,
    Entry,
    Piece,
    Sample,
)
from harness.recordings.reading import read_files

#: Seconds of the host's own clock between two looks at a running update; `fpgasupdate` looks as often.
INTERVAL = 1.0
#: Real seconds between looks, as long as it is not known how fast the host's clock goes.
_FIRST_PAUSE = 0.02
_LEAST_PAUSE = 0.002
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)")
_PERFORMED = ("flash", "reset")


class Tap:
    """A host that is the one behind it, and lets a :class:`Watch` follow the tools that change a card."""

    def __init__(self, host: Host) -> None:
        self._host = host
        #: Follows the next flash or reset; None: nobody does.
        self.watch: Watch | None = None
        #: What was asked of the host without changing it.
        self.asked: list[CommandResult] = []
        #: Where an image was put last.
        self.image_path = ""

    @property
    def name(self) -> str:
        """The host's name in the inventory."""
        return self._host.name

    def run(
        self,
        argv: Sequence[str],
        *,
        permit: Permit | None = None,
        deadline: float = 30.0,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        """Run ``argv``; see :meth:`harness.hosts.protocol.Host.run`."""
        watch = self.watch
        if watch is not None and permit is not None and permit.act in _PERFORMED:
            watch.asked_before = len(self.asked)
            return watch.follow(argv, permit, deadline, on_output)
        result = self._host.run(argv, permit=permit, deadline=deadline, on_output=on_output)
        if permit is None or permit.act == "report":
            self.asked.append(result)
            if watch is not None:
                watch.seen(result)
        return result

    def run_all(self, commands: Sequence[Asked], *, deadline: float = 30.0) -> list[CommandResult]:
        """Run commands one after the other; see :meth:`harness.hosts.protocol.Host.run_all`."""
        results = self._host.run_all(commands, deadline=deadline)
        if self.watch is not None:
            for result in results:
                self.watch.seen(result)
        return results

    def read(self, path: str, *, deadline: float = 30.0) -> bytes:
        """Return the content of ``path``."""
        return self._host.read(path, deadline=deadline)

    def fetch(self, url: str, *, deadline: float = 120.0) -> bytes:
        """Return the image at ``url`` of a controller."""
        return self._host.fetch(url, deadline=deadline)

    def list(self, path: str, *, deadline: float = 30.0) -> list[str]:
        """Return the names in the directory ``path``."""
        return self._host.list(path, deadline=deadline)

    def readlink(self, path: str, *, deadline: float = 30.0) -> str:
        """Return the canonical path of ``path``."""
        return self._host.readlink(path, deadline=deadline)

    def put(self, source: bytes | Path, path: str, *, permit: Permit, deadline: float = 600.0) -> None:
        """Write ``source`` to ``path``."""
        self.image_path = path
        self._host.put(source, path, permit=permit, deadline=deadline)

    def wait_until_reachable(self, *, deadline: float = 300.0) -> None:
        """Return when the machine takes a login."""
        self._host.wait_until_reachable(deadline=deadline)

    def close(self) -> None:
        """Release the connection."""
        self._host.close()


class Watch:
    """Looks at a few files of a host while a tool works on a card, by the host's own clock.

    :param watched: name -> file. :param interval: seconds of the host's clock between two looks.
    """

    def __init__(self, host: Host, watched: Mapping[str, str], *, interval: float = INTERVAL) -> None:
        self._host = host
        self._watched = dict(watched)
        self._interval = interval
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="recording", daemon=True)
        self._failed: BaseException | None = None
        #: The harness's clock and the host's at the same moment, for each look.
        self._moments: list[tuple[float, float]] = []
        self._samples: list[tuple[float, dict[str, Entry]]] = []
        self._printed: list[tuple[float, str]] = []
        self._result: CommandResult | None = None
        self._ended = 0.0
        #: How many questions were asked of the host before the tool began.
        self.asked_before = 0
        self._seen: list[tuple[float, str]] = []

    # -- while it happens -----------------------------------------------------------------------

    def follow(
        self,
        argv: Sequence[str],
        permit: Permit,
        deadline: float,
        on_output: Callable[[str], None] | None,
    ) -> CommandResult:
        """Run the tool's command line, looking on; a look before and one after it are sure to be made."""
        if self._result is not None:
            raise HarnessBug("A second tool was to run in one recorded act.")

        def printed(text: str) -> None:
            self._printed.append((time.monotonic(), text))
            if on_output is not None:
                on_output(text)

        self._look()
        self._thread.start()
        self._result = self._host.run(argv, permit=permit, deadline=deadline, on_output=printed)
        self._ended = time.monotonic()
        self._look()
        return self._result

    def seen(self, result: CommandResult) -> None:
        """Note what the driver read once the tool had ended: it tells when the card was there again."""
        if self._result is not None:
            self._seen.append((time.monotonic(), result.stdout))

    def stop(self) -> None:
        """Stop looking."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _look_on(self) -> None:
        pause = _FIRST_PAUSE
        try:
            while not self._over.wait(pause):
                try:
                    self._look()
                except InfrastructureError:
                    continue  # the host does not answer just now: nothing is known of that moment
                pause = self._pause()
        except BaseException as error:  # noqa: BLE001 -- a thread has nobody above it: `stop` raises it
            self._failed = error

    def _look(self) -> None:
        with self._lock:
            begun = time.monotonic()
            found = read_files(self._host, [UPTIME, *self._watched.values()])
            moment = (begun + time.monotonic()) / 2
            clock = found[UPTIME].data.split()
            if not clock:
                why = found[UPTIME].text or "it is empty"
                raise InfrastructureError(
                    f"{UPTIME} of {self._host.name} cannot be read ({why}), so that no act can be timed."
                )
            uptime = float(clock[0])
            if self._moments and uptime < self._moments[-1][1]:
                raise InfrastructureError(f"{self._host.name} booted while a tool worked on its card.")
            self._moments.append((moment, uptime))
            self._samples.append((uptime, {name: found[path] for name, path in self._watched.items()}))

    def _pause(self) -> float:
        """Return the real seconds until the next look: the clock of an emulated host may go faster."""
        (first, began), (last, now) = self._moments[0], self._moments[-1]
        rate = (now - began) / (last - first) if last > first else 1.0
        return max(_LEAST_PAUSE, min(self._interval, self._interval / rate if rate else self._interval))

    # -- afterwards -----------------------------------------------------------------------------

    def act(self, card: str, identity: str | None, image_path: str, image: Mapping[str, Any]) -> Act | None:
        """Return what was seen as an act of ``card``; None where no tool was run at all."""
        result = self._result
        if result is None:
            return None
        ended = self._offset(self._ended)
        samples = self._merged()
        # Where the first look after the tool shows what stayed, the tool had waited for that itself.
        steady = next((s.values for s in samples if s.until >= ended), {}) == samples[-1].values
        back = self._back(identity) if not image else 0.0
        settled = max(ended, back if steady else max(samples[-1].at, back))
        return Act(
            act="flash" if image else "reset",
            card=card,
            argv=tuple(_argument(word, image_path) for word in tool_command(result.argv)),
            exit=result.exit_code,
            ended=ended,
            settled=round(settled, 3),
            image=image,
            watched=self._watched,
            samples=tuple(samples),
            output=tuple(self._pieces(result, image_path)),
        )

    def _offset(self, moment: float) -> float:
        """Return the seconds of the host's clock since the first look, at ``moment`` of the harness's."""
        began = self._moments[0][1]
        for (m0, u0), (m1, u1) in zip(self._moments, self._moments[1:], strict=False):
            if moment <= m1:
                part = max(0.0, moment - m0) / (m1 - m0) if m1 > m0 else 1.0
                return round(u0 + part * (u1 - u0) - began, 3)
        return round(self._moments[-1][1] - began, 3)

    def _merged(self) -> list[Sample]:
        """Return the looks, as one where nothing changed in the time that a look counts for."""
        began = self._moments[0][1]
        found: list[Sample] = []
        for uptime, values in self._samples:
            at = round(uptime - began, 3)
            same = bool(found) and found[-1].values == values and at - found[-1].until <= RESOLUTION
            found.append(Sample(found.pop().at if same else at, at, values))
        return found

    def _back(self, identity: str | None) -> float:
        """Return when the card was seen again after the tool: 0 where it was there at the first look."""
        if identity is None or not self._seen:
            return 0.0
        for number, (moment, text) in enumerate(self._seen):
            if identity in text.lower():
                return self._offset(moment) if number else 0.0
        return self._offset(self._seen[-1][0])

    def _pieces(self, result: CommandResult, image_path: str) -> list[Piece]:
        """Return what was printed, by whole lines, without the one that tells the process id."""
        found: list[tuple[float, str]] = []
        rest = ""
        for moment, text in [*self._printed, (self._ended, "")]:
            rest += text
            whole = "".join(_LINE.findall(rest)) if text else rest
            rest = rest[len(whole) :]
            kept = "".join(line for line in whole.splitlines(keepends=True) if not line.startswith(PID_MARK))
            if kept:
                found.append((self._offset(moment), _for_any_image(kept, image_path)))
        pieces = [Piece(at, "stdout", text) for at, text in found]
        if result.stderr:
            pieces.append(
                Piece(self._offset(self._ended), "stderr", _for_any_image(result.stderr, image_path))
            )
        return pieces


def tool_command(argv: Sequence[str]) -> list[str]:
    """Return the command line of the tool itself, out of the one that says its id and holds the card."""
    script = argv[2] if len(argv) == 3 and argv[:2] == ("sh", "-c") else ""
    words = shlex.split(script.partition(" exec ")[2])
    locked = next((at for at, word in enumerate(words) if word.endswith(".lock")), None)
    if words[:1] != ["flock"] or locked is None:
        raise HarnessBug(f"What ran on the card is not known: {shlex.join(argv)!r}.")
    return words[locked + 1 :]


def _argument(word: str, path: str) -> str:
    """Return a word of a command line for any image: a container is given the folder and the name apart."""
    if path and MOUNTED in word:
        word = word.replace(f"{posixpath.dirname(path)}:", f"{FOLDER_WORD}:")
        word = word.replace(f"src={posixpath.dirname(path)},", f"src={FOLDER_WORD},")
    return _for_any_image(word, path)


def _for_any_image(text: str, path: str) -> str:
    if not path:
        return text
    return text.replace(path, IMAGE_WORD).replace(posixpath.basename(path), NAME_WORD)
