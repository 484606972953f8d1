"""The points of pushes and pulls at which a fault can be bound, and which step a request is."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import Literal, get_args
from urllib.parse import parse_qs, unquote, urlsplit

from harness.errors import ConfigurationError

When = Literal["before", "mid", "after", "cut"]
Step = Literal[
    "ping",
    "token",
    "blob-head",
    "blob-post",
    "blob-patch",
    "blob-put",
    "blob-get",
    "upload-get",
    "manifest-head",
    "manifest-put",
    "manifest-get",
    "tags",
    "catalogue",
    "delete",
    "other",
]

#: When, within a request: before the registry sees it; when ``offset`` bytes of its body have reached the
#: registry; when the registry has answered and the client has not; the same, and the client never will.
WHENS: tuple[When, ...] = get_args(When)
#: In the order in which a push and then a pull come to them; ``other`` is what none of them is.
STEPS: tuple[Step, ...] = get_args(Step)
#: Steps whose requests have a body, in the middle of which they can be held.
WITH_BODY: tuple[Step, ...] = ("blob-patch", "blob-put", "manifest-put")
#: ``nth`` of a point that is not resolved yet: the last request of its step.
LAST = -1

_POINT = re.compile(
    r"(?P<when>[a-z]+)(?:@(?P<offset>[0-9]{1,18}))?:(?P<step>[a-z-]+)(?:#(?P<nth>[0-9]{1,9}|last))?"
)
_NAME = r"/v2/(?P<repository>.+)"
_UPLOAD = re.compile(rf"{_NAME}/blobs/uploads(?:/[^/]*)?")
_BLOB = re.compile(rf"{_NAME}/blobs/[^/]+")
_MANIFEST = re.compile(rf"{_NAME}/manifests/[^/]+")
_TAGS = re.compile(rf"{_NAME}/tags/list")
_SCOPE = re.compile(r"repository:([^:]+):")

_BY_RESOURCE: tuple[tuple[re.Pattern[str], dict[str, Step]], ...] = (
    # A cross-repository mount is a POST of an upload, too.
    (_UPLOAD, {"POST": "blob-post", "PATCH": "blob-patch", "PUT": "blob-put", "GET": "upload-get"}),
    (_BLOB, {"HEAD": "blob-head", "GET": "blob-get"}),
    (_MANIFEST, {"HEAD": "manifest-head", "PUT": "manifest-put", "GET": "manifest-get"}),
    (_TAGS, {"GET": "tags"}),
)


@dataclass(frozen=True, slots=True)
class FaultPoint:
    """One point of a push or pull, such as ``after:blob-put#2``.

    ``nth``: which request of the step, from 1; :data:`LAST` until it is resolved. ``offset``: for ``mid``,
    how many bytes of the body have reached the registry.
    """

    when: When
    step: Step
    nth: int = 1
    offset: int = 0

    def __post_init__(self) -> None:
        """:raises ConfigurationError: the parts make no point."""
        if self.when not in WHENS or self.step not in STEPS:
            raise _no_point(f"{self.when}:{self.step}", _nearest(f"{self.when}:{self.step}"))
        if self.nth < 1 and self.nth != LAST:
            raise _no_point(str(self), f"Requests are counted from 1: {replace(self, nth=1)}.")
        if self.when != "mid" and self.offset:
            raise _no_point(str(self), f"Only mid has an offset: {self.when}:{self.step}.")
        if self.when == "mid" and self.step not in WITH_BODY:
            raise _no_point(str(self), f"Only these have a body: {', '.join(WITH_BODY)}.")
        if self.when == "mid" and self.offset < 1:
            raise _no_point(str(self), f"Say after how many bytes of the body: mid@524288:{self.step}.")

    def __str__(self) -> str:
        at = f"@{self.offset}" if self.offset else ""
        return f"{self.when}{at}:{self.step}#{'last' if self.nth == LAST else self.nth}"

    @classmethod
    def parse(cls, text: str) -> FaultPoint:
        """Return the point that ``text`` is. :raises ConfigurationError: it is none."""
        found = _POINT.fullmatch(text)
        if found is None:
            raise _no_point(text, _nearest(text))
        when, step = found["when"], found["step"]
        if when == "sent":
            raise _no_point(
                text,
                "Whether the registry has a request by the time it was sent is a race that gives other "
                f"results each time; before:{step}, mid@N:{step} and after:{step} are exact.",
            )
        if when not in WHENS or step not in STEPS:
            raise _no_point(text, _nearest(text))
        nth = LAST if found["nth"] == "last" else int(found["nth"] or 1)
        return cls(when, step, nth, int(found["offset"] or 0))

    def resolved(self, *, last: int) -> FaultPoint:
        """Return the point with its last request counted: a push passed ``last`` of them.

        :raises ConfigurationError: there was none.
        """
        return replace(self, nth=last) if self.nth == LAST else self


def classify(method: str, target: str) -> tuple[Step, str]:
    """Return the step that a request is, and the repository that it is about; empty where none.

    :param target: as in the request line, with its query; a token's repository is that of its first scope.
    """
    try:
        parts = urlsplit(target)
    except ValueError:  # such as brackets without an address
        return "other", ""
    path = unquote(parts.path)
    if path in ("/token", "/token/"):
        scopes = " ".join(parse_qs(parts.query, separator="&").get("scope", ()))
        asked = _SCOPE.search(scopes)
        return "token", asked[1] if asked else ""
    if path in ("/v2", "/v2/"):
        return ("ping" if method in ("GET", "HEAD") else "other"), ""
    if path in ("/v2/_catalog", "/v2/_catalog/"):
        return ("catalogue" if method == "GET" else "other"), ""
    for pattern, steps in _BY_RESOURCE:
        if found := pattern.fullmatch(path):
            step: Step = "delete" if method == "DELETE" else steps.get(method, "other")
            return step, found["repository"]
    return "other", ""


def _nearest(text: str) -> str:
    """Return the hint for a text that is no point: what it was probably meant to be."""
    when, _, step = text.partition(":")
    word, _, offset = when.partition("@")
    step, _, nth = step.partition("#")
    near_when = difflib.get_close_matches(word, WHENS, 1)
    near_step = difflib.get_close_matches(step, STEPS, 1)
    if not near_when or not near_step:
        return f"A point is one of {', '.join(WHENS)}, a colon, and one of {', '.join(STEPS)}."
    where = f"@{offset if offset.isdecimal() else 524288}" if near_when[0] == "mid" else ""
    which = f"#{nth}" if nth.isdecimal() or nth == "last" else ""
    return f"Did you mean {f'{near_when[0]}{where}:{near_step[0]}{which}'!r}?"


def _no_point(text: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"There is no fault point {text[:80]!r} in a push or pull.", hint=hint)
