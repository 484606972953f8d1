"""Reading the truth of a registry's image: beside one core's SHA-256, and beside the registry's own GET."""

from __future__ import annotations

import hashlib
import resource
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.rows import Row, Samples, in_turn
from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.images import Image, ImageRecipe, make_image, sized_layers
from harness.registry.process import find_registry
from harness.registry.reference import parse_reference
from harness.registry.store import LocalStore
from harness.registry.truth import TruthState
from harness.registry.truth_api import ApiTruth
from harness.registry.truth_store import StoreTruth
from harness.registry.wire import Wire

TESTS = str(Path(__file__).parents[1] / "tests")
LAYERS, LAYER_SIZE = 3, 64 << 20
REFERENCE = parse_reference("a/b:v1")
_BLOCK = bytes(1 << 20)


def measure(rounds: int) -> list[Row]:
    """Return the rows of a registry without and with TLS, and of the memory that a walk takes.

    The walk through the API may take a quarter more than the slower of the two things that it must do.
    """
    image = make_image(ImageRecipe(sized_layers(LAYERS, LAYER_SIZE)))
    return [row for tls in (False, True) for row in _walks(image, rounds, tls=tls)]


def _walks(image: Image, rounds: int, *, tls: bool) -> list[Row]:
    if TESTS not in sys.path:
        sys.path.append(TESTS)
    from support.raw_push import RawRegistry  # type: ignore[import-not-found]  # of the tests

    size = sum(blob.size for blob in image.blobs())
    way = "TLS" if tls else "plain"
    with (
        TemporaryDirectory() as folder,
        RegistryLab(Path(folder), tls=tls, program=find_registry(install=False)) as lab,
        ApiTruth(lab.endpoint, lab.insider) as api,
    ):
        token = lab.tokens.mint(ACCOUNT, ["repository:a/b:pull,push"])
        RawRegistry(lab.endpoint.url, lab.authority.file, token).push("a/b", "v1", image)
        store = StoreTruth(LocalStore(Path(lab.registry.storage)))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert api.image(REFERENCE).state is store.image(REFERENCE).state is TruthState.COMPLETE
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        acts = (lambda: api.image(REFERENCE), lambda: _hash(size), lambda: _fetch_all(lab, image))
        walked, hashed, fetched = in_turn(acts, rounds)
    slower = Samples(tuple(map(max, hashed.values, fetched.values)))
    peer = "slower of sha256 and GET"
    what = f"{size >> 20} MiB through the API, {way}"
    rows = [Row(f"registry truth, {way}", what, "ms", walked, 1.25, "ratio", peer, slower)]
    if not tls:
        what = "how far the process grew for the first walk, by both ways"
        rows.append(Row("registry truth, memory", what, "MiB", Samples((grown,)), 32))
    return rows


def _hash(size: int) -> None:
    hashed = hashlib.sha256()
    for _ in range(size >> 20):
        hashed.update(_BLOCK)


def _fetch_all(lab: RegistryLab, image: Image) -> None:
    """Take everything from the registry and look at nothing."""
    buffer = memoryview(bytearray(1 << 19))
    with Wire(lab.endpoint, lab.insider) as wire:
        for blob in image.blobs():
            with wire.get(f"/v2/a/b/blobs/{blob.digest}", scope="a/b") as answer:
                while answer.readinto(buffer):
                    pass
