"""Requests held at exact points, before a real registry and before one that a test plays."""

import errno
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.raw_push import RawRegistry
from support.raw_upstream import RawUpstream, read_exactly, read_head

from harness.errors import ConfigurationError
from harness.faults.proxy.gate import Gate, Request
from harness.faults.proxy.server import FaultProxy
from harness.faults.registry_points import FaultPoint
from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.images import ImageRecipe, make_image, sized_layers

PATIENCE = 30.0
IMAGE = make_image(ImageRecipe(sized_layers(2, 1 << 20)))
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
AGAIN = b"GET /v2/a/b/manifests/v1 HTTP/1.1\r\nHost: x\r\n\r\n"


def at(text: str) -> FaultPoint:
    return FaultPoint.parse(text)


@pytest.fixture
def lab(tmp_path: Path, program: Path) -> Iterator[RegistryLab]:
    """A registry with TLS and a token service."""
    with RegistryLab(tmp_path / "lab", program=program) as made:
        yield made


@pytest.fixture
def proxy(lab: RegistryLab) -> Iterator[FaultProxy]:
    """TLS to TLS before that registry."""
    with FaultProxy(lab.endpoint, tls=lab.authority.issue("proxy")) as made:
        yield made


@pytest.fixture
def pusher(lab: RegistryLab, proxy: FaultProxy) -> RawRegistry:
    """Pushes through the proxy."""
    token = lab.tokens.mint(ACCOUNT, ["repository:a/b:pull,push", "repository:c/d:pull,push"])
    return RawRegistry(proxy.endpoint.url, lab.authority.file, token)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def pushing(threads: ThreadPoolExecutor, pusher: RawRegistry, repository: str = "a/b") -> Future[Any]:
    return threads.submit(pusher.push, repository, "v1", IMAGE)


def manifest(lab: RegistryLab, repository: str = "a/b") -> int:
    """Return what the registry itself says of the image, without the proxy."""
    token = lab.tokens.mint(ACCOUNT, [f"repository:{repository}:pull"])
    return RawRegistry(lab.endpoint.url, lab.authority.file, token).head(f"/v2/{repository}/manifests/v1")


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_a_push_passes_and_every_step_of_it_is_in_the_evidence(
    lab: RegistryLab, proxy: FaultProxy, pusher: RawRegistry, address: str
) -> None:
    url = f"https://{address}:{proxy.port}"
    RawRegistry(url, lab.authority.file, pusher.headers["Authorization"].split()[1]).push("a/b", "v1", IMAGE)
    assert manifest(lab) == 200
    assert proxy.steps_seen() == {"blob-post": 3, "blob-put": 3, "manifest-put": 1}
    exchanges = proxy.exchanges()
    assert [exchange.number for exchange in exchanges] == list(range(1, 8))
    assert {exchange.repository for exchange in exchanges} == {"a/b"}
    assert [exchange.status for exchange in exchanges] == [202, 201] * 3 + [201]
    assert sorted(exchange.received for exchange in exchanges if exchange.step == "blob-put") == sorted(
        blob.size for blob in IMAGE.blobs()
    )
    assert proxy.exchanges(since=proxy.last) == ()


@pytest.mark.parametrize(
    ("point", "there"),
    [("before:manifest-put", 404), ("after:manifest-put", 200), ("after:blob-put#last", 404)],
)
def test_what_is_held_waits_and_then_goes_on(
    lab: RegistryLab,
    proxy: FaultProxy,
    pusher: RawRegistry,
    threads: ThreadPoolExecutor,
    point: str,
    there: int,
) -> None:
    gate = proxy.arm(at(point).resolved(last=3))
    push = pushing(threads, pusher)
    held = gate.wait(PATIENCE, push)
    assert held is not None
    assert (held.step, held.repository) == (at(point).step, "a/b")
    assert str(held).startswith("PUT /v2/a/b/") and str(held).endswith(f"(connection {held.connection})")
    assert manifest(lab) == there
    assert not push.done()
    gate.release()
    push.result(PATIENCE)
    assert manifest(lab) == 200


@pytest.mark.parametrize("how", ["TERM", "KILL"])
def test_a_request_held_while_the_registry_is_restarted_reaches_the_new_one(
    lab: RegistryLab, proxy: FaultProxy, pusher: RawRegistry, threads: ThreadPoolExecutor, how: Any
) -> None:
    gate = proxy.arm(at("before:manifest-put"))
    push = pushing(threads, pusher)
    held = gate.wait(PATIENCE, push)
    # Another certificate, too: the proxy must take what is there when it connects.
    lab.authority.issue("registry")
    assert lab.registry.restart(how, held=str(held)).held == f"PUT /v2/a/b/manifests/v1 ({str(held)[26:]}"
    gate.release()
    push.result(PATIENCE)
    assert manifest(lab) == 200


