"""``grep``, with the texts and exit codes of GNU grep 3.8."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.emulator import vfs
from harness.emulator.linear_regex import LinearRegex, is_risky
from harness.emulator.programs.base import Invocation, Main, ProgramExit, reason

_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "space": r"\s",
    "blank": r" \t",
    "upper": "A-Z",
    "lower": "a-z",
    "xdigit": "0-9a-fA-F",
    "punct": r"!-/:-@\[-`{-~",
}
#: What Python's complaints are called in GNU's.
_GNU_WORDS = {
    "missing ), unterminated subpattern": "Unmatched ( or \\(",
    "unbalanced parenthesis": "Unmatched ) or \\)",
    "unterminated character set": "Unmatched [, [^, [:, [., or [=",
    "nothing to repeat": "Invalid preceding regular expression",
}
_LONG = {
    "--with-filename": "-H",
    "--no-filename": "-h",
    "--ignore-case": "-i",
    "--invert-match": "-v",
    "--line-number": "-n",
    "--count": "-c",
    "--quiet": "-q",
    "--silent": "-q",
    "--no-messages": "-s",
    "--extended-regexp": "-E",
    "--fixed-strings": "-F",
    "--basic-regexp": "-G",
    "--recursive": "-r",
    "--files-with-matches": "-l",
    "--files-without-match": "-L",
    "--only-matching": "-o",
    "--word-regexp": "-w",
    "--line-regexp": "-x",
    "--text": "-a",
}


def to_python(pattern: str, *, extended: bool) -> str:
    """Return the Python form of a POSIX basic or extended regular expression."""
    out: list[str] = []
    at = 0
    special = "(){}|+?"
    while at < len(pattern):
        character = pattern[at]
        if character == "[":
            end = pattern.find("]", at + 2 + (pattern[at + 1 : at + 2] == "^"))
            while end > 0 and (name := re.search(r"\[:(\w+):$", pattern[at:end])):
                end = pattern.find("]", end + 1)
                if name[1] not in _CLASSES:
                    break
            if end < 0:
                raise re.error("Unmatched [, [^, [:, [., or [=")
            body = pattern[at + 1 : end].replace("\\", "\\\\")
            body = re.sub(r"\[:(\w+):\]", lambda match: _CLASSES.get(match[1], ""), body)
            body = re.sub(r"(?<!\\)[\[&~|]", r"\\\g<0>", body)  # sets of sets are Python's alone
            out.append(f"[{body}]")
            at = end + 1
            continue
        if character == "\\" and at + 1 < len(pattern):
            following = pattern[at + 1]
            if following in special:
                out.append(f"\\{following}" if extended else following)
            elif following in "<>":
                out.append(r"\b")
            else:
                out.append(f"\\{following}")
            at += 2
            continue
        literal_star = not extended and character == "*" and (not out or out[-1] in ("(", "|"))
        out.append(f"\\{character}" if literal_star or (character in special and not extended) else character)
        at += 1
    return "".join(out)


@dataclass(frozen=True, slots=True)
class _Search:
    flags: frozenset[str]
    regex: re.Pattern[bytes]
    linear: LinearRegex | None
    limit: int
    named: bool

    def run(self, run: Invocation, name: str, data: bytes) -> bool:
        """Report on one file and return whether a line was selected."""
        selected = 0
        label = "(standard input)" if name == "-" else name
        text = data.split(b"\n")
        if text[-1] == b"":
            text.pop()
        if b"\0" in data and not self.flags & {"-a", "-c", "-l", "-L", "-q"}:
            if any(self._selects(line) for line in text):
                run.complain(f"{label}: binary file matches")
                return True
            return False
        silent = bool(self.flags & {"-q", "-c", "-l", "-L"})
        out = bytearray()
        prefix = f"{label}:".encode("utf-8", "surrogateescape") if self.named else b""
        for number, line in enumerate(text, 1):
            if not self._selects(line):
                continue
            selected += 1
            if not silent:
                mark = prefix + (f"{number}:".encode() if "-n" in self.flags else b"")
                pieces = [m[0] for m in self.regex.finditer(line) if m[0]] if "-o" in self.flags else [line]
                out += b"".join(mark + piece + b"\n" for piece in pieces)
            if selected == self.limit or self.flags & {"-q", "-l", "-L"}:
                break
        if "-q" in self.flags:
            return selected > 0
        if ("-l" in self.flags and selected) or ("-L" in self.flags and not selected):
            out = bytearray(f"{label}\n".encode())
        elif "-c" in self.flags:
            out = bytearray(prefix + f"{selected}\n".encode())
        run.streams.stdout.write(bytes(out))
        return selected > 0

    def _selects(self, line: bytes) -> bool:
        if self.linear is not None:
            return self.linear.search(line) is not ("-v" in self.flags)
        match = self.regex.fullmatch(line) if "-x" in self.flags else self.regex.search(line)
        return (match is not None) is not ("-v" in self.flags)


def _prepare(run: Invocation) -> tuple[_Search, list[str]]:
    short = "HhivncqsEFGrRlLowxaIm:e:"
    options: dict[str, str] = {}
    patterns: list[str] = []
    argv = []
    for word in run.argv:
        argv.append(_LONG.get(word, word))
        if word.startswith(("--color", "--colour")):
            argv.pop()
    words: list[str] = []
    # getopt keeps only the last of a repeated option, and -e may be repeated
    index = 1
    while index < len(argv):
        if argv[index] == "-e" and index + 1 < len(argv):
            patterns.append(argv[index + 1])
            index += 2
            continue
        words.append(argv[index])
        index += 1
    options, words = run.with_words([argv[0], *words]).options(short, status=2)
    if "-e" in options:
        patterns.append(options["-e"])
    if not patterns:
        if not words:
            run.err("Usage: grep [OPTION]... PATTERNS [FILE]...\nTry 'grep --help' for more information.\n")
            raise ProgramExit(2)
        patterns = words.pop(0).split("\n")
    flags = frozenset(options)
    try:
        sources = [re.escape(p) if "-F" in flags else to_python(p, extended="-E" in flags) for p in patterns]
        joined = "|".join(f"(?:{source})" for source in sources)
        linear = None
        if any(map(is_risky, sources)):
            if flags & {"-o", "-w"}:
                raise re.error("an emulated host does not offer -o and -w for such an expression")
            linear = LinearRegex(joined, ignore_case="-i" in flags, whole="-x" in flags)
        if "-w" in flags:
            joined = rf"(?<!\w)(?:{joined})(?!\w)"
        regex = re.compile(joined.encode("utf-8", "surrogateescape"), re.IGNORECASE if "-i" in flags else 0)
    except (re.error, OverflowError, RecursionError) as problem:
        message = problem.msg if isinstance(problem, re.error) else "Regular expression too big"
        run.complain(_GNU_WORDS.get(message, message))
        raise ProgramExit(2) from None
    recursive = bool(flags & {"-r", "-R"})
    named = "-H" in flags or ("-h" not in flags and (len(words) > 1 or recursive))
    if recursive and not words:
        words = ["."]
    limit = run.integer(options.get("-m", "-1"), "invalid max count", status=2)
    return _Search(flags, regex, linear, limit, named), words


def _files(run: Invocation, word: str, recursive: bool) -> list[str]:
    """Return ``word``, or every file below it where it is a directory and the search is recursive."""
    if word == "-" or not recursive:
        return [word]
    try:
        node = run.vfs.node(run.path(word))
    except OSError:
        return [word]
    if not isinstance(node, vfs.Directory):
        return [word]
    found: list[str] = []
    for name in run.vfs.listdir(run.path(word)):
        path = f"{word.rstrip('/')}/{name}"
        if not isinstance(run.vfs.node(run.path(path), follow=False), vfs.Link):
            found.extend(_files(run, path, recursive))
    return found


def grep(run: Invocation) -> int:
    """Write the lines of files that match."""
    search, words = _prepare(run)
    matched = failed = False
    for word in words or ["-"]:
        for name in _files(run, word, bool(search.flags & {"-r", "-R"})):
            try:
                data = run.streams.stdin.read() if name == "-" else run.vfs.read(run.path(name))
            except OSError as error:
                failed = True
                if "-s" not in search.flags:
                    run.complain(f"{name}: {reason(error)}")
                continue
            matched |= search.run(run, name, data)
            if matched and "-q" in search.flags:
                return 0
    return 2 if failed else int(not matched)


PROGRAMS: dict[str, Main] = {"grep": grep}
