"""Programs that pass text on: cat, head, tail, wc, sort, tee, echo, printf by path."""

from __future__ import annotations

from collections.abc import Iterator

from harness.emulator.process import lines
from harness.emulator.programs.base import Invocation, Main, reason
from harness.emulator.vfs import Handle

_CHUNK = 1 << 20


def _contents(run: Invocation, words: list[str], status: list[int]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file in ``words`` (``-`` or none: standard input)."""
    for word in words or ["-"]:
        try:
            yield word, run.streams.stdin.read() if word == "-" else run.vfs.read(run.path(word))
        except OSError as error:
            run.complain(_file_error(run.name, word, error))
            status[0] = 1


def _file_error(program: str, word: str, error: OSError) -> str:
    return f"cannot read: {word}: {reason(error)}" if program == "sort" else f"{word}: {reason(error)}"


def cat(run: Invocation) -> int:
    """Write files, or standard input as it arrives, to standard output."""
    options, words = run.options("nu")
    status = 0
    number = 0
    for word in words or ["-"]:
        try:
            if word == "-":
                while piece := run.streams.stdin.read(_CHUNK):
                    run.streams.stdout.write(piece)
                    run.streams.stdout.flush()
                continue
            data = run.vfs.read(run.path(word))
        except OSError as error:
            if error.filename is None and not isinstance(error, BrokenPipeError) and word == "-":
                raise
            if isinstance(error, BrokenPipeError):
                raise
            run.complain(f"{word}: {reason(error)}")
            status = 1
            continue
        if "-n" in options:
            for line in data.splitlines(keepends=True):
                number += 1
                run.streams.stdout.write(f"{number:6}\t".encode() + line)
        else:
            run.streams.stdout.write(data)
    return status


def _ends(run: Invocation, *, first: bool) -> int:
    argv = [
        f"-n{word[1:]}"
        if word[:1] == "-" and word[1:].isascii() and word[1:].isdigit() and before not in ("-n", "-c")
        else word
        for before, word in zip(["", *run.argv], run.argv, strict=False)
    ]
    options, words = run.with_words(argv).options("n:c:qv")
    run.integer(_count(options), f"invalid number of lines: '{_count(options)}'")
    titled = "-v" in options or (len(words) > 1 and "-q" not in options)
    status = 0
    title = ""
    for word in words or ["-"]:
        handle: Handle | None = None
        try:
            handle = None if word == "-" else run.vfs.open(run.path(word))
            data = run.streams.stdin.read() if handle is None else handle.read()
        except OSError as error:
            status = 1
            opened = handle is not None or isinstance(error, IsADirectoryError)
            if titled and opened:
                run.out(f"{title}==> {word} <==\n")
                title = "\n"
            run.complain(
                f"error reading '{word}': {reason(error)}"
                if opened
                else f"cannot open '{word}' for reading: {reason(error)}"
            )
            if opened and not first and _count(options).startswith("+"):
                break  # so GNU tail: an error while it copies to the end is its own end
            continue
        if titled:
            run.out(f"{title}==> {'standard input' if word == '-' else word} <==\n")
            title = "\n"
        run.streams.stdout.write(_end(data, options, first=first))
    return status


def _count(options: dict[str, str]) -> str:
    return options.get("-c", options.get("-n", "10"))


def _end(data: bytes, options: dict[str, str], *, first: bool) -> bytes:
    """Return the lines or bytes of ``data`` that ``-n`` or ``-c`` ask for."""
    count = _count(options)
    amount = abs(int(count))
    if first:
        chosen = slice(-amount or None) if count.startswith("-") else slice(amount)
    elif count.startswith("+"):
        chosen = slice(max(amount - 1, 0), None)
    else:
        chosen = slice(-amount, None) if amount else slice(0)
    return data[chosen] if "-c" in options else b"".join(data.splitlines(keepends=True)[chosen])


def head(run: Invocation) -> int:
    """Write the first lines of files."""
    return _ends(run, first=True)


def tail(run: Invocation) -> int:
    """Write the last lines of files (``-f`` is not offered)."""
    return _ends(run, first=False)


def wc(run: Invocation) -> int:
    """Count lines, words and bytes."""
    options, words = run.options("lwc")
    status = [0]
    wanted = [flag for flag in ("-l", "-w", "-c") if flag in options] or ["-l", "-w", "-c"]
    rows: list[tuple[list[int], str]] = []
    for name, data in _contents(run, words, status):
        counts = {"-l": data.count(b"\n"), "-w": len(data.split()), "-c": len(data)}
        rows.append(([counts[flag] for flag in wanted], name if words else ""))
    if len(words) > 1:
        rows.append(([sum(column) for column in zip(*(row for row, _ in rows), strict=True)], "total"))
    biggest = max((number for row, _ in rows for number in row), default=0)
    width = 1 if len(rows) == 1 and len(wanted) == 1 else len(str(biggest))
    if "-" in words or (not words and len(wanted) > 1):
        width = 7
    for row, name in rows:
        run.out(" ".join(f"{number:{width}}" for number in row) + (f" {name}" if name else "") + "\n")
    return status[0]


def sort(run: Invocation) -> int:
    """Sort lines by their bytes, or by number."""
    options, words = run.options("rnuk:t:")
    status = [0]
    found: list[bytes] = []
    for _, data in _contents(run, words, status):
        found.extend(data.splitlines())
    if status[0]:
        return 2

    def number(line: bytes) -> tuple[float, bytes]:
        text = line.split(maxsplit=1)[:1]
        try:
            return float(text[0]) if text else 0.0, line
        except ValueError:
            return 0.0, line

    found.sort(key=number if "-n" in options else None, reverse="-r" in options)
    if "-u" in options:
        found = list(dict.fromkeys(found))
    run.streams.stdout.write(b"".join(line + b"\n" for line in found))
    return 0


def tee(run: Invocation) -> int:
    """Write standard input to standard output and to files."""
    options, words = run.options("a")
    status = 0
    handles = []
    for word in words:
        try:
            append = "-a" in options
            path = run.path(word)
            handles.append(
                (
                    word,
                    run.vfs.open(
                        path, read=False, write=True, create=True, truncate=not append, append=append
                    ),
                )
            )
        except OSError as error:
            run.complain(f"{word}: {reason(error)}")
            status = 1
    for line in lines(run.streams.stdin):
        run.streams.stdout.write(line)
        run.streams.stdout.flush()
        for word, handle in handles:
            try:
                handle.write(line)
            except OSError as error:
                run.complain(f"{word}: {reason(error)}")
                status = 1
    return status


PROGRAMS: dict[str, Main] = {"cat": cat, "head": head, "tail": tail, "wc": wc, "sort": sort, "tee": tee}
