"""Logs in with what an SSH agent holds: keys, and certificates as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import paramiko
from paramiko.agent import AgentKey
from paramiko.auth_strategy import AuthResult, AuthSource, AuthStrategy, InMemoryPrivateKey, SourceResult

_CERTIFICATE: Final = "-cert-v01@openssh.com"


class NoAgentKeysError(paramiko.SSHException):
    """There is nothing to log in with; the text says why."""


class _Certified(AgentKey):
    """A certificate in an agent. Paramiko takes those of RSA for the key in them, which no server knows."""

    def asbytes(self) -> bytes:
        """Return the certificate: the server is to see it, and the agent knows its key by it."""
        return self.blob


class AgentLogin(AuthStrategy):
    """Tries all that the agent holds, certificates first: a server closes the connection after a few tries.

    :raises NoAgentKeysError: it holds nothing, or there is none.
    """

    def __init__(self, user: str) -> None:
        super().__init__(paramiko.SSHConfig())
        self._user = user
        try:
            self._agent = paramiko.Agent()
        except (paramiko.SSHException, OSError) as error:
            raise NoAgentKeysError(f"the agent does not answer: {error}") from None
        self._keys = sorted(self._agent.get_keys(), key=lambda key: not _is_certificate(key))
        if not self._keys:
            self.close()
            raise NoAgentKeysError("there is no agent at SSH_AUTH_SOCK, or it holds no key")

    def get_sources(self) -> Iterator[AuthSource]:
        """Yield each key and certificate."""
        for key in self._keys:
            held = _Certified(key.agent, key.blob, key.comment) if _is_certificate(key) else key
            yield InMemoryPrivateKey(self._user, held)

    def authenticate(self, transport: paramiko.Transport) -> AuthResult:
        """Return once the server has taken one of them.

        :raises paramiko.SSHException: it took none: what it said of the last; or the link broke.
        """
        tried = AuthResult(self)
        for source in self.get_sources():
            try:
                tried.append(SourceResult(source, source.authenticate(transport)))
                return tried
            except paramiko.SSHException as error:
                refused = error
                if not transport.is_active():
                    break
        raise refused

    def close(self) -> None:
        """Let go of the agent."""
        self._agent.close()


def _is_certificate(key: AgentKey) -> bool:
    return bool(key.get_name().endswith(_CERTIFICATE))
