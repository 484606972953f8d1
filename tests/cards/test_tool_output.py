"""Text of `fpgasupdate` and `rsu` -> statement and progress; texts are ours, forms are the tools'."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cards.tool_output import (
    Progress,
    Statement,
    ToolOutput,
    fpgasupdate_statement,
    rsu_statement,
    without_pid,
)

BAR = "(100%) [" + "█" * 20 + "] [4096/4096 bytes][Elapsed Time: 0:00:01.00]   "
BEGUN = (
    "[2031-02-03 04:05:06.00] [INFO    ] updating from file /tmp/x.bin with size 4096\n"
    "[2031-02-03 04:05:06.00] [INFO    ] waiting for idle\n"
    "[2031-02-03 04:05:06.00] [INFO    ] preparing image file\n"
    "[2031-02-03 04:05:08.00] [INFO    ] writing image file\n"
    f"{BAR}\r\n\n"
    "[2031-02-03 04:05:09.00] [INFO    ] programming image file\n"
    "(  9%) [█                   ][Elapsed Time: 0:00:01.00]                         \r"
    "( 19%) [███                 ][Elapsed Time: 0:00:02.00]                         \r\n"
)
OK = BEGUN + (
    "[2031-02-03 04:05:13.01] [INFO    ] update of 0000:b2:00.0 complete\n"
    "[2031-02-03 04:05:13.01] [INFO    ] Secure update OK\n"
)
IOCTL_2020 = (
    "[2020-12-07 15:01:31,413] [INFO    ] writing to staging area\n"
    "[2020-12-07 15:02:31,413] [INFO    ] applying update\n"
)
#: OPAE 1.x on the block-wise ioctls, behind a container's terminal: lines end with CR and LF.
BLOCKS = (
    "[2020-02-03 04:05:06,007] [WARNING ] Update starting. Please do not interrupt.\r\n"
    "[2020-02-03 04:05:06,008] [INFO    ] updating from file /mnt/images/x.bin with size 65600\r\n"
    "[2020-02-03 04:05:26,412] [INFO    ] writing to staging area\r\n"
    "[2020-02-03 04:05:27,413] [DEBUG   ] ( 99%) [███] [65536/65600 bytes][Time:0:00:01.001]\r\n"
    "(100%) [████████████████████] [65600/65600 bytes][Time:0:00:01.002]            \r\r\n"
    "[2020-02-03 04:05:28,414] [INFO    ] applying update\r\n"
    "( 40%) [████████            ][Time:0:00:00.500312]                             \r"
)


def old(level: str, text: str) -> str:
    return f"[2020-02-03 04:05:29,915] [{level:8}] {text}\r\n"


TOTAL = old("INFO", "Total time: 0:00:23.908112")


def error(text: str) -> str:
    return f"[2031-02-03 04:05:10.00] [ERROR   ] {text}\n"


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        (OK, 0, Statement("done", "programming")),
        ("", 0, Statement("done")),
        (BEGUN + error("programming:hw-error"), 1, Statement("failed", "programming", "hw-error")),
        (error("preparing:flash-wearout"), 1, Statement("failed", "preparing", "flash-wearout")),
        (error("transferring:user-abort"), 1, Statement("failed", "transferring", "user-abort")),
        (error("preparing:invalid-file-size"), 1, Statement("failed", "preparing", "invalid-file-size")),
        (BEGUN + error("Secure update timed out"), 110, Statement("failed", "programming", "timeout")),
        (IOCTL_2020 + error("flash_wearout"), 1, Statement("failed", "programming", "flash-wearout")),
        (
            error("Unknown file format in /tmp/x"),
            1,
            Statement("not-sent", "", "Unknown file format in /tmp/x"),
        ),
        (
            "/tmp/x does not meet the minimum file size requirement of 1152\n",
            1,
            Statement("not-sent", "", "/tmp/x does not meet the minimum file size requirement of 1152"),
        ),
        (error("No suitable PAC found."), 1, Statement("not-sent", "", "No suitable PAC found.")),
        ("Operation canceled by user.\n", 1, Statement("not-sent", "", "Operation canceled by user.")),
        (BEGUN + error("Caught SIGTERM"), 1, Statement("interrupted", "programming", "Caught SIGTERM")),
        (BEGUN + error("Interrupted"), 1, Statement("interrupted", "programming", "Interrupted")),
        (BEGUN, -1, Statement("interrupted", "programming", "ended without an exit code")),
        (
            'Traceback (most recent call last):\n  File "x", line 1, in f\n'
            "AttributeError: 'NoneType' object has no attribute 'find_one'\n",
            1,
            Statement("failed", "", "AttributeError: 'NoneType' object has no attribute 'find_one'"),
        ),
        ("", 1, Statement("failed", "", "exit code 1 without a word")),
        (BLOCKS + old("INFO", "Secure update OK") + TOTAL, 0, Statement("done", "programming")),
        # Of an ioctl the tool says the system's word for its error, and ends with its number.
        (
            BLOCKS + old("ERROR", "Input/output error") + TOTAL,
            5,
            Statement("failed", "programming", "Input/output error"),
        ),
        (
            BLOCKS[: BLOCKS.index("[2020-02-03 04:05:26")] + old("ERROR", "Device or resource busy") + TOTAL,
            16,
            Statement("failed", "preparing", "Device or resource busy"),
        ),
        (
            BLOCKS + old("ERROR", "Caught SIGTERM") + TOTAL,
            1,
            Statement("interrupted", "programming", "Caught SIGTERM"),
        ),
        (
            BEGUN
            + error("Secure update is delayed due to excessive flash counts.")
            + "Please wait 30 seconds and try again.\n"
            + TOTAL,
            1,
            Statement("failed", "programming", "flash-wearout"),
        ),
        (
            old("ERROR", "Failed to find secure device for PAC 0000:b2:00.0"),
            1,
            Statement("not-sent", "", "Failed to find secure device for PAC 0000:b2:00.0"),
        ),
        # The engine could not run the tool at all: the card has seen nothing, and nobody has said so.
        (
            "Unable to find image 'r/n3000-opae:v1' locally\n"
            "docker: Error response from daemon: manifest for r/n3000-opae:v1 not found: manifest unknown.\n"
            "See 'docker run --help'.\n",
            125,
            Statement(
                "failed",
                "",
                "docker: Error response from daemon: manifest for r/n3000-opae:v1 not found: "
                "manifest unknown.",
            ),
        ),
        (
            'ctr: image "r/n3000-opae:v1": not found\n',
            1,
            Statement("failed", "", 'ctr: image "r/n3000-opae:v1": not found'),
        ),
    ],
)
def test_what_fpgasupdate_states(text: str, code: int, expected: Statement) -> None:
    assert fpgasupdate_statement(text, code) == expected


def test_an_exit_code_other_than_0_is_no_success_whatever_the_text_says() -> None:
    assert fpgasupdate_statement(OK, 1).result == "failed"


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("2031-02-03 04:05:06,789 - RSU operation complete\n", 0, Statement("done")),
        ("No compatible devices found\n", 64, Statement("not-sent", "", "No compatible devices found")),
        (
            "PCIe address (0000:b3:00.0) does not identify a compatible device\n",
            69,
            Statement("not-sent", "", "PCIe address (0000:b3:00.0) does not identify a compatible device"),
        ),
        (
            "2031-02-03 04:05:06,789 - RSU operation failed: [Errno 16] Device or resource busy\n",
            74,
            Statement("failed", "", "RSU operation failed: [Errno 16] Device or resource busy"),
        ),
        (
            "Traceback (most recent call last):\nTypeError: rsu not supported by this (0x8086,0x0b30)\n",
            1,
            Statement("failed", "", "TypeError: rsu not supported by this (0x8086,0x0b30)"),
        ),
        ("", -1, Statement("interrupted", "", "ended without an exit code")),
        (
            "2020-02-03 04:05:06,789 - [[pci_address(0000:b2:00.0), pci_id(0x8086, 0x0b30)]] performing RSU "
            "operation\r\n2020-02-03 04:05:16,789 - RSU operation complete\r\n",
            0,
            Statement("done"),
        ),
        (
            "2020-02-03 04:05:06,789 - RSU operation failed\r\n",
            74,
            Statement("failed", "", "RSU operation failed"),
        ),
        (
            'ctr: image "r/n3000-opae:v1": not found\n',
            1,
            Statement("failed", "", 'ctr: image "r/n3000-opae:v1": not found'),
        ),
    ],
)
def test_what_rsu_states(text: str, code: int, expected: Statement) -> None:
    assert rsu_statement(text, code) == expected


def phases(output: str, cuts: list[int], *, by_blocks: bool = False) -> list[tuple[str, int | None]]:
    follow = ToolOutput(by_blocks=by_blocks)
    found: list[Progress] = []
    begin = 0
    for cut in sorted({min(cut, len(output)) for cut in cuts} | {len(output)}):
        found += follow.feed(output[begin:cut])
        begin = cut
    return [(progress.phase, progress.percent) for progress in found]


@given(st.lists(st.integers(0, len(OK)), max_size=8))
def test_progress_is_the_same_however_the_output_is_cut(cuts: list[int]) -> None:
    assert phases(OK, cuts) == [
        ("waiting", None),
        ("preparing", None),
        ("transferring", None),
        ("transferring", 100),
        ("programming", None),
        ("programming", 9),
        ("programming", 19),
    ]


def test_phases_of_the_older_interface_and_more_than_100_percent() -> None:
    assert phases(IOCTL_2020 + "(104%) [x]\n", []) == [
        ("transferring", None),
        ("programming", None),
        ("programming", 100),
    ]


@given(st.lists(st.integers(0, len(BLOCKS)), max_size=8))
def test_progress_by_blocks_behind_a_terminal(cuts: list[int]) -> None:
    """The tool that erases by itself says so by nothing but that it begins."""
    sent = [
        ("transferring", None),
        ("transferring", 99),
        ("transferring", 100),
        ("programming", None),
        ("programming", 40),
    ]
    assert phases(BLOCKS, cuts, by_blocks=True) == [("preparing", None), *sent]
    assert phases(BLOCKS, cuts) == sent


def test_the_process_id_is_taken_once_and_does_not_become_evidence() -> None:
    follow = ToolOutput()
    follow.feed("hil-pid:42")
    assert follow.pid is None
    follow.feed("17\nhil-pid:1\n")
    assert follow.pid == 4217
    assert without_pid("hil-pid:4217\nrest\n") == "rest\n"


@given(st.text(max_size=300), st.integers(-1, 255))
def test_any_text_gives_a_statement(text: str, code: int) -> None:
    follow = ToolOutput()
    follow.feed(text)
    for statement in (fpgasupdate_statement(text, code), rsu_statement(text, code)):
        assert (statement.result == "done") == (code == 0)


def test_the_end_of_a_line_that_is_too_long_is_no_line() -> None:
    """Else the end of an endless line could name the process that a signal is sent to."""
    follow = ToolOutput()
    for piece in ("x" * 5000, "y" * 4087, "hil-pid:8\n", "preparing image file\n"):
        follow.feed(piece)
    assert follow.pid is None
    assert follow.phase == "preparing"
