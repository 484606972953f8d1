"""A proxy at which nothing is armed: both sides see what they would see without it, good or bad."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.raw_upstream import RawUpstream, break_off, read_all, read_exactly, read_head

from harness.faults.proxy.bodies import BrokenBody, Chunked
from harness.faults.proxy.heads import AnswerHead, NotHttp, RequestHead, end_of_head
from harness.faults.proxy.server import FaultProxy
from harness.registry.ports import free_port
from harness.registry.tls import LabAuthority
from harness.registry.wire import Endpoint

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
GET = b"GET /v2/ HTTP/1.1\r\nHost: registry.local:9001\r\n\r\n"


def dial(proxy: FaultProxy, address: str = "127.0.0.1") -> socket.socket:
    connection = socket.create_connection((address, proxy.port))
    connection.settimeout(30)
    return connection


def answering(answer: bytes) -> Callable[[socket.socket], None]:
    """Every request without a body is answered so, until the client ends."""

    def script(connection: socket.socket) -> None:
        while read_head(connection):
            connection.sendall(answer)

    return script


def ask(upstream: RawUpstream, request: bytes) -> bytes:
    """Return everything that a client sees that sends ``request`` and nothing more."""
    with FaultProxy(upstream.endpoint) as proxy, dial(proxy) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        return read_all(client)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_it_listens_at_both_addresses_at_one_port(address: str) -> None:
    with RawUpstream(answering(OK)) as upstream, FaultProxy(upstream.endpoint) as proxy:
        with dial(proxy, address) as client:
            client.sendall(GET)
            assert read_exactly(client, len(OK)) == OK
        assert proxy.endpoint.url == f"http://127.0.0.1:{proxy.port}"


def test_connections_are_kept_and_pipelined_requests_answered_in_their_order() -> None:
    def script(connection: socket.socket) -> None:
        while head := read_head(connection):
            name = head.split()[1]
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(name), name))

    with RawUpstream(script) as upstream, FaultProxy(upstream.endpoint) as proxy, dial(proxy) as client:
        client.sendall(b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(20)))
        expected = b"".join(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n/%d" % (len(str(number)) + 1, number)
            for number in range(20)
        )
        assert read_exactly(client, len(expected)) == expected
        assert upstream.connections == 1
        assert [exchange.connection for exchange in proxy.exchanges()] == [1] * 20


def test_what_is_for_one_hop_stays_and_the_rest_passes_unchanged() -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        seen.append(read_head(connection))
        connection.sendall(
            b"HTTP/1.1 202 Accepted\r\nLocation: /v2/a/uploads/1\r\nKeep-Alive: timeout=5\r\nX-Hop: 1\r\n"
            b"Connection: X-Hop\r\nContent-Length: 0\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n"
        )

    with RawUpstream(script) as upstream:
        answer = ask(
            upstream,
            b"POST /v2/a/uploads/?x=%2F HTTP/1.1\r\nHost: registry.local:9001\r\nAuthorization: t\r\n"
            b"TE: trailers\r\nUpgrade: h2c\r\nConnection: Upgrade, X-Own\r\nX-Own: 1\r\n"
            b"Content-Length: 0\r\n\r\n",
        )
    assert seen == [
        b"POST /v2/a/uploads/?x=%2F HTTP/1.1\r\nHost: registry.local:9001\r\nAuthorization: t\r\n"
        b"Content-Length: 0\r\n\r\n"
    ]
    assert answer == (
        b"HTTP/1.1 202 Accepted\r\nLocation: /v2/a/uploads/1\r\nContent-Length: 0\r\n"
        b"Set-Cookie: a\r\nSet-Cookie: b\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("request_head", "answer"),
    [
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n"),
        (b"GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        (b"GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n0\r\nT: 1\r\n\r\n"),
    ],
)
def test_answers_without_length_or_body_leave_the_connection_usable(
    request_head: bytes, answer: bytes
) -> None:
    request = GET.replace(b"GET", request_head)
    with (
        RawUpstream(answering(answer)) as upstream,
        FaultProxy(upstream.endpoint) as proxy,
        dial(proxy) as client,
    ):
        for _ in range(3):
            client.sendall(request)
            assert read_exactly(client, len(answer)) == answer
        assert upstream.connections == 1


def test_an_answer_without_length_ends_with_the_connection() -> None:
    def script(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1_000_000)

    with RawUpstream(script) as upstream:
        head, _, body = ask(upstream, GET).partition(b"\r\n\r\n")
    assert head == b"HTTP/1.1 200 OK\r\nConnection: close"
    assert body == b"x" * 1_000_000


def test_a_chunked_request_arrives_byte_for_byte() -> None:
    encoded = b"5\r\nhello\r\n" + b"10000\r\n" + b"y" * 0x10000 + b"\r\n0\r\n\r\n"
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        read_head(connection)
        seen.append(read_exactly(connection, len(encoded)))
        connection.sendall(OK)

    with RawUpstream(script) as upstream, FaultProxy(upstream.endpoint) as proxy, dial(proxy) as client:
        client.sendall(
            b"PATCH /v2/a/blobs/uploads/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        client.sendall(encoded)
        assert read_exactly(client, len(OK)) == OK
        assert proxy.exchanges()[0].received == 5 + 0x10000
    assert seen == [encoded]


def test_a_client_that_expects_a_100_gets_the_upstreams() -> None:
    def script(connection: socket.socket) -> None:
        assert b"Expect: 100-continue" in read_head(connection)
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert read_exactly(connection, 4) == b"body"
        connection.sendall(OK)

    with RawUpstream(script) as upstream, FaultProxy(upstream.endpoint) as proxy, dial(proxy) as client:
        client.sendall(b"PUT /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        assert read_head(client) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"body")
        assert read_exactly(client, len(OK)) == OK


def test_an_answer_before_the_end_of_the_request_passes_though_nobody_reads_the_rest() -> None:
    answered = threading.Event()

    def script(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        answered.wait(30)

    with RawUpstream(script) as upstream, FaultProxy(upstream.endpoint) as proxy, dial(proxy) as client:
        client.sendall(b"PATCH /x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n" + b"z" * 1000)
        assert read_head(client).startswith(b"HTTP/1.1 401 ")
        answered.set()


def test_a_client_that_does_not_read_makes_the_upstream_wait_and_memory_stay_bounded() -> None:
    size = 64 << 20
    sent = 0

    def script(connection: socket.socket) -> None:
        nonlocal sent
        read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        block = bytes(1 << 20)
        while sent < size:
            connection.sendall(block)
            sent += len(block)

    with RawUpstream(script) as upstream, FaultProxy(upstream.endpoint) as proxy, dial(proxy) as client:
        client.sendall(GET)
        read_head(client)
        # It has come to rest when nothing more is taken; kernels buffer a few MiB on each of two ways.
        before = -1
        while before != sent:
            before = sent
            time.sleep(0.1)
        assert sent < size // 2
        assert len(read_exactly(client, size)) == size


def test_nobody_at_the_upstream_is_a_reset_and_no_answer() -> None:
    nobody = Endpoint(f"http://127.0.0.1:{free_port()}")
    with FaultProxy(nobody) as proxy, dial(proxy) as client:
        client.sendall(GET)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        assert "refused" in proxy.exchanges()[0].done


@pytest.mark.parametrize("tls", [False, True])
def test_a_reset_of_the_upstream_is_one_for_the_client(tmp_path: Path, tls: bool) -> None:
    def reset(connection: socket.socket) -> None:
        read_head(connection)
        break_off(connection)

    authority = LabAuthority(tmp_path)
    issued = authority.issue("upstream")
    identity = (issued.certificate, issued.key) if tls else None
    with (
        RawUpstream(reset, identity=identity, ca_file=authority.file) as upstream,
        FaultProxy(upstream.endpoint) as proxy,
        dial(proxy) as client,
    ):
        client.sendall(GET)
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_a_close_without_an_answer_is_one() -> None:
    with RawUpstream(lambda connection: read_head(connection) and None) as upstream:
        assert ask(upstream, GET) == b""


def test_an_idle_connection_ends_when_the_upstream_ends_it() -> None:
    def once(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(OK)

    with RawUpstream(once) as upstream, FaultProxy(upstream.endpoint) as proxy, dial(proxy) as client:
        client.sendall(GET)
        assert read_all(client) == OK


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    ],
)
def test_an_upstream_that_breaks_the_protocol_is_seen_as_it_is(answer: bytes) -> None:
    def script(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(answer)

    with RawUpstream(script) as upstream:
        assert ask(upstream, GET) == answer


def test_requests_go_to_a_new_upstream_from_the_next_on() -> None:
    other = OK.replace(b"hi", b"ho")
    with (
        RawUpstream(answering(OK)) as first,
        RawUpstream(answering(other)) as second,
        FaultProxy(first.endpoint) as proxy,
        dial(proxy) as client,
    ):
        client.sendall(GET)
        assert read_exactly(client, len(OK)) == OK
        proxy.retarget(second.endpoint)
        client.sendall(GET)
        assert read_exactly(client, len(other)) == other


def sockets() -> set[str]:
    """Return the sockets of this process."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor of this very listing
            found.add(str(link.readlink()))
    return {target for target in found if target.startswith("socket:")}


