"""The interlock has no way in: not by run, put, flash or raw host calls, nor by other permits."""

import copy
import dataclasses
import hashlib
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.cards.driver import CardDriver
from harness.cards.gate import Gate
from harness.cards.interlock import check
from harness.cards.truth import CardTruth
from harness.errors import HarnessError, RefusedError
from harness.hosts.commands import READ_ONLY
from harness.hosts.local import LocalHost
from harness.hosts.permits import AUTHORITIES, Authority, Permit
from harness.hosts.protocol import CommandResult
from harness.images.facts import ImageFacts, image_facts
from harness.images.recipes import build, load_recipes
from harness.judgement.records import Completion, Intent, Promise

RECIPES = load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())
#: What documents say of each image; the last four are no image at all, so they count as both.
IRREVERSIBLE: dict[str, frozenset[str]] = {
    "root-key-A": frozenset({"root-key"}),
    "root-key-B": frozenset({"root-key"}),
    "cancel-A-csk0": frozenset({"key-cancellation"}),
    "cancel-B-csk0": frozenset({"key-cancellation"}),
    "truncated-short": frozenset({"root-key", "key-cancellation"}),
    "raw-file": frozenset({"root-key", "key-cancellation"}),
}
HARMLESS = ("A/csk0", "unsigned", "tampered-payload", "bmc-unsigned")
IMAGES = {name: build(RECIPES[name]) for name in (*IRREVERSIBLE, *HARMLESS)}
NAMES = st.frozensets(st.sampled_from(["root-key", "key-cancellation"]))
ADDRESS, MAC = "0000:b2:00.0", "64:4c:36:00:12:a0"
TARGET = "/tmp/hil-0011.bin"
SEEN = CardTruth(address=ADDRESS, identity=MAC, update_status="idle", flash_count=12)


def seen_at(address: str) -> CardTruth:
    return dataclasses.replace(SEEN, address=address)


@dataclasses.dataclass(frozen=True)
class Entry:
    irreversible: Iterable[str] = ()
    name: str = "card0"
    address: str = ADDRESS
    identity: str | None = MAC
    wear: None = None


class Recording(LocalHost):
    """A host on which nothing happens: what would have run or been written is kept."""

    def __init__(self) -> None:
        super().__init__("bench")
        self.ran: list[tuple[str, ...]] = []
        self.put_there: list[str] = []

    def run(self, argv: Any, *, permit: Permit | None = None, **options: Any) -> CommandResult:
        if permit is not None:
            permit.check_command(self.name, argv)
            self.ran.append(tuple(argv))
        else:
            assert argv[0] in READ_ONLY
        return CommandResult(tuple(argv), 1, "", "", 0.0)

    def put(self, source: Any, path: str, *, permit: Permit, deadline: float = 600.0) -> None:
        permit.check_write(self.name, path, hashlib.sha256(source).hexdigest())
        self.put_there.append(path)


class Records(list[Any]):
    def add(self, record: Any) -> Any:
        numbered = dataclasses.replace(record, seq=len(self) + 1)
        self.append(numbered)
        return numbered


def allowed_by_documents(image: str, entry: frozenset[str], named: frozenset[str], real: bool) -> bool:
    """Design rule 7, said again: the entry permits it by name, and on real hardware so does the option."""
    needed = IRREVERSIBLE.get(image, frozenset())
    return needed <= entry and (not real or needed <= named)


@given(st.sampled_from(sorted(IMAGES)), NAMES, NAMES, st.booleans())
def test_the_rule(image: str, entry: frozenset[str], named: frozenset[str], real: bool) -> None:
    facts = image_facts(IMAGES[image], "harmless.bin")
    if allowed_by_documents(image, entry, named, real):
        check(Entry(entry), facts, named, real)
    else:
        with pytest.raises(RefusedError, match="nothing was changed"):
            check(Entry(entry), facts, named, real)


@given(st.sampled_from(sorted(IMAGES)), NAMES, NAMES, st.booleans())
def test_no_permit_for_the_bytes_is_issued_unless_the_rule_allows(
    image: str, entry: frozenset[str], named: frozenset[str], real: bool
) -> None:
    gate = Gate("bench", Entry(entry), real=real, allowed=named)
    data = IMAGES[image]
    for issue in (
        lambda: gate.upload(data, TARGET),
        lambda: gate.flash(data, hashlib.sha256(data).hexdigest(), TARGET, SEEN),
    ):
        if allowed_by_documents(image, entry, named, real):
            assert isinstance(issue(), Permit)
        else:
            with pytest.raises(RefusedError):
                issue()


