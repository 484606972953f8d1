"""The driver's firmware-upload attributes, as kernel source and documents have them."""

import errno

import pytest

from harness.emulator.card import CardState

LIMIT = 0x3800000  # staging, header included


def refused(call, *arguments) -> int:
    with pytest.raises(OSError) as raised:
        call(*arguments)
    assert raised.value.errno is not None
    return raised.value.errno


def test_status_has_left_idle_before_the_write_that_starts_an_update_returns(bench, image) -> None:
    upload = bench.card.upload
    upload.write_loading(b"1")
    assert (upload.read_loading(), upload.status()) == ("1", "idle")
    upload.write_data(image("A/csk0"), 0)
    upload.write_loading(b"0")
    assert (upload.read_loading(), upload.status()) == ("0", "receiving")
    assert refused(upload.error) == errno.EBUSY
    assert upload.remaining_size() == len(image("A/csk0"))


def test_an_update_goes_through_every_status_and_lands_in_the_user_page(bench, image) -> None:
    bench.start(image("A/csk0"))
    seen = bench.wait_idle()
    assert seen == ["receiving", "preparing", "transferring", "programming", "idle"]
    assert bench.card.upload.error() == ""
    assert bench.card.upload.remaining_size() == 0
    assert bench.card.state.user_page == image("A/csk0")[0x400:]
    assert bench.card.flash_count == 1
    assert bench.log == []


def test_remaining_size_falls_block_by_block(bench, image) -> None:
    size = len(image("A/csk0"))  # 17408 bytes: two blocks of the driver
    bench.card.hold("transferring")
    bench.start(image("A/csk0"))
    bench.clock.sleep(20)
    while bench.card.upload.remaining_size() == size:
        bench.clock.sleep(0.01)
    assert bench.card.upload.remaining_size() == size - 0x4000
    bench.card.release()


def test_data_is_taken_in_parts_and_a_new_1_begins_afresh(bench, image) -> None:
    data = image("A/csk0")
    upload = bench.card.upload
    upload.write_loading(b"1")
    upload.write_data(b"rubbish", 0)
    upload.write_loading(b"1")
    upload.write_data(data[4096:], 4096)
    upload.write_data(data[:4096], 0)
    upload.write_loading(b"0")
    bench.wait_idle()
    assert upload.error() == ""
    assert bench.card.state.user_page == data[0x400:]


def test_a_refusal_is_hw_error_to_the_user_and_a_code_to_the_kernel_log(bench, image) -> None:
    assert bench.flash(image("unsigned")) == "programming:hw-error"
    # status 02 (authentication failed), host status 1 (write done), progress idle
    assert bench.log == ["Doorbell: 0x00020100", "RSU auth result: 0x00000011"]
    assert bench.card.state.user_page is None
    assert bench.card.flash_count == 1


def test_the_error_stays_until_the_next_update(bench, image) -> None:
    bench.flash(image("unsigned"))
    assert bench.card.upload.error() == "programming:hw-error"
    assert bench.flash(image("A/csk0")) == ""


def test_a_failed_authentication_does_not_count_where_the_profile_says_so(
    make_bench, image, root_hash
) -> None:
    bench = make_bench(CardState(sr_root=root_hash("A")), failed_authentication_counts=False)
    assert bench.flash(image("unsigned")) == "programming:hw-error"
    assert bench.card.flash_count == 0
    assert bench.flash(image("A/csk0")) == ""
    assert bench.card.flash_count == 1


@pytest.mark.parametrize(
    ("size", "error"), [(0, "preparing:invalid-file-size"), (LIMIT + 1, "preparing:invalid-file-size")]
)
def test_sizes_that_staging_does_not_hold(bench, size: int, error: str) -> None:
    assert bench.flash(bytes(size)) == error
    assert bench.card.flash_count == 0


