"""The walk by the API against answers that no good registry gives: nothing is believed unhashed."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.raw_upstream import RawUpstream

from harness.errors import ConfigurationError, HarnessError, InfrastructureError, UnreachableError
from harness.faults.proxy.server import FaultProxy
from harness.judgement.values import Unknown
from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.images import Blob, ImageRecipe, encoded, make_image, sized_layers
from harness.registry.media_types import OCI_INDEX, OCI_MANIFEST
from harness.registry.ports import free_port
from harness.registry.process import ProcessRegistry
from harness.registry.reference import parse_reference
from harness.registry.tls import LabAuthority
from harness.registry.truth import (
    TruthState,
)
from harness.registry.truth_api import ApiTruth
from harness.registry.wire import Challenge, Endpoint, Login, Wire

IMAGE = make_image(ImageRecipe(sized_layers(1, 3000)))
REFERENCE = parse_reference("a/b:v1")
MANIFESTS = "/v2/a/b/manifests/"
LAYER_PATH = f"/v2/a/b/blobs/{IMAGE.layers[0].digest}"


class Fake:
    """A server that answers each path with the bytes it was given, then closes the connection."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.answers: dict[str, bytes] = {}
        self.asked: list[str] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                request = b""
                while b"\r\n\r\n" not in request and (piece := connection.recv(65536)):
                    request += piece
                if request:
                    path = request.split(b" ")[1].decode()
                    self.asked.append(path)
                    connection.sendall(self.answers.get(path, answer(b"", 404)))

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def answer(body: bytes, status: int = 200, length: int | None = None, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body) if length is None else length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


def errors(code: str) -> bytes:
    return json.dumps({"errors": [{"code": code, "message": "said so"}]}).encode()


@pytest.fixture
def fake() -> Iterator[Fake]:
    made = Fake()
    made.answers[MANIFESTS + "v1"] = answer(IMAGE.manifest.read(), Docker_Content_Digest=IMAGE.digest)
    for blob in IMAGE.blobs():
        made.answers[f"/v2/a/b/blobs/{blob.digest}"] = answer(blob.read())
    yield made
    made.close()


@pytest.fixture
def api(fake: Fake) -> Iterator[ApiTruth]:
    with ApiTruth(Endpoint(fake.url), stall=5.0) as made:
        yield made


def test_the_fake_itself_is_complete(fake: Fake, api: ApiTruth) -> None:
    truth = api.image(REFERENCE)
    assert (truth.state, truth.findings) == (TruthState.COMPLETE, ())
    assert truth.hashed == sum(blob.size for blob in (*IMAGE.blobs(), IMAGE.manifest))


@pytest.mark.parametrize(
    ("said", "state", "why"),
    [
        (answer(errors("MANIFEST_UNKNOWN"), 404), "ABSENT", "404 MANIFEST_UNKNOWN: said so"),
        (answer(errors("NAME_UNKNOWN"), 404), "ABSENT", "404 NAME_UNKNOWN"),
        # A 404 that is not the registry's own may be a proxy's.
        (answer(b"<html>not found</html>", 404), "UNREADABLE", "404 <html>not found</html>"),
        (answer(b"", 404), "UNREADABLE", "404 no body"),
        (answer(errors("UNKNOWN"), 500), "UNREADABLE", "500 UNKNOWN"),
        (answer(errors("UNAUTHORIZED"), 401), "UNREADABLE", "401 UNAUTHORIZED"),
        (answer(b"", 307, Location="http://elsewhere/"), "UNREADABLE", "307 no body"),
        (answer(b'{"errors": [3]}', 500), "UNREADABLE", '500 {"errors": [3]}'),
        (b"", "UNREADABLE", "gave no answer to GET"),
        (b"\x15\x03\x01\x00\x02\x02\x16", "UNREADABLE", "gave no answer to GET"),
        (answer(IMAGE.manifest.read(), Docker_Content_Digest="sha256:" + "0" * 64), "CORRUPT", "instead of"),
        (answer(IMAGE.manifest.read(), Docker_Content_Digest="md5:1"), "UNREADABLE", "states 'md5:1'"),
        (answer(IMAGE.manifest.read()[:-9], length=IMAGE.manifest.size), "CORRUPT", "were announced"),
        (answer(b"x" * (4 << 20) + b"y"), "UNREADABLE", "longer than the 4194304 bytes"),
        (answer(b"not json"), "UNREADABLE", "it is no JSON"),
        (answer(b"[]"), "UNREADABLE", "it is no JSON object"),
        (answer(b'{"schemaVersion": 1, "mediaType": "x/y"}'), "UNREADABLE", "its type 'x/y' is not known"),
        (answer(b'{"mediaType": "%s"}' % OCI_MANIFEST.encode()), "UNREADABLE", "lacks what that has"),
        (answer(b'{"mediaType": "%s", "manifests": [{"digest": "x"}]}' % OCI_INDEX.encode()),
         "UNREADABLE", "'x' is no digest"),
    ],
)  # fmt: skip
def test_answers_for_a_manifest(fake: Fake, api: ApiTruth, said: bytes, state: str, why: str) -> None:
    fake.answers[MANIFESTS + "v1"] = said
    truth = api.image(REFERENCE)
    assert truth.state.value == state
    assert why in truth.why
    assert truth.findings[0].part == "tag"


