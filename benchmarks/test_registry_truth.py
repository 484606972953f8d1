"""How fast the truth of an image is read: against one core's sha256 and against the registry's own GET."""

import hashlib
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.images import Image, ImageRecipe, make_image, sized_layers
from harness.registry.process import find_registry
from harness.registry.reference import parse_reference
from harness.registry.store import LocalStore
from harness.registry.truth import TruthState
from harness.registry.truth_api import ApiTruth
from harness.registry.truth_store import StoreTruth
from harness.registry.wire import Wire

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.raw_push import RawRegistry

ROUNDS = 5
REFERENCE = parse_reference("a/b:v1")


def rate(size: int, work: Callable[[], object]) -> float:
    """Return MB/s of ``work`` on ``size`` bytes."""
    began = time.perf_counter()
    work()
    return size / 1e6 / (time.perf_counter() - began)


def fetch_all(lab: RegistryLab, image: Image) -> None:
    """Take everything from the registry and look at nothing."""
    buffer = memoryview(bytearray(1 << 19))
    with Wire(lab.endpoint, lab.insider) as wire:
        for blob in image.blobs():
            with wire.get(f"/v2/a/b/blobs/{blob.digest}", scope="a/b") as answer:
                while answer.readinto(buffer):
                    pass


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_truth_walk(tmp_path: Path, tls: bool) -> None:
    image = make_image(ImageRecipe(sized_layers(3, 64 << 20)))
    size = sum(blob.size for blob in image.blobs())
    block = bytes(1 << 20)

    def hash_as_much() -> None:
        hashed = hashlib.sha256()
        for _ in range(size >> 20):
            hashed.update(block)

    with RegistryLab(tmp_path, tls=tls, program=find_registry(install=False)) as lab:
        token = lab.tokens.mint(ACCOUNT, ["repository:a/b:pull,push"])
        RawRegistry(lab.endpoint.url, lab.authority.file, token).push("a/b", "v1", image)
        store = StoreTruth(LocalStore(Path(lab.registry.storage)))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found: dict[str, list[float]] = {"sha256": [], "GET": [], "API": [], "store": []}
        with ApiTruth(lab.endpoint, lab.insider) as api:
            for _ in range(ROUNDS):
                assert api.image(REFERENCE).state is store.image(REFERENCE).state is TruthState.COMPLETE
                found["sha256"].append(rate(size, hash_as_much))
                found["GET"].append(rate(size, lambda: fetch_all(lab, image)))
                found["API"].append(rate(size, lambda: api.image(REFERENCE)))
                found["store"].append(rate(size, lambda: store.image(REFERENCE)))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    median = {name: statistics.median(rates) for name, rates in found.items()}
    shares = [
        api / min(sha, get) for api, sha, get in zip(found["API"], found["sha256"], found["GET"], strict=True)
    ]
    share = statistics.median(shares)
    print(f"\n{', '.join(f'{name} {value:.0f} MB/s' for name, value in median.items())}; "
          f"API walk {share:.0%} of the slower of sha256 and GET; memory +{grown:.0f} MiB")  # fmt: skip
    assert share >= 0.8
    assert grown < 32
