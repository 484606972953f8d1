"""What each driver generation shows of a card: in which files, in which form (n3000.md 4.1, 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from harness.cards import values

#: A: out-of-tree intel-fpga drivers; B: ifpga_sec_mgr; C: fpga_image_load; D: in-tree, firmware-upload.
Generation = Literal["A", "B", "C", "D"]
GENERATIONS: Final[tuple[Generation, ...]] = get_args(Generation)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One field of :class:`harness.cards.truth.CardTruth` as some driver generations show it.

    ``pattern``: the file below the PCI device (or absolute); ``generations``: which have it there.
    ``may_be_empty``: an empty file is a legal value (``grep`` prints nothing for one). ``witnesses``: fields
    that show, by reading all ones, that the bus which this one is read over is dead.
    """

    field: str
    pattern: str
    reader: values.Reader
    generations: str = "ABCD"
    may_be_empty: bool = False
    witnesses: tuple[str, ...] = ()


_LEGACY_FME = "fpga/intel-fpga-dev.*/intel-fpga-fme.*"
_LEGACY_BMC = f"{_LEGACY_FME}/spi-altera.*.auto/spi_master/spi*/spi*.*"
_LEGACY_SECURITY = f"{_LEGACY_BMC}/ifpga_sec_mgr/ifpga_sec*/security"
_FME = "fpga_region/region*/dfl-fme.*"
_BMC = f"{_FME}/dfl_dev.*/*spi*/spi_master/spi*/spi*.*"
_MANAGER = f"{_BMC}/*-secure.*.auto/*fpga_sec_mgr/*fpga_sec*"
#: Also ``n3000bmc-secure``, under which the driver was posted for a while (formats.md).
_DEVICE = f"{_BMC}/n3000bmc-sec*.*.auto"
_UPLOAD = f"{_DEVICE}/firmware/secure-update*"

#: What is read from the FPGA's registers is nothing when its id reads all ones.
_FPGA_BUS = ("bitstream_id",)
#: BMC and flash are behind the FPGA and one more bus (n3000.md 1.1). Flash has no value of its own for a dead
#: bus: all ones there are "hash not programmed", no cancelled CSK and a count of 0 (n3000.md 4.3).
_BMC_BUS = (*_FPGA_BUS, "bmc_version", "bmcfw_version")


def _security(generations: str, folder: str, root: str, count: str) -> tuple[Attribute, ...]:
    """Return the rows of a security directory; ``root`` and ``count``: its names of hash and counter."""
    sections = ("sr", "bmc", "pr")
    roots = (
        Attribute(f"{s}_root", f"{folder}/{s}_{root}", values.root_hash, generations, witnesses=_BMC_BUS)
        for s in sections
    )
    cancelled = (
        Attribute(
            f"{s}_cancelled",
            f"{folder}/{s}_canceled_csks",
            values.csk_ids,
            generations,
            may_be_empty=True,
            witnesses=_BMC_BUS,
        )
        for s in sections
    )
    counter = Attribute(
        "flash_count", f"{folder}/{count}", values.flash_count, generations, witnesses=_BMC_BUS
    )
    return (*roots, *cancelled, counter)


def _update(generations: str, folder: str) -> tuple[Attribute, ...]:
    return (
        Attribute("update_status", f"{folder}/status", values.update_status, generations),
        Attribute("update_error", f"{folder}/error", values.update_error, generations, may_be_empty=True),
        Attribute("remaining_size", f"{folder}/remaining_size", values.remaining_size, generations),
    )