LAYER = IMAGE.layers[0]


@pytest.mark.parametrize(
    ("said", "state", "why"),
    [
        (answer(errors("BLOB_UNKNOWN"), 404), "PARTIAL", "404 BLOB_UNKNOWN"),
        (answer(errors("UNKNOWN"), 500), "UNREADABLE", "500 UNKNOWN"),
        (answer(LAYER.read()[:-1]), "CORRUPT", f"{LAYER.size - 1} bytes of {LAYER.size}"),
        (answer(LAYER.read() + b"x"), "CORRUPT", f"{LAYER.size + 1} bytes of {LAYER.size}"),
        (answer(LAYER.read()[:-1], length=LAYER.size), "CORRUPT", f"ends after {LAYER.size - 1} of the"),
        (answer(b"", length=LAYER.size), "CORRUPT", f"ends after 0 of the {LAYER.size} bytes"),
        (answer(bytes(LAYER.size)), "CORRUPT", "with the digest sha256:"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "UNREADABLE", "broke off twice"),
    ],
)
def test_answers_for_a_layer(fake: Fake, api: ApiTruth, said: bytes, state: str, why: str) -> None:
    fake.answers[LAYER_PATH] = said
    truth = api.image(REFERENCE)
    assert (truth.state.value, truth.findings[0].part) == (state, "layer")
    assert why in truth.why
    assert (truth.digest, truth.config) == (IMAGE.digest, IMAGE.config.digest)


def test_a_size_that_the_manifest_states_wrongly_is_corrupt(fake: Fake, api: ApiTruth) -> None:
    whole = json.loads(IMAGE.manifest.read())
    whole["layers"][0]["size"] += 1
    fake.answers[MANIFESTS + "v1"] = answer(encoded(whole))
    assert f"and {LAYER.size + 1} are stated" in api.image(REFERENCE).why


def test_layers_that_are_to_be_fetched_elsewhere_are_not_missed(fake: Fake, api: ApiTruth) -> None:
    whole = json.loads(IMAGE.manifest.read())
    whole["layers"][0]["urls"] = ["https://elsewhere/"]
    fake.answers[MANIFESTS + "v1"] = answer(encoded(whole))
    del fake.answers[LAYER_PATH]
    assert api.image(REFERENCE).state is TruthState.COMPLETE


def test_nothing_is_asked_by_head_or_twice(fake: Fake, api: ApiTruth) -> None:
    whole = json.loads(IMAGE.manifest.read())
    whole["layers"] *= 3
    fake.answers[MANIFESTS + "v1"] = answer(encoded(whole))
    api.image(REFERENCE)
    assert sorted(fake.asked) == sorted(
        [MANIFESTS + "v1", *(f"/v2/a/b/blobs/{b.digest}" for b in IMAGE.blobs())]
    )


