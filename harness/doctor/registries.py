"""Checks of a registry: who answers, whether the login is taken, its store and its service on their host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from harness.doctor.model import Part
from harness.errors import BlockedError, HarnessError, UnreachableError
from harness.health.checks import Check, bad, failed, ok
from harness.hosts.connect import connect
from harness.lab.real_registry import manager_of
from harness.registry.managers import Hands
from harness.registry.wire import Challenge, Endpoint, Login, Wire

if TYPE_CHECKING:
    from harness.hosts.protocol import Host
    from harness.inventory.registries import Keeper, Registry
    from harness.lab.running import RunningLab

_DEADLINE: Final = 15.0
_BASE: Final = "/v2/"


def registry(lab: RunningLab, entry: Registry) -> Part:
    """Return what is found of a registry; an emulated one is started when a scenario pushes to it."""
    if entry.emulated is not None:
        kind = "a process" if entry.emulated.service == "process" else "a container"
        return Part("registry", entry.name, (ok("service", f"{kind}, started when it is pushed to"),))
    try:
        checks = [*_api(entry), *_on_its_host(lab, entry)]
    except HarnessError as error:
        checks = [failed("credentials", error)]
    return Part("registry", entry.name, tuple(checks))


def _api(entry: Registry) -> Iterator[Check]:
    endpoint = Endpoint(str(entry.url).rstrip("/"), entry.ca_file)
    tls = "TLS" if endpoint.url.startswith("https:") else "no TLS"
    try:
        with Wire(endpoint) as wire, wire.get(_BASE, deadline=_DEADLINE) as answer:
            status, challenge = answer.status, answer.headers.get("www-authenticate", "")
    except HarnessError as error:
        yield failed("reachable" if isinstance(error, UnreachableError) else "tls", error)
        return
    yield ok("reachable", f"{endpoint.url}, {tls}")
    if status not in (200, 401):
        hint = "`url` of the registry in the inventory leads to no registry of API v2."
        yield bad("api", f"GET {_BASE} is answered by {status}", hint)
        return
    yield ok("api", "API v2")
    yield _login(entry, endpoint, status, challenge)


def _login(entry: Registry, endpoint: Endpoint, status: int, challenge: str) -> Check:
    if status == 200:
        return ok("login", "it asks for no login")
    asked = Challenge.parse(challenge) if challenge else None
    by = f"a token of {asked.parameters.get('realm')}" if asked and asked.scheme == "bearer" else "a password"
    if entry.user is None or entry.credentials is None:
        return bad("login", f"it asks for {by}", "Give it `user` and `credentials` in the inventory.")
    from harness.inventory.credentials import resolve
    from harness.record.redaction import register_secret

    password = resolve(entry.credentials).password or ""
    register_secret(password)
    login = Login(entry.user, password, ca_file=entry.ca_file)
    try:
        with Wire(endpoint, login) as wire, wire.get(_BASE, deadline=_DEADLINE) as answer:
            status = answer.status
    except HarnessError as error:
        return failed("login", error)
    if status != 200:
        return bad(
            "login",
            f"{entry.user} is refused ({status}) with {by}",
            "Correct `user` and `credentials` in the inventory.",
        )
    return ok("login", f"{entry.user}, with {by}")


def _on_its_host(lab: RunningLab, entry: Registry) -> Iterator[Check]:
    if entry.host is None:
        hint = "Give it `host`, `service` and `storage` in the inventory."
        yield ok("service", "cannot be restarted, nor its store read: its host is not named", hint)
        return
    try:
        host = connect(lab.entry.host(entry.host), lab.access(entry.host))
    except HarnessError as error:
        yield failed("host", error)
        return
    try:
        if entry.storage is not None:
            yield _store(host, entry.storage)
        if entry.service is not None:
            yield _service(host, entry.service)
    except HarnessError as error:
        yield failed("host", error)
    finally:
        host.close()


def _store(host: Host, storage: str) -> Check:
    try:
        host.list(storage, deadline=_DEADLINE)
    except OSError as error:
        hint = "Correct `storage` of the registry; may the login read it?"
        return bad("storage", f"{storage} on {host.name}: {error.strerror or error}", hint)
    return ok("storage", f"its store is {storage} on {host.name}")


def _service(host: Host, keeper: Keeper) -> Check:
    name = keeper.systemd or keeper.starlingx
    hands = Hands(host, ("sudo", "-n") if keeper.sudo else ())
    try:
        pid = manager_of(hands, keeper).pid()
    except BlockedError as error:
        return failed("service", error)
    if pid is None:
        hint = "Start it on the host, or correct `service` of the registry in the inventory."
        return bad("service", f"{name} does not run on {host.name}", hint)
    return _permitted(host, hands, f"{name} runs on {host.name} (process {pid})")


def _permitted(host: Host, hands: Hands, finding: str) -> Check:
    """Return whether the service may be restarted. `true`, as root, is what is tried; it changes nothing."""
    if host.run(["id", "-u"], deadline=_DEADLINE).stdout.strip() == "0":
        return ok("service", f"{finding}, and may be restarted")
    if not hands.prefix:
        return bad(
            "service", f"{finding}; the login is not root's", "Give the registry's `service` `sudo: true`."
        )
    tried = hands.run(["true"], "see whether sudo asks for a password", deadline=_DEADLINE)
    if tried.exit_code != 0:
        said = tried.text.strip().rpartition("\n")[2]
        return bad(
            "service", f"{finding}; {said}", "Let sudo ask for no password there: NOPASSWD in sudoers."
        )
    return ok("service", f"{finding}, and may be restarted by sudo")
