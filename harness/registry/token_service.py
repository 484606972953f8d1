"""A token service that speaks Docker's protocol and can be restarted, rotated, slowed and made to refuse."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from harness.errors import ConfigurationError, DeadlineError
from harness.registry.configuration import TokenTrust, socket_address
from harness.registry.serving import Serving
from harness.registry.tls import ServerIdentity
from harness.registry.tokens import Access, KeyForm, KeyGeneration, KeyRing, claims

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

#: StarlingX's (fact sheet, section 7): 15 minutes.
LIFETIME = 900.0
_ALL = ("*",)


@dataclass(frozen=True, slots=True)
class Account:
    """A user: which repositories (patterns) it may do what in. The action ``*`` is any."""

    password: str = field(repr=False)
    repositories: tuple[str, ...] = _ALL
    actions: tuple[str, ...] = _ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How the service answers; exchanged as a whole, so that no request sees half of a change.

    ``lifetime``: of tokens, in seconds. ``skew``: how far its clock is ahead. ``delay``: seconds before
    each answer. ``deny``: status that requests are refused with; 0: none. ``deny_next``: how many are;
    -1: all. ``refresh_tokens_last``: over a restart of the service; StarlingX's do not. ``token_member``:
    whether the answer has ``token`` beside ``access_token``; StarlingX's has not.
    """

    lifetime: float = LIFETIME
    skew: float = 0.0
    delay: float = 0.0
    deny: int = 0
    deny_next: int = -1
    key_form: KeyForm = "x5c"
    audience_as_list: bool = False
    issuer: str = "bird-token-server"
    service: str = "registry.local:9001"
    refresh_tokens: bool = True
    refresh_tokens_last: bool = False
    token_member: bool = True


@dataclass(frozen=True, slots=True)
class Issued:
    """One request and what came of it; the token itself is not kept.

    ``time``: seconds since the epoch by the harness's clock. ``generation``: of the key that signed; 0
    where nothing was issued. ``expires``: the token's end, by the service's clock.
    """

    time: float
    method: str
    grant: str
    account: str
    asked: tuple[str, ...]
    status: int
    granted: tuple[Access, ...] = ()
    token_id: str = ""
    generation: int = 0
    expires: float = 0.0
    user_agent: str = ""


