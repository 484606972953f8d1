"""Whom TLS clients trust: what labs have, also with the Python that refuses it."""

import datetime
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness.registry.tls import LabAuthority, ServerIdentity, key_pem, pem
from harness.tls_trust import client_context

HARNESS = Path(__file__).parents[1] / "harness"
#: What Python 3.13 added to a default context (What's New in Python 3.13, ssl).
OF_3_13 = ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN


def certificate(
    name: str, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    """Return a certificate by the authority of ``signer``, or that one itself where the keys are the same."""
    now = datetime.datetime.now(datetime.UTC)
    of_name, of_authority = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (name, "site CA")
    )
    above = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(of_name)
        .issuer_name(of_authority)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=key is signer, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(above, critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(signer, hashes.SHA256())
    )


def without_key_usage(folder: Path) -> ServerIdentity:
    """Make the certificate of a server, by an authority that states no key usage."""
    of_site, of_server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    identity = ServerIdentity(folder / "server.crt", folder / "server.key", folder / "site.crt")
    identity.certificate.write_bytes(pem(certificate("registry.local", of_server, of_site)))
    identity.key.write_bytes(key_pem(of_server))
    (folder / "site.crt").write_bytes(pem(certificate("site CA", of_site, of_site)))
    return identity


def shake_hands(client: ssl.SSLContext, identity: ServerIdentity) -> None:
    """Let ``client`` meet a server in memory. :raises ssl.SSLCertVerificationError: it does not trust it."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(identity.certificate, identity.key)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="registry.local"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in tuple(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)


@pytest.fixture
def newer_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Default contexts are as those of Python 3.13, whichever runs."""
    made = ssl.create_default_context

    def strict(*, cafile: Path | None = None) -> ssl.SSLContext:
        context = made(cafile=cafile)
        context.verify_flags |= OF_3_13
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    yield


@pytest.mark.usefixtures("newer_python")
def test_an_authority_without_key_usage_is_trusted_by_every_python(tmp_path: Path) -> None:
    identity = without_key_usage(tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(ssl.create_default_context(cafile=identity.authority), identity)
    shake_hands(client_context(identity.authority), identity)


def test_an_authority_that_is_not_named_is_not_trusted(tmp_path: Path) -> None:
    other = LabAuthority(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client_context(other.file), without_key_usage(tmp_path))


@pytest.mark.usefixtures("newer_python")
def test_what_the_emulated_lab_issues_keeps_to_the_letter(tmp_path: Path) -> None:
    authority = LabAuthority(tmp_path)
    shake_hands(ssl.create_default_context(cafile=authority.file), authority.issue("registry"))


def test_no_client_of_the_harness_makes_a_context_of_its_own() -> None:
    using = [path.name for path in HARNESS.rglob("*.py") if "create_default_context(" in path.read_text()]
    assert using == ["tls_trust.py"]
