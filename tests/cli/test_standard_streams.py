"""`hil` where its standard streams are closed, full, or where nobody reads them any more."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
HIL = f"{shlex.quote(sys.executable)} -c 'from harness.cli import main; main()'"
VALID = "fixtures/vectors/sr_A_csk0.bin"


def shell(line: str, **environ: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a line of bash in which `hil` is the command."""
    script = f'set -o pipefail; hil() {{ {HIL} "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", script],
        cwd=PROJECT,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"} | environ,
        capture_output=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "image --help",
        f"image verify {VALID}",
        f"image inspect -o json {VALID}",
        "image damage --list",
        "inventory show -o yaml",
        "emulator profile -o json",
    ],
)
@pytest.mark.parametrize(("where", "why"), [("/dev/full", "No space left on device"), ("&-", "descriptor")])
def test_what_cannot_be_written_is_told_and_is_no_success(words: str, where: str, why: str) -> None:
    done = shell(f"hil {words} >{where}")
    assert done.returncode == 3
    told = done.stderr.decode()
    assert told.count("Error: Standard output takes no more") == 1
    assert why in told
    assert "Traceback" not in told


def test_a_reader_that_went_away_is_neither_an_error_nor_a_result(tmp_path: Path) -> None:
    """Exit code 1 would read as a run that is not as stated."""
    history = tmp_path / "history.jsonl"
    scenario = {"kind": "scenario-started", "scenario": "s" * 200_000}  # more than a pipe holds
    history.write_text(json.dumps(scenario | {"seq": 1}) + "\n")
    done = shell(f"hil judge -o json {history} | head -c 1")
    assert (done.returncode, done.stderr) == (141, b"")


def test_closed_standard_input_is_told() -> None:
    done = shell("hil image inspect - <&-")
    assert done.returncode == 2
    assert done.stderr.decode() == "Error: Cannot read standard input: Bad file descriptor.\n"


@pytest.mark.parametrize("where", ["/dev/full", "&-"])
@pytest.mark.parametrize(("words", "code"), [("nosuch", 2), ("image inspect nosuch", 2), ("image", 2)])
def test_the_exit_code_tells_what_a_message_cannot(words: str, code: int, where: str) -> None:
    assert shell(f"hil {words} 2>{where}").returncode == code


def test_what_the_encoding_lacks_comes_in_escapes(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    history.write_text(
        json.dumps({"kind": "scenario-started", "seq": 1, "scenario": "naïve → \ud800"}) + "\n"
    )
    done = shell(f"hil judge {history}", PYTHONIOENCODING="ascii")
    assert done.returncode == 130
    assert rb"na\xefve \u2192 \ud800" in done.stdout


def test_an_error_cannot_steer_the_terminal() -> None:
    done = shell("hil image inspect $'\\e]0;title\\a\\e[2J\\rx\\xff'")
    assert done.stderr == (
        b"Error: Cannot read \\x1b]0;title\\x07\\x1b[2J\\rx\\udcff: No such file or directory.\n"
    )
