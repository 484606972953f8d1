"""Each defect of tools and driver, shown by what the tools print, and the same host without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.emulator.card import CardProfile, CardSpec, CardState
from harness.emulator.host import EmulatedHost
from harness.emulator.tool_defects import TOOL_DEFECTS, checked
from harness.errors import ConfigurationError
from harness.lab.defect_table import TABLE

ADDRESS = "0000:b2:00.0"
Shows = Callable[[Any, Any], bool]
SHOWS: dict[str, Shows] = {}


def shows(name: str) -> Callable[[Shows], Shows]:
    """Note the function below as what shows the defect ``name``: given a keyed card, and images."""

    def note(seen: Shows) -> Shows:
        SHOWS[name] = seen
        return seen

    return note


@pytest.fixture
def keyed(clock: Any, console_for: Any, recipe_root: Any) -> Callable[..., Any]:
    """Returns a console on a host whose card has root A and CSK 1 cancelled."""

    def make(*defects: str, generation: str = "D") -> Any:
        host = EmulatedHost("bench", clock, generation=generation, defects=frozenset(defects))
        state = CardState(sr_root=recipe_root("root-key-A"), sr_cancelled=frozenset({1}))
        host.add_card(CardSpec("card0", "64:4c:36:00:00:00", (ADDRESS,)), state, CardProfile())
        host.power_on()
        return console_for(host)

    return make


def update(console: Any, data: bytes) -> Any:
    return console.run(f"fpgasupdate -y {console.put('image.bin', data)} {ADDRESS}")


def security(console: Any) -> str:
    return console.run(f"fpgainfo security {ADDRESS}").out


@shows("fpgasupdate-ignores-error")
def _(console: Any, image: Any) -> bool:
    result = update(console, image("unsigned"))
    return (result.code, "Secure update OK" in result.out) == (0, True)


@shows("fpgasupdate-exits-0")
def _(console: Any, image: Any) -> bool:
    result = update(console, image("unsigned"))
    assert "Secure update OK" not in result.out
    assert "[ERROR   ]" in result.out
    return result.code == 0


@shows("fpgasupdate-misses-phase")
def _(console: Any, image: Any) -> bool:
    result = update(console, image("A/csk0"))
    assert console.card.state.user_page == image("A/csk0")[1024:]
    return (result.code, "Secure update timed out" in result.out) == (110, True)


@shows("fpgasupdate-refuses-board")
def _(console: Any, image: Any) -> bool:
    result = update(console, image("A/csk0"))
    return (result.code, console.card.flash_count) == (1, 0)


@shows("rsu-resets-nothing")
def _(console: Any, image: Any) -> bool:
    update(console, image("A/csk0"))
    before = console.card.bitstream_id
    result = console.run(f"rsu bmcimg {ADDRESS}")
    assert (result.code, "RSU operation complete" in result.err) == (0, True)
    return console.card.bitstream_id == before


@shows("rsu-fails-after-reset")
def _(console: Any, image: Any) -> bool:
    update(console, image("A/csk0"))
    before = console.card.bitstream_id
    result = console.run(f"rsu bmcimg {ADDRESS}")
    assert console.card.bitstream_id != before
    return result.code == 1


@shows("fpgainfo-none-for-unread")
def _(console: Any, image: Any) -> bool:
    assert console.card.cancelled("SR") == {1}
    return "FIM CSK IDs canceled: None\n" in security(console)


@shows("fpgainfo-count-of-before")
def _(console: Any, image: Any) -> bool:
    assert "User flash update counter: 0\n" in security(console)
    update(console, image("A/csk0"))
    assert console.card.flash_count == 1
    return "User flash update counter: 0\n" in security(console)


@shows("fpgainfo-root-of-bmc")
def _(console: Any, image: Any) -> bool:
    return f"FIM root entry hash: {console.card.root_entry_hash('SR')}\n" not in security(console)


@shows("fpgainfo-boot-page-inverted")
def _(console: Any, image: Any) -> bool:
    assert console.card.running_page == "factory"
    return console.run(f"fpgainfo fme {ADDRESS}").out.endswith(": user\n")


@shows("driver-starts-nothing")
def _(console: Any, image: Any) -> bool:
    result = update(console, image("A/csk0"))
    assert (result.code, "Secure update OK" in result.out) == (0, True)
    return console.card.flash_count == 0


@shows("driver-without-control")
def _(console: Any, image: Any) -> bool:
    result = console.run(f"rsu bmcimg {ADDRESS}")
    return (result.code, "rsu not supported by this (0x8086,0x0b30)" in result.err) == (1, True)


@shows("driver-forgets-error")
def _(console: Any, image: Any) -> bool:
    result = update(console, image("unsigned"))
    assert "00000011\n" in console.run("dmesg").out, "the card refuses it, and its driver's log says so"
    return result.code == 0


@shows("driver-logs-code-of-before")
def _(console: Any, image: Any) -> bool:
    update(console, image("A/csk1"))
    update(console, image("unsigned"))
    logged = [line.split()[-1] for line in console.run("dmesg").out.splitlines() if "auth result" in line]
    assert len(logged) == 2
    return logged == ["0x000000fe", "0x00000015"]


@shows("driver-hides-keys")
def _(console: Any, image: Any) -> bool:
    found = console.run("find /sys/devices -name sr_canceled_csks").out.split()
    assert len(found) == 1
    return str(console.run(f"cat {found[0]}").err).endswith("Input/output error\n")


@pytest.mark.parametrize("name", TOOL_DEFECTS)
def test_a_defect_shows_when_it_is_on_and_not_when_it_is_off(
    name: str, keyed: Any, recipe_image: Any
) -> None:
    assert SHOWS[name](keyed(name), recipe_image)
    assert not SHOWS[name](keyed(), recipe_image)


@pytest.mark.parametrize(
    ("name", "generation"),
    [(each.switch, each.generation) for each in TABLE if each.kind == "tool" and each.generation],
)
def test_it_shows_on_each_earlier_driver_generation_that_the_catalogue_names(
    name: str, generation: str, keyed: Any, recipe_image: Any
) -> None:
    assert SHOWS[name](keyed(name, generation=generation), recipe_image)
    assert not SHOWS[name](keyed(generation=generation), recipe_image)


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="rsu-resets-nothin'") as raised:
        checked(["rsu-resets-nothin"])
    assert "rsu-resets-nothing" in raised.value.hint
