"""Good inputs to begin from: the vectors, images of the recipes, and what an emulated host prints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from harness.cards.truth import Probe
from harness.emulator.card import CardProfile, CardSpec, CardState
from harness.emulator.clock import LabClock
from harness.emulator.host import EmulatedHost
from harness.emulator.process import Buffer, Bytes
from harness.emulator.programs.base import Streams
from harness.images.recipes import build, load_recipes

ROOT = Path(__file__).resolve().parents[3]
ADDRESS = "0000:b2:00.0"
_RECIPES = ("A/csk0", "A/csk1", "B", "unsigned", "root-key-A", "cancel-A-csk0", "damage/payload-bit", "A/bmc")


@cache
def images() -> tuple[bytes, ...]:
    """Return small images of every kind: the vendor tool's with 16 KiB payloads, ours cut to the same."""
    vectors = sorted((ROOT / "fixtures/vectors").rglob("*.bin"))
    recipes = load_recipes((ROOT / "fixtures/images.yaml").read_text())
    built = [build(recipes[name]) for name in _RECIPES if name in recipes]
    return (*(path.read_bytes() for path in vectors), *built)


@cache
def root_hash_of_a() -> str:
    recipes = load_recipes((ROOT / "fixtures/images.yaml").read_text())
    digest = recipes["A/csk0"].root_entry_hash()
    assert digest is not None
    return digest


def new_host(cards: int = 1, state: CardState | None = None) -> EmulatedHost:
    """Return an emulated host that is on, with instant lab time and cards in it."""
    host = EmulatedHost("subcloud1", LabClock(start=1796029200.0))
    for index, address in zip(range(cards), (ADDRESS, "0000:5e:00.0"), strict=False):
        spec = CardSpec(f"card{index}", f"64:4c:36:00:{index:02x}:00", (address,))
        host.add_card(spec, state or CardState(), CardProfile())
    host.power_on()
    return host


def run_on(host: EmulatedHost, command: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    """Run ``command`` on an emulated host; return status, standard output and standard error."""
    out, err = Buffer(), Buffer()
    code = host.run(command, Streams(Bytes(stdin), out, err))
    return code, bytes(out.data), bytes(err.data)


def printed_by(*commands: str) -> Sequence[bytes]:
    """Return what each of ``commands`` prints on a host with two cards, both streams behind each other."""
    state = CardState(sr_root=root_hash_of_a(), sr_cancelled=frozenset({0, 1, 2, 5}), flash_count=12)
    host = new_host(2, state)
    host.vfs.write("/tmp/A.bin", images()[-1])
    host.vfs.write("/tmp/good.bin", _image_of_a())
    try:
        return [b"".join(run_on(host, command)[1:]) for command in commands]
    finally:
        host.clock.close()


@cache
def _image_of_a() -> bytes:
    recipes = load_recipes((ROOT / "fixtures/images.yaml").read_text())
    return build(recipes["A/csk1"])


@cache
def truth_texts() -> tuple[bytes, ...]:
    """Return what the probe's command prints, standard output alone, for a keyed card and for none."""
    state = CardState(sr_root=root_hash_of_a(), sr_cancelled=frozenset({0, 1, 2, 5}), flash_count=12)
    found = []
    for host in (new_host(1, state), new_host(0)):
        argv = " ".join(f"'{word}'" if word == "" else word for word in Probe(ADDRESS).argv)
        _, out, err = run_on(host, argv)
        found.append(out + b"\0" + err)
        host.clock.close()
    return tuple(found)
