"""What the OPAE tools say and how they end in each age of tools and on each driver generation.

Texts are those of the tools' sources and of formats.md; the arithmetic beside them is the test's own.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.emulator.card import CardState
from harness.images.recipes import build, load_recipes

RECIPES = load_recipes((Path(__file__).resolve().parents[2] / "fixtures/images.yaml").read_text())
#: 300,032 bytes in all, like the big image of the other tests.
BIG = build(replace(RECIPES["unsigned"], size=299_008))
#: Programming takes 3.5 s in all: 0.5 for the signature, 3 for the copy.
BRISK = {
    "prepare_seconds": 2.0,
    "transfer_rate": 400_000.0,
    "authentication_seconds": 0.5,
    "copy_rate": 100_000.0,
}
DOCKER = "docker run --privileged registry.local:9001/docker.io/starlingx/n3000-opae:stx.4.0-v1.0.0"
BARS = "█" * 20


@pytest.fixture
def console_of(new_host: Any, console_for: Any) -> Callable[..., Any]:
    """Makes a console of a host of a generation and era, with one card."""

    def make(generation: str, era: str = "host", state: CardState | None = None, **profile: Any) -> Any:
        host = new_host("0000:b2:00.0", state=state, generation=generation, era=era, **profile)
        return console_for(host)

    return make


def padded(text: str) -> str:
    return f"{text:80}\n"


def test_update_by_blocks_in_the_words_of_its_age(console_of: Callable[..., Any]) -> None:
    console = console_of("A", "docker", **BRISK)
    result = console.run(f"{DOCKER} fpgasupdate -y {console.put('user.bin', BIG)} b2:00.0")
    # Blocks of 64 KiB at 400,000 B/s: 0.16384 s each; the last has 37,888 bytes. The tool reckons with
    # 41,000 B/s for what follows, 7.32 s, and looks twice a second.
    assert result.out == (
        "[2026-11-30 09:00:00,000] [WARNING ] Update starting. Please do not interrupt.\n"
        "[2026-11-30 09:00:00,000] [INFO    ] updating from file /tmp/user.bin with size 300032\n"
        "[2026-11-30 09:00:02,000] [INFO    ] writing to staging area\n"
        + padded("( 21%) [████                ] [65536/300032 bytes][Time:0:00:00.163840]")
        + padded("( 43%) [████████            ] [131072/300032 bytes][Time:0:00:00.327680]")
        + padded("( 65%) [█████████████       ] [196608/300032 bytes][Time:0:00:00.491520]")
        + padded("( 87%) [█████████████████   ] [262144/300032 bytes][Time:0:00:00.655360]")
        + padded(f"(100%) [{BARS}] [300032/300032 bytes][Time:0:00:00.750080]")
        + "\n[2026-11-30 09:00:02,750] [INFO    ] applying update\n"
        + padded("(  6%) [█                   ][Time:0:00:00.500000]")
        + padded("( 13%) [██                  ][Time:0:00:01]")
        + padded("( 20%) [████                ][Time:0:00:01.500000]")
        + padded("( 27%) [█████               ][Time:0:00:02]")
        + padded("( 34%) [██████              ][Time:0:00:02.500000]")
        + padded("( 40%) [████████            ][Time:0:00:03]")
        + padded(f"(100%) [{BARS}][Time:0:00:03.500000]")
        + "\n[2026-11-30 09:00:06,250] [INFO    ] Secure update OK\n"
        "[2026-11-30 09:00:06,250] [INFO    ] Total time: 0:00:06.250080\n"
    )
    assert (result.code, result.err) == (0, "")
    assert console.card.state.user_page == BIG[1024:]


def steps(out: str) -> list[str]:
    """The messages without their times and without progress bars."""
    return [line.partition("] [")[2] for line in out.splitlines() if line.startswith("[20")]


@pytest.mark.parametrize("generation", ["B", "C", "D"])
def test_update_by_a_worker_of_the_kernel_has_the_same_steps(
    console_of: Callable[..., Any], generation: str
) -> None:
    console = console_of(generation, **BRISK)
    result = console.run(f"fpgasupdate -y {console.put('user.bin', BIG)} b2:00.0")
    assert steps(result.out) == [
        "WARNING ] Update starting. Please do not interrupt.",
        "INFO    ] updating from file /tmp/user.bin with size 300032",
        "INFO    ] waiting for idle",
        "INFO    ] preparing image file",
        "INFO    ] writing image file",
        "INFO    ] programming image file",
        "INFO    ] update of 0000:b2:00.0 complete",
        "INFO    ] Secure update OK",
        "INFO    ] Total time: 0:00:07.00",
    ]
    assert console.card.state.user_page == BIG[1024:]


@pytest.mark.parametrize(
    ("generation", "error", "code"),
    [
        ("A", "Input/output error", 5),
        ("B", "programming:hw-error", 1),
        ("C", "hw_error", 1),
        ("D", "programming:hw-error", 1),
    ],
)
def test_refused_image_in_the_words_of_each_driver(
    console_of: Callable[..., Any], recipe_root: Any, generation: str, error: str, code: int
) -> None:
    console = console_of(generation, state=CardState(sr_root=recipe_root("A/csk0")), **BRISK)
    result = console.run(f"fpgasupdate -y {console.put('user.bin', BIG)} b2:00.0")
    assert (result.code, steps(result.out)[-2]) == (code, f"ERROR   ] {error}")
    assert console.card.state.user_page is None
    assert "RSU auth result: " in console.run("dmesg").out


@pytest.mark.parametrize(
    ("generation", "error", "code"),
    [
        ("A", "ERROR   ] Device or resource busy", 16),
        ("B", "ERROR   ] preparing:flash-wearout", 1),
        ("C", "ERROR   ] Secure update is delayed due to excessive flash counts.", 1),
        ("D", "ERROR   ] preparing:flash-wearout", 1),
    ],
)
def test_worn_flash_in_the_words_of_each_driver(
    console_of: Callable[..., Any], generation: str, error: str, code: int
) -> None:
    console = console_of(generation, state=CardState(flash_count=1500), **BRISK)
    result = console.run(f"fpgasupdate -y {console.put('user.bin', BIG)} b2:00.0")
    assert (result.code, steps(result.out)[-2]) == (code, error)
    assert ("\nPlease wait 30 seconds and try again.\n" in result.out) == (generation == "C")


# -- signals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generation", ["A", "B", "C", "D"])
def test_sigterm_while_the_card_programs_is_a_failure_and_the_flash_is_new(
    console_of: Callable[..., Any], recipe_image: Any, running: Any, generation: str
) -> None:
    console = console_of(generation)
    image = recipe_image("unsigned")
    update = running(console, console.put("user.bin", image), "copying")
    console.run(f"kill -TERM {update.pid}")
    console.card.release()
    result = update.end()
    assert (result.code, steps(result.out)[-2]) == (1, "ERROR   ] Caught SIGTERM")
    console.run("sleep 60")
    assert console.card.state.user_page == image[1024:]


def test_ctrl_c_while_blocks_are_sent_cancels(
    console_of: Callable[..., Any], recipe_image: Any, running: Any
) -> None:
    console = console_of("A")
    update = running(console, console.put("user.bin", recipe_image("unsigned")), "transferring")
    console.run(f"kill -INT {update.pid}")
    console.card.release()
    result = update.end()
    assert (result.code, steps(result.out)[-2]) == (1, "ERROR   ] Interrupted")
    console.run("sleep 60")
    assert console.card.state.user_page is None


def test_ctrl_c_while_it_programs_is_told_and_ignored_on_generation_c(
    console_of: Callable[..., Any], recipe_image: Any, running: Any
) -> None:
    console = console_of("C")
    image = recipe_image("unsigned")
    update = running(console, console.put("user.bin", image), "copying")
    console.run(f"kill -INT {update.pid}")
    console.card.release()
    result = update.end()
    ignored = "[WARNING ] Ignoring Ctrl+C: programming phase is not interruptable\n"
    assert (result.code, ignored in result.out) == (0, True)
    assert console.card.state.user_page == image[1024:]


@pytest.mark.parametrize(("generation", "lands"), [("A", False), ("B", True), ("C", False), ("D", True)])
def test_a_killed_tool_leaves_the_card_to_what_its_driver_makes_of_it(
    console_of: Callable[..., Any], recipe_image: Any, running: Any, generation: str, lands: bool
) -> None:
    """An update by attributes goes on by itself; an ioctl device that is closed cancels what can be."""
    console = console_of(generation)
    image = recipe_image("unsigned")
    update = running(console, console.put("user.bin", image), "transferring")
    console.run(f"kill -KILL {update.pid}")
    console.card.release()
    assert update.end().code == -9
    console.run("sleep 60")
    assert (console.card.state.user_page == image[1024:]) is lands


@pytest.mark.parametrize("generation", ["A", "C"])
def test_a_second_updater_is_turned_away_by_the_device(
    console_of: Callable[..., Any], recipe_image: Any, running: Any, generation: str
) -> None:
    console = console_of(generation)
    path = console.put("user.bin", recipe_image("unsigned"))
    update = running(console, path, "copying")
    second = console.run(f"fpgasupdate -y {path} b2:00.0")
    assert (second.code, "Resource temporarily unavailable" in second.err) == (1, True)
    console.card.release()
    assert update.end().code == 0
    assert console.card.state.flash_count == 1


def test_the_file_for_the_kernels_loader_comes_and_goes(
    console_of: Callable[..., Any], recipe_image: Any, running: Any
) -> None:
    console = console_of("B")
    update = running(console, console.put("user.bin", recipe_image("unsigned")), "preparing")
    assert console.run("ls /usr/lib/firmware/intel | wc -l").out == "1\n"
    console.card.release()
    assert update.end().code == 0
    assert console.run("ls /usr/lib/firmware/intel").out == ""


@pytest.mark.parametrize(("signal", "left"), [("INT", "0\n"), ("TERM", "1\n"), ("KILL", "1\n")])
def test_what_a_stopped_tool_leaves_for_the_loader(
    console_of: Callable[..., Any], recipe_image: Any, running: Any, signal: str, left: str
) -> None:
    console = console_of("B")
    update = running(console, console.put("user.bin", recipe_image("unsigned")), "preparing")
    console.run(f"kill -{signal} {update.pid}")
    update.end()
    console.card.release()
    assert console.run("ls /usr/lib/firmware/intel | wc -l").out == left


# -- fpgainfo -----------------------------------------------------------------------------------------


def test_fpgainfo_of_the_vendors_packages(console_of: Callable[..., Any]) -> None:
    """No colon after ``version``, lower-case ids, ``Numa Node``, labels of 29, the BMC's own numbers."""
    result = console_of("A", "docker").run(f"{DOCKER} fpgainfo bmc")
    lines = result.out.splitlines()
    assert lines[:11] == [
        "Board Management Controller, MAX10 NIOS FW version D.2.0.21",
        "Board Management Controller, MAX10 Build version D.2.0.6",
        "//****** BMC SENSORS ******//",
        "Object Id                     : 0xEF00000",
        "PCIe s:b:d.f                  : 0000:b2:00.0",
        "Device Id                     : 0x0b30",
        "Numa Node                     : 0",
        "Ports Num                     : 01",
        "Bitstream Id                  : 0x23001410010310",
        "Bitstream Version             : 0.2.3",
        "Pr Interface Id               : a5d72a3c-c8b0-4939-912c-f715e5dc10ca",
    ]
    numbers = ["( 1)", "( 2)", "( 3)", "( 4)", "( 6)", "(12)", "(13)"]
    assert [line[:4] for line in lines[11:]] == numbers
    assert "(12) FPGA Core Temperature    : " in result.out


