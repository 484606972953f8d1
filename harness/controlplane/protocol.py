"""What a StarlingX system says of images, labels, devices, hosts and alarms, whatever way it is asked.

The fields are those of the fact sheet of StarlingX, sections 1 and 2. None is what the system states as null;
what a way in does not show is Unknown, and never made up from something else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol

from harness.judgement.values import Unknown, Value

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

BitstreamType = Literal["root-key", "functional", "key-revocation"]
#: Statuses of an image on a device (section 1.4).
STATUSES = ("pending", "in-progress", "completed", "failed")
NOT_SHOWN = Unknown("not shown by this way in")
#: One label, key and value. That of an image which is applied without labels, to every device, is empty.
Label = tuple[str, str]
EVERY_DEVICE: Label = ("", "")
Text = Value[str | None]
Whole = Value[int | None]
Flag = Value[bool | None]


@dataclass(frozen=True, slots=True)
class DeviceImage:
    """A device image (sections 1.1 and 2.1). ``applied``: in any way (section 4.1)."""

    uuid: str
    bitstream_type: Text = NOT_SHOWN
    pci_vendor: Text = NOT_SHOWN
    pci_device: Text = NOT_SHOWN
    bitstream_id: Text = NOT_SHOWN
    key_signature: Text = NOT_SHOWN
    revoke_key_id: Whole = NOT_SHOWN
    name: Text = NOT_SHOWN
    description: Text = NOT_SHOWN
    image_version: Text = NOT_SHOWN
    applied: Flag = NOT_SHOWN
    applied_labels: Value[tuple[Label, ...] | None] = NOT_SHOWN
    bmc: Flag = NOT_SHOWN
    retimer_included: Flag = NOT_SHOWN
    created_at: Text = NOT_SHOWN
    updated_at: Text = NOT_SHOWN


@dataclass(frozen=True, slots=True)
class DeviceLabel:
    """A label (section 1.2). ``hostname``, ``device`` (its name): None of a floating one."""

    label_key: str
    label_value: str
    hostname: Text = NOT_SHOWN
    device: Text = NOT_SHOWN
    uuid: Text = NOT_SHOWN
    host_uuid: Text = NOT_SHOWN
    pcidevice_uuid: Text = NOT_SHOWN


@dataclass(frozen=True, slots=True)
class DeviceImageState:
    """What became of one image on one device (section 1.4). ``image_uuid``: None once the image is gone."""

    status: str
    hostname: Text = NOT_SHOWN
    address: Text = NOT_SHOWN
    image_uuid: Text = NOT_SHOWN
    update_start_time: Text = NOT_SHOWN
    updated_at: Text = NOT_SHOWN
    uuid: Text = NOT_SHOWN
    host_uuid: Text = NOT_SHOWN
    pcidevice_uuid: Text = NOT_SHOWN


@dataclass(frozen=True, slots=True)
class PciDevice:
    """A PCI device (section 1.6). The last eight fields are shown of an FPGA alone."""

    name: str
    address: str
    hostname: Text = NOT_SHOWN
    uuid: Text = NOT_SHOWN
    class_id: Text = NOT_SHOWN
    vendor_id: Text = NOT_SHOWN
    device_id: Text = NOT_SHOWN
    class_name: Text = NOT_SHOWN
    vendor_name: Text = NOT_SHOWN
    device_name: Text = NOT_SHOWN
    numa_node: Whole = NOT_SHOWN
    enabled: Flag = NOT_SHOWN
    sriov_totalvfs: Whole = NOT_SHOWN
    sriov_numvfs: Whole = NOT_SHOWN
    sriov_vfs_pci_address: Text = NOT_SHOWN
    sriov_vf_pdevice_id: Text = NOT_SHOWN
    sriov_vf_driver: Text = NOT_SHOWN
    driver: Text = NOT_SHOWN
    extra_info: Text = NOT_SHOWN
    created_at: Text = NOT_SHOWN
    updated_at: Text = NOT_SHOWN
    root_key: Text = NOT_SHOWN
    revoked_key_ids: Text = NOT_SHOWN
    boot_page: Text = NOT_SHOWN
    bitstream_id: Text = NOT_SHOWN
    bmc_build_version: Text = NOT_SHOWN
    bmc_fw_version: Text = NOT_SHOWN
    retimer_a_version: Text = NOT_SHOWN
    retimer_b_version: Text = NOT_SHOWN


@dataclass(frozen=True, slots=True)
class HostState:
    """A host (sections 1.5 and 2.5). ``device_image_update``: None and empty are different."""

    hostname: str
    uuid: Text = NOT_SHOWN
    id: Whole = NOT_SHOWN
    personality: Text = NOT_SHOWN
    subfunctions: Text = NOT_SHOWN
    administrative: Text = NOT_SHOWN
    operational: Text = NOT_SHOWN
    availability: Text = NOT_SHOWN
    task: Text = NOT_SHOWN
    device_image_update: Text = NOT_SHOWN
    reboot_needed: Flag = NOT_SHOWN
    sw_version: Text = NOT_SHOWN


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm that is set (section 3.6)."""

    alarm_id: str
    entity_instance_id: Text = NOT_SHOWN
    severity: Text = NOT_SHOWN
    reason_text: Text = NOT_SHOWN
    proposed_repair_action: Text = NOT_SHOWN
    timestamp: Text = NOT_SHOWN
    uuid: Text = NOT_SHOWN


