"""Programs for files: ls, readlink, realpath, stat, rm, mkdir, rmdir, mv, cp, touch, checksums."""

from __future__ import annotations

import errno
import hashlib
import re
import stat as modes
import time

from harness.emulator import vfs
from harness.emulator.programs.base import Invocation, Main, reason


def _long_line(run: Invocation, path: str, shown: str) -> str:
    status = run.vfs.status(path, follow=False)
    when = time.strftime("%b %e %H:%M", time.gmtime(status.mtime))
    target = f" -> {run.vfs.readlink(path)}" if modes.S_ISLNK(status.mode) else ""
    return f"{modes.filemode(status.mode)} 1 root root {status.size:>8} {when} {shown}{target}\n"


def _is_directory(run: Invocation, path: str) -> bool:
    return isinstance(run.vfs.node(path), vfs.Directory)


def ls(run: Invocation) -> int:
    """List directories, one name a line (as for output that is no terminal)."""
    options, words = run.options("1aAldhtFrRs", ("color=",))
    status = 0
    files: list[str] = []
    directories: list[str] = []
    for word in sorted(words or ["."]):
        path = run.path(word)
        try:
            node = run.vfs.node(path, follow="-l" not in options and "-d" not in options)
        except OSError as error:
            try:  # a dangling link is shown as itself
                node = run.vfs.node(path, follow=False)
            except OSError:
                run.complain(f"cannot access '{word}': {reason(error)}")
                status = 2
                continue
        is_listed = isinstance(node, vfs.Directory) and "-d" not in options
        (directories if is_listed else files).append(word)
    for word in files:
        run.out(_long_line(run, run.path(word), word) if "-l" in options else f"{word}\n")
    for index, word in enumerate(directories):
        try:
            names = run.vfs.listdir(run.path(word))
        except OSError as error:
            run.complain(f"cannot open directory '{word}': {reason(error)}")
            status = 2
            continue
        if len(words) > 1:
            run.out(("\n" if index or files else "") + f"{word}:\n")
        if "-a" in options:
            names = [".", "..", *names]
        elif "-A" not in options:
            names = [name for name in names if not name.startswith(".")]
        if "-l" in options:
            run.out("total 0\n")
        for name in reversed(names) if "-r" in options else names:
            path = f"{run.path(word).rstrip('/')}/{name}"
            run.out(_long_line(run, path, name) if "-l" in options else f"{name}\n")
    return status


def _canonical(run: Invocation, word: str, *, last_may_miss: bool) -> str:
    """Return the canonical path of ``word``. :raises OSError: a component is missing."""
    path = run.path(word)
    try:
        return run.vfs.realpath(path)
    except FileNotFoundError:
        if not last_may_miss:
            raise
        head, _, name = path.rstrip("/").rpartition("/")
        try:
            target = run.vfs.readlink(path)
        except OSError:
            parent = run.vfs.realpath(head or "/")
            if not _is_directory(run, parent):
                raise
            return f"{parent.rstrip('/')}/{name}"
        base = run.with_words([])
        joined = target if target.startswith("/") else f"{head}/{target}"
        return _canonical(base, joined, last_may_miss=True)


def readlink(run: Invocation) -> int:
    """Write where links lead; ``-f``: the canonical path, whose last part may be missing."""
    options, words = run.options("fenmqsvz")
    if not words:
        run.complain("missing operand")
        run.err("Try 'readlink --help' for more information.\n")
        return 1
    status = 0
    end = "" if "-n" in options and len(words) == 1 else "\0" if "-z" in options else "\n"
    for word in words:
        try:
            if options.keys() & {"-f", "-e", "-m"}:
                found = _canonical(run, word, last_may_miss="-e" not in options)
            else:
                found = run.vfs.readlink(run.path(word))
        except OSError as error:
            status = 1
            if "-v" in options:
                run.complain(f"{word}: {reason(error)}")
            continue
        run.out(found + end)
    return status


def realpath(run: Invocation) -> int:
    """Write canonical paths, and complain where there is none."""
    options, words = run.options("eqsmz")
    status = 0
    for word in words:
        try:
            run.out(_canonical(run, word, last_may_miss="-e" not in options) + "\n")
        except OSError as error:
            run.complain(f"{word}: {reason(error)}")
            status = 1
    return status


