"""The page of a run: written for 1,000 results, and opened in a browser with 5,000."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.judging import history
from benchmarks.rows import Row, Samples, in_turn, processor_note, seconds_of
from harness.judgement.judge import judge
from harness.judgement.records import Record
from harness.report.page.writing import write_page

WRITTEN, OPENED = 1_000, 5_000
_PER_SCENARIO = 2


def measure(rounds: int) -> list[Row]:
    """Return both rows; each scenario is a flash and a reset, and one in ten diverges."""
    with tempfile.TemporaryDirectory(prefix="hil-page-") as name:
        folder = Path(name)
        return [_writing(folder, rounds), _opening(folder, rounds)]


def _run(scenarios: int) -> list[Record]:
    return history(scenarios * _PER_SCENARIO)


def _writing(folder: Path, rounds: int) -> Row:
    def act_of(records: list[Record]) -> Callable[[], object]:
        judgement = judge(records)
        return lambda: write_page(folder, judgement, records)

    whole, tenth = act_of(_run(WRITTEN)), act_of(_run(WRITTEN // 10))
    of_whole, of_tenth = in_turn((whole, tenth), rounds)
    return Row(
        "page written",
        f"{WRITTEN} results, {WRITTEN // 10} of them diverge, with timelines and evidence",
        "ms",
        of_whole,
        1000,
        peer="10 x a page of a tenth",
        peer_result=of_tenth.scaled(10),
        note=processor_note(whole),
    )


def _opening(folder: Path, rounds: int) -> Row:
    from playwright.sync_api import sync_playwright

    records = _run(OPENED)
    path = write_page(folder, judge(records), records)
    program = shutil.which("chromium")
    assert program, "there is no chromium here; as root: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        taken = [seconds_of(lambda: _open(browser, path)) for _ in range(rounds)]
        browser.close()
    return Row(
        "page opened",
        f"{OPENED} results, until the last one is laid out, in Chromium; {path.stat().st_size >> 10} KiB",
        "s",
        Samples(tuple(taken)),
        2,
    )


def _open(browser: Any, path: Path) -> None:
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.locator("#rows tr").last.bounding_box()["height"] > 0
    page.close()