def test_nothing_is_left_when_it_is_closed() -> None:
    before, threads = sockets(), set(threading.enumerate())
    with RawUpstream(answering(OK)) as upstream:
        proxy = FaultProxy(upstream.endpoint)
        proxy.start()
        idle, silent = dial(proxy), dial(proxy)
        idle.sendall(GET)
        assert read_exactly(idle, len(OK)) == OK
        proxy.close()
        proxy.close()
        assert read_all(idle) == read_all(silent) == b""
        with pytest.raises(ConnectionRefusedError):
            dial(proxy)
        idle.close()
        silent.close()
    assert set(threading.enumerate()) <= threads
    assert sockets() <= before


MESSAGES = st.binary(max_size=300) | st.lists(
    st.sampled_from(
        [b"GET / HTTP/1.1", b"HTTP/1.1 200 OK", b"Host: x", b"Content-Length: 3", b"Content-Length: -1",
         b"Transfer-Encoding: chunked", b"Transfer-Encoding: x", b"Connection: close", b" folded", b"", b"3",
         b"abc", b"0", b"ffffffffffffffff", b"\0", b"Expect: 100-continue", b"HTTP/1.1 101 x",
         b"CONNECT x:1 HTTP/1.1"]
    ),
    max_size=12,
).map(b"\r\n".join)  # fmt: skip