def _kind(mode: int, size: int) -> str:
    if modes.S_ISDIR(mode):
        return "directory"
    if modes.S_ISLNK(mode):
        return "symbolic link"
    if modes.S_ISCHR(mode):
        return "character special file"
    return "regular file" if size else "regular empty file"


def stat(run: Invocation) -> int:
    """Write what is known of files, by ``-c`` format or in a short form."""
    options, words = run.options("c:L", ("format=", "printf="))
    form = options.get("-c") or options.get("--format") or options.get("--printf")
    status = 0
    for word in words:
        try:
            found = run.vfs.status(run.path(word), follow="-L" in options)
        except OSError as error:
            run.complain(f"cannot statx '{word}': {reason(error)}")
            status = 1
            continue
        values = {
            "%n": word,
            "%s": str(found.size),
            "%a": f"{found.mode & 0o7777:o}",
            "%A": modes.filemode(found.mode),
            "%F": _kind(found.mode, found.size),
            "%Y": str(int(found.mtime)),
            "%i": str(found.inode),
            "%U": "root",
            "%G": "root",
            "%u": "0",
            "%g": "0",
        }
        text = (
            form or "  File: %n\n  Size: %s\t%F\nAccess: (0%a/%A)  Uid: (0/root)   Gid: (0/root)\nInode: %i"
        )
        for key, value in values.items():
            text = text.replace(key, value)
        run.out(text.replace("\\n", "\n") if "--printf" in options else text + "\n")
    return status


def _remove(run: Invocation, path: str) -> None:
    node = run.vfs.node(path, follow=False)
    if isinstance(node, vfs.Directory):
        for name in run.vfs.listdir(path):
            _remove(run, f"{path}/{name}")
        run.vfs.rmdir(path)
    else:
        run.vfs.unlink(path)


def rm(run: Invocation) -> int:
    """Remove files, and directories with ``-r``."""
    options, words = run.options("frRvid")
    if not words:
        if "-f" in options:
            return 0
        run.complain("missing operand")
        run.err("Try 'rm --help' for more information.\n")
        return 1
    status = 0
    for word in words:
        path = run.path(word)
        try:
            if options.keys() & {"-r", "-R"}:
                _remove(run, path)
            else:
                run.vfs.unlink(path)
        except OSError as error:
            if "-f" in options and error.errno in (errno.ENOENT, errno.ENOTDIR):
                continue
            run.complain(f"cannot remove '{word}': {reason(error)}")
            status = 1
        else:
            if "-v" in options:
                run.out(f"removed '{word}'\n")
    return status


def mkdir(run: Invocation) -> int:
    """Make directories, with their parents where ``-p``."""
    options, words = run.options("pm:v")
    status = 0
    for word in words:
        parts = run.path(word).strip("/").split("/")
        steps = [run.path(word)]
        if "-p" in options:
            steps = ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]
        for step in steps:
            if "-p" in options and run.vfs.exists(step) and _is_directory(run, step):
                continue
            try:
                run.vfs.mkdir(step)
            except OSError as error:
                run.complain(f"cannot create directory {run.quoted(word)}: {reason(error)}")
                status = 1
                break
    return status


def rmdir(run: Invocation) -> int:
    """Remove empty directories."""
    _, words = run.options("pv")
    status = 0
    for word in words:
        try:
            run.vfs.rmdir(run.path(word))
        except OSError as error:
            run.complain(f"failed to remove '{word}': {reason(error)}")
            status = 1
    return status


def _into(run: Invocation, source: str, target: str) -> str:
    path = run.path(target)
    if run.vfs.exists(path) and _is_directory(run, path):
        return f"{path.rstrip('/')}/{source.rstrip('/').rpartition('/')[2]}"
    return path


def mv(run: Invocation) -> int:
    """Rename files."""
    _, words = run.options("fvn")
    status = 0
    run.operands(words, 2)
    *sources, target = words
    for source in sources:
        try:
            run.vfs.rename(run.path(source), _into(run, source, target))
        except OSError as error:
            what = (
                f"cannot stat '{source}'"
                if error.errno == errno.ENOENT
                else f"cannot move '{source}' to '{target}'"
            )
            run.complain(f"{what}: {reason(error)}")
            status = 1
    return status


