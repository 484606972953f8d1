"""The history on disk: whole lines, in order, readable after a crash, and never lost in silence."""

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.errors import ConfigurationError, HarnessBug, InfrastructureError
from harness.judgement.records import (
    Claim,
    Completion,
    Evidence,
    Intent,
    RunEnded,
    RunStarted,
    Subject,
)
from harness.record import History, read_history

CARD = Subject("card", "subcloud1/card0")


def flash() -> Intent:
    return Intent(operation="flash", subject=CARD)


def claim(text: str = "Secure update OK") -> Claim:
    return Claim(reporter="fpgasupdate", subject=CARD, statement={"result": "done"}, evidence=Evidence(text))


def test_records_get_their_number_and_time_and_are_on_disk_at_once(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    clock = iter([10.0, 11.5])
    with History(path, clock=lambda: next(clock)) as history:
        first = history.add(RunStarted(run="r1", lab="emulated"))
        assert (first.seq, first.time) == (1, 10.0)
        second = history.add(flash())
        assert (second.seq, second.time) == (2, 11.5)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["kind"] for line in lines] == ["run-started", "intent"]
        assert lines[1]["seq"] == 2
        assert list(read_history(path)) == list(history.records) == [first, second]


def test_what_is_kept_in_memory_is_what_a_reader_gets(tmp_path: Path) -> None:
    """A set becomes a list in JSON; judged live, it must not be another thing than judged later."""
    with History(tmp_path / "h.jsonl") as history:
        kept = history.add(
            Claim(
                reporter="fpgainfo",
                subject=CARD,
                statement={"sr_cancelled": frozenset({2, 1})},
                evidence=Evidence(""),
            )
        )
    assert kept.statement == {"sr_cancelled": [1, 2]}
    assert list(read_history(tmp_path / "h.jsonl")) == [kept]


def test_any_text_stays_one_line(tmp_path: Path) -> None:
    text = "a\nb\r\nc\u2028d\x00\udce9 é"
    with History(tmp_path / "h.jsonl") as history:
        history.add(claim(text))
    assert (tmp_path / "h.jsonl").read_bytes().count(b"\n") == 1
    (read,) = read_history(tmp_path / "h.jsonl")
    assert isinstance(read, Claim)
    assert read.evidence.text == text


def test_a_second_history_in_the_same_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    with History(path) as history:
        history.add(flash())
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match="another run"):
        History(path)
    assert path.read_bytes() == before


def test_a_directory_that_is_not_there_is_an_infrastructure_error(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="No such file"):
        History(tmp_path / "missing" / "h.jsonl")


def test_nothing_is_added_after_the_end(tmp_path: Path) -> None:
    history = History(tmp_path / "h.jsonl")
    history.close()
    history.close()
    with pytest.raises(HarnessBug, match="closed"):
        history.add(flash())


def test_what_json_cannot_express_is_a_bug_and_leaves_the_file_whole(tmp_path: Path) -> None:
    with History(tmp_path / "h.jsonl") as history:
        history.add(flash())
        with pytest.raises(HarnessBug, match="JSON"):
            history.add(
                Claim(reporter="x", subject=CARD, statement={"bytes": b"\x00"}, evidence=Evidence(""))
            )
        history.add(claim())
    assert [record.seq for record in read_history(tmp_path / "h.jsonl")] == [1, 2]