@given(st.sampled_from(sorted(IMAGES)), NAMES, NAMES, st.booleans(), st.text(max_size=8))
def test_a_refused_flash_touches_nothing_and_is_in_the_history(
    image: str, entry: frozenset[str], named: frozenset[str], real: bool, name: str
) -> None:
    host, history = Recording(), Records()
    driver = CardDriver(host, Entry(entry), history, real=real, allowed=named)
    with pytest.raises(HarnessError) as failure:
        driver.flash(IMAGES[image], name, Promise("lands"))
    if allowed_by_documents(image, entry, named, real):
        assert (
            not isinstance(failure.value, RefusedError)
            or "identity" in failure.value.message
            or host.put_there
        )
    else:
        assert isinstance(failure.value, RefusedError)
        assert not host.ran and not host.put_there
        intent, completion = history
        assert isinstance(intent, Intent) and intent.operation == "flash"
        assert isinstance(completion, Completion) and completion.error["kind"] == "refused"


@given(st.binary(max_size=2000), st.sampled_from(sorted(IMAGES)), st.integers(0, 1100), st.binary(max_size=8))
def test_damaged_bytes_are_never_less_dangerous(noise: bytes, image: str, at: int, patch: bytes) -> None:
    """Whatever is not an image for certain is refused where anything irreversible is."""
    gate = Gate("bench", Entry(), real=False, allowed=frozenset())
    with pytest.raises(RefusedError):
        gate.upload(noise, TARGET)
    data = bytearray(IMAGES[image])
    data[at : at + len(patch)] = patch
    damaged = bytes(data)
    is_update = damaged[:4] == bytes.fromhex("19fdeab6") and damaged[9] == 0 and damaged[8] <= 2
    if not is_update or len(damaged) < 1152:
        with pytest.raises(RefusedError):
            gate.upload(damaged, TARGET)


@given(st.sampled_from(sorted(IMAGES)), st.booleans())
def test_a_permit_is_about_a_card_and_not_about_a_slot(image: str, real: bool) -> None:
    """Without its identity nobody can tell that a real card was exchanged; emulated ones always have one."""
    everything = frozenset({"root-key", "key-cancellation"})
    entry = Entry(everything, identity=None)
    facts = image_facts(IMAGES[image])
    if real and image in IRREVERSIBLE:
        with pytest.raises(RefusedError, match="whatever card stands at") as caught:
            check(entry, facts, everything, real)
        assert "identity" in caught.value.hint
    else:
        check(entry, facts, everything, real)


def test_facts_of_another_image_do_not_help() -> None:
    gate = Gate("bench", Entry(), real=False, allowed=frozenset())
    harmless = image_facts(IMAGES["A/csk0"], "A/csk0")
    with pytest.raises(RefusedError):
        gate.image(IMAGES["root-key-A"], "A/csk0", harmless)
    lie = dataclasses.replace(harmless, sha256=hashlib.sha256(IMAGES["root-key-A"]).hexdigest())
    with pytest.raises(RefusedError):
        gate.image(IMAGES["root-key-A"], "A/csk0", lie)
    permitting = Gate("bench", Entry(("root-key",)), real=False, allowed=frozenset())
    with pytest.raises(RefusedError, match="about other bytes"):
        permitting.image(IMAGES["root-key-A"], "A/csk0", lie)


def test_a_file_that_was_exchanged_on_the_host_is_not_flashed() -> None:
    gate = Gate("bench", Entry(), real=False, allowed=frozenset())
    there = hashlib.sha256(IMAGES["root-key-A"]).hexdigest()
    with pytest.raises(RefusedError, match="nothing was flashed"):
        gate.flash(IMAGES["A/csk0"], there, TARGET, SEEN)


def test_an_entry_that_changes_afterwards_permits_nothing_more() -> None:
    named: set[str] = set()
    gate = Gate("bench", Entry(("root-key",)), real=True, allowed=named)
    named.add("root-key")
    with pytest.raises(RefusedError):
        gate.upload(IMAGES["root-key-A"], TARGET)


# -- raw host calls -----------------------------------------------------------------------------------

