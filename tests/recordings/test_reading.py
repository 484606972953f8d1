"""Many files in one command: byte for byte what the kernel gives, with its errno where it gives none."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import InfrastructureError
from harness.hosts.local import LocalHost
from harness.hosts.protocol import CommandResult, Host
from harness.recordings.model import Entry
from harness.recordings.reading import Found, list_below, read_files

CONTENTS = {
    "text": b"0x23000410010307\n",
    "no newline": b"idle",
    "empty": b"",
    "one newline": b"\n",
    "many newlines": b"\n\n\n",
    "header": b"==> text <==\nnot a header\n",
    "returns": b"a\r\nb\rc\n",
    "nul": b"a\0b\n",
    "latin-1": b"\xe4\xff\n",
    "cut character": "ä".encode()[:1],
    "replacement": "\ufffd\n".encode(),
    "binary": bytes(range(256)),
    "quote'": b"q\n",
    "star*": b"s\n",
}


@pytest.fixture(params=["local", "openssh"])
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    if request.param == "openssh":
        yield request.getfixturevalue("peer")
    else:
        yield LocalHost("bench")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    return {name: tmp_path / name for name in CONTENTS}


def test_every_file_is_read_as_it_is(host: Host, files: dict[str, Path]) -> None:
    found = read_files(host, [str(path) for path in files.values()])
    assert {Path(path).name: entry.data for path, entry in found.items()} == CONTENTS
    assert {entry.kind for entry in found.values()} == {"content"}


def test_a_file_that_cannot_be_read_has_its_errno_and_the_others_are_read(host: Host, tmp_path: Path) -> None:
    (tmp_path / "first").write_text("1\n")
    (tmp_path / "last").write_text("2")
    (tmp_path / "loop").symlink_to("loop")
    paths = [
        str(tmp_path / "first"),
        str(tmp_path / "gone"),
        str(tmp_path),
        str(tmp_path / "loop"),
        str(tmp_path / "first" / "below"),
        str(tmp_path / "last"),
    ]
    found = read_files(host, paths)
    assert [found[path] for path in paths] == [
        Entry("content", b"1\n"),
        Entry("unreadable", text="ENOENT"),
        Entry("unreadable", text="EISDIR"),
        Entry("unreadable", text="ELOOP"),
        Entry("unreadable", text="ENOTDIR"),
        Entry("content", b"2"),
    ]


def test_more_files_than_one_command_line_holds(host: Host, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 200)
    deep.mkdir()
    paths = [deep / f"{'f' * 180}{number}" for number in range(300)]
    for path in paths:
        path.write_text(f"{path.name[-3:]}\n")
    assert sum(len(str(path)) for path in paths) > 131072  # what Linux allows for a word
    found = read_files(host, list(map(str, paths)))
    assert all(found[str(path)].data.decode() == f"{path.name[-3:]}\n" for path in paths)
    assert len(list_below(host, list(map(str, paths))).found) == 300


def test_what_is_below_a_path(host: Host, tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/deep").write_text("123")
    (tmp_path / "a/link").symlink_to("../elsewhere")
    (tmp_path / "a/wo").write_text("")
    (tmp_path / "a/wo").chmod(0o200)
    os.mkfifo(tmp_path / "a/pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "a/sock"))
        whole = list_below(host, [str(tmp_path / "a"), str(tmp_path / "none")])
        first = list_below(host, [str(tmp_path / "a")], depth=1)
    found = {entry.path.removeprefix(f"{tmp_path}/"): entry for entry in whole.found}
    assert {path: entry.type for path, entry in found.items()} == {
        "a": "d",
        "a/b": "d",
        "a/b/deep": "f",
        "a/link": "l",
        "a/wo": "f",
        "a/pipe": "p",
        "a/sock": "s",
    }
    assert found["a/link"].target == "../elsewhere"
    assert found["a/b/deep"] == Found(f"{tmp_path}/a/b/deep", "f", 0o644, 3, "")
    assert found["a/wo"].mode == 0o200
    assert whole.failed == {str(tmp_path / "none"): "No such file or directory"}
    assert {entry.path for entry in whole.found} - {entry.path for entry in first.found} == {
        str(tmp_path / "a/b/deep")
    }


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=st.lists(st.binary(max_size=200), min_size=1, max_size=12))
def test_any_contents_are_told_apart(tmp_path: Path, contents: list[bytes]) -> None:
    paths = [tmp_path / f"f{number}" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    found = read_files(LocalHost(), [str(path) for path in paths])
    assert [found[str(path)].data for path in paths] == contents


class Deaf:
    """A host whose programs answer as told."""

    name = "bench"

    def __init__(self, exit_code: int, stdout: str = "", stderr: str = "") -> None:
        self._answer = (exit_code, stdout, stderr)

    def run(self, argv: Any, **how: Any) -> CommandResult:
        return CommandResult(tuple(argv), *self._answer, seconds=0.0)


def test_a_host_without_the_programs_is_told() -> None:
    missing: Any = Deaf(127, "", "sh: 1: head: not found\n")
    with pytest.raises(InfrastructureError, match="`head` on bench ended with exit code 127") as caught:
        read_files(missing, ["/sys/a"])
    assert "coreutils" in caught.value.hint
    with pytest.raises(InfrastructureError, match="`find` on bench"):
        list_below(missing, ["/sys"])


def test_nothing_is_made_up_for_a_file_of_which_nothing_was_said() -> None:
    silent: Any = Deaf(0)
    with pytest.raises(InfrastructureError, match="said nothing of /sys/a"):
        read_files(silent, ["/sys/a"])


@pytest.mark.parametrize("quotes", ["''", "‘’"])
def test_complaints_of_older_and_newer_coreutils(quotes: str) -> None:
    said = f"head: cannot open {quotes[0]}/sys/a{quotes[1]} for reading: Permission denied\n"
    found = read_files(Deaf(1, "", said), ["/sys/a"])  # type: ignore[arg-type]
    assert found == {"/sys/a": Entry("unreadable", text="EACCES")}
