"""The commands that are declared read-only: which programs, options and words may run without a permit."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import cast

from harness.errors import RefusedError

#: So that messages and numbers of remote tools do not depend on the account's language.
LOCALE = "LC_ALL=C.UTF-8"

#: Holds the login of a StarlingX controller's commands; it may print, and is read by the line that uses it.
OPENRC = "/etc/platform/openrc"

_SYSTEM_FOLDERS = frozenset({"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"})
#: From the root on: what a relative one becomes could begin with a dash, and count as an option.
_GLOB_WORD = re.compile(r"/[A-Za-z0-9_@%+=:,./*?\[\]-]*[*?\[][A-Za-z0-9_@%+=:,./*?\[\]-]*")
_ANY = re.compile(r"[^\0\n]*")
_UNSENDABLE = re.compile("[\0\ud800-\udfff]")
_BDF = re.compile(r"(?:[0-9a-fA-F]{1,4}:)?[0-9a-fA-F]{1,2}:[0-9a-fA-F]{1,2}\.[0-7]")
_NUMBER = re.compile(r"[0-9]{1,9}")
_PATH = re.compile(r"[^\0\n-][^\0\n]*")
_UNIT = re.compile(r"[A-Za-z0-9@_.:*?\[\]][A-Za-z0-9@_.:*?\[\]-]*")
_FPGAINFO_TOPIC = re.compile(r"fme|bmc|phy|security|temp|power|port|mac|errors")
_FPGAINFO_REST = re.compile(f"{_BDF.pattern}|all|fme|port")
#: An image on the file server of a StarlingX controller, which asks nobody who he is.
_STORED_IMAGE = re.compile(r"http://controller(?::[0-9]{1,5})?/device_images/[A-Za-z0-9][A-Za-z0-9._-]*")
_SYSTEMCTL_VERB = re.compile(r"is-active|is-enabled|is-failed|status|show|list-units|cat")


@dataclass(frozen=True, slots=True)
class Program:
    """What may be asked of one program without a permit.

    ``flags``: options without a value; ``-ab`` counts as ``-a -b``. ``valued``: option -> what its
    value, the next word, may be. ``leading``: what the first operands must be. ``rest``: what further
    operands may be; None: there are none. ``globs``: whether those are paths that the shell expands.
    ``opens``: whether it opens those paths, so that devices are out of bounds. ``login``: file that the shell
    sources before, for the variables that the program needs; what it prints goes to standard error.
    ``once``: those flags that mean more, and touch more, when they are repeated.
    """

    flags: frozenset[str] = frozenset()
    valued: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    leading: tuple[re.Pattern[str], ...] = ()
    rest: re.Pattern[str] | None = None
    globs: bool = False
    opens: bool = False
    login: str = ""
    once: frozenset[str] = frozenset()


def _flags(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FILES = Program(rest=_PATH, globs=True, opens=True)

#: Not here, because they change something in some of their forms: `dmesg -c`, `date -s`, `hostname NAME`,
#: `fpgainfo errors -c`, `systemctl stop`, `lspci -H1` (touches the hardware) and `-xxx` (its manual: several
#: devices crash when all of their configuration space is read), `find -delete` and `-exec`,
#: `journalctl --rotate`, `fpgasupdate` with any operand, `docker run` and `ctr run` of anything.
READ_ONLY: Mapping[str, Program] = {
    "cat": _FILES,
    "head": Program(_flags("-v -q"), {"-c": _NUMBER, "-n": _NUMBER}, rest=_PATH, globs=True, opens=True),
    "find": Program(
        _flags("-xdev"),
        {"-maxdepth": _NUMBER, "-name": _ANY, "-type": re.compile("[bcdpfls]"), "-printf": _ANY},
        rest=_PATH,
        globs=True,
    ),
    "grep": Program(_flags("-H -h -s -n -E -F -i -c -l -v -w -x"), {}, (_ANY,), _PATH, True, True),
    "ls": Program(_flags("-1 -a -A -d -l -L"), rest=_PATH, globs=True),
    "readlink": Program(_flags("-f -e -m"), rest=_PATH, globs=True),
    "stat": Program(_flags("-L"), {"-c": _ANY}, rest=_PATH, globs=True),
    "sha256sum": _FILES,
    "df": Program(_flags("-P -k"), rest=_PATH, globs=True),
    "lspci": Program(
        _flags("-D -n -m -k -v -t -x --version"),
        {
            "-d": re.compile(r"[0-9a-fA-F*]{0,4}:[0-9a-fA-F*]{0,4}(:[0-9a-fA-F]*)?"),
            "-s": re.compile(r"[0-9a-fA-F:.]+"),
        },
        once=_flags("-v -x"),
    ),
    "dmesg": Program(_flags("-T -t -x -r")),
    "fpgainfo": Program(_flags("--version"), leading=(_FPGAINFO_TOPIC,), rest=_FPGAINFO_REST),
    "fpgasupdate": Program(_flags("--version")),
    "systemctl": Program(_flags("--no-pager -q"), {"-p": _UNIT}, (_SYSTEMCTL_VERB,), _UNIT),
    "journalctl": Program(
        _flags("--no-pager -q"),
        {"-u": _UNIT, "-o": re.compile("short-iso-precise|short-iso|short|cat|json"), "-n": _NUMBER},
    ),
    "pgrep": Program(_flags("-a -f -x"), {}, (_ANY,)),
    "uname": Program(_flags("-a -r -s -n -m")),
    "hostname": Program(),
    "id": Program(_flags("-u -n")),
    "date": Program(_flags("-u"), rest=re.compile(r"\+[%A-Za-z0-9:. -]*")),
    "test": Program(_flags("-e -f -d -r -x"), rest=_PATH),
    "true": Program(),
    "uptime": Program(_flags("-s")),
    "which": Program(rest=_PATH),
    "curl": Program(_flags("-s -S -f"), leading=(_STORED_IMAGE,)),
    "docker": Program(valued={"--format": _ANY}, leading=(re.compile("images"),)),
    "ctr": Program(
        _flags("-n=k8s.io --connect-timeout=2s -q"),
        leading=(re.compile("images|containers?"), re.compile("list")),
        rest=re.compile("image==[A-Za-z0-9.:/_-]+"),
    ),
    "system": Program(
        _flags("--nowrap -a"),
        {"--os-region-name": re.compile("[A-Za-z0-9_.-]+")},
        (
            re.compile(
                "device-image-(?:list|show|state-list)|device-label-list|host-(?:list|show)"
                "|host-device-(?:list|show|label-list)"
            ),
        ),
        _PATH,
        login=OPENRC,
    ),
    "fm": Program(_flags("--nowrap --uuid"), leading=(re.compile("alarm-list"),), login=OPENRC),
    "sw-manager": Program(
        _flags("--details"),
        leading=(re.compile("fw-update-strategy"), re.compile("show")),
        login=OPENRC,
    ),
    "dcmanager": Program(
        leading=(re.compile("fw-update-strategy|strategy-step|subcloud"), re.compile("list|show")),
        rest=_PATH,
        login=OPENRC,
    ),
}


def read_only_line(
    argv: Sequence[str], tools: Mapping[str, str] | None = None, *, literal: bool = False
) -> str:
    """Return the shell line for a declared read-only command.

    Words that are paths with glob characters are left to the remote shell; every other word is quoted.

    :param tools: program name -> path of it on the host, where it is not in the host's PATH.
    :param literal: quote glob characters as well.
    :raises RefusedError: the command is not declared read-only; it needs a permit.
    """
    words = plain_words(argv)
    if not words:
        raise RefusedError("An empty command line was to be run.")
    name = _declared_name(words)
    program = READ_ONLY[name]
    rendered = [shlex.quote((tools or {}).get(words[0], words[0]))]
    operands = 0
    options = True
    pending = iter(words[1:])
    for word in pending:
        if options and word == "--":
            options = False
            rendered.append(word)
        elif options and word.startswith("-") and word != "-":
            rendered.append(shlex.quote(word))
            if word in program.valued:
                value = next(pending, None)
                if value is None or not program.valued[word].fullmatch(value):
                    raise _refusal(words, f"the value {value!r} of {word}")
                rendered.append(shlex.quote(value))
            elif not _allowed_flag(word, program.flags):
                raise _refusal(words, f"the option {word}")
        else:
            allowed = program.leading[operands] if operands < len(program.leading) else program.rest
            if allowed is None or not allowed.fullmatch(word):
                raise _refusal(words, f"the word {word!r}")
            if program.opens and operands >= len(program.leading) and _may_be_device(word):
                raise _refusal(words, f"{word!r} may be a device, and opening one can act on it")
            expanded = (
                not literal
                and program.globs
                and operands >= len(program.leading)
                and _GLOB_WORD.fullmatch(word)
            )
            rendered.append(word if expanded else shlex.quote(word))
            operands += 1
    if repeated := _repeated(words, program.once):
        raise _refusal(words, f"the option {repeated} more than once")
    versions = "--version" in program.flags and "--version" in words
    if operands < len(program.leading) and not (versions and operands == 0):
        raise _refusal(words, "a missing word")
    login = f"source {program.login} >&2; " if program.login else ""
    return f"{login}{LOCALE} {' '.join(rendered)}"


def plain_words(words: Iterable[object]) -> list[str]:
    """Return ``words`` as a list of plain texts.

    :raises RefusedError: one is none, or is of a type of its own, which may look like one word and be
        another; or holds what no command line can.
    """
    plain = list(words)
    for word in plain:
        if type(word) is not str:
            raise RefusedError(
                f"A command line is made of plain texts, and one of its words is a {type(word).__name__}; "
                "nothing was run."
            )
        if _UNSENDABLE.search(word):
            raise RefusedError(
                f"The word {word!r} of a command line has what none can hold; nothing was run."
            )
    return cast(list[str], plain)


def permitted_line(argv: Sequence[str]) -> str:
    """Return the shell line for a command that a permit covers; nothing in it is expanded.

    The account's shell makes way for a script: else it would turn an end by a signal into an exit code.
    """
    way = "exec " if argv[0] == "sh" else ""
    return f"{LOCALE} {way}{shlex.join(argv)}"


def _declared_name(words: list[str]) -> str:
    folder, name = posixpath.split(words[0])
    if name not in READ_ONLY or (folder and folder not in _SYSTEM_FOLDERS):
        raise _refusal(words, f"the program {words[0]!r}")
    return name


def _repeated(words: list[str], once: frozenset[str]) -> str:
    """Return the first option of ``once`` that is given again, alone or among others; empty for none."""
    clusters = [word[1:] for word in words[1:] if word.startswith("-") and not word.startswith("--")]
    letters = "".join(clusters) if once else ""
    return next((flag for flag in sorted(once) if letters.count(flag[1:]) > 1), "")


#: Names below /proc that lead to any other file (a process's root, folder, open files), or are a stream
#: that reading uses up, or memory, or the configuration space of a device.
_PROC_DOORS = (
    *("root", "cwd", "exe", "fd", "map_files", "task"),
    *("kmsg", "kcore", "vmcore", "mem", "pagemap", "bus"),
)
#: Files of a PCI device whose reading acts on it or moves bulk data of it, and what in /sys/kernel does.
_BARS = tuple(f"resource{number}{cached}" for number in range(16) for cached in ("", "_wc"))
_LEGACY = tuple(f"legacy_{what}{number}" for what in ("io", "mem") for number in ("", *range(4)))
TOUCHY_FILES = frozenset({*_BARS, *_LEGACY, "rom", "vpd"})
_TOUCHY_FOLDERS = ("debug", "tracing")
_BRACKETS = re.compile(r"\[.*\]")


@lru_cache(maxsize=4096)  # the same files are read again and again
def _may_be_device(path: str) -> bool:
    """Whether a path or glob could lead to what acts when it is opened, or is relative.

    That is a node below /dev (opening a watchdog arms it), a door to anywhere, or a file of a device.
    """
    if not path.startswith("/"):
        return True
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or not parts:
        return True
    if len(parts) > 1 and _may_be("dev", parts[0]):
        return True
    if _may_be("proc", parts[0]) and any(_may_be(door, part) for part in parts[1:] for door in _PROC_DOORS):
        return True
    if not _may_be("sys", parts[0]):
        return False
    kernel = len(parts) > 2 and _may_be("kernel", parts[1])
    if kernel and any(_may_be(folder, parts[2]) for folder in _TOUCHY_FOLDERS):
        return True
    return any(_may_be(name, parts[-1]) for name in TOUCHY_FILES)


def _may_be(name: str, part: str) -> bool:
    """Whether the shell may take ``part`` of a glob for ``name``.

    Its bracket expressions know classes that Python's do not: each counts as anything.
    """
    return fnmatchcase(name, _BRACKETS.sub("*", part))


def _allowed_flag(word: str, flags: frozenset[str]) -> bool:
    if word in flags:
        return True
    cluster = re.fullmatch(r"-([A-Za-z0-9]{2,})", word)
    return cluster is not None and all(f"-{letter}" in flags for letter in cluster[1])


def _refusal(words: list[str], what: str) -> RefusedError:
    return RefusedError(
        f"The command {shlex.join(words)!r} is not declared read-only ({what}) and has no permit; "
        "nothing was run.",
        hint="Reading is declared in harness/hosts/commands.py; whatever changes a host goes through "
        "the operations of harness.cards, harness.registry, harness.controlplane or harness.lab.",
    )
