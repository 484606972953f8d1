"""What the real registry makes of tokens: the measured table, and what a change of keys does to a push."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.raw_push import RawRegistry

from harness.registry.assembled import ACCOUNT, RegistryLab, Service
from harness.registry.images import ImageRecipe, make_image, sized_layers
from harness.registry.tokens import LEEWAY, Algorithm, KeyForm
from harness.registry.wire import Login, Wire

SCOPE = "repository:a/b:pull,push"
IMAGE = make_image(ImageRecipe(sized_layers(2, 1000)))
UNTRUSTED = "unable to verify certificate chain: x509: certificate signed by unknown authority"


def begin(lab: RegistryLab, token: str) -> tuple[int, str]:
    """Begin an upload; return the status, and the challenge where there is one."""
    raw = RawRegistry(lab.endpoint.url, lab.authority.file, token)
    status, headers, _ = raw.ask("POST", "/v2/a/b/blobs/uploads/", b"")
    return status, headers.get("www-authenticate", "")


def said(lab: RegistryLab, mark: str) -> list[tuple[str, str]]:
    return [
        (entry.level, entry.message)
        for entry in lab.registry.logs(mark)
        if "token" in entry.message or "x509" in entry.message
    ]


@pytest.mark.parametrize(
    ("key_form", "audience_as_list", "status"),
    [
        ("libtrust", False, 202),
        ("thumbprint", False, 401),
        ("x5c", False, 202),
        ("x5c", True, 401),
        ("jwk", False, 202),
    ],
)
def test_how_a_token_names_its_key_and_audience(
    lab: RegistryLab, key_form: KeyForm, audience_as_list: bool, status: int
) -> None:
    lab.tokens.behave(key_form=key_form, audience_as_list=audience_as_list)
    assert begin(lab, lab.tokens.mint(ACCOUNT, [SCOPE]))[0] == status


@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "RS256"])
def test_every_algorithm_is_taken(tmp_path: Path, program: Path, algorithm: Algorithm) -> None:
    with RegistryLab(tmp_path, program=program, tls=False, algorithm=algorithm) as lab:
        for key_form in ("x5c", "libtrust", "jwk"):
            lab.tokens.behave(key_form=key_form)
            status, _, _ = RawRegistry(lab.endpoint.url, None, lab.tokens.mint(ACCOUNT, [SCOPE])).ask(
                "POST", "/v2/a/b/blobs/uploads/", b""
            )
            assert status == 202, key_form


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        # 60 s of leeway on both ends: a token that ended 30 s ago is good for another 30.
        ({"exp": -LEEWAY + 30}, 202, None),
        ({"exp": -LEEWAY - 2}, 401, "token not to be used after"),
        ({"nbf": LEEWAY - 5}, 202, None),
        ({"nbf": LEEWAY + 30}, 401, "token not to be used before"),
    ],
)
def test_leeway_of_a_minute(
    lab: RegistryLab, changes: Mapping[str, float], status: int, reason: str | None
) -> None:
    mark = lab.registry.log_mark()
    now = time.time()
    token = lab.tokens.mint(
        ACCOUNT, [SCOPE], **{claim: int(now + offset) for claim, offset in changes.items()}
    )
    answered, challenge = begin(lab, token)
    assert answered == status
    if reason:
        assert 'error="invalid_token"' in challenge
        messages = said(lab, mark)
        # Reason and refusal are two lines; the reason does not name the request.
        assert messages[0][1].startswith(reason)
        assert messages[1] == ("warning", "error authorizing context: invalid token")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": "someone-else"}, 'token from untrusted issuer: "someone-else"'),
        ({"aud": "other-service"}, 'token intended for another audience: "other-service"'),
    ],
)
def test_a_stranger_s_token_is_refused_with_the_reason(
    lab: RegistryLab, changes: Mapping[str, Any], reason: str
) -> None:
    mark = lab.registry.log_mark()
    status, challenge = begin(lab, lab.tokens.mint(ACCOUNT, [SCOPE], **changes))
    assert (status, 'error="invalid_token"' in challenge) == (401, True)
    assert said(lab, mark)[0] == ("info", reason)


def test_a_token_without_the_scope_is_refused_with_401(lab: RegistryLab) -> None:
    status, challenge = begin(lab, lab.tokens.mint(ACCOUNT, ["repository:a/b:pull"]))
    assert (status, 'error="insufficient_scope"' in challenge) == (401, True)


def test_no_token_is_told_where_to_get_one(lab: RegistryLab) -> None:
    status, challenge = begin(lab, "")
    assert status == 401
    # The registry keeps the actions in a map: their order is any.
    assert challenge in [
        f'Bearer realm="{lab.tokens.realm}",service="{lab.tokens.behaviour.service}",'
        f'scope="repository:a/b:{actions}"'
        for actions in ("pull,push", "push,pull")
    ]


# -- rotation: the mechanism of the second field report ----------------------------------------------------


def test_after_a_rotation_old_tokens_are_refused_at_every_step(lab: RegistryLab, pusher: RawRegistry) -> None:
    location = pusher.begin_upload("a/b")
    lab.rotate()
    mark = lab.registry.log_mark()
    answers = [
        pusher.ask("POST", "/v2/a/b/blobs/uploads/", b""),
        pusher.ask("PATCH", location, b"x"),
        pusher.ask("PUT", f"{location}&digest={IMAGE.config.digest}", b""),
        pusher.ask("HEAD", f"/v2/a/b/blobs/{IMAGE.config.digest}"),
        pusher.ask(
            "PUT", "/v2/a/b/manifests/v1", IMAGE.manifest.read(), Content_Type=IMAGE.manifest.media_type
        ),
    ]
    assert [status for status, _, _ in answers] == [401] * 5
    assert (
        said(lab, mark)
        == [
            ("info", UNTRUSTED),
            ("warning", "error authorizing context: invalid token"),
        ]
        * 5
    )
    fresh = RawRegistry(lab.endpoint.url, lab.authority.file, lab.tokens.mint(ACCOUNT, [SCOPE]))
    fresh.push("a/b", "v1", IMAGE)


def test_after_a_rotation_starlingx_s_form_is_refused_with_a_reason_of_its_own(lab: RegistryLab) -> None:
    lab.tokens.behave(key_form="jwk")
    token = lab.tokens.mint(ACCOUNT, [SCOPE])
    lab.rotate()
    mark = lab.registry.log_mark()
    assert begin(lab, token)[0] == 401
    assert [entry.message for entry in lab.registry.logs(mark)][:2] == [
        "untrusted JWK with no certificate chain",
        "error authorizing context: invalid token",
    ]


def test_a_restart_alone_invalidates_no_token(lab: RegistryLab, pusher: RawRegistry) -> None:
    # The second field report supposes so; it is the new key that does (fact sheet of StarlingX, section 7).
    lab.registry.restart("KILL")
    pusher.push("a/b", "v1", IMAGE)


@pytest.mark.parametrize(
    ("order", "old", "new"),
    [
        # Nobody restarted: the registry trusts the old key, and the token service signs with it.
        ((), 202, 202),
        # Until the token service follows, even fresh tokens are refused.
        (("registry",), 401, 401),
        (("tokens",), 202, 401),
        (("registry", "tokens"), 401, 202),
        (("tokens", "registry"), 401, 202),
    ],
)
def test_order_of_restarts_decides_who_is_refused(
    lab: RegistryLab, pusher: RawRegistry, order: tuple[Service, ...], old: int, new: int
) -> None:
    done = lab.rotate(order, held="POST blob")
    assert (done is not None and done.held == "POST blob") == ("registry" in order)
    assert pusher.ask("POST", "/v2/a/b/blobs/uploads/", b"")[0] == old
    assert begin(lab, lab.tokens.mint(ACCOUNT, [SCOPE]))[0] == new
    # The harness itself gets in by what the registry trusts, to look at the truth.
    with Wire(lab.endpoint, lab.insider) as wire, wire.get("/v2/a/b/tags/list", scope="a/b") as answer:
        assert answer.status == 404


def test_a_service_can_go_back_to_an_old_key(lab: RegistryLab, pusher: RawRegistry) -> None:
    first = lab.keys.installed
    second = lab.keys.rotate()
    lab.tokens.restart()
    assert lab.tokens.generation is second
    assert begin(lab, lab.tokens.mint(ACCOUNT, [SCOPE]))[0] == 401
    lab.tokens.restart(generation=first)
    assert begin(lab, lab.tokens.mint(ACCOUNT, [SCOPE]))[0] == 202
    # A bundle of both takes both.
    lab.keys.install(second, also=[first])
    lab.registry.restart()
    assert pusher.ask("POST", "/v2/a/b/blobs/uploads/", b"")[0] == 202
    assert begin(lab, lab.tokens.mint(ACCOUNT, [SCOPE], generation=second))[0] == 202


def test_a_client_that_logs_in_gets_a_token_of_its_own(lab: RegistryLab) -> None:
    with Wire(lab.endpoint, Login(ACCOUNT, "lab-only", ca_file=lab.authority.file)) as wire:
        for _ in range(2):
            with wire.get("/v2/a/b/tags/list", scope="a/b") as answer:
                assert answer.status == 404
    (issued,) = lab.tokens.issued()
    assert (issued.method, issued.account, issued.status) == ("GET", ACCOUNT, 200)
    assert issued.asked == ("repository:a/b:pull",)
    assert issued.generation == 1