HARMLESS_GATE = Gate("bench", Entry(), real=False, allowed=frozenset())
ISSUED: dict[str, Callable[[], Permit]] = {
    "upload": lambda: HARMLESS_GATE.upload(IMAGES["A/csk0"], TARGET),
    "flash": lambda: HARMLESS_GATE.flash(
        IMAGES["A/csk0"], hashlib.sha256(IMAGES["A/csk0"]).hexdigest(), TARGET, SEEN
    ),
    "reset": lambda: HARMLESS_GATE.reset("bmcimg", SEEN),
    "signal": lambda: HARMLESS_GATE.signal("TERM", 4711),
    "cancel": lambda: HARMLESS_GATE.cancel("/sys/x/firmware/secure-update0/cancel"),
    "remove": lambda: HARMLESS_GATE.remove(TARGET),
}
FLASHING = (
    ["fpgasupdate", "-y", TARGET, ADDRESS],
    ["sh", "-c", f"fpgasupdate -y {TARGET} {ADDRESS}"],
    ["/usr/bin/fpgasupdate", "-y", TARGET, ADDRESS],
    ["cp", TARGET, "/sys/class/firmware/secure-update0/data"],
)


@pytest.mark.parametrize("issued", ISSUED)
@given(st.sampled_from(FLASHING), st.sampled_from(sorted(IRREVERSIBLE)))
def test_a_permit_covers_its_own_act_only(issued: str, command: list[str], image: str) -> None:
    host, permit = Recording(), ISSUED[issued]()
    with pytest.raises(RefusedError):
        host.run(command, permit=permit)
    with pytest.raises(RefusedError):
        host.put(IMAGES[image], TARGET, permit=permit)
    assert not host.ran and not host.put_there


@pytest.mark.parametrize("issued", ISSUED)
def test_a_permit_for_one_host_is_none_for_another(issued: str) -> None:
    permit = ISSUED[issued]()
    with pytest.raises(RefusedError):
        permit.check_command("other", permit.argv)
    with pytest.raises(RefusedError):
        permit.check_write("other", permit.path, permit.sha256)


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "act": st.sampled_from(["flash", "upload", "service", "power"]),
        "host": st.sampled_from(["bench", "other"]),
        "argv": st.sampled_from([tuple(command) for command in FLASHING]),
        "path": st.sampled_from([TARGET, "/etc/passwd"]),
        "sha256": st.sampled_from(sorted(hashlib.sha256(data).hexdigest() for data in IMAGES.values())),
    },
)


@pytest.mark.parametrize("issued", ISSUED)
@given(CHANGES)
def test_a_copied_and_changed_permit_is_none(issued: str, changes: dict[str, Any]) -> None:
    permit = ISSUED[issued]()
    if any(getattr(permit, name) != value for name, value in changes.items()):
        with pytest.raises(RefusedError, match="cannot be made by hand"):
            dataclasses.replace(permit, **changes)
    with pytest.raises(dataclasses.FrozenInstanceError):
        permit.argv = ("fpgasupdate",)  # type: ignore[misc]
    assert copy.copy(permit) == copy.deepcopy(permit) == pickle.loads(pickle.dumps(permit)) == permit


@given(CHANGES, st.text(max_size=70))
def test_a_permit_made_by_hand_is_none(changes: dict[str, Any], seal: str) -> None:
    fields = {"act": "flash", "host": "bench", "reason": "", "argv": ("fpgasupdate",)} | changes
    with pytest.raises(RefusedError):
        Permit(**fields, seal=seal)  # type: ignore[arg-type]


def test_nothing_that_only_looks_like_a_permit_is_one(tmp_path: Path) -> None:
    """Hosts look for themselves: a derived class, a stand-in or a permit changed in place is refused."""

    class Derived(Permit):
        def check_command(self, host: str, argv: Any) -> None: ...

        def check_write(self, host: str, path: str, sha256: str) -> None: ...

    made = tmp_path / "made"
    touch = ("touch", str(made))
    true = ISSUED["signal"]()
    derived = Derived.__new__(Derived)
    changed = copy.copy(true)
    for field in dataclasses.fields(Permit):
        object.__setattr__(derived, field.name, getattr(true, field.name))
    object.__setattr__(changed, "argv", touch)
    stand_in = SimpleNamespace(
        argv=touch, path=str(made), check_command=lambda *_: None, check_write=lambda *_: None
    )
    host: Any = LocalHost("bench")
    for permit in (derived, changed, stand_in):
        with pytest.raises(RefusedError):
            host.run(touch, permit=permit)
        with pytest.raises(RefusedError):
            host.put(b"", str(made), permit=permit)
    assert not made.exists()


