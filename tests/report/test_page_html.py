"""The page as a file: whole in itself, asks for nothing, and shows what it is given as text."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.told_runs import Run

from harness.errors import InfrastructureError
from harness.judgement.judge import judge
from harness.judgement.records import Record
from harness.report.page.contents import contents
from harness.report.page.writing import page, write_page

ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></style></script><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "\x1b]0;title\x07\u202eevil",
)


class Parsed(HTMLParser):
    """Elements, their attributes, and all text outside of styles and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] not in ("style", "script"):
            self.text += data

    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]


def page_of(records: list[Record]) -> Parsed:
    return Parsed(page(contents(judge(records), records, "reports/7")))


def run_with(word: str) -> list[Record]:
    run = Run(lab=word)
    run.flash(f"plan.py::test[{word}]", "one/card0", text=word)
    run.blocked(f"plan.py::{word}", word)
    return run.end()


def test_nothing_is_asked_for_from_anywhere() -> None:
    parsed = page_of(run_with("plain"))
    for tag, attributes in parsed.elements:
        for name in ("href", "src", "action", "data", "srcset", "poster"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:,")), f"<{tag} {name}={value}>"
    assert "@import" not in page(contents(judge([]), [], "x"))
    policy = next(a["content"] for t, a in parsed.elements if t == "meta" and a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_text_from_outside_stays_text() -> None:
    plain = page_of(run_with("plain"))
    for attack in ATTACKS:
        parsed = page_of(run_with(attack))
        assert parsed.tags() == plain.tags()
        assert not any(name.startswith("on") for _, attributes in parsed.elements for name in attributes)
        assert "\x1b" not in parsed.text
        assert "\u202e" not in parsed.text
    assert "{{ 7 * 7 }}" in page_of(run_with("{{ 7 * 7 }}")).text


@given(st.text(max_size=40))
def test_any_text_gives_the_same_page_with_other_words(word: str) -> None:
    assert page_of(run_with(f"a{word}")).tags() == page_of(run_with("plain")).tags()


def test_ids_are_given_once_and_every_link_leads_somewhere() -> None:
    run = Run()
    for device in ("one/card0", "two/card0"):
        run.flash(f"plan.py::test[{device}]", device)
    parsed = page_of(run.end())
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {a["href"] for t, a in parsed.elements if t == "a"}
    assert {str(link).removeprefix("#") for link in links} <= set(ids)


def test_it_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    records = run_with("plain")
    path = write_page(tmp_path, judge(records), records)
    assert path.read_text("utf-8").rstrip().endswith("</html>")
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]


def test_a_folder_that_is_gone_is_told_with_what_helps(tmp_path: Path) -> None:
    records = run_with("plain")
    with pytest.raises(InfrastructureError, match=r"report\.html cannot be written") as told:
        write_page(tmp_path / "gone", judge(records), records)
    assert "hil report html" in str(told.value)


def test_half_of_a_character_does_not_keep_the_page_from_being_written(tmp_path: Path) -> None:
    records = run_with("a\ud800b")
    assert "\\ud800" in write_page(tmp_path, judge(records), records).read_text("utf-8")
