"""A system over HTTP: Keystone, sysinv, fault manager, VIM and file server, and a controller's dcmanager."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from re import Pattern
from typing import TYPE_CHECKING, Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, Router, compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from harness.emulator.distributed_cloud.dcmanager_api import Abort, DcmanagerApi
from harness.emulator.distributed_cloud.proxy import Proxy
from harness.emulator.distributed_cloud.routes import DCMANAGER_ROUTES
from harness.emulator.distributed_cloud.vim_api import VimApi
from harness.emulator.starlingx.answers import SERVER_ERROR_PAGE, Refused, Unhandled
from harness.emulator.starlingx.identity import UNAUTHORIZED
from harness.emulator.starlingx.sysinv import Request, Sysinv
from harness.emulator.starlingx.system import System
from harness.emulator.starlingx.troubles import UNAVAILABLE_PAGE

if TYPE_CHECKING:
    from harness.emulator.distributed_cloud.cloud import Cloud

#: The services of a system, with the port that each has on a real one.
SERVICES: Final = {
    "identity": 5000,
    "platform": 6385,
    "files": 8080,
    "faultmanagement": 18002,
    "nfv": 4545,
    "dcmanager": 8119,
    "proxy": 26385,
}
#: Type -> name, of those that stand in the catalogue.
_CATALOGUE: Final = {
    "identity": "keystone",
    "platform": "sysinv",
    "faultmanagement": "fm",
    "nfv": "vim",
    "dcmanager": "dcmanager",
}
#: What stands behind the URL of a service in the catalogue.
_PATHS: Final = {"identity": "/v3", "platform": "/v1", "proxy": "/v1", "dcmanager": "/v1.0"}
#: The region in which a system controller's sysinv is the proxy before it.
_CENTRAL: Final = "SystemController"
_ROUTES: Final = (
    ("GET", "/v1/device_images", "images"),
    ("GET", "/v1/device_images/{ident}", "image"),
    ("POST", "/v1/device_images", "upload_image"),
    ("PATCH", "/v1/device_images/{uuid}", "change_image"),
    ("DELETE", "/v1/device_images/{uuid}", "delete_image"),
    ("GET", "/v1/device_image_state", "states"),
    ("GET", "/v1/device_image_state/{uuid}", "state"),
    ("GET", "/v1/device_labels", "labels"),
    ("GET", "/v1/device_labels/{uuid}", "label"),
    ("POST", "/v1/device_labels", "assign_labels"),
    ("DELETE", "/v1/device_labels/{uuid}", "remove_label"),
    ("PATCH", "/v1/device_labels/{uuid}", "change_label"),
    ("GET", "/v1/pci_devices", "devices"),
    ("GET", "/v1/pci_devices/{uuid}", "device"),
    ("PATCH", "/v1/pci_devices/{uuid}", "change_device"),
    ("GET", "/v1/ihosts", "hosts"),
    ("GET", "/v1/ihosts/{ident}", "host"),
    ("PATCH", "/v1/ihosts/{ident}", "change_host"),
    ("GET", "/v1/ihosts/{ident}/pci_devices", "host_devices"),
    ("POST", "/v1/ihosts/{ident}/device_image_update", "update_host"),
    ("POST", "/v1/ihosts/{ident}/device_image_update_abort", "abort_host"),
    ("GET", "/v1/registry_image", "registry_images"),
    ("DELETE", "/v1/registry_image", "delete_registry_image"),
    ("POST", "/v1/registry_image", "collect_garbage"),
    ("POST", "/v1/service_parameter/apply", "apply_parameters"),
)
_FAULT_ROUTES: Final = (("GET", "/v1/alarms", "alarms"),)
_NFV_ROUTES: Final = (
    ("GET", "/api/orchestration/fw-update/strategy", "strategy"),
    ("POST", "/api/orchestration/fw-update/strategy", "create"),
    ("DELETE", "/api/orchestration/fw-update/strategy", "delete"),
    ("POST", "/api/orchestration/fw-update/strategy/actions", "act"),
)

_LOG = logging.getLogger(__name__)
Endpoint = Callable[[HttpRequest], Awaitable[Response]]
#: Makes the API of a service: each of its methods answers a request (:class:`Sysinv`).
Api = Callable[["Site", System], Any]
Routes = tuple[tuple[str, str, str], ...]
#: Services whose requests are answered by the methods of an API.
_APIS: Final[Mapping[str, tuple[Routes, Api]]] = {
    "platform": (_ROUTES, lambda site, system: Sysinv(system)),
    "faultmanagement": (_FAULT_ROUTES, lambda site, system: Sysinv(system)),
    "nfv": (_NFV_ROUTES, lambda site, system: VimApi(system)),
    "dcmanager": (DCMANAGER_ROUTES, lambda site, system: DcmanagerApi(site.central())),
    "proxy": (_ROUTES, lambda site, system: Proxy(site.central())),
}


#: Those of which a GET is answered at once, without router and change of thread, where nobody else is at the
#: system.
_QUICK: Final = ("platform", "faultmanagement", "nfv")


def _nobody() -> None:
    """Of a site that does not say whether its system is up."""


@cache
def _app(service: str) -> Router:
    """Return the application of a service, one for all systems: the scope says whose request it is."""
    if service == "identity":
        return Router(
            routes=[
                *(Route(path, _of_site(Site.versions)) for path in ("/", "/v3", "/v3/")),
                Route("/v3/auth/tokens", _of_site(Site.issue), methods=["POST"]),
            ]
        )
    if service == "files":
        return Router(routes=[Route("/device_images/{file}", _of_site(Site.file))])
    routes, _ = _APIS[service]
    return Router(
        routes=[Route(path, _endpoint(service, name), methods=[method]) for method, path, name in routes]
    )


@cache
def _questions(service: str) -> list[tuple[Pattern[str], str]]:
    """Return the pattern of each path that a service answers a GET to, and the method that does."""
    return [(compile_path(path)[0], name) for method, path, name in _APIS[service][0] if method == "GET"]


def _found(service: str, path: str) -> tuple[str, dict[str, str]]:
    """Return the method that answers a GET, and what the path names; an empty one where there is none."""
    for pattern, name in _questions(service):
        if match := pattern.match(path):
            return name, match.groupdict()
    return "", {}


def _of_site(method: Callable[[Site, HttpRequest], Awaitable[Response]]) -> Endpoint:
    async def endpoint(http: HttpRequest) -> Response:
        return await method(http.scope["site"], http)

    return endpoint


def _endpoint(service: str, name: str) -> Endpoint:
    async def endpoint(http: HttpRequest) -> Response:
        body, form = await _read(http)
        site: Site = http.scope["site"]
        return await run_in_threadpool(site.answer, site.fetch, service, name, http, body, form)

    return endpoint


@dataclass(frozen=True, slots=True)
class Site:
    """One system and the URL of each of its services. ``fetch``: gives the system, brought up.

    ``cloud``: gives the distributed cloud of a system controller that has subclouds. ``up``: gives the system
    where it is up, and never waits.
    """

    fetch: Callable[[], System]
    urls: Mapping[str, str]
    cloud: Callable[[], Cloud] | None = None
    up: Callable[[], System | None] = _nobody

    def apps(self) -> dict[str, ASGIApp]:
        """Return the application of each service."""
        central = () if self.cloud is None else ("dcmanager", "proxy")
        services = ("identity", "platform", "faultmanagement", "nfv", "files", *central)
        return {service: partial(self._serve, service) for service in services}

    async def _serve(self, service: str, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET" and service in _QUICK:
            name, params = _found(service, scope["path"])
            http = HttpRequest({**scope, "path_params": params})
            answer = self.answer_at_once(service, name, http) if name else None
            if answer is not None:
                await answer(scope, receive, send)
                return
        await _app(service)({**scope, "site": self}, receive, send)

    def central(self) -> Cloud:
        """Return the distributed cloud; its routes are there where there is one."""
        assert self.cloud is not None
        return self.cloud()

    # -- Keystone -------------------------------------------------------------------------------

    async def versions(self, http: HttpRequest) -> Response:
        """Answer with the version document of Keystone."""
        system = await run_in_threadpool(self.fetch)
        return JSONResponse(system.identity.versions(self.urls["identity"]))

    async def issue(self, http: HttpRequest) -> Response:
        """Issue a token."""
        body = await http.body()
        system = await run_in_threadpool(self.fetch)
        endpoints = {
            kind: (name, {region: self._endpoint_url(kind, region) for region in system.identity.regions})
            for kind, name in _CATALOGUE.items()
            if kind in self.urls
        }
        try:
            request = json.loads(body)
            issued = await run_in_threadpool(system.identity.issue, request, system.clock.now(), endpoints)
        except ValueError as error:
            text = f"Could not parse the request body: {error}"
            return JSONResponse({"error": {"code": 400, "message": text, "title": "Bad Request"}}, 400)
        if issued is None:
            return self._unauthorized()
        token, described = issued
        return JSONResponse(described, 201, headers={"X-Subject-Token": token, "Vary": "X-Auth-Token"})

    def _endpoint_url(self, kind: str, region: str) -> str:
        service = "proxy" if (kind, region) == ("platform", _CENTRAL) and self.cloud else kind
        return self.urls[service] + _PATHS.get(service, "")

    def _unauthorized(self) -> Response:
        header = {"WWW-Authenticate": f'Keystone uri="{self.urls["identity"]}/v3"'}
        return JSONResponse(UNAUTHORIZED, 401, headers=header)

    # -- what APIs answer -----------------------------------------------------------------------

    def answer_at_once(self, service: str, name: str, http: HttpRequest) -> Response | None:
        """Answer a request that has no body; None where somebody would have to be waited for."""
        system = self.up()
        if system is None or not system.lock.acquire(blocking=False):
            return None
        try:
            if self.up() is not system:
                return None  # it is just being restarted
            return self.answer(lambda: system, service, name, http, b"", {})
        finally:
            system.lock.release()

    def answer(
        self,
        fetch: Callable[[], System],
        service: str,
        name: str,
        http: HttpRequest,
        body: bytes,
        form: dict[str, Any],
    ) -> Response:
        """Answer a request to the API of a service with its method of that name."""
        system = fetch()
        away = service != "nfv" and system.troubles.is_away(system.clock.now())
        if away or system.troubles.refuses():
            return PlainTextResponse(UNAVAILABLE_PAGE, 503, media_type="text/html")
        caller = system.identity.caller(http.headers.get("X-Auth-Token"), system.clock.now())
        if caller is None:
            return self._unauthorized()
        try:
            Sysinv.authorize(caller, http.method)
            upload = form.pop("file", None)
            filename, content = upload if upload is not None else (None, None)
            request = Request(
                caller,
                self.urls["platform"],
                dict(http.query_params),
                _json(body),
                form,
                filename,
                content,
            )
            with system.lock:
                status, answer = getattr(_APIS[service][1](self, system), name)(request, **http.path_params)
        except Abort as abort:
            if "application/json" in http.headers.get("Accept", ""):
                return JSONResponse(abort.body(), abort.status)
            return HTMLResponse(abort.page(), abort.status)
        except Refused as refusal:
            return JSONResponse(refusal.body(), refusal.status)
        except Unhandled as error:
            _LOG.info("%s: %s", system.name, error)
            return PlainTextResponse(SERVER_ERROR_PAGE, 500, media_type="text/html")
        return Response(status_code=status) if answer is None else JSONResponse(answer, status)

    # -- files ----------------------------------------------------------------------------------

    async def file(self, http: HttpRequest) -> Response:
        """Give out an image, as the web server of a controller does; it asks nobody who he is."""
        system = await run_in_threadpool(self.fetch)
        path = system.images_folder / http.path_params["file"]
        how = system.troubles.downloads
        if path.name.startswith(".") or not path.is_file() or how == "missing":
            return PlainTextResponse("Not Found", 404)
        content = path.read_bytes()
        given = content[: len(content) // 2] if how == "short" else content
        return Response(given, media_type="application/octet-stream")


async def _read(http: HttpRequest) -> tuple[bytes, dict[str, Any]]:
    """Return the body, or the fields of a multipart one: text, and of files their name and content."""
    if not http.headers.get("Content-Type", "").startswith("multipart/form-data"):
        return await http.body(), {}
    fields: dict[str, Any] = {}
    async with http.form(max_part_size=1 << 24) as form:
        for key, value in form.items():
            fields[key] = (value.filename, await value.read()) if isinstance(value, UploadFile) else value
    if isinstance(fields.get("file"), str):  # a part without a file name
        fields["file"] = ("", fields["file"].encode())
    return b"", fields


def _json(body: bytes) -> Any:
    if not body.strip():
        return None
    try:
        return json.loads(body)
    except ValueError as error:
        raise Refused(400, f"Invalid JSON in the body: {error}") from error