class TokenService:
    """The service, in a thread of this process. It keeps its port over restarts.

    :param keys: what it signs with is the generation that is installed when it starts.
    :param accounts: user name -> account. :param public: repositories (patterns) that anybody may pull.
    :param port: 0 chooses a free one.
    """

    def __init__(
        self,
        keys: KeyRing,
        accounts: Mapping[str, Account],
        *,
        public: Sequence[str] = (),
        behaviour: Behaviour | None = None,
        tls: ServerIdentity | None = None,
        address: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.keys = keys
        self.accounts = dict(accounts)
        self.public = tuple(public)
        #: Takes effect at the next start.
        self.tls = tls
        self._behaviour = behaviour or Behaviour()
        self._address = address
        self._port = port
        self._generation: KeyGeneration | None = None
        self._serving: Serving | None = None
        self._refresh_tokens: dict[str, str] = {}
        self._issued: list[Issued] = []
        self._changed = threading.Condition()
        self._starts = 0

    def __enter__(self) -> TokenService:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- start and end ------------------------------------------------------------------------------

    @property
    def realm(self) -> str:
        """The URL at which clients get a token; known once it has been started."""
        scheme = "https" if self.tls else "http"
        return f"{scheme}://{socket_address(self._address, self._port)}/token/"

    @property
    def runs(self) -> bool:
        """Whether it takes requests."""
        return self._serving is not None

    @property
    def starts(self) -> int:
        """How often it was started."""
        return self._starts

    @property
    def generation(self) -> KeyGeneration:
        """What it signs with. :raises ConfigurationError: it was never started."""
        if self._generation is None:
            raise ConfigurationError("The token service has not read a key yet; start it first.")
        return self._generation

    def trust(self, *, realm: str = "") -> TokenTrust:
        """Return what a registry needs to take this service's tokens."""
        chosen = self._behaviour
        return TokenTrust(
            realm=realm or self.realm,
            bundle=Path(self.keys.bundle),
            service=chosen.service,
            issuer=chosen.issuer,
        )

    def start(self, *, generation: KeyGeneration | None = None, deadline: float = 10.0) -> None:
        """Read the key, listen, and return when requests are taken.

        :param generation: sign with this one; by default with the installed one.
        :raises InfrastructureError: its port is taken. :raises DeadlineError: it does not come up.
        """
        if self._serving is not None:
            raise ConfigurationError("The token service runs already.")
        if not self._behaviour.refresh_tokens_last:
            self.forget_refresh_tokens()
        self._generation = generation or self.keys.installed
        self._serving = Serving(self._application(), self._address, self._port, tls=self.tls)
        self._port = self._serving.port
        self._serving.start(deadline)
        self._starts += 1

    def stop(self) -> None:
        """End it after what it answers now; nothing where it does not run."""
        self._end(abort=False)

    def kill(self) -> None:
        """End it at once: connections break in the middle of an answer."""
        self._end(abort=True)

    def _end(self, *, abort: bool) -> None:
        if self._serving is not None:
            self._serving.stop(abort=abort)
            self._serving = None

    def restart(self, *, generation: KeyGeneration | None = None, abort: bool = False) -> None:
        """End it and start it, with the installed generation or the one given."""
        self._end(abort=abort)
        self.start(generation=generation)

    def close(self) -> None:
        """End it; may be called twice."""
        self.kill()

    # -- behaviour ----------------------------------------------------------------------------------

    @property
    def behaviour(self) -> Behaviour:
        """How it answers now."""
        return self._behaviour

    def behave(self, **changes: Any) -> Behaviour:
        """Change members of :class:`Behaviour` at once; return what was before, to go back to."""
        with self._changed:
            before = self._behaviour
            self._behaviour = replace(before, **changes)
        return before

    def forget_refresh_tokens(self) -> None:
        """Take no refresh token that was issued so far."""
        self._refresh_tokens.clear()

    def mint(
        self, account: str, scopes: Sequence[str], *, generation: KeyGeneration | None = None, **changes: Any
    ) -> str:
        """Return a token without a request, whatever the service does; it is not in the log.

        :param generation: sign with this one; by default as the service does.
        :param changes: claims that differ, such as ``exp``.
        """
        access = [found for scope in scopes if (found := Access.parse(scope)) is not None]
        made = self._claims(account, access, self._behaviour) | changes
        return (generation or self.generation).sign(made, self._behaviour.key_form)

    # -- what it did --------------------------------------------------------------------------------

    def issued(self, since: int = 0) -> tuple[Issued, ...]:
        """Return every request from the ``since``-th on, in order."""
        with self._changed:
            return tuple(self._issued[since:])

    def wait_for(self, wanted: Callable[[Issued], bool], *, since: int = 0, deadline: float = 10.0) -> Issued:
        """Return the first request that is ``wanted``. :raises DeadlineError: none comes in time."""

        def found() -> Issued | None:
            return next(filter(wanted, self._issued[since:]), None)

        with self._changed:
            seen = self._changed.wait_for(found, deadline)
        if seen is None:
            raise DeadlineError(
                f"Waited {deadline:g} s for a request to the token service; it has had {len(self._issued)}."
            )
        return seen

    # -- answering ----------------------------------------------------------------------------------

    def _application(self) -> Starlette:
        from starlette.applications import Starlette
        from starlette.routing import Route

        routes = [Route(path, self._answer, methods=["GET", "POST"]) for path in ("/token", "/token/")]
        return Starlette(routes=routes)

    async def _answer(self, request: Request) -> Response:
        import asyncio

        chosen = self._next_behaviour()
        asked = await _asked(request)
        if chosen.delay > 0:
            await asyncio.sleep(chosen.delay)
        status, body, issued = self._decided(asked, chosen)
        with self._changed:
            self._issued.append(issued)
            self._changed.notify_all()
        return _response(status, body)

    def _next_behaviour(self) -> Behaviour:
        """Return how this request is answered; a limited refusal counts down."""
        with self._changed:
            now = self._behaviour
            if now.deny and now.deny_next > 0:
                left = now.deny_next - 1
                self._behaviour = replace(now, deny_next=left if left else -1, deny=now.deny if left else 0)
            return now

    def _decided(self, asked: _Asked, chosen: Behaviour) -> tuple[int, dict[str, Any], Issued]:
        scopes = tuple(asked.scopes)
        account = asked.account
        issued = Issued(
            time.time(), asked.method, asked.grant, account or "", scopes, 0, user_agent=asked.user_agent
        )
        if chosen.deny:
            return chosen.deny, _errors("DENIED", "refused by the lab"), replace(issued, status=chosen.deny)
        if asked.grant == "refresh_token":
            account = self._refresh_tokens.get(asked.secret)
            known = account is not None
            issued = replace(issued, account=account or "")
        elif asked.grant in ("password", "basic"):
            entry = self.accounts.get(account or "")
            known = entry is not None and hmac.compare_digest(
                entry.password.encode(), asked.secret.encode(errors="replace")
            )
        elif asked.grant == "anonymous":
            known = True
        else:
            return 400, {"error": "unsupported_grant_type"}, replace(issued, status=400)
        if not known:
            # Without a detail, an engine takes this for a passing trouble and tries for 50 seconds.
            refusal = _errors("UNAUTHORIZED", "authentication required", "user or password is wrong")
            return 401, refusal, replace(issued, status=401)
        granted = self._granted(account, scopes)
        made = self._claims(account or "", granted, chosen)
        issued = replace(
            issued,
            status=200,
            granted=granted,
            token_id=made["jti"],
            generation=self.generation.number,
            expires=made["exp"],
        )
        return 200, self._body(asked, account, made, chosen), issued

    def _body(
        self, asked: _Asked, account: str | None, made: Mapping[str, Any], chosen: Behaviour
    ) -> dict[str, Any]:
        token = self.generation.sign(made, chosen.key_form)
        since = datetime.fromtimestamp(made["iat"], UTC)
        body: dict[str, Any] = {
            "access_token": token,
            "expires_in": int(chosen.lifetime),
            "issued_at": since.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        if chosen.token_member:
            body["token"] = token
        if asked.method == "POST":
            body["scope"] = " ".join(asked.scopes)
        if asked.offline and chosen.refresh_tokens and account is not None:
            refresh = asked.secret if asked.grant == "refresh_token" else secrets.token_urlsafe(24)
            self._refresh_tokens[refresh] = account
            body["refresh_token"] = refresh
        return body

    def _claims(self, account: str, access: Sequence[Access], chosen: Behaviour) -> dict[str, Any]:
        return claims(
            issuer=chosen.issuer,
            service=chosen.service,
            subject=account,
            access=access,
            lifetime=chosen.lifetime,
            skew=chosen.skew,
            audience_as_list=chosen.audience_as_list,
        )

    def _granted(self, account: str | None, scopes: Sequence[str]) -> tuple[Access, ...]:
        """Return what of ``scopes`` the account may have; the rest is left out, as the protocol has it."""
        entry = self.accounts.get(account) if account else None
        granted = []
        for scope in scopes:
            asked = Access.parse(scope)
            if asked is None:
                continue
            allowed = set()
            if any(fnmatchcase(asked.name, pattern) for pattern in self.public):
                allowed |= {"pull"}
            if entry and any(fnmatchcase(asked.name, pattern) for pattern in entry.repositories):
                allowed |= set(entry.actions)
            actions = tuple(act for act in asked.actions if act in allowed or "*" in allowed)
            granted.append(Access(asked.kind, asked.name, actions))
        return tuple(granted)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request for a token, by GET or POST alike."""

    method: str
    grant: str
    account: str | None
    secret: str = field(repr=False)
    scopes: tuple[str, ...]
    offline: bool
    user_agent: str


async def _asked(request: Request) -> _Asked:
    agent = request.headers.get("user-agent", "")
    if request.method == "POST":
        form = dict(parse_qsl((await request.body()).decode(errors="replace")))
        grant = form.get("grant_type", "")
        return _Asked(
            "POST",
            grant,
            form.get("username"),
            form.get("refresh_token" if grant == "refresh_token" else "password", ""),
            tuple(form.get("scope", "").split()),
            form.get("access_type") == "offline" or grant == "refresh_token",
            agent,
        )
    query = request.query_params
    scopes = tuple(scope for given in query.getlist("scope") for scope in given.split())
    offline = query.get("offline_token", "").lower() in ("true", "1")
    user, password = _basic(request.headers.get("authorization", ""))
    if user is None:
        return _Asked(request.method, "anonymous", None, "", scopes, offline, agent)
    return _Asked(request.method, "basic", user, password, scopes, offline, agent)


def _basic(header: str) -> tuple[str | None, str]:
    """Return user and password of a Basic header; no user where there is none."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None, ""
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        return "", ""
    return user, password


def _errors(code: str, message: str, detail: str | None = None) -> dict[str, Any]:
    return {"errors": [{"code": code, "message": message, "detail": detail}]}


def _response(status: int, body: Mapping[str, Any]) -> Response:
    from starlette.responses import Response

    headers = {"WWW-Authenticate": 'Basic realm="hil"'} if status == 401 else {}
    return Response(json.dumps(body), status, headers, media_type="application/json")
