"""A real browser for tests of pages; what it is asked to show must not complain or ask others."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.mounted import blocked


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the machine's Chromium without a window; BLOCKED where there is none."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        blocked("there is no chromium here; as root: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@contextmanager
def clean_page(browser: Any, address: str, **context: Any) -> Iterator[Any]:
    """Open ``address``; at the end, nothing was asked for outside of it, and nothing was complained of."""
    page = browser.new_page(**context)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda wanted: said.append(wanted.url) if not wanted.url.startswith(address) else None)
    page.goto(address)
    yield page
    page.close()
    assert said == []


def objections(page: Any) -> list[tuple[str, str]]:
    """Return what axe-core objects to, of any weight: rule and impact."""
    from axe_playwright_python.sync_playwright import Axe

    return [(found["id"], found["impact"]) for found in Axe().run(page).response["violations"]]
