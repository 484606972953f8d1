"""What a host of a lab offers to scenarios: told by its entry, so that it is known before a lab runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from harness.errors import BlockedError, ConfigurationError, NotOfferedError

if TYPE_CHECKING:
    from harness.inventory.model import Host

#: What a host of a lab can offer, for scenarios that need it.
CAPABILITIES: Final = {
    "power": "its power can be switched",
    "bench": "its cards can be fitted, held and disturbed, as only emulated ones can",
}


def offers(host: Host, capability: str) -> bool:
    """Return whether ``host`` has ``capability``. :raises ConfigurationError: there is no such one."""
    if capability == "power":
        return host.can_power
    if capability == "bench":
        return host.emulated is not None and host.emulated.recording is None
    raise ConfigurationError(
        f"There is no capability {capability!r} of a host.", hint=f"Known: {', '.join(CAPABILITIES)}."
    )


def require(host: Host, capabilities: Iterable[str]) -> None:
    """Return if ``host`` has all ``capabilities``.

    :raises NotOfferedError: it can never have one, so that what needs it does not apply to it.
    :raises BlockedError: it lacks one that its entry in the inventory could give it.
    """
    lacking = [_lacking(host, each) for each in capabilities if not offers(host, each)]
    if lacking:
        raise next((error for error in lacking if isinstance(error, NotOfferedError)), lacking[0])


def give_power(host: str) -> str:
    """Return the hint for a real host whose power is nowhere described."""
    return f"Give {host} `power:` with redfish, ipmi or command in the inventory (docs/hosts.md, Power)."


def _lacking(host: Host, capability: str) -> BlockedError:
    """Return the error for a capability that ``host`` lacks."""
    recorded = host.emulated is not None and host.emulated.recording is not None
    if capability == "bench":
        what = "replays a recording" if recorded else "is real"
        return NotOfferedError(
            f"{host.name} {what}: its cards cannot be fitted, held or disturbed, as emulated ones can."
        )
    message = f"The power of {host.name} cannot be switched"
    if recorded:
        return NotOfferedError(f"{message}: it replays a recording.")
    if host.emulated:
        hint = f"Remove `power: false` of {host.name} from the inventory."
    else:
        hint = give_power(host.name)
    return BlockedError(f"{message}.", hint=hint)