def test_several_threads_write_whole_lines_in_order(tmp_path: Path) -> None:
    with History(tmp_path / "h.jsonl") as history:
        threads = [
            threading.Thread(target=lambda: [history.add(claim("x" * 3000)) for _ in range(50)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [record.seq for record in read_history(tmp_path / "h.jsonl")] == list(range(1, 201))


def test_a_full_device_is_an_infrastructure_error() -> None:
    history = History("/dev/full")
    with pytest.raises(InfrastructureError, match=r"No space left on device.*0 bytes so far") as caught:
        history.add(flash())
    assert "Free space" in caught.value.hint
    assert list(history.records) == []


FILL = """
import resource, signal, sys
from harness.errors import InfrastructureError
from harness.judgement.records import Claim, Evidence, Intent, Subject
from harness.record import History

path, limit = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
card = Subject("card", "subcloud1/card0")
history = History(path)
history.add(Intent(operation="flash", subject=card))
def claim(text):
    return Claim(reporter="fpgasupdate", subject=card, statement={}, evidence=Evidence(text))
failed = []
for number in range(3):
    try:
        history.add(claim(f"{number} " + "x" * 400))
    except InfrastructureError as error:
        failed.append(number)
try:
    history.add(Intent(operation="reset", subject=card))
except InfrastructureError:
    failed.append("intent")
print(failed, [r.seq for r in history.records], open(path).read().count("\\n"))
assert open(path).read().endswith("\\n")
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
history.add(claim("room again"))
history.close()
"""


def test_what_a_full_disk_kept_in_memory_is_written_when_there_is_room_again(tmp_path: Path) -> None:
    """A record of what has happened is never lost; an intent that is not recorded never happens."""
    path = tmp_path / "h.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(path), "1000"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[1, 2, 'intent'] [1, 2, 3, 4] 2"
    records = list(read_history(path))
    assert [record.seq for record in records] == [1, 2, 3, 4, 5]
    texts = [record.evidence.text[:1] for record in records if isinstance(record, Claim)]
    assert texts == ["0", "1", "2", "r"]
    assert sum(isinstance(record, Intent) for record in records) == 1


def test_records_still_in_memory_at_the_end_are_an_error(tmp_path: Path, monkeypatch) -> None:
    history = History(tmp_path / "h.jsonl")
    history.add(flash())

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(InfrastructureError, match="1 records are kept in memory only"):
            history.add(claim())
        with pytest.raises(InfrastructureError, match="1 records are kept in memory only"):
            history.close()
    assert [record.seq for record in history.records] == [1, 2]
    assert [record.seq for record in read_history(tmp_path / "h.jsonl")] == [1]


def test_a_part_of_a_line_is_taken_back(tmp_path: Path, monkeypatch) -> None:
    """A disk that fills up in the middle of a line takes some bytes of it first."""
    path = tmp_path / "h.jsonl"
    history = History(path)
    history.add(flash())
    whole = path.read_bytes()
    write = os.write

    def fills_up(descriptor: int, data: bytes) -> int:
        if len(data) > 10:
            return write(descriptor, bytes(data[:10]))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fills_up)
        with pytest.raises(InfrastructureError):
            history.add(Completion(intent=1, how="returned", error={"message": "x" * 15}))
    assert path.read_bytes() == whole
    history.close()
    assert [record.kind for record in read_history(path)] == ["intent", "completion"]


@pytest.mark.parametrize("cut", [1, 20, -2])
def test_a_torn_last_line_is_left_out_and_named(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "h.jsonl"
    with History(path) as history:
        history.add(RunStarted(run="r", lab="l"))
        history.add(flash())
        history.add(claim())
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + lines[2][:cut])
    torn: list[int] = []
    assert [record.seq for record in read_history(path, torn.append)] == [1, 2]
    assert torn == [3]


def test_a_last_line_that_only_lacks_its_end_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    with History(path) as history:
        history.add(RunEnded())
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert [record.kind for record in read_history(path)] == ["run-ended"]


def test_a_history_cut_at_any_byte_reads_as_a_beginning_of_it(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    with History(path) as history:
        history.add(flash())
        history.add(claim("short"))
        history.add(Completion(intent=1, how="returned"))
    whole, records = path.read_bytes(), list(read_history(path))
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        read = list(read_history(path))
        assert read == records[: len(read)]
        assert len(read) >= whole[:length].count(b"\n")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{not json", "not a line of JSON"),
        ("[]", "a JSON object"),
        ('{"kind": "dream"}', "unknown record kind 'dream'"),
        ('{"kind": "intent", "seq": 1}', "not a intent record"),
        ('{"kind": "intent", "operation": "flash", "subject": 5}', "not a intent record"),
        ('{"kind": "intent", "operation": "flash", "subject": {"colour": 5}}', "not a intent record"),
        ('{"kind": "intent", "operation": "flash", "subject": {}, "promise": []}', "not a intent record"),
        ('{"kind": "run-ended", "seq": 2, "time": NaN}', "NaN is no number"),
        ('{"kind": "run-ended", "seq": 2, "time": 1e400}', "time is inf"),
        ('{"kind": "run-ended", "seq": 2, "skew": ' + "[" * 100_000 + "]" * 100_000 + "}", "recursion"),
        ('{"kind": "run-ended", "seq": ' + "9" * 5_000 + "}", "digits"),
        ('{"kind": "run-ended", "seq": 2, "how": "\xff"}', "how is"),
        ('{"kind": "run-ended", "seq": true}', "seq is True, which it cannot be"),
        ('{"kind": "run-ended"}', "the record has the number 0, and 2 was due"),
        ('{"kind": "run-ended", "seq": 1}', "the record has the number 1, and 2 was due"),
        ('{"kind": "run-ended", "seq": 3}', "the record has the number 3, and 2 was due"),
        ("\0" * 100, "not a line of JSON"),
    ],
)
def test_a_damaged_line_within_is_an_error_that_names_it(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(
        '{"kind":"run-ended","seq":1,"time":0}\n' + line + '\n{"kind":"run-ended","seq":2,"time":0}\n'
    )
    with pytest.raises(ConfigurationError) as caught:
        list(read_history(path))
    assert f"{path}:2: " in caught.value.message
    assert complaint in caught.value.message


def test_a_broken_last_line_with_its_end_was_not_torn(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text('{"kind":"run-ended","seq":1,"time":0}\n{"kind":\n')
    with pytest.raises(ConfigurationError, match=r"h\.jsonl:2: not a line of JSON"):
        list(read_history(tmp_path / "h.jsonl"))


def test_histories_one_after_the_other_each_count_anew(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    with History(path) as history:
        history.add(RunStarted(run="r", lab="l"))
        history.add(RunEnded())
    path.write_bytes(path.read_bytes() * 2)
    assert [record.seq for record in read_history(path)] == [1, 2, 1, 2]


def test_a_file_without_line_ends_is_not_taken_into_memory() -> None:
    with pytest.raises(ConfigurationError, match=r"/dev/zero:1: a line of [0-9]+ bytes or more is no record"):
        list(read_history("/dev/zero"))


def test_a_history_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        list(read_history(tmp_path / "h.jsonl"))


def test_an_empty_history_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").touch()
    assert list(read_history(tmp_path / "h.jsonl")) == []