def test_words_that_pretend_to_be_equal_do_not_run(tmp_path: Path) -> None:
    class Pretending(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = str.__hash__

    made = tmp_path / "made"
    allowed = Authority("cards").command("signal", "bench", ("test", "-e", "/"), "test")
    LocalHost("bench").run([Pretending("touch"), Pretending(made), Pretending("x")], permit=allowed)
    assert not made.exists()


def test_words_that_pretend_to_be_sealed_are_none(tmp_path: Path) -> None:
    """A seal is made of how the words look; only plain words look like what they are."""

    class Pretending(str):
        __slots__ = ("looks",)

        def __repr__(self) -> str:
            return self.looks

    class Words(tuple[str, ...]):
        __slots__ = ()

        def __repr__(self) -> str:
            return repr(tuple(map(str, true.argv)))

    made = tmp_path / "made"
    true = Authority("cards").command("signal", "bench", ("test", "-e", "/"), "test")
    evil = []
    for word, looks in zip(("touch", str(made), str(made)), true.argv, strict=True):
        evil.append(Pretending(word))
        evil[-1].looks = repr(looks)
    host = Pretending("bench")
    host.looks = repr("bench")
    fields = {"act": true.act, "host": true.host, "reason": true.reason, "argv": true.argv, "seal": true.seal}
    for change in ({"argv": tuple(evil)}, {"argv": Words(("touch", str(made)))}, {"host": host}):
        with pytest.raises(RefusedError, match="cannot be made by hand"):
            Permit(**(fields | change))  # type: ignore[arg-type]
    assert not made.exists()


def test_what_is_stated_of_an_image_does_not_make_it_harmless(tmp_path: Path) -> None:
    """A card that cannot be told from another is not given what cannot be undone, whoever vouches for it."""

    class Vouching(ImageFacts):
        __slots__ = ()

        @property
        def irreversible(self) -> frozenset[Any]:
            return frozenset()

    true = image_facts(IMAGES["root-key-A"], "root-key-A")
    vouching = Vouching(**{field.name: getattr(true, field.name) for field in dataclasses.fields(ImageFacts)})
    host, history = Recording(), Records()
    driver = CardDriver(host, Entry(("root-key",)), history, real=False)
    for act in (driver.flash, driver.upload):
        with pytest.raises(RefusedError, match="identity"):
            act(IMAGES["root-key-A"], "root-key-A", Promise("lands"), facts=vouching)
    assert not host.ran and not host.put_there


@given(st.text(max_size=12) | st.sampled_from(["hosts", "emulator", "plugin", "scenarios"]))
def test_other_packages_issue_none(package: str) -> None:
    if package not in AUTHORITIES:
        with pytest.raises(RefusedError):
            Authority(package)


@pytest.mark.parametrize(("package", "act"), [("lab", "flash"), ("registry", "flash"), ("lab", "upload")])
def test_authorities_keep_to_their_acts(package: str, act: Any) -> None:
    with pytest.raises(RefusedError):
        Authority(package).command(act, "bench", ["fpgasupdate"], "")


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=20))
def test_no_text_smuggles_a_command_into_a_permitted_one(path: str, address: str, name: str) -> None:
    """Whatever is not of the form that the command needs is refused before a permit exists."""
    data = IMAGES["A/csk0"]
    digest = hashlib.sha256(data).hexdigest()
    for issue in (
        lambda: HARMLESS_GATE.flash(data, digest, path, SEEN),
        lambda: HARMLESS_GATE.flash(data, digest, TARGET, seen_at(f"{address} ")),
        lambda: HARMLESS_GATE.cancel(path),
        lambda: HARMLESS_GATE.remove(path),
        lambda: HARMLESS_GATE.reset("bmcimg", seen_at(f"{address};")),
        lambda: HARMLESS_GATE.reset("bmcimg", SEEN, f"{name} "),
        lambda: HARMLESS_GATE.signal(f"{name} ", 7),
        lambda: HARMLESS_GATE.signal("TERM", 1),
        lambda: HARMLESS_GATE.signal("TERM", -1),
    ):
        with pytest.raises(HarnessError):
            issue()
