"""The documents say nothing untrue: their commands run, and print what the documents show.

- A block marked ``console`` holds ``$ command`` lines, each with what it prints; if that is left out, it is
  not compared. ``...`` stands for any text, alone on a line for any lines. ``# exits with N`` states an exit
  code.
- ``needs=mount``, ``needs=engine``: it is run where this machine lets hosts be mounted, or where a Docker
  engine can be had, else told to be BLOCKED.
- A block marked ``python file=NAME`` or ``yaml file=NAME`` is written to that file first.
- A block marked ``sh`` is for a lab that is not here: its `hil` commands and options must exist.
- Commands of `hil` in running text must exist, too.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.mounted import blocked

from harness.cli import SUB_COMMANDS, load_command
from harness.errors import BlockedError
from harness.inventory.load import load_inventory
from harness.lab.background import background_labs
from harness.registry.engines.private import find_engine

PROJECT = Path(__file__).parents[1]
DOCUMENTS = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]

#: Commands that are run elsewhere, as they take long: command -> the file that runs it.
RUN_ELSEWHERE = {"make regression": ".ci/run", "make test": ".ci/run"}

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`(hil [^`\n]+)`(?!`)")
_EXIT = re.compile(r"\s+# exits with (\d+)$")


@dataclass
class Block:
    """A fenced block of a document."""

    language: str
    file: str
    body: str
    line: int
    needs: str = ""


@dataclass
class Step:
    """A command of a console block, and what the document shows of it."""

    command: str
    exit_code: int
    shown: list[str] = field(default_factory=list)

    def pattern(self) -> str:
        """Return a regular expression for the output, a line each."""
        parts = []
        for line in self.shown:
            if line == "...":
                parts.append(r"(?:[^\n]*\n)*?")
            else:
                parts.append(".*".join(map(re.escape, line.split("..."))) + r"[ ]*\n")
        return "".join(parts)


def blocks(text: str) -> Iterator[Block]:
    for match in _FENCE.finditer(text):
        language, *options = match["info"].split() or [""]
        file = next((o.removeprefix("file=") for o in options if o.startswith("file=")), "")
        needs = next((o.removeprefix("needs=") for o in options if o.startswith("needs=")), "")
        yield Block(language, file, match["body"], text.count("\n", 0, match.start()) + 1, needs)


def steps(block: Block) -> list[Step]:
    found: list[Step] = []
    lines = iter(block.body.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command = command[:-1] + next(lines).lstrip("> ")
            stated = _EXIT.search(command)
            found.append(Step(_EXIT.sub("", command), int(stated[1]) if stated else 0))
        else:
            assert found, f"line {block.line}: a console block begins with `$ command`"
            found[-1].shown.append(line.rstrip())
    return found


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """A copy of what commands read, so that they can leave behind what they like; but no lab that runs."""
    project = tmp_path / "project"
    project.mkdir()
    for name in ("inventory.yaml", "pyproject.toml", "Makefile"):
        shutil.copy(PROJECT / name, project / name)
    for name in ("fixtures", "testplans"):
        shutil.copytree(PROJECT / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
    yield project
    for lab in background_labs(load_inventory(project / "inventory.yaml")):
        lab.down()


def run(command: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "HIL_"))}
    environ |= {
        "PATH": f"{Path(sys.executable).parent}:{environ['PATH']}",
        "HOME": str(directory.parent),
        "NO_COLOR": "1",
        "COLUMNS": "110",
    }
    return subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=110,
    )


def check(step: Step, directory: Path) -> None:
    if step.command in RUN_ELSEWHERE:
        assert step.command in (PROJECT / RUN_ELSEWHERE[step.command]).read_text()
        return
    done = run(step.command, directory)
    assert done.returncode == step.exit_code, f"$ {step.command}\n{done.stdout}"
    if step.shown:
        shown = "\n".join(step.shown)
        assert re.fullmatch(step.pattern(), done.stdout), (
            f"$ {step.command}\n--- the document shows\n{shown}\n--- it prints\n{done.stdout}"
        )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_of_a_document_run_and_print_what_it_shows(document: Path, scratch: Path) -> None:
    lacking = ""
    for block in blocks(document.read_text(encoding="utf-8")):
        if block.needs:
            lacking = lacking or (no_mount(scratch) if block.needs == "mount" else no_engine())
            if lacking:
                continue
        if block.file:
            target = scratch / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.body, encoding="utf-8")
        elif block.language == "console":
            for step in steps(block):
                check(step, scratch)
        else:
            assert "$ " not in {line[:2] for line in block.body.splitlines()}, (
                f"line {block.line}: not a console"
            )
    if lacking:
        blocked(lacking)


def no_mount(scratch: Path) -> str:
    """Return why no emulated host can be mounted on this machine; empty where one can."""
    tried = run("hil lab mount subcloud1 -- true", scratch)
    return tried.stdout.strip() if tried.returncode == 3 else ""


def no_engine() -> str:
    """Return why there is no Docker engine on this machine; empty where there is one. Installs nothing."""
    try:
        find_engine(install=False)
    except BlockedError as error:
        return str(error)
    return ""


def must_exist(words: list[str]) -> None:
    """Fail where the sub-commands or options of a `hil` command line do not exist; `a|b` are alternatives."""
    names = words[1].split("|")
    if names[0].startswith("-"):
        return
    for name in names:
        assert name in SUB_COMMANDS, f"`{' '.join(words)}`: there is no `hil {name}`"
    command: Any = load_command(names[0])
    rest = words[2:]
    if hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        for name in rest[0].split("|"):
            assert name in command.commands, f"`{' '.join(words)}`: `hil {names[0]}` has no {name!r}"
        command = command.commands[rest[0].split("|")[0]]
    known = {"--help", "-h"} | {o for param in command.params for o in (*param.opts, *param.secondary_opts)}
    for word in rest:
        if word == "--":
            break  # what follows is another program's
        if word.startswith("-") and word != "-":
            assert word.partition("=")[0] in known, f"`{' '.join(words)}`: unknown option {word}"


def hil_commands(text: str) -> Iterator[str]:
    """Yield the `hil` command lines of running text and of blocks for other labs."""
    for block in blocks(text):
        if block.language == "sh":
            yield from (line for line in block.body.splitlines() if line.startswith("hil "))
    yield from _INLINE.findall(_FENCE.sub("", text))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_hil_commands_in_running_text_exist(document: Path) -> None:
    for line in hil_commands(document.read_text(encoding="utf-8")):
        must_exist(shlex.split(line, comments=True))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_inventories_in_documents_are_valid(document: Path, tmp_path: Path) -> None:
    for block in blocks(document.read_text(encoding="utf-8")):
        if block.language == "yaml" and not block.file:
            (tmp_path / "inventory.yaml").write_text(block.body, encoding="utf-8")
            load_inventory(tmp_path / "inventory.yaml")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), f"{document.name} links to {target}, which is not there"


@pytest.mark.parametrize(
    "text",
    [
        "$ echo one; echo two\none\ntwo",
        "$ echo one; echo two; echo three\none\n...\nthree",
        "$ echo one 12 three\none ... three",
        "$ false  # exits with 1",
        "$ exit 3  # exits with 3",
        "$ echo a \\\n>   b\na b",
        "$ echo unseen",
    ],
)
def test_console_block_that_is_true(text: str, tmp_path: Path) -> None:
    for step in steps(Block("console", "", text, 1)):
        check(step, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "$ echo one\ntwo",
        "$ echo one; echo two\none",
        "$ false",
        "$ true  # exits with 1",
        "$ echo 1 2\n1 ... 3",
    ],
)
def test_console_block_that_is_untrue_is_caught(text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        for step in steps(Block("console", "", text, 1)):
            check(step, tmp_path)


@pytest.mark.parametrize(
    "line",
    ["hil inventry show", "hil inventory list", "hil inventory check --strict", "hil run x --devices y"],
)
def test_command_that_does_not_exist_is_caught(line: str) -> None:
    assert list(hil_commands(f"Use `{line}`.")) == [line]
    with pytest.raises(AssertionError):
        must_exist(line.split())
