"""The card's answer to every image, as the documents' tables have it; expected values from there alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.emulator.card import CHECK_CODES, CardProfile, CardState
from harness.emulator.card.authentication import Decision, SectionTrust, authenticate
from harness.images.damage import DAMAGES
from harness.images.recipes import build, load_recipes

ROOT = Path(__file__).resolve().parents[3]
RECIPES = load_recipes((ROOT / "fixtures/images.yaml").read_text())
A = RECIPES["A/csk0"].root_entry_hash()
B = RECIPES["B/csk0"].root_entry_hash()
STATES = {
    "no root": CardState(),
    "root A": CardState(sr_root=A),
    "A, CSK 0 cancelled": CardState(sr_root=A, sr_cancelled=frozenset({0})),
    "root B": CardState(sr_root=B),
}


def ask(data: bytes, state: CardState, **profile: Any) -> Decision:
    trust = {
        section: SectionTrust(state.root(section), state.root(section) is not None, state.cancelled(section))
        for section in ("SR", "BMC", "PR")
    }
    return authenticate(data, trust, CardProfile(**profile))


# Fact sheet 3.3 for the recipes of the scenarios; columns as STATES.
TABLE: dict[str, tuple[int, int, int, int]] = {
    "A/csk0": (0x00, 0x00, 0x15, 0x11),
    "A/csk1": (0x00, 0x00, 0x00, 0x11),
    "A/csk0-v2": (0x00, 0x00, 0x15, 0x11),
    "B/csk0": (0x00, 0x11, 0x11, 0x00),
    "unsigned": (0x00, 0x11, 0x11, 0x11),
    "root-only": (0x00, 0x13, 0x15, 0x11),
    "csk-only": (0x00, 0x11, 0x11, 0x11),
    "csk-foreign": (0x00, 0x12, 0x15, 0x11),
    "p384/csk0": (0x00, 0x06, 0x06, 0x06),
    "tampered-payload": (0x16, 0x16, 0x15, 0x11),
    "tampered-signature": (0x00, 0x13, 0x15, 0x11),
    "truncated": (0x16, 0x16, 0x15, 0x11),
    "raw-file": (0x01, 0x01, 0x01, 0x01),
    "root-key-A": (0x00, 0x1A, 0x1A, 0x1A),
    "root-key-B": (0x00, 0x1A, 0x1A, 0x1A),
    "cancel-A-csk0": (0x10, 0x00, 0x00, 0x11),
    "cancel-A-csk1": (0x10, 0x00, 0x00, 0x11),
    "cancel-B-csk0": (0x10, 0x11, 0x11, 0x00),
    "bmc-unsigned": (0x11, 0x11, 0x11, 0x11),  # the factory's root is not ours
    "bmc-A/csk0": (0x11, 0x11, 0x11, 0x11),
}


@pytest.mark.parametrize("name", TABLE)
def test_recipe_is_answered_as_the_table_says(name: str) -> None:
    data = build(RECIPES[name])
    assert [ask(data, state).code for state in STATES.values()] == list(TABLE[name])


@pytest.mark.parametrize("name", [name for name, damage in DAMAGES.items() if damage.code])
def test_damage_is_refused_with_its_code(name: str) -> None:
    keyed = name != "root-key-payload-hash"
    decision = ask(build(RECIPES[f"damage/{name}"]), STATES["root A" if keyed else "no root"])
    assert f"0x{decision.code:02X}" == DAMAGES[name].code
    assert not decision.accepted


# For each check: an image and a state in which it alone refuses or names the code.
GUARDED: dict[str, tuple[str, str]] = {
    "b0-magic": ("damage/b0-magic", "no root"),
    "content-length": ("damage/content-length", "root A"),
    "content-type": ("damage/content-type", "root A"),
    "b1-magic": ("damage/b1-magic", "root A"),
    "operation": ("damage/cert-type", "root A"),
    "root-already-programmed": ("root-key-B", "root A"),
    "root-key-payload-hash": ("damage/root-key-payload-hash", "no root"),
    "root-not-programmed": ("cancel-A-csk0", "no root"),
    "root-magic": ("damage/root-magic", "root A"),
    "root-curve": ("damage/root-curve", "root A"),
    "root-permission": ("damage/root-permission", "root A"),
    "root-key-id": ("damage/root-key-id", "root A"),
    "root-hash": ("B/csk0", "root A"),
    "csk-magic": ("damage/csk-magic", "root A"),
    "csk-curve": ("damage/csk-curve", "root A"),
    "csk-permission": ("damage/csk-permission", "root A"),
    "csk-signature-magic": ("damage/csk-signature-magic", "root A"),
    "csk-id-range": ("damage/csk-id", "root A"),
    "csk-cancelled": ("A/csk0", "A, CSK 0 cancelled"),
    "csk-signature": ("csk-foreign", "root A"),
    "b0-entry-magic": ("damage/b0-entry-magic", "root A"),
    "b0-entry-signature-magic": ("damage/b0-entry-signature-magic", "root A"),
    "b0-signature": ("tampered-signature", "root A"),
    "payload-hash": ("damage/payload-bit", "root A"),
    "cancellation-payload-hash": ("damage/cancel-payload-hash", "root A"),
    "cancellation-id": ("damage/cancel-id", "root A"),
}


def test_every_check_is_guarded() -> None:
    assert GUARDED.keys() == CHECK_CODES.keys()


@pytest.mark.parametrize("check", GUARDED)
def test_a_card_without_the_check_answers_otherwise(check: str) -> None:
    name, state = GUARDED[check]
    data = build(RECIPES[name])
    sound = ask(data, STATES[state])
    assert (sound.check, sound.code) == (check, CHECK_CODES[check])
    defective = ask(data, STATES[state], disabled_checks=frozenset({check}))
    assert defective.code != sound.code


def edited(name: str, edit: Callable[[bytearray], None]) -> bytes:
    data = bytearray(build(RECIPES[name]))
    edit(data)
    return bytes(data)


def test_another_section_of_the_same_card_has_another_root() -> None:
    """An SR image relabelled as BMC is held against the BMC root (3.3)."""

    def relabel(data: bytearray) -> None:
        data[0x08] = 1

    assert ask(edited("A/csk0", relabel), STATES["root A"]).code == 0x11
    assert ask(edited("unsigned", relabel), CardState(sr_root=A, bmc_root=None)).code == 0x00


def test_the_bmc_takes_a_bmc_image_of_its_root_only() -> None:
    state = CardState(bmc_root=A)
    assert ask(build(RECIPES["bmc-A/csk0"]), state).code == 0x00
    assert ask(build(RECIPES["bmc-unsigned"]), state).code == 0x11


def test_p384_root_key_and_pr_update_are_no_operations_of_this_card() -> None:
    def p384(data: bytearray) -> None:
        data[0x09] = 3

    def pr(data: bytearray) -> None:
        data[0x08] = 2

    assert ask(edited("root-key-A", p384), STATES["no root"]).code == 0x1B
    assert ask(edited("unsigned", pr), STATES["no root"]).code == 0x1B
    assert ask(edited("unsigned", pr), STATES["no root"], pr_update="ignored").code == 0x00


def test_n_minus_s_is_an_equally_valid_signature() -> None:
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

    def flip(data: bytearray) -> None:
        at = 0x1FC + 4 + 0x34
        s = int.from_bytes(data[at : at + 32], "big")
        data[at : at + 32] = (order - s).to_bytes(32, "big")

    assert ask(edited("A/csk0", flip), STATES["root A"]).code == 0x00


def test_the_payload_hash_of_an_unkeyed_card_is_a_profile_value() -> None:
    data = build(RECIPES["tampered-payload"])
    assert ask(data, STATES["no root"]).code == 0x16
    assert ask(data, STATES["no root"], payload_hash_on_unkeyed_card=False).code == 0x00
    assert ask(data, STATES["root A"], payload_hash_on_unkeyed_card=False).code == 0x16


def test_the_code_for_a_csk_id_out_of_range_is_a_profile_value() -> None:
    data = build(RECIPES["damage/csk-id"])
    assert ask(data, STATES["root A"], csk_id_out_of_range_code=0x0C).code == 0x0C


def test_sha384_is_looked_at_where_the_profile_says_so() -> None:
    data = build(RECIPES["damage/payload-sha384"])
    assert ask(data, STATES["root A"]).code == 0x00
    assert ask(data, STATES["root A"], payload_sha384_checked=True).code == 0x16


def test_the_hash_of_the_all_zero_key_does_not_make_unsigned_images_valid() -> None:
    zero_key = "f8ff7e0a52a378483c85301df49c7d55ffd26f794121bdb8b102d7e1c3132bb9"
    assert ask(build(RECIPES["unsigned"]), CardState(sr_root=zero_key)).code == 0x12


@pytest.mark.parametrize("length", [0, 1, 127, 128, 1024, 1151, 1152])
@pytest.mark.parametrize("filler", [b"\x00", b"\xff"])
def test_noise_of_any_length_is_refused(length: int, filler: bytes) -> None:
    assert ask(filler * length, STATES["root A"]).code == 0x01
