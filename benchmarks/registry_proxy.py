"""Three parallel pushes through the fault proxy, beside the same pushes straight to the registry."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.rows import Row, in_turn, processor_note
from harness.faults.proxy.server import FaultProxy
from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.images import ImageRecipe, make_image, sized_layers
from harness.registry.process import find_registry

TESTS = str(Path(__file__).parents[1] / "tests")
PARALLEL = 3
LAYER_SIZE = 48 << 20
#: What the registry speaks, what the clients speak, and the least share of the direct throughput.
WAYS = ((False, False, 0.85), (False, True, 0.85), (True, True, 0.75))
_PIECE = 256 << 10


def measure(rounds: int) -> list[Row]:
    """Return one row for each way: like for like, what clients speak is what they speak directly."""
    image = make_image(ImageRecipe(sized_layers(PARALLEL, LAYER_SIZE)))
    layers = [blob.read() for blob in image.blobs() if blob.size >= LAYER_SIZE]
    digests = [blob.digest for blob in image.blobs() if blob.size >= LAYER_SIZE]
    return [
        _row(layers, digests, rounds, upstream=upstream, client=client, share=share)
        for upstream, client, share in WAYS
    ]


def _row(
    layers: list[bytes], digests: list[str], rounds: int, *, upstream: bool, client: bool, share: float
) -> Row:
    """Measure one way. The peer of TLS to plain is a push to a registry that speaks TLS itself."""
    with TemporaryDirectory() as folder, _registry(Path(folder, "behind"), tls=upstream) as behind:
        identity = behind.authority.issue("proxy") if client else None
        with (
            FaultProxy(behind.endpoint, tls=identity, addresses=("127.0.0.1",)) as proxy,
            _registry(Path(folder, "direct"), tls=client) as direct,
        ):
            through = _pushes(behind, proxy.endpoint.url, layers, digests)
            beside = _pushes(direct, direct.endpoint.url, layers, digests)
            by_proxy, straight = in_turn((through, beside), rounds)
            note = processor_note(through, 1)
    way = f"{'TLS' if client else 'plain'} to {'TLS' if upstream else 'plain'}"
    what = f"{PARALLEL} parallel pushes of {LAYER_SIZE >> 20} MiB; {note}; wanted: {share:.0%} of direct"
    return Row(f"proxy, {way}", what, "ms", by_proxy, 1 / share, "ratio", "direct", straight)


def _registry(folder: Path, *, tls: bool) -> RegistryLab:
    return RegistryLab(folder, tls=tls, program=find_registry(install=False))


def _pushes(lab: RegistryLab, url: str, layers: list[bytes], digests: list[str]) -> Callable[[], object]:
    """Return what uploads all layers at once, each in one piece on a connection of its own."""
    if TESTS not in sys.path:
        sys.path.append(TESTS)
    from support.raw_push import RawRegistry  # type: ignore[import-not-found]  # of the tests

    token = lab.tokens.mint(ACCOUNT, ["repository:a/b:pull,push"])
    raw = RawRegistry(url, lab.authority.file, token)

    def push(content: bytes, digest: str) -> None:
        location = raw.begin_upload("a/b")
        view = memoryview(content)
        status, _, body = raw.ask(
            "PUT",
            f"{location}&digest={digest}",
            (view[at : at + _PIECE] for at in range(0, len(view), _PIECE)),
            Content_Length=str(len(view)),
            Content_Type="application/octet-stream",
        )
        assert status == 201, (status, body)

    def all_at_once() -> None:
        with ThreadPoolExecutor(PARALLEL) as pool:
            for done in [pool.submit(push, *each) for each in zip(layers, digests, strict=True)]:
                done.result()

    return all_at_once
