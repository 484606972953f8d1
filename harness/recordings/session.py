"""Makes a recording of a host: its cards as they are, and the acts that are performed meanwhile."""

from __future__ import annotations

import hashlib
import posixpath
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.cards.discovery import find_card
from harness.cards.eras import find_place
from harness.cards.interlock import CardEntry
from harness.cards.truth import read_truth
from harness.hosts.protocol import CommandResult, Host
from harness.judgement.values import Unknown
from harness.record.redaction import REDACTOR
from harness.recordings.acts import INTERVAL, Tap, Watch
from harness.recordings.capture import FILE_PROGRAMS, Capture
from harness.recordings.kind import image_kind
from harness.recordings.model import Act, Output, RecordedCard, Recording, State, difference
from harness.recordings.rewriting import Redactor, with_pseudonyms, without_secrets

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver


#: What may be read of a card while an update runs, as :data:`harness.cards.truth.UPDATE_FIELDS` says.
_UPDATE_FILES = ("status", "error", "remaining_size")


class Session:
    """One recording in the making.

    :param host: the machine. :param cards: its cards in the inventory, those that are recorded.
    :param sysfs: where its sysfs is mounted.
    :param tools: tool or engine -> name or path on the host.
    :param interval: seconds of the host's clock between two looks at a card while a tool works on it.
    """

    def __init__(
        self,
        host: Host,
        cards: Sequence[CardEntry],
        *,
        sysfs: str = "/sys",
        tools: Mapping[str, str] | None = None,
        interval: float = INTERVAL,
    ) -> None:
        #: The host; drivers that perform recorded acts must be given this one.
        self.host = Tap(host)
        self._untapped = host
        self._cards = {card.name: card for card in cards}
        self._sysfs = sysfs
        self._tools = {name: where for name, where in (tools or {}).items() if name != where}
        self._interval = interval
        self._capture = Capture(self.host, sysfs=sysfs)
        self._found: list[RecordedCard] = []
        self._states: list[State] = []
        self._acts: list[Act] = []

    def begin(self) -> None:
        """Capture the host as it is.

        :raises InfrastructureError: it cannot be asked, or an update of one of the cards runs.
        """
        addresses = {name: self._address(card) for name, card in self._cards.items()}
        for name, address in addresses.items():
            truth = read_truth(self.host, address or self._cards[name].address, sysfs=self._sysfs)
            identity = truth.identity if isinstance(truth.identity, str) else self._cards[name].identity
            self._found.append(RecordedCard(name, address or self._cards[name].address, identity))
        self._states.append(_with(self._state("as found", addresses), self.host.asked))

    def perform(
        self, driver: CardDriver, card: str, operation: Callable[[], object], image: bytes | None = None
    ) -> Act | None:
        """Have ``operation`` flash ``image`` to ``card``, or reset it, by ``driver``; capture what then is.

        Return the act; None where the operation ran no tool, as when the interlock refused it.
        """
        self.host.asked.clear()
        watch = Watch(self._untapped, self._watched(driver.address), interval=self._interval)
        self.host.watch = watch
        try:
            operation()
        finally:
            self.host.watch = None
            watch.stop()
        about: Mapping[str, Any] = {}
        if image is not None:
            sha256 = hashlib.sha256(image).hexdigest()
            about = {"size": len(image), "sha256": sha256, "kind": image_kind(image)}
        act = watch.act(card, driver.identity, self.host.image_path if image is not None else "", about)
        if act is not None:
            self._acts.append(act)
            addresses = {name: self._address(entry) for name, entry in self._cards.items()}
            after = self._state(f"after the {act.act}", addresses)
            self._states[-1] = _with(self._states[-1], self.host.asked[: watch.asked_before])
            self._states.append(_with(after, self.host.asked[watch.asked_before :]))
        return act

    def _state(self, when: str, addresses: Mapping[str, str | None]) -> State:
        """Capture the host, with where it has the vendor's tools."""
        find_place(self.host, self._tools)
        return self._capture.state(when, addresses)

    def recording(self, *, pseudonyms: bool = False, redactor: Redactor = REDACTOR) -> Recording:
        """Return the recording so far, without secrets, and without real MAC addresses if so asked."""
        from harness import __version__

        first = self._states[0]
        hostname = first.commands.get("hostname")
        states = [first]
        for before, after in zip(self._states, self._states[1:], strict=False):
            changed = replace(
                after,
                tree=difference(before.tree, after.tree),
                commands=difference(before.commands, after.commands),
            )
            states.append(changed)
        made = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "by": f"hil {__version__}",
            "macs": "kept",
        }
        host = {
            "name": self.host.name,
            "hostname": (hostname.stdout.strip() if hostname else "") or self.host.name,
            "sysfs": self._sysfs,
        }
        found = Recording(made, host, tuple(self._found), tuple(states), tuple(self._acts), self._tools)
        found = without_secrets(found, redactor)
        return with_pseudonyms(found) if pseudonyms else found

    def _address(self, card: CardEntry) -> str | None:
        """Return where ``card`` is now; its place in the inventory where nothing tells who it is."""
        if card.identity is not None:
            found = find_card(self.host, card.identity, sysfs=self._sysfs)
            if found is not None:
                return found
        # A card of a generation that does not show its identity, or whose driver is not bound.
        truth = read_truth(self.host, card.address, sysfs=self._sysfs, fields={"identity"})
        another = isinstance(truth.identity, str) and card.identity not in (None, truth.identity)
        return None if another or isinstance(truth.address, Unknown) else truth.address

    def _watched(self, address: str) -> dict[str, str]:
        """Return what may be looked at while an update runs, and what tells that the card is there."""
        files = {"device": posixpath.join(self._sysfs, "bus/pci/devices", address, "device")}
        truth = read_truth(self.host, address, sysfs=self._sysfs, fields={"update_status"})
        status = truth.sources.get("update_status", "*")
        if "*" in status:
            return files
        folder = posixpath.dirname(status)
        return files | {name: posixpath.join(folder, name) for name in _UPDATE_FILES}


def _with(state: State, asked: Sequence[CommandResult]) -> State:
    """Return ``state`` with what else was asked of the host's tools in it."""
    more = {
        shlex.join(result.argv): Output(result.exit_code, result.stdout, result.stderr)
        for result in asked
        if posixpath.basename(result.argv[0]) not in FILE_PROGRAMS
    }
    return replace(state, commands=more | dict(state.commands))
