"""Pushing by our OCI client, beside skopeo and curl with the same image in the same run."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.rows import Row, Samples, seconds_of
from harness.packages import installed
from harness.registry.archives import read_image, write_layout
from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.clients.catalogue import Surroundings
from harness.registry.clients.oci_http import once
from harness.registry.clients.protocol import Destination, PushClient
from harness.registry.clients.skopeo import once as skopeo_once
from harness.registry.clients.skopeo_program import find_skopeo
from harness.registry.images import Blob, Content, ImageRecipe, make_image, sized_layers
from harness.registry.process import find_registry
from harness.registry.reference import Reference

LAYERS, LAYER_SIZE = 3, 64 << 20
#: Ours is at least 95 % as fast as the faster of the two.
LIMIT = 1 / 0.95


def measure(rounds: int) -> list[Row]:
    """Return the rows of a registry without and with TLS; both ask for tokens."""
    return [_row(rounds, tls=tls) for tls in (False, True)]


def _row(rounds: int, *, tls: bool) -> Row:
    program, skopeo = find_registry(install=False), find_skopeo(install=False)
    with TemporaryDirectory() as name, RegistryLab(Path(name, "lab"), tls=tls, program=program) as lab:
        layout = Path(name, "layout")
        write_layout(make_image(ImageRecipe(sized_layers(LAYERS, LAYER_SIZE))), layout)
        image = read_image(layout)
        registry = lab.endpoint.url.partition("//")[2]
        authority = lab.authority.file if tls else None
        where = Destination(Reference(registry, "a/b", "v1"), authority, ACCOUNT, "lab-only", plain=not tls)
        surroundings = Surroundings(Path(name, "work"))
        clients = [once(surroundings), skopeo_once(surroundings, skopeo)]
        acts: list[Callable[[], object]] = [partial(_pushed, each, image, where) for each in clients]
        if installed("curl"):
            acts.append(partial(_curl, lab, image, layout / "blobs/sha256", authority))
        for client in clients:
            client.prepare(image, where)
        ours, *peers = _in_empty_registries(lab, acts, rounds)
    best = Samples(tuple(map(min, *(peer.values for peer in peers)))) if len(peers) > 1 else peers[0]
    way = "TLS" if tls else "plain"
    size = sum(blob.size for blob in image.blobs())
    what = f"push of {size >> 20} MiB in {LAYERS} layers by our OCI client, {way}"
    peer = "faster of skopeo and curl" if len(peers) > 1 else "skopeo"
    return Row(f"OCI client, {way}", what, "ms", ours, LIMIT, "ratio", peer, best)


def _in_empty_registries(lab: RegistryLab, acts: list[Callable[[], object]], rounds: int) -> list[Samples]:
    """Time each act in turn, each in a registry that has nothing yet; the first round warms up."""
    taken: list[list[float]] = [[] for _ in acts]
    for _ in range(rounds + 1):
        for times, act in zip(taken, acts, strict=True):
            lab.registry.stop()
            shutil.rmtree(lab.registry.storage)
            lab.registry.start()
            times.append(seconds_of(act) * 1000)
    return [Samples(tuple(times[1:])) for times in taken]


def _pushed(client: PushClient, image: Content, where: Destination) -> None:
    report = client.push(image, where)
    assert (report.result, report.digest) == ("done", image.digest), report.text


def _curl(lab: RegistryLab, image: Content, blobs: Path, authority: Path | None) -> None:
    """Push by one curl for each request, the blobs at once; the token is given to it."""
    base = f"{lab.endpoint.url}/v2/a/b"
    token = lab.tokens.mint(ACCOUNT, ["repository:a/b:pull,push"])
    common = ["curl", "-sS", "--fail", "-H", f"Authorization: Bearer {token}", "-H", "Expect:"]
    common += ["--cacert", str(authority)] if authority else []

    def send(blob: Blob) -> None:
        begun = _run([*common, "-X", "POST", "-D", "-", "-o", "/dev/null", f"{base}/blobs/uploads/"])
        location = next(
            line.partition(": ")[2].strip()
            for line in begun.splitlines()
            if line.lower().startswith("location: ")
        )
        at = location if "://" in location else f"{lab.endpoint.url}{location}"
        _run([*common, "-T", str(blobs / blob.digest[7:]), f"{at}&digest={blob.digest}"])

    with ThreadPoolExecutor(LAYERS) as pool:
        list(pool.map(send, image.blobs()))
    kind = f"Content-Type: {image.manifest.media_type}"
    _run([*common, "-H", kind, "-T", str(blobs / image.digest[7:]), f"{base}/manifests/v1"])


def _run(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
