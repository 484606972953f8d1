"""The page in a real browser: no request, no complaint, links and filters work, axe-core has no objection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browser import chromium, clean_page, objections
from support.told_runs import LIE, Run

from harness.judgement.judge import judge
from harness.report.page.writing import write_page


def a_run_of_all_sorts() -> Run:
    run = Run()
    for device in ("one/card0", "two/card0"):
        run.flash(f"plan.py::test_wrong[{device}]", device)
        run.flash(f"plan.py::test_stated[{device}]", device, **LIE)
        run.flash(f"plan.py::test_good[{device}]", device, lies=False)
    run.blocked("plan.py::test_push", "no registry\n  hint: start one")
    return run


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    records = a_run_of_all_sorts().end()
    return write_page(tmp_path_factory.mktemp("page"), judge(records), records).as_uri()


@pytest.fixture(params=["light", "dark"])
def opened(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    looks = {"color_scheme": request.param, "viewport": {"width": 1280, "height": 900}}
    with clean_page(browser, address, **looks) as page:
        yield page


def visible_rows(page: Any) -> list[str]:
    return [row.inner_text() for row in page.locator("#rows tr:visible").all()]


def test_axe_has_no_objection(opened: Any) -> None:
    opened.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    assert objections(opened) == []


def test_what_diverged_is_on_the_first_screen(opened: Any, tmp_path: Path) -> None:
    first = opened.locator("details.finding").first
    box = first.locator(".sides").first.bounding_box()
    assert opened.locator("h1").inner_text() == "Not as stated"
    assert box is not None
    assert box["y"] + box["height"] < 900
    for told in ("FALSE_SUCCESS", "fpgasupdate", "one/card0", "Reported", "True", "How it was read"):
        assert told in first.inner_text()
    assert len(opened.screenshot()) > 10_000


def test_the_list_is_narrowed_by_words_and_states(opened: Any) -> None:
    assert len(visible_rows(opened)) == 7
    opened.keyboard.press("/")
    opened.keyboard.type("two test_stated")
    assert [row.split("\t")[1] for row in visible_rows(opened)] == ["two/card0"]
    assert opened.locator("#shown").inner_text() == "1 of 7 shown"
    opened.locator("#find").fill("")
    opened.get_by_label("as-stated", exact=True).uncheck()
    assert len(visible_rows(opened)) == 3


def test_a_cell_leads_to_its_evidence_even_where_that_is_folded(opened: Any) -> None:
    opened.locator(".matrix tbody tr").first.locator("a").nth(1).click()
    reached = opened.evaluate("location.hash.slice(1)")
    finding = opened.locator(f"#{reached}[open]")
    finding.wait_for()
    assert "two/card0" in finding.inner_text()
    opened.wait_for_function("id => document.activeElement.parentElement.id === id", arg=reached)


def test_it_is_all_there_without_scripts_and_on_paper(browser: Any, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert len(visible_rows(page)) == 7
    page.emulate_media(media="print")
    assert not page.locator(".filters").is_visible()
    assert page.locator(".finding").first.is_visible()
    context.close()


def test_the_keyboard_reaches_what_diverged_at_once(opened: Any) -> None:
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.textContent") == "Skip to what diverged"
    opened.keyboard.press("Enter")
    assert opened.evaluate("document.activeElement.id") == "diverged"


def test_a_narrow_screen_does_not_scroll_sideways(browser: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 380, "height": 800})
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    page.close()


def test_a_statement_is_printed_as_a_pdf_that_says_the_same(browser: Any, tmp_path: Path) -> None:
    import datetime

    from harness.report.statement.facts import facts_of
    from harness.report.statement.manifest import departures
    from harness.report.statement.rules import Basis, decide
    from harness.report.statement.writing import PDF, Statement, write_statement

    records = a_run_of_all_sorts().end()
    waivers = tmp_path / "waivers.yaml"
    waivers.write_text("version: 1\n")
    today = datetime.date(2026, 12, 1)
    judgement = judge(records)
    decision = decide(Basis(judgement), [], today)
    said = Statement("A card", today, decision, facts_of(records), judgement, [], None)
    html = write_statement(said, tmp_path / "statement", {"waivers.yaml": waivers})
    assert departures(html.parent) == []
    assert (html.parent / PDF).read_bytes()[:5] == b"%PDF-"
    with clean_page(browser, html.as_uri()) as page:
        assert page.locator(".decision").inner_text() == "NO-GO"
        assert page.locator("tr", has_text="as-stated").first.is_visible()
        assert objections(page) == []
