"""Each flaw of a defective card, shown by what a real card would show of it, and the same card without it."""

from collections.abc import Callable

import pytest

from harness.emulator.card import CardState
from harness.emulator.card.profile import FLAWS

Seen = Callable[..., bool]
SHOWS: dict[str, Seen] = {}


def shows(flaw: str) -> Callable[[Seen], Seen]:
    """Note the function below as what shows ``flaw``."""

    def note(seen: Seen) -> Seen:
        SHOWS[flaw] = seen
        return seen

    return note


def running_after(bench, data: bytes) -> int:
    assert bench.flash(data) == ""
    bench.reset()
    return bench.card.bitstream_id


NEW = 0x23000410010315  # of the recipe `unsigned`


@shows("copy-dropped")
def _(make, image, root) -> bool:
    bench = make()
    before = bench.card.bitstream_id
    after = running_after(bench, image("unsigned"))
    assert after in (before, NEW)
    return after == before


@shows("copy-cut-short")
def _(make, image, root) -> bool:
    bench = make()
    running_after(bench, image("unsigned"))
    return bench.card.state.user_page != image("unsigned")[1024:]


@shows("refused-image-copied")
def _(make, image, root) -> bool:
    bench = make(CardState(sr_root=root("A")))
    assert bench.flash(image("unsigned")) == "programming:hw-error"
    bench.reset()
    return bench.card.bitstream_id == NEW


@shows("factory-page-booted")
def _(make, image, root) -> bool:
    bench = make()
    return running_after(bench, image("unsigned")) != NEW


@shows("root-key-dropped")
def _(make, image, root) -> bool:
    bench = make()
    assert bench.flash(image("root-key-A")) == ""
    return bench.card.root_entry_hash("SR") is None


@shows("cancellation-dropped")
def _(make, image, root) -> bool:
    bench = make(CardState(sr_root=root("A")))
    assert bench.flash(image("cancel-A-csk0")) == ""
    return bench.card.cancelled("SR") == frozenset()


@shows("next-csk-cancelled")
def _(make, image, root) -> bool:
    bench = make(CardState(sr_root=root("A")))
    assert bench.flash(image("cancel-A-csk0")) == ""
    return bench.card.cancelled("SR") == {1}


@shows("root-key-lost")
def _(make, image, root) -> bool:
    bench = make()
    assert bench.flash(image("root-key-A")) == ""
    assert bench.card.root_entry_hash("SR") == root("A")
    bench.reset()
    return bench.card.root_entry_hash("SR") is None


@shows("cancellations-lost")
def _(make, image, root) -> bool:
    bench = make(CardState(sr_root=root("A")))
    assert bench.flash(image("cancel-A-csk0")) == ""
    assert bench.card.cancelled("SR") == {0}
    bench.reset()
    return bench.card.cancelled("SR") == frozenset()


@shows("root-key-ignored")
def _(make, image, root) -> bool:
    bench = make(CardState(sr_root=root("A")))
    taken = bench.flash(image("unsigned")) == ""
    assert bench.card.root_entry_hash("SR") == root("A")
    return taken


@shows("reset-stays-away")
def _(make, image, root) -> bool:
    bench = make()
    bench.reset()
    away = bench.card.address is None
    bench.power_cycle()
    assert bench.card.address is not None
    return away


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_shows_when_it_is_on_and_not_when_it_is_off(flaw, make_bench, image, root_hash) -> None:
    def defective(*arguments, **options):
        return make_bench(*arguments, flaws=frozenset({flaw}), **options)

    assert SHOWS[flaw](defective, image, root_hash)
    assert not SHOWS[flaw](make_bench, image, root_hash)