def test_indexes_that_lead_into_each_other_come_to_an_end(fake: Fake, api: ApiTruth) -> None:
    inner = encoded({"mediaType": OCI_INDEX, "manifests": []})
    for _ in range(9):
        blob = Blob.of(inner, OCI_INDEX)
        fake.answers[MANIFESTS + blob.digest] = answer(inner)
        inner = encoded({"mediaType": OCI_INDEX, "manifests": [blob.descriptor()]})
    fake.answers[MANIFESTS + "v1"] = answer(inner)
    truth = api.image(REFERENCE)
    assert (truth.state, "without end" in truth.why) == (TruthState.UNREADABLE, True)


def test_nobody_there_is_unreadable(fake: Fake) -> None:
    with ApiTruth(Endpoint(f"http://127.0.0.1:{free_port()}")) as api:
        truth = api.image(REFERENCE)
        assert truth.state is TruthState.UNREADABLE
        assert isinstance(truth.digest, Unknown)
        assert "Nobody listens" in truth.why
        with pytest.raises(UnreachableError, match="Nobody listens"):
            api.check()


def test_a_registry_that_answers_nothing_is_given_up(registry: ProcessRegistry) -> None:
    registry.pause()
    with ApiTruth(registry.endpoint, stall=0.1) as api:
        assert "Waited 0.1 s" in api.image(REFERENCE).why
    registry.resume()


def test_a_body_that_comes_byte_by_byte_is_given_up() -> None:
    """Something arrives all the time, so that no wait for the next byte is ever long."""
    over = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        with suppress(OSError):
            while not over.wait(0.01):
                connection.sendall(b"x")

    with RawUpstream(drip) as upstream:
        try:
            with ApiTruth(upstream.endpoint, stall=0.3) as api:
                assert "Waited 0.3 s for the end of a body" in api.image(REFERENCE).why
        finally:
            over.set()


# -- who answers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kind", "why"),
    [
        (answer(b"<html>", 404), ConfigurationError, "is not a registry: it answers /v2/ with 404"),
        (
            answer(b"hello", Docker_Distribution_Api_Version="other/1"),
            ConfigurationError,
            "is not a registry",
        ),
        (answer(b"", 401), InfrastructureError, "does not let us in"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", InfrastructureError, "gave no answer"),
    ],
)
def test_a_registry_that_is_none(
    fake: Fake, api: ApiTruth, said: bytes, kind: type[HarnessError], why: str
) -> None:
    fake.answers["/v2/"] = said
    with pytest.raises(kind, match=why):
        api.check()


@pytest.mark.parametrize("url", ["", "registry.local:9001", "ftp://reg", "https://"])
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is not the URL of a registry"):
        ApiTruth(Endpoint(url))


def test_an_authority_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "not.crt").write_text("nonsense")
    for name in ("not.crt", "missing.crt"):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            ApiTruth(Endpoint("https://127.0.0.1:1", tmp_path / name))


def test_untrusted_and_wrong_names(lab: RegistryLab, tmp_path: Path) -> None:
    stranger = LabAuthority(tmp_path / "stranger")
    with ApiTruth(Endpoint(lab.endpoint.url, stranger.file)) as api:
        with pytest.raises(InfrastructureError, match="is not trusted") as caught:
            api.check()
        assert "ca_file" in caught.value.hint
        assert "is not trusted" in api.image(REFERENCE).why
    lab.authority.issue("registry", addresses=("192.0.2.1",))
    lab.registry.stop()
    with pytest.raises(InfrastructureError, match="is not trusted"):
        lab.registry.start()


@pytest.mark.parametrize(("valid", "why"), [((-2, -1), "has expired"), ((1, 2), "is not yet valid")])
def test_a_certificate_out_of_its_time_is_no_question_of_authority(
    lab: RegistryLab, valid: tuple[float, float], why: str
) -> None:
    identity = lab.authority.issue("proxy", valid=valid)
    with FaultProxy(lab.endpoint, tls=identity) as shown, ApiTruth(shown.endpoint) as api:
        with pytest.raises(InfrastructureError, match=f"is not trusted: certificate {why}") as caught:
            api.check()
        assert caught.value.hint.startswith("Renew it")
        assert api.image(REFERENCE).state is TruthState.UNREADABLE