def test_a_file_that_just_fits_is_authenticated(bench) -> None:
    assert bench.flash(bytes(LIMIT)) == "programming:hw-error"
    assert bench.auth_code() == 0x01


def test_a_second_update_is_refused_and_does_no_harm(bench, image) -> None:
    bench.start(image("A/csk0"))
    bench.clock.sleep(1)
    upload = bench.card.upload
    upload.write_loading(b"1")
    upload.write_data(image("A/csk1"), 0)
    assert refused(upload.write_loading, b"0") == errno.EBUSY
    bench.wait_idle()
    assert bench.card.state.user_page == image("A/csk0")[0x400:]


def test_data_without_loading_and_odd_words(bench) -> None:
    upload = bench.card.upload
    assert refused(upload.write_data, b"x", 0) == errno.ENODEV
    upload.write_loading(b"0")
    upload.write_loading(b"7")
    assert upload.status() == "idle"
    assert bench.log == [
        "firmware_loading_store: unexpected value (0)",
        "firmware_loading_store: unexpected value (7)",
    ]
    upload.write_loading(b"1")
    upload.write_loading(b"-1")
    assert upload.read_loading() == "0"


# --- cancel --------------------------------------------------------------------------------------


def test_cancel_is_enodev_when_idle_and_einval_for_no(bench) -> None:
    assert refused(bench.card.upload.cancel, b"1") == errno.ENODEV
    assert refused(bench.card.upload.cancel, b"0") == errno.EINVAL


@pytest.mark.parametrize("phase", ["preparing", "transferring"])
def test_cancel_before_programming_ends_with_user_abort_and_the_old_page(bench, image, phase: str) -> None:
    bench.flash(image("A/csk1"))
    bench.card.hold(phase)
    bench.start(image("A/csk0"))
    bench.reach(phase)
    assert bench.card.upload.status() == phase
    bench.card.upload.cancel(b"1")
    assert bench.card.upload.status() == phase  # heard at the next step only
    bench.card.release()
    bench.wait_idle()
    assert bench.card.upload.error() == f"{phase}:user-abort"
    assert bench.card.state.user_page == image("A/csk1")[0x400:]
    assert bench.card.flash_count == 2  # staging was erased
    assert bench.flash(image("A/csk0")) == ""  # and the BMC is ready again


def test_remaining_size_keeps_what_was_left_after_a_cancel(bench, image) -> None:
    bench.card.hold("transferring")
    bench.start(image("A/csk0"))
    bench.reach("transferring")
    bench.card.upload.cancel(b"1")
    bench.card.release()
    bench.wait_idle()
    assert bench.card.upload.remaining_size() > 0


def test_cancel_while_programming_is_ebusy_and_the_image_lands(bench, image) -> None:
    bench.card.hold("programming")
    bench.start(image("A/csk0"))
    bench.reach("programming")
    assert refused(bench.card.upload.cancel, b"1") == errno.EBUSY
    bench.card.release()
    bench.wait_idle()
    assert bench.card.upload.error() == ""


def test_cancel_while_programming_is_ignored_where_the_profile_says_so(make_bench, image) -> None:
    bench = make_bench(cancel_while_programming="ignored")
    bench.card.hold("programming")
    bench.start(image("A/csk0"))
    bench.reach("programming")
    bench.card.upload.cancel(b"1")
    bench.card.release()
    bench.wait_idle()
    assert bench.card.upload.error() == ""
    assert bench.card.state.user_page == image("A/csk0")[0x400:]


