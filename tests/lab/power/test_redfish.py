"""Power by Redfish: a controller that does what it says, and ones that are slow, stuck, busy, or idle."""

import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.bmc import Bmc, Machine

from harness.errors import DeadlineError, InfrastructureError, UnreachableError
from harness.lab.power.access import PowerAccess, RedfishAccess
from harness.lab.power.acts import carry_out, state_of
from harness.lab.power.redfish import Redfish
from harness.registry.tls import LabAuthority

SYSTEM = "/redfish/v1/Systems/1"


def power(access: RedfishAccess, deadline: float = 30) -> PowerAccess:
    return PowerAccess("worker-1", access, deadline)


@pytest.mark.parametrize("session", [False, True])
def test_power_goes_off_and_on_and_is_seen_so(bmc: Any, session: bool) -> None:
    by = power(replace(bmc.access, session=session))
    carry_out(by, "off")
    assert not bmc.machine.powered and state_of(by) == "off"
    carry_out(by, "on")
    assert bmc.machine.powered and state_of(by) == "on"
    carry_out(by, "cycle")
    assert bmc.machine.powered and bmc.machine.cuts == 2


def test_a_session_is_ended(bmc: Any) -> None:
    assert state_of(power(replace(bmc.access, session=True))) == "on"
    assert [method for method, path in bmc.requests if "Sessions" in path] == ["POST", "DELETE"]


@pytest.mark.parametrize("system", ["1", SYSTEM])
def test_the_computer_may_be_named(bmc: Any, system: str) -> None:
    assert state_of(power(replace(bmc.access, system=system))) == "on"
    assert {path for _, path in bmc.requests} == {SYSTEM}


@pytest.mark.parametrize("tail", ["", "/", "/redfish", "/redfish/v1", "/redfish/v1/"])
def test_the_root_of_the_service_may_be_named(bmc: Any, tail: str) -> None:
    assert state_of(power(replace(bmc.access, url=bmc.access.url + tail))) == "on"
    assert ("GET", SYSTEM) in bmc.requests


@pytest.mark.parametrize("rewrites", [False, True], ids=["links as they are", "links rewritten"])
@pytest.mark.parametrize("system", ["", "1", SYSTEM])
@pytest.mark.parametrize("tail", ["", "/redfish/v1/"])
def test_a_service_behind_a_reverse_proxy_is_asked_below_its_prefix(
    system: str, tail: str, rewrites: bool
) -> None:
    machine = Machine()
    with Bmc(machine, prefix="/bmc/7", rewrites=rewrites) as bmc:
        url = f"{bmc.access.url}/bmc/7{tail}"
        carry_out(power(replace(bmc.access, url=url, system=system, session=True)), "off")
    assert not machine.powered
    assert all(path.startswith("/bmc/7/redfish/v1/") for _, path in bmc.requests), bmc.requests
    methods = [method for method, path in bmc.requests if "Sessions" in path]
    assert methods == ["POST", "DELETE"], "the session is ended where it was begun"


def test_a_prefix_that_is_wrong_is_told_with_the_place_that_was_asked() -> None:
    with Bmc(Machine(), prefix="/bmc/7") as bmc:
        wrong = replace(bmc.access, url=f"{bmc.access.url}/bmc/8")
        with pytest.raises(
            InfrastructureError, match="answers GET /bmc/8/redfish/v1/Systems with 404"
        ) as told:
            state_of(power(wrong))
    assert "`url`" in told.value.hint


def test_one_that_is_slow_is_waited_for(bmc: Any) -> None:
    bmc.machine.conditions.add("bmc-slow")  # 202, then PoweringOff three times
    carry_out(power(bmc.access), "off")
    assert bmc.requests.count(("GET", SYSTEM)) >= 5


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("bmc-ignores", r"took the request, and what it said last is 'On'"),
        ("bmc-stuck", r"took the request, and what it said last is 'PoweringOff'"),
        ("bmc-busy", r"took no request; the last .* with 503: The service is temporarily unavailable"),
    ],
)
def test_one_that_does_not_switch(bmc: Any, condition: str, said: str) -> None:
    bmc.machine.conditions.add(condition)
    with pytest.raises(DeadlineError, match=said):
        carry_out(power(bmc.access, 0.5), "off")
    assert bmc.machine.powered


def test_one_that_is_busy_for_a_moment(bmc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bmc.machine.conditions.add("bmc-busy")
    asked: list[str] = []
    ask: Callable[..., Any] = Redfish.state

    def state(self: Redfish, seconds: float) -> Any:
        asked.append("state")
        if len(asked) == 3:
            bmc.machine.conditions.clear()
        return ask(self, seconds)

    monkeypatch.setattr(Redfish, "state", state)
    carry_out(power(bmc.access), "off")
    assert not bmc.machine.powered


@pytest.mark.parametrize("session", [False, True])
def test_a_login_that_is_refused_is_tried_once(bmc: Any, session: bool) -> None:
    wrong = replace(bmc.access, password="canary-wrong", session=session)
    with pytest.raises(InfrastructureError, match=r"with 401: .*It was tried once, as 'admin'") as failure:
        carry_out(power(wrong, 3600), "off")
    assert len(bmc.requests) == 1
    assert "canary" not in "".join(traceback.format_exception(failure.value))


def test_an_error_says_what_the_service_says(bmc: Any) -> None:
    with (
        closing(Redfish("worker-1", replace(bmc.access, system="2"))) as switch,
        pytest.raises(
            InfrastructureError, match=r"404: The resource at the URI '/redfish/v1/Systems/2' was not"
        ),
    ):
        switch.state(10)


def test_nobody_there(bmc: Any) -> None:
    with pytest.raises(UnreachableError, match="does not answer"):
        state_of(power(replace(bmc.access, url="http://127.0.0.1:1")))


def test_certificates_are_checked_unless_it_is_said_not_to(tmp_path: Path) -> None:
    authority = LabAuthority(tmp_path / "tls")
    with Bmc(Machine(), authority) as served:
        with pytest.raises(InfrastructureError, match=r"certificate of .* is not trusted") as failure:
            state_of(power(served.access))
        assert "ca_file" in failure.value.hint and served.requests == []
        assert state_of(power(replace(served.access, ca_file=str(authority.file)))) == "on"
        assert state_of(power(replace(served.access, insecure=True))) == "on"


@contextmanager
def endless(part: bytes, pause: float) -> Iterator[str]:
    """Give the URL of a service whose answers go on: ``part`` each ``pause`` seconds, 20 s long at most."""
    left = threading.Event()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(1 << 40))
            self.end_headers()
            with suppress(OSError):
                for _ in range(400):
                    self.wfile.write(part)
                    if left.wait(pause):
                        return

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            left.set()
            server.shutdown()
            serving.join()


@pytest.mark.parametrize(
    ("part", "pause", "error", "said"),
    [
        (b"{" * (1 << 18), 0.0, InfrastructureError, "more than 1 MiB"),
        (b" ", 0.05, UnreachableError, "does not end its answer in time"),
    ],
)
def test_an_answer_that_does_not_end_is_given_up(
    part: bytes, pause: float, error: type[InfrastructureError], said: str
) -> None:
    with (
        endless(part, pause) as url,
        closing(Redfish("worker-1", RedfishAccess(url, "admin", "secret"))) as switch,
        pytest.raises(error, match=said),
    ):
        switch.state(30.0 if not pause else 0.5)


def test_a_proxy_of_the_environment_is_not_told_the_password(
    bmc: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert state_of(power(bmc.access)) == "on"
