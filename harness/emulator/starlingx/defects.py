"""The known defects of StarlingX's device images, as switches: what each makes the system claim."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from harness.emulator.distributed_cloud.known import CLOUD_DEFECTS
from harness.emulator.starlingx.releases import EVER, FIRST, HOSTS_OF, PYTHON3, RELEASES, Defect
from harness.errors import ConfigurationError

__all__ = ["DEFECTS", "HOSTS_OF", "RELEASES", "Defect", "Defects"]

_TABLE: Final = (
    Defect(
        "two-images-on-floating-label",
        "field report 1; section 4.6",
        EVER,
        "two functional images are applied to one label, where no device carries it",
        "CONTRADICTION",
    ),
    Defect(
        "old-flag-kept",
        "section 4.3",
        EVER,
        "an image applied without labels stays applied after another one took its place",
        "MISREPORT",
    ),
    Defect(
        "labels-lost-on-move",
        "section 3.3 (the class of LP 1890296)",
        EVER,
        "a card whose address changed at its reset has no label and no state any more",
        "LOST",
    ),
    Defect(
        "labels-lost-at-boot",
        "LP 1890296, 046f98f93",
        FIRST,
        "a device that stood elsewhere from the boot to its reset has no label and no state any more",
        "LOST",
    ),
    Defect(
        "duplicate-applied-labels",
        "LP 1890296, 046f98f93",
        FIRST,
        "applied_labels has a label once for each device that carries it",
        "MISREPORT",
    ),
    Defect(
        "host-not-pending-after-failure",
        "LP 1890296, 046f98f93",
        FIRST,
        "a host with a failed image has nothing to update",
        "FALSE_SUCCESS",
    ),
    Defect(
        "failed-flash-not-reported",
        "eventlet 413; section 3.2",
        PYTHON3,
        "an image that fpgasupdate refused is in progress, until the audit",
        "LOST",
    ),
    Defect(
        "retimer-flag-after-failure",
        "section 3.2, step 7",
        EVER,
        "retimers are reset at the next boot although the image was refused",
        "BREACH",
    ),
    Defect(
        "failure-not-propagated",
        "section 4.7",
        EVER,
        "after a failed root key the functional image of the same device is written and completed",
        "BREACH",
    ),
    Defect(
        "audit-leaves-host-in-progress",
        "section 4.7",
        EVER,
        "a host is in-progress after its only update has timed out",
        "STALE",
    ),
    Defect(
        "remove-drops-running-state",
        "section 4.8",
        EVER,
        "a host is in-progress for ever once the image that is being written is removed",
        "LOST",
    ),
    Defect(
        "delete-orphans-states",
        "section 4.8",
        EVER,
        "a state of no image is left, and the next update ends with the host in-progress",
        "LOST",
    ),
    Defect(
        "label-removal-breaks-list",
        "section 4.8",
        EVER,
        "no image can be listed once a label that carries one is removed",
        "LOST",
    ),
    Defect(
        "label-removal-drops-all-states",
        "sections 4.4 and 4.5",
        EVER,
        "states that are owed to another label of the device are gone",
        "LOST",
    ),
    Defect(
        "label-assign-leaves-host-alone",
        "section 4.5",
        EVER,
        "a state is pending and the host has nothing to update",
        "CONTRADICTION",
    ),
    Defect(
        "label-assign-keeps-both-images",
        "section 4.6",
        EVER,
        "two functional images are pending on one device, and both get flashed",
        "BREACH",
    ),
    Defect(
        "duplicate-states",
        "section 4.6",
        EVER,
        "one image is pending twice on one device, and can not be removed",
        "MISREPORT",
    ),
    Defect(
        "remove-leaves-host-pending",
        "section 4.4",
        EVER,
        "a host is pending with nothing to update",
        "STALE",
    ),
    Defect(
        "inventory-reported-once",
        "section 3.1",
        EVER,
        "what the card holds is as at the start of the agent",
        "STALE",
    ),
    Defect(
        "third-identical-label",
        "section 2.3",
        EVER,
        "a device carries the same label twice",
        "BREACH",
    ),
    Defect(
        "any-device-labelled",
        "section 2.3",
        EVER,
        "an image is pending on a device that is no FPGA",
        "BREACH",
    ),
    Defect(
        "device-id-not-checked",
        "LP 1889451, e946429f4",
        FIRST,
        "an image for a device that cannot be updated is taken",
        "BREACH",
    ),
    Defect(
        "upload-id-not-checked",
        "LP 1883998, 51beae0b5",
        (),
        "an image is known by an id that is no UUID",
        "BREACH",
    ),
    Defect(
        "bmc-drops-user-image",
        "LP 1951602, 2b23452a1",
        FIRST,
        "the user image is applied no more once a BMC image is",
        "LOST",
    ),
    Defect(
        "upload-booleans-fail",
        "LP 1980405, 109eb6e7f",
        ("stx-6",),
        "an upload that states --bmc or --retimer-included is answered by what is no JSON",
        "FAILED",
    ),
    Defect(
        "alarm-without-update",
        "LP 1883293, 81f783c39, 5c24844b8",
        FIRST,
        "alarm 900.006 stands although nothing is to be updated",
        "STALE",
    ),
    Defect(
        "floating-labels-left",
        "LP 1890299, c8e814320",
        FIRST,
        "a label that no image has is left when its image is deleted",
        "STALE",
    ),
    Defect(
        "root-key-blocks-itself",
        "LP 1890324, c8e814320",
        FIRST,
        "a root key cannot be applied to two labels of one device",
        "BREACH",
    ),
    Defect(
        "apply-again-resets",
        "LP 1890340, c8e814320",
        FIRST,
        "an image that is completed is pending once it is applied again",
        "MISREPORT",
    ),
    Defect(
        "agent-not-installed",
        "LP 1981824, 86aa93255",
        (),
        "the fields of the card are None: nobody reports them",
        "LOST",
    ),
    Defect(
        "kernel-unknown-to-tools",
        "LP 2160223, 275cc2314",
        (),
        "the fields of the card are empty: the kernel has its attributes elsewhere than the agent looks",
        "UNKNOWN_AS_VALUE",
    ),
    Defect(
        "leftover-container",
        "LP 2142481, 6cd19ac62",
        ("stx-6", "stx-8"),
        "the reset fails at every boot after one that was cut short",
        "FAILED",
    ),
    Defect(
        "custom-actions-denied",
        "LP 2102054, 6e8156afa",
        (),
        "an administrator may not start an update of a host's device images",
        "BREACH",
    ),
)
DEFECTS: Final = {defect.name: defect for defect in (*_TABLE, *CLOUD_DEFECTS)}


class Defects:
    """The switches of one system."""

    def __init__(self, release: str, on: Iterable[str] = (), off: Iterable[str] = ()) -> None:
        """Switch on what holds in ``release``, and ``on``, but not ``off``.

        :raises ConfigurationError: an unknown release or defect.
        """
        if release not in RELEASES:
            raise ConfigurationError(
                f"There is no emulated release {release!r}.", hint=f"Known: {', '.join(RELEASES)}."
            )
        for name in (*on, *off):
            if name not in DEFECTS:
                raise ConfigurationError(
                    f"There is no known defect {name!r}.", hint=f"Known: {', '.join(DEFECTS)}."
                )
        self.release = release
        held = {name for name, defect in DEFECTS.items() if release in defect.releases}
        self._on = (held | set(on)) - set(off)

    def on(self, name: str) -> bool:
        """Return whether the defect ``name`` is there. :raises KeyError: there is no such one."""
        return DEFECTS[name].name in self._on
