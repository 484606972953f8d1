"""What a registry of the harness is configured with, as data and as the file that it reads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.registry.tls import ServerIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTrust:
    """Whose tokens a registry takes: ``bundle`` holds the certificates, and is read once, at its start.

    ``realm``: the URL at which clients get a token. ``service``: whom the tokens are for.
    """

    realm: str
    bundle: Path
    service: str = "registry.local:9001"
    issuer: str = "bird-token-server"  # StarlingX's (fact sheet, section 7)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """How a registry runs.

    ``port``: 0 chooses a free one, which is kept over restarts. ``storage``: where its store is; by
    default below the service's folder. ``cache``: the in-memory cache of blob descriptors, which makes the
    API overstate. ``drain``: seconds that a SIGTERM lets running requests end in; None: it does not.
    ``notifications``: URL that is told of pushes. ``relative_urls``: Location without scheme and host.
    """

    address: str = "127.0.0.1"
    port: int = 0
    storage: Path | None = None
    tls: ServerIdentity | None = None
    tokens: TokenTrust | None = None
    cache: bool = True
    delete: bool = True
    drain: float | None = None
    notifications: str = ""
    relative_urls: bool = True
    log_level: Literal["error", "warn", "info", "debug"] = "info"
    log_format: Literal["text", "json", "logstash"] = "text"
    access_log: bool = False


def configuration_text(
    settings: RegistrySettings, *, port: int, storage: Path, secret: str, read_only: bool
) -> str:
    """Return the registry's configuration; JSON, which is YAML.

    :param secret: the same over restarts: with a new one every open upload is lost
        (fact sheet of the registry, section 2).
    """
    http: dict[str, Any] = {
        "addr": socket_address(settings.address, port),
        "secret": secret,
        "relativeurls": settings.relative_urls,
        "debug": {
            # Any that is free: one that was chosen beforehand could be taken by the time it is used.
            "addr": socket_address(settings.address, 0),
            "prometheus": {"enabled": True, "path": "/metrics"},
        },
    }
    if settings.tls is not None:
        http["tls"] = {"certificate": str(settings.tls.certificate), "key": str(settings.tls.key)}
    if settings.drain is not None:
        http["draintimeout"] = f"{settings.drain:g}s"
    whole: dict[str, Any] = {
        "version": "0.1",
        "log": {
            "level": settings.log_level,
            "formatter": settings.log_format,
            "accesslog": {"disabled": not settings.access_log},
        },
        "storage": {
            "filesystem": {"rootdirectory": str(storage)},
            "delete": {"enabled": settings.delete},
            "maintenance": {"uploadpurging": {"enabled": False}, "readonly": {"enabled": read_only}},
        },
        "http": http,
        "health": {"storagedriver": {"enabled": False}},
    }
    if settings.cache:
        whole["storage"]["cache"] = {"blobdescriptor": "inmemory"}
    if settings.tokens is not None:
        whole["auth"] = {
            "token": {
                "realm": settings.tokens.realm,
                "service": settings.tokens.service,
                "issuer": settings.tokens.issuer,
                "rootcertbundle": str(settings.tokens.bundle),
            }
        }
    if settings.notifications:
        endpoint = {
            "name": "hil",
            "url": settings.notifications,
            "timeout": "1s",
            "threshold": 5,
            "backoff": "1s",
        }
        whole["notifications"] = {"endpoints": [endpoint]}
    return json.dumps(whole, indent=2) + "\n"


def socket_address(address: str, port: int) -> str:
    """Return ``address`` and ``port`` as one word, as URLs have it."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
