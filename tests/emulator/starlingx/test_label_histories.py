"""Any sequence of applies, removes and label changes: what holds of every system, and of a corrected one."""

from __future__ import annotations

import itertools
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harness.emulator.starlingx.alarms import Alarms
from harness.emulator.starlingx.answers import Refused
from harness.emulator.starlingx.applying import Applying
from harness.emulator.starlingx.database import Database
from harness.emulator.starlingx.defects import Defects
from harness.emulator.starlingx.labels import DeviceLabels
from harness.emulator.starlingx.views import Views

PAIRS = [{"k": "1"}, {"k": "2"}, {"m": "1"}]
KINDS = [
    ("functional", False), ("functional", False), ("functional", True), ("root-key", None),
    ("root-key", None), ("key-revocation", None), ("key-revocation", None),
]  # fmt: skip
images = st.integers(0, len(KINDS) - 1)
label_lists = st.lists(st.sampled_from(PAIRS), max_size=2, unique_by=str)


class Histories(RuleBasedStateMachine):
    """One host with two cards and seven images, in memory."""

    release = "head"

    def __init__(self) -> None:
        super().__init__()
        numbers = itertools.count(1)
        self.database = Database(None, lambda: "", lambda: f"uuid-{next(numbers)}")
        defects = Defects(self.release)
        self.alarms = Alarms(self.database, "system")
        self.applying = Applying(self.database, defects, self.alarms)
        self.labels = DeviceLabels(self.database, defects, self.applying, self.alarms)
        self.views = Views(self.database, defects)
        host = self.database.add("i_host", hostname="controller-0")
        self.devices = []
        for address in ("0000:b2:00.0", "0000:b4:00.0"):
            device = self.database.add(
                "pci_devices", host_id=host["id"], pciaddr=address, pdevice_id="0b30", pclass_id="120000"
            )
            self.database.add("fpga_devices", host_id=host["id"], pci_id=device["id"], pciaddr=address)
            self.devices.append(device)
        self.images = [
            self.database.add("device_images", bitstream_type=kind, bmc=bmc, retimer_included=bmc and False)
            for kind, bmc in KINDS
        ]
        self.labelled = False
        self.broken = False

    def teardown(self) -> None:
        self.database.close()

    # -- what is done ---------------------------------------------------------------------------

    def _try(self, act: Any, *words: Any, **more: Any) -> bool:
        try:
            act(*words, **more)
        except Refused as refusal:
            # A label of the device that carried an image is gone: from then on, nothing can be listed.
            self.broken |= "No device label entry" in refusal.text
            return False
        return True

    @rule(image=images, labels=label_lists)
    def apply(self, image: int, labels: list[dict[str, str]]) -> None:
        uuid = self.images[image]["uuid"]
        if self._try(self.applying.apply, uuid, labels) and not self.broken:
            shown = self.shown(image)
            assert shown["applied"] is True
            for pair in labels or [{}]:
                assert pair in shown["applied_labels"]

    @rule(image=images, labels=label_lists)
    def remove_any(self, image: int, labels: list[dict[str, str]]) -> None:
        self.remove(image, labels)

    def remove(self, image: int, labels: list[dict[str, str]]) -> None:
        uuid = self.images[image]["uuid"]
        if self._try(self.applying.remove, uuid, labels) and not self.broken:
            left = self.shown(image)["applied_labels"] or []
            assert not any(pair in left for pair in labels or [{}])

    @rule(number=st.integers(0, 9))
    def remove_what_is_applied(self, number: int) -> None:
        ties = self.database.all("device_image_labels")
        tie = ties[number % len(ties)] if ties else None
        label = self.database.one("device_labels", id=tie["label_id"]) if tie and tie["label_id"] else None
        if tie is not None and label is not None:
            self.remove(tie["image_id"] - 1, [{label["label_key"]: label["label_value"]}])

    @rule(device=st.integers(0, 1), pair=st.sampled_from(PAIRS))
    def assign(self, device: int, pair: dict[str, str]) -> None:
        body = [pair, {"pcidevice_uuid": self.devices[device]["uuid"]}]
        self.labelled |= self._try(self.labels.assign, body, overwrite=False)

    # -- what holds -----------------------------------------------------------------------------

    def shown(self, image: int) -> dict[str, Any]:
        row = self.database.one("device_images", id=self.images[image]["id"])
        assert row is not None
        return self.views.image(row, detail=False)

    def owed(self) -> list[tuple[int, str, bool | None, int]]:
        """Return device, type, bmc and image of every state."""
        by_id = {image["id"]: image for image in self.images}
        return [
            (
                s["pcidevice_id"],
                by_id[s["image_id"]]["bitstream_type"],
                by_id[s["image_id"]]["bmc"],
                s["image_id"],
            )
            for s in self.database.all("device_image_state")
        ]

    @invariant()
    def labels_that_no_device_carries_have_an_image(self) -> None:
        for label in self.database.all("device_labels", pcidevice_id=None):
            assert self.database.one("device_image_labels", label_id=label["id"]) is not None

    @invariant()
    @precondition(lambda self: not self.labelled)
    def device_is_owed_one_image_of_a_kind(self) -> None:
        """Section 4.2: what is applied takes the place of what it cannot stand beside."""
        single = [entry[:3] for entry in self.owed() if entry[1] != "key-revocation"]
        assert len(single) == len(set(single))

    @invariant()
    @precondition(lambda self: not self.labelled)
    def alarm_stands_while_something_is_owed(self) -> None:
        assert not self.owed() or self.database.all("alarms")


class CorrectedHistories(Histories):
    """What users would want holds after label changes, too."""

    release = "corrected"

    @rule(number=st.integers(0, 5))
    def remove_label(self, number: int) -> None:
        carried = [label for label in self.database.all("device_labels") if label["pcidevice_id"]]
        if carried:
            self._try(self.labels.remove, carried[number % len(carried)]["uuid"])

    @invariant()
    def device_is_owed_one_image_of_a_kind_always(self) -> None:
        single = [entry[:3] for entry in self.owed() if entry[1] != "key-revocation"]
        assert len(single) == len(set(single))
        assert len(self.owed()) == len(set(self.owed()))

    @invariant()
    def everything_can_be_listed(self) -> None:
        assert all(self.shown(image) for image in range(len(self.images)))

    @invariant()
    def host_is_pending_while_something_is_owed(self) -> None:
        (host,) = self.database.all("i_host")
        assert (host["device_image_update"] == "pending") == bool(self.owed())


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
TestCorrectedHistories = CorrectedHistories.TestCase
TestCorrectedHistories.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
