"""Large layers are fetched several at once: the truth is the same, and a Ctrl-C does not wait."""

import hashlib
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from support.raw_push import RawRegistry

from harness.registry.images import ImageRecipe, make_image, sized_layers
from harness.registry.manifests import Named
from harness.registry.process import ProcessRegistry
from harness.registry.reference import parse_reference
from harness.registry.truth import TruthState
from harness.registry.truth_api import ApiTruth
from harness.registry.wire import Endpoint

IMAGE = make_image(ImageRecipe((*sized_layers(5, 2_500_000), *sized_layers(2, 100, seed="small"))))
REFERENCE = parse_reference("a/b:v1")


def data(registry: ProcessRegistry, digest: str) -> Path:
    return Path(registry.storage, "docker/registry/v2/blobs/sha256", digest[7:9], digest[7:], "data")


def test_each_large_layer_is_judged_by_its_own_content(registry: ProcessRegistry, raw: RawRegistry) -> None:
    raw.push("a/b", "v1", IMAGE)
    with ApiTruth(registry.endpoint) as api:
        whole = api.image(REFERENCE)
        assert (whole.state, whole.hashed) == (
            TruthState.COMPLETE,
            sum(blob.size for blob in (*IMAGE.blobs(), IMAGE.manifest)),
        )
        flipped, removed, small = IMAGE.layers[1].digest, IMAGE.layers[4].digest, IMAGE.layers[5].digest
        with data(registry, flipped).open("r+b") as opened:
            opened.seek(2_000_000)
            byte = opened.read(1)[0]
            opened.seek(2_000_000)
            opened.write(bytes([byte ^ 1]))
        data(registry, removed).unlink()
        data(registry, small).unlink()
        registry.restart()
        damaged = api.image(REFERENCE)
    assert [(finding.state, finding.which) for finding in damaged.findings] == [
        (TruthState.CORRUPT, flipped),
        (TruthState.PARTIAL, removed),
        (TruthState.PARTIAL, small),
    ]
    wrong = hashlib.sha256(data(registry, flipped).read_bytes()).hexdigest()
    assert wrong in damaged.findings[0].reason


def test_a_ctrl_c_does_not_wait_for_a_registry_that_is_silent() -> None:
    """The server sends a part of every layer, then has this process interrupted, and says no more."""
    main = threading.main_thread()
    listening = socket.create_server(("127.0.0.1", 0))
    connections: list[socket.socket] = []

    def serve() -> None:
        for _ in range(3):
            connection, _ = listening.accept()
            connections.append(connection)
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n" + bytes(1000))
        assert main.ident
        signal.pthread_kill(main.ident, signal.SIGINT)

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    named = [Named(f"sha256:{number:064x}", 5_000_000) for number in range(3)]
    began = time.monotonic()
    try:
        endpoint = Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}")
        with ApiTruth(endpoint, stall=25.0) as api, pytest.raises(KeyboardInterrupt):
            api.blobs("a/b", named)
        assert time.monotonic() - began < 15
    finally:
        serving.join()
        for each in (listening, *connections):
            each.close()
