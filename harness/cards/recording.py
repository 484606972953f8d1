"""Writes what happens to one card into the history, in the order in which the judge expects it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harness.cards.truth import CardTruth
from harness.hosts.protocol import CommandResult
from harness.judgement.records import Claim, Evidence, Intent, Observation, Promise, Subject
from harness.record.operations import Recording, recorded_operation

#: The kind of truth that :func:`harness.cards.truth.read_truth` gives.
PROBE = "sysfs"


class Recorder:
    """Records of one card."""

    def __init__(self, history: Recording) -> None:
        self._history = history

    @contextmanager
    def operation(
        self, name: str, subject: Subject, parameters: Mapping[str, Any], promise: Promise | None
    ) -> Iterator[int]:
        """Record the intent, give its sequence number, and record how it returned, whatever happens."""
        intent = Intent(operation=name, subject=subject, parameters=parameters, promise=promise)
        with recorded_operation(self._history, intent) as underway:
            yield underway.intent

    def claim(
        self,
        reporter: str,
        subject: Subject,
        statement: Mapping[str, Any],
        evidence: Evidence,
        intent: int | None = None,
    ) -> None:
        """Record what ``reporter`` said."""
        self._history.add(
            Claim(reporter=reporter, subject=subject, statement=statement, evidence=evidence, intent=intent)
        )

    def observation(
        self, subject: Subject, truth: CardTruth, moment: str = "", intent: int | None = None
    ) -> None:
        """Record what was read from the card."""
        self._history.add(
            Observation(
                probe=PROBE,
                subject=subject,
                moment=moment,
                values=truth.values(),
                sources=truth.sources,
                intent=intent,
            )
        )


def evidence_of(result: CommandResult, text: str | None = None) -> Evidence:
    """Return the evidence that a command's result is. :param text: instead of all that it printed."""
    return Evidence(
        text=result.text if text is None else text,
        command=" ".join(result.argv),
        exit_code=result.exit_code,
    )
