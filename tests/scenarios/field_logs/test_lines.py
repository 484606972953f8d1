"""Lines of pasted files: whatever the bytes are, text comes of them, in bounded memory."""

import gzip
import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ConfigurationError
from harness.scenarios.field_logs.lines import LONGEST, lines_of, read_lines


def read(data: bytes) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in lines_of(io.BytesIO(data), "f", print)]


def test_numbers_are_those_of_an_editor() -> None:
    assert read(b"one\r\n\r\nthree") == [(1, "one"), (2, ""), (3, "three")]
    assert read(b"") == []
    assert read(b"\n") == [(1, "")]


def test_a_bar_that_is_redrawn_is_as_many_lines_with_one_number() -> None:
    assert read(b"( 9%)\r(19%)\rdone\nnext") == [(1, "( 9%)"), (1, "(19%)"), (1, "done"), (2, "next")]


@pytest.mark.parametrize(
    "raw",
    [b"\x1b[0;36mDebug: x\x1b[0m", b"^[[0;36mDebug: x^[[0m", b"\x1b]0;title\x07Debug: x", b"D\0e\0bug: x\0"],
)
def test_colours_titles_and_what_is_not_seen_are_taken_off(raw: bytes) -> None:
    assert read(raw) == [(1, "Debug: x")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_that_state_themselves(encoding: str) -> None:
    assert read("Zürich 東\nzwei".encode(encoding)) == [(1, "Zürich 東"), (2, "zwei")]


def test_encodings_that_change_from_line_to_line() -> None:
    assert read("Zürich\n".encode() + "Zürich\n".encode("latin-1")) == [(1, "Zürich"), (2, "Zürich")]


def test_blanks_that_only_look_like_some_are_blanks() -> None:
    assert read("a\u00a0b\u200b".encode()) == [(1, "a b")]


def test_a_packed_log_is_unpacked_and_one_that_breaks_off_is_told() -> None:
    packed = gzip.compress(b"one\ntwo\n" * 20_000)
    assert read(packed)[:2] == [(1, "one"), (2, "two")]
    told: list[str] = []
    found = list(lines_of(io.BytesIO(packed[:-30]), "sysinv.log.1.gz", told.append))
    assert found[0].text == "one"
    assert "sysinv.log.1.gz: what is packed there breaks off after line" in told[0]


def test_the_rest_of_an_overlong_line_is_left_out_and_told() -> None:
    told: list[str] = []
    data = b"a" * (3 * LONGEST) + b"\nnext\n"
    found = list(lines_of(io.BytesIO(data), "f", told.append))
    assert [(line.number, len(line.text)) for line in found] == [(1, LONGEST), (2, 4)]
    assert told == [f"f: 1 lines are longer than {LONGEST} bytes; the rest of each was left out"]


class _Endless(io.RawIOBase):
    """A file of so many bytes, none of which is kept."""

    def __init__(self, size: int, line: bytes) -> None:
        self._left = size
        self._line = line

    def read(self, size: int = -1, /) -> bytes:
        taken = min(self._left, size)
        self._left -= taken
        return (self._line * (taken // len(self._line) + 1))[:taken]


@pytest.mark.parametrize("line", [b"x" * 99 + b"\n", b"x"], ids=["lines", "one line"])
def test_memory_does_not_grow_with_the_file(line: bytes) -> None:
    tracemalloc.start()
    try:
        for _ in lines_of(_Endless(2 << 20, line), "f", lambda _: None):  # type: ignore[arg-type]
            pass
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1 << 20


@given(st.binary(max_size=300))
@settings(max_examples=80, deadline=None)
def test_any_bytes_are_read_and_lines_are_counted(data: bytes) -> None:
    if data.startswith((b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):  # packed, or says how
        return
    numbers = [number for number, _ in read(data)]
    whole = data.count(b"\n") + (0 if data.endswith(b"\n") or not data else 1)
    assert max(numbers, default=0) == whole


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    def lines(name: str) -> Iterator[object]:
        return read_lines(name, print)

    with pytest.raises(ConfigurationError, match=r"nowhere.log cannot be read: No such file"):
        next(lines(str(tmp_path / "nowhere.log")))
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        next(lines(str(tmp_path)))
