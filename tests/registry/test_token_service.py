"""Docker's token protocol, as a client of our own sees it; and the disturbances of the service."""

import base64
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.x509 import load_der_x509_certificate

from harness.errors import ConfigurationError, DeadlineError, InfrastructureError
from harness.registry.ports import prove_free
from harness.registry.tls import LabAuthority
from harness.registry.token_service import Account, Issued, TokenService
from harness.registry.tokens import Access, Algorithm, KeyRing

ACCOUNTS = {
    "sysinv": Account("s3cret"),
    "app": Account("other", repositories=("app/*",), actions=("pull", "push")),
}
SCOPE = "repository:a/b:pull,push"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[TokenService]:
    with TokenService(KeyRing(tmp_path), ACCOUNTS, public=["public/*"]) as made:
        made.start()
        yield made


def ask(
    service: TokenService,
    query: list[tuple[str, str]] | None = None,
    form: Mapping[str, str] | None = None,
    login: tuple[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:
    """Send one request; return status and document."""
    realm = urlsplit(service.realm)
    connection = http.client.HTTPConnection(str(realm.hostname), realm.port, timeout=20)
    headers = {}
    if login:
        headers["Authorization"] = "Basic " + base64.b64encode(":".join(login).encode()).decode()
    try:
        if form is None:
            connection.request("GET", f"{realm.path}?{urlencode(query or [])}", headers=headers)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            connection.request("POST", realm.path, urlencode(form), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def claims_of(token: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(decoded(token.split(".")[1]))
    return found


def access_of(answer: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    return [(each["name"], each["actions"]) for each in claims_of(answer["access_token"])["access"]]


# -- protocol ----------------------------------------------------------------------------------------------


def test_get_with_basic_and_several_scopes(service: TokenService) -> None:
    query = [("service", "registry.local:9001"), ("account", "sysinv"), ("scope", SCOPE)]
    query.append(("scope", "repository:host:5000/c:pull registry:catalog:*"))
    status, answer = ask(service, query, login=("sysinv", "s3cret"))
    assert status == 200
    assert answer["token"] == answer["access_token"]
    assert answer["expires_in"] == 900
    assert "refresh_token" not in answer
    claims = claims_of(answer["token"])
    assert (claims["iss"], claims["sub"], claims["aud"]) == (
        "bird-token-server",
        "sysinv",
        "registry.local:9001",
    )
    assert claims["exp"] - claims["nbf"] == 900
    assert claims["iat"] == pytest.approx(time.time(), abs=10)
    assert claims["access"] == [
        {"type": "repository", "name": "a/b", "actions": ["pull", "push"]},
        {"type": "repository", "name": "host:5000/c", "actions": ["pull"]},
        {"type": "registry", "name": "catalog", "actions": ["*"]},
    ]


def test_post_with_password_and_then_with_the_refresh_token(service: TokenService) -> None:
    form = {
        "grant_type": "password",
        "username": "sysinv",
        "password": "s3cret",
        "service": "registry.local:9001",
        "client_id": "hil",
        "access_type": "offline",
        "scope": f"{SCOPE} repository:c:pull",
    }
    status, answer = ask(service, form=form)
    assert status == 200
    assert answer["scope"] == f"{SCOPE} repository:c:pull"
    refresh = answer["refresh_token"]
    again = {"grant_type": "refresh_token", "refresh_token": refresh, "scope": SCOPE}
    status, second = ask(service, form=again)
    assert (status, second["refresh_token"]) == (200, refresh)
    assert claims_of(second["access_token"])["sub"] == "sysinv"
    assert claims_of(second["access_token"])["jti"] != claims_of(answer["access_token"])["jti"]
    service.behave(refresh_tokens_last=True)
    service.restart()
    assert ask(service, form=again)[0] == 200
    # StarlingX keeps them in memory alone.
    service.behave(refresh_tokens_last=False)
    service.restart()
    assert ask(service, form=again)[0] == 401


def test_get_for_an_offline_token(service: TokenService) -> None:
    query = [("scope", SCOPE), ("offline_token", "true")]
    assert ask(service, query, login=("sysinv", "s3cret"))[1]["refresh_token"]
    assert "refresh_token" not in ask(service, query)[1], "nobody in particular has none"


@pytest.mark.parametrize(
    "asked",
    [
        {"query": [("scope", SCOPE)], "login": ("sysinv", "wrong")},
        {"query": [("scope", SCOPE)], "login": ("nobody", "s3cret")},
        {"form": {"grant_type": "password", "username": "sysinv", "password": ""}},
        {"form": {"grant_type": "password"}},
        {"form": {"grant_type": "refresh_token", "refresh_token": "made-up"}},
    ],
)
def test_wrong_credentials_are_401(service: TokenService, asked: dict[str, Any]) -> None:
    status, answer = ask(service, **asked)
    assert status == 401
    assert answer["errors"][0]["code"] == "UNAUTHORIZED"
    assert service.issued()[-1].status == 401
    assert service.issued()[-1].granted == ()


def test_another_grant_is_400(service: TokenService) -> None:
    assert ask(service, form={"grant_type": "magic"})[0] == 400


def test_scopes_are_cut_to_what_the_account_may(service: TokenService) -> None:
    query = [("scope", f"{SCOPE} repository:app/x:pull,push,delete repository:public/x:pull,push")]
    assert access_of(ask(service, query, login=("app", "other"))[1]) == [
        ("a/b", []),
        ("app/x", ["pull", "push"]),
        ("public/x", ["pull"]),
    ]
    assert access_of(ask(service, query)[1]) == [("a/b", []), ("app/x", []), ("public/x", ["pull"])]


@pytest.mark.parametrize("scope", ["nonsense", "repository:a/b", ":a:pull", "repository::pull", ""])
def test_what_is_no_scope_gives_no_access(service: TokenService, scope: str) -> None:
    status, answer = ask(service, [("scope", scope)], login=("sysinv", "s3cret"))
    assert (status, access_of(answer)) == (200, [])


def test_starlingx_has_no_token_member(service: TokenService) -> None:
    service.behave(token_member=False)
    answer = ask(service, [("scope", SCOPE)], login=("sysinv", "s3cret"))[1]
    assert "token" not in answer
    assert answer["access_token"]


@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "RS256"])
def test_signatures_hold_for_anybody_who_checks(tmp_path: Path, algorithm: Algorithm) -> None:
    service = TokenService(KeyRing(tmp_path, algorithm), ACCOUNTS)
    service.start()
    service.close()
    header, body, signature = service.mint("sysinv", [SCOPE]).split(".")
    said = json.loads(decoded(header))
    assert said["alg"] == algorithm
    certificate = load_der_x509_certificate(base64.b64decode(said["x5c"][0]))
    key, text, raw = certificate.public_key(), f"{header}.{body}".encode(), decoded(signature)
    if isinstance(key, rsa.RSAPublicKey):
        key.verify(raw, text, padding.PKCS1v15(), hashes.SHA256())
        return
    assert isinstance(key, ec.EllipticCurvePublicKey)
    size = key.key_size // 8
    assert len(raw) == 2 * size
    both = encode_dss_signature(int.from_bytes(raw[:size], "big"), int.from_bytes(raw[size:], "big"))
    key.verify(both, text, ec.ECDSA(hashes.SHA256() if size == 32 else hashes.SHA384()))


# -- disturbances ------------------------------------------------------------------------------------------


def test_denials_are_counted_or_last(service: TokenService) -> None:
    login = ("sysinv", "s3cret")
    before = service.behave(deny=503, deny_next=2)
    assert [ask(service, login=login)[0] for _ in range(3)] == [503, 503, 200]
    service.behave(deny=403, deny_next=-1)
    assert [ask(service, login=login)[0] for _ in range(3)] == [403, 403, 403]
    service.behave(deny=before.deny)
    assert ask(service, login=login)[0] == 200
    assert [each.status for each in service.issued()] == [503, 503, 200, 403, 403, 403, 200]


def test_clock_and_lifetime(service: TokenService) -> None:
    service.behave(skew=3600.0, lifetime=30.0)
    answer = ask(service, [("scope", SCOPE)], login=("sysinv", "s3cret"))[1]
    claims = claims_of(answer["access_token"])
    assert claims["iat"] == pytest.approx(time.time() + 3600, abs=10)
    assert (claims["exp"] - claims["iat"], answer["expires_in"]) == (30, 30)


def test_a_delay_comes_before_the_answer_and_stopping_waits_for_it(service: TokenService) -> None:
    service.behave(delay=0.2)
    answers: list[int] = []
    asking = threading.Thread(target=lambda: answers.append(ask(service, login=("sysinv", "s3cret"))[0]))
    began = time.monotonic()
    with connected(service):
        asking.start()
        # Its request is with the service once that counts it as running.
        wait_until_busy(service)
        service.stop()
    asking.join(10)
    assert answers == [200]
    assert time.monotonic() - began >= 0.2


def test_a_kill_breaks_what_is_being_answered(service: TokenService) -> None:
    service.behave(delay=30.0)
    broken: list[BaseException] = []

    def try_it() -> None:
        try:
            ask(service)
        except (http.client.HTTPException, OSError) as error:
            broken.append(error)

    asking = threading.Thread(target=try_it)
    asking.start()
    wait_until_busy(service)
    began = time.monotonic()
    service.kill()
    asking.join(10)
    assert len(broken) == 1
    assert time.monotonic() - began < 5
    assert not service.runs
    prove_free("127.0.0.1", urlsplit(service.realm).port or 0)


def wait_until_busy(service: TokenService) -> None:
    assert service._serving
    while not service._serving.busy:
        time.sleep(0.001)


def connected(service: TokenService) -> socket.socket:
    """Return an idle connection, which must not keep the service from ending."""
    realm = urlsplit(service.realm)
    return socket.create_connection((str(realm.hostname), realm.port or 0))


def test_restarts_keep_the_port_and_read_the_key_anew(service: TokenService) -> None:
    realm, first = service.realm, service.generation
    service.keys.rotate()
    login = ("sysinv", "s3cret")
    assert service.generation is first, "a running service does not notice"
    ask(service, login=login)
    service.restart()
    ask(service, login=login)
    service.restart(generation=first, abort=True)
    ask(service, login=login)
    assert service.realm == realm
    assert service.starts == 3
    assert [each.generation for each in service.issued()] == [1, 2, 1]


def test_it_cannot_be_started_twice_nor_on_a_port_that_is_taken(
    service: TokenService, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="runs already"):
        service.start()
    port = urlsplit(service.realm).port or 0
    other = TokenService(service.keys, ACCOUNTS, port=port)
    with pytest.raises(InfrastructureError, match="cannot be used"):
        other.start()
    other.close()


def test_a_service_that_never_started_signs_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="start it first"):
        TokenService(KeyRing(tmp_path), ACCOUNTS).mint("sysinv", [SCOPE])


def test_over_tls(tmp_path: Path) -> None:
    authority = LabAuthority(tmp_path / "tls")
    with TokenService(KeyRing(tmp_path), ACCOUNTS, tls=authority.issue("token")) as service:
        service.start()
        realm = urlsplit(service.realm)
        assert realm.scheme == "https"
        context = ssl.create_default_context(cafile=authority.file)
        connection = http.client.HTTPSConnection(str(realm.hostname), realm.port, timeout=20, context=context)
        connection.request("GET", realm.path)
        assert connection.getresponse().status == 200
        connection.close()


# -- the log -----------------------------------------------------------------------------------------------


def test_log_has_who_asked_and_what_was_given_without_the_token(service: TokenService) -> None:
    mark = len(service.issued())
    answer = ask(service, [("scope", SCOPE)], login=("app", "other"))[1]
    (entry,) = service.issued(mark)
    claims = claims_of(answer["access_token"])
    assert entry == Issued(
        entry.time,
        "GET",
        "basic",
        "app",
        (SCOPE,),
        200,
        (Access("repository", "a/b", ()),),
        claims["jti"],
        1,
        claims["exp"],
        "",
    )
    assert answer["access_token"] not in repr(entry)
    assert "other" not in repr(service.accounts["app"])


def test_a_request_can_be_waited_for(service: TokenService) -> None:
    asking = threading.Thread(target=ask, args=(service, [("scope", "repository:x:pull")]))
    asking.start()
    found = service.wait_for(lambda entry: entry.asked == ("repository:x:pull",))
    asking.join(10)
    assert found.account == ""
    with pytest.raises(DeadlineError, match="it has had 1"):
        service.wait_for(lambda entry: entry.status == 500, deadline=0.01)


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys")
    identity = LabAuthority(tmp_path / "tls").issue("registry")
    assert ring.key_file.stat().st_mode & 0o777 == 0o600
    assert identity.key.stat().st_mode & 0o777 == 0o600
    ring.rotate()
    assert ring.key_file.stat().st_mode & 0o777 == 0o600
    assert [each.number for each in ring.generations] == [1, 2]
