"""What each trouble of an emulated system may be given, checked before anything is done."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.emulator.starlingx.troubles import DOWNLOADS
from harness.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class _Allowed:
    """What a trouble takes. ``words``: the same for people."""

    words: str
    takes: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_NOTHING: Final = _Allowed("no value", lambda value: value is None)
_FLAG: Final = _Allowed("true or false", lambda value: isinstance(value, bool))
_SECONDS: Final = _Allowed("seconds, 0 or more", lambda value: _is_number(value) and value >= 0)
_COUNT: Final = _Allowed(
    "a whole number, 0 or more", lambda value: _is_number(value) and isinstance(value, int) and value >= 0
)
_NAME: Final = _Allowed(
    "a name (with - before it: not any more)", lambda value: isinstance(value, str) and bool(value.strip("-"))
)
_OF_SYSTEM: Final[Mapping[str, _Allowed]] = {
    "refuse-requests": _COUNT,
    "downloads": _Allowed(" or ".join(DOWNLOADS), lambda value: value in DOWNLOADS),
    "completions": _Allowed(
        "seconds, 0 or more, or no value: they are lost", lambda value: value is None or _SECONDS.takes(value)
    ),
    "conductor": _FLAG,
    "agents": _FLAG,
    "expire-tokens": _NOTHING,
    "restart": _NOTHING,
    "api-down-after-unlock": _SECONDS,
    "host-update-null": _FLAG,
    "slow": _Allowed("a factor above 0", lambda value: _is_number(value) and value > 0),
}
#: Of the controller of a distributed cloud besides.
_OF_CLOUD: Final[Mapping[str, _Allowed]] = {
    "subcloud-offline": _NAME,
    "subcloud-unmanaged": _NAME,
    "vault-missing": _Allowed("the uuid of an image", lambda value: isinstance(value, str) and bool(value)),
    "vault-takes-files": _FLAG,
    "dcmanager": _FLAG,
    "audit-now": _NOTHING,
}


def check_trouble(system: str, name: str, value: Any, *, has_cloud: bool) -> None:
    """:raises ConfigurationError: ``system`` has no trouble ``name``, or that does not take ``value``."""
    known = {**_OF_SYSTEM, **(_OF_CLOUD if has_cloud else {})}
    if name not in known:
        if name in _OF_CLOUD:
            raise ConfigurationError(
                f"{system} has no trouble {name!r}: it is one of a system controller with subclouds.",
                hint=f"Known of {system}: {', '.join(known)}.",
            )
        raise ConfigurationError(
            f"An emulated system has no trouble {name!r}.", hint=f"Known: {', '.join(known)}."
        )
    if not known[name].takes(value):
        given = "no value" if value is None else repr(value)
        raise ConfigurationError(
            f"The trouble {name!r} was given {given}.", hint=f"It takes {known[name].words}."
        )
