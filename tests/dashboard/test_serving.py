"""The page over HTTP: for this machine alone, or for who has the token; live in a real browser."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from support.browser import chromium, clean_page, objections
from support.told_runs import LIE, Run

from harness.dashboard.serving import dashboard, is_loopback
from harness.dashboard.state import State
from harness.health.states import Event
from harness.health.store import Cause, HealthStore, Place
from harness.judgement.records import ScenarioEnded, ScenarioStarted, Subject, to_json
from harness.record.runs import make_run_dir
from harness.store.index import Index

TOKEN = "0123456789abcdef0123"
EVIL = "<img src=x onerror=alert(1)>"


@contextmanager
def served(state: State, token: str = "") -> Iterator[str]:
    """Serve the page; give its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = dashboard(state, token=token, seconds=0.05)
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
        state.close()


def reports_with_a_past(folder: Path) -> str:
    """Fill an index; return its URL."""
    run = Run()
    run.flash("plan.py::test_wrong[one/card0]", "one/card0")
    run.flash("plan.py::test_stated[two/card0]", "two/card0", **LIE)
    run.blocked("plan.py::test_push", "no registry")
    past = folder / "past"
    past.mkdir(parents=True)
    (past / "history.jsonl").write_text("".join(json.dumps(to_json(r)) + "\n" for r in run.end()))
    url = f"sqlite:///{folder}/index.sqlite"
    with Index(url) as index:
        index.take(past)
    return url


def test_the_state_is_what_the_index_and_running_histories_say(tmp_path: Path) -> None:
    with served(State(tmp_path, reports_with_a_past(tmp_path))) as address:
        said = httpx.get(f"{address}state.json").json()
    assert {device["device"]: device["course"] for device in said["devices"]} == {
        "one/card0": ["not-as-stated"],
        "two/card0": ["as-stated"],
    }
    assert [(found["device"], found["kind"], found["as_stated"]) for found in said["divergences"]] == [
        ("two/card0", "FALSE_SUCCESS", True),
        ("one/card0", "FALSE_SUCCESS", False),
    ]
    assert (said["runs"], said["trouble"], said["days"]) == ([], "", [])


def test_the_health_of_a_device_is_as_its_last_scenario_left_it(tmp_path: Path) -> None:
    run = Run()
    ends = {
        "one": ("INFRA", "the cable is cut"),
        "two": ("BLOCKED", "two/card0 is quarantined: x"),
        "three": ("", ""),
    }
    for device, (state, reason) in ends.items():
        run.flash(f"plan.py::test_a[{device}]", f"{device}/card0", lies=False)
        if state:
            run._began += 1
            card = Subject("card", f"{device}/card0", device)
            run._add(0.0, ScenarioStarted(scenario=f"plan.py::test_b[{device}]", subject=card))
            run._add(0.1, ScenarioEnded(scenario=f"plan.py::test_b[{device}]", state=state, reason=reason))
    past = tmp_path / "past"
    past.mkdir()
    (past / "history.jsonl").write_text("".join(json.dumps(to_json(r)) + "\n" for r in run.end()))
    url = f"sqlite:///{tmp_path}/index.sqlite"
    with Index(url) as index:
        index.take(past)
    with served(State(tmp_path, url)) as address:
        said = httpx.get(f"{address}state.json").json()
    assert {device["device"]: (device["health"], device["reason"]) for device in said["devices"]} == {
        "one/card0": ("suspect", "the cable is cut"),
        "two/card0": ("quarantined", "two/card0 is quarantined: x"),
        "three/card0": ("good", ""),
    }


def test_the_health_that_is_kept_of_a_device_is_what_counts(tmp_path: Path) -> None:
    url = reports_with_a_past(tmp_path)
    with HealthStore(url) as store:
        store.note(
            Place("k1", "one/card0", "emulated"), Event.MAINTENANCE, Cause("ada", "new cable\nand more")
        )
        store.note(Place("k2", "two/card0", "another lab"), Event.FAILURE, Cause("ada", "not this one"))
    with served(State(tmp_path, url)) as address:
        said = httpx.get(f"{address}state.json").json()
    assert {device["device"]: (device["health"], device["reason"]) for device in said["devices"]} == {
        "one/card0": ("maintenance", "new cable"),
        "two/card0": ("good", ""),
    }


