"""What a host sees of the card: identity, functions, roots, and how a reset or a move changes it."""

import errno
import hashlib
import threading

import pytest

from harness.emulator.card import CardProfile, CardSpec, CardState
from harness.errors import ConfigurationError
from harness.images.payload import load_payload_table

FACTORY_ID = 0x23001410010310
INTEL_BMC_ROOT = "77698ea203e459f6cb0e65b54a1dd4ab47a6a6600e7988f723ad89f5b7f3673a"


def refused(call, *arguments) -> int:
    with pytest.raises(OSError) as raised:
        call(*arguments)
    assert raised.value.errno is not None
    return raised.value.errno


def test_a_card_as_shipped(make_bench) -> None:
    card = make_bench().card
    assert (card.root_entry_hash("SR"), card.root_entry_hash("PR")) == (None, None)
    assert card.root_entry_hash("BMC") == INTEL_BMC_ROOT
    assert [card.cancelled(section) for section in ("SR", "BMC", "PR")] == [frozenset()] * 3
    assert card.flash_count == 0
    assert card.bitstream_id == FACTORY_ID
    assert card.bitstream_id >> 36 & 1  # boot page: factory (4.7)
    assert (card.bmcfw_version, card.bmc_version) == (0x44020015, 0x44020006)
    assert card.mac == "64:4c:36:11:1b:a8"


def test_pci_functions(make_bench) -> None:
    """Two dual-port NICs around 0b30, and 0b32 behind (1.1)."""
    functions = make_bench().card.functions()
    assert [(f.address, f.vendor, f.device, f.class_ >> 8) for f in functions] == [
        ("0000:b1:00.0", 0x8086, 0x0D58, 0x0200),
        ("0000:b1:00.1", 0x8086, 0x0D58, 0x0200),
        ("0000:b2:00.0", 0x8086, 0x0B30, 0x1200),
        ("0000:b3:00.0", 0x8086, 0x0D58, 0x0200),
        ("0000:b3:00.1", 0x8086, 0x0D58, 0x0200),
        ("0000:b4:00.0", 0x8086, 0x0B32, 0x1200),
    ]
    assert {(f.subsystem_vendor, f.subsystem_device) for f in functions} == {(0x8086, 0)}


def test_a_fec_user_image_changes_the_second_function(make_bench, image) -> None:
    bench = make_bench(CardState(user_page=image("unsigned")[0x400:]), user_image_is_fec=True)
    assert bench.card.functions()[-1].device == 0x0D8F


def test_a_user_image_runs_only_after_a_reset(bench, image) -> None:
    bench.flash(image("A/csk0"))
    assert bench.card.bitstream_id == FACTORY_ID
    bench.reset()
    assert bench.card.bitstream_id == 0x23000410010311
    assert not bench.card.bitstream_id >> 36 & 1
    assert bench.card.interface_id == "a5d72a3c-c8b0-4939-912c-f715e5dc10ca"
    assert bench.card.bitstream_metadata == 0x2010906205


def test_a_user_image_runs_after_a_power_cycle_too(bench, image) -> None:
    bench.flash(image("A/csk0"))
    bench.power_cycle()
    assert bench.card.bitstream_id == 0x23000410010311


def test_a_payload_that_configures_nothing_falls_back_to_the_factory_page(make_bench, image) -> None:
    bench = make_bench(CardState(user_page=b"\x00" * 4096))
    assert (bench.card.bitstream_id, bench.card.running_page) == (FACTORY_ID, "factory")


def test_a_vector_of_the_vendor_has_its_identity_tabled(make_bench) -> None:
    payload = b"vendor" * 100
    digest = hashlib.sha256(payload).hexdigest()
    interface = "f3c99413-5081-4aad-bced-07eb84a6d0bb"
    entry = f"{{section: SR, bitstream_id: 0x23000110010310, interface_id: {interface}}}"
    table = load_payload_table(f"payloads:\n  {digest}: {entry}\n")
    card = make_bench(CardState(user_page=payload), payloads=table).card
    assert (card.bitstream_id, card.interface_id) == (0x23000110010310, interface)