def test_fpgainfo_of_the_host_packages_on_an_older_driver(console_of: Callable[..., Any]) -> None:
    """The later tool shows an out-of-tree driver's card without ``Interface``, and hashes with 0x."""
    lines = console_of("A", state=CardState(sr_root="ab" * 32)).run("fpgainfo security").out.splitlines()
    assert "Object Id                        : 0xEF00000" in lines
    assert not any(line.startswith("Interface") for line in lines)
    assert f"FIM root entry hash: 0x{'ab' * 32}" in lines


@pytest.mark.parametrize("generation", ["A", "B", "C", "D"])
def test_fpgainfo_says_the_same_of_one_card_on_every_generation(
    console_of: Callable[..., Any], generation: str
) -> None:
    state = CardState(sr_root="ab" * 32, sr_cancelled=frozenset({0, 1, 2, 5}), flash_count=9)
    out = console_of(generation, state=state).run("fpgainfo security; fpgainfo fme").out
    for line in (
        "FIM CSK IDs canceled: 0-2,5",
        "User flash update counter: 9",
        "Bitstream Id                     : 0x23001410010310",
        "Pr Interface Id                  : a5d72a3c-c8b0-4939-912c-f715e5dc10ca",
        "Boot Page                        : factory",
        "Board Management Controller, MAX10 NIOS FW version: D.2.0.21 ",
    ):
        assert f"\n{line}\n" in out