def test_an_index_that_cannot_be_had_is_told_and_running_runs_are_shown(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").write_bytes(b"not a database" * 100)
    held = make_run_dir(tmp_path / "run")
    (tmp_path / "run/history.jsonl").touch()
    with served(State(tmp_path, f"sqlite:///{tmp_path}/index.sqlite")) as address:
        said = httpx.get(f"{address}state.json").json()
    assert "not a database" in said["trouble"]
    assert [run["run"] for run in said["runs"]] == ["run"]
    os.close(held)


@pytest.mark.parametrize("path", ["", "state.json", "events"])
def test_another_name_that_leads_here_is_sent_away(tmp_path: Path, path: str) -> None:
    with served(State(tmp_path, None)) as address:
        answer = httpx.get(address + path, headers={"Host": "evil.example"})
    assert answer.status_code == 403
    assert "own names" in answer.text


@pytest.mark.parametrize("path", ["", "state.json", "events"])
@pytest.mark.parametrize("given", ["", "?token=", "?token=wrong", f"?token={TOKEN}x"])
def test_who_has_no_token_gets_nothing(tmp_path: Path, path: str, given: str) -> None:
    with served(State(tmp_path, None), TOKEN) as address:
        answer = httpx.get(f"{address}{path}{given}")
    assert answer.status_code == 403
    assert TOKEN not in answer.text
    assert "set-cookie" not in answer.headers


def test_the_token_of_the_link_is_a_cookie_from_then_on(tmp_path: Path) -> None:
    with served(State(tmp_path, None), TOKEN) as address, httpx.Client() as client:
        first = client.get(f"{address}?token={TOKEN}")
        assert first.status_code == 200
        cookie = first.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get(f"{address}state.json").status_code == 200


def test_nothing_can_be_changed_through_it(tmp_path: Path) -> None:
    with served(State(tmp_path, None)) as address:
        assert {httpx.request(m, address).status_code for m in ("POST", "PUT", "DELETE", "PATCH")} == {405}


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_which_addresses_only_this_machine_reaches(address: str, own: bool) -> None:
    assert is_loopback(address) is own


# -- in a browser -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


def test_what_begins_appears_without_a_reload(tmp_path: Path, browser: Any) -> None:
    url = reports_with_a_past(tmp_path)
    with served(State(tmp_path, url)) as address, clean_page(browser, address) as page:
        page.get_by_text("nothing runs").wait_for()
        assert page.locator("#devices tr").count() == 2
        held = make_run_dir(tmp_path / "run")
        run = Run()
        run.flash("plan.py::test_now", "three/card0")
        lines = [json.dumps(to_json(record)) + "\n" for record in run.end()]
        (tmp_path / "run/history.jsonl").write_text("".join(lines[:3]))
        page.locator("#runs").get_by_text("plan.py::test_now").wait_for()
        assert "flash" in page.locator("#runs").inner_text()
        assert page.locator("#devices tr", has_text="three/card0").inner_text().split("\t")[2] == "run"
        os.close(held)
        page.get_by_text("nothing runs").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_has_no_objection(tmp_path: Path, browser: Any, scheme: str) -> None:
    url = reports_with_a_past(tmp_path)
    with served(State(tmp_path, url)) as address, clean_page(browser, address, color_scheme=scheme) as page:
        page.locator("#divergences td").first.wait_for()
        assert objections(page) == []
        assert page.locator("#link").inner_text() == "live"
        assert len(page.screenshot()) > 5_000


def test_text_from_outside_stays_text(tmp_path: Path, browser: Any) -> None:
    held = make_run_dir(tmp_path / "run")
    run = Run(lab=EVIL)
    run.flash(EVIL, "three/card0")
    lines = [json.dumps(to_json(record)) + "\n" for record in run.end()]
    (tmp_path / "run/history.jsonl").write_text("".join(lines[:3]))
    with served(State(tmp_path, None)) as address, clean_page(browser, address) as page:
        page.locator("#runs code").get_by_text(EVIL).wait_for()
        assert page.locator("img").count() == 0
    os.close(held)
