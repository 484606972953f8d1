"""Raw calls of hosts attacked: what runs without a permit writes nothing, runs nothing else, opens no device.

What a program may do is said here once more, by its manual, and not taken from what is declared read-only.
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safety.quota import Tries
from support.hostile import OPTIONS, PROGRAMS, TEXTS, VERBS, Pretender

from harness.errors import ConfigurationError, HarnessError, RefusedError
from harness.hosts.commands import READ_ONLY, read_only_line
from harness.hosts.local import LocalHost
from harness.hosts.permits import Authority
from harness.hosts.protocol import Asked
from harness.hosts.sources import image_bytes, opened

#: Program -> the options with which it writes, acts, runs something or asks elsewhere; by its manual.
ACTING_OPTIONS = {
    "find": r"-delete|-exec(dir)?|-ok(dir)?|-f(ls|print0?|printf)|-files0-from",
    "curl": r"(?!-[sSf]+$).*",
    "dmesg": r"-\w*[cCDEn]\w*|--(clear|read-clear|console.*)",
    "date": r"-\w*s\w*|--set.*",
    "hostname": r".*",
    "journalctl": r"--(vacuum|rotate|flush|sync|relinquish|smart|setup|update|cursor-file|root|image).*",
    "lspci": r"-\w*[HMGAOFiqQ]\w*|-\w*x\w*x\w*|-\w*v\w*v\w*",
    "fpgainfo": r"-c|--clear|-f|--force",
    "ls": r"--hyperlink.*",
    "docker": r"(?!--format$).*",
    "ctr": r"(?!--connect-timeout=2s$|-n=k8s\.io$|-q$|-nq$|-qn$).*",
    "systemctl": r"-\w*[Hfn]\w*|--(host|machine|force|now|root).*",
    "system": r"--os-(?!region-name$).*",
}
#: Program -> what its words must be, one after the other, for it to read only; the others take any word.
READING_WORDS = {
    "systemctl": r"(is-active|is-enabled|is-failed|status|show|list-units|cat)( [^-].*)?",
    "docker": r"images",
    "ctr": r"(images|containers?) list.*",
    "curl": r"http://controller(:\d+)?/device_images/[^/ ?#]+",
    "system": r"(device-image-(list|show|state-list)|device-label-list|host-(list|show)"
    r"|host-device-(list|show|label-list)).*",
    "fm": r"alarm-list",
    "dcmanager": r"(fw-update-strategy|strategy-step|subcloud) (list|show).*",
    "sw-manager": r"fw-update-strategy show",
    "date": r"(\+.*)?",
    "hostname": r"",
    "fpgasupdate": r"",
    "fpgainfo": r"((fme|bmc|phy|security|temp|power|port|mac|errors)( .*)?)?",
    "journalctl": r"",
    "true": r"",
    "uptime": r"",
    "dmesg": r"",
    "lspci": r"",
    "id": r"",
    "uname": r"",
}
#: Options that take the next word; both are the same to who reads them as a line.
VALUED = {"-c", "-n", "-maxdepth", "-name", "-type", "-printf", "-d", "-s", "-p", "-u", "-o", "--format",
          "--os-region-name"}  # fmt: skip
_UNQUOTED = re.compile(r"[;&|<>()$`\\\"\n#~{}!^]")
OPENING = ("cat", "head", "grep", "sha256sum")


def parts_of(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options and words of a command line that was let pass."""
    options, words, ended = [], [], False
    pending = iter(argv[1:])
    for word in pending:
        if not ended and word == "--":
            ended = True
        elif not ended and word.startswith("-") and word != "-":
            options.append(word)
            if word in VALUED and word in READ_ONLY[posixpath.basename(argv[0])].valued:
                next(pending, None)
        else:
            words.append(word)
    return options, words


def acts(argv: Sequence[str]) -> str:
    """What is wrong with a command line that was let pass; empty for nothing."""
    name = posixpath.basename(argv[0])
    folders = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")
    if argv[0] != name and posixpath.dirname(argv[0]) not in folders:
        return "a program of somebody's own"
    options, words = parts_of(argv)
    bad = [option for option in options if re.fullmatch(ACTING_OPTIONS.get(name, "(?!)"), option)]
    repeated = "".join(option for option in options if not option.startswith("--"))
    if name == "lspci" and (repeated.count("x") > 1 or repeated.count("v") > 1):
        bad.append("-xxx")
    if bad:
        return f"options {bad}"
    if name in READING_WORDS and not re.fullmatch(READING_WORDS[name], " ".join(words)):
        return f"words {words}"
    return ""


