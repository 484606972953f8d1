"""Truths of images compared, and what they are made from: manifests read, bodies hashed, whatever comes."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judgement.values import Unknown
from harness.registry.hashing import BodyHash
from harness.registry.images import encoded
from harness.registry.manifests import NotAManifest, read_manifest
from harness.registry.media_types import OCI_INDEX, OCI_MANIFEST
from harness.registry.reference import Reference, parse_reference
from harness.registry.truth import (
    ANYTHING,
    Finding,
    ImageTruth,
    Source,
    TruthState,
    compare,
    departures,
    state_of,
)

REFERENCE = parse_reference("a/b:v1")


# -- comparing ---------------------------------------------------------------------------------------------


def truth(source: Source, state: TruthState, moment: str = "") -> ImageTruth:
    findings = () if state is TruthState.COMPLETE else (Finding(state, "layer", "x", "why"),)
    return ImageTruth(source, REFERENCE, state, "d", "c", findings, moment=moment)


states = st.sampled_from(list(TruthState))
BAD = {TruthState.ABSENT, TruthState.PARTIAL, TruthState.CORRUPT, TruthState.WRONG}


@given(states, states, states)
def test_false_beats_unknown_beats_true(one: TruthState, other: TruthState, later: TruthState) -> None:
    given_ = [truth("api", one), truth("store", other), truth("api", later, "after a restart")]
    found = compare(*given_)
    seen = {one, other, later}
    if seen & BAD:
        assert found.state in BAD
        if other in BAD:
            assert found.state is other, "between two that see damage the store counts"
    elif TruthState.UNREADABLE in seen:
        assert found.state is TruthState.UNREADABLE
    else:
        assert found.state is TruthState.COMPLETE
    classes = {None if s is TruthState.UNREADABLE else s in BAD for s in seen}
    assert found.agrees == (len(classes) == 1)
    assert found.truths == tuple(given_)


def test_a_disagreement_says_who_says_what() -> None:
    found = compare(truth("api", TruthState.COMPLETE), truth("store", TruthState.PARTIAL))
    assert found.disagreement == "the store says PARTIAL (layer x: why), the api says COMPLETE"
    later = compare(truth("store", TruthState.COMPLETE), truth("api", TruthState.ABSENT, "after a restart"))
    assert later.disagreement.startswith("the api after a restart says ABSENT")


def test_only_truths_of_one_image_are_compared() -> None:
    other = ImageTruth("api", Reference("", "x", "y"), TruthState.COMPLETE, "d", "c")
    for given_ in ((), (truth("api", TruthState.COMPLETE), other)):
        with pytest.raises(ValueError, match="of one image"):
            compare(*given_)


@given(st.lists(states))
def test_the_worst_finding_is_the_state(found: list[TruthState]) -> None:
    order = ["WRONG", "CORRUPT", "PARTIAL", "ABSENT", "UNREADABLE", "COMPLETE"]
    state = state_of([Finding(each, "layer", "x", "") for each in found])
    assert state.value == min((each.value for each in found), key=order.index, default="COMPLETE")


def test_a_config_that_cannot_be_read_is_no_wrong_one() -> None:
    from harness.registry.truth import Expected

    assert departures("d", Unknown("why"), Expected(config="c"), "v1") == []
    assert departures("d", "c", ANYTHING, "v1") == []


# -- reading -----------------------------------------------------------------------------------------------


@given(st.binary(max_size=300), st.sampled_from(["", OCI_MANIFEST, OCI_INDEX, "text/html; charset=utf-8"]))
def test_any_bytes_are_a_manifest_or_are_told(content: bytes, media_type: str) -> None:
    try:
        read_manifest(content, media_type)
    except NotAManifest as error:
        assert str(error)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "mediaType": st.sampled_from([OCI_MANIFEST, OCI_INDEX]) | json_values,
            "config": json_values,
            "layers": json_values,
            "manifests": json_values,
        },
    )
)
def test_any_object_is_a_manifest_or_is_told(whole: dict[str, object]) -> None:
    try:
        read_manifest(encoded(whole))
    except NotAManifest as error:
        assert str(error)


@given(st.binary(max_size=2000), st.integers(1, 700), st.sampled_from([256, 1000, 1 << 19]))
def test_bodies_are_hashed_whatever_pieces_they_come_in(content: bytes, piece: int, size: int) -> None:
    import harness.registry.hashing as hashing

    kept, hashing._BUFFER = hashing._BUFFER, size
    try:
        hashed = BodyHash()
        for _ in range(3):
            left = memoryview(content)

            def readinto(buffer: memoryview) -> int:
                nonlocal left
                got = min(piece, len(buffer), len(left))
                buffer[:got] = left[:got]
                left = left[got:]
                return got

            assert hashed.take(readinto, "sha256") == (len(content), hashlib.sha256(content).hexdigest())
            assert hashed.received == len(content)
    finally:
        hashing._BUFFER = kept


def test_a_body_that_breaks_off_says_how_far_it_came() -> None:
    hashed = BodyHash()
    pieces = iter([1 << 17, 1 << 17, 1 << 17, 100])

    def readinto(buffer: memoryview) -> int:
        size = next(pieces, None)
        if size is None:
            raise ConnectionResetError
        return min(size, len(buffer))

    for _ in range(5):  # its buffers come back
        pieces = iter([1 << 17, 1 << 17, 1 << 17, 100])
        with pytest.raises(ConnectionResetError):
            hashed.take(readinto, "sha256")
        assert hashed.received == (3 << 17) + 100