def test_a_root_key_is_readable_at_once_and_enforced_after_the_reset(make_bench, image, root_hash) -> None:
    bench = make_bench()
    assert bench.flash(image("root-key-A")) == ""
    assert bench.card.root_entry_hash("SR") == root_hash("A")
    assert bench.flash(image("unsigned")) == ""
    assert bench.flash(image("root-key-B")) == "programming:hw-error"
    assert bench.auth_code() == 0x1A
    bench.reset()
    assert bench.flash(image("unsigned")) == "programming:hw-error"
    assert bench.auth_code() == 0x11
    assert bench.card.root_entry_hash("SR") == root_hash("A")


def test_enforcement_at_once_is_a_profile_value(make_bench, image) -> None:
    bench = make_bench(enforcement="at-once")
    bench.flash(image("root-key-A"))
    assert bench.flash(image("unsigned")) == "programming:hw-error"
    assert bench.auth_code() == 0x11
    bench.flash(image("cancel-A-csk0"))
    assert bench.flash(image("A/csk0")) == "programming:hw-error"
    assert bench.auth_code() == 0x15


def test_a_cancellation_is_readable_at_once_enforced_later_and_leaves_the_image_running(bench, image) -> None:
    bench.flash(image("A/csk0"))
    bench.reset()
    assert bench.flash(image("cancel-A-csk0")) == ""
    assert bench.card.cancelled("SR") == {0}
    assert bench.flash(image("A/csk0")) == ""
    bench.reset()
    assert bench.card.bitstream_id == 0x23000410010311
    assert bench.flash(image("A/csk0")) == "programming:hw-error"
    assert bench.auth_code() == 0x15
    assert bench.flash(image("A/csk1")) == ""
    assert bench.card.cancelled("SR") == {0}


def test_a_bmc_image_changes_both_versions_after_the_reset(make_bench, image, root_hash) -> None:
    bench = make_bench(CardState(bmc_root=root_hash("A")))
    assert bench.flash(image("bmc-A/csk0")) == ""
    assert (bench.card.bmcfw_version, bench.card.bmc_version) == (0x44020015, 0x44020006)
    bench.reset()
    new = bench.card.bmcfw_version, bench.card.bmc_version
    assert new == (0x44020015, 0x44020008)
    bench.reset("bmc_factory")
    assert (bench.card.bmcfw_version, bench.card.bmc_version) == (0x44020015, 0x44020006)
    assert bench.card.doorbell >> 28 & 1  # CONFIG_SEL: bmc_factory (4.3)
    bench.reset("bmc_user")
    assert (bench.card.bmcfw_version, bench.card.bmc_version) == new


# --- reset and address ---------------------------------------------------------------------------


def test_a_reset_takes_the_card_off_the_bus_and_back(bench) -> None:
    changes: list[str | None] = []
    bench.card.on_change(lambda: changes.append(bench.card.address))
    bench.card.image_load("bmc_user\n")
    assert bench.card.address is None
    assert bench.card.functions() == []
    assert refused(lambda: bench.card.bitstream_id) == errno.ENODEV
    assert refused(bench.card.image_load, "bmc_user") == errno.ENODEV
    assert refused(bench.card.upload.write_loading, b"1") == errno.ENODEV
    bench.clock.sleep(10)
    assert bench.card.address == "0000:b2:00.0"
    assert changes == [None, "0000:b2:00.0"]


def test_the_address_moves_across_a_reset_once(make_bench) -> None:
    spec = CardSpec("card0", "64:4c:36:11:1b:a8", ("0000:b3:00.0", "0000:b2:00.0"))
    bench = make_bench(spec=spec)
    assert bench.card.address == "0000:b3:00.0"
    bench.reset()
    assert bench.card.address == "0000:b2:00.0"
    bench.reset()
    assert bench.card.address == "0000:b2:00.0"
    bench.card.moves_to = "0000:5e:00.0"
    bench.power_cycle()
    assert bench.card.address == "0000:5e:00.0"
    assert bench.card.functions()[0].address == "0000:5d:00.0"


def test_a_card_comes_up_elsewhere_at_each_boot_of_its_host_until_its_first_reset(make_bench) -> None:
    spec = CardSpec("card0", "64:4c:36:11:1b:a8", ("0000:b2:00.0",), boots_at="0000:b3:00.0")
    bench = make_bench(spec=spec)
    assert bench.card.address == "0000:b2:00.0"
    for boot in (bench.card.host_restarted, bench.power_cycle):
        boot()
        assert bench.card.address == "0000:b3:00.0"
        bench.reset()
        assert bench.card.address == "0000:b2:00.0"
        bench.reset()
        assert bench.card.address == "0000:b2:00.0"
    bench.card.host_restarted()
    bench.power_cycle()  # without any reset in between
    bench.reset()
    assert bench.card.address == "0000:b2:00.0"
    bench.card.boots_at = None
    bench.card.host_restarted()
    assert bench.card.address == "0000:b2:00.0"


