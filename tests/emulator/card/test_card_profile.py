"""Profile values: each has a meaning, a default, and an error that helps."""

import pytest

from harness.emulator.card import CHECK_CODES, CardProfile, CardState, profile_docs, profile_names
from harness.errors import ConfigurationError


def test_every_value_says_what_it_is_and_where_it_comes_from() -> None:
    docs = profile_docs()
    assert tuple(docs) == profile_names()
    marks = ("[U]", "[I]", "[D]", "[V]")
    without = [name for name, text in docs.items() if not any(mark in text for mark in marks)]
    assert without == ["disabled_checks", "flaws"]  # these are defects, no open questions


def test_a_profile_survives_json() -> None:
    profile = CardProfile(disabled_checks=frozenset({"root-hash"}), enforcement="at-once", copy_rate=1.5)
    assert CardProfile.from_mapping(profile.to_mapping()) == profile


def test_codes_are_those_of_the_register() -> None:
    """3.2: every code from 0x01 to 0x1B that the N3000 has; 0x0C is a profile value of csk-id-range."""
    codes = set(CHECK_CODES.values()) | {0x0C}
    assert codes == set(range(0x01, 0x1C))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"enforcment": "at-once"}, "Did you mean 'enforcement'?"),
        ({"enforcement": "never"}, "allowed are 'after-reset', 'at-once'"),
        ({"disabled_checks": ["root-hsh"]}, "Did you mean 'root-hash'?"),
        ({"disabled_checks": "root-hash"}, "a list of names is due"),
        ({"flaws": ["copy-droped"]}, "Did you mean 'copy-dropped'?"),
        ({"copy_rate": 0}, "a number above 0 is due"),
        ({"copy_rate": "fast"}, "a number above 0 is due"),
        ({"reset_seconds": -1}, "a number of at least 0 is due"),
        ({"wear_first_count": 1.5}, "a whole number of at least 0 is due"),
        ({"payload_hash_on_unkeyed_card": 1}, "true or false is due"),
        ({"csk_id_out_of_range_code": 21}, "allowed are 20, 12"),
    ],
)
def test_a_wrong_value_is_told(values: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        CardProfile.from_mapping(values)
    assert said in raised.value.message


def test_a_state_survives_json() -> None:
    state = CardState(sr_root="ab" * 32, sr_cancelled=frozenset({0, 5}), user_page=b"\x00\xff", flash_count=3)
    assert CardState.from_json(state.to_json()) == state


@pytest.mark.parametrize(
    "values",
    [
        {"sr_root": "0x12"},
        {"sr_root": "AB" * 32},
        {"sr_cancelled": [128]},
        {"sr_cancelled": ["x"]},
        {"user_page": "not base64!"},
        {"sr_rot": None},
    ],
)
def test_a_wrong_state_is_told(values: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        CardState.from_json(values)
