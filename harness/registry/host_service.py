"""A registry that a service manager keeps on a host, under the same protocol as one of our own."""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.errors import BlockedError, DeadlineError, HarnessError
from harness.registry.controlled import Controlled
from harness.registry.host_undo import HostUndo
from harness.registry.logs import LogEntry, parse_log
from harness.registry.managers import Hands, Manager
from harness.registry.service import How, Instance, Restart
from harness.registry.wire import Endpoint, Wire

#: Seconds after which a paused registry goes on by itself, should we be gone.
PAUSE_AT_MOST = 120
#: The same for one that was stopped or takes no writes; longer than a garbage collection may take.
CHANGED_AT_MOST = 900
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 0.5


class HostRegistry(Controlled):
    """A registry on a host. What this object changed, :meth:`close` undoes.

    :param hands: acts on the host. :param manager: what keeps the registry there.
    :param endpoint: where it answers. :param storage: the folder of its store, on the host.
    :param program: the registry's program there, for garbage collection.
    """

    def __init__(
        self,
        hands: Hands,
        manager: Manager,
        endpoint: Endpoint,
        storage: str,
        *,
        program: str = "docker-registry",
        name: str = "",
    ) -> None:
        super().__init__(name or f"registry on {hands.host.name}")
        self._hands = hands
        self._manager = manager
        self._endpoint = endpoint
        self._storage = storage
        self._program = program
        self._instance: Instance | None = None
        self._count = 0
        self._paused: int | None = None
        self._read_only = False
        self._stopped = False
        self._undo = HostUndo(hands)

    @property
    def endpoint(self) -> Endpoint:
        """Where it answers."""
        return self._endpoint

    @property
    def storage(self) -> str:
        """The folder of its store, on the host."""
        return self._storage

    @property
    def instance(self) -> Instance | None:
        """The process that runs now, as the host says; ``started`` is when it was first seen."""
        with self._control:
            pid = self._manager.pid()
            if pid is None:
                self._instance = None
            elif self._instance is None or self._instance.pid != pid:
                self._count += 1
                self._instance = Instance(pid, self._count, time.time(), self._read_only)
            return self._instance

    # -- start and end ------------------------------------------------------------------------------

    def start(self, *, deadline: float = 60.0) -> Instance:
        """Have it started, where it does not run, and return when it answers."""
        with self._control:
            if self._manager.pid() is None:
                self._manager.start()
            self._stopped = False
            self._undo.disarm("stop")
            return self._wait_another(None, deadline)

    def wait_ready(self, *, deadline: float = 60.0) -> None:
        """Return when it runs and answers. :raises DeadlineError: it does not in time."""
        self._wait_another(None, deadline)

    def stop(self, *, deadline: float = 60.0) -> None:
        """Have it stopped; the host starts it again after :data:`CHANGED_AT_MOST` seconds, if we do not."""
        with self._control:
            if self._manager.pid() is not None:
                self._undo.arm("stop", self._manager.undo_of_stop(), CHANGED_AT_MOST)
                self._stopped, self._paused = True, None
                self._manager.stop()
                self._wait_gone(deadline)

    def kill(self) -> None:
        """End its process with a KILL and return when that has ended.

        A manager that starts it again does so by itself: see :meth:`wait_ready`.
        """
        with self._control:
            pid = self._manager.pid()
            if pid is not None:
                self._hands.do(["kill", "-KILL", str(pid)], "kill the registry")
                self._paused = None
                self._wait(lambda: self._manager.pid() != pid, f"process {pid} to end", 10.0)

    def restart(
        self,
        how: How = "TERM",
        *,
        held: str = "",
        between: Callable[[], None] | None = None,
        deadline: float = 60.0,
    ) -> Restart:
        """Have it restarted (KILL: kill it and have it started) and return when another process answers.

        :raises InfrastructureError: it does not run.
        """
        return self._restart(how, held, between, deadline)

    def _restart(self, how: How, held: str, between: Callable[[], None] | None, deadline: float) -> Restart:
        with self._control:
            before = self._running()
            began = time.monotonic()
            if how == "KILL":
                self.kill()
                if between is not None:
                    between()
                self._start_again()
            else:
                self._manager.restart(between)
            self._paused = None
            after = self._wait_another(before.pid, deadline)
            word = "KILL" if how == "KILL" else self._manager.restarts_by
            done = Restart(before, after, word, held, time.monotonic() - began)
            self._restarts.append(done)
            return done

    def _start_again(self) -> None:
        try:
            if self._manager.pid() is None:
                self._manager.start()
        except BlockedError:
            # Its manager does it by itself, when it notices.
            return

    def read_only(self, on: bool, *, deadline: float = 60.0) -> Restart:
        """Change its configuration and restart it.

        The host lets it take writes again after :data:`CHANGED_AT_MOST` seconds, if we do not.
        """
        with self._control:
            if on:
                self._undo.arm("read-only", self._manager.undo_of_read_only(), CHANGED_AT_MOST)
                self._read_only = True
            self._manager.set_read_only(on)
            self._read_only = on
            if not on:
                self._undo.disarm("read-only")
            return self._restart("TERM", "", None, deadline)

    # -- disturbances -------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop its process where it stands.

        First something on the host is armed that lets it go on after :data:`PAUSE_AT_MOST` seconds: the
        undo does not need us.
        """
        with self._control:
            pid = self._running().pid
            self._undo.arm("pause", f"kill -CONT {pid}", PAUSE_AT_MOST)
            self._hands.do(["kill", "-STOP", str(pid)], "pause the registry")
            self._paused = pid

    def resume(self) -> None:
        """Let a paused process go on."""
        with self._control:
            if self._paused is not None:
                pid, self._paused = self._paused, None
                # One that has ended meanwhile is not paused any more either.
                self._hands.run(["kill", "-CONT", str(pid)], "let the registry go on")
            self._undo.disarm("pause")

    def _collected(self, options: list[str], deadline: float) -> tuple[int, str]:
        result = self._hands.run(
            [self._program, "garbage-collect", *options, self._manager.configuration()],
            "collect the registry's garbage",
            deadline=deadline,
        )
        return result.exit_code, result.text

    # -- what it says -------------------------------------------------------------------------------

    def log_mark(self) -> str:
        """Return how many lines its log has now."""
        return str(len(self._manager.log_lines(0)))

    def logs(self, since: str = "") -> list[LogEntry]:
        """Return what it has logged since a mark; all that the host still has without one."""
        return list(parse_log(self._manager.log_lines(int(since or 0))))

    # -- waiting ------------------------------------------------------------------------------------

    def _wait_another(self, before: int | None, deadline: float) -> Instance:
        """Return the instance once it is another process than ``before`` and answers."""
        last = "it does not run"

        def answers() -> Instance | None:
            nonlocal last
            found = self.instance
            if found is None or found.pid == before:
                last = "it does not run" if found is None else f"process {found.pid} still runs"
                return None
            try:
                with Wire(self._endpoint) as wire, wire.get("/v2/", deadline=5.0) as answer:
                    last = f"it answers /v2/ with {answer.status}"
                    return found if answer.status in (200, 401) else None
            except HarnessError as error:
                last = error.message
                return None

        end = time.monotonic() + deadline
        pause = _FIRST_PAUSE
        while (found := answers()) is None:
            if time.monotonic() + pause > end:
                raise DeadlineError(f"Waited {deadline:g} s for the {self._name} to answer; last: {last}.")
            # A service manager on another machine tells nobody when it is done.
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return found

    def _wait_gone(self, deadline: float) -> None:
        self._wait(lambda: self._manager.pid() is None, f"the {self._name} to end", deadline)

    def _wait(self, over: Callable[[], bool], what: str, deadline: float) -> None:
        end = time.monotonic() + deadline
        pause = _FIRST_PAUSE
        while not over():
            if time.monotonic() + pause > end:
                raise DeadlineError(f"Waited {deadline:g} s for {what} on {self._hands.host.name}.")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def close(self) -> None:
        """Undo what was changed: it goes on, takes writes, and runs. The host itself stays open."""
        with self._control:
            self.resume()
            if self._read_only:
                self._manager.set_read_only(False)
                self._read_only = False
                self._undo.disarm("read-only")
                if self._manager.pid() is not None:
                    self._restart("TERM", "", None, 60.0)
            if self._stopped:
                self.start()
