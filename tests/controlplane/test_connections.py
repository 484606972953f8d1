"""Connections to services: kept, replaced where the server has ended them; forms as parsers read them."""

from __future__ import annotations

import email
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from email.message import Message
from pathlib import Path

import pytest

from harness.controlplane.connections import (
    BrokenOffError,
    Connections,
    NotConnectedError,
    form_body,
    json_body,
    queried,
)
from harness.registry.tls import LabAuthority

#: What a server does with a connection: it is given the connection and which one it is, from 1 on.
Serve = Callable[[socket.socket, int], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell"


@pytest.fixture
def listening() -> Iterator[Callable[[Serve], str]]:
    """Begin servers that do with each connection what they are told; return the URL of each."""
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def begin(serve: Serve) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        opened.append(listener)

        def accept() -> None:
            number = 0
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                number += 1
                with connection:
                    serve(connection, number)

        threads.append(threading.Thread(target=accept))
        threads[-1].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield begin
    for listener in opened:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def head(connection: socket.socket) -> bytes:
    """Return a request up to the end of its headers; empty where the client has ended the connection."""
    taken = b""
    while not taken.endswith(b"\r\n\r\n"):
        if not (byte := connection.recv(1)):
            return b""
        taken += byte
    return taken


@pytest.fixture
def connections() -> Iterator[Connections]:
    made = Connections(None)
    yield made
    made.close()


def test_one_connection_serves_many_requests(
    listening: Callable[[Serve], str], connections: Connections
) -> None:
    numbers: list[int] = []

    def serve(connection: socket.socket, number: int) -> None:
        while head(connection):
            numbers.append(number)
            connection.sendall(OK)

    url = listening(serve)
    for _ in range(3):
        answer = connections.ask("GET", f"{url}/a", {}, None, 20)
        assert (answer.status, answer.text) == (200, "well")
    connections.close()
    assert numbers == [1, 1, 1]


def test_one_that_the_server_has_ended_is_replaced_before_a_change_is_asked(
    listening: Callable[[Serve], str], connections: Connections
) -> None:
    ended, asked = threading.Event(), []

    def serve(connection: socket.socket, number: int) -> None:
        asked.append((number, head(connection).split(b" ")[0]))
        connection.sendall(OK)
        connection.close()
        ended.set()

    url = listening(serve)
    for _ in range(2):
        assert connections.ask("POST", url, {}, None, 20).status == 200
        assert ended.wait(20)
        ended.clear()
    assert asked == [(1, b"POST"), (2, b"POST")]


def test_a_server_that_says_that_it_ends_it_is_not_asked_on_it_again(
    listening: Callable[[Serve], str], connections: Connections
) -> None:
    """It may say so and end it later: what is asked on it meanwhile nobody answers."""
    numbers: list[int] = []

    def serve(connection: socket.socket, number: int) -> None:
        head(connection)
        numbers.append(number)
        connection.sendall(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert not head(connection), "the client ends it"

    url = listening(serve)
    for _ in range(2):
        assert connections.ask("GET", url, {}, None, 20).text == "well"
    assert numbers == [1, 2]


def test_a_refusal_amid_a_long_body_is_told(
    listening: Callable[[Serve], str], connections: Connections
) -> None:
    """The server answers and ends the connection with most of the body unread, which resets it."""

    def serve(connection: socket.socket, number: int) -> None:
        head(connection)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    url = listening(serve)
    body = form_body({}, "image", bytes(64 << 20))
    assert connections.ask("POST", url, {}, body, 20).status == 413


def test_what_breaks_off_is_no_answer(listening: Callable[[Serve], str], connections: Connections) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        head(connection)
        connection.sendall(OK[:-1])

    with pytest.raises(BrokenOffError, match="IncompleteRead"):
        connections.ask("GET", listening(serve), {}, None, 20)


def test_a_silent_server_is_waited_for_as_long_as_said(
    listening: Callable[[Serve], str], connections: Connections
) -> None:
    ends = threading.Event()

    def serve(connection: socket.socket, number: int) -> None:
        ends.wait(20)

    url = listening(serve)
    with pytest.raises(TimeoutError):
        connections.ask("GET", url, {}, None, 0.2)
    ends.set()


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://127.0.0.1:1/v1", NotConnectedError),
        ("ftp://127.0.0.1/v1", ValueError),
        ("http://127.0.0.1:nine/v1", ValueError),
        ("/v1", ValueError),
    ],
)
def test_where_nobody_can_be_asked(connections: Connections, url: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        connections.ask("GET", url, {}, None, 20)


@pytest.mark.parametrize(
    ("addresses", "error"), [(("127.0.0.1",), BrokenOffError), (("127.0.0.2",), NotConnectedError)]
)
def test_over_tls_what_was_asked_is_told_from_what_could_not_be(
    listening: Callable[[Serve], str], tmp_path: Path, addresses: tuple[str, ...], error: type[Exception]
) -> None:
    """A server takes a request and answers with what is no TLS; or it has the certificate of another one."""
    authority = LabAuthority(tmp_path)
    identity = authority.issue("controller", addresses=addresses)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    asked: list[bytes] = []

    def serve(connection: socket.socket, number: int) -> None:
        with suppress(OSError):
            secured = context.wrap_socket(connection.dup(), server_side=True)
            asked.append(head(secured))
            with socket.socket(fileno=secured.detach()) as plain:
                plain.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)

    url = listening(serve).replace("http:", "https:")
    connections = Connections(authority.file)
    try:
        with pytest.raises(error):
            connections.ask("POST", url, {}, None, 20)
    finally:
        connections.close()
    assert [bool(each) for each in asked] == [True] * (error is BrokenOffError)


def test_a_form_is_what_a_parser_of_mail_reads() -> None:
    content = b"\r\n--\r\n\x00\xff" * 3
    body = form_body({"name": "ü\r\n--x", "bitstream_id": "0x2"}, 'a"b.bin', content)
    read = email.message_from_bytes(f"Content-Type: {body.kind}\r\n\r\n".encode() + body.content)
    parts = list(read.walk())[1:]
    assert [named(part) for part in parts] == [("name", None), ("bitstream_id", None), ("file", "a%22b.bin")]
    assert [part.get_payload(decode=True) for part in parts] == ["ü\r\n--x".encode(), b"0x2", content]


def named(part: Message) -> tuple[str, str | None]:
    return str(part.get_param("name", header="Content-Disposition")), part.get_filename()


def test_data_and_queries() -> None:
    assert json_body({"k": "ü", "n": [1, None]}).content == '{"k":"ü","n":[1,null]}'.encode()
    with pytest.raises(ValueError, match="JSON compliant"):
        json_body(float("nan"))
    assert queried("/a", {"limit": 2, "marker": "x&y"}) == "/a?limit=2&marker=x%26y"
