"""Finds the secret that an inventory refers to: environment, a private file, a key file or an agent."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import ConfigurationError
from harness.inventory.entries import Credential, Passphrase

_LONGEST_PASSWORD = 4096


@dataclass(frozen=True, slots=True)
class Login:
    """What proves who we are: a password, a private key file, or the keys of a running SSH agent."""

    password: str | None = field(default=None, repr=False)
    key_file: Path | None = None
    agent: bool = False
    passphrase: str | None = field(default=None, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never reach a record, a log or a report."""
        return tuple(secret for secret in (self.password, self.passphrase) if secret)


def resolve(credential: Credential, environ: Mapping[str, str] | None = None) -> Login:
    """Return the login that ``credential`` refers to.

    :param environ: stands in for ``os.environ``.
    :raises ConfigurationError: the variable is unset, the file is missing, empty or open to others,
        or no agent runs; the message never holds a secret.
    """
    environ = os.environ if environ is None else environ
    if credential.is_password:
        return Login(password=_secret(credential, "password", environ))
    if credential.key_file is not None:
        opens = credential.passphrase
        passphrase = None if opens is None else _secret(opens, "passphrase", environ)
        return Login(key_file=_private(credential.key_file, "key file"), passphrase=passphrase)
    if not environ.get("SSH_AUTH_SOCK"):
        raise ConfigurationError(
            "The inventory refers to an SSH agent, and none runs (SSH_AUTH_SOCK is not set).",
            hint="Start one and add the key: eval $(ssh-agent) && ssh-add",
        )
    return Login(agent=True)


def _secret(found: Credential | Passphrase, what: str, environ: Mapping[str, str]) -> str:
    """Return the password or passphrase that the variable or the file of ``found`` holds."""
    if found.env is not None:
        secret = environ.get(found.env)
        if not secret:
            raise ConfigurationError(
                f"The environment variable {found.env} holds no {what}; it is unset or empty.",
                hint=f"Set it for this shell only: read -rs {found.env} && export {found.env}",
            )
        return secret
    assert found.file is not None
    return _password_in(_private(found.file, f"{what} file"))


def _password_in(file: Path) -> str:
    with file.open("rb") as stream:
        content = stream.read(_LONGEST_PASSWORD + 1)
    try:
        password = content.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigurationError(f"The password file {file} is not UTF-8 text.") from None
    if not password:
        raise ConfigurationError(f"The password file {file} is empty.")
    if len(content) > _LONGEST_PASSWORD or "\n" in password:
        raise ConfigurationError(
            f"The password file {file} holds more than one line.",
            hint="A private key is referred to with key_file.",
        )
    return password


def _private(path: Path, what: str) -> Path:
    """Return ``path`` once it is shown that nobody but its owner, who is us, can read it."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # opening anything else could wait for ever
            raise ConfigurationError(f"The {what} {path} is not a regular file.")
        path.open("rb").close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"The {what} {path} cannot be read: {reason}.") from None
    if status.st_uid not in (os.geteuid(), 0):
        raise ConfigurationError(
            f"The {what} {path} belongs to another user (uid {status.st_uid}).",
            hint="Use a file of your own: whoever owns it can change what we log in with.",
        )
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigurationError(
            f"The {what} {path} is open to others (mode {stat.S_IMODE(status.st_mode):04o}).",
            hint=f"Close it: chmod 600 {path}",
        )
    return path