_OF_ALL = (
    Attribute("device_id", "device", values.device_id),
    Attribute("boot_id", "/proc/sys/kernel/random/boot_id", values.boot_id),
)
_OF_A = (
    Attribute("identity", f"{_LEGACY_BMC}/mac_address", values.mac, "A", witnesses=_BMC_BUS),
    Attribute("bitstream_id", f"{_LEGACY_FME}/bitstream_id", values.word64, "A"),
    Attribute(
        "bitstream_metadata", f"{_LEGACY_FME}/bitstream_metadata", values.word64, "A", witnesses=_FPGA_BUS
    ),
    Attribute(
        "interface_id", f"{_LEGACY_FME}/pr/interface_id", values.interface_id, "A", witnesses=_FPGA_BUS
    ),
    # The counter of the FPGA's flash; the other one, smbus_flash_count, is of updates by SMBus.
    *_security("A", _LEGACY_SECURITY, "root_hash", "qspi_flash_count"),
    Attribute("bmc_version", f"{_LEGACY_BMC}/max10_version", values.version_word, "A", witnesses=_BMC_BUS),
    Attribute(
        "bmcfw_version",
        f"{_LEGACY_BMC}/bmcfw_flash_ctrl/bmcfw_version",
        values.bare_version_word,
        "A",
        witnesses=_BMC_BUS,
    ),
    *(
        Attribute(
            f"retimer_{side}_version",
            f"{_LEGACY_BMC}/pkvl/pkvl_{side}_version",
            values.retimer_version,
            "A",
            witnesses=_BMC_BUS,
        )
        for side in ("a", "b")
    ),
)
_OF_DFL = (
    Attribute("identity", f"{_BMC}/mac_address", values.mac, "BCD", witnesses=_BMC_BUS),
    Attribute("bitstream_id", f"{_FME}/bitstream_id", values.word64, "BCD"),
    Attribute("bitstream_metadata", f"{_FME}/bitstream_metadata", values.word64, "BCD", witnesses=_FPGA_BUS),
    Attribute(
        "interface_id",
        f"{_FME}/dfl-fme-region.*/fpga_region/region*/compat_id",
        values.interface_id,
        "BCD",
        witnesses=_FPGA_BUS,
    ),
    Attribute("bmc_version", f"{_BMC}/bmc_version", values.version_word, "BCD", witnesses=_BMC_BUS),
    Attribute("bmcfw_version", f"{_BMC}/bmcfw_version", values.version_word, "BCD", witnesses=_BMC_BUS),
)
_OF_B = (
    *_security("B", f"{_MANAGER}/security", "root_entry_hash", "user_flash_count"),
    *_update("B", f"{_MANAGER}/update"),
    Attribute("hw_errinfo", f"{_MANAGER}/update/hw_errinfo", values.word64, "B"),
)
_OF_C_AND_D = _security("CD", f"{_DEVICE}/security", "root_entry_hash", "flash_count")
_OF_D = _update("D", _UPLOAD)
#: Generation C takes updates by the ioctls of this character device.
_LOADER = Attribute(
    "generation", f"{_DEVICE}/fpga_image_load/fpga_image_load*/dev", values.device_number, "C"
)

#: Every attribute of every generation. At most one of each field is there on a host.
ATTRIBUTES: Final[tuple[Attribute, ...]] = (
    *_OF_ALL,
    *_OF_A,
    *_OF_DFL,
    *_OF_B,
    *_OF_C_AND_D,
    *_OF_D,
    _LOADER,
)


def attributes_of(field: str, generation: Generation | None = None) -> tuple[Attribute, ...]:
    """Return where ``field`` is shown, by ``generation`` or by any."""
    return tuple(
        attribute
        for attribute in ATTRIBUTES
        if attribute.field == field and (generation is None or generation in attribute.generations)
    )


#: What a generation has and no other: by this a host's generation is told.
MARKS: Final[dict[Generation, Attribute]] = {
    "A": attributes_of("bitstream_id", "A")[0],
    "B": attributes_of("update_status", "B")[0],
    "C": _LOADER,
    "D": attributes_of("update_status", "D")[0],
}
#: Generations that take an update, and show how far it is, by attributes; the others by ioctls only.
BY_ATTRIBUTES: Final[frozenset[str]] = frozenset({"B", "D"})
