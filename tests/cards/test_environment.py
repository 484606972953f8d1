"""What a host says that it runs with, kernel and tools; or why that cannot be read."""

from collections.abc import Sequence
from typing import Any

import pytest

from harness.cards.environment import environment_of
from harness.errors import UnreachableError
from harness.hosts.local import LocalHost
from harness.hosts.protocol import CommandResult
from harness.judgement.values import Unknown


class Answering(LocalHost):
    """Answers as it is told; raises what is an error."""

    def __init__(self, kernel: bytes | Exception, tool: CommandResult | Exception) -> None:
        super().__init__("node7")
        self._kernel, self._tool = kernel, tool

    def read(self, path: str, *, deadline: float = 30.0) -> bytes:
        assert path == "/proc/sys/kernel/osrelease"
        return self._given(self._kernel)

    def run(self, argv: Sequence[str], **options: Any) -> CommandResult:
        assert list(argv) == ["fpgasupdate", "--version"]
        return self._given(self._tool)

    @staticmethod
    def _given(answer: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer


def said(code: int, stdout: str = "", stderr: str = "") -> CommandResult:
    return CommandResult(("fpgasupdate", "--version"), code, stdout, stderr, 0.0)


def test_versions_and_where_they_were_read() -> None:
    found = environment_of(Answering(b"6.1.0-9-amd64\n", said(0, "fpgasupdate 2.14.0\n")))
    assert found.part == "node7"
    assert found.values == {"kernel": "6.1.0-9-amd64", "fpgasupdate": "fpgasupdate 2.14.0"}
    assert found.sources == {
        "kernel": "/proc/sys/kernel/osrelease",
        "fpgasupdate": "fpgasupdate --version",
    }


def test_a_warning_before_the_version_is_none() -> None:
    found = environment_of(Answering(b"6.1\n", said(0, "fpgasupdate 2.14.0\n", "")))
    assert found.values["fpgasupdate"] == "fpgasupdate 2.14.0"
    found = environment_of(Answering(b"6.1\n", said(0, "DeprecationWarning: x\nfpgasupdate 2.14.0\n")))
    assert found.values["fpgasupdate"] == "fpgasupdate 2.14.0"


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        (said(127, "", "bash: fpgasupdate: command not found\n"), "bash: fpgasupdate: command not found"),
        (said(3), "it said nothing, and ended with 3"),
        (said(0, "\n"), "it said nothing, and ended with 0"),
        (UnreachableError("node7 is gone", hint="look"), "node7 is gone"),
    ],
)
def test_what_cannot_be_read_says_why(tool: Any, why: str) -> None:
    found = environment_of(Answering(PermissionError(13, "Permission denied"), tool))
    assert found.values["fpgasupdate"] == Unknown(why)
    assert found.values["kernel"] == Unknown("[Errno 13] Permission denied")
