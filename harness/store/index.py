"""Writes the index: a run when it begins, each scenario once it is judged, and the run's end."""

from __future__ import annotations

import socket
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from harness.judgement.judge import ScenarioJudgement, judge, scenario_records
from harness.judgement.model import VerdictKind, worst_verdict
from harness.judgement.records import (
    Claim,
    Environment,
    Fault,
    Observation,
    Record,
    RunEnded,
    RunStarted,
    to_json,
)
from harness.judgement.values import Unknown
from harness.record.runs import histories, read_run, sha256_of
from harness.store import tables
from harness.store.opening import FAILURES, open_index, unreachable
from harness.store.storable import storable

#: What is kept of a card in the environment of a run.
_ENVIRONMENT: Final = (
    *("driver", "generation", "device_id", "identity", "address"),
    *("bmc_version", "bmcfw_version"),
)


class Index:
    """An open index; safe to use from several processes at once. A context manager.

    Every method raises :class:`harness.errors.InfrastructureError` where the database does not do it.

    :param url: see :func:`harness.store.place.index_url`.
    """

    def __init__(self, url: str) -> None:
        self.engine: Engine = open_index(url)
        self._attempts: defaultdict[int, Counter[str]] = defaultdict(Counter)

    # -- while a run goes on ------------------------------------------------------------------------------

    def begin(self, run: RunStarted, folder: Path, machine: str | None = None) -> int:
        """Enter a run, or find it again; return its number in the index."""
        own = {"run": run.run, "machine": machine or socket.gethostname()}
        runs = tables.RUNS
        said = {"versions": dict(run.versions), "options": dict(run.options), "lab": run.lab}
        row = own | said | {"folder": str(folder.resolve()), "state": "running", "began": run.time}
        find = select(runs.c.id).where(runs.c.run == own["run"], runs.c.machine == own["machine"])
        with self._changing() as connection:
            if connection.scalar(find) is None:
                with suppress(IntegrityError), connection.begin_nested():  # another process was quicker
                    connection.execute(insert(runs).values(storable(row)))
            return int(connection.scalar(find) or 0)

    def _renew(self, run: int, started: RunStarted, folder: Path) -> None:
        """Enter anew what a run says of itself, and where it is now."""
        said = {"versions": dict(started.versions), "options": dict(started.options), "lab": started.lab}
        row = said | {"folder": str(folder.resolve()), "began": started.time}
        with self._changing() as connection:
            connection.execute(update(tables.RUNS).where(tables.RUNS.c.id == run).values(storable(row)))

    def add(self, run: int, one: ScenarioJudgement, records: Sequence[Record]) -> None:
        """Enter a scenario that was judged, and the records that its divergences rest on.

        :param records: of the scenario, its start and its end with them.
        """
        attempt = self._attempts[run][one.name] = self._attempts[run][one.name] + 1
        with self._changing() as connection:
            self._enter(connection, run, one, records, attempt)

    def end(self, run: int, folder: Path, *, finished: bool) -> None:
        """Enter the end of a run, and the files that it left."""
        with self._changing() as connection:
            rows = [
                {"run_id": run, "path": path.name, "sha256": sha256_of(path), "size": path.stat().st_size}
                for path in sorted(folder.iterdir())
                if path.is_file() and not path.name.startswith(".")
            ]
            connection.execute(delete(tables.ARTEFACTS).where(tables.ARTEFACTS.c.run_id == run))
            if rows:
                connection.execute(insert(tables.ARTEFACTS), rows)
            state = "finished" if finished else "interrupted"
            values = {"state": state, "ended": time.time()}
            connection.execute(update(tables.RUNS).where(tables.RUNS.c.id == run).values(values))

    # -- from histories -----------------------------------------------------------------------------------

    def take(self, folder: Path, machine: str | None = None) -> tuple[str, int] | None:
        """Enter a run from its histories, in place of what is known of it; return its name and scenarios.

        None where its histories do not even say what run it is.

        :raises ConfigurationError: a line of a history is not a record.
        """
        judgement = judge(read_run(folder))
        if not judgement.runs:
            return None
        ends = [record.time for record in read_run(folder) if isinstance(record, RunEnded)]
        run = self.begin(judgement.runs[0], folder, machine)
        self._renew(run, judgement.runs[0], folder)
        self._attempts.pop(run, None)
        with self._changing() as connection:
            for table in (tables.SCENARIOS, tables.DEVICES):
                connection.execute(delete(table).where(table.c.run_id == run))
            attempts: Counter[str] = Counter()
            for one, records in zip(judgement.scenarios, scenario_records(read_run(folder)), strict=True):
                attempts[one.name] += 1
                self._enter(connection, run, one, records, attempts[one.name])
        self.end(run, folder, finished=judgement.finished)
        with self._changing() as connection:
            connection.execute(
                update(tables.RUNS).where(tables.RUNS.c.id == run).values(ended=max(ends, default=None))
            )
        return judgement.runs[0].run, len(judgement.scenarios)

    # -- the rows -----------------------------------------------------------------------------------------

    def _enter(
        self,
        connection: Connection,
        run: int,
        one: ScenarioJudgement,
        records: Sequence[Record],
        attempt: int,
    ) -> None:
        row = {
            "run_id": run,
            "scenario": one.name,
            "device": one.subject.name if one.subject else "",
            "attempt": attempt,
            "began": records[0].time,
            "seconds": records[-1].time - records[0].time,
            "state": one.state,
            "outcome": one.outcome.value if one.outcome else None,
            "worst": worst_verdict([v.kind for v in one.judged]).value if one.judged else None,
            "reason": "\n".join([*one.reasons, one.state_reason]).strip(),
        }
        made = connection.execute(
            insert(tables.SCENARIOS).returning(tables.SCENARIOS.c.id), storable(row)
        ).scalar_one()
        for table, rows in _parts(made, one, records):
            if rows:
                connection.execute(insert(table), [storable(row) for row in rows])
        self._see(connection, run, records)

    def _see(self, connection: Connection, run: int, records: Iterable[Record]) -> None:
        """Keep what cards, hosts and systems showed of the environment; the last word of a run on each."""
        seen: dict[str, dict[str, Any]] = {}
        for record in records:
            if isinstance(record, Environment):
                seen.setdefault(record.part, {}).update({k: str(v) for k, v in record.values.items()})
            if isinstance(record, Claim) and record.statement.get("sw_version"):
                system = record.subject.name.partition("/")[0]
                seen.setdefault(system, {})["release"] = str(record.statement["sw_version"])
            if isinstance(record, Observation) and record.subject.kind == "card":
                known = {name: record.values[name] for name in _ENVIRONMENT if name in record.values}
                told = {name: value for name, value in known.items() if not isinstance(value, Unknown)}
                seen.setdefault(record.subject.name, {}).update(told)
        devices = tables.DEVICES
        for device, environment in storable(seen).items():
            own = (devices.c.run_id == run) & (devices.c.device == device)
            change = update(devices).where(own).values(environment=environment)
            if connection.execute(change).rowcount:
                continue
            try:
                with connection.begin_nested():
                    row = {"run_id": run, "device": device, "environment": environment}
                    connection.execute(insert(devices).values(row))
            except IntegrityError:  # another process was quicker
                connection.execute(change)

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        try:
            with self.engine.begin() as connection:
                yield connection
        except FAILURES as error:
            raise unreachable(self.engine, error) from None

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _parts(
    scenario: int, one: ScenarioJudgement, records: Sequence[Record]
) -> Iterator[tuple[Any, list[Mapping[str, Any]]]]:
    """Yield the rows that belong to a scenario, table by table."""
    yield (
        tables.VERDICTS,
        [
            {
                "scenario_id": scenario,
                "kind": verdict.kind.value,
                "reporter": verdict.reporter,
                "checker": verdict.checker,
                "subject": str(verdict.subject),
                "claimed": verdict.claimed,
                "truth": verdict.truth,
                "how_read": verdict.how_read,
                "as_stated": one.states(verdict),
            }
            for verdict in one.judged
        ],
    )
    wanted = {seq for v in one.judged if v.kind is not VerdictKind.MATCH for seq in v.records}
    yield (
        tables.EVIDENCE,
        [
            {"scenario_id": scenario, "seq": record.seq, "record": to_json(record)}
            for record in records
            if record.seq in wanted
        ],
    )
    yield (
        tables.FAULTS,
        [
            {"scenario_id": scenario, "point": r.point, "action": r.action, "state": r.state}
            for r in records
            if isinstance(r, Fault)
        ],
    )


def has_history(folder: Path) -> bool:
    """Return whether ``folder`` is that of a run."""
    return folder.is_dir() and not folder.is_symlink() and bool(histories(folder))
