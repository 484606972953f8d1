"""Pushes and pulls images through a client and writes what happens into the history, for the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

from harness.judgement.records import Claim, Evidence, Intent, Observation, Promise, Subject
from harness.judgement.values import Unknown
from harness.record.operations import Recording, Underway, recorded_operation
from harness.registry.clients.protocol import Destination, PullClient, PushClient, Report
from harness.registry.engine import Engine
from harness.registry.images import Content, Image
from harness.registry.log_claims import (
    Said,
    dockerd_says,
    dockerd_says_of_several,
    registry_says,
    sysinv_says,
)
from harness.registry.logs import parse_log
from harness.registry.reference import Reference
from harness.registry.service import RegistryService
from harness.registry.truth import Comparison, Expected, ImageTruth, TruthState
from harness.registry.truth_probe import TruthProbe

PROBE = "registry-truth"
_HOW = {"api": "every part fetched by the API and hashed", "store": "the files of the store, hashed"}
LANDS = Promise("lands", source="OCI distribution specification, Push")
#: A client that packs layers anew writes another manifest; the digest of the config stays.
ComparedBy = Literal["digest", "config"]
#: What is done while a push runs: it is given the intent's number and the report to come.
Meanwhile = Callable[[int, "Future[Any]"], None]
#: The same beside several pushes; the numbers are of their intents.
MeanwhileAll = Callable[[Sequence[int], "Future[Any]"], None]
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Transfer:
    """A push or pull that was recorded. ``intent``: the number of its record. ``truth``: read after it."""

    intent: int
    subject: Subject
    reference: Reference
    expected: Expected
    report: Report
    truth: Comparison


@dataclass(frozen=True, slots=True)
class _Pushed:
    """What is known of a push before it begins."""

    expected: Expected
    reference: Reference
    subject: Subject


class PushDriver:
    """Records the pushes and pulls of clients at one registry.

    :param probe: reads what is true, past whatever clients go through.
    :param compared_by: what must be under a reference: the manifest as given, or any with that config.
    :param engine: its log is read where a client works through it; :param service: of the registry's log.
    :param registry: what subjects call the registry, however clients reach it; empty: as these spell it.
    """

    def __init__(
        self,
        history: Recording,
        client: PushClient,
        probe: TruthProbe,
        *,
        compared_by: ComparedBy = "digest",
        engine: Engine | None = None,
        service: RegistryService | None = None,
        registry: str = "",
    ) -> None:
        self._history = history
        self._client = client
        self._probe = probe
        self._compared_by = compared_by
        self._engine = engine
        self._service = service
        self._registry = registry

    def push(
        self,
        content: Content,
        destination: Destination,
        promise: Promise = LANDS,
        *,
        before: bool = False,
        deadline: float = 120.0,
        meanwhile: Meanwhile | None = None,
        settle: Callable[[], None] | None = None,
    ) -> Transfer:
        """Push what the client has prepared, and record what it says and what is true then.

        :param before: read what is under the tag first, as a push over an older image wants it.
        :param meanwhile: runs beside the push, to disturb it; the push is waited for in any case.
        :param settle: called after the push and before the truth is read, such as to resume a registry.
        :raises HarnessError: the client cannot be used, or ``meanwhile`` raised.
        """

        def act() -> list[Report]:
            return [self._client.push(content, destination, deadline=deadline)]

        beside = None if meanwhile is None else lambda numbers, report: meanwhile(numbers[0], report)
        wanted = [(content, destination)]
        return self.push_together(wanted, act, promise, before=before, meanwhile=beside, settle=settle)[0]

    def push_together(
        self,
        images: Sequence[tuple[Content, Destination]],
        act: Callable[[], Sequence[Report]],
        promise: Promise = LANDS,
        *,
        before: bool = False,
        meanwhile: MeanwhileAll | None = None,
        settle: Callable[[], None] | None = None,
    ) -> list[Transfer]:
        """Let ``act`` push images at the same time, and record each as a push of its own, as :meth:`push`.

        :param act: returns what the client reports of each, in the order of ``images``.
        """
        pushes = [
            _Pushed(self._expected(content), destination.reference, self._subject(destination.reference))
            for content, destination in images
        ]
        first = [self._truth(each) if before else None for each in pushes]
        engine_mark = self._engine.log_mark() if self._engine else ""
        registry_mark = self._service.log_mark() if self._service else ""
        with ExitStack() as operations:
            underway: list[Underway] = []
            for push, (content, destination), was in zip(pushes, images, first, strict=True):
                intent = Intent(
                    operation="push",
                    subject=push.subject,
                    parameters=self._parameters(content, destination.reference),
                    promise=promise,
                )
                underway.append(operations.enter_context(recorded_operation(self._history, intent)))
                if was is not None:
                    self._observe(push.subject, was, "before", underway[-1].intent)
            numbers = [each.intent for each in underway]
            reports = act() if meanwhile is None else _beside(act, partial(meanwhile, numbers))
            for each, report in zip(underway, reports, strict=True):
                each.how = "timed-out" if report.result == "interrupted" else "returned"
        for push, report, number in zip(pushes, reports, numbers, strict=True):
            self._claim(self._client.name, push.subject, report, number)
        if settle is not None:
            settle()
        self._claim_logs(pushes, reports, numbers, engine_mark, registry_mark)
        return [
            self._seen(push, report, number)
            for push, report, number in zip(pushes, reports, numbers, strict=True)
        ]

    def _truth(self, push: _Pushed) -> Comparison:
        return self._probe.image(push.reference, push.expected, restart=False)

    def _seen(self, push: _Pushed, report: Report, number: int) -> Transfer:
        """Record what is true of an image after its push."""
        truth = self._truth(push)
        self._observe(push.subject, truth, "after", number)
        return Transfer(number, push.subject, push.reference, push.expected, report, truth)

    def pull(
        self,
        client: PullClient,
        source: Destination,
        expected: Expected,
        *,
        deadline: float = 120.0,
        meanwhile: Meanwhile | None = None,
    ) -> Transfer:
        """Pull through ``client``, and record what it says and what was to be had.

        :param expected: what ought to be there. :raises HarnessError: as :meth:`push`.
        """
        subject = self._subject(source.reference)
        parameters = {
            "client": client.name,
            "reporter": client.name,
            "reference": str(source.reference),
            "content": {"digest": expected.digest, "config": expected.config, "blobs": []},
        }
        intent = Intent(operation="pull", subject=subject, parameters=parameters)
        with recorded_operation(self._history, intent) as underway:

            def act() -> Report:
                return client.pull(source, deadline=deadline)

            report = act() if meanwhile is None else _beside(act, partial(meanwhile, underway.intent))
            underway.how = "timed-out" if report.result == "interrupted" else "returned"
        self._claim(client.name, subject, report, underway.intent)
        truth = self._probe.image(source.reference, expected, restart=False)
        self._observe(subject, truth, "after", underway.intent)
        return Transfer(underway.intent, subject, source.reference, expected, report, truth)

    def look_again(self, transfers: Iterable[Transfer], moment: str = "after-restart") -> list[Comparison]:
        """Read once more what is true of images, such as after a restart of the registry, and record it."""
        again = list(transfers)
        found = self._probe.images([(each.reference, each.expected) for each in again], restart=False)
        for each, truth in zip(again, found, strict=True):
            self._observe(each.subject, truth, moment, each.intent)
        return found

    def _expected(self, content: Content) -> Expected:
        config = content.config.digest if isinstance(content, Image) else ""
        if self._compared_by == "config":
            return Expected(config=config)
        return Expected(digest=content.digest, config=config)

    def _subject(self, reference: Reference) -> Subject:
        return subject_of(reference, self._registry)

    def _parameters(self, content: Content, reference: Reference) -> dict[str, Any]:
        return {
            "client": self._client.name,
            "version": self._client.version,
            "reporter": self._client.name,
            "reference": str(reference),
            "content": {
                "digest": content.digest,
                "config": content.config.digest if isinstance(content, Image) else "",
                "blobs": [blob.digest for blob in content.blobs()],
            },
            "compared_by": self._compared_by,
        }

    def _claim(self, reporter: str, subject: Subject, report: Report, intent: int) -> None:
        statement = {
            "result": report.result,
            "digest": report.digest,
            "error": report.error,
            "basis": report.basis,
            "waited": report.waited,
        }
        said = Evidence(text=report.text, command=report.command, exit_code=report.exit_code)
        self._history.add(
            Claim(reporter=reporter, subject=subject, statement=statement, evidence=said, intent=intent)
        )

    def _claim_logs(
        self,
        pushes: Sequence[_Pushed],
        reports: Sequence[Report],
        numbers: Sequence[int],
        engine_mark: str,
        registry_mark: str,
    ) -> None:
        """Record what logs say of these pushes: the client's own, the engine's and the registry's."""
        by_engine: list[Said | None] = [None] * len(pushes)
        if self._engine is not None:
            entries = self._engine.logs(engine_mark)
            heard = [report.text for report in reports]
            alone = len(pushes) == 1
            by_engine = [dockerd_says(entries)] if alone else dockerd_says_of_several(entries, heard)
        by_registry = self._service.logs(registry_mark) if self._service is not None else []
        for push, report, number, engine in zip(pushes, reports, numbers, by_engine, strict=True):
            sysinv = sysinv_says(parse_log(report.log), push.reference)
            for said in (sysinv, engine, registry_says(by_registry, push.reference)):
                if said is not None:
                    self._claim_said(push.subject, said, number)

    def _claim_said(self, subject: Subject, said: Said, intent: int) -> None:
        self._history.add(
            Claim(
                reporter=said.reporter,
                subject=subject,
                statement={"result": said.result, "digest": "", "error": said.error},
                evidence=Evidence(text=said.text, command="log"),
                intent=intent,
                source_time=said.entry.time,
            )
        )

    def _observe(self, subject: Subject, truth: Comparison, moment: str, intent: int) -> None:
        self._history.add(
            Observation(
                probe=PROBE,
                subject=subject,
                moment=moment,
                values=values_of(truth),
                sources=_sources(truth.truths),
                intent=intent,
            )
        )


