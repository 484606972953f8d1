"""The commands that an emulated host's shell carries out itself."""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.emulator.process import read_line
from harness.emulator.shell_test import TestSyntaxError, evaluate

if TYPE_CHECKING:
    from harness.emulator.shell import Shell


class ShellExit(Exception):
    """``exit`` or ``exec``: the shell is over, with this status (negative: a signal's number)."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class LoopControl(Exception):
    """``break`` or ``continue`` out of ``levels`` loops."""

    def __init__(self, word: str, levels: int) -> None:
        super().__init__(word, levels)
        self.word = word
        self.levels = levels


def _say(shell: Shell, text: str) -> None:
    shell.streams.stdout.write(text.encode("utf-8", "surrogateescape"))


def _complain(shell: Shell, words: list[str], message: str) -> None:
    shell.complain(f"{shell.messages.prefix}{words[0]}: {message}\n")


def _true(shell: Shell, words: list[str]) -> int:
    return 0


def _false(shell: Shell, words: list[str]) -> int:
    return 1


def _cd(shell: Shell, words: list[str]) -> int:
    target = words[1] if len(words) > 1 else shell.variables.get("HOME", "/")
    try:
        path = shell.host.vfs.realpath(shell.absolute(target))
        shell.host.vfs.listdir(path)
    except OSError as error:
        reason = (
            f"can't cd to {target}" if shell.name == "sh" else f"{target}: {os.strerror(error.errno or 0)}"
        )
        _complain(shell, words, reason)
        return 2 if shell.name == "sh" else 1
    shell.cwd = shell.variables["PWD"] = path
    return 0


def _pwd(shell: Shell, words: list[str]) -> int:
    _say(shell, f"{shell.cwd}\n")
    return 0


_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "\\": "\\",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "e": "\x1b",
}


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] == "0" or code[0] in "123":
            return chr(int(code, 8) & 0xFF)
        return _ESCAPES.get(code, match[0])

    return re.sub(r"\\(0[0-7]{0,3}|[1-3][0-7]{2}|.)", one, text, flags=re.DOTALL)


def _echo(shell: Shell, words: list[str]) -> int:
    arguments, end = words[1:], "\n"
    interpret = shell.name == "sh"  # dash takes escapes always, bash only with -e
    while arguments and re.fullmatch("-n" if shell.name == "sh" else "-[neE]+", arguments[0]):
        flags = arguments.pop(0)
        end = "" if "n" in flags else end
        interpret = shell.name == "sh" or "e" in flags
    text = " ".join(arguments)
    _say(shell, (_unescape(text) if interpret else text) + end)
    return 0


def _printf(shell: Shell, words: list[str]) -> int:
    if len(words) < 2:
        _complain(shell, words, "usage: printf format [arg ...]")
        return 2
    form, arguments = _unescape(words[1]), words[2:]
    specifier = re.compile(r"%(%|[-0 +#]*[0-9]{0,4}(?:\.[0-9]{0,4})?[sdxXobciu])")
    while True:
        remaining = list(arguments)

        def one(match: re.Match[str], remaining: list[str] = remaining) -> str:
            if match[1] == "%":
                return "%"
            value = remaining.pop(0) if remaining else ""
            if match[1].endswith("b"):
                return _unescape(value)
            if match[1][-1] == "c":
                return f"{match[0][:-1]}s" % value[:1]
            if match[1][-1] == "s":
                return match[0] % value
            return match[0].replace("u", "d") % _integer(value or "0")

        try:
            _say(shell, specifier.sub(one, form))
        except ValueError:
            _complain(shell, words, f"{arguments[0] if arguments else ''}: expected numeric value")
            return 1
        if not remaining or len(remaining) == len(arguments):
            return 0
        arguments = remaining


def _exit(shell: Shell, words: list[str]) -> int:
    raise ShellExit(_count(words, shell.status) & 0xFF)


def _integer(text: str) -> int:
    """Return a number as `printf` reads it. :raises ValueError: it is none."""
    if re.fullmatch(r"[-+]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,18})", text) is None:
        raise ValueError(text)
    return int(text, 8 if re.fullmatch(r"[-+]?0[0-7]+", text) else 0)


def _count(words: list[str], otherwise: int) -> int:
    """Return the number that a builtin is given; ``otherwise`` where it is given none, or no number."""
    return int(words[1]) if len(words) > 1 and re.fullmatch("[0-9]{1,9}", words[1]) else otherwise


def _export(shell: Shell, words: list[str]) -> int:
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if equals:
            shell.variables[name] = value
        shell.exported.add(name)
    return 0


def _unset(shell: Shell, words: list[str]) -> int:
    for name in words[1:]:
        shell.variables.pop(name, None)
    return 0


def _source(shell: Shell, words: list[str]) -> int:
    if len(words) < 2:
        _complain(shell, words, "filename argument required")
        return 2
    try:
        text = shell.host.vfs.read(shell.absolute(words[1]))
    except OSError as error:
        if shell.name == "sh":
            shell.complain(f"{shell.messages.prefix}.: cannot open {words[1]}: No such file\n")
            raise ShellExit(2) from None
        shell.complain(f"{shell.messages.prefix}{words[1]}: {os.strerror(error.errno or 0)}\n")
        return 1
    return shell.source(text.decode("utf-8", "replace"))


def _eval(shell: Shell, words: list[str]) -> int:
    return shell.source(" ".join(words[1:]))


def _set(shell: Shell, words: list[str]) -> int:
    """Positional parameters only; the options (-e, -u, -o pipefail) are taken and have no effect."""
    if "--" in words:
        shell.arguments = words[words.index("--") + 1 :]
    return 0


def _shift(shell: Shell, words: list[str]) -> int:
    count = _count(words, 1)
    if count > len(shell.arguments):
        return 1
    del shell.arguments[:count]
    return 0


def _read(shell: Shell, words: list[str]) -> int:
    names = [word for word in words[1:] if not word.startswith("-")] or ["REPLY"]
    shell.process.hand_on()
    line = read_line(shell.streams.stdin)
    parts = line.removesuffix(b"\n").decode("utf-8", "replace").split(None, len(names) - 1)
    shell.variables.update(zip(names, [*parts, *[""] * len(names)], strict=False))
    return 0 if line.endswith(b"\n") else 1


def _test(shell: Shell, words: list[str]) -> int:
    arguments = words[1:]
    if words[0] == "[" and (not arguments or arguments.pop() != "]"):
        _complain(shell, words, "missing ]" if shell.name == "sh" else "missing `]'")
        return 2
    try:
        return int(not evaluate(arguments, shell.host.vfs, shell.absolute))
    except TestSyntaxError as problem:
        _complain(shell, words, str(problem))
        return 2


def _signal_number(text: str) -> int:
    """Return the number of a signal; 0 asks whether a process is there. :raises KeyError: there is none."""
    name = text.upper().removeprefix("SIG")
    if re.fullmatch("[0-9]{1,3}", name) is None:
        return signal.Signals[f"SIG{name}"].value
    if int(name) not in {0, *map(int, signal.Signals)}:
        raise KeyError(text)
    return int(name)


def _kill(shell: Shell, words: list[str]) -> int:
    number, targets = int(signal.SIGTERM), words[1:]
    if targets and targets[0].startswith("-") and targets[0] != "--":
        option = targets.pop(0)
        text = targets.pop(0) if option == "-s" and targets else option[1:]
        try:
            number = _signal_number(text)
        except KeyError:
            if shell.name == "sh":
                _complain(shell, words, f"Illegal option -{text[:1]}")
                return 2
            _complain(shell, words, f"{text}: invalid signal specification")
            return 1
    status = 0
    for target in targets:
        pid = int(target) if re.fullmatch("[0-9]{1,9}", target) else 0
        process = shell.host.processes.find(pid)
        if process is None:
            gone = os.strerror(errno.ESRCH)
            _complain(shell, words, f"{gone}\n" if shell.name == "sh" else f"({target}) - {gone}")
            status = 1
        elif number:
            process.send(number)
    return status


def _wait(shell: Shell, words: list[str]) -> int:
    shell.process.hand_on()
    for thread in shell.jobs:
        thread.join()
    shell.jobs.clear()
    return 0


def _command(shell: Shell, words: list[str]) -> int:
    from harness.emulator.shell import ProgramNotFound

    if len(words) > 2 and words[1] in ("-v", "-V"):
        name = words[2]
        if name in BUILTINS:
            _say(shell, f"{name}\n")
            return 0
        place = shell.locate(name)
        if place is None:
            return 127 if shell.name == "sh" else 1
        _say(shell, f"{place}\n")
        return 0
    if len(words) < 2:
        return 0
    try:
        return shell.run_program(words[1:], shell.streams)
    except ProgramNotFound as problem:
        shell.complain(problem.text)
        return problem.status


def _type(shell: Shell, words: list[str]) -> int:
    status = 0
    for name in words[1:]:
        place = shell.locate(name)
        if name in BUILTINS:
            _say(shell, f"{name} is a shell builtin\n")
        elif place is not None:
            _say(shell, f"{name} is {place}\n")
        else:
            _complain(shell, words, f"{name}: not found")
            status = 127 if shell.name == "sh" else 1
    return status


def _loop_control(shell: Shell, words: list[str]) -> int:
    raise LoopControl(words[0], max(_count(words, 1), 1))


BUILTINS: dict[str, Callable[[Shell, list[str]], int]] = {
    ":": _true,
    "true": _true,
    "false": _false,
    "cd": _cd,
    "pwd": _pwd,
    "echo": _echo,
    "printf": _printf,
    "exit": _exit,
    "export": _export,
    "unset": _unset,
    ".": _source,
    "source": _source,
    "eval": _eval,
    "set": _set,
    "shift": _shift,
    "read": _read,
    "test": _test,
    "[": _test,
    "kill": _kill,
    "wait": _wait,
    "command": _command,
    "type": _type,
    "break": _loop_control,
    "continue": _loop_control,
    "umask": _true,
    "trap": _true,
    "ulimit": _true,
    "alias": _true,
}

#: Assignments before these stay, and a failed redirection ends dash.
SPECIAL = frozenset(
    {":", ".", "break", "continue", "eval", "exec", "exit", "export", "set", "shift", "unset"}
)