def test_an_answer_held_while_the_registry_is_restarted_reaches_the_client(
    lab: RegistryLab, proxy: FaultProxy, pusher: RawRegistry, threads: ThreadPoolExecutor
) -> None:
    gate = proxy.arm(at("after:manifest-put"))
    push = pushing(threads, pusher)
    assert gate.wait(PATIENCE, push) is not None
    lab.registry.restart("KILL")
    gate.release()
    push.result(PATIENCE)
    assert manifest(lab) == 200


def test_a_body_whose_registry_is_killed_in_its_middle_ends_as_it_would_without_the_proxy(
    lab: RegistryLab, proxy: FaultProxy, pusher: RawRegistry, threads: ThreadPoolExecutor
) -> None:
    gate = proxy.arm(at("mid@524288:blob-put"))
    push = pushing(threads, pusher)
    held = gate.wait(PATIENCE, push)
    assert held is not None and held.passed == 524288
    lab.registry.restart("KILL")
    gate.release()
    assert isinstance(push.exception(PATIENCE), OSError)
    assert manifest(lab) == 404


def test_an_answer_that_is_cut_leaves_the_image_in_the_registry(
    lab: RegistryLab, proxy: FaultProxy, pusher: RawRegistry, threads: ThreadPoolExecutor
) -> None:
    gate = proxy.arm(at("cut:manifest-put"))
    push = pushing(threads, pusher)
    assert gate.wait(PATIENCE, push) is not None
    gate.release()
    assert isinstance(push.exception(PATIENCE), ConnectionError)
    assert manifest(lab) == 200


@pytest.mark.parametrize("step", ["blob-post", "blob-put", "manifest-put"])
def test_a_reset_is_one_for_the_client(
    lab: RegistryLab, pusher: RawRegistry, threads: ThreadPoolExecutor, step: str
) -> None:
    # Without TLS: Python's own tells a reset from an end only there.
    with FaultProxy(lab.endpoint) as plain:
        pusher = RawRegistry(plain.endpoint.url, token=pusher.headers["Authorization"].split()[1])
        gate = plain.arm(at(f"after:{step}"))
        push = pushing(threads, pusher)
        assert gate.wait(PATIENCE, push) is not None
        gate.reset()
        error = push.exception(PATIENCE)
        assert isinstance(error, ConnectionResetError) and error.errno == errno.ECONNRESET


def test_the_client_gets_an_answer_of_ours_and_the_registry_never_the_request(
    lab: RegistryLab, proxy: FaultProxy, pusher: RawRegistry
) -> None:
    gate = proxy.arm(at("before:manifest-put"))
    gate.answer(503, b"not now", {"Retry-After": "7"})
    pusher.push_blob("a/b", IMAGE.config)
    status, headers, body = pusher.ask("PUT", "/v2/a/b/manifests/v1", b"{}")
    assert (status, headers["retry-after"], body) == (503, "7", b"not now")
    assert gate.reached
    assert [entry.message for entry in lab.registry.logs() if "manifests" in entry.message] == []


def test_two_gates_hold_two_requests_and_each_catches_one(
    lab: RegistryLab, proxy: FaultProxy, pusher: RawRegistry, threads: ThreadPoolExecutor
) -> None:
    first = proxy.arm(at("before:manifest-put"), repository="a/b")
    second = proxy.arm(at("after:manifest-put"), repository="c/d")
    one, two = pushing(threads, pusher, "a/b"), pushing(threads, pusher, "c/d")
    assert first.wait(PATIENCE, one) is not None and second.wait(PATIENCE, two) is not None
    assert (manifest(lab, "a/b"), manifest(lab, "c/d")) == (404, 200)
    second.release()
    two.result(PATIENCE)
    assert not one.done()
    first.release()
    one.result(PATIENCE)
    pusher.push("a/b", "v1", IMAGE)
    assert len([exchange for exchange in proxy.exchanges() if "held" in exchange.done]) == 2


def test_a_point_that_is_not_reached_is_told_when_the_push_ends(
    proxy: FaultProxy, pusher: RawRegistry, threads: ThreadPoolExecutor
) -> None:
    never = [proxy.arm(at("before:blob-patch")), proxy.arm(at("mid@5000000:blob-put"))]
    push = pushing(threads, pusher)
    assert [gate.wait(PATIENCE, push) for gate in never] == [None, None]
    assert push.done() and not any(gate.reached for gate in never)
    assert never[0].wait(0.01) is None


