"""Puts what a registry holds already under another name, without sending a layer; and takes it away."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version

from harness.registry.clients.oci_http import check, reported
from harness.registry.clients.oci_session import PATIENT, PushError, Session, Tries, refusal
from harness.registry.clients.oci_transfer import Push, Say
from harness.registry.clients.protocol import Destination, Report
from harness.registry.images import Blob, Content


class ExistingPush:
    """A push of an image whose blobs are there: ``oci-tag`` in the same repository, or ``oci-mount``.

    :param source: the repository that its blobs are mounted from; empty: the destination's own.
    """

    def __init__(self, source: str = "", tries: Tries = PATIENT) -> None:
        self.name = "oci-mount" if source else "oci-tag"
        self.version = f"httpx {version('httpx')}"
        self._source = source
        self._tries = tries

    def prepare(self, content: Content, destination: Destination) -> None:
        """Check that the content can be pushed there. :raises ConfigurationError: it cannot."""
        check(content, destination)

    def push(self, content: Content, destination: Destination, *, deadline: float = 120.0) -> Report:
        """Mount every blob, then put the manifests; what is not there is refused and told."""
        actions = "pull,push" + (f" repository:{self._source}:pull" if self._source else "")

        def act(session: Session, say: Say) -> str:
            if self._source:
                for blob in content.blobs():
                    session.attempt(partial(self._mounted, session, destination, blob, say), say)
            return Push(session, content, destination.reference, say).run()

        return reported(destination, actions, self._tries, deadline, act)

    def _mounted(self, session: Session, destination: Destination, blob: Blob, say: Say) -> None:
        path = f"/v2/{destination.reference.repository}/blobs/uploads/"
        with session.ask("POST", f"{path}?mount={blob.digest}&from={self._source}") as answer:
            if answer.status_code != 201:
                raise PushError(f"{blob.digest} is not mounted from {self._source}: {refusal(answer)}")
            say(f"mounted {blob.digest} from {self._source}")

    def forget(self, content: Content, destination: Destination) -> None:
        """Nothing was made."""

    def close(self) -> None:
        """Nothing is held between two pushes."""


def delete_manifest(destination: Destination, digest: str, *, deadline: float = 60.0) -> Report:
    """Delete a manifest of a repository, with every tag that leads to it; return what was said of it."""
    path = f"/v2/{destination.reference.repository}/manifests/{digest}"

    def act(session: Session, say: Say) -> str:
        def deleted() -> str:
            with session.ask("DELETE", path) as answer:
                if answer.status_code != 202:
                    raise PushError(f"DELETE {path}: {refusal(answer)}")
                say(f"deleted {digest}")
                return digest

        return session.attempt(deleted, say)

    return reported(destination, "delete", PATIENT, deadline, act)
