"""Serves the page on this machine's loopback, and pushes what has changed; elsewhere only with a token."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from harness.dashboard.state import State

_TEMPLATES: Final = Path(__file__).with_name("templates")
#: Seconds from one look at the histories to the next, while anybody watches.
LOOK_SECONDS: Final = 1.0
_COOKIE: Final = "hil-dashboard"
_POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
Endpoint = Callable[[Request], Awaitable[Response]]


class Watch:
    """Looks at the state while anybody watches, once for all of them."""

    def __init__(self, state: State, seconds: float = LOOK_SECONDS) -> None:
        self._state = state
        self._seconds = seconds
        self._lock = asyncio.Lock()
        self._seen: dict[str, Any] = {}
        self._at = float("-inf")

    async def look(self) -> dict[str, Any]:
        """Return the state, at most a look's pause old."""
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if now - self._at >= self._seconds:
                self._seen = await run_in_threadpool(self._state.look)
                self._at = now
            return self._seen

    async def changes(self) -> AsyncIterator[str]:
        """Yield the state now and whenever it is another one, as server-sent events."""
        last = None
        while True:
            seen = await self.look()
            if seen != last:
                last = seen
                yield f"data: {json.dumps(seen)}\n\n"
            else:
                yield ": still here\n\n"
            await asyncio.sleep(self._seconds)


def dashboard(state: State, *, token: str = "", seconds: float = LOOK_SECONDS) -> Starlette:
    """Return the application. ``token``: who has none gets nothing; empty: everybody may look.

    A token comes in the query of the first request, and is a cookie from then on.
    """
    watch = Watch(state, seconds)

    async def page(request: Request) -> Response:
        nonce = secrets.token_urlsafe(16)
        text = (_TEMPLATES / "dashboard.html").read_text("utf-8").replace("NONCE", nonce)
        headers = {"Content-Security-Policy": _POLICY.format(nonce=nonce), "Cache-Control": "no-store"}
        return HTMLResponse(text, headers=headers | {"Referrer-Policy": "no-referrer"})

    async def state_json(request: Request) -> Response:
        return JSONResponse(await watch.look(), headers={"Cache-Control": "no-store"})

    async def events(request: Request) -> Response:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(watch.changes(), media_type="text/event-stream", headers=headers)

    routes = {"/": page, "/state.json": state_json, "/events": events}
    return Starlette(routes=[Route(path, _guarded(act, token)) for path, act in routes.items()])


def _guarded(act: Endpoint, token: str) -> Endpoint:
    async def guarded(request: Request) -> Response:
        if not token:
            # A page elsewhere that has its name lead here would otherwise be let in by the browser.
            if not is_loopback(request.url.hostname or ""):
                return PlainTextResponse("This page is for this machine's own names alone.", 403)
            return await act(request)
        given = request.query_params.get("token") or request.cookies.get(_COOKIE, "")
        if not hmac.compare_digest(given.encode(), token.encode()):
            return PlainTextResponse("The link has no token, or not the right one.", 403)
        answer = await act(request)
        answer.set_cookie(_COOKIE, token, httponly=True, samesite="strict")
        return answer

    return guarded


def is_loopback(address: str) -> bool:
    """Return whether only this machine reaches ``address``."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def link(address: str, port: int, token: str) -> str:
    """Return the URL that opens the page."""
    named = f"[{address}]" if ":" in address else address
    return f"http://{named}:{port}/" + (f"?token={quote(token)}" if token else "")
