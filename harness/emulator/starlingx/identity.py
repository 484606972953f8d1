"""Keystone v3 as the clients of a system need it: version document, tokens, roles, catalogue."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid5

from harness.emulator.starlingx.database import Database

_NAMES: Final = UUID("6f6b9a3e-43f0-4c39-9d4a-0d4b9a0a35a1")
ADMIN: Final = "admin"
_DOMAIN: Final = {"id": "default", "name": "Default"}
#: User -> roles and project. What a deployed system has besides admin is inferred.
_ROLES: Final = {
    "admin": ("admin", "member", "reader"),
    "member": ("member", "reader"),
    "reader": ("reader",),
}
UNAUTHORIZED_TEXT: Final = "The request you have made requires authentication."
UNAUTHORIZED: Final = {"error": {"code": 401, "message": UNAUTHORIZED_TEXT, "title": "Unauthorized"}}
INTERFACES: Final = ("admin", "internal", "public")
#: Service type -> its name, and region -> its URL there.
Endpoints = Mapping[str, tuple[str, Mapping[str, str]]]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a token stands for."""

    user: str
    project: str
    roles: tuple[str, ...]


def moment(seconds: float) -> str:
    """Return a lab time as Keystone writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1e6):06d}Z"


class Identity:
    """The users, roles and tokens of one system. Tokens survive a restart, as Keystone's own do."""

    def __init__(
        self, database: Database, regions: tuple[str, ...], password: str, token_seconds: float
    ) -> None:
        self._database = database
        self._password = password
        self._seconds = token_seconds
        #: Token -> who it stands for, and until when; of those that were used since the service began.
        self._known: dict[str, tuple[Caller, float]] = {}
        self.regions = regions

    def versions(self, base: str) -> dict[str, Any]:
        """Return the version document; ``base``: of the service's URL, without ``/v3``."""
        return {
            "version": {
                "id": "v3.14",
                "status": "stable",
                "updated": "2020-04-07T00:00:00Z",
                "links": [{"rel": "self", "href": f"{base}/v3/"}],
                "media-types": [
                    {"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}
                ],
            }
        }

    def issue(self, request: Any, now: float, endpoints: Endpoints) -> tuple[str, dict[str, Any]] | None:
        """Return a new token and the body that describes it; None where the login is wrong.

        :raises ValueError: the request is no request for a token.
        """
        try:
            auth = request["auth"]
            user = auth["identity"]["password"]["user"]
            name, password = user["name"], user["password"]
            scope = auth.get("scope", {}).get("project", {}).get("name", ADMIN)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no request for a token: {error}") from error
        if name not in _ROLES or password != self._password or scope not in ("admin", "services"):
            return None
        expires = now + self._seconds
        row = self._database.add("tokens", user=name, project=scope, expires=expires)
        token = f"gAAAAAB{row['uuid'].replace('-', '')}"
        self._database.change("tokens", row["id"], token=token)
        return token, {"token": self._describe(name, scope, now, expires, endpoints)}

    def _describe(
        self, user: str, project: str, now: float, expires: float, endpoints: Endpoints
    ) -> dict[str, Any]:
        return {
            "methods": ["password"],
            "user": {"domain": _DOMAIN, "id": _id(f"user {user}"), "name": user, "password_expires_at": None},
            "audit_ids": [_id(f"audit {user} {now}")[:22]],
            "expires_at": moment(expires),
            "issued_at": moment(now),
            "project": {"domain": _DOMAIN, "id": _id(f"project {project}"), "name": project},
            "is_domain": False,
            "roles": [{"id": _id(f"role {role}"), "name": role} for role in _ROLES[user]],
            "catalog": [
                {
                    "id": _id(f"service {kind}"),
                    "type": kind,
                    "name": name,
                    "endpoints": [
                        {
                            "id": _id(f"endpoint {kind} {interface} {region}"),
                            "interface": interface,
                            "region": region,
                            "region_id": region,
                            "url": url,
                        }
                        for region, url in urls.items()
                        for interface in INTERFACES
                    ],
                }
                for kind, (name, urls) in endpoints.items()
            ],
        }

    def caller(self, token: str | None, now: float) -> Caller | None:
        """Return who ``token`` stands for; None where it is unknown or has expired."""
        if not token:
            return None
        known = self._known  # of this moment: what is revoked meanwhile goes with it
        if token not in known:
            row = self._database.one("tokens", token=token)
            if row is None:
                return None
            known[token] = Caller(row["user"], row["project"], _ROLES[row["user"]]), row["expires"]
        caller, expires = known[token]
        return caller if now < expires else None

    def revoke_all(self) -> None:
        """Make every token invalid, as a change of Keystone's keys does."""
        for row in self._database.all("tokens"):
            self._database.remove("tokens", row["id"])
        self._known = {}


def _id(text: str) -> str:
    return uuid5(_NAMES, text).hex
