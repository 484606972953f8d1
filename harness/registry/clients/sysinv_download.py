"""StarlingX's download of an application's images, step by step and with the lines that it logs."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.packages import installed
from harness.registry.clients.docker_sdk import (
    Session,
    ask_registry,
    credentials,
    push_and_drop,
    report_of,
    sdk_version,
    trust,
)
from harness.registry.clients.engine_images import EngineImages, engine_of, sdk_failures
from harness.registry.clients.program import run_program
from harness.registry.clients.protocol import Destination, PushClient, Report

if TYPE_CHECKING:
    from harness.registry.clients.catalogue import Surroundings
    from harness.registry.engine import Engine
    from harness.registry.images import Content

#: ``historical``: until 2023-03, the second field report's: the push's result is dropped. ``current``:
#: since then its trigger is avoided, outside of the downloader; the result is dropped all the same.
#: ``remedied``: inspect_distribution after the push, which upstream has added in 2025-06 (fact sheets of
#: the registry, section 3, and of StarlingX, section 7).
Form = Literal["historical", "current", "remedied"]

#: StarlingX's: images at a time, tries of one image, and its SDK's timeout in seconds.
PARALLEL = 5
TRIES = 3
SDK_TIMEOUT = 10800.0
#: Where an image is said to come from that nobody pulls: the second field report's.
CENTRAL = "registry.central:9001"
_SHIFT = 15.0


def starlingx_pause(failed: int) -> float:
    """Return the seconds before the next try, after ``failed`` have failed: 60 to 75, then 120 to 135."""
    return _SHIFT * 2.0 ** (failed + 1) + random.uniform(0.0, _SHIFT)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One image of an application.

    ``local``: what it is to be in the local registry. ``source``: where it comes from; ``pulled``: whether
    it is pulled from there, or the engine has it under that name already.
    """

    local: Destination
    source: Destination
    pulled: bool = False


class SysinvDownload:
    """Downloads an application's images into the local registry as the conductor does.

    :param pause: seconds before the next try, by how many have failed; :func:`starlingx_pause` by default.
    :param crictl: the program; what is installed by default. Without one its steps are BLOCKED, which each
        report says in its ``basis``, and the download goes on as after a crictl that failed.
    :param told: called with each line when it was logged, by the thread that logs it.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        form: Form = "current",
        *,
        tries: int = TRIES,
        pause: Callable[[int], float] = starlingx_pause,
        crictl: Path | None = None,
        told: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._engine = engine
        self._folder = folder
        self._form: Form = form
        self._tries = tries
        self._pause = pause
        self._crictl = crictl or installed("crictl")
        self._told = told
        self._lock = threading.Lock()
        self._lines: list[str] = []
        self._sessions: set[Session] = set()
        self._tags: set[str] = set()
        self._stopped = threading.Event()

    @property
    def log(self) -> tuple[str, ...]:
        """All lines so far, in order."""
        with self._lock:
            return tuple(self._lines)

    def download(self, app: str, images: Sequence[Wanted], *, deadline: float = 3600.0) -> list[Report]:
        """Download the images, five at a time, and return what is reported of each, in their order.

        :raises ConfigurationError: or BlockedError: the engine cannot be made to trust a registry.
        """
        began = time.monotonic()
        for wanted in images:
            trust(self._engine, wanted.local)
            if wanted.pulled:
                trust(self._engine, wanted.source)
        with ThreadPoolExecutor(PARALLEL, thread_name_prefix="download") as pool:
            work = [pool.submit(self._download, wanted, began + deadline) for wanted in images]
            try:
                reports = [each.result() for each in work]
            except BaseException:
                self._stop()
                pool.shutdown(cancel_futures=True)
                raise
        if all(report.result == "done" for report in reports):
            took = int(time.monotonic() - began)
            self._say(
                f"All docker images for application {app} were successfully downloaded in {took} seconds"
            )
        return reports

    def close(self) -> None:
        """End what runs, and remove the tags that failed downloads have left; may be called twice."""
        self._stop()
        for tag in sorted(self._tags):
            self.forget(tag)

    def forget(self, tag: str) -> None:
        """Remove ``tag`` where a failed download has left it in the engine."""
        if tag in self._tags:
            with suppress(*sdk_failures()), closing(self._engine.client()) as client:
                client.images.remove(tag)
            self._tags.discard(tag)

    def _stop(self) -> None:
        self._stopped.set()
        with self._lock:
            for session in self._sessions:
                session.cut()

    def _download(self, wanted: Wanted, end: float) -> Report:
        """Try until it is done, or the tries or the time are used up."""
        began = time.monotonic()
        waited = 0.0
        text = ""
        lines: list[str] = []
        for failed in range(1, self._tries + 1):
            report = self._attempt(wanted, lines, max(0.0, end - time.monotonic()))
            text += report.text
            waited += report.waited  # by the engine, within the try
            if report.result != "failed" or failed == self._tries:
                break
            pause = self._pause(failed)
            if time.monotonic() + pause > end or self._stopped.wait(pause):
                report = replace(report, result="interrupted")
                break
            waited += pause
        took = time.monotonic() - began
        if report.result == "done":
            self._say(f"Image {wanted.local.reference} download succeeded in {int(took)} seconds", lines)
        return replace(report, text=text, log=tuple(lines), seconds=took, waited=waited)

    def _attempt(self, wanted: Wanted, lines: list[str], left: float) -> Report:
        """Look for the image by crictl, else bring it through the engine."""
        began = time.monotonic()
        found, basis = self._by_crictl(wanted.local, left)
        if found:
            return Report("done", found, basis=basis)
        local, source = wanted.local.reference, wanted.source.reference
        self._say(
            f"Image {local} is not available in local registry, "
            "download started from public/private registry",
            lines,
        )
        report = report_of(
            self._engine,
            lambda session: self._through_engine(session, wanted, lines),
            deadline=max(0.0, left - (time.monotonic() - began)),
            timeout=SDK_TIMEOUT,
        )
        where = f"pulled from {source.registry}" if wanted.pulled else "source from the engine's cache"
        return replace(report, basis=f"{basis}; {where}")

    def _through_engine(self, session: Session, wanted: Wanted, lines: list[str]) -> str:
        """Pull, tag, push and remove, with no look at what a pull or a push has returned."""
        local, source = wanted.local.reference, wanted.source.reference
        login = credentials(wanted.local)
        with self._followed(session):
            if wanted.pulled:
                said = session.api.pull(str(source), auth_config=credentials(wanted.source))
                session.heard.append(str(said))
            session.api.tag(str(source), f"{local.registry}/{local.repository}", local.tag)
            self._tags.add(str(local))
            digest = push_and_drop(session, str(local), login)
            if self._form == "remedied":
                digest = ask_registry(session, str(local), login)
            self._say(f"Remove image {source} after push to local registry.", lines)
            for tag in (source, local):
                try:
                    session.api.remove_image(str(tag))
                except sdk_failures() as error:  # it only warns
                    session.heard.append(f"{error}\n")
                else:
                    self._tags.discard(str(tag))
        return digest

    @contextmanager
    def _followed(self, session: Session) -> Iterator[None]:
        """Let :meth:`close` end the session."""
        with self._lock:
            self._sessions.add(session)
        try:
            if self._stopped.is_set():
                session.cut()
            yield
        finally:
            with self._lock:
                self._sessions.discard(session)

    def _by_crictl(self, local: Destination, left: float) -> tuple[str, str]:
        """Return what crictl said where the image is there by now, else nothing; and what that rests on."""
        if self._crictl is None:
            return "", "crictl list and pull BLOCKED: no crictl on this machine"
        tag = str(local.reference)
        code, listed = self._run_crictl(["images", "--output=json"], left)
        if code == 0 and tag in _tags(listed):
            self._say(f"Image {tag} exists in the local registry")
            return listed, "crictl lists it; the registry was not asked"
        code, said = self._run_crictl(["pull", "--creds", f"{local.user}:{local.password}", tag], left)
        return (said, "crictl pulled it") if code == 0 else ("", f"crictl pull ended with {code}")

    def _run_crictl(self, words: Sequence[str], left: float) -> tuple[int | None, str]:
        argv = [str(self._crictl), *words]
        return run_program(argv, environ=os.environ, folder=self._folder, deadline=left)

    def _say(self, message: str, lines: list[str] | None = None) -> None:
        """Log a line, as the conductor's log has it."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        line = f"sysinv {now} {os.getpid()} INFO sysinv.conductor.kube_app [-] {message}"
        with self._lock:
            self._lines.append(line)
            if lines is not None:
                lines.append(line)
        self._told(line)


