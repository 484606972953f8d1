"""The shell of an emulated host: expands words, redirects, joins and runs the host's programs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.emulator import shell_limits as limits
from harness.emulator import vfs
from harness.emulator.process import Buffer, Bytes, Pipe, Process, Signalled, command_is_over, tell
from harness.emulator.programs.base import Executable, Invocation, Main, ProgramExit, Streams
from harness.emulator.shell_builtins import BUILTINS, SPECIAL, LoopControl, ShellExit
from harness.emulator.shell_expansion import Expander
from harness.emulator.shell_files import Messages, NotReadable, RedirectionError, redirected
from harness.emulator.shell_syntax import (
    Chain,
    Command,
    For,
    Group,
    If,
    Pipeline,
    Script,
    ShellSyntaxError,
    Simple,
    While,
    only_command,
    parse,
    substitutes,
)

if TYPE_CHECKING:
    from harness.emulator.host import EmulatedHost

NOT_FOUND, NOT_EXECUTABLE, SYNTAX_ERROR, SIGNAL_BASE = 127, 126, 2, 128


class Shell:
    """One running shell.

    ``name`` is what it was called as: ``bash`` (the login shell) and ``sh`` (dash) differ in the wording
    of their messages only. A negative status means that a signal ended a program.
    """

    def __init__(
        self,
        host: EmulatedHost,
        process: Process,
        streams: Streams,
        env: dict[str, str],
        *,
        name: str = "bash",
        cwd: str = "/",
        arguments: tuple[str, ...] = (),
        zero: str = "",
        depth: int = 0,
    ) -> None:
        self.host = host
        self.process = process
        self.shell_pid = process.pid
        self.streams = streams
        self.variables = dict(env)
        self.exported = set(env)
        self.name = name
        self.zero = zero or name
        self.depth = depth
        self.cwd = cwd
        self.arguments = list(arguments)
        self.status = 0
        self.jobs: list[threading.Thread] = []
        self.last_job = 0
        self.messages = Messages(name)
        self.expander = Expander(self)

    # -- entry points ---------------------------------------------------------------------------

    def main(self, text: str) -> int:
        """Run ``text`` as ``-c`` does and return the status; negative where a signal ended the shell."""
        try:
            script = parse(text)
        except ShellSyntaxError as problem:
            self.complain(self.messages.syntax(str(problem)))
            return SYNTAX_ERROR
        try:
            last = only_command(script)
            if last is not None:  # real shells replace themselves with their last program
                self.status = self._simple(last, replace_shell=True)
                self.process.check()
                return self.status
            self.script(script)
        except ShellExit as leave:
            return leave.status
        except Signalled as death:
            return -death.number
        except LoopControl:
            pass
        return self.status

    def source(self, text: str) -> int:
        """Run ``text`` in this shell (``.``, ``eval``). :raises ShellExit: it said ``exit``."""
        try:
            self.script(parse(text))
        except ShellSyntaxError as problem:
            self.complain(self.messages.syntax(str(problem)))
            self.status = SYNTAX_ERROR
        return self.status

    def capture(self, script: Script) -> bytes:
        """Return what ``script`` writes to standard output, run in a subshell."""
        buffer = Buffer(limits.LONGEST_OUTPUT)
        inner = self._subshell(replace(self.streams, stdout=buffer))
        self.status = inner.run_contained(script)
        return bytes(buffer.data)

    def run_contained(self, script: Script) -> int:
        """Run ``script`` so that its ``exit`` ends with it."""
        try:
            self.script(script)
        except ShellExit as leave:
            return leave.status if leave.status >= 0 else SIGNAL_BASE - leave.status
        except LoopControl:
            pass
        return self.status

    def environment(self) -> dict[str, str]:
        """Return what a program started now finds in its environment."""
        return {key: self.variables[key] for key in self.exported if key in self.variables}

    def absolute(self, path: str) -> str:
        """Return ``path`` as an absolute one."""
        return path if path.startswith("/") else f"{self.cwd.rstrip('/')}/{path}"

    def complain(self, text: str) -> None:
        """Write ``text`` to standard error."""
        tell(self.streams.stderr, text)

    # -- structure ------------------------------------------------------------------------------

    def script(self, script: Script) -> None:
        """Run ``script``; the status is that of its last pipeline."""
        self.depth += 1
        try:
            if self.depth > limits.DEEPEST:
                raise self.gives_up(limits.NESTED)
            for chain in script:
                if chain.background:
                    self._background(chain)
                else:
                    self._chain(chain)
        finally:
            self.depth -= 1

    def gives_up(self, why: str) -> ShellExit:
        """Say ``why`` this shell cannot go on; return what ends it."""
        self.complain(f"{self.messages.prefix}{why}\n")
        return ShellExit(SYNTAX_ERROR)

    def _chain(self, chain: Chain) -> None:
        for operator, pipeline in chain.links:
            if (operator == "&&" and self.status != 0) or (operator == "||" and self.status == 0):
                continue
            self.status = self._pipeline(pipeline)
            if pipeline.negated:
                self.status = int(self.status == 0)
            self.process.check()

    def _background(self, chain: Chain) -> None:
        inner = self._subshell(replace(self.streams, stdin=Bytes()))
        inner.process = self._fork([self.name])
        inner.process.output = self.process.output
        self.last_job = inner.process.pid

        def run() -> None:
            try:
                inner.run_contained((replace(chain, background=False),))
            except (BrokenPipeError, Signalled):
                pass
            finally:
                self.host.processes.end(inner.process)

        thread = threading.Thread(target=run, name="shell-job", daemon=True)
        self.jobs.append(thread)
        thread.start()
        self.status = 0

    def _pipeline(self, pipeline: Pipeline) -> int:
        *earlier, last = pipeline.commands
        if len(earlier) > limits.LONGEST_PIPELINE:
            raise self.gives_up(limits.FORK)
        if earlier:
            self.process.hand_on()
        stdin = self.streams.stdin
        threads = []
        pipe: Pipe | None = None
        for command in earlier:
            pipe = Pipe()
            stage = self._subshell(replace(self.streams, stdin=stdin, stdout=pipe))
            threads.append(threading.Thread(target=_stage, args=(stage, command, pipe, stdin), daemon=True))
            stdin = pipe
        for thread in threads:
            thread.start()
        if pipe is None:
            return self._command(last)
        final = self._subshell(replace(self.streams, stdin=stdin))
        try:
            status = final.run_contained((Chain((("", Pipeline((last,))),)),))
        finally:
            pipe.close_read()
        for thread in threads:
            thread.join()
        return status

    def _command(self, command: Command) -> int:
        if isinstance(command, Simple):
            status = self._simple(command)
            return status if status >= 0 else SIGNAL_BASE - status
        if isinstance(command, Group):
            return self._group(command)
        if isinstance(command, If):
            for condition, body in command.branches:
                self.script(condition)
                if self.status == 0:
                    return self._body(body)
            return self._body(command.otherwise)
        if isinstance(command, For):
            values = [field for word in command.words for field in self.expander.fields(word)]
            return self._loop(command.body, iter(values), command.name)
        assert isinstance(command, While)
        return self._loop(command.body, self._while(command), None)

    def _body(self, script: Script) -> int:
        self.status = 0
        self.script(script)
        return self.status

    def _while(self, command: While) -> Iterator[str]:
        while True:
            self.process.check()
            self.script(command.condition)
            if (self.status == 0) is not command.wanted:
                return
            yield ""

    def _loop(self, body: Script, values: Iterator[str], name: str | None) -> int:
        status = 0
        for value in values:
            if name is not None:
                self.variables[name] = value
            try:
                status = self._body(body)
            except LoopControl as control:
                status = 0
                if control.levels > 1:
                    raise LoopControl(control.word, control.levels - 1) from None
                if control.word == "break":
                    break
        return status

    def _group(self, group: Group) -> int:
        try:
            with redirected(self, group.redirects) as streams:
                if group.subshell:
                    return self._subshell(streams).run_contained(group.script)
                outer, self.streams = self.streams, streams
                try:
                    return self._body(group.script)
                finally:
                    self.streams = outer
        except RedirectionError as problem:
            self.complain(problem.text)
            return problem.status

    def _subshell(self, streams: Streams) -> Shell:
        inner = Shell(
            self.host,
            self.process,
            streams,
            {},
            name=self.name,
            cwd=self.cwd,
            arguments=tuple(self.arguments),
            depth=self.depth,
        )
        inner.variables = dict(self.variables)
        inner.exported = set(self.exported)
        inner.shell_pid = self.shell_pid
        inner.zero = self.zero
        inner.status = self.status
        inner.last_job = self.last_job
        return inner

    # -- simple commands ------------------------------------------------------------------------

    def _simple(self, command: Simple, *, replace_shell: bool = False) -> int:
        words = [field for word in command.words for field in self.expander.fields(word)]
        assigned = {name: self.expander.single(word) for name, word in command.assignments}
        if not words:
            self.variables.update(assigned)
        special = not words or words[0] in SPECIAL
        try:
            with redirected(self, command.redirects) as streams:
                if not words:
                    return self.status if command.assignments and substitutes(command) else 0
                if words[0] == "exec":
                    return self._exec(words[1:], assigned, streams)
                if words[0] in BUILTINS:
                    return self._builtin(words, assigned, streams, special)
                return self.run_program(words, streams, assigned, replace_shell=replace_shell)
        except RedirectionError as problem:
            self.complain(problem.text)
            if special and words and self.name == "sh":
                raise ShellExit(problem.status) from None
            return problem.status

    def _builtin(self, words: list[str], assigned: dict[str, str], streams: Streams, special: bool) -> int:
        outer_streams = self.streams
        outer_variables = {name: self.variables.get(name) for name in assigned}
        self.streams = streams
        self.variables.update(assigned)
        try:
            status = BUILTINS[words[0]](self, words)
            command_is_over(streams.stdout)
            return status
        except BrokenPipeError:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            self.complain(f"{words[0]}: {limits.BROKEN}: {type(error).__name__}: {error}\n")
            return limits.BROKEN_STATUS
        except OSError as error:
            self.streams = outer_streams
            self.complain(self.messages.write_error(words[0], error))
            return 1
        finally:
            self.streams = outer_streams
            if not special:
                for name, value in outer_variables.items():
                    self.variables.pop(name, None)
                    self.variables |= {} if value is None else {name: value}

    def _exec(self, words: list[str], assigned: dict[str, str], streams: Streams) -> int:
        if not words:
            self.streams = streams
            return 0
        try:
            status = self.run_program(words, streams, assigned, replace_shell=True, report_missing=False)
        except ProgramNotFound as problem:
            self.complain(self.messages.exec_failed(problem.text))
            status = problem.status
        raise ShellExit(status)

    def run_program(
        self,
        words: list[str],
        streams: Streams,
        assigned: dict[str, str] | None = None,
        *,
        replace_shell: bool = False,
        report_missing: bool = True,
    ) -> int:
        """Run the program ``words`` and return its status; negative where a signal ended it.

        ``replace_shell``: it takes over this shell's process id, as ``exec`` has it.

        :raises ProgramNotFound: there is none, and that is not to be reported here.
        """
        try:
            main = self.find_program(words[0])
        except ProgramNotFound as problem:
            if not report_missing:
                raise
            tell(streams.stderr, problem.text)
            return problem.status
        env = self.environment() | (assigned or {})
        if self.depth > limits.DEEPEST:
            raise self.gives_up(limits.NESTED)
        process = self.process if replace_shell else self._fork(words)
        process.argv = words
        process.output = tuple(dict.fromkeys((streams.stdout, streams.stderr, *self.process.output)))
        if words[0].rpartition("/")[2] not in limits.NEVER_WAITING:
            process.hand_on()
        invocation = Invocation(self.host, process, words, env, self.cwd, streams, depth=self.depth + 1)
        try:
            return call(main, invocation)
        finally:
            if not replace_shell:
                self.host.processes.end(process)

    def _fork(self, words: list[str]) -> Process:
        """Return a new process for ``words``. :raises ShellExit: the host has too many."""
        try:
            return self.host.processes.start(words, self.process.pid)
        except BlockingIOError:
            raise self.gives_up(limits.FORK) from None

    def locate(self, name: str) -> str | None:
        """Return the path of program ``name``, searched along ``PATH`` where it holds no slash."""
        if "/" in name:
            return self.absolute(name) if self.host.vfs.exists(self.absolute(name)) else None
        for place in self.variables.get("PATH", "").split(":"):
            path = f"{place}/{name}"
            if place and self.host.vfs.exists(path):
                node = self.host.vfs.node(path)
                if node.mode & 0o111 and isinstance(node, vfs.Regular):
                    return path
        return None

    def find_program(self, name: str) -> Main:
        """Return the entry point of program ``name``. :raises ProgramNotFound: there is none."""
        path = self.locate(name)
        if path is None:
            if (stand_in := self.host.stand_in(name)) is not None:
                return stand_in
            raise ProgramNotFound(self.messages.not_found(name), NOT_FOUND)
        node = self.host.vfs.node(path)
        if isinstance(node, Executable):
            return node.main
        if isinstance(node, vfs.Regular) and node.mode & 0o111:
            return _script_main(bytes(node.data).decode("utf-8", "replace"))
        is_directory = isinstance(node, vfs.Directory)
        raise ProgramNotFound(self.messages.not_executable(name, is_directory), NOT_EXECUTABLE)


class ProgramNotFound(Exception):
    """A program cannot be started; ``text`` is what the shell says."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


