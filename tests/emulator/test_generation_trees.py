"""What the drivers of generations A, B and C show of a card, and how they take an update by attributes.

Names and forms are those of the kernel's ABI documents (sysfs-class-ifpga-sec-mgr, fpga-image-load.rst) and
of the dump of a generation A card that the vendor published.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

from harness.emulator.card import CardState

ROOT = "ab" * 32
BMC_ROOT = "77698ea203e459f6cb0e65b54a1dd4ab47a6a6600e7988f723ad89f5b7f3673a"
STATE = CardState(sr_root=ROOT, sr_cancelled=frozenset({0, 1, 2, 5}), flash_count=31)
CARD = "/sys/bus/pci/devices/0000:b2:00.0"
DFL_BMC = f"{CARD}/fpga_region/region*/dfl-fme.*/dfl_dev.*/subdev_spi_altera.*.auto/spi_master/spi*/spi*.*"
OLD_FME = f"{CARD}/fpga/intel-fpga-dev.*/intel-fpga-fme.*"
OLD_BMC = f"{OLD_FME}/spi-altera.*.auto/spi_master/spi*/spi*.*"
SECURITY = {
    "A": f"{OLD_BMC}/ifpga_sec_mgr/ifpga_sec*/security",
    "B": f"{DFL_BMC}/m10bmc-secure.*.auto/ifpga_sec_mgr/ifpga_sec*/security",
    "C": f"{DFL_BMC}/n3000bmc-sec-update.*.auto/security",
    "D": f"{DFL_BMC}/n3000bmc-sec-update.*.auto/security",
}
UPDATE = f"{DFL_BMC}/m10bmc-secure.*.auto/ifpga_sec_mgr/ifpga_sec*/update"


@pytest.fixture
def console_of(new_host: Any, console_for: Any) -> Callable[..., Any]:
    """Makes a console of a host of a generation, with one card."""
    return lambda generation, state=None, **more: console_for(
        new_host("0000:b2:00.0", state=state, generation=generation, **more)
    )


@pytest.mark.parametrize(
    ("generation", "name", "text"),
    [
        ("A", "sr_root_hash", f"0x{ROOT}\n"),
        ("A", "bmc_root_hash", f"0x{BMC_ROOT}\n"),
        ("A", "pr_root_hash", "hash not programmed\n"),
        ("A", "sr_canceled_csks", "0-2,5\n"),
        ("A", "pr_canceled_csks", "\n"),
        ("A", "qspi_flash_count", "31\n"),
        ("A", "smbus_flash_count", "31\n"),
        ("B", "sr_root_entry_hash", f"0x{ROOT}\n"),
        ("B", "user_flash_count", "31\n"),
        ("C", "sr_root_entry_hash", f"0x{ROOT}\n"),
        ("C", "flash_count", "31\n"),
        ("D", "sr_root_entry_hash", f"{ROOT}\n"),
        ("D", "flash_count", "31\n"),
    ],
)
def test_security_attributes(console_of: Callable[..., Any], generation: str, name: str, text: str) -> None:
    assert console_of(generation, STATE).run(f"cat {SECURITY[generation]}/{name}").out == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (f"{OLD_FME}/pr/interface_id", "a5d72a3cc8b04939912cf715e5dc10ca\n"),
        (f"{OLD_FME}/bitstream_id", "0x23001410010310\n"),
        (f"{OLD_BMC}/max10_version", "0x44020006\n"),
        (f"{OLD_BMC}/bmcfw_flash_ctrl/bmcfw_version", "44020015\n"),
        (f"{OLD_BMC}/mac_address", "64:4c:36:00:00:00\n"),
        (f"{OLD_BMC}/pkvl/pkvl_a_version", "101c.1064\n"),
        (f"{OLD_BMC}/fpga_flash_ctrl/fpga_image_load", "0\n"),
        (f"{CARD}/fpga/intel-fpga-dev.*/intel-fpga-port.*/afu_id", "9aeffe5f84570612c000c9660d824272\n"),
    ],
)
def test_the_out_of_tree_drivers_names(console_of: Callable[..., Any], path: str, text: str) -> None:
    assert console_of("A").run(f"cat {path}").out == text


def test_the_driver_of_the_function(console_of: Callable[..., Any]) -> None:
    for generation, driver in (("A", "intel-fpga-pci"), ("B", "dfl-pci"), ("C", "dfl-pci"), ("D", "dfl-pci")):
        console = console_of(generation)
        assert console.run(f"readlink {CARD}/driver").out.strip().endswith(f"/{driver}")
        assert f"DRIVER={driver}\n" in console.run(f"cat {CARD}/uevent").out


@pytest.mark.parametrize("generation", ["A", "C"])
def test_an_ioctl_interface_offers_no_attribute_to_write_to(
    console_of: Callable[..., Any], generation: str
) -> None:
    console = console_of(generation)
    for name in ("filename", "loading", "data", "remaining_size", "cancel"):
        assert console.run(f"find {CARD}/ -name {name}").out == ""


# -- generation B: a file is named to the driver ------------------------------------------------------


def load(console: Any, data: bytes, name: str = "image.bin") -> Any:
    console.host.vfs.write(f"/usr/lib/firmware/{name}", data)
    return console.run(f"echo {name} > {UPDATE}/filename")


def attribute(console: Any, name: str) -> str:
    return str(console.run(f"cat {UPDATE}/{name}").out)


def until(console: Any, status: str) -> None:
    """Let lab time pass until the update is in the phase ``status``."""
    for _ in range(1000):
        if attribute(console, "status").strip() == status:
            return
        console.run("sleep 0.01")
    raise AssertionError(f"the update never was {status}")


def test_a_named_file_is_loaded_and_lands(console_of: Callable[..., Any], recipe_image: Any) -> None:
    console = console_of("B")
    assert load(console, recipe_image("unsigned")).code == 0
    until(console, "idle")
    assert (attribute(console, "error"), attribute(console, "hw_errinfo")) == ("", "0x0\n")
    assert attribute(console, "remaining_size") == "0\n"
    assert console.card.state.user_page == recipe_image("unsigned")[1024:]


def test_its_words_for_the_phases(console_of: Callable[..., Any], recipe_image: Any) -> None:
    console = console_of("B")
    for phase, word in (
        ("preparing", "preparing"),
        ("transferring", "writing"),
        ("programming", "programming"),
    ):
        console.card.hold(phase)
        assert load(console, recipe_image("unsigned")).code == 0
        until(console, word)
        for name in ("error", "hw_errinfo"):
            assert console.run(f"cat {UPDATE}/{name}").err.endswith("Device or resource busy\n")
        assert load(console, b"x").err.endswith("Device or resource busy\n")
        console.card.release()
        until(console, "idle")


def test_the_status_leaves_idle_before_the_write_returns(
    console_of: Callable[..., Any], recipe_image: Any
) -> None:
    console = console_of("B")
    with console.host.clock.actor():  # lab time stands still
        load(console, recipe_image("unsigned"))
        assert attribute(console, "status") == "read_file\n"


@pytest.mark.parametrize(("content", "name"), [(None, "missing.bin"), (b"", "empty.bin")])
def test_a_file_that_the_loader_cannot_have(
    console_of: Callable[..., Any], content: bytes | None, name: str
) -> None:
    console = console_of("B")
    if content is not None:
        console.host.vfs.write(f"/usr/lib/firmware/{name}", content)
    assert console.run(f"echo {name} > {UPDATE}/filename").code == 0
    until(console, "idle")
    assert attribute(console, "error") == "read_file:file-read-error\n"
    assert attribute(console, "hw_errinfo") == "0x0\n"


def test_a_refusal_keeps_the_registers(
    console_of: Callable[..., Any], recipe_image: Any, recipe_root: Any
) -> None:
    console = console_of("B", CardState(sr_root=recipe_root("A/csk0")))
    load(console, recipe_image("unsigned"))
    until(console, "idle")
    assert attribute(console, "error") == "programming:hw-error\n"
    # Doorbell above: status 02, authentication failure; below it the result, 0x11 (intel-m10-bmc.h).
    errinfo = int(attribute(console, "hw_errinfo"), 16)
    assert (errinfo & 0xFFFFFFFF, errinfo >> 48 & 0xFF) == (0x11, 0x02)
    log = console.run("dmesg").out
    assert "m10bmc-secure.1.auto: RSU error status: 0x" in log
    assert "m10bmc-secure.1.auto: RSU auth result: 0x00000011" in log


def test_cancelling_takes_effect_while_it_writes_and_is_busy_later(
    console_of: Callable[..., Any], recipe_image: Any
) -> None:
    console = console_of("B")
    assert console.run(f"echo 1 > {UPDATE}/cancel").err.endswith("No such device\n")
    console.card.hold("transferring")
    load(console, recipe_image("unsigned"))
    until(console, "writing")
    assert console.run(f"echo 1 > {UPDATE}/cancel").code == 0
    console.card.release()
    until(console, "idle")
    assert attribute(console, "error") == "writing:user-abort\n"
    console.card.hold("programming")
    load(console, recipe_image("unsigned"))
    until(console, "programming")
    assert console.run(f"echo 1 > {UPDATE}/cancel").err.endswith("Device or resource busy\n")
    console.card.release()
    until(console, "idle")
    assert attribute(console, "error") == ""


@pytest.mark.parametrize(("generation", "code"), [("A", 5), ("B", 0), ("C", 1), ("D", 1)])
def test_only_the_security_manager_takes_wear_out_at_completion_for_success(
    console_of: Callable[..., Any], recipe_image: Any, generation: str, code: int
) -> None:
    worn = CardState(flash_count=1500)
    console = console_of(generation, worn, wearout_at_completion=True)
    path = console.put("user.bin", recipe_image("unsigned"))
    assert console.run(f"sleep 40; fpgasupdate -y {path}").code == code
    assert console.card.state.user_page == recipe_image("unsigned")[1024:]


# -- resets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generation", ["A", "B", "C", "D"])
def test_a_reset_activates_what_was_flashed(
    console_of: Callable[..., Any], recipe_image: Any, generation: str
) -> None:
    console = console_of(generation)
    path = console.put("user.bin", recipe_image("A/csk0"))
    assert console.run(f"fpgasupdate -y {path} 0000:b2:00.0").code == 0
    before = console.card.running_page
    result = console.run("rsu bmcimg 0000:b2:00.0")
    assert (before, console.card.running_page, result.code) == ("factory", "user", 0)


@pytest.mark.parametrize(
    ("generation", "control"),
    [
        ("A", f"{OLD_BMC}/bmcimg_flash_ctrl/bmcimg_image_load"),
        ("B", f"{UPDATE}/image_load"),
        ("C", f"{DFL_BMC}/n3000bmc-sec-update.*.auto/control/image_load"),
    ],
)
def test_where_a_reset_is_triggered(console_of: Callable[..., Any], generation: str, control: str) -> None:
    """On an N3000 the BMC's user page is 0 and its factory page 1 (formats of the vendor's tool)."""
    console = console_of(generation)
    assert console.run(f"echo nonsense > {control}").err.endswith("Invalid argument\n")
    word = "1" if generation == "A" else "bmc_factory"
    with console.host.clock.actor():  # so that no lab time passes before its place is looked at
        assert console.run(f"echo {word} > {control}").code == 0
        assert console.card.address is None, "it has not left the bus"
    console.run("sleep 20")
    # CONFIG_SEL is 1 for the factory page (4.3).
    assert console.card.doorbell >> 28 & 1 == 1


@pytest.mark.parametrize("generation", ["A", "B", "C"])
def test_without_its_control_file_rsu_dies_as_on_the_in_tree_kernel(
    console_of: Callable[..., Any], generation: str
) -> None:
    console = console_of(generation)
    console.host.condition("no-image-load", True)
    result = console.run("rsu bmcimg 0000:b2:00.0")
    assert result.code == 1
    assert result.err.endswith("TypeError: rsu not supported by this (0x8086,0x0b30)\n")


@pytest.mark.parametrize("generation", ["A", "B", "C", "D"])
def test_the_kernel_of_the_generation(console_of: Callable[..., Any], generation: str) -> None:
    release = console_of(generation).run("uname -r").out
    assert re.match(
        {"A": r"3\.10\.", "B": r"5\.8\.", "C": r"5\.1\d\.", "D": r"6\.\d+\."}[generation], release
    )