def test_a_wrong_password_is_told(lab: RegistryLab) -> None:
    with ApiTruth(lab.endpoint, Login(ACCOUNT, "wrong", ca_file=lab.authority.file)) as api:
        with pytest.raises(InfrastructureError, match=f"refuses {ACCOUNT}: 401") as caught:
            api.check()
        assert "wrong" not in str(caught.value)
        assert api.image(REFERENCE).state is TruthState.UNREADABLE


def test_without_credentials_it_does_not_let_us_in(lab: RegistryLab) -> None:
    with ApiTruth(lab.endpoint) as api, pytest.raises(InfrastructureError, match="does not let us in"):
        api.check()


NO_TOKENS = [
    *(b"{}", b"[]", b"no", b'{"token": null}', b'{"token": 5}', b'{"token": ["a"]}', b"[" * 100_000),
    *(b'{"token": "a\\r\\nHost: b"}', b'{"token": "a b"}', '{"token": "\N{SNOWMAN}"}'.encode()),
]


@pytest.mark.parametrize("body", NO_TOKENS, ids=lambda body: repr(body[:20]))
def test_a_token_service_without_a_token(fake: Fake, body: bytes) -> None:
    fake.answers["/v2/"] = answer(b"", 401, WWW_Authenticate=f'Bearer realm="{fake.url}/token",service="s"')
    fake.answers["/token?service=s&account=me"] = answer(body)
    with (
        ApiTruth(Endpoint(fake.url), Login("me", "x")) as api,
        pytest.raises(HarnessError, match="holds no token"),
    ):
        api.check()


def test_basic_is_answered_with_the_password(fake: Fake) -> None:
    fake.answers["/v2/"] = answer(b"", 401, WWW_Authenticate='Basic realm="x"')
    login = Login("me", "pass")
    assert login.answer(Challenge.parse('Basic realm="x"'), deadline=1) == "Basic bWU6cGFzcw=="
    assert login.answer(Challenge.parse("Negotiate"), deadline=1) is None
    with Wire(Endpoint(fake.url), login) as wire, wire.get("/v2/") as given:
        assert given.status == 401
    assert fake.asked == ["/v2/", "/v2/"], "asked once more, and not for ever"


def test_commas_within_a_challenge_belong_to_the_value() -> None:
    found = Challenge.parse(
        'Bearer realm="http://r/t",service="s",scope="repository:a/b:pull,push",error="a \\"b\\""'
    )
    assert found.scheme == "bearer"
    assert found.parameters == {
        "realm": "http://r/t",
        "service": "s",
        "scope": "repository:a/b:pull,push",
        "error": 'a "b"',
    }


# -- lists -------------------------------------------------------------------------------------------------


def test_pages_are_followed_where_a_proxy_names_other_hosts(fake: Fake, api: ApiTruth) -> None:
    first = answer(
        b'{"repositories": ["a"]}', Link='<https://other/x/v2/_catalog?last=a%2Fb&n=100>; rel="next"'
    )
    fake.answers["/v2/_catalog?n=100"] = first
    fake.answers["/v2/_catalog?last=a%2Fb&n=100"] = answer(b'{"repositories": ["z"]}')
    assert list(api.catalogue()) == ["a", "z"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (answer(b'{"repositories": ["a"]}', Link='</v2/_catalog?n=100>; rel="next"'), "lead in a circle"),
        (answer(b'{"repositories": 3}'), "without a list of repositories"),
        (answer(b"{}"), "without a list of repositories"),
        (answer(b"[]"), "without a list of repositories"),
        (answer(b"nonsense"), "is no JSON"),
        (answer(errors("PAGINATION_NUMBER_INVALID"), 400), "400 PAGINATION_NUMBER_INVALID"),
        (answer(b"<html>", 404), "404 <html>"),
        (answer(b"x" * ((1 << 20) + 1)), "longer than"),
    ],
)
def test_lists_that_are_none(fake: Fake, api: ApiTruth, said: bytes, why: str) -> None:
    fake.answers["/v2/_catalog?n=100"] = said
    with pytest.raises(InfrastructureError, match=why):
        list(api.catalogue())


def test_tags_of_an_illegal_name_are_not_asked_for(fake: Fake, api: ApiTruth) -> None:
    with pytest.raises(ConfigurationError, match="is not a legal reference"):
        api.tags("../x")
    assert fake.asked == []
