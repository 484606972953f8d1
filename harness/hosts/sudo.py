"""Runs a shell line as root by sudo: which need it, how the password gets there, what refusals mean."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Sequence
from typing import Final, get_args

from harness.errors import InfrastructureError
from harness.hosts.access import Access
from harness.hosts.commands import LOCALE
from harness.hosts.permits import CardAct
from harness.hosts.protocol import Asked

#: Declared read-only programs that see all of a machine as root only: the kernel's log where
#: `kernel.dmesg_restrict` is set, a card's BMC behind SPI, an engine behind its socket, others' journals.
_ROOT_PROGRAMS: Final = frozenset({"dmesg", "fpgainfo", "docker", "ctr", "journalctl"})
#: Acts on a card and on a service need root. A control plane's commands do not: its login is the user's.
_ROOT_ACTS: Final = frozenset({*get_args(CardAct), "service"}) - {"upload"}
#: What the line says first, once it is root's, on standard error; what sudo itself says comes before it. It
#: also ends what sudo may read of standard input where that brings a file.
MARK: Final = f"hil-root-{secrets.token_hex(8)}"

_MEANINGS: Final = (
    (
        re.compile("must have a tty"),
        "wants a terminal, and the harness has none",
        "Let it do without:  Defaults:{user} !requiretty  in its sudoers.",
    ),
    (
        re.compile("incorrect password|try again"),
        "refused the password; it was tried once",
        "Check `sudo: {{credentials: ...}}` in the inventory.",
    ),
    (
        re.compile("password is required|no password was provided"),
        "asks {user} for a password, and the inventory names none",
        "Give the host `sudo: {{credentials: {{env: NAME}}}}`, or the user NOPASSWD in its sudoers.",
    ),
    (
        re.compile("not in the sudoers file|is not allowed to|may not run sudo"),
        "does not let {user} run this as root",
        "Let it:  {user} ALL=(root) ALL  in its sudoers.",
    ),
    (
        re.compile(r"sudo: (?:command )?not found|sudo: No such file"),
        "is not there",
        "Install it, or log in as root.",
    ),
)


def needs_root(commands: Sequence[Asked]) -> bool:
    """Return whether one of ``commands`` needs root on the host."""
    return any(
        asked.permit.act in _ROOT_ACTS if asked.permit is not None else _program(asked) in _ROOT_PROGRAMS
        for asked in commands
    )


def _program(asked: Asked) -> str:
    return str(asked.argv[0]).rsplit("/", 1)[-1] if asked.argv else ""


def root_line(line: str, access: Access, *, fed: bool = False) -> str:
    """Return the line that runs the shell line ``line`` as root.

    The password is read from standard input where sudo asks for one; where it does not, nobody sees it.

    :param fed: standard input goes on with what ``line`` reads, after a line :data:`MARK`.
    """
    rest = f'while IFS= read -r line && [ "$line" != {MARK} ]; do :; done' if fed else "exec </dev/null"
    inner = shlex.quote(f"echo {MARK} >&2; {rest}; {line}")
    asks = "-S -p ''" if access.sudo is not None and access.sudo.password is not None else "-n"
    return f"{LOCALE} exec sudo {asks} -- sh -c {inner}"


def first_words(access: Access, *, fed: bool) -> bytes:
    """Return what goes to standard input before all else."""
    password = access.sudo.password if access.sudo is not None else None
    return (f"{password}\n" if password is not None else "").encode() + (f"{MARK}\n".encode() if fed else b"")


def without_mark(complained: bytes) -> tuple[bool, bytes]:
    """Return whether the line was begun as root, and what it said on standard error itself."""
    before, mark, after = complained.partition(f"{MARK}\n".encode())
    return bool(mark), after if mark else before


def refusal(name: str, user: str, complained: bytes, exit_code: int) -> InfrastructureError:
    """Return the error that sudo's words on the host ``name`` stand for."""
    said = complained.decode(errors="replace").strip()
    last = said.rsplit("\n", 1)[-1][-200:]
    for pattern, meaning, hint in _MEANINGS:
        if pattern.search(said):
            return InfrastructureError(
                f"sudo on {name} {meaning.format(user=user)}: {last!r}; nothing was run.",
                hint=hint.format(user=user),
            )
    return InfrastructureError(
        f"sudo on {name} did not run what needs root (exit code {exit_code}): {last or 'it said nothing'!r}.",
        hint=f"Try it there:  sudo -v  as {user}.",
    )
