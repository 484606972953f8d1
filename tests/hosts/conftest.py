"""A real SSH server for the tests of hosts."""

from support.ssh_peer import access, openssh, peer

__all__ = ["access", "openssh", "peer"]
