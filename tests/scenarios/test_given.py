"""A scenario's starting state: how it is written, and what an observed card lacks of it."""

import pytest

from harness.errors import ConfigurationError
from harness.judgement.values import Unknown
from harness.scenarios.given import Given

ROOT_A = "ab" * 32


def test_a_root_is_written_by_name_by_hash_or_as_none() -> None:
    assert Given.parse({"root": "A"}, {"A": ROOT_A}).sr_root == ROOT_A
    assert Given.parse({"root": "CD" * 32}, {}).sr_root == "cd" * 32
    assert Given.parse({"root": "none"}, {}).sr_root == ""


def test_a_stated_root_means_that_no_csk_is_cancelled_unless_stated() -> None:
    assert Given.parse({"root": "A"}, {"A": ROOT_A}).sr_cancelled == frozenset()
    assert Given.parse({"root": "A", "cancelled": [0, 5]}, {"A": ROOT_A}).sr_cancelled == {0, 5}
    assert Given.parse({}, {}).sr_cancelled is None


def test_an_unknown_key_or_root_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="rot"):
        Given.parse({"rot": "A"}, {})
    with pytest.raises(ConfigurationError, match="C"):
        Given.parse({"root": "C"}, {"A": ROOT_A})


def test_a_card_in_the_state_lacks_nothing() -> None:
    given = Given(sr_root=ROOT_A, sr_cancelled=frozenset({0}), flash_count=5)
    assert given.unmet_by(ROOT_A, frozenset({0}), 9) == []


@pytest.mark.parametrize(
    ("observed", "lacks"),
    [
        (("", frozenset({0}), 9), "not programmed"),
        ((ROOT_A, frozenset(), 9), "cancelled CSKs are []"),
        ((ROOT_A, frozenset({0}), 4), "at least 5"),
        ((Unknown("all ones"), frozenset({0}), 9), "all ones"),
    ],
)
def test_what_a_card_lacks_is_named(observed: tuple[object, object, object], lacks: str) -> None:
    given = Given(sr_root=ROOT_A, sr_cancelled=frozenset({0}), flash_count=5)
    (reason,) = given.unmet_by(*observed)
    assert lacks in reason


def test_a_value_that_could_not_be_read_never_meets_a_state() -> None:
    assert Given(sr_root="").unmet_by(Unknown("not exposed"), frozenset(), 0)


def test_the_root_of_the_bmc_section_is_a_state_of_its_own() -> None:
    given = Given.parse({"bmc_root": "A"}, {"A": ROOT_A})
    assert (given.sr_root, given.sr_cancelled, given.bmc_root) == (None, None, ROOT_A)
    assert given.unmet_by("", frozenset(), 0, ROOT_A) == []
    assert given.unmet_by(ROOT_A, frozenset(), 0, "cd" * 32) != []
    assert given.unmet_by(ROOT_A, frozenset(), 0, Unknown("not exposed")) != []
