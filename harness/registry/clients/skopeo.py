"""Pushes and pulls by Debian's skopeo, in its own words and with nothing believed but its exit code."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from harness.errors import ConfigurationError, InfrastructureError
from harness.registry.archives import write_layout
from harness.registry.clients.catalogue import Surroundings
from harness.registry.clients.protocol import Destination, Report
from harness.registry.clients.skopeo_program import Said, Skopeo, find_skopeo
from harness.registry.images import Content

_RETRIES = 3
#: What marks a folder for skopeo's transport ``dir`` (containers/image, directory).
_MARK = "Directory Transport Version: 1.1\n"


def once(surroundings: Surroundings, program: Skopeo | None = None) -> SkopeoPush:
    """Return the client that is ``skopeo copy``. :raises BlockedError: skopeo cannot be got."""
    return SkopeoPush("skopeo", surroundings.folder, program or find_skopeo())


def retrying(surroundings: Surroundings, program: Skopeo | None = None) -> SkopeoPush:
    """Return the client that is ``skopeo copy --retry-times 3``. :raises BlockedError: as :func:`once`."""
    return SkopeoPush("skopeo-retry", surroundings.folder, program or find_skopeo(), retries=_RETRIES)


def pull(surroundings: Surroundings, program: Skopeo | None = None) -> SkopeoPull:
    """Return the pull client that is ``skopeo copy``. :raises BlockedError: as :func:`once`."""
    return SkopeoPull(surroundings.folder, program or find_skopeo())


class SkopeoPush:
    """Copies from a folder that :meth:`prepare` writes.

    It is an OCI layout whose blobs are also what skopeo's transport ``dir`` reads: that sends manifests
    verbatim, and its ``oci`` takes none of Docker's. ``folder``: for these layouts.
    """

    def __init__(self, name: str, folder: Path, program: Skopeo, *, retries: int = 0) -> None:
        self.name = name
        self._folder = folder
        self._program = program
        self._retries = retries

    @cached_property
    def version(self) -> str:
        """Of skopeo. :raises InfrastructureError: it cannot run."""
        return self._program.version()

    def _layout(self, content: Content, destination: Destination) -> Path:
        name = hashlib.sha256(f"{self.name} {content.digest} {destination.reference}".encode()).hexdigest()
        return self._folder / f"layout-{name[:16]}"

    def prepare(self, content: Content, destination: Destination) -> None:
        """Write the layout. :raises InfrastructureError: it cannot be written.

        :raises ConfigurationError: the reference names no registry, or has a digest and no tag.
        """
        if not destination.reference.registry or destination.reference.digest:
            raise ConfigurationError(
                f"skopeo does not push to {destination.reference}.",
                hint="It takes a registry and a tag, such as registry.local:9001/a/b:v1.",
            )
        layout = self._layout(content, destination)
        try:
            write_layout(content, layout)
            _mark(content, layout / "blobs/sha256")
        except BaseException as error:
            self.forget(content, destination)
            if isinstance(error, OSError):
                raise InfrastructureError(f"{layout} cannot be written: {error.strerror}.") from None
            raise

    def push(self, content: Content, destination: Destination, *, deadline: float = 120.0) -> Report:
        """Copy what was prepared, and report what skopeo says."""
        layout = self._layout(content, destination)
        with _surroundings(self._folder, "dest", destination) as (folder, options):
            digest_file = folder / "digest"
            words = ["copy", "--all", "--preserve-digests", "--digestfile", str(digest_file), *options]
            words += ["--retry-times", str(self._retries)] if self._retries else []
            words += [f"dir:{layout / 'blobs/sha256'}", f"docker://{destination.reference}"]
            said = self._program.run(["--insecure-policy", *words], folder, deadline=deadline)
            digest = digest_file.read_text() if digest_file.exists() else ""
        return _report(said, digest.strip(), deadline)

    def forget(self, content: Content, destination: Destination) -> None:
        """Remove the layout; nothing where there is none."""
        shutil.rmtree(self._layout(content, destination), ignore_errors=True)

    def close(self) -> None:
        """Nothing is held; what was prepared goes by :meth:`forget`."""


class SkopeoPull:
    """Copies an image to a folder that is removed again."""

    name = "skopeo-pull"

    def __init__(self, folder: Path, program: Skopeo) -> None:
        self._folder = folder
        self._program = program

    def pull(self, source: Destination, *, deadline: float = 120.0) -> Report:
        """Copy it, and report what skopeo says."""
        with _surroundings(self._folder, "src", source) as (folder, options):
            digest_file = folder / "digest"
            words = ["copy", "--all", "--preserve-digests", "--digestfile", str(digest_file), *options]
            words += [f"docker://{source.reference}", f"dir:{folder / 'image'}"]
            said = self._program.run(["--insecure-policy", *words], folder, deadline=deadline)
            digest = digest_file.read_text() if digest_file.exists() else ""
        return _report(said, digest.strip(), deadline)

    def close(self) -> None:
        """Nothing is held."""


def _mark(content: Content, blobs: Path) -> None:
    """Name the manifests among ``blobs`` as skopeo's transport ``dir`` looks for them."""
    (blobs / "version").write_text(_MARK)
    for manifest in content.manifests():
        top = manifest.digest == content.digest
        name = "manifest.json" if top else f"{manifest.digest[7:]}.manifest.json"
        (blobs / name).write_bytes(manifest.read())


@contextmanager
def _surroundings(folder: Path, side: str, there: Destination) -> Iterator[tuple[Path, Sequence[str]]]:
    """Give a private folder and the options by which skopeo reaches ``there``; both go with the run.

    A password is in a file that only we can read: a command line is for everybody on the machine.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        private = Path(tempfile.mkdtemp(prefix="skopeo-", dir=folder))
    except OSError as error:
        raise InfrastructureError(f"{folder} cannot be written: {error.strerror}.") from None
    try:
        yield private, _options(private, side, there)
    except OSError as error:
        raise InfrastructureError(f"{private} cannot be written: {error.strerror}.") from None
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _options(private: Path, side: str, there: Destination) -> Sequence[str]:
    options = []
    if there.plain:
        options.append(f"--{side}-tls-verify=false")
    elif there.ca_file is not None:
        certificates = private / "certificates"
        certificates.mkdir()
        try:
            shutil.copy(there.ca_file, certificates / "ca.crt")
        except OSError as error:
            raise ConfigurationError(
                f"The authority {there.ca_file} cannot be read: {error.strerror}."
            ) from None
        options += [f"--{side}-cert-dir", str(certificates)]
    if there.user:
        both = base64.b64encode(f"{there.user}:{there.password}".encode()).decode()
        known = json.dumps({"auths": {there.reference.registry: {"auth": both}}})
        file = private / "auth.json"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(known)
        options += ["--authfile", str(file)]
    else:
        options.append(f"--{side}-no-creds")
    return options


def _report(said: Said, digest: str, deadline: float) -> Report:
    lines = [line for line in said.text.splitlines() if line.strip()]
    last = lines[-1] if lines else "it said nothing"
    if said.exit_code is None:
        error = f"not done after {deadline:g} s; last: {last}"
        return Report(
            "interrupted",
            said.text,
            error=error,
            command=said.command,
            seconds=said.seconds,
            log=tuple(lines),
        )
    done = said.exit_code == 0
    return Report(
        "done" if done else "failed",
        said.text,
        digest=digest if done else "",
        error="" if done else last,
        command=said.command,
        exit_code=said.exit_code,
        log=tuple(lines),
        seconds=said.seconds,
        waited=said.waited,
    )
