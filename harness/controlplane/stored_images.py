"""The images that a controller keeps, got from its file server as the agents of its hosts get them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from harness.controlplane.protocol import DeviceImage, Reading
from harness.errors import HarnessError
from harness.hosts.protocol import Host
from harness.judgement.values import Unknown, Value

PROBE: Final = "file-server"
#: Of the controller's HTTP server, where platform.conf says no other (fact sheet of StarlingX, section 3.2).
_PORT: Final = 8080
_CONFIGURED: Final = "/etc/platform/platform.conf"
_KEY: Final = "http_port="


@dataclass(frozen=True, slots=True)
class StoredImages:
    """Reads images through one host of the ``system``, which knows the controller by its name."""

    host: Host
    system: Reading

    def of(self, uuid: str) -> Value[bytes]:
        """Return the bytes that an agent would get of the image ``uuid``; Unknown where there are none."""
        return self.given(uuid)[0]

    def given(self, uuid: str) -> tuple[Value[bytes], str]:
        """Return the same, and the HTTP status with which the server did not give it; empty where it did."""
        try:
            return self._read(self.system.image(uuid))
        except HarnessError as error:
            return Unknown(error.message), ""

    def _read(self, image: DeviceImage) -> tuple[Value[bytes], str]:
        parts = (image.bitstream_type, image.pci_vendor, image.pci_device)
        if not all(isinstance(part, str) and part for part in parts):
            return Unknown("under which name it is stored is not shown"), ""
        name = f"{'-'.join(map(str, parts))}-{image.uuid}.bit"  # section 1.1
        try:
            return self.host.fetch(f"http://controller:{self._port()}/device_images/{name}"), ""
        except OSError as error:
            why = error.strerror or str(error)
            told = Unknown(f"the file server of the controller does not give {name}: {why}")
            return told, why if why.isdecimal() else ""

    def _port(self) -> int:
        try:
            text = self.host.read(_CONFIGURED).decode(errors="replace")
        except OSError:
            return _PORT
        said = [line.removeprefix(_KEY) for line in text.splitlines() if line.startswith(_KEY)]
        return int(said[0]) if said and said[0].isdecimal() else _PORT


def downloaded(content: Value[bytes], status: str) -> dict[str, Any]:
    """Return what is recorded of a download (:meth:`StoredImages.given`): digest and size, or the status."""
    if isinstance(content, Unknown):
        return {"sha256": content, "size": content, "http_status": status}
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