def test_a_card_that_stays_away_comes_back_by_a_power_cycle_only(bench) -> None:
    bench.card.condition("stays-away", True)
    bench.reset()
    bench.clock.sleep(3600)
    assert bench.card.address is None
    bench.power_cycle()
    assert bench.card.address == "0000:b2:00.0"
    bench.reset()
    assert bench.card.address == "0000:b2:00.0"


def test_power_cut_during_a_reset(bench) -> None:
    bench.card.image_load("bmc_user")
    bench.card.power_off()
    bench.clock.sleep(100)
    assert bench.card.address is None
    bench.card.power_on()
    assert bench.card.address == "0000:b2:00.0"


def test_image_load_takes_its_three_words_only(bench) -> None:
    assert refused(bench.card.image_load, "fpga_user") == errno.EINVAL
    assert refused(bench.card.image_load, "") == errno.EINVAL


def test_the_retimer_takes_lab_time_and_may_say_duplicate(make_bench) -> None:
    bench = make_bench()
    bench.card.image_load("retimer_fw")
    assert bench.clock.now() == 10
    assert bench.card.doorbell >> 4 & 0xF == 9  # PKVL_PROM_DONE
    assert bench.card.address == "0000:b2:00.0"
    bench.reset()
    other = make_bench(retimer_image="duplicate")
    assert refused(other.card.image_load, "retimer_fw") == errno.ECANCELED
    assert other.log == ["duplicate image rejected"]


# --- circumstances -------------------------------------------------------------------------------


def test_all_ones(bench, image) -> None:
    """Register reads are all ones; flash reads as erased flash does (4.3)."""
    bench.flash(image("A/csk0"))
    card = bench.card
    card.condition("all-ones", True)
    assert card.bitstream_id == card.bitstream_metadata == 0xFFFFFFFFFFFFFFFF
    assert card.interface_id == "ffffffff-ffff-ffff-ffff-ffffffffffff"
    assert card.bmc_version == card.bmcfw_version == card.doorbell == 0xFFFFFFFF
    assert card.root_entry_hash("SR") is None
    assert (card.cancelled("SR"), card.flash_count) == (frozenset(), 0)
    card.condition("all-ones", False)
    assert card.flash_count == 1


def test_an_unknown_condition_is_refused(bench) -> None:
    with pytest.raises(ConfigurationError, match="no condition 'all-one'"):
        bench.card.condition("all-one", True)


def test_fit_puts_a_card_into_another_state(bench, image, root_hash) -> None:
    bench.card.condition("busy", True)
    bench.card.hold("copying")
    bench.start(image("A/csk0"))
    page = image("B/csk0")[0x400:]
    bench.card.fit(
        CardState(sr_root=root_hash("B"), user_page=page, flash_count=7), CardProfile(copy_rate=1e6)
    )
    card = bench.card
    assert (card.root_entry_hash("SR"), card.flash_count) == (root_hash("B"), 7)
    assert (card.bitstream_id, card.address) == (0x23000410010313, "0000:b2:00.0")
    assert (card.conditions, card.held(), card.upload.status()) == (set(), None, "idle")
    assert bench.flash(image("B/csk0")) == ""


def test_a_listener_may_ask_the_card_with_a_lock_of_its_own(bench) -> None:
    """Who holds a lock and asks the card must not meet a card that calls with its own lock held."""
    lock, called = threading.Lock(), threading.Event()
    answered: list[bool] = []

    def listen() -> None:
        called.set()
        answered.append(lock.acquire(timeout=5))

    def hold_the_lock_and_ask() -> None:
        with lock:
            ready.set()
            called.wait(5)
            bench.card.functions()

    ready = threading.Event()
    thread = threading.Thread(target=hold_the_lock_and_ask)
    thread.start()
    assert ready.wait(5)
    bench.card.on_change(listen)
    bench.card.image_load("bmc_user")
    thread.join(10)
    assert not thread.is_alive()
    assert answered == [True]
    lock.release()
