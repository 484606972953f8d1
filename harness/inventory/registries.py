"""What an inventory says of a container registry: one that the lab starts, or a real one and its keeper."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, StrictBool, model_validator

from harness.inventory.entries import Credential, Entry, EntryError, Named
from harness.inventory.forms import FilePath, Name, RemotePath, Url, User


class EmulatedRegistry(Entry):
    """A real registry that the lab starts on this machine, with a token service of its own.

    ``service``: Debian's program, or the container image of the project. ``tokens: false``: everybody may
    do everything. ``cache``: of blob descriptors, which makes its API overstate. ``drain``: seconds in
    which a SIGTERM lets running requests end; without it they break. ``defects``: what it does to every
    push (`hil defects list --kind registry`).
    """

    service: Literal["process", "container"] = "process"
    tls: StrictBool = True
    tokens: StrictBool = True
    cache: StrictBool = True
    delete: StrictBool = True
    drain: Annotated[float, Field(gt=0, le=600)] | None = None
    defects: tuple[str, ...] = ()


class Keeper(Entry):
    """What keeps a real registry running on its host: exactly one of ``systemd`` and ``starlingx``.

    ``systemd``: its unit. ``starlingx``: its name in the service manager. ``config``: where a unit's
    configuration is. ``sudo``: its commands need root, and the login is not root's.
    """

    systemd: Name | None = None
    starlingx: Name | None = None
    config: RemotePath = "/etc/docker/registry/config.yml"
    sudo: StrictBool = False

    @model_validator(mode="after")
    def _exactly_one(self) -> Keeper:
        given = [way for way in ("systemd", "starlingx") if getattr(self, way)]
        if len(given) != 1:
            raise ValueError(
                "give exactly one of systemd (a unit) and starlingx (a service of its service manager); "
                f"it has {' and '.join(given) or 'none'}"
            )
        return self


class Registry(Named):
    """A container registry: one that the lab starts, or a real one at a URL.

    Of a real one, ``host`` is the host of the lab that it runs on; there, ``service`` keeps it and
    ``storage`` is its store. ``proxy``: the URL by which clients reach a proxy of the harness instead of
    the registry, where the lab lets its name lead to this machine. ``push_client``: what scenarios push
    through that name no client (`hil sweep clients`).
    """

    push_client: str = "verified-push"
    emulated: EmulatedRegistry | None = None
    url: Url | None = None
    ca_file: FilePath | None = None
    user: User | None = None
    credentials: Credential | None = None
    host: str | None = None
    service: Keeper | None = None
    storage: RemotePath | None = None
    proxy: Url | None = None

    @model_validator(mode="after")
    def _emulated_or_real(self) -> Registry:
        if (self.emulated is None) == (self.url is None):
            raise ValueError("give exactly one of emulated and url")
        real = ("ca_file", "user", "credentials", "host", "service", "storage", "proxy")
        for key in real if self.emulated else ():
            if getattr(self, key) is not None:
                message = "belongs to a real registry; an emulated one has its settings below 'emulated'"
                raise EntryError(message, key)
        return self

    @model_validator(mode="after")
    def _urls_lead_to_services(self) -> Registry:
        for key, url in (("url", self.url), ("proxy", self.proxy)):
            parts = urlsplit(url or "")
            if parts.path not in ("", "/") or parts.query or parts.fragment:
                raise EntryError("is the URL of the service itself, without a path", key)
        if self.proxy is not None and self.proxy.rstrip("/") == str(self.url).rstrip("/"):
            raise EntryError("is the registry's own URL: a proxy there would ask itself", "proxy")
        return self

    @model_validator(mode="after")
    def _login_is_whole(self) -> Registry:
        if (self.user is None) != (self.credentials is None):
            missing, given = ("credentials", "user") if self.user else ("user", "credentials")
            raise EntryError(f"needs {missing!r} beside it: a registry takes both or neither", given)
        if self.credentials and (self.credentials.key_file or self.credentials.agent):
            message = "a registry asks for a password; refer to one with env or file"
            raise EntryError(message, "credentials")
        return self

    @model_validator(mode="after")
    def _known_on_its_host(self) -> Registry:
        for key in ("service", "storage"):
            if getattr(self, key) is not None and self.host is None:
                raise EntryError("needs 'host': the host of the lab that the registry runs on", key)
        return self
