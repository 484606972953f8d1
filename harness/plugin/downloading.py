"""An application's images through the control plane's downloader, some held while something is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from harness.errors import ConfigurationError
from harness.faults.registry_points import FaultPoint
from harness.judgement.records import Fault
from harness.plugin.scenario import step
from harness.registry.clients.sysinv_download import Form, SysinvDownload, Wanted, source_of
from harness.registry.push_driver import subject_of

if TYPE_CHECKING:
    from harness.faults.proxy.gate import Gate
    from harness.plugin.pushing import Push
    from harness.registry.clients.protocol import Destination
    from harness.registry.images import Content
    from harness.registry.push_driver import Transfer
    from harness.registry.recipes import Recipe

CLIENT = "sysinv-download"
#: Where the second field report's pushes were when their tokens became worthless.
POINT = FaultPoint("before", "blob-post")


@dataclass(frozen=True, slots=True)
class Download:
    """The ``download`` fixture: downloads an application, and records each image as a push of its own."""

    push: Push

    def __call__(
        self,
        app: str,
        images: Mapping[str, str | Recipe | Content],
        *,
        tag: str = "v1",
        form: Form = "historical",
        hold: Sequence[str] = (),
        meanwhile: tuple[str, Callable[[], str]] | None = None,
        deadline: float = 120.0,
    ) -> dict[str, Transfer]:
        """Download ``images``, five at a time, and return what was recorded of each.

        Between the tries of one image nothing is waited, where StarlingX waits for minutes.

        :param images: repository, below this scenario's own -> a name of the shelf, a recipe, or an image.
        :param hold: those whose first upload is held until the others are said to be done and
            ``meanwhile`` is over: its name in the history, and what does it and says in words what it did.
        :raises BlockedError: no engine runs, or no request can be held.
        :raises ConfigurationError: ``hold`` and ``meanwhile`` do not go together.
        """
        if not set(hold) <= set(images) or bool(hold) != (meanwhile is not None):
            raise ConfigurationError(
                "To do something while images are downloaded takes those that are held, and what is done.",
                hint="hold=['a/b'], meanwhile=('install-certificate', conductor.install_certificate).",
            )
        engine, bench = self.push.use_engine(), self.push.bench
        contents = [self.push.content(each) for each in images.values()]
        places = [bench.destination(f"{self.push.repository}/{name}", tag, client=CLIENT) for name in images]
        with step(self.push.session, bench.name, f"download {app} by {CLIENT}"), ExitStack() as ends:
            client = bench.push_client(CLIENT)
            for content, place in zip(contents, places, strict=True):
                ends.callback(client.forget, content, place)
                client.prepare(content, place)
            held = _Held(self.push, deadline)
            ends.callback(held.let_go)
            for name, place in zip(images, places, strict=True):
                held.expect(place, hold=name in hold)
            folder = bench.lab.folder / "clients"
            download = SysinvDownload(engine, folder, form, pause=lambda failed: 0.0, told=held.told)
            ends.callback(download.close)
            wanted = [Wanted(place, source_of(place)) for place in places]
            done = self.push.driver(CLIENT, client).push_together(
                list(zip(contents, places, strict=True)),
                partial(download.download, app, wanted, deadline=deadline),
                meanwhile=partial(held.strike, *meanwhile) if meanwhile else None,
            )
        return dict(zip(images, done, strict=True))


@dataclass(slots=True)
class _Held:
    """The images of a download: which are held, and which are said to be done."""

    push: Push
    deadline: float
    _gates: dict[int, Gate] = field(default_factory=dict)
    _places: list[Destination] = field(default_factory=list)
    _done: set[str] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def expect(self, place: Destination, *, hold: bool) -> None:
        """Take the next image, and hold its first upload, or wait for it to be done."""
        if hold:
            repository = place.reference.repository
            self._gates[len(self._places)] = self.push.bench.proxy.arm(POINT, repository=repository)
        self._places.append(place)

    def told(self, line: str) -> None:
        """Take a line of the downloader's log."""
        with self._changed:
            self._done |= {
                str(place.reference)
                for place in self._places
                if f"Image {place.reference} download succeeded" in line
            }
            self._changed.notify_all()

    def strike(self, name: str, act: Callable[[], str], intents: Sequence[int], over: Future[Any]) -> None:
        """Act once all that are held are, and all others are said to be done; then let them go on.

        What does not come to that is recorded as not reached, and judged. Whatever is raised meanwhile, the
        downloads are not held any longer by it.
        """
        try:
            self._strike(name, act, intents, over)
        finally:
            self.let_go()

    def _strike(self, name: str, act: Callable[[], str], intents: Sequence[int], over: Future[Any]) -> None:
        end = time.monotonic() + self.deadline
        over.add_done_callback(lambda _: self.told(""))
        reached = [gate.wait(end - time.monotonic(), until=over) for gate in self._gates.values()]
        others = {str(each.reference) for at, each in enumerate(self._places) if at not in self._gates}
        with self._changed:
            self._changed.wait_for(lambda: others <= self._done or over.done(), end - time.monotonic())
            ready = None not in reached and others <= self._done
        said = act() if ready else self._lacking(reached, sorted(others - self._done))
        for at in self._gates:
            self._record(name, "fired" if ready else "not-reached", at, intents[at], said)

    def _lacking(self, reached: Sequence[object], others: Sequence[str]) -> str:
        """Return in words what did not come to the point."""
        unheld = [
            str(self._places[at].reference)
            for at, each in zip(self._gates, reached, strict=True)
            if each is None
        ]
        told = [f"{', '.join(unheld)} did not come to {POINT}"] if unheld else []
        return "; ".join([*told, *([f"not done: {', '.join(others)}"] if others else [])])

    def let_go(self) -> None:
        """Hold nothing any more; may be called twice."""
        for gate in self._gates.values():
            gate.disarm()

    def _record(
        self, name: str, state: Literal["fired", "not-reached"], at: int, intent: int, said: str
    ) -> None:
        subject = subject_of(self._places[at].reference, self.push.bench.name)
        self.push.session.history.add(
            Fault(point=str(POINT), action=name, subject=subject, state=state, intent=intent, detail=said)
        )