Said = DeviceImage | DeviceLabel | DeviceImageState | PciDevice | HostState | Alarm


def statement(said: DataclassInstance) -> dict[str, Any]:
    """Return what was said as the statement of a claim, field by field."""
    return {field.name: getattr(said, field.name) for field in fields(said)}


@dataclass(frozen=True, slots=True)
class Upload:
    """An image to be uploaded. ``content``: its bytes; ``filename``: as the system is told it.

    A field that is None is not sent.
    """

    content: bytes = field(repr=False)
    filename: str
    bitstream_type: str
    pci_vendor: str = "8086"
    pci_device: str = "0b30"
    bitstream_id: str | None = None
    key_signature: str | None = None
    revoke_key_id: int | None = None
    name: str | None = None
    description: str | None = None
    image_version: str | None = None
    uuid: str | None = None
    bmc: bool | None = None
    retimer_included: bool | None = None

    def form(self) -> dict[str, str]:
        """Return the fields that are sent, in the order of the real client (section 2.7)."""
        names = (
            "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature", "revoke_key_id",
            "name", "description", "image_version", "uuid", "bmc", "retimer_included",
        )  # fmt: skip
        given = {name: getattr(self, name) for name in names}
        return {name: str(value) for name, value in given.items() if value is not None}


class Reading(Protocol):
    """What is asked of a system without changing anything.

    Every call has a deadline of its own and raises :class:`harness.errors.ControlPlaneError` with the text
    of the system where it refuses, :class:`harness.errors.NoSuchRecordError` where it knows no such image,
    label, host or device, :class:`harness.errors.NotOfferedError` where its release, or the way in, has no
    such thing, and :class:`harness.errors.InfrastructureError` where it does not answer.
    """

    @property
    def name(self) -> str:
        """The controller's name in the inventory."""
        ...

    @property
    def reporter(self) -> str:
        """Who makes the claims: ``sysinv`` or ``system`` (its command line)."""
        ...

    def images(self) -> list[DeviceImage]:
        """Return all images."""
        ...

    def image(self, ident: str) -> DeviceImage:
        """Return one image by uuid, id or name."""
        ...

    def states(self) -> list[DeviceImageState]:
        """Return what became of each image on each device."""
        ...

    def labels(self) -> list[DeviceLabel]:
        """Return all labels."""
        ...

    def devices(self, hostname: str) -> list[PciDevice]:
        """Return the PCI devices of a host, disabled ones too."""
        ...

    def device(self, hostname: str, device: str) -> PciDevice:
        """Return one PCI device of a host by name or address."""
        ...

    def hosts(self) -> list[HostState]:
        """Return all hosts."""
        ...

    def host(self, hostname: str) -> HostState:
        """Return one host by its hostname."""
        ...

    def alarms(self) -> list[Alarm]:
        """Return the alarms that are set."""
        ...

    def close(self) -> None:
        """Release the connection; may be called twice."""
        ...


class ControlPlane(Reading, Protocol):
    """One StarlingX system: what it says, and what can be asked of it; each change past the interlock.

    A change is never repeated by itself: whether one that was not answered took place is for the next look.
    """

    def upload(self, image: Upload) -> DeviceImage:
        """Upload an image; return it as the system shows it."""
        ...

    def delete(self, uuid: str) -> None:
        """Delete an image."""
        ...

    def apply(self, uuid: str, labels: Collection[Label] = ()) -> DeviceImage:
        """Apply an image to the devices with any of the labels; without labels to every device."""
        ...

    def remove(self, uuid: str, labels: Collection[Label] = ()) -> DeviceImage:
        """Take back what :meth:`apply` did."""
        ...

    def assign_labels(
        self, hostname: str, device: str, labels: Mapping[str, str], *, overwrite: bool = False
    ) -> list[DeviceLabel]:
        """Give a device labels; return the new ones."""
        ...

    def remove_labels(self, hostname: str, device: str, keys: Collection[str]) -> None:
        """Take labels off a device, all values of each key."""
        ...

    def update(self, hostname: str) -> HostState:
        """Start writing what is pending on a host; the answer shows it as it was before, or just after."""
        ...

    def abort(self, hostname: str) -> HostState:
        """Ask that nothing more is written after the image that is being written."""
        ...

    def lock(self, hostname: str, *, force: bool = False) -> HostState:
        """Ask for a host to be locked; the answer shows it as it was before, or just after."""
        ...

    def unlock(self, hostname: str) -> HostState:
        """Ask for a host to be unlocked, which reboots it."""
        ...

    def reboot(self, hostname: str) -> HostState:
        """Ask for a locked host to be rebooted."""
        ...
