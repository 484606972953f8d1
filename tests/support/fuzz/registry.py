"""What registries, engines and clients say: logs, references, manifests, HTTP heads, archives, tables."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Sequence
from functools import cache
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from support.fuzz.documents import as_file
from support.fuzz.engine import Target
from support.fuzz.mutate import NUMBERS, SNIPPETS, JsonMutator, Mutator, TextMutator

from harness.controlplane.tables import TableError, parse_tables
from harness.controlplane.vim import from_output
from harness.errors import ConfigurationError, ControlPlaneError, InfrastructureError
from harness.faults.proxy.heads import AnswerHead, NotHttp, RequestHead
from harness.faults.registry_points import STEPS, FaultPoint, classify
from harness.registry.archives import read_image, write_docker_archive, write_layout
from harness.registry.clients.oci_session import parse_challenge
from harness.registry.images import ImageRecipe, IndexRecipe, LayerRecipe, make_image, make_index
from harness.registry.log_claims import dockerd_says, registry_says, sysinv_says
from harness.registry.logs import parse_log
from harness.registry.manifests import NotAManifest, read_manifest
from harness.registry.reference import is_digest, parse_reference
from harness.registry.wire import Challenge

_REFERENCE = parse_reference("registry.local:9001/quay.io/jetstack/cert-manager-webhook:v0.15.0")
_RECIPE = ImageRecipe((LayerRecipe(700, "a"), LayerRecipe(300, "b", gzip=False)))
_DOCKER_RECIPE = ImageRecipe((LayerRecipe(700, "a"),), form="docker")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# -- logs -------------------------------------------------------------------------------------------------


@cache
def _logs() -> Sequence[bytes]:
    refused = (
        'level=warning msg="error authorizing context: invalid token" go.version=go1.16.12 '
        'http.request.host="registry.local:9001" http.request.method=POST http.request.uri='
        '"/v2/quay.io/jetstack/cert-manager-webhook/blobs/uploads/" '
        'vars.name="quay.io/jetstack/cert-manager-webhook"'
    )
    engine = 'level=error msg="Upload failed: unauthorized: authentication required"'
    why = "unauthorized: authentication required"
    next_one = f'level=info msg="Attempting next endpoint for push after error: {why}"'
    head = "2022-09-21T18:56:25.369 controller-0"
    sysinv = "sysinv 2022-09-21 18:56:25.401 129181 INFO sysinv.conductor.kube_app [-]"
    lines = (
        f'{head} registry[157387]: info time="2022-09-21T18:56:25.369848645Z" {refused}',
        f'{head} dockerd[98916]: info time="2022-09-21T18:56:25.370167513Z" {engine}',
        f'{head} dockerd[98916]: info time="2022-09-21T18:56:25.371428551Z" {next_one}',
        f"{sysinv} Image {_REFERENCE} download succeeded in 15 seconds",
        json.dumps({"level": "info", "msg": "response completed", "http.response.status": 202}),
        '127.0.0.1 - - [21/Sep/2022:18:56:25 +0000] "GET /v2/ HTTP/1.1" 401 87 "" "docker/18.09.6"',
    )
    return ("\n".join(lines).encode(), *(line.encode() for line in lines))


def check_log(data: bytes) -> str:
    """Every line is kept as it is; what is read of it is finite and printable as text."""
    lines = _text(data).split("\n")
    entries = list(parse_log(lines))
    assert [each.raw for each in entries] == [line.rstrip("\r\n") for line in lines if line.strip()]
    for entry in entries:
        assert entry.time is None or isfinite(entry.time), f"the time is {entry.time}"
        assert all(isinstance(value, str) for value in entry.fields.values())
    said = [sysinv_says(entries, _REFERENCE), dockerd_says(entries), registry_says(entries, _REFERENCE)]
    return " ".join(each.result if each is not None else "-" for each in said)


# -- words ------------------------------------------------------------------------------------------------


@cache
def _spoken() -> Sequence[bytes]:
    digest = f"sha256:{'ab' * 32}"
    return tuple(
        word.encode()
        for word in (
            str(_REFERENCE),
            f"[::1]:5000/a/b__c@{digest}",
            "a/b",
            "before:blob-put#last",
            "mid@524288:blob-patch",
            "/v2/a/b/blobs/uploads/?mount=sha256:ab&from=c/d",
            f"/v2/a/b/manifests/{digest}",
            "/token/?service=registry&scope=repository:a/b:push,pull",
            'Bearer realm="https://registry.local:9002/token/",service="r",scope="repository:a/b:pull,push"',
        )
    )


def check_words(data: bytes) -> str:
    """A reference or point is refused, or says the same again; any request is some step."""
    text = _text(data)
    found = []
    for parse in (parse_reference, FaultPoint.parse):
        try:
            parsed = parse(text)
        except ConfigurationError:
            continue
        found.append(type(parsed).__name__)
        assert parse(str(parsed)) == parsed, f"{parsed} is read as something else"
    for method in ("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", text[:8]):
        step, repository = classify(method, text)
        assert step in STEPS
        assert isinstance(repository, str)
    assert Challenge.parse(text).scheme == Challenge.parse(text).scheme.lower()
    parse_challenge(text)
    return " ".join(found) or "refused"


# -- manifests --------------------------------------------------------------------------------------------


@cache
def _manifests() -> Sequence[bytes]:
    index = make_index(IndexRecipe((_RECIPE, ImageRecipe((LayerRecipe(9, "c"),), architecture="arm64"))))
    return (
        make_image(_RECIPE).manifest.read(),
        make_image(_DOCKER_RECIPE).manifest.read(),
        index.manifest.read(),
    )


def check_manifest(data: bytes) -> str:
    """It is refused, or names legal digests with sizes that a file can have."""
    try:
        found = read_manifest(data)
    except NotAManifest as error:
        assert len(str(error)) < 2000, "the refusal repeats what was read"
        return "refused"
    named = [*found.layers, *found.children, *([found.config] if found.config else [])]
    for each in named:
        assert is_digest(each.digest), f"{each.digest!r} is no digest"
        assert 0 <= each.size < 1 << 63, f"no file has {each.size} bytes"
    return f"{len(found.layers)} layers, {len(found.children)} children"


# -- heads of HTTP ----------------------------------------------------------------------------------------


@cache
def _heads() -> Sequence[bytes]:
    return (
        b"PUT /v2/a/b/blobs/uploads/1?digest=sha256:ab HTTP/1.1\r\nHost: r\r\nContent-Length: 12\r\n"
        b"Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nExpect: 100-continue\r\n\r\n",
        b"PATCH /v2/a/b/blobs/uploads/1 HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 201 Created\r\nLocation: /v2/a/b/blobs/sha256:ab\r\nContent-Length: 0\r\n\r\n",
        b'HTTP/1.1 401 Unauthorized\r\nWww-Authenticate: Bearer realm="x"\r\nConnection: close\r\n\r\n{}',
    )


def check_head(data: bytes) -> str:
    """It is no HTTP, or is passed on as one head, to be read again, without what is for one hop only."""
    found = []
    for kind in (RequestHead, AnswerHead):
        try:
            head = kind.read(data)
        except NotHttp:
            continue
        passed = head.passed_on([]) if isinstance(head, RequestHead) else head.passed_on(closing=False)
        again = kind.read(passed)
        assert passed.count(b"\r\n\r\n") == 1, "another message was smuggled into the head"
        for name in (b"connection", b"keep-alive", b"proxy-connection", b"te", b"upgrade"):
            value = again.head.named.get(name)
            assert value in (None, b"close"), f"{name!r} is passed on: {value!r}"
        body = head.body if isinstance(head, RequestHead) else head.body("GET")
        found.append(f"{kind.__name__} {type(body).__name__}")
    return ", ".join(found) or "no HTTP"


# -- archives ---------------------------------------------------------------------------------------------


@cache
def _archives() -> Sequence[bytes]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_layout(make_image(_RECIPE), folder / "layout")
        write_docker_archive(make_image(_DOCKER_RECIPE), folder / "archive.tar", ("a/b:v1",))
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for file in sorted((folder / "layout").rglob("*")):
                tar.add(file, str(file.relative_to(folder / "layout")), recursive=False)
        return (packed.getvalue(), (folder / "archive.tar").read_bytes())


def check_archive(data: bytes) -> str:
    """It is refused, or is an image of which every blob is what its digest says."""
    try:
        content = read_image(as_file(data, "image.tar"))
        for blob in (*content.blobs(), *content.manifests()):
            whole = blob.read()
            assert blob.digest == f"sha256:{hashlib.sha256(whole).hexdigest()}", f"{blob.digest} is another"
            assert blob.size == len(whole), f"{blob.digest} has {len(whole)} bytes and not {blob.size}"
    except ConfigurationError:
        return "refused"
    except InfrastructureError:
        return "unreadable"
    return f"{len(content.blobs())} blobs"


# -- tables -----------------------------------------------------------------------------------------------


@cache
def _tables() -> Sequence[bytes]:
    images = """\
