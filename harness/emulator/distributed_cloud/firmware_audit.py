"""Whether a subcloud is in sync with the images that its controller lists as applied (section 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness.emulator.distributed_cloud.regions import Entry, Region, RegionError
from harness.emulator.distributed_cloud.vault import Vault
from harness.emulator.starlingx.applying import COMPLETED
from harness.emulator.starlingx.defects import Defects
from harness.emulator.starlingx.uploads import FUNCTIONAL, KEY_REVOCATION, ROOT_KEY
from harness.images.facts import ImageFacts

IN_SYNC: Final = "in-sync"
OUT_OF_SYNC: Final = "out-of-sync"
UNKNOWN: Final = "unknown"

#: Type -> the fields by which two images are taken for the same.
_SAME: Final = {
    ROOT_KEY: ("key_signature",),
    FUNCTIONAL: ("bitstream_id", "bmc", "retimer_included"),
    KEY_REVOCATION: ("revoke_key_id",),
}


def listed(central: Region, defects: Defects) -> list[Entry] | None:
    """Return the images that the controller lists as applied; None: that is not known."""
    try:
        return [image for image in central.images() if image["applied"]]
    except RegionError:
        return [] if defects.on("regionone-error-in-sync") else None


def is_for_all(image: Entry) -> bool:
    """Return whether ``image`` is applied without labels, to every device."""
    return any(not label for label in image["applied_labels"])


def carries(device: Entry, labels: Sequence[Entry], image: Entry) -> bool:
    """Return whether ``device`` carries one of the labels that ``image`` is applied to."""
    own = [(e["label_key"], e["label_value"]) for e in labels if e["pcidevice_uuid"] == device["uuid"]]
    return any(pair in own for label in image["applied_labels"] for pair in label.items())


def is_of_kind(device: Entry, image: Entry) -> bool:
    """Return whether ``image`` is made for what ``device`` is."""
    return (device["pvendor_id"], device["pdevice_id"]) == (image["pci_vendor"], image["pci_device"])


def looked_at(devices: Sequence[Entry], defects: Defects) -> list[Entry]:
    """Return the devices that dcmanager sees to: what is disabled is none of them."""
    return [d for d in devices if d["enabled"] or not defects.on("no-devices-in-sync")]


@dataclass(frozen=True, slots=True)
class FirmwareAudit:
    """Judges subclouds of one controller."""

    defects: Defects
    vault: Vault

    def status(self, region: Region, images: Sequence[Entry] | None) -> str | None:
        """Return the sync status of a subcloud; None: leave it as it is.

        ``images``: of :func:`listed`.
        """
        if images is None:
            return None
        if not images:
            return IN_SYNC
        if self.defects.on("status-stays-unknown"):
            return None  # the worker that takes them over RPC finds dictionaries, no objects
        try:
            return self._compare(region, images)
        except RegionError:
            return None

    def _compare(self, region: Region, images: Sequence[Entry]) -> str | None:
        devices = looked_at(region.devices(), self.defects)
        if not devices:
            return IN_SYNC
        look = _Look(region, self.defects, self.vault, region.states(), region.labels())
        for image in images:
            for device in devices:
                if look.is_meant(device, image) and is_of_kind(device, image):
                    if image["bitstream_type"] != FUNCTIONAL and self.defects.on("key-images-not-audited"):
                        return None  # of the names of these two attributes, one is wrong
                    if not look.holds(device, image):
                        return OUT_OF_SYNC
        return IN_SYNC


@dataclass(slots=True)
class _Look:
    """What one audit asked a subcloud for."""

    region: Region
    defects: Defects
    vault: Vault
    states: list[Entry]
    labels: list[Entry]
    _cards: dict[str, Mapping[str, str]] | None = None

    def is_meant(self, device: Entry, image: Entry) -> bool:
        """Return whether the subcloud's ``device`` is to hold ``image``."""
        if is_for_all(image) or carries(device, self.labels, image):
            return True
        if self.labels or self.defects.on("no-labels-in-sync"):
            return False
        # An image that was brought here is for a device that had a label: now there is none.
        return any(known["uuid"] == image["uuid"] for known in self.region.images())

    def holds(self, device: Entry, image: Entry) -> bool:
        """Return whether ``device`` holds ``image``, as far as is looked."""
        if not self.defects.on("sync-from-rows-only"):
            facts = self.vault.facts(image)
            if facts is not None and _is_readable(facts):
                if self._cards is None:
                    self._cards = self.region.cards()
                card = self._cards.get(device["uuid"])
                return card is not None and _READ[facts.effect](card, facts)
        return self._holds_by_rows(device, image)

    def _holds_by_rows(self, device: Entry, image: Entry) -> bool:
        for state in self.states:
            if state["pcidevice_uuid"] == device["uuid"]:
                try:
                    known = self.region.image(state["image_uuid"])
                except RegionError:
                    return False
                if self._same(known, image):
                    return bool(state["status"] == COMPLETED)
        return False

    def _same(self, known: Entry, image: Entry) -> bool:
        if self.defects.on("sync-by-uuid"):
            return bool(known["uuid"] == image["uuid"])
        names = ("bitstream_type", *_SAME[image["bitstream_type"]])
        return all(known.get(name) == image.get(name) for name in names)


def _runs(card: Mapping[str, str], facts: ImageFacts) -> bool:
    return _number(card["bitstream_id"]) == facts.bitstream_id


def _has_root(card: Mapping[str, str], facts: ImageFacts) -> bool:
    return card["root_key"].removeprefix("0x").lower() == facts.programs_root


def _has_cancelled(card: Mapping[str, str], facts: ImageFacts) -> bool:
    return facts.cancel_id in _bitmap(card["revoked_key_ids"])


def _is_readable(facts: ImageFacts) -> bool:
    """Return whether a card shows that it holds such an image."""
    stated = facts.effect != "user-image" or isinstance(facts.bitstream_id, int)
    return facts.effect in _READ and stated


#: What an image is for -> whether what is read from a card shows that it holds it.
_READ: Final[Mapping[str, Callable[[Mapping[str, str], ImageFacts], bool]]] = {
    "user-image": _runs,
    "root-key": _has_root,
    "key-cancellation": _has_cancelled,
}


def _number(text: str) -> int | None:
    try:
        return int(text, 16)
    except ValueError:
        return None


def _bitmap(text: str) -> set[int]:
    """Return the numbers of a kernel's bitmap list, such as ``1,2-6``."""
    numbers: set[int] = set()
    for run in filter(None, text.split(",")):
        first, _, last = run.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers
