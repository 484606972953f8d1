"""The emulated fpgasupdate: texts, timing and exit codes of the fact sheet (n3000.md 2.8, 3.3, 5.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.emulator.card import CardState
from harness.images.recipes import build, load_recipes

RECIPES = Path(__file__).resolve().parents[2] / "fixtures/images.yaml"
#: A transfer that takes less than one look, and programming of 3.5 s in all.
BRISK = {
    "prepare_seconds": 2.0,
    "transfer_rate": 400_000.0,
    "authentication_seconds": 0.5,
    "copy_rate": 100_000.0,
}
ALL_BARS = "█" * 20


@pytest.fixture
def big_image() -> Callable[[str], bytes]:
    """Returns the image of a recipe with a payload of 299,008 bytes: 300,032 in all."""
    recipes = load_recipes(RECIPES.read_text())
    return lambda name: build(replace(recipes[name], size=299_008))


@pytest.fixture
def card_console(new_host: Any, console_for: Any) -> Callable[..., Any]:
    """Makes a console of a host with one card in a given state."""
    return lambda state=None, **profile: console_for(new_host("0000:b2:00.0", state=state, **profile))


def padded(text: str) -> str:
    return f"{text:80}\n"


def test_successful_update_says_exactly_what_the_tool_says(card_console: Any, big_image: Any) -> None:
    console = card_console(**BRISK)
    path = console.put("user.bin", big_image("unsigned"))
    result = console.run(f"fpgasupdate -y {path} b2:00.0")
    assert result.out == (
        "[2026-11-30 09:00:00.00] [WARNING ] Update starting. Please do not interrupt.\n"
        "[2026-11-30 09:00:00.00] [INFO    ] updating from file /tmp/user.bin with size 300032\n"
        "[2026-11-30 09:00:00.00] [INFO    ] waiting for idle\n"
        "[2026-11-30 09:00:00.00] [INFO    ] preparing image file\n"
        "[2026-11-30 09:00:02.00] [INFO    ] writing image file\n"
        + padded(f"(100%) [{ALL_BARS}] [300032/300032 bytes][Elapsed Time: 0:00:01.00]")
        + "\n[2026-11-30 09:00:03.00] [INFO    ] programming image file\n"
        + padded("(  9%) [█                   ][Elapsed Time: 0:00:01.00]")
        + padded("( 19%) [███                 ][Elapsed Time: 0:00:02.00]")
        + padded("( 28%) [█████               ][Elapsed Time: 0:00:03.00]")
        + padded("( 38%) [███████             ][Elapsed Time: 0:00:04.00]")
        + padded(f"(100%) [{ALL_BARS}][Elapsed Time: 0:00:04.00]")
        + "\n[2026-11-30 09:00:07.00] [INFO    ] update of 0000:b2:00.0 complete\n"
        "[2026-11-30 09:00:07.00] [INFO    ] Secure update OK\n"
        "[2026-11-30 09:00:07.00] [INFO    ] Total time: 0:00:07.00\n"
    )
    assert (result.code, result.err) == (0, "")
    assert console.card.state.user_page == big_image("unsigned")[1024:]


def test_refused_image_ends_with_the_drivers_error_and_the_code_in_the_kernel_log(
    card_console: Any, recipe_image: Any, recipe_root: Any
) -> None:
    console = card_console(CardState(sr_root=recipe_root("A/csk0")))
    path = console.put("unsigned.bin", recipe_image("unsigned"))
    result = console.run(f"fpgasupdate -y {path} 0000:b2:00.0")
    assert result.code == 1
    assert "[ERROR   ] programming:hw-error\n" in result.out
    assert "Secure update OK" not in result.out
    log = console.run("dmesg | grep -E 'm10bmc|intel-max10|n3000bmc'").out
    assert "n3000bmc-sec-update.1.auto: RSU auth result: 0x00000011\n" in log
    assert "Doorbell: 0x" in log
    assert console.card.state.user_page is None


def test_worn_flash_is_named_in_the_spelling_of_sysfs(card_console: Any, recipe_image: Any) -> None:
    console = card_console(CardState(flash_count=1500))
    path = console.put("user.bin", recipe_image("unsigned"))
    result = console.run(f"fpgasupdate -y {path} b2:00.0")
    assert (result.code, "[ERROR   ] preparing:flash-wearout\n" in result.out) == (1, True)
    assert "excessive flash counts" not in result.out


def test_ignored_upload_is_reported_as_a_success(card_console: Any, recipe_image: Any) -> None:
    console = card_console()
    console.card.condition("ignore-upload", True)
    path = console.put("user.bin", recipe_image("unsigned"))
    result = console.run(f"fpgasupdate -y {path} b2:00.0")
    assert (result.code, "Secure update OK" in result.out) == (0, True)
    assert console.card.state.flash_count == 0


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (bytes(2000), "[ERROR   ] Unknown file format in /tmp/f.bin\n"),
        (bytes(1151), "/tmp/f.bin does not meet the minimum file size requirement of 1152\n"),
        (bytes(1151), "[ERROR   ] Unknown file format in /tmp/f.bin\n"),
    ],
)
def test_file_that_is_no_image_never_reaches_the_card(console: Any, data: bytes, text: str) -> None:
    path = console.put("f.bin", data)
    result = console.run(f"fpgasupdate -y {path} b2:00.0")
    assert (result.code, text in result.out) == (1, True)
    assert "Update starting" not in result.out


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("0000:b9:00.0", "[ERROR   ] Failed to find PAC at 0000:b9:00.0\n"),
        ("b9:00.0", "[ERROR   ] Failed to find PAC at 0000:b9:00.0\n"),
        ("xyz", "[ERROR   ] xyz is not a valid PCIe address. Use ssss:bb:dd.f\n"),
    ],
)
def test_wrong_address_is_an_error_of_the_tool(
    console: Any, recipe_image: Any, address: str, text: str
) -> None:
    path = console.put("user.bin", recipe_image("unsigned"))
    result = console.run(f"fpgasupdate -y {path} {address}")
    assert (result.code, text in result.out) == (1, True)


def test_without_address_one_card_is_taken_and_two_are_too_many(
    console: Any, new_host: Any, console_for: Any, recipe_image: Any
) -> None:
    path = console.put("user.bin", recipe_image("unsigned"))
    assert console.run(f"fpgasupdate -y {path}").code == 0
    two = console_for(new_host("0000:1b:00.0", "0000:5e:00.0"))
    path = two.put("user.bin", recipe_image("unsigned"))
    result = two.run(f"fpgasupdate -y {path}")
    assert "More than one PAC found. Please specify an ssss:bb:dd.f\n" in result.out
    none = console_for(new_host())
    path = none.put("user.bin", recipe_image("unsigned"))
    assert "[ERROR   ] No suitable PAC found.\n" in none.run(f"fpgasupdate -y {path}").out


def test_irreversible_image_is_asked_about(console: Any, recipe_image: Any, recipe_root: Any) -> None:
    path = console.put("rk.bin", recipe_image("root-key-A"))
    refused = console.run(f"fpgasupdate {path} b2:00.0", stdin=b"no\n")
    assert refused.code == 1
    assert refused.out.startswith(
        "*** Programming a Root Entry Hash or Key Cancellation cannot be undone! Continue? [yes/No]> "
    )
    assert "[INFO    ] Operation canceled by user.\n" in refused.out
    assert console.card.state.sr_root is None
    assert console.run(f"fpgasupdate {path} b2:00.0", stdin=b"maybe\nyes\n").code == 0
    assert console.card.state.sr_root == recipe_root("A/csk0")


def test_debug_level_logs_hashes_and_progress(console: Any, recipe_image: Any) -> None:
    data = recipe_image("unsigned")
    path = console.put("user.bin", data)
    out = console.run(f"/usr/bin/fpgasupdate -y --log-level debug {path} 0000:b2:00.0").out
    assert f"[DEBUG   ] hash256: b'{data[0x10:0x30].hex()}'\n" in out
    assert "[DEBUG   ] file type: Static Region (Update)\n" in out
    assert f"[DEBUG   ] (100%) [{ALL_BARS}] [{len(data)}/{len(data)} bytes]" in out


def test_missing_file_is_a_usage_error(console: Any) -> None:
    result = console.run("fpgasupdate -y /tmp/nope.bin b2:00.0")
    assert result.code == 2
    assert "argument file: can't open '/tmp/nope.bin': [Errno 2] No such file or directory" in result.err


def test_card_without_secure_device_kills_the_tool_with_a_traceback(console: Any, recipe_image: Any) -> None:
    path = console.put("user.bin", recipe_image("unsigned"))
    secure = console.run("readlink -f /sys/bus/platform/drivers/intel-m10bmc-sec-update/*.auto").out.strip()
    console.host.vfs.remove_tree(secure)
    result = console.run(f"fpgasupdate -y {path} b2:00.0")
    assert (result.code, "AttributeError: 'NoneType'" in result.err) == (1, True)


def test_sigterm_while_copying_is_reported_as_a_failure_and_the_flash_is_new(
    console: Any, recipe_image: Any, running: Any
) -> None:
    image = recipe_image("unsigned")
    update = running(console, console.put("user.bin", image), "copying")
    assert console.run(f"kill -TERM {update.pid}").code == 0
    result = update.end()
    assert (result.code, "[ERROR   ] Caught SIGTERM\n" in result.out) == (1, True)
    console.card.release()
    assert console.run("sleep 60; cat /sys/class/firmware/secure-update0/status").out == "idle\n"
    assert console.card.state.user_page == image[1024:]


def test_ctrl_c_while_transferring_cancels(console: Any, recipe_image: Any, running: Any) -> None:
    update = running(console, console.put("user.bin", recipe_image("unsigned")), "transferring")
    console.run(f"kill -INT {update.pid}")
    result = update.end()
    assert (result.code, "[ERROR   ] Interrupted\n" in result.out) == (1, True)
    console.card.release()
    console.run("sleep 200")
    assert console.run("cat /sys/class/firmware/*/error").out == "transferring:user-abort\n"
    assert console.card.state.user_page is None


def test_ctrl_c_while_programming_dies_of_the_refused_cancel(
    console: Any, recipe_image: Any, running: Any
) -> None:
    update = running(console, console.put("user.bin", recipe_image("unsigned")), "copying")
    console.run(f"kill -INT {update.pid}")
    result = update.end()
    assert (result.code, "OSError: [Errno 16] Device or resource busy" in result.err) == (1, True)
    console.card.release()


def test_sigkill_ends_the_tool_by_the_signal(console: Any, recipe_image: Any, running: Any) -> None:
    update = running(console, console.put("user.bin", recipe_image("unsigned")), "preparing")
    console.run(f"kill -KILL {update.pid}")
    assert update.end().code == -9
    console.card.release()


def test_second_updater_on_one_card_is_turned_away(console: Any, recipe_image: Any, running: Any) -> None:
    path = console.put("user.bin", recipe_image("unsigned"))
    update = running(console, path, "copying")
    second = console.run(f"fpgasupdate -y {path} b2:00.0")
    assert second.code == 1
    assert "BlockingIOError: [Errno 11] Resource temporarily unavailable" in second.err
    console.card.release()
    assert update.end().code == 0
    assert console.card.state.flash_count == 1


def test_status_error_and_cancel_during_an_update_answer_as_the_kernel_does(
    console: Any, recipe_image: Any, running: Any
) -> None:
    update = running(console, console.put("user.bin", recipe_image("unsigned")), "copying")
    upload = "/sys/class/firmware/secure-update0"
    assert console.run(f"cat {upload}/status").out == "programming\n"
    result = console.run(f"cat {upload}/error")
    assert (result.code, result.err) == (1, f"cat: {upload}/error: Device or resource busy\n")
    result = console.run(f"grep -H '' {upload}/error")
    assert (result.code, result.err) == (2, f"grep: {upload}/error: Device or resource busy\n")
    result = console.run(f"echo 1 > {upload}/cancel")
    assert (result.code, result.err) == (1, "bash: line 1: echo: write error: Device or resource busy\n")
    sensors = console.run("fpgainfo bmc").out
    assert "( 1) Board Power                  : N/A\n" in sensors
    console.card.release()
    update.end()
    result = console.run(f"echo 1 > {upload}/cancel")
    assert result.err == "bash: line 1: echo: write error: No such device\n"
