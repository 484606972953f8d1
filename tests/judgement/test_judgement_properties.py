"""Properties of judging any history: stored or live, whole or torn, nothing bad is hidden."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ConfigurationError
from harness.judgement.judge import judge
from harness.judgement.model import OUTCOME_RANK, VERDICT_RANK, Outcome, VerdictKind
from harness.judgement.records import (
    KINDS,
    Claim,
    Completion,
    Environment,
    Evidence,
    Fault,
    Intent,
    Observation,
    Promise,
    Record,
    RunEnded,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
    Setting,
    StepEnded,
    StepTaken,
    Subject,
    from_json,
    to_json,
)
from harness.judgement.values import Unknown
from harness.record import History, Redactor, read_history
from harness.report.results import results_json
from harness.report.summary import render

text = st.text(max_size=12)
scalars = st.none() | st.booleans() | st.integers(-(2**65), 2**65) | text | st.floats(allow_nan=False)
unknowns = st.builds(Unknown, text)
#: What records hold, in the form that JSON gives back; {"unknown": text} is the form of an Unknown.
plain = st.recursive(
    scalars | unknowns,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(text.filter(lambda t: t != "unknown"), inner, max_size=3)
    ),
    max_leaves=6,
)
mappings = st.dictionaries(text, plain, max_size=3).filter(lambda m: m.keys() != {"unknown"})
words = st.dictionaries(text.filter(lambda t: t != "unknown"), text, max_size=3)
subjects = st.builds(Subject, st.sampled_from(["card", "record", "registry-image"]), text, text, text, text)
promises = st.builds(
    Promise,
    st.sampled_from(["lands", "unchanged", "factory", "returns"]),
    st.lists(text, max_size=2).map(tuple),
    text,
)
evidence = st.builds(Evidence, text, text, st.none() | st.integers())
intents = st.none() | st.integers(0, 99)
common: dict[str, Any] = {
    "seq": st.integers(0, 2**40),
    "time": st.floats(0, 2e9),
    "source_time": st.none() | st.floats(0, 2e9),
    "skew": st.none() | st.floats(-1e6, 1e6),
}
any_record = st.one_of(
    st.builds(RunStarted, run=text, lab=text, versions=words, options=mappings, **common),
    st.builds(ScenarioStarted, scenario=text, subject=st.none() | subjects, expects=mappings, **common),
    st.builds(ScenarioEnded, scenario=text, state=text, reason=text, **common),
    st.builds(
        Intent,
        operation=text,
        subject=subjects,
        parameters=mappings,
        promise=st.none() | promises,
        **common,
    ),
    st.builds(
        Completion,
        intent=st.integers(0, 99),
        how=st.sampled_from(["returned", "raised", "timed-out", "never"]),
        error=words,
        **common,
    ),
    st.builds(
        Claim,
        reporter=text,
        subject=subjects,
        statement=mappings,
        evidence=evidence,
        intent=intents,
        **common,
    ),
    st.builds(
        Observation,
        probe=text,
        subject=subjects,
        moment=text,
        values=mappings,
        sources=words,
        intent=intents,
        **common,
    ),
    st.builds(
        Fault,
        point=text,
        action=text,
        subject=subjects,
        state=st.sampled_from(["armed", "fired", "undone", "not-reached"]),
        intent=intents,
        detail=text,
        **common,
    ),
    st.builds(Environment, part=text, values=mappings, sources=words, **common),
    st.builds(Setting, values=mappings, **common),
    st.builds(StepTaken, name=text, arguments=mappings, within=intents, place=text, **common),
    st.builds(StepEnded, step=st.integers(0, 99), error=words, **common),
    st.builds(RunEnded, how=st.sampled_from(["finished", "interrupted"]), **common),
)


@given(any_record)
def test_a_record_survives_json(record: Record) -> None:
    assert from_json(json.loads(json.dumps(to_json(record)))) == record


def test_every_kind_of_record_is_generated() -> None:
    seen = set()

    @settings(database=None, max_examples=300)
    @given(any_record)
    def collect(record: Record) -> None:
        seen.add(record.kind)

    collect()
    assert seen == set(KINDS)


# --- plausible runs: operations, claims and observations in any combination -------------------------

IDS = st.sampled_from([0x23000410010310, 0x23000411010311, 0x23000410010309])
CARDS = tuple(
    Subject("card", f"subcloud{n}/card0", f"subcloud{n}", "0000:b2:00.0", f"64:4c:36:00:00:0{n}")
    for n in (1, 2)
)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return strategy | st.sampled_from([Unknown("all ones"), Unknown("not exposed")])


observed = st.fixed_dictionaries(
    {
        "address": maybe(st.sampled_from(["0000:b2:00.0", "0000:b4:00.0"])),
        "bitstream_id": maybe(IDS),
        "boot_page": maybe(st.sampled_from(["user", "factory"])),
        "flash_count": maybe(st.integers(4, 7)),
        "sr_root": maybe(st.sampled_from(["", "aa" * 32, "bb" * 32])),
        "sr_cancelled": maybe(st.sampled_from([[], [3], [1, 3]])),
    }
)
images = st.one_of(
    st.builds(
        lambda i: {"name": "user", "effect": "user-image", "section": "SR", "bitstream_id": i}, maybe(IDS)
    ),
    st.just({"name": "root", "effect": "root-key", "section": "SR", "programs_root": "bb" * 32}),
    st.just({"name": "cancel", "effect": "key-cancellation", "section": "SR", "cancel_id": 3}),
    st.just({"name": "bmc", "effect": "bmc-image", "section": "BMC", "bmc_version": "D.2.0.7"}),
    st.just({"name": "raw", "effect": "unparsed"}),
)
results = st.sampled_from(["done", "failed", "interrupted", "not-sent"])


@st.composite
def operations(draw: st.DrawFn) -> list[Record]:
    """The records of one operation, all, some or none of what usually follows an intent; unnumbered."""
    card = draw(st.sampled_from(CARDS))
    kind = draw(st.sampled_from(["flash", "flash", "reset", "power-cycle"]))
    parameters = {"image": draw(images)} if kind == "flash" else {}
    records: list[Record] = [
        Intent(
            operation=kind, subject=card, parameters=parameters, promise=draw(st.none() | promises_of(kind))
        )
    ]
    parts: list[Record] = []
    for moment in ("before", "after", "after-reset"):
        if draw(st.booleans()):
            parts.append(Observation(probe="D", subject=card, moment=moment, values=draw(observed)))
    for reporter in ("fpgasupdate", "rsu"):
        if draw(st.booleans()):
            statement = {"result": draw(results), "error": draw(st.sampled_from(["", "preparing:timeout"]))}
            parts.append(Claim(reporter=reporter, subject=card, statement=statement, evidence=Evidence("")))
    if draw(st.booleans()):
        log = {"auth_code": draw(st.sampled_from(["0x11", "0x00", "0x12"]))}
        parts.append(Claim(reporter="kernel-log", subject=card, statement=log, evidence=Evidence("")))
    if draw(st.booleans()):
        parts.append(Completion(intent=0, how=draw(st.sampled_from(["returned", "raised", "never"]))))
    return records + draw(st.permutations(parts))


def promises_of(kind: str) -> st.SearchStrategy[Promise]:
    effects = ["lands", "unchanged", "factory"] if kind == "flash" else ["returns", "unchanged"]
    return st.builds(Promise, st.sampled_from(effects), st.sampled_from([(), ("0x11",)]), st.just("a guide"))


expectations = st.fixed_dictionaries(
    {
        "outcome": st.sampled_from([o.value for o in Outcome]),
        "verdicts": st.dictionaries(
            st.sampled_from(["fpgasupdate", "rsu", "fpgainfo"]),
            st.sampled_from([k.value for k in VerdictKind]),
            max_size=2,
        ),
    }
)


@st.composite
def runs(draw: st.DrawFn) -> list[Record]:
    """A run of a few scenarios as a driver would write it, its intents numbered in place."""
    records: list[Record] = [RunStarted(run="r", lab="emulated")]
    for number in range(draw(st.integers(1, 3))):
        records.append(ScenarioStarted(scenario=f"s{number}", subject=CARDS[0], expects=draw(expectations)))
        for operation in draw(st.lists(operations(), max_size=3)):
            intent = len(records) + 1
            for record in operation:
                linked = isinstance(record, (Claim, Completion, Observation))
                records.append(replace(record, intent=intent) if linked else record)
            if draw(st.booleans()):
                shown = draw(observed)
                records.append(
                    Claim(reporter="fpgainfo", subject=CARDS[0], statement=shown, evidence=Evidence(""))
                )
        state = draw(st.sampled_from(["finished", "finished", "INFRA", "interrupted"]))
        records.append(ScenarioEnded(scenario=f"s{number}", state=state))
    return [*records, RunEnded()]


def recorded(records: list[Record], path: Path) -> History:
    with History(path, clock=lambda: 1.0, redactor=Redactor()) as history:
        for record in records:
            history.add(record)
    return history


@settings(deadline=None)
@given(runs())
def test_a_stored_history_is_judged_as_the_live_one(records: list[Record]) -> None:
    with TemporaryDirectory() as folder:
        history = recorded(records, Path(folder) / "h.jsonl")
        assert judge(read_history(history.path)) == judge(history.records)


@settings(deadline=None)
@given(runs(), st.data())
def test_a_history_cut_anywhere_is_judged_so_far(records: list[Record], data: st.DataObject) -> None:
    """Of a killed run, every scenario that had ended is judged as in the whole run."""
    with TemporaryDirectory() as folder:
        history = recorded(records, Path(folder) / "h.jsonl")
        whole = history.path.read_bytes()
        history.path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
        cut = judge(read_history(history.path))
    ended = [scenario for scenario in cut.scenarios if scenario.state_reason == ""]
    assert len(cut.scenarios) - len(ended) <= 1
    assert ended == list(judge(history.records).scenarios[: len(ended)])


@settings(deadline=None)
@given(runs())
def test_nothing_bad_is_hidden(records: list[Record]) -> None:
    with TemporaryDirectory() as folder:
        judgement = judge(recorded(records, Path(folder) / "h.jsonl").records)
    for scenario in judgement.scenarios:
        for verdict in scenario.judged:
            shown = scenario.verdicts[verdict.reporter]
            assert VERDICT_RANK[shown] <= VERDICT_RANK[verdict.kind]
            stated = scenario.expected.verdicts.get(verdict.reporter, VerdictKind.MATCH)
            if (
                VERDICT_RANK[verdict.kind] < VERDICT_RANK[stated]
                and verdict.kind is not VerdictKind.UNVERIFIABLE
            ):
                assert not scenario.as_stated
                assert scenario.reasons
        for outcome in scenario.outcomes:
            assert scenario.outcome is not None
            assert OUTCOME_RANK[scenario.outcome] <= OUTCOME_RANK[outcome.outcome]
        if scenario.as_stated:
            assert not scenario.exit_codes
        elif scenario.run_state is None and not scenario.interrupted:
            assert scenario.exit_codes == {1}
    every = [verdict for scenario in judgement.scenarios for verdict in scenario.judged]
    assert sorted(map(str, (*every, *judgement.outside))) == sorted(map(str, judgement.verdicts))


@settings(deadline=None)
@given(runs())
def test_every_verdict_says_who_what_and_how(records: list[Record]) -> None:
    with TemporaryDirectory() as folder:
        history = recorded(records, Path(folder) / "h.jsonl")
    known = {record.seq for record in history.records}
    for verdict in judge(history.records).verdicts:
        assert verdict.reporter
        assert verdict.claimed
        assert verdict.truth
        assert verdict.how_read
        assert verdict.records
        assert known.issuperset(verdict.records)


FIELDS = ("address", "bitstream_id", "boot_page", "flash_count", "sr_root", "sr_cancelled", "identity")


@st.composite
def nonsense(draw: st.DrawFn) -> list[Record]:
    """A flash and a reset with values of any kind in the places that checkers look at."""
    card = CARDS[0]
    image = draw(images) | draw(
        st.dictionaries(st.sampled_from(["effect", "bitstream_id", "cancel_id", "programs_root"]), plain)
    )
    records: list[Record] = [
        Intent(seq=1, operation="flash", subject=card, parameters={"image": image}, promise=draw(promises))
    ]
    for seq, moment in enumerate(("before", "after", "after-reset"), start=2):
        values = draw(st.dictionaries(st.sampled_from(FIELDS), plain))
        records.append(Observation(seq=seq, probe="D", subject=card, moment=moment, values=values, intent=1))
    statement = draw(st.dictionaries(st.sampled_from(["result", "error", "phase", "auth_code"]), plain))
    for reporter in ("fpgasupdate", "kernel-log"):
        records.append(
            Claim(
                seq=5, reporter=reporter, subject=card, statement=statement, evidence=Evidence(""), intent=1
            )
        )
    shown = draw(st.dictionaries(st.sampled_from(FIELDS), plain))
    return [*records, Claim(seq=6, reporter="fpgainfo", subject=card, statement=shown, evidence=Evidence(""))]


@settings(deadline=None)
@given(nonsense())
def test_nonsense_in_a_history_is_judged_without_an_error(records: list[Record]) -> None:
    for intent in (records[0], from_json(to_json(records[0]) | {"operation": "reset"})):
        start = ScenarioStarted(scenario="s", subject=CARDS[0])
        (scenario,) = judge([start, intent, *records[1:], ScenarioEnded(scenario="s")]).scenarios
        assert scenario.outcomes


#: What a line of JSON can hold; ``{"unknown": ...}`` is read as a value that is not known.
any_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["MATCH", "finished"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["unknown", "image", "name", "kind"]) | st.text(), inner, max_size=3
        )
    ),
    max_leaves=5,
)


def put_somewhere(draw: st.DrawFn, value: Any, what: Any) -> Any:
    """Return ``value`` with ``what`` in the place of one part of it."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return value | {key: put_somewhere(draw, value[key], what)}
    return what


@st.composite
def damaged_runs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The lines of a run, some of them with a part of another type, doubled, missing or elsewhere."""
    lines = [to_json(record) for record in draw(runs())]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        key = draw(st.sampled_from(sorted(lines[at])))
        lines[at] = lines[at] | {key: put_somewhere(draw, lines[at][key], draw(any_json))}
    return draw(st.permutations(lines)) if draw(st.booleans()) else lines


@given(damaged_runs())
def test_a_line_of_other_types_is_no_record_or_is_judged_and_told(lines: list[dict[str, Any]]) -> None:
    try:
        records = [from_json(line) for line in lines]
    except ValueError:
        return
    try:
        judgement = judge(records)
    except ConfigurationError:
        return
    render(judgement, Path("reports")).encode()
    json.dumps(results_json(judgement))


def test_an_expectation_that_there_is_not_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"'s1'.*'FINE'"):
        judge([ScenarioStarted(scenario="s1", expects={"outcome": "FINE"}), ScenarioEnded(scenario="s1")])
