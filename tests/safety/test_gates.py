"""The interlock attacked at its gates: what is let pass does to no card what its entry does not permit.

What an image does is not taken from the code that decides about it, but from the emulated card: it is given
the bytes, in every state of its root of trust, and once more with all of its own checks switched off.
"""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
import re
import shlex
from collections.abc import Callable
from copy import copy
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from safety.quota import TRIES, Tries
from support.hostile import OPTIONS, PROGRAMS, TEXTS, Pretender, hostile_images, images

from harness.cards.eras import Place
from harness.cards.gate import Gate
from harness.cards.truth import CardTruth
from harness.emulator.card import CHECK_CODES, CardProfile
from harness.emulator.card.authentication import CancelKey, ProgramRoot, SectionTrust, authenticate
from harness.errors import HarnessError, RefusedError
from harness.hosts.permits import Authority, Permit, genuine
from harness.inventory.model import Card

ADDRESS, MAC = "0000:b2:00.0", "64:4c:36:00:12:a0"
OTHER_ADDRESS, OTHER_MAC = "0000:5e:00.0", "64:4c:36:00:99:99"
TARGET = "/tmp/hil-0011.bin"
SEEN = CardTruth(
    address=ADDRESS, identity=MAC, update_status="idle", flash_count=12,
    sources={"update_status": f"/sys/bus/pci/devices/{ADDRESS}/fw/firmware/secure-update0/status"},
)  # fmt: skip
ACTS = ("root-key", "key-cancellation")
PERMITS = [(), ("root-key",), ("key-cancellation",), ACTS]
#: A card as it is shipped, one with root A, one that just got it; and one that checks nothing at all.
TRUSTS = [
    {},
    {
        "SR": SectionTrust(
            root="a625d632af900462bfba55ed5053debbdbb41ff5d9328837b6059c6ee12f2234", programmed=True
        )
    },
    {"SR": SectionTrust(programmed=True)},
]
SOUND = CardProfile()
CARELESS = dataclasses.replace(SOUND, disabled_checks=frozenset(CHECK_CODES))


def card(irreversible: tuple[str, ...] = (), **more: Any) -> Card:
    return Card(name="card0", address=ADDRESS, identity=MAC, irreversible=irreversible, **more)


@cache
def gate_of(permits: tuple[str, ...], real: bool, allowed: tuple[str, ...]) -> Gate:
    return Gate("bench", card(permits), real=real, allowed=allowed)


def done_by(data: bytes) -> set[str]:
    """What the emulated card does with these bytes that cannot be undone, in whatever state it is."""
    found = set()
    # A card that believes every length would copy 56 MiB; what it does with the bytes does not depend on it.
    short = data[:4] + (128).to_bytes(4, "little") + data[8:] if len(data) > 8 else data
    states = [*((data, trust, SOUND) for trust in TRUSTS), (short, TRUSTS[1], CARELESS)]
    for staged, trust, profile in states:
        effect = authenticate(staged, trust, profile).effect  # type: ignore[arg-type]
        if isinstance(effect, ProgramRoot):
            found.add("root-key")
        elif isinstance(effect, CancelKey):
            found.add("key-cancellation")
    return found


def issued(ask: Callable[[], Permit]) -> Permit | None:
    """The permit, if one is issued. An error that is none of the harness's own is a bug, and passes on."""
    try:
        return ask()
    except HarnessError:
        return None


def test_there_are_a_hundred_thousand_tries_in_all(record_property: Any) -> None:
    record_property("safety_tries", sum(TRIES.values()))
    assert sum(TRIES.values()) >= 100_000


def test_the_card_itself_tells_what_is_irreversible() -> None:
    """The oracle is not blind: it sees what documents say of the images of every kind."""
    assert done_by(images()["root-key-A"]) == {"root-key"}
    assert done_by(images()["cancel-A-csk0"]) == {"key-cancellation"}
    assert done_by(images()["A/csk0"]) == done_by(images()["unsigned"]) == set()


@pytest.mark.parametrize("part", range(4))
def test_no_image_gets_a_permit_for_what_it_must_not_do(part: int) -> None:
    rng = Random(f"images {part}")
    passed = through = 0
    with Tries("images at the gate", parts=4) as tries:
        for _, data in zip(tries, hostile_images(part), strict=False):
            permits, allowed, real = rng.choice(PERMITS), rng.choice(PERMITS), rng.random() < 0.5
            permitted = set(permits) & (set(allowed) if real else set(ACTS))
            gate, digest = gate_of(permits, real, allowed), hashlib.sha256(data).hexdigest()
            ask = rng.choice(
                [
                    lambda: gate.upload(data, TARGET),  # noqa: B023
                    lambda: gate.flash(data, digest, TARGET, SEEN),  # noqa: B023
                    lambda: gate.kernel_upload(data, digest, TARGET, SEEN),  # noqa: B023
                ]
            )
            permit = issued(ask)
            passed += permit is not None
            through += permit is not None and not done_by(data) <= permitted
    assert through == 0
    assert passed > tries.made // 10, "an attack in which nothing passes shows nothing"


# -- words --------------------------------------------------------------------------------------------

