"""A replayed host stands whatever its recording holds, and performs acts in the order of the recording."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.emulator.clock import LabClock
from harness.emulator.process import Buffer, Bytes
from harness.emulator.programs.base import Streams
from harness.emulator.replay import ReplayHost
from harness.recordings.model import (
    Act,
    Entry,
    Output,
    Piece,
    RecordedCard,
    Recording,
    Sample,
    State,
)

STATUS = "/sys/card/status"


def state(when: str, tree: dict[str, Entry | None], commands: dict[str, Output | None]) -> State:
    return State(when, {"card0": "0000:b2:00.0"}, tree, commands)


def recording(*states: State, acts: tuple[Act, ...] = ()) -> Recording:
    host = {"name": "node", "hostname": "controller-0", "sysfs": "/sys"}
    cards = (RecordedCard("card0", "0000:b2:00.0", None),)
    return Recording({}, host, cards, states, acts)


RESET = Act(
    "reset",
    "card0",
    ("rsu", "bmcimg", "0000:b2:00.0"),
    0,
    ended=10.0,
    settled=25.0,
    watched={"status": STATUS},
    samples=(
        Sample(0.0, 0.0, {"status": Entry("content", b"idle\n")}),
        Sample(1.0, 9.0, {"status": Entry("unreadable", text="ENOENT")}),
        Sample(12.0, 20.0, {"status": Entry("content", b"idle\n")}),
    ),
    output=(Piece(3.0, "stdout", "half\n"), Piece(10.0, "stderr", "done\n")),
)
TWO = recording(
    state(
        "as found",
        {
            "/sys/card": Entry("directory"),
            STATUS: Entry("content", b"idle\n"),
            "/sys/card/id": Entry("content", b"1\n"),
        },
        {"lspci -Dnn": Output(0, "old\n"), "uname -r": Output(0, "6.18\n")},
    ),
    state("after", {"/sys/card/id": Entry("content", b"2\n")}, {"lspci -Dnn": Output(0, "new\n")}),
    acts=(RESET,),
)


class Console:
    def __init__(self, found: Recording) -> None:
        self.clock = LabClock(start=1000.0)
        self.host = ReplayHost("node", self.clock, hostname="controller-0", recording=found)
        self.host.power_on()

    def run(self, command: str) -> tuple[int, str, str]:
        out, err = Buffer(), Buffer()
        code = self.host.run(command, Streams(Bytes(), out, err))
        return code, out.data.decode(errors="replace"), err.data.decode(errors="replace")


@pytest.fixture
def console() -> Any:
    found = Console(TWO)
    yield found
    found.clock.close()


def test_what_a_program_does_after_its_end_takes_lab_time(console: Console) -> None:
    """The card settles 15 s after the tool has ended; until then the next state is not there."""
    started = console.clock.now()
    with console.clock.actor():  # lab time stands still between the two
        assert console.run("rsu bmcimg b2:00.0") == (0, "half\n", "done\n")
        assert console.clock.now() - started == 10.0
        assert console.run(f"cat {STATUS}") == (1, "", f"cat: {STATUS}: No such file or directory\n")
        assert console.run("cat /sys/card/id")[2] == "cat: /sys/card/id: Not in the recording\n"
        assert console.run("lspci -Dnn")[0] == 127
        assert console.run("uname -r") == (0, "6.18\n", "")
        assert console.run("rsu bmcimg b2:00.0")[2].startswith(
            "sh: not in the recording: rsu bmcimg b2:00.0 ("
        )
        console.run("sleep 4")
        assert console.run(f"cat {STATUS}") == (0, "idle\n", "")
        console.run("sleep 12")
        assert console.run("cat /sys/card/id") == (0, "2\n", "")
        assert console.run("lspci -Dnn") == (0, "new\n", "")


def test_an_unknown_command_runs_in_no_way(console: Console) -> None:
    for command in ("rsu", "/usr/bin/rsu fpga b2:00.0", "env ethtool x", "exec reboot", "docker ps"):
        code, out, err = console.run(command)
        assert code == 127
        assert out == ""
        assert "not in the recording" in err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"12.50 7.25\n", "1012.50 7.25\n"),
        (b"12 7\n", "1012.00 7\n"),
        (b"\xff\n", "\ufffd\n"),
        (b"", ""),
        (b"nan nan\n", "nan nan\n"),
        (b"9" * 5000, "9" * 5000),
    ],
)
def test_the_clock_goes_on_where_it_was_one(text: bytes, shown: str) -> None:
    console = Console(recording(state("as found", {"/proc/uptime": Entry("content", text)}, {})))
    try:
        console.run("sleep 1000")
        assert console.run("cat /proc/uptime") == (0, shown, "")
    finally:
        console.clock.close()


_PARTS = st.sampled_from(
    ["sys", "tmp", "usr", "bin", "dev", "null", "proc", "uptime", "run", "lock", "a", "sh"]
)
_TOPS = st.sampled_from(["sys", "sys", "proc", "dev", "etc", "tmp", "usr"])
_PATHS = st.tuples(_TOPS, st.lists(_PARTS, max_size=3)).map(lambda path: "/".join(["", path[0], *path[1]]))
_ENTRIES = st.one_of(
    st.binary(max_size=8).map(lambda data: Entry("content", data)),
    st.sampled_from(["EBUSY", "EIO"]).map(lambda name: Entry("unreadable", text=name)),
    _PATHS.map(lambda path: Entry("link", text=path)),
    st.sampled_from(["a", "..", "../..", "/", "self"]).map(lambda path: Entry("link", text=path)),
    st.sampled_from([Entry("directory"), Entry("write-only"), Entry("absent"), Entry("left-out", text="x")]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(_PATHS, _ENTRIES, max_size=10),
    st.dictionaries(_PATHS, st.none() | _ENTRIES, max_size=6),
    _PATHS,
)
def test_no_recording_breaks_its_host(
    tree: dict[str, Entry | None], changes: dict[str, Entry | None], path: str
) -> None:
    found = recording(state("as found", tree, {}), state("after", changes, {}), acts=(RESET,))
    try:
        Recording.from_json(found.to_json())
    except ValueError:
        return  # the file would not be read
    console = Console(found)
    try:
        for _ in range(2):
            for command in (
                f"cat {path}",
                f"ls {path}",
                f"find {path}",
                "cat /proc/uptime",
                f"grep -H '' {path}/*",
            ):
                console.run(command)
            console.run("rsu bmcimg 0000:b2:00.0")
    finally:
        console.clock.close()
