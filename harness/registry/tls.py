"""The lab's own certificate authority, made at start: certificates for the registry and its token service."""

from __future__ import annotations

import datetime
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

_DAY = datetime.timedelta(days=1)
#: What a registry of a lab is called: StarlingX's names, and what loopback is reached by.
LAB_NAMES = ("registry.local", "registry.central", "localhost")
LAB_ADDRESSES = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """A server's certificate chain and private key, as PEM files; the key is for its owner alone.

    ``authority``: what a client is to trust; None: what its machine trusts anyway.
    """

    certificate: Path
    key: Path
    authority: Path | None = None


class LabAuthority:
    """A certificate authority for one lab; its key is in memory only and goes with the process.

    :param folder: where ``ca.crt`` and what is issued are written; made where it is missing.
    :param name: the common name of the authority.
    """

    def __init__(self, folder: Path, name: str = "hil lab CA") -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = _certificate(name, self._key, None, valid=(-1, 3650))
        folder.mkdir(parents=True, exist_ok=True)
        #: What a client is to trust.
        self.file = folder / "ca.crt"
        self.file.write_bytes(pem(self._certificate))

    def issue(
        self,
        stem: str,
        *,
        names: tuple[str, ...] = LAB_NAMES,
        addresses: tuple[str, ...] = LAB_ADDRESSES,
        valid: tuple[float, float] = (-1, 365),
    ) -> ServerIdentity:
        """Return a new server certificate in ``STEM.crt`` and ``STEM.key``; replaces what is there.

        :param names: host names that it is for. :param addresses: IP addresses that it is for.
        :param valid: from when to when, in days from now; both in the past makes an expired one.
        """
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        issuer = (self._certificate, self._key)
        made = _certificate((*names, *addresses)[0], key, issuer, names, addresses, valid)
        identity = ServerIdentity(self._folder / f"{stem}.crt", self._folder / f"{stem}.key", self.file)
        write_private(identity.key, key_pem(key))
        identity.certificate.write_bytes(pem(made) + pem(self._certificate))
        return identity


def _certificate(
    name: str,
    key: EllipticCurvePrivateKey,
    issuer: tuple[x509.Certificate, EllipticCurvePrivateKey] | None,
    names: tuple[str, ...] = (),
    addresses: tuple[str, ...] = (),
    valid: tuple[float, float] = (-1, 365),
) -> x509.Certificate:
    """Return a certificate for ``key``: an authority's without ``issuer``, else a server's."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    authority = issuer is None
    above, signer = issuer if issuer else (None, key)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(above.subject if above else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + valid[0] * _DAY)
        .not_valid_after(now + valid[1] * _DAY)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if authority:
        builder = builder.add_extension(_usage_of_an_authority(), critical=True)
    else:
        entries: list[x509.GeneralName] = [x509.DNSName(entry) for entry in names]
        entries += [x509.IPAddress(ipaddress.ip_address(entry)) for entry in addresses]
        builder = builder.add_extension(x509.SubjectAlternativeName(entries), critical=False)
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
    return builder.sign(signer, hashes.SHA256())


def _usage_of_an_authority() -> x509.KeyUsage:
    """Return what RFC 5280, 4.2.1.3 has an authority state; Python 3.13 refuses one that does not."""
    from cryptography import x509

    signs = {"key_cert_sign", "crl_sign"}
    others = {
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
        *("key_agreement", "encipher_only", "decipher_only"),
    }
    return x509.KeyUsage(**{name: name in signs for name in signs | others})


def pem(certificate: x509.Certificate) -> bytes:
    """Return ``certificate`` in PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def key_pem(key: CertificateIssuerPrivateKeyTypes) -> bytes:
    """Return the private ``key`` in PEM (PKCS #8), without a password."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def write_private(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` so that at no moment anybody but its owner can read it."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)