_FLASH = re.compile(
    r"echo hil-pid:\$\$; "
    r'\[ "\$\(sha256sum </tmp/hil-0011\.bin\)" = "[0-9a-f]{64}  -" \] \|\| '
    r"\{ echo hil-image-changed >&2; exit 76; \}; "
    rf"grep -qixs {MAC} (/sys/bus/pci/devices/{ADDRESS}/[a-z0-9_/.*-]+ ?)+ "
    r"\|\| \{ echo hil-card-exchanged >&2; exit 77; \}; LC_ALL=C\.UTF-8 LANG=C\.UTF-8 "
    rf"exec flock -F -n -E 75 /run/lock/hil-64-4c-36-00-12-a0\.lock "
    rf"fpgasupdate -y --log-level debug /tmp/hil-0011\.bin {ADDRESS}"
)


def hostile(rng: Random) -> Any:
    """A word that is none, or that pretends."""
    text = rng.choice((*TEXTS, *OPTIONS, *PROGRAMS))
    return rng.choice(
        [
            text,
            text,
            Pretender(text, rng.choice((ADDRESS, MAC, TARGET, "bmcimg", "TERM", "user"))),
            Pretender(rng.choice((OTHER_ADDRESS, OTHER_MAC)), rng.choice((ADDRESS, MAC))),
            text.encode(errors="replace"),
            None,
            rng.randrange(-5, 5),
            [text],
        ]
    )


def test_no_word_becomes_more_of_a_command_than_it_is() -> None:
    """Where a permit is issued all the same, its command is the one that it is for, on the card it is for."""
    rng = Random("words")
    data = images()["A/csk0"]
    digest = hashlib.sha256(data).hexdigest()
    gate = gate_of(ACTS, False, ())
    key = images()["root-key-A"]
    flashes: list[Callable[[Any], Permit]] = [
        lambda word: gate.flash(data, digest, word, SEEN),
        lambda word: gate.flash(data, word, TARGET, SEEN),
        lambda word: gate.flash(data, digest, TARGET, dataclasses.replace(SEEN, address=word)),
        lambda word: gate.flash(data, digest, TARGET, dataclasses.replace(SEEN, identity=word)),
        lambda word: gate.flash(data, digest, TARGET, SEEN, Place("host", tools={"fpgasupdate": word})),
        lambda word: gate.flash(data, Pretender(hashlib.sha256(key).hexdigest(), digest), TARGET, SEEN),
    ]
    others: list[Callable[[Any], Permit]] = [
        lambda word: gate.reset(word, SEEN),
        lambda word: gate.reset("bmcimg", SEEN, word),
        lambda word: gate.reset("bmcimg", dataclasses.replace(SEEN, address=word)),
        lambda word: gate.reset("bmcimg", SEEN, None, Place(word, "x/n3000-opae:v1", {"rsu": "sh"})),
        lambda word: gate.reset("bmcimg", SEEN, None, Place("docker", word)),
        lambda word: gate.signal(word, 4711),
        lambda word: gate.signal("TERM", word),
        lambda word: gate.cancel(word),
        lambda word: gate.remove(word),
        lambda word: gate.report(word, ADDRESS, Place("host")),
        lambda word: gate.clear(word, Place("containerd", "x/n3000-opae:v1")),
        lambda word: gate.kernel_upload(data, digest, word, SEEN),
    ]
    with Tries("words for a gate") as tries:
        for _ in tries:
            word = hostile(rng)
            ask = rng.choice(flashes)
            try:
                permit = ask(word)
            except (HarnessError, TypeError, AttributeError):
                pass
            else:
                assert _FLASH.fullmatch(permit.argv[2]), permit.argv
                assert digest in permit.argv[2], "the host looks for other bytes than those that were judged"
            try:
                permit = rng.choice(others)(word)
            except (HarnessError, TypeError, AttributeError):
                continue
            words = (
                shlex.split(permit.argv[2].rpartition("exec ")[2]) if permit.argv[0] == "sh" else permit.argv
            )
            known = {"flock", "rsu", "kill", "rm", "fpgainfo", "docker", "ctr", "echo"}
            assert words[0] in known, permit.argv


class Pid(int):
    """A number that is written as another one: that of every process."""

    def __str__(self) -> str:
        return "-1"


PRETENDING: dict[str, Callable[[Gate], Permit]] = {
    "kind": lambda gate: gate.reset(Pretender("exec", "bmcimg"), SEEN),  # type: ignore[arg-type]
    "page": lambda gate: gate.reset("bmcimg", SEEN, Pretender("exec", "user")),
    "signal": lambda gate: gate.signal(Pretender("0 1", "TERM"), 4711),
    "pid": lambda gate: gate.signal("TERM", Pid(4711)),
    "container": lambda gate: gate.clear(Pretender("-f x", "v1"), Place("containerd", "x/n3000-opae:v1")),
    "path": lambda gate: gate.remove(Pretender("/etc", TARGET)),
    "address": lambda gate: gate.reset("bmcimg", dataclasses.replace(SEEN, address=Pretender("-", ADDRESS))),
    "identity": lambda gate: gate.reset("bmcimg", dataclasses.replace(SEEN, identity=Pretender("x", MAC))),
}


