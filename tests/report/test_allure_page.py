"""Allure's own report: by its program, else by npm, else it is said what is missing."""

from pathlib import Path

import pytest

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.report.allure_page import write_allure

#: Does what Allure's program does with its words, and keeps them.
PROGRAM = """#!/bin/sh
echo "$0 $*" >"$CALLS"
while [ "$1" != "-o" ]; do shift; done
mkdir -p "$2" && echo page >"$2/index.html"
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing in PATH but a shell, and results to make a report of."""
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "mkdir"):
        (tmp_path / "bin" / tool).symlink_to(f"/bin/{tool}")
    (tmp_path / "results").mkdir()
    (tmp_path / "results/1-result.json").write_text("{}")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path


def install(machine: Path, name: str, text: str = PROGRAM) -> None:
    (machine / "bin" / name).write_text(text)
    (machine / "bin" / name).chmod(0o755)


def called(machine: Path) -> str:
    return (machine / "calls").read_text().replace(f"{machine}/", "").strip()


def test_its_own_program_is_taken_first(machine: Path) -> None:
    install(machine, "allure")
    install(machine, "npx")
    page = write_allure(machine / "results", machine / "out")
    assert page.read_text() == "page\n"
    assert called(machine) == "bin/allure generate results -o out"


def test_npm_gets_it_where_it_is_missing(machine: Path) -> None:
    install(machine, "npx")
    write_allure(machine / "results", machine / "out")
    assert called(machine) == "bin/npx --yes allure@3 generate results -o out"


def test_without_either_it_is_said_what_is_missing(machine: Path) -> None:
    with pytest.raises(BlockedError, match="neither `allure` nor npm's `npx` is in PATH"):
        write_allure(machine / "results", machine / "out")


@pytest.mark.parametrize("program", ["#!/bin/sh\necho no room >&2; exit 1\n", "#!/bin/sh\necho no room\n"])
def test_a_program_that_fails_is_told(machine: Path, program: str) -> None:
    install(machine, "allure", program)
    with pytest.raises(InfrastructureError, match=r"did not make the report: no room\."):
        write_allure(machine / "results", machine / "out")


def test_what_is_there_is_not_written_over(machine: Path) -> None:
    install(machine, "allure")
    write_allure(machine / "results", machine / "out")
    with pytest.raises(ConfigurationError, match="holds something already"):
        write_allure(machine / "results", machine / "out")


def test_no_results(machine: Path) -> None:
    with pytest.raises(ConfigurationError, match="no results of Allure"):
        write_allure(machine / "bin", machine / "out")
