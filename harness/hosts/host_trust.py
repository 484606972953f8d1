"""Whether a host may have the key that it shows: one on file, or one that an authority on file has signed.

As `ssh` does it (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT; PROTOCOL.certkeys): a key that is on file itself is
taken even where its certificate does not hold, and one that is revoked is refused whoever vouches for it.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import paramiko

from harness.hosts.known_hosts import HostAuthority, HostKey, authorities, keys_of, matches, revoked

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization import SSHCertificate

    from harness.hosts.access import Access

_CERTIFICATE: Final = "-cert-v01@openssh.com"
#: Kind of a key in a file -> what a handshake calls it, without SHA-1.
_ALGORITHMS: Final[Mapping[str, tuple[str, ...]]] = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
#: How an authority may sign: the default of ssh_config(5), CASignatureAlgorithms, without hardware keys.
_SIGNATURES: Final = frozenset(
    {
        *("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
        *("rsa-sha2-512", "rsa-sha2-256"),
    }
)


class NotTrustedError(paramiko.SSHException):
    """What a host has shown is not what it may have; the text says why."""


class UnknownKeyError(paramiko.SSHException):
    """Nothing on file tells whose the key is that a host has shown."""


class ChangedKeyError(paramiko.SSHException):
    """A host has shown another key than the one ``on_file``."""

    def __init__(self, shown: HostKey, on_file: HostKey) -> None:
        super().__init__(f"{shown.fingerprint} is shown, {on_file.fingerprint} is on file")
        self.shown = shown
        self.on_file = on_file


@dataclass(frozen=True, slots=True)
class _File:
    """What a file of known hosts holds."""

    text: str
    authorities: tuple[HostAuthority, ...]
    revoked: frozenset[HostKey]


@lru_cache(maxsize=8)
def _parsed(path: Path, *_: int) -> _File:
    """Return what the file ``path`` held at that moment. A lab has one for all its hosts: it is read once."""
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    return _File(text, tuple(authorities(text)), frozenset(revoked(text)))


class HostTrust(paramiko.MissingHostKeyPolicy):
    """Whom one host is taken for. :raises OSError: its file of known hosts cannot be read."""

    def __init__(self, access: Access) -> None:
        state = access.known_hosts.stat()
        file = _parsed(access.known_hosts, state.st_ino, state.st_mtime_ns, state.st_size)
        self._address = access.address
        self._keys = keys_of(file.text, access.known_as)
        self._authorities = {one.key for one in file.authorities if any(map(one.vouches_for, access.names))}
        self._revoked = file.revoked

    def preferred(self, offered: Iterable[str]) -> list[str]:
        """Return the algorithms of host keys, best first: such as can be told to be the host's."""
        kinds = list(offered)
        on_file = [name for key in self._keys for name in _ALGORITHMS.get(key.kind, (key.kind,))]
        known = [name for name in on_file if name in kinds]
        signed = [f"{kind}{_CERTIFICATE}" for kind in kinds] if self._authorities else []
        return list(dict.fromkeys([*signed, *known, *kinds]))

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Return if the host may have ``key``; the client has none itself, so that all are asked about here.

        :raises NotTrustedError: it is revoked, or its certificate does not hold.
        :raises ChangedKeyError: another one is on file. :raises UnknownKeyError: none is.
        """
        shown = _plain(key)
        if shown in self._revoked:
            raise NotTrustedError("its key is revoked in the file of known hosts")
        why = self._why_not_signed(key) if key.public_blob is not None else ""
        if shown in self._keys or (key.public_blob is not None and not why):
            return
        if self._keys:
            same = (one for one in self._keys if one.kind == shown.kind)
            raise ChangedKeyError(shown, next(same, self._keys[0]))
        if self._authorities and why:
            raise NotTrustedError(why)
        raise UnknownKeyError(hostname)

    def _why_not_signed(self, key: paramiko.PKey) -> str:
        """Return why the certificate that came with ``key`` is not taken; empty where it is."""
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            PublicFormat,
            SSHCertificate,
            SSHCertificateType,
            load_ssh_public_identity,
        )

        blob = key.public_blob
        assert blob is not None
        try:
            shown = load_ssh_public_identity(blob.key_type.encode() + b" " + base64.b64encode(blob.key_blob))
            if not isinstance(shown, SSHCertificate):
                return "what it shows as a certificate is none"
            shown.verify_cert_signature()
            by = shown.signature_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
            own = shown.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        except (ValueError, InvalidSignature, UnsupportedAlgorithm) as error:
            return f"its certificate cannot be verified ({error or type(error).__name__})"
        authority = HostKey(*by.decode().split()[:2])
        if HostKey(*own.decode().split()[:2]) != _plain(key):
            return "its certificate is about another key"
        if authority in self._revoked:
            return f"the authority {authority.fingerprint} of its certificate is revoked"
        if authority not in self._authorities:
            return f"its certificate is of {authority.fingerprint}, and no @cert-authority on file is that"
        if (signature := _signature(blob.key_blob, authority)) not in _SIGNATURES:
            return f"its certificate is signed with {signature}, which is not taken"
        if shown.type is not SSHCertificateType.HOST:
            return "its certificate is one of a user"
        return self._why_not_ours(shown)

    def _why_not_ours(self, shown: SSHCertificate) -> str:
        """Return why a certificate of an authority that is trusted does not hold here and now."""
        named = [name.decode(errors="replace") for name in shown.valid_principals]
        if not any(matches(name, self._address) for name in named):
            who = ", ".join(named) or "nobody by name"
            return f"its certificate is for {who}, and not for {self._address}"
        now = time.time()
        if not shown.valid_after <= now < shown.valid_before:
            since, until = (_day(moment) for moment in (shown.valid_after, shown.valid_before))
            return f"its certificate holds from {since} to {until}, and not now"
        if shown.critical_options:
            return "its certificate has a critical option, and none is known"
        return ""


def _plain(key: paramiko.PKey) -> HostKey:
    """Return the key itself, without the certificate that it may have come with."""
    return HostKey(key.get_name(), key.get_base64())


def _signature(certificate: bytes, authority: HostKey) -> str:
    """Return the algorithm of the signature: a certificate's last field, after the key that made it."""
    _, found, last = certificate.rpartition(base64.b64decode(authority.content))
    signature = paramiko.Message(last).get_binary()
    return (
        paramiko.Message(signature).get_binary().decode(errors="replace") if found else "no known algorithm"
    )


def _day(moment: int) -> str:
    """Return a moment for people; certificates may hold for ever, which is beyond what a clock knows."""
    if moment >= 1 << 40:
        return "ever"
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(moment))
