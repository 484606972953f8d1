"""Mutators: what damage, chance and malice make of bytes, of lines of text, and of JSON."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

_BYTES = (0x00, 0x01, 0x0A, 0x0D, 0x1B, 0x20, 0x22, 0x27, 0x2F, 0x5C, 0x7F, 0x80, 0x85, 0xC3, 0xED, 0xFF)
#: Numbers at which readers break: around powers of two, beyond what an int, a float or a field takes.
NUMBERS = (
    *("0", "-1", "1", "00", "127", "128", "255", "256", "4096", "32767", "65535", "65536"),
    *("2147483647", "2147483648", "4294967295", "4294967296", "18446744073709551615"),
    *("18446744073709551616", "9" * 40, "9" * 5000, "1e308", "1e999", "nan", "inf", "-0", "0x", "0xg"),
    *("0xffffffff", "0xffffffffffffffff", "0x" + "f" * 17, "1_000", "+5", " 7 ", "\u0663", "\u00b2"),
)
#: Text at which readers break: other line ends, other blanks, other digits, halves of characters.
SNIPPETS = (
    *("\r", "\n", "\n\n", "\r\n", "\x00", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u00a0", "\ufeff"),
    *("\t", "  ", ":", ": ", " : ", "/", "//", "..", "/../", "*", "%", "%s", "\\", "'", '"', "`", "$", "[]"),
    *("\u202e", "\u0130", "\u00df", "\ud800", "\U0001f600", "\x1b[2J", "A" * 300),
)
_BLOW_UP = 1 << 20  # bytes: enough to tell quadratic from linear
_LARGEST = 1 << 16

Step = Callable[[random.Random, bytearray, Sequence[bytes]], None]


class Mutator:
    """Mutates bytes; a subclass adds steps that know more.

    :param tokens: words of the input's own language. :param blow_up: bytes of a very long input.
    """

    def __init__(self, tokens: Sequence[str | bytes] = (), *, blow_up: int = _BLOW_UP) -> None:
        self._blow_up = blow_up
        self._tokens = [t if isinstance(t, bytes) else t.encode("utf-8", "surrogatepass") for t in tokens]
        self.steps: list[Step] = [_flip, _set, _delete, _repeat, _insert, _splice, _cut, self._token]

    def mutate(self, rng: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
        """Return ``data`` after one to four steps; at times something of chance alone, or very long."""
        chance = rng.random()
        if chance < 0.01:
            return rng.randbytes(rng.randrange(64))
        if chance < 0.0105:
            return _blown_up(rng, data, self._blow_up)
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
            rng.choice(self.steps)(rng, changed, pool)
        return bytes(changed[:_LARGEST])

    def _token(self, rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
        if self._tokens:
            at = rng.randint(0, len(data))
            data[at : at + rng.choice((0, 0, 1, 4))] = rng.choice(self._tokens)


class TextMutator(Mutator):
    """Mutates lines and numbers of text as well."""

    def __init__(self, tokens: Sequence[str | bytes] = (), *, blow_up: int = _BLOW_UP) -> None:
        super().__init__(tokens, blow_up=blow_up)
        self.steps += [_lines, _lines, _number, _number, _snippet, _value, self._token]


class JsonMutator(Mutator):
    """Mutates one value of one line of JSON; ``values`` are put in the place of others."""

    def __init__(self, tokens: Sequence[str] = (), values: Sequence[Any] = ()) -> None:
        super().__init__(tokens)
        self._values = [*_JSON_VALUES, *values, *tokens]
        self.steps = [self._json] * 12 + [_lines, _lines, _flip, _cut, self._token]

    def _json(self, rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
        lines = bytes(data).split(b"\n")
        at = rng.randrange(len(lines))
        try:
            tree = json.loads(lines[at])
            self._change(rng, tree)
            lines[at] = json.dumps(tree).encode()
        except (ValueError, RecursionError):
            return
        data[:] = b"\n".join(lines)

    def _change(self, rng: random.Random, tree: Any) -> None:
        while True:
            if isinstance(tree, dict) and tree:
                key: Any = rng.choice(list(tree))
            elif isinstance(tree, list) and tree:
                key = rng.randrange(len(tree))
            else:
                return
            below = tree[key]
            if isinstance(below, (dict, list)) and below and rng.random() < 0.7:
                tree = below
                continue
            act = rng.random()
            if act < 0.15:
                del tree[key]
            elif act < 0.25 and isinstance(tree, dict):
                tree[rng.choice(self._tokens or [b"x"]).decode(errors="replace")] = tree.pop(key)
            elif act < 0.35 and isinstance(tree, dict):
                tree[key] = rng.choice(list(tree.values()))
            elif act < 0.5 and type(below) is int:
                tree[key] = below + rng.choice((-1, 1))
            else:
                tree[key] = rng.choice(self._values)
            return


_JSON_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1 << 63, 1 << 70, -(1 << 70), 0.5, 1e308, float("nan"), float("inf")),
    *("", "x", "\u0000", "\ud800", "a" * 5000, "0", [], {}, [[]], [None], {"unknown": "x"}, {"unknown": 1}),
    *([1, "1"], {"": {}}, [0, 127, 128], ["0x11", None], {"a": [1, {"b": []}]}),
)


def _flip(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    if data:
        at, size = rng.randrange(len(data)), rng.choice((1, 1, 2, 4, 8))
        value = bytes([rng.choice(_BYTES)]) * size if rng.random() < 0.5 else rng.randbytes(size)
        data[at : at + size] = value


def _delete(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    if data:
        at = rng.randrange(len(data))
        del data[at : at + rng.choice((1, 1, 2, 8, 64, 1024))]


def _repeat(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    if data:
        at = rng.randrange(len(data))
        piece = data[at : at + rng.choice((1, 2, 5, 20, 100))]
        data[at:at] = piece * rng.choice((1, 1, 2, 10, 100))


def _insert(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    at = rng.randint(0, len(data))
    data[at:at] = bytes([rng.choice(_BYTES)]) if rng.random() < 0.7 else rng.randbytes(rng.choice((1, 4, 16)))


def _splice(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    other = rng.choice(pool)
    if other:
        at, begin = rng.randint(0, len(data)), rng.randrange(len(other))
        piece = other[begin : begin + rng.choice((4, 16, 64, 1024))]
        data[at : at + rng.choice((0, len(piece)))] = piece


def _cut(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    del data[rng.randint(0, len(data)) :]


def _lines(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    lines = bytes(data).split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    act = rng.randrange(6)
    if act == 0:
        del lines[at]
    elif act == 1:
        lines.insert(at, lines[other])
    elif act == 2:
        lines[at], lines[other] = lines[other], lines[at]
    elif act == 3:
        lines[at] += lines[other]
    elif act == 4:
        lines[at] = lines[at][: rng.randint(0, len(lines[at]))]
    else:
        theirs = rng.choice(pool).split(b"\n")
        lines.insert(at, rng.choice(theirs))
    data[:] = b"\n".join(lines)


def _number(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    found = list(re.finditer(rb"(?:0x)?[0-9a-fA-F]*[0-9][0-9a-fA-F]*", bytes(data)))
    if found:
        match = rng.choice(found)
        data[match.start() : match.end()] = rng.choice(NUMBERS).encode()


def _snippet(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    at = rng.randint(0, len(data))
    data[at : at + rng.choice((0, 0, 1, 3))] = rng.choice(SNIPPETS).encode("utf-8", "surrogatepass")


def _value(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    """Put another value behind the last colon of a line."""
    lines = bytes(data).split(b"\n")
    at = rng.randrange(len(lines))
    head, colon, tail = lines[at].rpartition(b":")
    if colon:
        theirs = rng.choice(rng.choice(pool).split(b"\n")).rpartition(b":")[2]
        lines[at] = head + colon + rng.choice((b"", b" ", tail * 2, theirs, rng.choice(NUMBERS).encode()))
        data[:] = b"\n".join(lines)


def _blown_up(rng: random.Random, data: bytes, length: int) -> bytes:
    """Repeat a piece until it is very long: only a reader in linear time comes to its end."""
    at = rng.randrange(len(data) or 1)
    size = rng.choice((1, 1, 2, 3, 8, 40))
    piece = data[at : at + size] or b" "
    times = rng.choice((length, length // 16)) // len(piece)
    return data[: at + size] + piece * times + data[at + size :]
