"""Takes out of a recording what must not leave the lab: secrets, and MAC addresses where so asked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from harness.recordings.model import Act, Entry, Output, RecordedCard, Recording, State

#: MACs that follow the one that a card names; an N3000 has eight (n3000.md 1.1).
_FOLLOWING = 8
_MAC = re.compile(r"(?<![0-9A-Fa-f:.-])[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}(?![0-9A-Fa-f:.-])")
_NOBODY = frozenset({"00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"})
#: Locally administered, so that no pseudonym can be the address of a real device.
_PSEUDONYM = 0x02_48_49_4C_00_00


class Redactor(Protocol):
    """What masks secrets (see :class:`harness.record.redaction.Redactor`)."""

    def text(self, text: str) -> str:
        """Return ``text`` without secrets."""
        ...


def without_secrets(recording: Recording, redactor: Redactor) -> Recording:
    """Return ``recording`` with every secret masked, in files, paths, command lines and output."""

    def content(data: bytes) -> bytes:
        text = data.decode(errors="surrogateescape")
        return redactor.text(text).encode(errors="surrogateescape")

    return rewritten(recording, redactor.text, content)


def with_pseudonyms(recording: Recording) -> Recording:
    """Return ``recording`` with every MAC address in it replaced, the same one always by the same.

    Found are addresses written with colons, and of these every other spelling: with dashes, without
    anything, as EUI-64 (as ``lspci`` and the configuration space have them), upper case, as bytes in
    either order. Addresses that follow a card's own are replaced by those that follow its pseudonym.
    """
    pseudonyms: dict[int, int] = {}
    own = [card.identity for card in recording.cards if card.identity]
    for mac in own:
        first = _number(mac)
        for step in range(_FOLLOWING):
            pseudonyms.setdefault(first + step, _PSEUDONYM + len(pseudonyms))

    def collect(text: str) -> str:
        for found in _MAC.findall(text):
            if found.lower() not in _NOBODY:
                pseudonyms.setdefault(_number(found), _PSEUDONYM + len(pseudonyms))
        return text

    rewritten(recording, collect, lambda data: collect(data.decode("latin-1")).encode("latin-1"))
    texts = {a: b for old, new in pseudonyms.items() for a, b in zip(_texts(old), _texts(new), strict=True)}
    blobs = {a: b for old, new in pseudonyms.items() for a, b in zip(_blobs(old), _blobs(new), strict=True)}
    if not texts:
        return recording
    spelled = re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))), re.IGNORECASE)
    packed = re.compile(b"|".join(map(re.escape, sorted(blobs, key=len, reverse=True))))

    def said(match: re.Match[str]) -> str:
        new = texts[match[0].lower()]
        return new if match[0] == match[0].lower() else new.upper()

    def content(data: bytes) -> bytes:
        text = spelled.sub(said, data.decode("latin-1"))
        return packed.sub(lambda match: blobs[match[0]], text.encode("latin-1"))

    told = replace(recording, made={**recording.made, "macs": "pseudonyms"})
    return rewritten(told, lambda text: spelled.sub(said, text), content)


def rewritten(
    recording: Recording, change: Callable[[str], str], content: Callable[[bytes], bytes]
) -> Recording:
    """Return ``recording`` with every text in it, paths and command lines too, put through ``change``.

    :param content: the same for the content of files.
    """

    def entry(found: Entry) -> Entry:
        if found.kind == "unreadable":
            return found
        if found.kind == "content":
            return replace(found, data=content(found.data))
        return replace(found, text=change(found.text))

    def output(found: Output) -> Output:
        return replace(found, stdout=change(found.stdout), stderr=change(found.stderr))

    def state(found: State) -> State:
        return State(
            when=change(found.when),
            addresses={change(name): address for name, address in found.addresses.items()},
            tree={change(path): node and entry(node) for path, node in found.tree.items()},
            commands={change(line): said and output(said) for line, said in found.commands.items()},
        )

    return replace(
        recording,
        host={key: change(value) for key, value in recording.host.items()},
        cards=tuple(
            RecordedCard(change(card.name), card.address, card.identity and change(card.identity))
            for card in recording.cards
        ),
        states=tuple(map(state, recording.states)),
        acts=tuple(_act(act, change, entry) for act in recording.acts),
        tools={tool: change(where) for tool, where in recording.tools.items()},
    )


def _act(act: Act, change: Callable[[str], str], entry: Callable[[Entry], Entry]) -> Act:
    return replace(
        act,
        card=change(act.card),
        argv=tuple(map(change, act.argv)),
        watched={name: change(path) for name, path in act.watched.items()},
        samples=tuple(
            replace(sample, values={name: entry(value) for name, value in sample.values.items()})
            for sample in act.samples
        ),
        output=tuple(replace(piece, text=change(piece.text)) for piece in act.output),
    )


def _number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


def _texts(number: int) -> list[str]:
    """Return the spellings of a MAC address, lower case; those of two stand in the same order."""
    octets = [f"{byte:02x}" for byte in number.to_bytes(6, "big")]
    forms = []
    for middle in ((), ("ff", "ff"), ("ff", "fe")):
        words = [*octets[:3], *middle, *octets[3:]]
        forms += [separator.join(words) for separator in (":", "-", "")]
    return forms


def _blobs(number: int) -> list[bytes]:
    octets = number.to_bytes(6, "big")
    forms = [octets[:3] + middle + octets[3:] for middle in (b"", b"\xff\xff", b"\xff\xfe")]
    return [*forms, *(form[::-1] for form in forms)]
