"""The bytes of an image as a controller's file server gives them."""

import hashlib
import re

import pytest

from harness.controlplane.protocol import DeviceImage
from harness.controlplane.stored_images import StoredImages, downloaded
from harness.errors import NoSuchRecordError, UnreachableError
from harness.judgement.values import Unknown

IMAGE = DeviceImage("0a1b", "root-key", "8086", "0b30")
#: Stored names: fact sheet of StarlingX, section 1.1.
NAME = "root-key-8086-0b30-0a1b.bit"


class Machine:
    """A host with a file or two, and what it gets from the controller."""

    def __init__(self, files: dict[str, bytes], given: dict[str, bytes | Exception]) -> None:
        self._files, self._given = files, given

    def read(self, path: str, *, deadline: float = 30.0) -> bytes:
        if path not in self._files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self._files[path]

    def fetch(self, url: str, *, deadline: float = 30.0) -> bytes:
        found = self._given.get(url, OSError(5, "404", url))
        if isinstance(found, Exception):
            raise found
        return found


class System:
    """A system that has one image."""

    def __init__(self, image: DeviceImage) -> None:
        self._image = image

    def image(self, ident: str) -> DeviceImage:
        if ident != IMAGE.uuid:
            raise NoSuchRecordError(f"no image {ident}")
        return self._image


@pytest.mark.parametrize(
    ("configuration", "port"),
    [({}, 8080), ({"/etc/platform/platform.conf": b"nodetype=controller\nhttp_port=8088\n"}, 8088)],
)
def test_bytes_come_from_the_port_that_the_platform_is_configured_to(configuration, port) -> None:
    machine = Machine(configuration, {f"http://controller:{port}/device_images/{NAME}": b"bytes"})
    stored = StoredImages(machine, System(IMAGE))
    assert stored.of(IMAGE.uuid) == b"bytes"
    digest = hashlib.sha256(b"bytes").hexdigest()
    assert downloaded(*stored.given(IMAGE.uuid)) == {"sha256": digest, "size": 5}


@pytest.mark.parametrize(
    ("image", "status", "why"),
    [(IMAGE, "404", "does not give .*: 404"), (DeviceImage("0a1b", "root-key"), "", "is not shown")],
)
def test_what_is_not_to_be_had_is_unknown(image, status, why) -> None:
    content, refused = StoredImages(Machine({}, {}), System(image)).given("0a1b")
    assert isinstance(content, Unknown)
    assert re.search(why, content.reason)
    assert refused == status
    assert downloaded(content, status) == {"sha256": content, "size": content, "http_status": status}


@pytest.mark.parametrize("error", [UnreachableError("worker is away"), OSError(5, "curl: command not found")])
def test_a_host_that_cannot_ask_says_nothing_of_the_server(error) -> None:
    place = f"http://controller:8080/device_images/{NAME}"
    content, status = StoredImages(Machine({}, {place: error}), System(IMAGE)).given("0a1b")
    assert isinstance(content, Unknown)
    assert status == ""


def test_an_image_that_there_is_not_has_no_bytes() -> None:
    assert StoredImages(Machine({}, {}), System(IMAGE)).of("other") == Unknown("no image other")
