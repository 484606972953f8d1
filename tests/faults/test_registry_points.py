"""Points of a push: their text, and which step a request is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigurationError
from harness.faults.registry_points import LAST, STEPS, WITH_BODY, FaultPoint, classify

DIGEST = "sha256:" + "a" * 64
NTH = st.integers(1, 10**9 - 1) | st.just(LAST)
POINTS = st.builds(
    FaultPoint, st.sampled_from(["before", "after", "cut"]), st.sampled_from(STEPS), NTH
) | st.builds(FaultPoint, st.just("mid"), st.sampled_from(WITH_BODY), NTH, st.integers(1, 10**18 - 1))


@given(POINTS)
def test_text_of_a_point_is_read_as_that_point(point: FaultPoint) -> None:
    assert FaultPoint.parse(str(point)) == point


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("before:blob-post#1", FaultPoint("before", "blob-post")),
        ("mid@524288:blob-patch#1", FaultPoint("mid", "blob-patch", 1, 524288)),
        ("after:blob-put#2", FaultPoint("after", "blob-put", 2)),
        ("cut:manifest-put#1", FaultPoint("cut", "manifest-put")),
        ("before:blob-put#last", FaultPoint("before", "blob-put", LAST)),
    ],
)
def test_texts_are_those_of_histories_and_reports(text: str, point: FaultPoint) -> None:
    assert FaultPoint.parse(text) == point
    assert str(point) == text


def test_the_first_of_its_step_needs_no_number() -> None:
    assert FaultPoint.parse("after:manifest-put") == FaultPoint("after", "manifest-put", 1)


def test_the_last_is_known_when_a_push_was_counted() -> None:
    last = FaultPoint.parse("before:blob-put#last")
    assert last.resolved(last=5) == FaultPoint("before", "blob-put", 5)
    assert FaultPoint("before", "blob-put", 2).resolved(last=5) == FaultPoint("before", "blob-put", 2)
    with pytest.raises(ConfigurationError):
        last.resolved(last=0)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("befor:blob-post", "Did you mean 'before:blob-post'?"),
        ("after:blob-putt#2", "Did you mean 'after:blob-put#2'?"),
        ("mid:blob-patch", "mid@524288:blob-patch"),
        ("mid@0:blob-patch", "mid@524288:blob-patch"),
        ("mid@7:blob-head", "Only these have a body: blob-patch, blob-put, manifest-put."),
        ("before@7:blob-put", "Only mid has an offset: before:blob-put."),
        ("before:blob-put#0", "before:blob-put#1"),
        ("before:blob-put#", "Did you mean 'before:blob-put'?"),
        ("sent:blob-put", "race"),
        ("", "A point is one of before, mid, after, cut"),
        ("before:blob-put\n", "Did you mean 'before:blob-put'?"),
        ("before:blob-put#²", "before:blob-put"),
    ],
)
def test_what_is_no_point_is_told_with_the_nearest(text: str, hint: str) -> None:
    with pytest.raises(ConfigurationError, match="There is no fault point") as caught:
        FaultPoint.parse(text)
    assert hint in caught.value.hint


@given(st.text())
def test_any_text_is_a_point_or_refused(text: str) -> None:
    try:
        point = FaultPoint.parse(text)
    except ConfigurationError as error:
        for meant in re.findall(r"Did you mean '(.+)'", error.hint):
            FaultPoint.parse(meant)
    else:
        assert FaultPoint.parse(str(point)) == point


# The routes of a registry: the OCI distribution specification 1.1, section "Endpoints", and docker's token
# protocol.
@pytest.mark.parametrize(
    ("method", "target", "step", "repository"),
    [
        ("GET", "/v2/", "ping", ""),
        ("GET", "/v2", "ping", ""),
        ("GET", "/token/?service=registry.local&scope=repository:a/b:pull,push", "token", "a/b"),
        ("GET", "/token/?scope=repository%3Ac%2Fd%3Apull&scope=repository:a/b:pull", "token", "c/d"),
        ("POST", "/token", "token", ""),
        ("HEAD", f"/v2/a/b/blobs/{DIGEST}", "blob-head", "a/b"),
        ("GET", f"/v2/a/b/blobs/{DIGEST}", "blob-get", "a/b"),
        ("POST", "/v2/a/b/blobs/uploads/", "blob-post", "a/b"),
        ("POST", f"/v2/a/b/blobs/uploads/?mount={DIGEST}&from=c/d", "blob-post", "a/b"),
        ("PATCH", "/v2/a/b/blobs/uploads/0a-1?_state=x%3D", "blob-patch", "a/b"),
        ("PUT", f"/v2/a/b/blobs/uploads/0a-1?_state=x&digest={DIGEST}", "blob-put", "a/b"),
        ("GET", "/v2/a/b/blobs/uploads/0a-1?_state=x", "upload-get", "a/b"),
        ("DELETE", "/v2/a/b/blobs/uploads/0a-1", "delete", "a/b"),
        ("DELETE", f"/v2/a/b/manifests/{DIGEST}", "delete", "a/b"),
        ("HEAD", "/v2/a/manifests/v1", "manifest-head", "a"),
        ("PUT", f"/v2/a/b/c/manifests/{DIGEST}", "manifest-put", "a/b/c"),
        ("GET", "/v2/a/b/manifests/v1", "manifest-get", "a/b"),
        ("GET", "/v2/manifests/blobs/manifests/v1", "manifest-get", "manifests/blobs"),
        ("GET", "/v2/a/b/tags/list?n=10", "tags", "a/b"),
        ("GET", "/v2/_catalog?n=10", "catalogue", ""),
        ("GET", "http://registry.local/v2/a/b/manifests/v1", "manifest-get", "a/b"),
        ("GET", "/healthz", "other", ""),
        ("BREW", "/v2/a/b/manifests/v1", "other", "a/b"),
    ],
)
def test_requests_are_steps(method: str, target: str, step: str, repository: str) -> None:
    assert classify(method, target) == (step, repository)


@given(st.binary(), st.binary() | st.binary().map(lambda tail: b"/v2/" + tail))
def test_no_bytes_have_no_step(method: bytes, target: bytes) -> None:
    step, _ = classify(method.decode("latin-1"), target.decode("latin-1"))
    assert step in STEPS
