"""Programs that pass text on: cat, head, tail, wc, sort, tee, echo, printf by path."""

from __future__ import annotations

from collections.abc import Iterator

from harness.emulator.process import lines
from harness.emulator.programs.base import Invocation, Main, reason

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
    if program in ("head", "tail", "sort"):
        verb = "error reading" if isinstance(error, IsADirectoryError) else "cannot open"
        quoted = word if program == "sort" else f"'{word}'"
        if program == "sort":
            return f"cannot read: {quoted}: {reason(error)}"
        return f"{verb} {quoted}" + (f": {reason(error)}" if verb != "cannot open" else _for_reading(error))
    return f"{word}: {reason(error)}"


def _for_reading(error: OSError) -> str:
    return f" for reading: {reason(error)}"


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
    argv = [f"-n{word[1:]}" if word[:1] == "-" and word[1:].isdigit() else word for word in run.argv]
    options, words = run.with_words(argv).options("n:c:q")
    status = [0]
    count, by_bytes = (options["-c"], True) if "-c" in options else (options.get("-n", "10"), False)
    from_start = not first and count.startswith("+")
    amount = abs(int(count))
    for index, (name, data) in enumerate(_contents(run, words, status)):
        if len(words) > 1 and "-q" not in options:
            run.out(("\n" if index else "") + f"==> {'standard input' if name == '-' else name} <==\n")
        pieces = [bytes([byte]) for byte in data] if by_bytes else data.splitlines(keepends=True)
        if first:
            chosen = pieces[:-amount] if count.startswith("-") else pieces[:amount]
        elif from_start:
            chosen = pieces[max(amount - 1, 0) :]
        else:
            chosen = pieces[-amount:] if amount else []
        run.streams.stdout.write(b"".join(chosen))
    return status[0]


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
