"""A recording's file: what is written is read again; what is damaged or hostile is refused with its place."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import ConfigurationError, InfrastructureError
from harness.recordings import files
from harness.recordings.files import LARGEST, check_target, dumps, read_recording, write_recording
from harness.recordings.model import Entry, Recording


@pytest.mark.parametrize("name", ["card.json", "card.json.gz"])
def test_what_is_written_is_read_again(tiny: Recording, tmp_path: Path, name: str) -> None:
    size = write_recording(tiny, tmp_path / name)
    assert read_recording(tmp_path / name) == tiny
    assert (tmp_path / name).stat().st_size == size
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_same_recording_gives_the_same_bytes(tiny: Recording, tmp_path: Path) -> None:
    for name in ("a.json.gz", "b.json.gz"):
        write_recording(tiny, tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_a_value_that_changes_changes_one_line(tiny: Recording) -> None:
    before = dumps(tiny).splitlines()
    tiny.states[0].tree["/sys/a/text"] = Entry("content", b"other\n")  # type: ignore[index]
    after = dumps(tiny).splitlines()
    assert len(before) == len(after)
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert [line.strip() for line in changed] == [r'"/sys/a/text": {"text": "other\n"},']


def test_it_is_json_with_its_schema_in_front(tiny: Recording) -> None:
    plain = json.loads(dumps(tiny))
    assert list(plain)[:2] == ["format", "schema"]
    assert (plain["format"], plain["schema"]) == ("hil-recording", 1)
    tree = plain["states"][0]["tree"]
    assert tree["/sys/a/blob"] == {"base64": "/wA="}
    assert tree["/sys/a/busy"] == {"errno": "EBUSY"}
    assert tree["/sys/a/wo"] == {"write-only": True}
    assert plain["states"][0]["commands"]["fpgainfo fme 0000:b2:00.0"] == {
        "exit": 1,
        "stderr": ["no\n", "end"],
    }
    assert plain["states"][1]["tree"] == {"/sys/a/text": None}


def _set(*keys: Any) -> Callable[[Any, Any], None]:
    def change(plain: Any, value: Any) -> None:
        for key in keys[:-1]:
            plain = plain[key]
        plain[keys[-1]] = value

    return change


_TREE = ("states", 0, "tree")
_ACT = ("acts", 0)


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("format",), "fwupd", "does not begin with the format"),
        (("schema",), 2, "it is of schema 2, this is schema 1"),
        (("schema",), "1", "it is of schema '1'"),
        (("extra",), 1, "unknown key 'extra'"),
        (("states",), {}, "states: is no list"),
        (("states",), [], "1 acts need one state more"),
        (("acts",), [], "0 acts need one state more"),
        (("host",), {"name": "x"}, "host.hostname: is missing"),
        (("cards", 0, "address"), 7, "cards[0].address: is no text"),
        ((*_TREE, "sys/x"), {"text": ""}, "not an absolute, canonical path"),
        ((*_TREE, "/sys/../etc/shadow"), {"text": ""}, "not an absolute, canonical path"),
        ((*_TREE, "/sys//x"), {"text": ""}, "not an absolute, canonical path"),
        ((*_TREE, "/sys/x/"), {"text": ""}, "not an absolute, canonical path"),
        ((*_TREE, "/"), {"directory": True}, "not an absolute, canonical path"),
        ((*_TREE, "/sys/\0"), {"text": ""}, "cannot be a path"),
        ((*_TREE, "/" + "x/" * 300 + "y"), {"text": ""}, "not an absolute, canonical path"),
        ((*_TREE, "/" + "x" * 5000), {"text": ""}, "cannot be a path"),
        ((*_TREE, "/usr/bin/sh"), {"text": ""}, "neither below /sys nor below /sys, /proc, /dev, /etc"),
        ((*_TREE, "/tmp/x"), {"text": ""}, "neither below /sys nor below"),
        (("host", "sysfs"), "/usr/bin", "'/usr/bin' is where programs are"),
        (("host", "sysfs"), "sys", "not an absolute, canonical path"),
        ((*_TREE, "/sys/a/text/below"), {"text": ""}, "lies below what is no directory"),
        ((*_TREE, "/sys/x"), None, "is no object"),
        ((*_TREE, "/sys/x"), {}, "nothing where one of"),
        ((*_TREE, "/sys/x"), {"text": "", "link": "a"}, "link, text where one of"),
        ((*_TREE, "/sys/x"), {"text": 7}, "is no text"),
        ((*_TREE, "/sys/x"), {"text": "\ud800"}, "half a character"),
        ((*_TREE, "/sys/x"), {"base64": "%%%"}, "base64 is damaged"),
        ((*_TREE, "/sys/x"), {"errno": "EWHAT"}, "'EWHAT' is no errno"),
        ((*_TREE, "/sys/x"), {"errno": "__doc__"}, "'__doc__' is no errno"),
        ((*_TREE, "/sys/x"), {"link": ""}, "a link leads nowhere"),
        ((*_TREE, "/sys/x"), {"directory": False}, "directory where one of"),
        (("states", 0, "commands", "'"), {"exit": 0}, "is no command line"),
        (("states", 0, "commands", ""), {"exit": 0}, "is no command line"),
        (("states", 0, "commands", "hostname"), {"exit": 1e9}, "is no exit code"),
        (("states", 0, "commands", "hostname"), {"exit": True}, "is no exit code"),
        (("states", 0, "commands", "hostname"), {"exit": 0, "stdout": "x"}, "stdout: is no list"),
        (("states", 0, "addresses"), {"card0": 5}, "addresses.card0: is no text"),
        ((*_ACT, "act"), "erase", "'erase' where flash or reset is due"),
        ((*_ACT, "act"), "flash", "does not say which kind of image"),
        ((*_ACT, "argv"), [], "an act without a command line"),
        ((*_ACT, "ended"), -1, "is no number of seconds"),
        ((*_ACT, "ended"), "4", "is no number of seconds"),
        ((*_ACT, "ended"), 1e300, "is no number of seconds"),
        ((*_ACT, "settled"), 1, "settled before its tool had ended"),
        ((*_ACT, "watched"), {"status": "x"}, "not an absolute, canonical path"),
        ((*_ACT, "samples", 0, "until"), 9, "samples are not in the order of time"),
        ((*_ACT, "samples", 0), {"at": 0, "until": 0}, "status: is missing"),
        ((*_ACT, "output", 1, "at"), 0, "output are not in the order of time"),
        ((*_ACT, "output", 1), {"at": 5, "stdin": "x"}, "has at, and stdout or stderr"),
    ],
)
def test_what_is_not_of_the_schema_is_refused_with_its_place(
    tiny: Recording, tmp_path: Path, keys: tuple[Any, ...], value: Any, said: str
) -> None:
    plain = copy.deepcopy(json.loads(dumps(tiny)))
    _set(*keys)(plain, value)
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(plain))
    with pytest.raises(ConfigurationError) as caught:
        read_recording(file)
    assert said in caught.value.message
    assert str(file) in caught.value.message
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not JSON"),
        (b"[" * 200_000, "nested without an end"),
        (b"\xff\xfe", "not a text in UTF-8"),
        (b"[]", "is no object"),
        (b"null", "is no object"),
        (b'{"format": "hil-recording", "schema": NaN}', "NaN is no number"),
        (b'{"format": "a", "format": "b"}', "'format' is given twice"),
        (b'{"schema": ' + b"9" * 10_000 + b"}", "not a whole recording"),
        (b"\x1f\x8b\x08nothing", "cannot be unpacked"),
    ],
    ids=["empty", "deep", "no-text", "list", "null", "nan", "twice", "number", "gzip"],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(data)
    with pytest.raises(ConfigurationError, match=r"x\.json") as caught:
        read_recording(file)
    assert said in caught.value.message


def test_a_small_file_that_unpacks_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    file = tmp_path / "bomb.json.gz"
    file.write_bytes(gzip.compress(b" " * (LARGEST + (8 << 20))))
    assert file.stat().st_size < 100_000
    with pytest.raises(ConfigurationError, match="larger than 64 MiB"):
        read_recording(file)


def test_no_more_is_unpacked_than_a_recording_may_have(tmp_path: Path, monkeypatch: Any) -> None:
    """What is behind the limit is damaged, and is not come to."""
    monkeypatch.setattr(files, "LARGEST", 20_000)
    packed = gzip.compress(b" " * 10_000_000)
    assert len(packed) < 20_000
    (tmp_path / "big.json.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(ConfigurationError, match="larger than"):
        read_recording(tmp_path / "big.json.gz")


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_is_cut_off_anywhere_is_refused(tiny: Recording, tmp_path: Path, packed: bool) -> None:
    whole = dumps(tiny).rstrip().encode()
    data = gzip.compress(whole) if packed else whole
    file = tmp_path / "cut.json"
    for end in [*range(0, len(data), 97), len(data) - 1]:
        file.write_bytes(data[:end])
        with pytest.raises(ConfigurationError, match=r"cut\.json"):
            read_recording(file)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_and_nothing_else(
    tiny: Recording, tmp_path: Path, data: st.DataObject
) -> None:
    whole = bytearray(dumps(tiny).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    file = tmp_path / "damaged.json"
    file.write_bytes(bytes(whole))
    try:
        read_recording(file)
    except ConfigurationError as error:
        assert "damaged.json" in error.message


def test_an_older_or_newer_schema_says_who_can_read_it(tiny: Recording, tmp_path: Path) -> None:
    file = tmp_path / "new.json"
    file.write_text(dumps(tiny).replace('"schema": 1', '"schema": 2'))
    with pytest.raises(ConfigurationError) as caught:
        read_recording(file)
    assert "cannot be replayed: it is of schema 2, this is schema 1" in caught.value.message
    assert "the hil that made it" in caught.value.hint


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        read_recording(tmp_path / "none.json")


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "there.json"
    file.write_text("precious")
    with pytest.raises(ConfigurationError, match="is there already"):
        check_target(file)
    check_target(file, force=True)
    with pytest.raises(ConfigurationError, match="is not a writable folder"):
        check_target(tmp_path / "nowhere" / "x.json")


def test_a_full_disk_leaves_what_was_there(tiny: Recording, tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / "card.json"
    file.write_text("precious")

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as handle:
            handle.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InfrastructureError, match="No space left"):
        write_recording(tiny, file)
    assert file.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["card.json"]
