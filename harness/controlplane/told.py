"""Records what a way in says as claims, and what is asked of it as intents; waits until it says something."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Generic, Protocol, TypeVar

from harness.controlplane.cloud_protocol import CloudSaid, Step, Strategy, Subcloud
from harness.controlplane.protocol import (
    Alarm,
    DeviceImage,
    DeviceImageState,
    DeviceLabel,
    HostState,
    PciDevice,
    Said,
    statement,
)
from harness.controlplane.vim import VimStrategy
from harness.errors import BlockedError, DeadlineError, InfrastructureError
from harness.judgement.records import Claim, Evidence, Intent, Observation, Subject
from harness.judgement.values import Unknown, Value
from harness.record.operations import Recording, recorded_operation

#: Seconds from one look to the next, at first and at most; each is twice the one before.
_PAUSES: Final = (0.01, 5.0)


class Way(Protocol):
    """What all ways in have in common."""

    @property
    def name(self) -> str:
        """The controller's name in the inventory."""
        ...

    @property
    def reporter(self) -> str:
        """Who makes the claims."""
        ...

    @property
    def evidence(self) -> Evidence:
        """The last answer, raw."""
        ...

    def close(self) -> None:
        """Release the connection; may be called twice."""
        ...


S = TypeVar("S", bound=Said | CloudSaid | VimStrategy)
W = TypeVar("W", bound=Way)


class Told(Generic[W]):
    """What a way in says, recorded.

    :param way: how it is asked. :param history: where all is recorded.
    :param clock: the lab's time in seconds, where it has one of its own; it is the source's time of records.
    """

    def __init__(self, way: W, history: Recording, *, clock: Callable[[], float] | None = None) -> None:
        self._way = way
        self._history = history
        self._clock = clock

    @property
    def name(self) -> str:
        """The controller's name in the inventory."""
        return self._way.name

    @property
    def reporter(self) -> str:
        """Who makes the claims."""
        return self._way.reporter

    def close(self) -> None:
        """Release the connection; may be called twice."""
        self._way.close()

    def wait_until(
        self,
        what: str,
        look: Callable[[W], Sequence[S]],
        done: Callable[[Sequence[S]], bool],
        *,
        deadline: float,
    ) -> list[S]:
        """Look again and again until ``done``; return what was seen last. Each change of it is a claim.

        A system that does not answer meanwhile, as during a reboot of its controller, is asked again. It is
        asked in real time, for it may be a real one, which takes minutes. In an emulated lab an update of 40
        minutes has ended a few milliseconds after it began, so that the first looks follow each other fast,
        and a real system is asked ever less often.

        :param what: for people: what is waited for. :param look: reads from the system.
        :param deadline: seconds. :raises DeadlineError: it passed; the message has what was seen last.
        """
        end = time.monotonic() + deadline
        pause = _PAUSES[0]
        last: Sequence[S] | None = None
        seen = "nothing"
        with self._recorded("wait-until", "", {"what": what, "deadline": deadline}) as intent:
            while True:
                try:
                    found = look(self._way)
                except BlockedError:
                    raise
                except InfrastructureError as error:
                    seen = error.message
                else:
                    if found != last:
                        self._claimed(found, intent)
                    last, seen = found, "; ".join(map(shown, found)) or "an empty list"
                    if done(found):
                        return list(found)
                left = end - time.monotonic()
                if left <= 0:
                    raise DeadlineError(
                        f"Waited {deadline:g} s for {self.name}: {what}; last seen: {seen}.",
                        hint="The system may be stuck; its own deadlines are an hour for a functional image.",
                    )
                # Nothing tells when a system has changed; asking is the only condition there is.
                time.sleep(min(pause, left))
                pause = min(2 * pause, _PAUSES[1])

    # -- recording ------------------------------------------------------------------------------------

    @contextmanager
    def _recorded(self, operation: str, target: str, parameters: Mapping[str, Any]) -> Iterator[int]:
        subject = Subject("record", "/".join(filter(None, (self.name, target))))
        said = {**parameters, "reporter": self.reporter}
        intent = Intent(operation=operation, subject=subject, parameters=said, source_time=self._now())
        with recorded_operation(self._history, intent) as underway:
            yield underway.intent

    def _claimed(self, said: Sequence[S], intent: int | None = None) -> list[S]:
        """Record what was said; the raw answer stands with the first claim of it."""
        raw = self._way.evidence
        rest = Evidence("as the claim before", raw.command, raw.exit_code)
        for number, one in enumerate(said):
            self._history.add(
                Claim(
                    reporter=self.reporter,
                    subject=subject_of(self.name, one),
                    statement=statement(one),
                    evidence=rest if number else raw,
                    intent=intent,
                    source_time=self._now(),
                )
            )
        return list(said)

    def _observed(
        self,
        probe: str,
        subject: Subject,
        values: Mapping[str, Any],
        intent: int | None = None,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        self._history.add(
            Observation(
                probe=probe,
                subject=subject,
                values=values,
                sources=sources or {},
                intent=intent,
                source_time=self._now(),
            )
        )

    def _now(self) -> float | None:
        """Return the lab's time; None where it is that of the history."""
        return self._clock() if self._clock is not None else None


def subject_of(name: str, said: Said | CloudSaid | VimStrategy) -> Subject:
    """Return the record that was spoken of; host and address say which card it concerns."""
    match said:
        case DeviceImage():
            return Subject("record", f"{name}/image/{said.uuid}")
        case DeviceLabel():
            host, device = _known(said.hostname), _known(said.device)
            path = "/".join(filter(None, (host, device, f"{said.label_key}={said.label_value}")))
            return Subject("record", f"{name}/label/{path}", host)
        case DeviceImageState():
            host, address = _known(said.hostname), _known(said.address)
            return Subject(
                "record", f"{name}/state/{host}/{address}/{_known(said.image_uuid)}", host, address
            )
        case PciDevice():
            host = _known(said.hostname)
            return Subject("record", f"{name}/device/{host}/{said.address}", host, said.address)
        case HostState():
            return Subject("record", f"{name}/host/{said.hostname}", said.hostname)
        case Alarm():
            return Subject("record", f"{name}/alarm/{said.alarm_id}/{_known(said.entity_instance_id)}")
        case Subcloud():
            return Subject("record", f"{name}/subcloud/{said.name}")
        case Strategy():
            return Subject("record", f"{name}/strategy/{said.type}")
        case Step():
            return Subject("record", f"{name}/step/{said.cloud}")
        case VimStrategy():
            return Subject("record", f"{name}/vim-strategy/firmware")


def shown(said: Said | CloudSaid | VimStrategy) -> str:
    """Return what matters of it for a message: what is known and not empty."""
    match said:
        case DeviceImageState():
            return f"{_known(said.hostname)} {_known(said.address)} {_known(said.image_uuid)}: {said.status}"
        case HostState():
            words = (said.administrative, said.operational, said.availability, said.task)
            update = f"device_image_update {said.device_image_update!r}"
            return f"{said.hostname}: {' '.join(filter(None, map(_known, words)))}, {update}"
        case Subcloud():
            state = " ".join(filter(None, map(_known, (said.management, said.availability))))
            return f"{said.name}: {state}, firmware {said.firmware_sync_status}"
        case Strategy():
            return f"the strategy is {said.state}"
        case Step():
            return ": ".join(filter(None, (said.cloud, said.state, _known(said.details))))
        case _:
            return str(statement(said))[:200]


def _known(value: Value[str | None]) -> str:
    return "" if value is None or isinstance(value, Unknown) else value
