"""What dcmanager does with one subcloud in each state of its step: import, create, apply, finish (5.5).

Each state is a generator: it yields how many seconds of lab time it waits, and returns the next state.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.emulator.distributed_cloud.firmware_audit import (
    carries,
    is_for_all,
    is_of_kind,
    looked_at,
)
from harness.emulator.distributed_cloud.profile import CloudProfile
from harness.emulator.distributed_cloud.regions import Entry, Region, RegionError
from harness.emulator.distributed_cloud.vault import Vault
from harness.emulator.starlingx.applying import COMPLETED
from harness.emulator.starlingx.defects import Defects
from harness.emulator.starlingx.uploads import FUNCTIONAL, KEY_REVOCATION

IMPORTING: Final = "importing firmware"
CREATING: Final = "creating fw update strategy"
APPLYING: Final = "applying fw update strategy"
FINISHING: Final = "finishing fw update"
COMPLETE: Final = "complete"

_FIELDS: Final = (
    "uuid", "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature", "revoke_key_id",
    "name", "description", "image_version", "bmc", "retimer_included",
)  # fmt: skip
#: States of a VIM's strategy in which it is at work.
_BUSY: Final = ("building", "applying", "aborting")

Waits = Generator[float, None, str]


class StepFailed(Exception):
    """The step of a subcloud has failed; the text becomes its details."""


@dataclass(frozen=True, slots=True)
class SubcloudSteps:
    """The states of one subcloud's step.

    ``central``: the controller's own region. ``say``: sets the details of the step. ``finished``: told when
    all is done.
    """

    region: Region
    central: Region
    defects: Defects
    profile: CloudProfile
    vault: Vault
    say: Callable[[str], None]
    finished: Callable[[], None]

    def run(self, state: str) -> Waits:
        """Do what is to be done in ``state``. :raises StepFailed: it failed. :raises RegionError: so."""
        acts: Mapping[str, Callable[[], Waits]] = {
            IMPORTING: self.importing,
            CREATING: self.creating,
            APPLYING: self.applying,
            FINISHING: self.finishing,
        }
        return acts[state]()

    # -- importing ------------------------------------------------------------------------------

    def importing(self) -> Waits:
        """Bring the controller's images to the subcloud: its list is to become the controller's."""
        yield 0.0  # nothing to wait for: one request after the other
        wanted = [image for image in self.central.images() if image["applied"]]
        there = self.region.images()
        for image in there:
            if image["applied"] and all(image["uuid"] != other["uuid"] for other in wanted):
                self.region.remove(image["uuid"], _labels(image))
        devices = looked_at(self.region.devices(), self.defects)
        labels, states = self.region.labels(), self.region.states()
        for image in self._without_rivals(wanted, devices, labels):
            device = _device_for(image, devices, labels)
            if device is None:
                continue
            if all(known["uuid"] != image["uuid"] for known in there):
                self._upload(image)
            if not any(
                (state["pcidevice_uuid"], state["image_uuid"]) == (device["uuid"], image["uuid"])
                for state in states
            ):
                self.region.apply(image["uuid"], self._labels_for(image, device, labels))
        return CREATING

    def _without_rivals(
        self, wanted: Sequence[Entry], devices: Sequence[Entry], labels: Sequence[Entry]
    ) -> list[Entry]:
        """Leave out the images whose place on a device a later one takes, where that is corrected."""
        if self.defects.on("rerun-alternates-images"):
            return list(wanted)
        last: dict[tuple[str, bool], str] = {}
        for image in wanted:
            for device in devices:
                if image["bitstream_type"] == FUNCTIONAL and _is_meant(device, labels, image):
                    last[device["uuid"], bool(image.get("bmc"))] = image["uuid"]
        kept = set(last.values())
        return [i for i in wanted if i["bitstream_type"] != FUNCTIONAL or i["uuid"] in kept]

    def _labels_for(
        self, image: Entry, device: Entry, labels: Sequence[Entry]
    ) -> Sequence[Mapping[str, str]]:
        """Return the labels that ``image`` is applied to: all of the controller's, since 663fcf0f."""
        if self.defects.on("subcloud-labels-applied"):
            own = [label for label in labels if label["pcidevice_uuid"] == device["uuid"]]
            return [{label["label_key"]: label["label_value"]} for label in own]
        return _labels(image)

    def _upload(self, image: Entry) -> None:
        content = self.vault.read(image)
        path = self.vault.path(image)
        if content is None:
            raise StepFailed(f"File does not exist: {path}")
        if image["bitstream_type"] == KEY_REVOCATION and self.defects.on("revocation-upload-fails"):
            raise StepFailed("'int' object has no attribute 'encode'")
        fields = {name: str(image[name]) for name in _FIELDS if image.get(name) is not None}
        if self.defects.on("upload-booleans-fail"):  # inferred: else that release could orchestrate nothing
            fields = {name: value for name, value in fields.items() if value != "False"}
        self.region.upload(fields, path, content)

    # -- creating -------------------------------------------------------------------------------

    def creating(self) -> Waits:
        """Have the subcloud's VIM build a strategy, in place of one that is left."""
        there = self.region.strategy()
        if there is not None:
            if there["state"] in _BUSY or self.defects.on("leftover-vim-strategy"):
                raise StepFailed(
                    f"Failed to create a VIM strategy for {self.region.name}. There already is an existing "
                    f"strategy in {there['state']} state"
                )
            self.region.delete_strategy()
        strategy: Entry | None = self.region.create_strategy()
        for _ in range(self.profile.build_polls):
            yield self.profile.build_poll_seconds
            strategy = self.region.strategy()
            if strategy is None:
                raise StepFailed("Get strategy failed")
            if strategy["state"] == "ready-to-apply":
                return APPLYING
            if strategy["state"] == "build-failed":
                raise StepFailed(f"VIM strategy build failed: build-failed. {_reason(strategy, 'build')}.")
            if strategy["state"] != "building":
                raise StepFailed(f"VIM strategy unexpected build state: {strategy['state']}")
        raise StepFailed("Timeout building vim strategy. state: building")

    # -- applying -------------------------------------------------------------------------------

    def applying(self) -> Waits:
        """Have the subcloud's VIM carry its strategy out."""
        strategy = self.region.strategy()
        if strategy is not None and strategy["state"] == "ready-to-apply":
            strategy = self.region.apply_strategy()
        seen, since, failed = "", 0, 0
        while True:
            since += 1
            if since >= self.profile.apply_polls:
                raise StepFailed("Timeout applying firmware strategy.")
            yield self.profile.apply_poll_seconds
            try:
                strategy = self.region.strategy()
                failed = 0
            except RegionError as error:
                failed += 1
                if failed >= self.profile.failed_polls:
                    raise StepFailed("Timeout during recovery of apply firmware strategy.") from error
                continue
            if strategy is None:
                raise StepFailed("Firmware strategy disappeared while applying")
            if strategy["state"] == "applied":
                return FINISHING
            if strategy["state"] != "applying":
                raise StepFailed(
                    f"Firmware strategy apply failed. {strategy['state']}. {_reason(strategy, 'apply')}"
                )
            progress = (
                f"{strategy['current-phase']} phase is "
                f"{strategy['current-phase-completion-percentage']}% complete"
            )
            if progress != seen:
                seen, since = progress, 0
                self.say(progress)

    # -- finishing ------------------------------------------------------------------------------

    def finishing(self) -> Waits:
        """Look whether every image is on its device."""
        devices = yield from self._retried(self.region.devices, "Timeout waiting to query subcloud hosts")
        if self.defects.on("leftover-vim-strategy") and self.region.strategy() is not None:
            self.region.delete_strategy()  # what every step that came as far as this did by itself
        ours = {device["uuid"] for device in looked_at(devices, self.defects)}
        what = "Timeout waiting to query subcloud device image info"
        images = yield from self._retried(self.region.images, what)
        applied = {image["uuid"] for image in images if image["applied"]}
        states = yield from self._retried(self.region.states, what)
        for state in states:
            open_ = state["status"] != COMPLETED and state["pcidevice_uuid"] in ours
            if open_ and state["image_uuid"] in applied:
                raise StepFailed("Not all images applied successfully")
        self.finished()
        return COMPLETE

    def _retried(self, ask: Callable[[], list[Entry]], complaint: str) -> Generator[float, None, list[Entry]]:
        tries = 0 if self.defects.on("finishing-without-retries") else self.profile.finish_retries
        for _ in range(tries):
            try:
                return ask()
            except RegionError:
                yield self.profile.finish_retry_seconds
        try:
            return ask()
        except RegionError as error:
            raise StepFailed(complaint if tries else str(error)) from error


def _is_meant(device: Entry, labels: Sequence[Entry], image: Entry) -> bool:
    return is_of_kind(device, image) and (is_for_all(image) or carries(device, labels, image))


def _device_for(image: Entry, devices: Sequence[Entry], labels: Sequence[Entry]) -> Entry | None:
    return next((device for device in devices if _is_meant(device, labels, image)), None)


def _labels(image: Entry) -> list[Mapping[str, str]]:
    """Return the labels that ``image`` is applied to, without the empty one that stands for all devices."""
    return [label for label in image["applied_labels"] if label]


def _reason(strategy: Mapping[str, Any], phase: str) -> str:
    return str(strategy[f"{phase}-phase"]["reason"])