def cp(run: Invocation) -> int:
    """Copy plain files."""
    _, words = run.options("fvp")
    status = 0
    run.operands(words, 2)
    *sources, target = words
    for source in sources:
        try:
            data = run.vfs.read(run.path(source))
        except OSError as error:
            run.complain(f"cannot stat '{source}': {reason(error)}")
            status = 1
            continue
        try:
            path = _into(run, source, target)
            run.vfs.open(path, read=False, write=True, create=True, truncate=True).write(data)
        except OSError as error:
            run.complain(f"cannot create regular file '{target}': {reason(error)}")
            status = 1
    return status


def touch(run: Invocation) -> int:
    """Make empty files, or note the time at those that are there."""
    _, words = run.options("cam")
    status = 0
    for word in words:
        try:
            run.vfs.open(run.path(word), read=False, write=True, create=True)
        except OSError as error:
            run.complain(f"cannot touch '{word}': {reason(error)}")
            status = 1
    return status


def chmod(run: Invocation) -> int:
    """Set octal permission bits; ``+x`` adds execution."""
    mode, *words = run.operands(run.argv[1:], 2)
    if re.fullmatch("[0-7]{1,4}|[ugoa]*[-+=][rwxst]*", mode) is None:
        run.complain(f"invalid mode: {run.quoted(mode)}")
        return 1
    status = 0
    for word in words:
        try:
            node = run.vfs.node(run.path(word))
        except OSError as error:
            run.complain(f"cannot access '{word}': {reason(error)}")
            status = 1
            continue
        node.mode = int(mode, 8) if mode[:1] in "01234567" else node.mode | 0o111
    return status


def _checksum(run: Invocation) -> int:
    _, words = run.options("btz")
    status = 0
    for word in words or ["-"]:
        try:
            data = run.streams.stdin.read() if word == "-" else run.vfs.read(run.path(word))
        except OSError as error:
            run.complain(f"{word}: {reason(error)}")
            status = 1
            continue
        run.out(f"{hashlib.new(run.name.removesuffix('sum'), data).hexdigest()}  {word}\n")
    return status


def df(run: Invocation) -> int:
    """Write how much room there is; ``-P -k``: one line for each, in KiB."""
    _, words = run.options("Pkh")
    status = 0
    disk = run.vfs.disk
    size, used = disk.capacity >> 10, -(-disk.used // 1024)
    run.out("Filesystem     1024-blocks      Used Available Capacity Mounted on\n")
    for word in words or ["/"]:
        try:
            run.vfs.node(run.path(word))
        except OSError as error:
            run.complain(f"{word}: {reason(error)}")
            status = 1
            continue
        run.out(f"/dev/sda2      {size:>11} {used:>9} {size - used:>9} {100 * used // size:>7}% /\n")
    return status


def mktemp(run: Invocation) -> int:
    """Make a file (``-d``: a directory) with a fresh name."""
    options, words = run.options("dp:t")
    template = run.path(words[0]) if words else "/tmp/tmp.XXXXXXXXXX"
    stem = template.rstrip("X")
    path = f"{stem}{run.process.pid:0{max(len(template) - len(stem), 1)}d}"
    try:
        if "-d" in options:
            run.vfs.mkdir(path)
        else:
            run.vfs.open(path, read=False, write=True, create=True, exclusive=True)
    except OSError as error:
        run.complain(f"failed to create file via template '{template}': {reason(error)}")
        return 1
    run.out(f"{path}\n")
    return 0


def basename(run: Invocation) -> int:
    """Write the last part of a path."""
    run.operands(run.argv[1:], 1)
    name = run.argv[1].rstrip("/").rpartition("/")[2]
    run.out((name.removesuffix(run.argv[2]) if len(run.argv) > 2 else name) + "\n")
    return 0


def dirname(run: Invocation) -> int:
    """Write all but the last part of paths."""
    for word in run.argv[1:]:
        head, slash, _ = word.rstrip("/").rpartition("/")
        run.out((head or ("/" if slash else ".")) + "\n")
    return 0


PROGRAMS: dict[str, Main] = {
    "ls": ls,
    "readlink": readlink,
    "realpath": realpath,
    "stat": stat,
    "rm": rm,
    "mkdir": mkdir,
    "rmdir": rmdir,
    "mv": mv,
    "cp": cp,
    "touch": touch,
    "chmod": chmod,
    "sha256sum": _checksum,
    "sha384sum": _checksum,
    "sha1sum": _checksum,
    "md5sum": _checksum,
    "mktemp": mktemp,
    "df": df,
    "basename": basename,
    "dirname": dirname,
}
