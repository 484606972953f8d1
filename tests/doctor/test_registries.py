"""A registry as the doctor finds it: who answers, is the login taken, by what."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.doctor.registries import _permitted, registry
from harness.health.checks import Check, Grade
from harness.hosts.protocol import CommandResult
from harness.inventory.load import load_inventory
from harness.inventory.registries import Registry
from harness.lab.leasing import leases_of
from harness.lab.running import RunningLab
from harness.registry.managers import Hands

OWNER = "Basic " + base64.b64encode(b"ada:secret").decode()
NO_LAB: Any = None


class Handler(BaseHTTPRequestHandler):
    """A registry that takes one password; below /other/ there is none."""

    status = 200

    def do_GET(self) -> None:
        status = self.status
        if status == 200 and self.headers.get("Authorization") != OWNER:
            status = 401
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="lab"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def look(**entry: Any) -> dict[str, Check]:
    part = registry(NO_LAB, Registry.model_validate({"name": "r", **entry}))
    return {check.name: check for check in part.checks}


@pytest.mark.parametrize(
    ("password", "grade", "words"), [("secret", Grade.OK, "ada"), ("wrong", Grade.BAD, "ada is refused")]
)
def test_a_login_is_taken_or_refused(
    url: str, monkeypatch: pytest.MonkeyPatch, password: str, grade: Grade, words: str
) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", password)
    found = look(url=url, user="ada", credentials={"env": "REGISTRY_PASSWORD"})
    assert found["api"].grade is Grade.OK
    assert (found["login"].grade, words in found["login"].finding) == (grade, True), found
    assert password not in str(found).replace("REGISTRY_PASSWORD", "")


def test_one_that_asks_for_a_login_that_nobody_has(url: str) -> None:
    found = look(url=url)["login"]
    assert found.grade is Grade.BAD
    assert "`user` and `credentials`" in found.hint


def test_a_password_that_is_not_to_be_had(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGISTRY_PASSWORD", raising=False)
    found = look(url=url, user="ada", credentials={"env": "REGISTRY_PASSWORD"})["credentials"]
    assert (found.grade, "export REGISTRY_PASSWORD" in found.hint) == (Grade.BAD, True)


def test_what_is_no_registry(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handler, "status", 404)
    found = look(url=url)["api"]
    assert (found.grade, "404" in found.finding) == (Grade.BAD, True)


def test_nobody_there() -> None:
    found = look(url="http://127.0.0.1:1")["reachable"]
    assert (found.grade, bool(found.hint)) == (Grade.BAD, True)


def test_a_certificate_that_is_not_trusted(url: str) -> None:
    found = look(url=url.replace("http:", "https:"))
    assert any(check.grade is Grade.BAD and check.hint for check in found.values())


def test_an_emulated_one_is_not_started() -> None:
    assert look(emulated={})["service"].grade is Grade.OK


HOSTED = """\
version: 1
default_lab: bench
labs:
  bench:
    hosts:
      one: {{local: true}}
    registries:
      r:
        url: 'http://127.0.0.1:1'
        host: one
        storage: {storage}
        service: {{systemd: no-such-unit-of-a-registry}}
"""


def test_its_store_and_its_service_are_looked_for_on_their_host(tmp_path: Path) -> None:
    for storage, grade in ((tmp_path, Grade.OK), (tmp_path / "none", Grade.BAD)):
        (tmp_path / "inventory.yaml").write_text(HOSTED.format(storage=storage))
        entry = load_inventory(tmp_path / "inventory.yaml").lab()
        with RunningLab(entry, leases=leases_of("x", said=f"sqlite:///{tmp_path}/l.sqlite")) as lab:
            found = {check.name: check for check in registry(lab, entry.registries["r"]).checks}
        assert (found["storage"].grade, str(storage) in found["storage"].finding) == (grade, True)
        assert (found["service"].grade, "does not run" in found["service"].finding) == (Grade.BAD, True)


class Account:
    """A host as far as it says who is logged in, and whether sudo asks for a password."""

    name = "one"

    def __init__(self, uid: int, sudo: int) -> None:
        self._codes = {"id": (0, f"{uid}\n"), "sudo": (sudo, "sudo: a password is required\n" * bool(sudo))}
        self.ran: list[Sequence[str]] = []

    def run(self, argv: Sequence[str], **_: Any) -> CommandResult:
        self.ran.append(argv)
        code, said = self._codes[argv[0]]
        return CommandResult(tuple(argv), code, said, "", 0.1)


@pytest.mark.parametrize(
    ("uid", "sudo", "prefix", "grade", "words"),
    [
        (0, 1, (), Grade.OK, "may be restarted"),
        (1000, 1, (), Grade.BAD, "not root's"),
        (1000, 1, ("sudo", "-n"), Grade.BAD, "a password is required"),
        (1000, 0, ("sudo", "-n"), Grade.OK, "by sudo"),
    ],
)
def test_whether_its_service_may_be_restarted_is_seen_without_doing_it(
    uid: int, sudo: int, prefix: tuple[str, ...], grade: Grade, words: str
) -> None:
    host: Any = Account(uid, sudo)
    found = _permitted(host, Hands(host, prefix), "it runs")
    assert (found.grade, words in found.finding) == (grade, True), found
    assert {tuple(argv) for argv in host.ran} <= {("id", "-u"), ("sudo", "-n", "true")}