# -- rsu ----------------------------------------------------------------------------------------------


def test_rsu_of_the_vendors_packages_tells_its_steps(console_of: Callable[..., Any]) -> None:
    result = console_of("A", "docker").run(f"{DOCKER} rsu bmcimg 0000:b2:00.0")
    assert (result.code, result.out) == (0, "")
    assert result.err == (
        "2026-11-30 09:00:00,000 - [[pci_address(0000:b2:00.0), pci_id(0x8086, 0x0b30)]] "
        "performing RSU operation\n"
        "2026-11-30 09:00:00,000 - [[pci_address(0000:ae:00.0), pci_id(0x8086, 0x2030)]] "
        "removing device from PCIe bus\n"
        "2026-11-30 09:00:00,000 - waiting 10 seconds for boot\n"
        "2026-11-30 09:00:10,000 - rescanning PCIe bus: /sys/devices/pci0000:ae/pci_bus/0000:ae\n"
        "2026-11-30 09:00:10,000 - RSU operation complete\n"
    )


def test_rsu_of_the_vendors_packages_ends_well_for_a_card_that_is_not_there(
    console_of: Callable[..., Any],
) -> None:
    result = console_of("A", "docker").run(f"{DOCKER} rsu bmcimg 0000:b9:00.0")
    assert result.code == 0
    assert "(0000:b9:00.0) is invalid or does not identify acompatible device\n" in result.err