# --- what the card says to the driver ------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "wait"), [(1000, 0), (1001, 30), (2000, 30), (2001, 60)], ids=["1000", "1001", "2000", "2001"]
)
def test_wear_policy(make_bench, image, count: int, wait: int) -> None:
    """More than 1000 updates: 30 s after boot and between updates; more than 2000: 60 s (4.6)."""
    bench = make_bench(CardState(flash_count=count), prepare_seconds=0)
    if wait:
        bench.clock.sleep(wait - 0.5)
        assert bench.flash(image("A/csk0")) == "preparing:flash-wearout"
        assert bench.log == ["Excessive flash update count detected"]
        assert bench.card.flash_count == count
        bench.clock.sleep(0.5)
    assert bench.flash(image("A/csk0")) == ""
    assert bench.card.flash_count == count + 1
    following = bench.flash(image("A/csk0"))
    assert following == ("preparing:flash-wearout" if count + 1 > 1000 else "")


def test_a_busy_bmc_refuses_updates_and_resets(bench, image) -> None:
    bench.card.condition("busy", True)
    assert bench.flash(image("A/csk0")) == "preparing:device-busy"
    assert refused(bench.card.image_load, "bmc_user") == errno.EBUSY
    assert bench.log == ["Doorbell not idle: 0x00820040"]
    bench.card.condition("busy", False)
    assert bench.flash(image("A/csk0")) == ""


def test_a_silent_bmc_times_out_after_5_seconds(bench, image) -> None:
    bench.card.condition("silent", True)
    bench.start(image("A/csk0"))
    bench.clock.sleep(4.9)
    assert bench.card.upload.status() == "preparing"
    bench.clock.sleep(0.2)
    assert bench.card.upload.error() == "preparing:timeout"


def test_erasing_longer_than_two_minutes_times_out(make_bench, image) -> None:
    bench = make_bench(prepare_seconds=130)
    bench.start(image("A/csk0"))
    bench.clock.sleep(119)
    assert bench.card.upload.status() == "preparing"
    bench.clock.sleep(2)
    assert bench.card.upload.error() == "preparing:timeout"
    assert bench.flash(image("A/csk0")) == "preparing:device-busy"  # the BMC still erases


def test_programming_longer_than_forty_minutes_times_out_and_lands_all_the_same(make_bench, image) -> None:
    bench = make_bench(copy_rate=5.0)
    bench.start(image("A/csk0"))
    bench.wait_idle()
    assert bench.card.upload.error() == "programming:timeout"
    bench.clock.sleep(16384 / 5)
    assert bench.card.state.user_page == image("A/csk0")[0x400:]


def test_all_ones_looks_busy_to_the_driver(bench, image) -> None:
    bench.card.condition("all-ones", True)
    assert bench.flash(image("A/csk0")) == "preparing:device-busy"
    assert refused(bench.card.image_load, "bmc_user") == errno.EBUSY


def test_an_ignored_upload_never_leaves_idle_and_changes_nothing(bench, image) -> None:
    bench.card.condition("ignore-upload", True)
    bench.start(image("A/csk0"))
    assert bench.card.upload.status() == "idle"
    bench.clock.sleep(100)
    assert bench.card.upload.error() == ""
    assert (bench.card.flash_count, bench.card.state.user_page) == (0, None)


def test_a_cancelled_csk_locks_updates_until_power_is_cut_where_the_profile_says_so(
    make_bench, image, root_hash
) -> None:
    state = CardState(sr_root=root_hash("A"), sr_cancelled=frozenset({0}))
    bench = make_bench(state, cancelled_csk_locks_updates=True)
    assert bench.flash(image("A/csk0")) == "programming:hw-error"
    assert bench.auth_code() == 0x15
    assert bench.flash(image("A/csk1")) == "preparing:device-busy"
    assert refused(bench.card.image_load, "bmc_user") == errno.EBUSY
    bench.power_cycle()
    assert bench.flash(image("A/csk1")) == ""


def test_an_update_takes_about_forty_minutes_for_a_full_page(bench) -> None:
    """UG: about 40 minutes for an SR image; a refused one ends before copying."""
    profile = bench.card.profile
    seconds = LIMIT / profile.transfer_rate + LIMIT / profile.copy_rate
    assert 35 * 60 < seconds + profile.prepare_seconds < 42 * 60
