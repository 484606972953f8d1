"""A bench of a registry lab alone, and a request that is held by a real gate without a proxy."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.raw_push import RawRegistry

from harness.faults.proxy.gate import Decision, Gate, Request
from harness.faults.registry_points import FaultPoint
from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.images import Image, ImageRecipe, make_image, sized_layers
from harness.registry.service import RegistryService

IMAGE = make_image(ImageRecipe(sized_layers(2, 5000)))
#: The same layers below another config: what changes a tag.
NEWER = make_image(ImageRecipe(sized_layers(2, 5000), "newer"))


@dataclass
class LabBench:
    """A lab as actions see it, and who pushes to it."""

    lab: RegistryLab

    @property
    def registry(self) -> RegistryService:
        return self.lab.registry

    @property
    def raw(self) -> RawRegistry:
        """Speaks to the registry with a token of now for `a/b`."""
        token = self.lab.tokens.mint(ACCOUNT, ["repository:a/b:pull,push"], generation=self.lab.trusted)
        return RawRegistry(self.lab.endpoint.url, self.lab.authority.file, token)

    def file(self, *parts: str) -> Path:
        return Path(self.lab.registry.storage, "docker/registry/v2", *parts)

    def data(self, digest: str) -> Path:
        return self.file("blobs/sha256", digest[7:9], digest[7:], "data")

    def link(self, digest: str) -> Path:
        return self.file("repositories/a/b/_layers/sha256", digest[7:], "link")

    def tag_link(self, tag: str = "v1") -> Path:
        return self.file("repositories/a/b/_manifests/tags", tag, "current/link")

    def push_what_is_missing(self, image: Image = IMAGE, tag: str = "v1") -> int:
        """Push as clients do: what a HEAD finds is not sent again. Return the status of the manifest."""
        for blob in image.blobs():
            if self.raw.head(f"/v2/a/b/blobs/{blob.digest}") != 200:
                self.raw.push_blob("a/b", blob)
        return self.raw.push_manifest("a/b", image.manifest, tag)[0]


@contextmanager
def held(
    target: str = "/v2/a/b/manifests/v1", repository: str = "a/b"
) -> Iterator[tuple[Gate, list[Decision]]]:
    """Yield a gate that holds a PUT of a manifest, and where its decision will be at the end."""
    gate = Gate(FaultPoint.parse("before:manifest-put"))
    request = Request(1, 1, "PUT", target, gate.point.step, repository)
    decided: list[Decision] = []
    holder = threading.Thread(target=lambda: decided.append(gate.hold(request, 0)))
    holder.start()
    try:
        assert gate.wait(10)
        yield gate, decided
    finally:
        gate.disarm()
        holder.join(30)
        assert decided
