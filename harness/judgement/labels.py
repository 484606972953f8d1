"""Labels: which an image is applied to, which card carries them, and which it was given to carry."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from harness.judgement.grouping import listed, word
from harness.judgement.records import Claim, Intent
from harness.judgement.system_story import Look, SystemStory

#: Key and value.
Label = tuple[str, str]
#: Stands for every device, where an image is applied without labels (fact sheet of StarlingX, section 4.1).
EVERY: Final = ("", "")


def labels_of(claim: Claim) -> list[Label] | None:
    """Return the labels that an image is said to be applied to; None where this way does not show them."""
    shown: Any = claim.statement.get("applied_labels")
    if shown is None:
        return []
    if not isinstance(shown, (list, tuple)):
        return None
    return [
        (str(label[0]), str(label[1]))
        for label in shown
        if isinstance(label, (list, tuple)) and len(label) == 2
    ]


def told(labels: Collection[Label]) -> str:
    """Return labels as people read them."""
    return (
        ", ".join("every device" if label == EVERY else f"{label[0]}={label[1]}" for label in labels)
        or "none"
    )


def carriers(look: Look) -> dict[Label, set[str]]:
    """Return which cards carry each label in a look."""
    places = {(word(c.statement, "hostname"), word(c.statement, "name")): c for c in look.said["device"]}
    found: dict[Label, set[str]] = {}
    for claim in look.said["label"]:
        said = claim.statement
        device = places.get((word(said, "hostname"), word(said, "device")))
        card = look.card_at(said.get("hostname"), device.statement.get("address")) if device else ""
        label = (word(said, "label_key"), word(said, "label_value"))
        found.setdefault(label, set()).update({card} - {""})
    return found


def given_labels(story: SystemStory) -> Iterator[dict[str, set[Label]]]:
    """Yield, for each look in order, the labels that each card was given by then and nobody took off it.

    A label that a system has lost still says what its card is meant to get.
    """
    given: dict[str, set[Label]] = {}
    changes = iter([*story.changes, None])
    change = next(changes)
    before: Look | None = None
    for look in story.looks:
        while change is not None and change.seq < look.seq:
            _note(given, story, before or look, change)
            change = next(changes)
        before = look
        yield {card: set(labels) for card, labels in given.items()}


def _note(given: dict[str, set[Label]], story: SystemStory, look: Look, change: Intent) -> None:
    taken = change.operation == "label-remove"
    # What got no answer may have been done: a label is given for certain, taken off at the least doubt.
    undone = story.declined if taken else story.not_returned
    if change.operation not in ("label-assign", "label-remove") or change.seq in undone:
        return
    card = _card_of(look, change)
    if taken:
        keys = listed(change.parameters, "keys")
        given[card] = {label for label in given.get(card, ()) if label[0] not in keys}
        return
    for text in listed(change.parameters, "labels"):
        key, _, value = text.partition("=")
        given.setdefault(card, set()).add((key, value))


def _card_of(look: Look, change: Intent) -> str:
    """Return the card that a label was given to: by its address, or by its name in the system."""
    hostname, device = change.parameters.get("target"), change.parameters.get("device")
    if card := look.card_at(hostname, device):
        return card
    for claim in look.said["device"]:
        if claim.statement.get("name") == device and claim.statement.get("hostname") == hostname:
            return look.card_at(hostname, claim.statement.get("address"))
    return ""
