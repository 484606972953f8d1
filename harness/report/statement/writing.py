"""Writes a statement into a folder of its own: HTML, PDF, the evidence, and the manifest of all."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.judgement.judge import Judgement
from harness.report.files import filled
from harness.report.printable import printable_parts
from harness.report.statement.facts import Facts
from harness.report.statement.manifest import write_manifest
from harness.report.statement.rules import RULES, Decision, Requirement

HTML, PDF, EVIDENCE = "statement.html", "statement.pdf", "evidence"
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_PDF_SECONDS: Final = 120.0
_PROSE: Final = frozenset({"why", "reason", "text"})


@dataclass(frozen=True, slots=True)
class Statement:
    """All that a statement says."""

    title: str
    day: datetime.date
    decision: Decision
    facts: Facts
    judgement: Judgement
    requirements: Sequence[Requirement]
    qualification: Mapping[str, Any] | None

    @property
    def counts(self) -> dict[str, int]:
        """Return how many scenarios ended how."""
        counts: dict[str, int] = {}
        for one in self.judgement.scenarios:
            counts[one.state] = counts.get(one.state, 0) + 1
        return counts


def write_statement(statement: Statement, folder: Path, evidence: Mapping[str, Path]) -> Path:
    """Write a statement with copies of its evidence into ``folder``, whole or not at all.

    The PDF is printed from the HTML by a browser of this machine.

    :param evidence: name -> a folder of a run or a file. :returns: the HTML.
    :raises ConfigurationError: ``folder`` holds something, or it and the evidence are in each other.
    :raises BlockedError: there is no browser; the HTML and the manifest are written all the same.
    :raises InfrastructureError: it cannot be written.
    """
    try:
        _check_place(folder, evidence.values())
        part = folder.with_name(f"{folder.name}.part-{os.getpid()}")
        try:
            for name, path in evidence.items():
                _copy(path, part / EVIDENCE / name)
            page = part / HTML
            page.write_text(_page(statement), encoding="utf-8", errors="backslashreplace")
            missing = _print(page, part / PDF)
            write_manifest(part, (path for path in part.rglob("*") if path.is_file()))
            part.replace(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise InfrastructureError(f"The statement cannot be written to {folder}: {error}.") from error
    if missing:
        raise BlockedError(f"The statement is in {folder / HTML}, but it has no PDF: {missing}", hint=_HINT)
    return folder / HTML


def _check_place(folder: Path, evidence: Iterable[Path]) -> None:
    hint = "Name a folder that is new, or empty, with --to."
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigurationError(f"{folder} holds something already.", hint=hint)
    own = folder.resolve()
    for path in evidence:
        theirs = path.resolve()
        if own == theirs or own in theirs.parents or theirs in own.parents:
            raise ConfigurationError(f"{folder} and the evidence {path} are in each other.", hint=hint)


_HINT: Final = "As root: apt-get install chromium; then write it again."


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, to, ignore=shutil.ignore_patterns(".*"))
    else:
        shutil.copyfile(path, to)


def _page(statement: Statement) -> str:
    said = {
        "statement": statement,
        "decision": printable_parts(statement.decision, _PROSE),
        "facts": json.loads(json.dumps(vars(statement.facts))),
        "rules": RULES,
    }
    return filled(Path(__file__).with_name("templates") / "statement.html.jinja", **said)


def _print(page: Path, to: Path) -> str:
    """Print a page as PDF; return why that cannot be done, or nothing."""
    program = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        return "there is no Chromium on this machine."
    with tempfile.TemporaryDirectory(prefix="hil-print-") as profile:
        command = [program, "--headless=new", "--disable-gpu", "--no-sandbox", "--no-pdf-header-footer"]
        command += [f"--user-data-dir={profile}", f"--print-to-pdf={to.resolve()}", page.resolve().as_uri()]
        try:
            ran = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PDF_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"{program} did not print it within {_PDF_SECONDS:g} s."
    if to.exists() and to.read_bytes()[:5] == b"%PDF-":
        return ""
    last = ran.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
    return f"{program} did not print it: {last[-1]}"
