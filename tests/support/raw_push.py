"""A minimal push in the tests' own words, so that what the harness reads was not written by the harness."""

import http.client
import ssl
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from harness.registry.images import Blob, Content


class RawRegistry:
    """Speaks the registry's protocol with a token that it is given, or none."""

    def __init__(self, url: str, ca_file: Path | None = None, token: str = "") -> None:
        self._parts = urlsplit(url)
        self._context = ssl.create_default_context(cafile=ca_file) if url.startswith("https") else None
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ask(
        self, method: str, path: str, body: bytes | Iterable[bytes] | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Send one request on a connection of its own; return status, headers (lower case) and body."""
        host, port = str(self._parts.hostname), self._parts.port
        connection = (
            http.client.HTTPSConnection(host, port, timeout=30, context=self._context)
            if self._context
            else http.client.HTTPConnection(host, port, timeout=30)
        )
        try:
            given = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return (
                answer.status,
                {name.lower(): value for name, value in answer.getheaders()},
                answer.read(),
            )
        finally:
            connection.close()

    def begin_upload(self, repository: str) -> str:
        """Begin an upload; return its location."""
        status, headers, body = self.ask("POST", f"/v2/{repository}/blobs/uploads/", b"")
        assert status == 202, (status, body)
        return headers["location"]

    def push_blob(self, repository: str, blob: Blob) -> None:
        """Upload one blob in one piece, whether it is there or not."""
        location = self.begin_upload(repository)
        status, _, body = self.ask(
            "PUT",
            f"{location}&digest={blob.digest}",
            blob.pieces(),
            Content_Length=str(blob.size),
            Content_Type="application/octet-stream",
        )
        assert status == 201, (status, body)

    def push_manifest(self, repository: str, manifest: Blob, tag: str = "") -> tuple[int, bytes]:
        """Send a manifest; return the answer's status and body."""
        status, _, body = self.ask(
            "PUT",
            f"/v2/{repository}/manifests/{tag or manifest.digest}",
            manifest.read(),
            Content_Type=manifest.media_type,
        )
        return status, body

    def push(self, repository: str, tag: str, content: Content) -> None:
        """Push everything, children first."""
        for blob in content.blobs():
            self.push_blob(repository, blob)
        for manifest in content.manifests():
            last = manifest.digest == content.digest
            status, body = self.push_manifest(repository, manifest, tag if last else "")
            assert status == 201, (status, body)

    def head(self, path: str) -> int:
        """Return the status of a HEAD."""
        return self.ask("HEAD", path, Accept="application/vnd.oci.image.manifest.v1+json")[0]