#: Programs that end with something else than 1 where they cannot write.
_STATUS_OF_TROUBLE = {"grep": 2, "ls": 2, "sort": 2}


def call(main: Main, invocation: Invocation) -> int:
    """Run ``main``; return its status, or minus the number of the signal that ended it."""
    try:
        status = main(invocation)
    except ProgramExit as leave:
        status = leave.status
    except Signalled as death:
        return -death.number
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        invocation.complain(f"{limits.BROKEN}: {type(error).__name__}: {error}")
        return limits.BROKEN_STATUS
    except OSError as error:  # standard output cannot take more: what every program says of it
        if isinstance(error, BrokenPipeError):
            raise
        what = "-" if isinstance(error, NotReadable) else "write error"
        invocation.complain(f"{what}: {os.strerror(error.errno or 0)}")
        return _STATUS_OF_TROUBLE.get(invocation.name, 1)
    command_is_over(invocation.streams.stdout)
    return status


def _script_main(text: str) -> Main:
    def main(invocation: Invocation) -> int:
        return run_script(invocation, text, "sh", tuple(invocation.argv[1:]))

    return main


def _stage(shell: Shell, command: Command, output: Pipe, source: object) -> None:
    """Run one stage of a pipeline, then let its neighbours know that it is over."""
    try:
        shell.run_contained((Chain((("", Pipeline((command,))),)),))
    except (BrokenPipeError, Signalled):
        pass
    finally:
        output.close_write()
        if isinstance(source, Pipe):
            source.close_read()


def run_script(
    invocation: Invocation, text: str, name: str, arguments: tuple[str, ...], zero: str = ""
) -> int:
    """Run the script ``text`` in a shell of its own that takes the place of the calling program.

    ``name``: which shell, ``sh`` or ``bash``; ``zero``: what ``$0`` is, where that is another.
    """
    shell = Shell(
        invocation.host,
        invocation.process,
        invocation.streams,
        invocation.env,
        name=name,
        cwd=invocation.cwd,
        arguments=arguments,
        zero=zero,
        depth=invocation.depth,
    )
    return shell.main(text)