def unquoted(line: str) -> str:
    """What of a line the shell reads as more than words: quoted parts are taken out."""
    line = re.sub(r"^source /etc/platform/openrc >&2; ", "", line)
    return re.sub(r"'[^']*'|\"'\"", "", line)


def command(rng: Random) -> list[Any]:
    name = rng.choice((*READ_ONLY, *READ_ONLY, *READ_ONLY, *PROGRAMS))
    if rng.random() < 0.1:
        name = rng.choice(("/usr/bin/", "/tmp/", "./", "/usr/local/bin/", "/usr/bin/../../tmp/")) + name
    declared = READ_ONLY.get(name)
    own = [*declared.flags, *declared.valued] if declared else []
    words: list[Any] = [name]
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
        kind = rng.random()
        if kind < 0.3 and own:
            words.append(rng.choice(own))
        elif kind < 0.5:
            words.append(rng.choice(OPTIONS))
        elif kind < 0.7:
            words.append(rng.choice(VERBS))
        elif kind < 0.8:
            words.append(
                rng.choice(("/sys/class/net/eth0/address", "/proc/uptime", "7", "short", "hostw.service"))
            )
        else:
            words.append(rng.choice(TEXTS))
    return words


@pytest.mark.parametrize("part", range(2))
def test_nothing_that_acts_runs_without_a_permit(part: int, tmp_path: Path) -> None:
    rng = Random(f"commands {part}")
    passed, through = 0, []
    opens: set[str] = set()
    with Tries("commands without a permit", parts=2) as tries:
        for _ in tries:
            argv = command(rng)
            try:
                line = read_only_line(argv)
            except RefusedError:
                continue
            passed += 1
            if why := acts(argv) or (_UNQUOTED.search(unquoted(line)) and "syntax of the shell"):
                through.append((argv, line, why))
            if posixpath.basename(argv[0]) in OPENING:
                opens |= {word for word in line.split(" ") if word.startswith("/") and set(word) & set("*?[")}
    assert through == []
    assert passed > tries.made // 50, "an attack in which nothing passes shows nothing"
    assert_no_glob_leads_to_a_device(opens, tmp_path)


#: Where nothing that is opened without a permit may lead, relative to the root.
OUT_OF_BOUNDS = (
    "dev/watchdog",
    "proc/1/root/x",
    "proc/kmsg",
    "proc/bus/pci/b2",
    "sys/kernel/debug/x",
    "sys/bus/pci/devices/0000:b2:00.0/resource0",
    "sys/bus/pci/devices/0000:b2:00.0/rom",
)


