"""Which clients there are, by name, and how each is opened; their modules are imported when one is."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from harness.registry.clients.protocol import PullClient, PushClient
    from harness.registry.engine import Engine

_PACKAGE = "harness.registry.clients"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a client may use. ``folder``: for its archives. ``engine``: the Docker engine, for those that
    need one; None where none runs. ``store``: the registry's store, where this machine can see it."""

    folder: Path
    engine: Engine | None = None
    store: Path | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One client. ``made_by``: module and function, which takes :class:`Surroundings`."""

    made_by: str
    about: str
    needs_engine: bool = False


PUSH_CLIENTS: Mapping[str, Entry] = {
    "docker-naive": Entry("docker_sdk:naive", "docker SDK, the result of push() dropped", True),
    "docker-stream": Entry("docker_sdk:stream", "docker SDK, the stream read to its end", True),
    "docker-inspect": Entry("docker_sdk:inspect", "docker SDK, then inspect_distribution", True),
    "docker-cli": Entry("docker_cli:push_client", "docker push", True),
    "skopeo": Entry("skopeo:once", "skopeo copy"),
    "skopeo-retry": Entry("skopeo:retrying", "skopeo copy --retry-times 3"),
    "oci-once": Entry("oci_http:once", "our OCI client, one token for all of a push"),
    "oci-renew": Entry("oci_http:renewing", "our OCI client, tokens renewed and requests tried again"),
    "sysinv-download": Entry("sysinv_download:push_client", "the control plane's image download", True),
    "verified-push": Entry("verified:push_client", "believes only what it has read back and hashed"),
}
PULL_CLIENTS: Mapping[str, Entry] = {
    "docker-pull": Entry("docker_sdk:pull", "docker SDK, images.pull", True),
    "docker-cli-pull": Entry("docker_cli:pull_client", "docker pull", True),
    "skopeo-pull": Entry("skopeo:pull", "skopeo copy to a folder"),
    "oci-pull": Entry("oci_http:pull", "our OCI client, everything hashed"),
}


def open_push_client(name: str, surroundings: Surroundings) -> PushClient:
    """Return the push client ``name``.

    :raises ConfigurationError: there is none of that name.
    :raises BlockedError: what it needs is not here and cannot be got.
    """
    return cast("PushClient", _open(name, PUSH_CLIENTS, surroundings))


def open_pull_client(name: str, surroundings: Surroundings) -> PullClient:
    """Return the pull client ``name``; raises as :func:`open_push_client`."""
    return cast("PullClient", _open(name, PULL_CLIENTS, surroundings))


def _open(name: str, known: Mapping[str, Entry], surroundings: Surroundings) -> Any:
    entry = known.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, known, 1)
        raise ConfigurationError(
            f"There is no client {name!r}.",
            hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}.",
        )
    module, _, function = entry.made_by.partition(":")
    return getattr(import_module(f"{_PACKAGE}.{module}"), function)(surroundings)