+--------------------------------------+----------------+------------+----------------+
| uuid                                 | bitstream_type | pci_vendor | applied_labels |
+--------------------------------------+----------------+------------+----------------+
| 7794a2b4-c7ea-4dc7-9fa7-2f8b1d0b2a11 | functional     | 8086       | [{u'a': u'b'}, |
|                                      |                |            | {u'c': u'd'}]  |
| b2d2d4f4-0a6e-4a4b-bd0e-0e5a4e3f9a22 | root-key       | 8086       | None           |
+--------------------------------------+----------------+------------+----------------+
"""
    host = """\
+---------------------+-------+
| Property            | Value |
+---------------------+-------+
| device_image_update | None  |
| reboot_needed       | False |
+---------------------+-------+
"""
    return (images.encode(), host.encode(), f"{host}\n{images}".encode())


def check_table(data: bytes) -> str:
    """It is refused with the line, or every row has a cell for every column."""
    try:
        tables = parse_tables(_text(data))
    except TableError as error:
        assert len(str(error)) < 2000, "the refusal repeats what was read"
        return "refused"
    for table in tables:
        for row in table.rows:
            assert tuple(row) == tuple(table.columns), f"{row} is no row of {table.columns}"
    return f"{len(tables)} tables"


@cache
def _strategies() -> Sequence[bytes]:
    step = """\
            step-name:                    fw-update-hosts
            entity-names:                 ['compute-0', 'compute-1']
            result:                       timed-out
            reason:                       fw-update-hosts timed out
