"""What is new in the kernel's log, and which authentication code it names for which card."""

from harness.cards.kernel_log import AuthReport, auth_report, devices_of, new_lines

DEVICE = "n3000bmc-sec-update.5.auto"
IN_TREE = f"[  812.5] intel-m10bmc-sec-update {DEVICE}: RSU auth result: 0x00000015"
DOORBELL = f"[  812.5] intel-m10bmc-sec-update {DEVICE}: Doorbell: 0x10020000"
OTHER = "[  812.5] intel-m10bmc-sec-update n3000bmc-sec-update.9.auto: RSU auth result: 0x00000012"
OLD_DRIVER = [
    "intel-max10 spi2.0: RSU error status: 8'h10022104",
    "intel-max10 spi2.0: RSU auth result: 8'h00000011",
]


def test_what_was_added() -> None:
    assert new_lines("a\nb\n", "a\nb\nc\nd\n") == ["c", "d"]
    assert new_lines("a\n", "a\n") == []
    assert new_lines("", "a\n") == ["a"]
    assert new_lines("a\n", "") == []


def test_equal_lines_are_told_apart() -> None:
    assert new_lines("a\nx\n", "a\nx\nx\n") == ["x"]


def test_a_ring_that_wrapped_and_a_host_that_booted() -> None:
    assert new_lines("a\nb\nc\n", "b\nc\nd\n") == ["d"]
    assert new_lines("a\nb\n", "c\nd\n") == ["c", "d"]


def test_the_longest_common_part_counts() -> None:
    assert new_lines("a\nb\na\nb\n", "a\nb\na\nb\nc\n") == ["c"]
    assert new_lines("x\na\nb\na\n", "a\nb\na\na\n") == ["a"]
    assert new_lines("b\nb\n", "b\na\n") == ["a"]


def test_the_in_tree_driver() -> None:
    assert auth_report([DOORBELL, IN_TREE], {DEVICE}) == AuthReport(
        "0x15", "0x10020000", f"{DOORBELL}\n{IN_TREE}"
    )


def test_the_old_driver() -> None:
    report = auth_report(OLD_DRIVER, {DEVICE})
    assert report is not None
    assert report.statement() == {"auth_code": "0x11", "doorbell": "0x10022104"}


def test_lines_of_another_card_do_not_count() -> None:
    assert auth_report([OTHER, "usb 1-1: new device"], {DEVICE}) is None
    report = auth_report([IN_TREE, OTHER], {DEVICE})
    assert report is not None and report.auth_code == "0x15"


def test_the_last_report_counts_and_other_numbers_do_not() -> None:
    later = IN_TREE.replace("0x00000015", "0x0000001a")
    assert (report := auth_report([IN_TREE, later], {DEVICE})) is not None and report.auth_code == "0x1a"
    assert auth_report([IN_TREE.replace("0x00000015", "0xzz")], {DEVICE}) is None


def test_the_out_of_tree_driver_names_the_spi_device() -> None:
    """Generation A (user guide 683519): two cards differ in that alone."""
    other = [line.replace("spi2.0", "spi0.0").replace("00000011", "00000012") for line in OLD_DRIVER]
    report = auth_report([*OLD_DRIVER, *other], {"spi2.0"})
    assert report is not None and report.auth_code == "0x11"
    assert auth_report(other, {"spi2.0"}) is None


def test_the_security_manager_names_a_device_of_its_own() -> None:
    line = "[  9.1] intel-m10bmc-secure m10bmc-secure.3.auto: RSU auth result: 0x00000012"
    assert (report := auth_report([line], {"m10bmc-secure.3.auto"})) is not None
    assert report.auth_code == "0x12"
    assert auth_report([line], {"m10bmc-secure.4.auto"}) is None


def test_devices_are_told_by_the_path_of_an_attribute() -> None:
    fme = "/sys/devices/pci0000:ae/0000:b2:00.0/fpga_region/region0/dfl-fme.0"
    spi = f"{fme}/dfl_dev.0/subdev_spi_altera.2.auto/spi_master/spi1/spi1.0"
    assert devices_of(f"{spi}/n3000bmc-sec-update.5.auto/security/flash_count") == {
        "spi1.0",
        "n3000bmc-sec-update.5.auto",
    }
    assert devices_of("/sys/*/spi_master/spi*/spi*.*/n3000bmc-sec-update.*.auto/status") == frozenset()
