"""A command of a controller's own, run there over SSH with the login of that controller."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from harness.controlplane.active import Controllers
from harness.controlplane.changes import PermitMaker
from harness.controlplane.faults import command_error
from harness.errors import ControlPlaneError, LinkLostError, LoginRefusedError
from harness.hosts.commands import OPENRC
from harness.hosts.protocol import CommandResult, Host
from harness.judgement.records import Evidence


class Command:
    """One program with the words that it is always given.

    :param name: the controller's name in the inventory. :param controllers: where it may run.
    :param program: such as ``("system", "--os-region-name", "SystemController")``.
    :param deadline: seconds for one command.
    """

    def __init__(
        self, name: str, controllers: Controllers, program: Sequence[str], *, deadline: float = 60.0
    ) -> None:
        self.name = name
        self.controllers = controllers
        self.evidence = Evidence("", "")
        self._program = tuple(program)
        self._deadline = deadline
        self._refused: LoginRefusedError | None = None

    def close(self) -> None:
        """Release the connections to the controllers; may be called twice."""
        self.controllers.close()

    def ask(self, *words: str) -> str:
        """Run a command that reads; return what it showed.

        :raises ControlPlaneError: it failed, or showed nothing at all.
        """
        self._check_login()

        def ask(host: Host) -> str:
            return self._checked(words, host, host.run([*self._program, *words], deadline=self._deadline))

        return self.controllers.on_active(ask)

    def change(
        self,
        words: Sequence[str],
        permits: PermitMaker,
        *,
        host: Host | None = None,
        before: str = "",
        silent: bool = False,
        deadline: float | None = None,
    ) -> str:
        """Run a command that changes something; return what it showed.

        Where a controller asks to confirm, it is told not to: `--yes` is not known to all releases.

        :param host: where it runs, and nowhere else; by default on the active controller.
        :param before: shell text that comes first. :param silent: it may show nothing.
        """
        self._check_login()
        line = shlex.join([*self._program, *words])
        argv = ["bash", "-c", f"{before}source {OPENRC} >&2; CLI_CONFIRMATIONS=disabled {line}"]

        def change(there: Host) -> str:
            permit = permits.command(there.name, argv)
            result = there.run(argv, permit=permit, deadline=deadline or self._deadline)
            return self._checked(words, there, result, silent=silent)

        return change(host) if host is not None else self.controllers.on_active(change)

    def no_success(self, words: Sequence[str], shown: str) -> ControlPlaneError:
        """Return the error that an output is which shows no success, though the command ended well."""
        return ControlPlaneError(
            f"`{self._program[0]} {' '.join(words)}` of {self.name} ended well, and what it showed is no "
            f"success: {' '.join(shown.split())[:200] or 'nothing'}.",
            hint="Look at what the system has before asking again.",
        )

    def _check_login(self) -> None:
        """:raises LoginRefusedError: the login was refused before; not tried again, for accounts lock."""
        if self._refused is not None:
            raise self._refused

    def _checked(
        self, words: Sequence[str], host: Host, result: CommandResult, *, silent: bool = False
    ) -> str:
        what = f"{self._program[0]} {' '.join(words)}"
        self.evidence = Evidence(result.text, what, result.exit_code)
        if result.lost:
            raise LinkLostError(
                f"The link to {host.name} broke while `{what}` ran.",
                hint="Whether a change took place is not known; look before asking again.",
            )
        if result.exit_code != 0:
            said = result.stderr or result.stdout
            error = command_error(self.name, host.name, what, result.exit_code, said)
            self._refused = error if isinstance(error, LoginRefusedError) else None
            raise error
        if not result.stdout and not silent:
            raise ControlPlaneError(
                f"`{what}` of {self.name} ended well, and showed nothing at all.",
                hint="`system` does so where its host lacks /usr/bin/keyctl: install that, or have the "
                "login file export CGTSCLIENT_NO_CACHE=1.",
            )
        return result.stdout
