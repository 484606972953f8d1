"""The check that tests leave nothing behind sees a process, a port, a Unix socket and a thread."""

import importlib.util
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def checks():
    spec = importlib.util.spec_from_file_location(
        "left_behind_checks", Path(__file__).with_name("conftest.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def left(checks):
    before = set().union(*(probe() for probe in checks.PROBES))
    return lambda: checks.left_since(before, grace=0.0)


def test_nothing_is_seen_where_nothing_was_left(left) -> None:
    assert left() == set()


def test_child_process_is_seen_also_one_that_a_child_started(left) -> None:
    child = subprocess.Popen(
        ["sh", "-c", "sleep 300 & echo started; wait"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        seen = left()
        # What the shell forked bears the shell's name until it has become the sleep.
        end = time.monotonic() + 10
        while not any("sleep 300" in entry and "sh -c" not in entry for entry in seen):
            assert time.monotonic() < end, seen
            seen = left()
        assert any(entry.startswith(f"process {child.pid}:") for entry in seen)
    finally:
        subprocess.run(["pkill", "-P", str(child.pid)], check=True)
        child.communicate(timeout=10)
    assert left() == set()


def test_listening_port_and_unix_socket_are_seen(left, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "s"))
        unix.listen()
        assert left() == {f"port {server.getsockname()[1]}", f"socket {tmp_path / 's'}"}
        client = socket.create_connection(server.getsockname())
        assert not any(str(client.getsockname()[1]) in entry for entry in left())
        client.close()
    assert left() == set()


def test_thread_is_seen(left) -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="forgotten")
    thread.start()
    assert left() == {"thread forgotten"}
    release.set()
    thread.join()
    assert left() == set()