def _tags(listed: str) -> set[str]:
    """Return the tags in what `crictl images --output=json` says."""
    with suppress(ValueError, TypeError, AttributeError):
        found = json.loads(listed).get("images") or ()
        return {str(tag) for image in found for tag in image.get("repoTags") or ()}
    return set()


class _SysinvPush:
    """One image through the downloader. It is in the engine beforehand, as if pulled from the source."""

    name = "sysinv-download"

    def __init__(self, download: SysinvDownload, engine: Engine, images: EngineImages) -> None:
        self._download = download
        self._engine = engine
        self._images = images

    @property
    def version(self) -> str:
        return sdk_version(self._engine)

    def prepare(self, content: Content, destination: Destination) -> None:
        trust(self._engine, destination)
        self._images.load(content, source_of(destination).reference)

    def push(self, content: Content, destination: Destination, *, deadline: float = 120.0) -> Report:
        before = len(self._download.log)
        wanted = Wanted(destination, source_of(destination))
        (report,) = self._download.download(destination.reference.repository, [wanted], deadline=deadline)
        return replace(report, log=self._download.log[before:])

    def forget(self, content: Content, destination: Destination) -> None:
        self._download.forget(str(destination.reference))
        self._images.forget(content, source_of(destination).reference)

    def close(self) -> None:
        self._download.close()
        self._images.close()


def source_of(destination: Destination) -> Destination:
    """Return where an image comes from that nobody pulls: it is in the engine under that name."""
    return Destination(replace(destination.reference, registry=CENTRAL))


def push_client(
    surroundings: Surroundings,
    *,
    form: Form = "current",
    tries: int = TRIES,
    pause: Callable[[int], float] = starlingx_pause,
) -> PushClient:
    """Return the downloader as a push client of one image. :raises BlockedError: no engine runs."""
    engine = engine_of(surroundings, _SysinvPush.name)
    download = SysinvDownload(engine, surroundings.folder, form, tries=tries, pause=pause)
    return _SysinvPush(download, engine, EngineImages(engine, surroundings.folder))
