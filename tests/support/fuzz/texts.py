"""Text of kernel attributes and tools: the truth probe, `fpgainfo`, tool output, the kernel log, `lspci`."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from support.fuzz.engine import Target
from support.fuzz.mutate import NUMBERS, SNIPPETS, TextMutator
from support.fuzz.seeds import ADDRESS, printed_by, truth_texts

from harness.cards import values
from harness.cards.discovery import discover, find_card, parse_lspci
from harness.cards.generations import ATTRIBUTES, attributes_of
from harness.cards.kernel_log import auth_report, new_lines
from harness.cards.parsers import parse_errors, parse_fpgainfo
from harness.cards.tool_output import (
    ToolOutput,
    fpgasupdate_statement,
    rsu_statement,
    upload_statement,
    without_pid,
)
from harness.cards.truth import CardTruth, Probe
from harness.errors import InfrastructureError
from harness.hosts.protocol import CommandResult
from harness.hosts.remote_errors import os_error
from harness.judgement.values import Unknown
from harness.record.redaction import MASK, Redactor

_DIGEST = re.compile(r"|(?!f*$)(?:[0-9a-f]{64}|[0-9a-f]{96})")
_VERSION = re.compile(r"[A-Z](\.(25[0-5]|2[0-4][0-9]|1[0-9]{2}|0{0,2}[1-9]?[0-9])){3}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PHASES = "idle|read_file|reading|receiving|preparing|writing|transferring|programming"
_ERRORS = (
    "hw-error|timeout|user-abort|device-busy|invalid-file-size|read-write-error|flash-wearout"
    "|file-read-error|firmware-invalid|unknown-error"
)


def _whole(pattern: str | re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _below(limit: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and 0 <= value < limit


def _ids(value: Any) -> bool:
    return isinstance(value, frozenset) and all(type(item) is int and 0 <= item <= 127 for item in value)


#: What a legal value of each field is, by the fact sheet (n3000.md 1.2, 4.1 to 4.3) and not by the reader.
LEGAL: dict[str, Callable[[Any], bool]] = {
    "address": _whole(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"),
    "identity": _whole(r"(?!ff:ff:ff:ff:ff:ff)(?!00:00:00:00:00:00)[0-9a-f]{2}(:[0-9a-f]{2}){5}"),
    "driver": _whole(r"[A-Za-z0-9_.-]{1,64}"),
    "generation": _whole(r"[A-D]"),
    "device_id": _below(0xFFFF),
    "bitstream_id": _below((1 << 64) - 1),
    "bitstream_metadata": _below((1 << 64) - 1),
    "interface_id": lambda value: _whole(_UUID)(value) and set(value) != {"f", "-"},
    "boot_page": _whole(r"user|factory|fpga_(user|factory)[0-9]?"),
    "sr_root": _whole(_DIGEST),
    "bmc_root": _whole(_DIGEST),
    "pr_root": _whole(_DIGEST),
    "sr_cancelled": _ids,
    "bmc_cancelled": _ids,
    "pr_cancelled": _ids,
    "flash_count": _below(4096 * 8 + 1),
    "bmc_version": _whole(_VERSION),
    "bmcfw_version": _whole(_VERSION),
    "update_status": _whole(_PHASES),
    "update_error": _whole(rf"|(({_PHASES}):)?({_ERRORS})"),
    "remaining_size": _below((1 << 32) - 1),
    "hw_errinfo": _below((1 << 64) - 1),
    "boot_id": _whole(_UUID),
    "retimer_a_version": _whole(r"(?!f*\.f*$)[0-9a-f]{1,4}\.[0-9a-f]{1,4}"),
    "retimer_b_version": _whole(r"(?!f*\.f*$)[0-9a-f]{1,4}\.[0-9a-f]{1,4}"),
}


def _assert_legal(name: str, value: Any) -> None:
    if isinstance(value, Unknown):
        assert value.reason, f"{name} is unknown for no reason"
        assert len(value.reason) < 2000, f"the reason of {name} repeats what was read"
    else:
        assert LEGAL[name](value), f"{name} is {value!r:.200}, which no card shows"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_PROBE = Probe(ADDRESS)
_WORDS = (
    *("hash not programmed", "idle", "programming:hw-error", "0-127", "128", "0,0-1,,", "DRIVER=", "grep: "),
    *(": No such file or directory", ": Device or resource busy", ": binary file matches", "f" * 64),
    *("f" * 96, "0" * 64, "ff:ff:ff:ff:ff:ff", "0xffffffffffffffff", "0x44020006", "not supported", "None"),
    *(*NUMBERS, *SNIPPETS, *_PROBE.argv),
)


def check_truth(data: bytes) -> str:
    """A field is what a card can show or Unknown; text that ends too early never gives another value."""
    out, _, err = data.partition(b"\0")
    stdout, stderr = _text(out), _text(err)
    truth = _PROBE.parse(stdout, stderr)
    for name in LEGAL.keys() & set(CardTruth.__slots__):
        _assert_legal(name, getattr(truth, name))
    json.dumps({name: str(value) for name, value in truth.values().items()})
    cut = random.Random(data[:200]).randint(0, len(stdout))
    lines = stdout.split("\n")
    last = max((index for index, line in enumerate(lines) if "/uevent:" not in line and line), default=-1)
    if any("/uevent:" in line for line in lines[:last]):
        cut = len(stdout)  # no `grep` prints in this order
    for less in (_PROBE.parse(stdout[:cut], stderr), _PROBE.parse(stdout[:cut], "")):
        for name in LEGAL.keys() & set(CardTruth.__slots__):
            whole, part = getattr(truth, name), getattr(less, name)
            if not isinstance(whole, Unknown) and not isinstance(part, Unknown):
                assert part == whole, f"cut off at {cut}, {name} reads {part!r:.100} and not {whole!r:.100}"
    known = sum(not isinstance(getattr(truth, name), Unknown) for name in LEGAL if name in truth.sources)
    return f"{known} known, {'on bus' if truth.on_bus else 'gone'}"


#: Field and reader, of every driver generation and of the tools; the mark of generation C is no value.
_READERS: set[tuple[str, values.Reader]] = {
    *((a.field, a.reader) for a in ATTRIBUTES if a.field != "generation"),
    ("address", values.pci_address),
    ("boot_page", values.boot_page_text),
    ("bmc_version", values.version_text),
}


def check_values(data: bytes) -> str:
    """Each reader of one value gives a legal one or Unknown; blanks around it do not matter."""
    text = _text(data)
    found = []
    for name, reader in _READERS:
        value = reader(text)
        _assert_legal(name, value)
        if not isinstance(value, Unknown):
            found.append(name)
            assert reader(f" {text}\t") == value
            if isinstance(value, int) and not text.strip().startswith("0x"):
                assert reader(f"{value:#x}") == value
    return " ".join(sorted(found)) or "none"


@cache
def _value_seeds() -> Sequence[bytes]:
    lines = b"\n".join(truth_texts()).split(b"\n")
    return [line.rpartition(b":")[2] for line in lines] + [w.encode("utf-8", "surrogatepass") for w in _WORDS]


def check_fpgainfo(data: bytes) -> str:
    """Every field is legal or Unknown, statements are data, and no text takes long."""
    text = _text(data)
    cards = parse_fpgainfo(text)
    for card in cards:
        for name, value in card.fields.items():
            _assert_legal(name, value)
        json.dumps(card.statement(), default=str)
        assert all(0 <= sensor.number <= 9999 and sensor.name for sensor in card.sensors)
    for value in parse_errors(text).values():
        assert isinstance(value, Unknown) or 0 <= value < (1 << 64) - 1
    kinds = {type(value).__name__ for card in cards for value in card.fields.values()}
    return f"{len(cards)} cards {sum(len(card.fields) for card in cards)} {' '.join(sorted(kinds))}"


@cache
def _fpgainfo_seeds() -> Sequence[bytes]:
    topics = ("fme", "security", "bmc", "phy", "errors", "temp")
    return printed_by(*(f"fpgainfo {topic}" for topic in topics), f"fpgainfo fme {ADDRESS}")


def check_tool_output(data: bytes) -> str:
    """However the output is cut into pieces, it says the same; what it states is one of the words for it."""
    code = data[0] if data else 0
    text = _text(data[1:])
    whole, pieces = ToolOutput(), ToolOutput()
    seen = whole.feed(text)
    rng = random.Random(data[:200])
    split, at = [], 0
    while at < len(text):
        size = rng.choice((1, 7, 200, 5000, len(text)))
        split += pieces.feed(text[at : at + size])
        at += size
    assert split == seen, "the progress depends on how the output was cut"
    assert (pieces.pid, pieces.phase) == (whole.pid, whole.phase)
    assert all(step.percent is None or 0 <= step.percent <= 100 for step in seen)
    stated = []
    for statement in (
        fpgasupdate_statement(text, code if code < 128 else -1),
        rsu_statement(text, code if code < 128 else -1),
        upload_statement(values.update_error(text), text, code),
    ):
        assert statement.result in ("done", "failed", "not-sent", "interrupted")
        assert statement.result == "done" or code != 0 or statement.error
        json.dumps(statement.to_json())
        stated.append(statement.result)
    assert without_pid(without_pid(text)) == without_pid(text)
    return f"{' '.join(stated)} {whole.phase} {'pid' if whole.pid else ''}"


@cache
def _tool_seeds() -> Sequence[bytes]:
    commands = (
        f"echo hil-pid:$$; fpgasupdate -y --log-level debug /tmp/good.bin {ADDRESS}",
        f"echo hil-pid:$$; fpgasupdate -y /tmp/A.bin {ADDRESS}",
        "fpgasupdate /etc/hostname",
        f"rsu bmcimg {ADDRESS}",
        "rsu nonsense",
    )
    return [bytes([index % 2]) + text for index, text in enumerate(printed_by(*commands))]


def check_kernel_log(data: bytes) -> str:
    """New lines are an end of the later log; a code is one; a report rests on its own lines."""
    before, _, after = data.partition(b"\0")
    old, new = _text(before), _text(after)
    lines = new_lines(old, new)
    later = new.splitlines()
    assert lines == later[len(later) - len(lines) :]
    assert new_lines(new, new) == []
    assert new_lines("", new) == later
    words = []
    for devices in (frozenset[str](), {"n3000bmc-sec-update.5.auto"}):
        report = auth_report(lines, devices)
        if report is None:
            words.append("none")
            continue
        assert re.fullmatch(r"|0x[0-9a-f]{2,8}", report.auth_code)
        assert re.fullmatch(r"|0x[0-9a-f]{8}", report.doorbell)
        assert report.statement()
        words.append(f"{bool(report.auth_code)} {bool(report.doorbell)}")
    return f"{' '.join(words)} {min(len(lines), 9)}"


@cache
def _log_seeds() -> Sequence[bytes]:
    failed = f"fpgasupdate -y /tmp/A.bin {ADDRESS}; fpgasupdate -y /tmp/A.bin 0000:5e:00.0; dmesg"
    log = printed_by(failed)[0]
    lines = log.split(b"\n")
    old = (
        b"[ 0.1] intel-max10 spi2.0: RSU auth result: 8'h00000011\n[ 0.2] intel-max10: Doorbell: 8'h00020040"
    )
    return [b"\n".join(lines[:-3]) + b"\0" + log, b"\0" + log, b"[ 0.0] boot\n\0" + old]


class _Printing:
    """A host whose every command prints the same."""

    name = "bench"

    def __init__(self, out: str, code: int) -> None:
        self._out = out
        self._code = code

    def run(self, argv: Sequence[str], **options: Any) -> CommandResult:
        return CommandResult(tuple(argv), self._code, self._out, "", 0.0)


def check_lspci(data: bytes) -> str:
    """Whatever a host prints, its cards stand at addresses, and each identity is legal or Unknown."""
    text = _text(data)
    for function in parse_lspci(text):
        assert LEGAL["address"](function.address), function.address
        assert 0 <= function.vendor <= 0xFFFF
        assert 0 <= function.device <= 0xFFFF
    host: Any = _Printing(text, 0)
    cards = discover(host)
    for card in cards:
        assert LEGAL["address"](card.address)
        _assert_legal("identity", card.identity)
    try:
        place = find_card(host, "64:4c:36:00:00:00")
    except InfrastructureError:
        return f"{len(cards)} twice"
    assert place is None or LEGAL["address"](place)
    return f"{len(cards)} {place is not None}"


@cache
def _lspci_seeds() -> Sequence[bytes]:
    mac = attributes_of("identity", "D")[0].pattern
    grep = f"grep -H '' /sys/bus/pci/devices/*/{mac}"
    listed, macs = printed_by("lspci -Dnn", grep)
    return [listed, macs, listed + macs, b"b2:00.0 1200: [8086:0b30] (rev ff)\n" + macs + macs]


_SECRET = "Tr0ub4dor&3 /+="


@cache
def _redactor() -> Redactor:
    redactor = Redactor()
    redactor.register(_SECRET)
    return redactor


def check_redaction(data: bytes) -> str:
    """Masking never fails, is idempotent, leaves no registered secret, and takes linear time."""
    redactor, text = _redactor(), _text(data)
    masked = redactor.text(text)
    assert redactor.text(masked) == masked
    assert _SECRET not in masked
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return f"text {min(masked.count(MASK), 5)}"
    json.dumps(redactor.json(tree))
    return f"json {min(masked.count(MASK), 5)}"


def _secret_seeds() -> Sequence[bytes]:
    return (
        b"login: password=hunter22 token: abc\nAuthorization: Bearer abcdefgh.ijklmnop\n",
        b'{"auth": {"identity": {"password": "x\\"y"}}, "a": [{"api_key": 5}]}',
        b"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n",
        b"https://user:pw@registry.local:9001/v2/ sshpass -p secret --password hidden eyJhbGci.eyJzdWI.sig",
        _SECRET.encode() * 3,
    )


def check_remote_error(data: bytes) -> str:
    """Whatever a remote tool complains of becomes an OSError with an errno and a reason."""
    found = os_error("/sys/x", _text(data))
    assert found.errno
    assert found.strerror
    return str(found.errno)


def _hard_fpgainfo() -> Sequence[bytes]:
    """Once took seconds: a sensor's name that never ends, for a pattern that tries each place for its end."""
    return (b"( 1) a" + b" " * 100_000 + b"b", b"( 1)" + b" :" * 50_000, b"Label" + b" " * 100_000 + b": x")


