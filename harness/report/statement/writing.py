"""Writes a statement into a folder of its own: HTML, PDF, the evidence, and the manifest of all."""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.judgement.judge import Judgement
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
    kill_matrix: Mapping[str, Any] | None

    @property
    def counts(self) -> dict[str, int]:
        """Return how many scenarios ended how."""
        counts: dict[str, int] = {}
        for one in self.judgement.scenarios:
            counts[one.state] = counts.get(one.state, 0) + 1
        return counts


def write_statement(statement: Statement, folder: Path, evidence: Sequence[Path]) -> Path:
    """Write a statement with copies of its evidence into ``folder``, which must not hold anything yet.

    The PDF is printed from the HTML by a browser of this machine.

    :param evidence: folders of runs and files. :returns: the HTML.
    :raises ConfigurationError: ``folder`` holds something. :raises BlockedError: there is no browser; the
        HTML and the manifest are written all the same.
    :raises InfrastructureError: it cannot be written.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigurationError(
            f"{folder} holds something already.", hint="Name a folder that is new with --to."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in evidence:
            _copy(path, folder / EVIDENCE / path.name)
        page = folder / HTML
        page.write_text(_page(statement), encoding="utf-8", errors="backslashreplace")
        missing = _print(page, folder / PDF)
        write_manifest(folder, (path for path in folder.rglob("*") if path.is_file()))
    except OSError as error:
        raise InfrastructureError(f"The statement cannot be written to {folder}: {error}.") from error
    if missing:
        raise BlockedError(f"The statement is in {page}, but it has no PDF: {missing}", hint=_HINT)
    return page


_HINT: Final = "As root: apt-get install chromium; then write it again."


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, to, ignore=shutil.ignore_patterns(".*"))
    else:
        shutil.copyfile(path, to)


def _page(statement: Statement) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Path(__file__).with_name("templates")
    environment = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    said = {
        "statement": statement,
        "decision": printable_parts(statement.decision, _PROSE),
        "facts": json.loads(json.dumps(vars(statement.facts))),
        "rules": RULES,
    }
    return environment.get_template("statement.html.jinja").render(said).lstrip()


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