def assert_no_glob_leads_to_a_device(globs: set[str], folder: Path) -> None:
    """Have real shells expand them, over a tree that stands for the root of a machine."""
    for name in OUT_OF_BOUNDS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    script = "".join(f"printf '%s\\n' .{glob}\n" for glob in sorted(globs))
    for shell in ("dash", "bash"):
        found = subprocess.run([shell, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
        assert not {f"./{name}" for name in OUT_OF_BOUNDS} & set(found.stdout.splitlines())


@pytest.mark.parametrize("glob", [text for text in TEXTS if text.startswith("/") and set(text) & set("*?[")])
@pytest.mark.parametrize("program", OPENING)
def test_each_known_way_to_a_device_is_refused(program: str, glob: str, tmp_path: Path) -> None:
    argv = [program, *([""] if program == "grep" else []), glob]
    try:
        line = read_only_line(argv)
    except RefusedError:
        return
    assert_no_glob_leads_to_a_device({word for word in line.split(" ") if word.startswith("/")}, tmp_path)


@given(st.lists(st.sampled_from([*OPTIONS, *TEXTS, *VERBS]), max_size=6), st.sampled_from(sorted(READ_ONLY)))
def test_whatever_hypothesis_finds(words: list[str], program: str) -> None:
    try:
        line = read_only_line([program, *words])
    except RefusedError:
        return
    assert not acts([program, *words])
    assert not _UNQUOTED.search(unquoted(line))


def test_words_that_pretend_are_none() -> None:
    """A type of its own may answer as it likes to whoever asks it what it is."""
    rng = Random("pretending")
    with Tries("pretending words without a permit") as tries:
        for _ in tries:
            real, looks = rng.choice((*PROGRAMS, *OPTIONS, *TEXTS)), rng.choice(sorted(READ_ONLY))
            argv: list[Any] = [looks, "-a", "/proc/uptime"]
            argv[rng.randrange(3)] = rng.choice(
                [Pretender(real, looks), real.encode(errors="replace"), 7, None]
            )
            with pytest.raises(RefusedError):
                read_only_line(argv)


# -- hosts themselves ---------------------------------------------------------------------------------


@pytest.fixture
def decoys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files that must stay, and names that a shell may take for options."""
    for name in ("precious", "-delete", "-rf", "*", "a b"):
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


WRITING: list[list[Any]] = [
    ["cat", "x", ">", "made"],
    ["sh", "-c", "touch made"],
    ["find", ".", "-name", "precious", "-delete"],
    ["find", "*"],
    ["find", "./*", "-delete"],
    ["df", "--output=made"],
    ["curl", "-o", "made", "http://controller/device_images/a"],
    ["touch", "made"],
    ["cat", "precious\ntouch made"],
    ["ls", "$(touch made)"],
    ["ls", "`touch made`"],
    ["ls", "-1", ";", "touch", "made"],
    [Pretender("touch", "ls"), "made"],
    ["ls", Pretender("/; touch made", "/tmp")],
    ["date", "-s", "2031-01-01"],
]


@pytest.mark.parametrize("argv", WRITING, ids=lambda argv: " ".join(map(str.__str__, argv))[:40])
def test_no_raw_call_changes_anything(argv: list[Any], decoys: Path) -> None:
    before = {path.name: path.read_text() for path in decoys.iterdir()}
    told: list[str] = []
    host = LocalHost("bench", refused=lambda asked, error: told.append(asked))
    for call in (lambda: host.run(argv), lambda: host.run_all([Asked(argv)])):
        try:
            call()
        except RefusedError:
            assert told, "a refusal of which nobody is told"
    assert {path.name: path.read_text() for path in decoys.iterdir()} == before


def test_a_call_that_reads_and_looks_like_an_option_changes_nothing(decoys: Path) -> None:
    """A name that begins with a dash is not expanded to by a relative pattern."""
    LocalHost("bench").run(["ls", "*"])
    result = LocalHost("bench").run(["find", "*"])
    assert result.exit_code == 0 and (decoys / "precious").exists() and result.stdout == "*\n"


@pytest.mark.parametrize("ask", ["read", "list", "readlink", "fetch"])
@given(text=st.sampled_from(TEXTS))
def test_paths_are_paths(ask: str, text: str) -> None:
    from contextlib import suppress

    with suppress(HarnessError, OSError, ValueError):
        getattr(LocalHost("bench"), ask)(text, **({"deadline": 1.0} if ask == "fetch" else {}))


def test_a_refusal_is_told_whatever_was_asked() -> None:
    told: list[tuple[str, str]] = []
    host = LocalHost("bench", refused=lambda asked, error: told.append((asked, error.kind.value)))
    permit = Authority("cards").command("signal", "bench", ("kill", "-TERM", "4711"), "test")
    for call in (
        lambda: host.run(["rm", "-rf", "/x"]),
        lambda: host.run(argv=["rm"]),
        lambda: host.run_all([Asked(["rm"])]),
        lambda: host.read("/dev/watchdog"),
        lambda: host.run(["kill", "-KILL", "1"], permit=permit),
        lambda: host.put(b"x", "/etc/passwd", permit=permit),
    ):
        with pytest.raises(RefusedError):
            call()
    assert [kind for _, kind in told] == ["refused"] * 6
    assert told[0][0] == "run rm -rf /x" and told[3][0] == "read /dev/watchdog"


# -- files --------------------------------------------------------------------------------------------


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    """A pipe would never end, a device can act, a file of a terabyte is no image."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with (tmp_path / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
    for name in ("pipe", "link", "zero", "sparse", "missing", "."):
        with pytest.raises(ConfigurationError):
            image_bytes(tmp_path / name)
    for name in ("pipe", "link", "zero", "missing", "."):
        with pytest.raises(ConfigurationError), opened(tmp_path / name):
            pass


def test_a_file_that_changes_between_the_look_and_the_write_is_not_there_afterwards(tmp_path: Path) -> None:
    source, target = tmp_path / "image", tmp_path / "target"
    source.write_bytes(b"harmless" * 100_000)
    with opened(source) as (_, _, sha256):
        pass
    permit = Authority("cards").write("upload", "bench", str(target), sha256, "test")
    source.write_bytes(b"evil")
    with pytest.raises(RefusedError, match="does not cover these bytes"):
        LocalHost("bench").put(source, str(target), permit=permit)
    assert not target.exists()