def subject_of(reference: Reference, registry: str = "") -> Subject:
    """Return the subject that an image under a reference is.

    :param registry: its name, the same for all clients: these reach it by different ones.
    """
    return Subject("registry-image", str(replace(reference, registry=registry or reference.registry)))


def values_of(truth: Comparison) -> dict[str, Any]:
    """Return what is true of an image as values of an observation: what counts, and what each way read."""
    counts = next(each for each in reversed(truth.truths) if each.state is truth.state)
    values = counts.to_json()
    if isinstance(counts.digest, Unknown):  # what another way could still read of it
        known = (each for each in truth.truths if not isinstance(each.digest, Unknown))
        other = next(known, None) if truth.state is not TruthState.ABSENT else None
        values |= {"digest": other.digest, "config": other.config} if other is not None else {}
    ways = {each.source: each.to_json() for each in truth.truths}
    return values | {"disagreement": truth.disagreement} | ways


def _sources(truths: Sequence[ImageTruth]) -> dict[str, str]:
    ways: dict[str, str] = {each.source: _HOW[each.source] for each in truths}
    return ways | {"state": " and ".join(ways.values())}


def _beside(act: Callable[[], R], meanwhile: Callable[[Future[R]], None]) -> R:
    """Return what ``act`` returns, which runs in a thread of its own beside ``meanwhile``."""
    with ThreadPoolExecutor(1, thread_name_prefix="push") as pool:
        future = pool.submit(act)
        meanwhile(future)
        return future.result()