@pytest.mark.parametrize("what", PRETENDING)
def test_a_word_that_pretends_to_be_legal_is_refused(what: str) -> None:
    with pytest.raises(HarnessError):
        PRETENDING[what](gate_of((), False, ()))


# -- permits ------------------------------------------------------------------------------------------


def test_no_permit_does_what_it_was_not_issued_for() -> None:
    rng = Random("permits")
    cards, lab = Authority("cards"), Authority("lab")
    argv = ("fpgasupdate", "-y", TARGET, ADDRESS)
    evil = ("sh", "-c", f"fpgasupdate -y /tmp/other {ADDRESS}")
    fields = [field.name for field in dataclasses.fields(Permit)]
    lost: list[str] = []

    def fence() -> None:
        if lost:
            raise RefusedError("the lease is another's")

    def tampered(permit: Permit) -> Permit:
        made = copy(permit)
        name = rng.choice(fields)
        value = rng.choice(
            [evil, argv, "other", "bench", TARGET, "/etc/passwd", "0" * 64, 1, b"x", None, "power"]
        )
        object.__setattr__(made, name, Pretender("x", str(value)) if rng.random() < 0.2 else value)
        return made

    def by_hand(permit: Permit) -> Permit:
        return Permit("flash", "bench", "", argv=evil, number=permit.number, seal=permit.seal)

    def transplanted(permit: Permit) -> Permit:
        return dataclasses.replace(permit, seal=cards.command("reset", "bench", argv, "").seal)

    def from_elsewhere(permit: Permit) -> Permit:
        """As another process would send it: sealed with a secret that is not ours."""
        return pickle.loads(pickle.dumps(permit).replace(permit.seal.encode(), b"0" * 64))

    def spent(permit: Permit) -> Permit:
        permit.spend()
        return rng.choice([permit, copy(permit), pickle.loads(pickle.dumps(permit))])

    def after_the_lease(permit: Permit) -> Permit:
        lost.append("gone")
        return permit

    def of_another_kind(permit: Permit) -> Permit:
        return lab.command("flash", "bench", argv, "")

    attacks = [
        tampered,
        tampered,
        by_hand,
        transplanted,
        from_elsewhere,
        spent,
        after_the_lease,
        of_another_kind,
    ]
    through = 0
    with Tries("permits") as tries:
        for _ in tries:
            lost.clear()
            permit = cards.command("flash", "bench", argv, "", fence)
            attack = rng.choice(attacks)
            host, asked = rng.choice([("bench", argv), ("other", argv), ("bench", evil)])
            try:
                offered = genuine(attack(permit))
                offered.check_command(host, asked)
                offered.spend()
            except (HarnessError, dataclasses.FrozenInstanceError, TypeError):
                continue
            # A change that changes nothing, and is used where and for what it was issued.
            same = offered == permit and offered.argv == argv and (host, asked) == ("bench", argv)
            through += not (same and attack is tampered)
    assert through == 0


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Permit)])
def test_a_permit_is_sealed_as_a_whole(field: str) -> None:
    made = copy(Authority("cards").command("flash", "bench", ("x",), "test"))
    other = {"argv": ("y",), "number": made.number + 1}.get(field, "other")
    object.__setattr__(made, field, other)
    with pytest.raises(RefusedError, match="cannot be made by hand"):
        genuine(made)


def test_a_permit_is_used_once_by_whoever_is_first() -> None:
    permit = Authority("cards").command("signal", "bench", ("kill", "-TERM", "4711"), "test")
    other = copy(permit)
    other.spend()
    for again in (permit, other, pickle.loads(pickle.dumps(permit))):
        with pytest.raises(RefusedError, match="used already"):
            again.spend()


def test_a_permit_ends_with_its_lease() -> None:
    held = [True]

    def fence() -> None:
        if not held:
            raise RefusedError("lost")

    permit = Authority("cards").command("flash", "bench", ("x",), "test", fence)
    held.clear()
    with pytest.raises(RefusedError, match="lost"):
        permit.spend()
    held.append(True)
    with pytest.raises(RefusedError, match="used already"):
        permit.spend()


def test_the_generator_makes_what_it_is_to_make() -> None:
    """Every kind of image, and most of them no real one."""
    real = set(images().values())
    made = list(islice(hostile_images(9), 400))
    assert sum(data not in real for data in made) > 200
    assert {"root-key", "key-cancellation"} <= set().union(*map(done_by, made))
    assert len({len(data) for data in made}) > 50


#: What issues permits, or decides about them: no business of a scenario.
WIRING = ("harness.hosts.permits", "harness.cards.gate", "harness.controlplane.gate", "harness.cards.driver")


def test_no_scenario_of_ours_makes_an_interlock_of_its_own() -> None:
    """That it could is said in docs/safety.md: scenarios for real cards are to be read."""
    plans = Path(__file__).parents[2] / "testplans"
    found = [path for path in plans.rglob("*.py") if any(name in path.read_text() for name in WIRING)]
    assert list(plans.rglob("*.py")) and found == []