"""
    whole = f"""\
Strategy Firmware Update Strategy:
  strategy-uuid:                          00000000-0000-4000-8000-000000000001
  state:                                  applying
  apply-phase:
    result:                               failed
    stages:
        steps:
            step-id:                      0
{step}"""
    return (whole.encode(), b"No strategy available\n")


def check_strategy(data: bytes) -> str:
    """What `sw-manager` prints is refused, or it is a strategy with a state, or none."""
    try:
        said = from_output(_text(data))
    except ControlPlaneError as error:
        assert len(str(error)) < 2000, "the refusal repeats what was read"
        return "refused"
    assert all(strategy.state for strategy in said)
    return f"{len(said)} strategies"


_POINT_WORDS = ("#last", "#0", "mid@0:", "before:", "@sha256:", quote("a/b c"), "%00", "%2e%2e%2f")
_LOG_WORDS = ('msg="', "level=", '\\"', "sysinv 2022-09-21 ")


def _mutator(*words: str) -> Callable[[], Mutator]:
    return lambda: TextMutator((*NUMBERS, *SNIPPETS, *words))


TARGETS = (
    Target("registry-log", _logs, check_log, _mutator(*_LOG_WORDS), short=120),
    Target("registry-words", _spoken, check_words, _mutator(*_POINT_WORDS), short=200),
    Target("manifest", _manifests, check_manifest, JsonMutator, short=150),
    Target("http-head", _heads, check_head, _mutator("chunked", ", ", "\r\n "), short=150),
    Target("image-archive", _archives, check_archive, Mutator, share=0.5, short=60),
    Target("vim-strategy", _strategies, check_strategy, _mutator(":", "-phase:", "steps:"), short=100),
    Target("system-table", _tables, check_table, _mutator("+--", "|", " | "), short=150),
)
