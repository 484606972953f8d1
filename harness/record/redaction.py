"""Keeps secrets out of everything that is written: known ones in all their forms, others by pattern."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

#: Stands where a secret was.
MASK = "[redacted]"

#: A registered secret shorter than this is masked only where it stands alone: as a part of other
#: words it would mask half of every text and give away its own letters by doing so.
SHORTEST_ANYWHERE = 6

#: Keys whose whole value is a secret, in mappings and before ``=`` or ``:`` in text.
_SECRET_NAME = (
    r"(?:[A-Za-z0-9]{1,30}[_-]){0,5}"
    r"(?:password|passwd|passphrase|pwd|secret|secret[_-]?key|api[_-]?key|private[_-]?key|access[_-]?key"
    r"|authorization|auth|token|identitytoken|registrytoken)"
)
_NAME = rf"(?<![A-Za-z0-9]){_SECRET_NAME}"
_PASSWORD_NAME = r"(?<![A-Za-z0-9])(?:[A-Za-z0-9]{1,30}[_-]){0,5}(?:password|passwd|passphrase)"
_SECRET_KEY = re.compile(_SECRET_NAME, re.IGNORECASE)
_HEADER = r"(?:(?:proxy-)?authorization|x-(?:auth|subject|service)-token|(?:set-)?cookie)"
_KEY_BLOCK = r"[A-Z0-9 ]{0,40}PRIVATE KEY-----"

#: Each pattern's groups: what stays before the secret, the secret. The order matters: whole blocks
#: and headers first, so that a narrower pattern cannot leave the rest of one behind. Repetitions are
#: bounded, so that no captured text can make the search quadratic.
_PATTERNS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern, re.DOTALL | re.IGNORECASE)
    for pattern in (
        # PEM private keys, whole or cut off, with real or escaped line ends.
        rf"(-----BEGIN {_KEY_BLOCK})(.*?(?=-----END {_KEY_BLOCK})|.*)",
        # Headers: the scheme goes with the credential.
        rf"({_HEADER}\\*[\"']?\s*[:=]\s*\\*[\"']?)((?:[a-z]+[ \t]+)?[^\s\"',\\]+)",
        r"(\bbearer\s+)([a-z0-9._~+/=-]{8,})",
        # https://user:password@host
        r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@\"']{0,200}:)([^\s/@\"']{1,500})(?=@)",
        # key="value", key='value', key=value; the first also within an escaped text
        rf"({_NAME}\s*=\s*\")((?:[^\"\\]|\\.)+)",
        rf"({_NAME}\s*=\s*\\+\")((?:[^\"\\]|\\+[^\"\\])+)",
        rf"({_NAME}\s*=\s*')([^']+)",
        rf"({_NAME}\s*=\s*)([^\s\"'&;,)\\]+)",
        # "key": "value", 'key': u'value'; the first also within an escaped text
        rf"(\"{_SECRET_NAME}\"\s*:\s*\")((?:[^\"\\]|\\.)+)",
        rf"('{_SECRET_NAME}'\s*:\s*u?')((?:[^'\\]|\\.)+)",
        rf"(\\\"{_SECRET_NAME}\\+\"\s*:\s*\\+\")((?:[^\"\\]|\\+[^\"\\])+)",
        # password: value (a bare "token: ..." is prose in too many logs)
        rf"({_PASSWORD_NAME}\s*:\s*)([^\s\"'{{}}\[\],]+)",
        # --key value
        rf"((?<!\S)--{_SECRET_NAME}\s+)([^\s\"'-][^\s\"']*)",
        r"(\bsshpass\s+-p\s*)(\S+)",
        # Tokens known by their own form: JSON web tokens, Fernet (Keystone), well-known issuers.
        # A run of "eyJ" is tried at each: without the case and without ways back that costs a tenth.
        r"()(\b(?-i:eyJ[A-Za-z0-9_-]{5,4000}+\.[A-Za-z0-9_-]{5,4000}+(?:\.[A-Za-z0-9_-]{0,4000})?))",
        r"()(\bgAAAAA[a-z0-9_-]{30,4000}={0,2})",
        r"()(\b(?:gh[pousr]_[a-z0-9]{20,100}|github_pat_\w{20,200}|glpat-[\w-]{16,100}))",
        r"()(\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)",
    )
)

#: No pattern matches a text (in lower case) with none of these in it: most captured texts have none.
_HINTS: tuple[str, ...] = (
    *("pass", "pwd", "secret", "key", "auth", "token", "cookie", "bearer", "@", "eyj", "gaaaaa"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "akia", "asia"),
)


#: The same names and paths stand in record after record: so many that hold no secret are remembered.
_SHORT = 256
_REMEMBERED = 4096


def _base64_cores(data: bytes) -> Iterator[str]:
    """Yield what base64 makes of ``data`` at each of the three alignments within a longer text.

    The characters that also depend on a neighbouring byte are left off.
    """
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + data).decode()
        yield text[-(-8 * shift // 6) : 8 * (shift + len(data)) // 6]


def forms(secret: str) -> frozenset[str]:
    """Return every spelling under which ``secret`` may turn up in captured text.

    As it is, base64 (three alignments, both alphabets), percent-encoded, JSON-escaped (once and
    twice), shell-quoted, HTML-escaped, and its long lines one by one (for key files).
    """
    raw = {secret, *(line for line in secret.splitlines() if len(line) >= 16)}
    found = set(raw)
    for text in raw:
        for encoded in (quote(text, safe="", errors="replace"), quote(text, errors="replace")):
            found.add(encoded)
        found.add(quote_plus(text, errors="replace"))
        once = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
        found |= once | {json.dumps(escaped)[1:-1] for escaped in once}
        found |= {shlex.quote(text), html.escape(text), html.escape(text, quote=False)}
        data = text.encode(errors="surrogatepass")
        if len(data) >= SHORTEST_ANYWHERE:
            for core in _base64_cores(data):
                found |= {core, core.replace("+", "-").replace("/", "_")}
    return frozenset(form for form in found if form)


class Redactor:
    """Masks the secrets that were registered with it, and what looks like one.

    Registering and masking may happen in different threads. Masking is idempotent.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forms: set[str] = set()
        self._known: re.Pattern[str] | None = None
        self._clean: set[str] = set()

    def register(self, secret: str) -> None:
        """Mask ``secret`` from now on, in every form of :func:`forms`; an empty one is ignored."""
        if not secret.strip():
            return
        with self._lock:
            self._forms |= forms(secret)
            longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
            self._known = re.compile("|".join(map(_matching, longest_first)))
            self._clean = set()

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        """Forget at the end of the block what is registered in it; only where no later writer can hold it."""
        with self._lock:
            known = (frozenset(self._forms), self._known)
        try:
            yield
        finally:
            with self._lock:
                if len(self._forms) != len(known[0]):
                    self._forms, self._known, self._clean = set(known[0]), known[1], set()

    def text(self, text: str) -> str:
        """Return ``text`` with every secret replaced by :data:`MASK`."""
        # Taken first: whatever is registered meanwhile, what goes in here is clean of all before it.
        clean = self._clean
        if text in clean:
            return text
        masked = text if self._known is None else self._known.sub(MASK, text)
        lowered = masked.lower()
        if any(hint in lowered for hint in _HINTS):
            for pattern in _PATTERNS:
                masked = pattern.sub(_masked, masked)
        if masked == text and len(text) <= _SHORT:
            if len(clean) >= _REMEMBERED:
                clean.clear()
            clean.add(text)
        return masked

    def json(self, value: Any) -> Any:
        """Return plain data (as :mod:`json` reads it) with every string in it masked, keys too.

        The whole value of a key such as ``password`` is masked, whatever it looks like.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key): self._entry(key, item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.json(item) for item in value]
        return value

    def _entry(self, key: str, value: Any) -> Any:
        whole = isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""
        return MASK if whole and _names_a_secret(key) else self.json(value)


@lru_cache(maxsize=1024)
def _names_a_secret(key: str) -> bool:
    return _SECRET_KEY.fullmatch(key) is not None


def _matching(form: str) -> str:
    # Hexadecimal digits, of %2f as of \u00e9, may be written either way.
    escaped = re.sub(r"%[0-9A-Fa-f]{2}|\\\\u[0-9a-f]{4}", lambda match: f"(?i:{match[0]})", re.escape(form))
    return escaped if len(form) >= SHORTEST_ANYWHERE else rf"(?<!\w){escaped}(?!\w)"


def _masked(match: re.Match[str]) -> str:
    # "authorization: [redacted]" must not grow on a second pass, nor may "Bearer [redacted]".
    return match[0] if MASK in match[2] else match[1] + MASK


#: The one of this process: credentials are registered where they are resolved, and every writer uses it.
REDACTOR = Redactor()


def register_secret(secret: str) -> None:
    """Mask ``secret`` in everything that this process records or prints from now on."""
    REDACTOR.register(secret)


def redact(text: str) -> str:
    """Return ``text`` without secrets, for output other than the history."""
    return REDACTOR.text(text)
