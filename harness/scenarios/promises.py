"""Short ways to write what documents promise for an operation."""

from __future__ import annotations

from harness.judgement.records import Promise

#: Effects of an image (:class:`harness.images.facts.ImageFacts`) that show only after the card was reset.
ACTIVATED_BY_RESET = frozenset({"user-image", "bmc-image", "root-key", "key-cancellation"})


def lands(source: str) -> Promise:
    """The new content takes effect."""
    return Promise("lands", source=source)


def unchanged(*codes: str, source: str) -> Promise:
    """The old content stays. ``codes``: the card's authentication codes that documents allow ("0x11")."""
    return Promise("unchanged", codes=codes, source=source)


def factory(source: str) -> Promise:
    """The card comes up from its factory page."""
    return Promise("factory", source=source)


def returns(source: str) -> Promise:
    """The card is back on the bus after a reset."""
    return Promise("returns", source=source)