def _hard_log() -> Sequence[bytes]:
    """Once took hours: a log of lines that are all alike."""
    return (b"a\n" * 100_000 + b"b\n\0" + b"a\n" * 100_001, b"\n" * 200_000 + b"\0" + b"\n" * 200_001)


def _hard_truth() -> Sequence[bytes]:
    """Names that a pattern with several stars could be cut into in very many ways."""
    place = f"/sys/bus/pci/devices/{ADDRESS}/fpga_region/region".encode()
    return (
        place + b"0/dfl-fme.0/dfl_dev.0/" + b"spi" * 100_000 + b"\n",
        b"\n" * 1_000_000,
        (place + b"\n") * 9000,
    )


def _hard_output() -> Sequence[bytes]:
    """A line of which only the end looks like an announcement."""
    return (
        b"\1" + b"x" * 5000 + b"\nhil-pid:7\n" + b"y" * 4096 + b"hil-pid:8\n",
        b"\1" + b"(50%)\r" * 100_000,
    )


def _complaints() -> Sequence[bytes]:
    return printed_by("cat /nope /root /sys/bus/pci/rescan", "ls /nope", "readlink -e /nope")


def _words() -> TextMutator:
    return TextMutator(_WORDS)


def _short_words() -> TextMutator:
    return TextMutator(_WORDS, blow_up=1 << 17)  # masking is linear, and slow


TARGETS = (
    Target("truth", truth_texts, check_truth, _words, share=4, short=150, hard=_hard_truth),
    Target("values", _value_seeds, check_values, _words, share=14),
    Target("fpgainfo", _fpgainfo_seeds, check_fpgainfo, _words, share=10, short=200, hard=_hard_fpgainfo),
    Target(
        "tool-output",
        _tool_seeds,
        check_tool_output,
        _words,
        share=10,
        short=200,
        hard=_hard_output,
        cpu_seconds=3.0,  # megabytes take half a second of a core, and a whole one of a core that is shared
    ),
    Target("kernel-log", _log_seeds, check_kernel_log, _words, share=8, short=200, hard=_hard_log),
    Target("lspci", _lspci_seeds, check_lspci, _words, share=8, short=200),
    Target("redaction", _secret_seeds, check_redaction, _short_words, share=3, short=150),
    Target("remote-errors", _complaints, check_remote_error, _words, share=3),
)
