"""The keys that a real host shows, beside those on file; kept once a person has said whose they are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.errors import ConfigurationError, InfrastructureError
from harness.hosts.known_hosts import HostKey, keep, keys_of, read, revoked

if TYPE_CHECKING:
    from harness.hosts.access import Access
    from harness.inventory.model import Lab


@dataclass(frozen=True, slots=True)
class Shown:
    """A key that a host shows. ``was``: the one of its kind on file, where that is another one."""

    key: HostKey
    state: Literal["known", "new", "changed", "revoked"]
    was: HostKey | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """What the host ``name`` shows at ``where``; ``known_as``: what the file calls it."""

    name: str
    where: str
    known_as: str
    file: Path
    keys: tuple[Shown, ...]

    def chosen(self, fingerprints: Collection[str]) -> list[Shown]:
        """Return the keys that have one of ``fingerprints``; all, where none is given.

        :raises InfrastructureError: one of them is no key's: another machine may answer.
        """
        shown = {each.key.fingerprint for each in self.keys}
        missing = [one for one in fingerprints if one not in shown]
        if missing:
            raise InfrastructureError(
                f"{self.name} at {self.where} shows no key {', '.join(missing)}; it shows "
                f"{', '.join(sorted(shown))}. Nothing was kept.",
                hint="Someone may stand in between, or the fingerprint is another host's.",
            )
        return [each for each in self.keys if not fingerprints or each.key.fingerprint in fingerprints]

    def check(self, chosen: Collection[Shown], *, replace: bool) -> None:
        """:raises InfrastructureError: a key is revoked, or is not the one on file and may not replace it."""
        for each in chosen:
            if each.state == "revoked":
                raise InfrastructureError(
                    f"{each.key.kind} {each.key.fingerprint} of {self.name} is revoked in {self.file}."
                )
            if each.state == "changed" and not replace:
                assert each.was is not None
                raise InfrastructureError(
                    f"The {each.key.kind} key of {self.name} at {self.where} has changed: "
                    f"{each.was.fingerprint} is in {self.file}, {each.key.fingerprint} is shown now. "
                    "Nothing was kept.",
                    hint="Someone may stand in between, or the host was reinstalled. Compare with what its "
                    f"console says, then:  hil host trust {self.name} --replace",
                )

    def keep(self, chosen: Collection[Shown]) -> int:
        """Write what is new or changed; return how many keys. :raises ConfigurationError: as of the file."""
        new = [each.key for each in chosen if each.state != "known"]
        if new:
            keep(self.file, self.known_as, new)
        return len(new)


def access_by_ssh(lab: Lab, name: str) -> Access:
    """Return how the host ``name`` is reached. :raises ConfigurationError: it has no key to be trusted."""
    from harness.lab.reaching import access_of

    entry = lab.host(name)
    access = access_of(lab, name)
    if access is None:
        what = "emulated; the lab makes its key and knows it" if entry.emulated else "this machine"
        raise ConfigurationError(f"The host {name} is {what}: there is nothing to trust.")
    return access


def offer_of(lab: Lab, name: str) -> Offer:
    """Ask the host ``name`` for its keys.

    :raises UnreachableError: it does not answer. :raises ConfigurationError: it is not reached over SSH.
    """
    from harness.hosts.host_keys import shown_keys

    access = access_by_ssh(lab, name)
    text = read(access.known_hosts)
    on_file = {key.kind: key for key in keys_of(text, access.known_as)}
    bad = revoked(text)
    shown = tuple(_shown(key, on_file.get(key.kind), key in bad) for key in shown_keys(name, access))
    return Offer(name, access.where, access.known_as, access.known_hosts, shown)


def _shown(key: HostKey, on_file: HostKey | None, is_revoked: bool) -> Shown:
    if is_revoked:
        return Shown(key, "revoked")
    if on_file is None:
        return Shown(key, "new")
    return Shown(key, "known") if on_file == key else Shown(key, "changed", on_file)