@given(MESSAGES)
def test_any_bytes_are_a_head_or_told_to_be_none(data: bytes) -> None:
    try:
        size = end_of_head(memoryview(data))
        assert 0 <= size <= len(data)
    except NotHttp:
        return
    for kind in (RequestHead, AnswerHead):
        try:
            kind.read(data[:size])
        except NotHttp:
            continue


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=8), st.integers(1, 40), st.binary(max_size=9))
def test_a_chunked_body_ends_where_it_ends_however_it_is_cut(
    chunks: list[bytes], piece: int, following: bytes
) -> None:
    encoded = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    body, data, at = Chunked(), encoded + following, 0
    while not body.done:
        at += body.take(memoryview(data[at : at + piece]))
    assert (at, body.passed) == (len(encoded), len(b"".join(chunks)))


@given(st.binary(max_size=100), st.integers(0, 50))
def test_any_bytes_are_chunks_or_told_to_be_none(data: bytes, limit: int) -> None:
    body = Chunked()
    try:
        assert 0 <= body.take(memoryview(data), limit) <= len(data)
    except BrokenBody:
        return
    assert body.passed <= limit


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)
@given(MESSAGES, MESSAGES)
def test_a_connection_ends_whatever_both_sides_say(
    between: tuple[RawUpstream, FaultProxy, list[bytes]], asked: bytes, answered: bytes
) -> None:
    _, proxy, answers = between
    answers[:] = [answered]
    with dial(proxy) as client:
        try:
            client.sendall(asked)
            client.shutdown(socket.SHUT_WR)
            read_all(client)
        except (ConnectionError, OSError) as error:
            assert not isinstance(error, TimeoutError), "the proxy hangs"


@pytest.fixture(scope="module")
def between() -> Iterator[tuple[RawUpstream, FaultProxy, list[bytes]]]:
    """An upstream that says what is in a list and closes, and a proxy before it."""
    answers: list[bytes] = []

    def script(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(answers[0])

    with RawUpstream(script) as upstream, FaultProxy(upstream.endpoint) as proxy:
        yield upstream, proxy, answers