def test_new_connections_are_shown_the_new_certificate(lab: RegistryLab, proxy: FaultProxy) -> None:
    def shown() -> bytes | None:
        context = ssl.create_default_context(cafile=lab.authority.file)
        context.set_alpn_protocols(["h2", "http/1.1"])
        with (
            socket.create_connection(("127.0.0.1", proxy.port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as wrapped,
        ):
            assert wrapped.selected_alpn_protocol() == "http/1.1"
            return wrapped.getpeercert(binary_form=True)

    before = shown()
    assert shown() == before
    proxy.exchange_certificate(lab.authority.issue("proxy"))
    assert shown() != before


def test_an_upstream_with_a_certificate_of_somebody_else_is_not_spoken_to(
    lab: RegistryLab, proxy: FaultProxy, pusher: RawRegistry
) -> None:
    stranger = lab.authority.issue("stranger", names=("elsewhere.example",), addresses=())
    with FaultProxy(lab.endpoint, tls=stranger) as other:
        proxy.retarget(other.endpoint)
        with pytest.raises(ConnectionError):
            pusher.ask("GET", "/v2/")
        assert other.exchanges() == ()
    assert "CERTIFICATE_VERIFY_FAILED" in proxy.exchanges()[-1].done


# -- before an upstream that the test plays -------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("offset", [1, 70_000, 300_000])
def test_exactly_so_many_bytes_have_reached_the_upstream(offset: int, chunked: bool) -> None:
    size = 300_000
    content = bytes(index % 251 for index in range(size))
    body, framing = content, b"Content-Length: %d" % size
    if chunked:
        pieces = [content[index : index + 32768] for index in range(0, size, 32768)]
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        framing = b"Transfer-Encoding: chunked"
    before_offset = (offset - 1) // 32768 * len(b"8000\r\n\r\n") + len(b"8000\r\n") if chunked else 0
    if offset == size and chunked:  # the last chunk is smaller, and so are the letters of its size
        before_offset += len(b"%x" % (size % 32768)) - 4
    expected = offset + before_offset
    received = bytearray()
    arrived, more = threading.Event(), threading.Event()

    def script(connection: socket.socket) -> None:
        read_head(connection)
        received.extend(read_exactly(connection, expected))
        arrived.set()
        assert more.wait(PATIENCE)
        received.extend(read_exactly(connection, len(body) - expected))
        connection.sendall(OK)

    with RawUpstream(script) as upstream, FaultProxy(upstream.endpoint) as proxy:
        gate = proxy.arm(FaultPoint("mid", "blob-patch", 1, offset))
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            client.settimeout(PATIENCE)
            client.sendall(b"PATCH /v2/a/b/blobs/uploads/1 HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n")
            client.sendall(body)
            held = gate.wait(PATIENCE)
            assert held is not None and held.passed == offset
            assert arrived.wait(PATIENCE)
            # Nothing more follows until it is let go.
            assert bytes(received) == body[:expected]
            gate.release()
            more.set()
            assert read_exactly(client, len(OK)) == OK
    assert bytes(received) == body


def answer_all(connection: socket.socket) -> None:
    while read_head(connection):
        connection.sendall(OK)


def get(proxy: FaultProxy, target: str = "/v2/a/b/manifests/v1") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", proxy.port))
    client.settimeout(PATIENCE)
    client.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return client


@pytest.fixture
def plain() -> Iterator[FaultProxy]:
    with RawUpstream(answer_all) as upstream, FaultProxy(upstream.endpoint) as made:
        yield made


@pytest.fixture
def restarted() -> Iterator[tuple[FaultProxy, Callable[[], None]]]:
    """A proxy, and what ends every connection that its upstream has, as a restart does."""
    there: list[socket.socket] = []

    def script(connection: socket.socket) -> None:
        there.append(connection)
        answer_all(connection)

    def restart() -> None:
        while there:
            there.pop().shutdown(socket.SHUT_RDWR)

    with RawUpstream(script) as upstream, FaultProxy(upstream.endpoint) as proxy:
        yield proxy, restart


def test_a_kept_connection_whose_request_was_held_over_a_restart_breaks_as_without_the_proxy(
    restarted: tuple[FaultProxy, Callable[[], None]],
) -> None:
    proxy, restart = restarted
    with get(proxy) as client:
        assert read_exactly(client, len(OK)) == OK
        gate = proxy.arm(at("before:manifest-get"))
        client.sendall(AGAIN)
        assert gate.wait(PATIENCE) is not None
        restart()
        gate.release()
        assert client.recv(1) == b""
    assert "the upstream closed" in proxy.exchanges()[-1].done
    with get(proxy) as fresh:
        assert read_exactly(fresh, len(OK)) == OK


def test_the_first_request_of_a_connection_held_over_a_restart_reaches_the_new_upstream(
    restarted: tuple[FaultProxy, Callable[[], None]],
) -> None:
    proxy, restart = restarted
    gate = proxy.arm(at("before:manifest-get"))
    with get(proxy) as client:
        assert gate.wait(PATIENCE) is not None
        restart()
        gate.release()
        assert read_exactly(client, len(OK)) == OK


def test_an_answer_held_over_a_restart_says_nothing_of_it_and_the_next_request_breaks(
    restarted: tuple[FaultProxy, Callable[[], None]],
) -> None:
    proxy, restart = restarted
    gate = proxy.arm(at("after:manifest-get"))
    with get(proxy) as client:
        assert gate.wait(PATIENCE) is not None
        restart()
        gate.release()
        assert read_exactly(client, len(OK)) == OK
        client.settimeout(0.1)
        with pytest.raises(TimeoutError):  # open, whatever became of the upstream's
            client.recv(1)
        client.settimeout(PATIENCE)
        client.sendall(AGAIN)
        assert client.recv(1) == b""
    assert [exchange.status for exchange in proxy.exchanges()] == [200, 0]


def test_the_nth_since_it_was_armed_is_caught_and_no_other(plain: FaultProxy) -> None:
    with get(plain) as early:
        assert read_exactly(early, len(OK)) == OK
    gate = plain.arm(at("before:manifest-get#2"), matching=lambda request: request.target.endswith("v1"))
    for target in ("/v2/a/b/manifests/v1", "/v2/a/b/manifests/v2", "/v2/a/b/tags/list"):
        with get(plain, target) as client:
            assert read_exactly(client, len(OK)) == OK
    with get(plain) as client:
        held = gate.wait(PATIENCE)
        assert held is not None and held.nth == 2
        with get(plain) as other:
            assert read_exactly(other, len(OK)) == OK
        gate.release()
        assert read_exactly(client, len(OK)) == OK


def test_a_delay_ends_by_itself(plain: FaultProxy) -> None:
    gate = plain.arm(at("before:manifest-get"))
    with get(plain) as client:
        assert gate.wait(PATIENCE) is not None
        began = time.monotonic()
        gate.delay(0.2)
        assert read_exactly(client, len(OK)) == OK
        assert time.monotonic() - began >= 0.2


def test_the_first_decision_counts_and_may_come_before_the_request(plain: FaultProxy) -> None:
    gate = plain.arm(at("before:manifest-get"))
    gate.cut()
    gate.release()
    with get(plain) as client:
        assert client.recv(1) == b""
    assert gate.reached
    with get(plain) as client:
        assert read_exactly(client, len(OK)) == OK


@pytest.mark.parametrize("end", ["disarm", "close"])
def test_disarming_and_closing_let_go_of_what_is_held(plain: FaultProxy, end: str) -> None:
    gate = plain.arm(at("before:manifest-get"))
    with get(plain) as client:
        assert gate.wait(PATIENCE) is not None
        if end == "disarm":
            gate.disarm()
            assert read_exactly(client, len(OK)) == OK
        else:
            plain.close()
            assert client.recv(1) == b""


def test_closing_ends_a_wait_for_what_never_came_and_a_delay(plain: FaultProxy) -> None:
    waited = plain.arm(at("before:blob-put"))
    delayed = plain.arm(at("before:manifest-get"))
    delayed.delay(1000)
    with ThreadPoolExecutor(1) as pool, get(plain):
        waiting = pool.submit(waited.wait, PATIENCE)
        assert delayed.wait(PATIENCE) is not None
        plain.close()
        assert waiting.result(PATIENCE) is None


def test_an_error_in_a_filter_is_told_to_who_waits_and_not_to_the_client(plain: FaultProxy) -> None:
    def broken(request: Request) -> bool:
        raise ZeroDivisionError(request.target)

    gate = plain.arm(at("before:manifest-get"), matching=broken)
    with get(plain) as client:
        assert read_exactly(client, len(OK)) == OK
    with pytest.raises(ZeroDivisionError):
        gate.wait(PATIENCE)


def test_the_last_of_a_step_cannot_be_armed_before_it_is_known(plain: FaultProxy) -> None:
    with pytest.raises(ConfigurationError, match="which request is the last"):
        plain.arm(at("before:blob-put#last"))


def test_a_gate_without_a_proxy_is_not_reached() -> None:
    gate = Gate(at("before:ping"))
    assert gate.wait(0.0) is None and gate.held is None
