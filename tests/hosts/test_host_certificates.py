"""Certificates of hosts: a real OpenSSH server shows one, and files of known hosts name its authority."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from support.openssh import OpenSsh

from harness.errors import InfrastructureError
from harness.hosts.access import Access, Jump
from harness.hosts.host_trust import HostTrust, NotTrustedError
from harness.hosts.known_hosts import HostAuthority, HostKey, authorities
from harness.hosts.ssh import SshHost

KINDS = {"ed25519": "ssh-ed25519", "ecdsa": "ecdsa-sha2-nistp256", "rsa": "ssh-rsa"}


def keygen(*words: str | Path) -> None:
    subprocess.run(["ssh-keygen", "-q", *words], check=True, stdin=subprocess.DEVNULL, capture_output=True)


class Certified:
    """A server whose only host key is of one kind and has a certificate; and its authority."""

    def __init__(self, folder: Path, kind: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.authority = folder / "authority"
        self.key = folder / "signed_key"
        keygen("-t", "ed25519", "-N", "", "-f", self.authority)
        keygen("-t", kind, "-N", "", "-f", self.key)
        self.certify()
        certificate = f"{self.key}-cert.pub"
        self.server = OpenSsh(folder, settings=f"HostKey {self.key}\nHostCertificate {certificate}\n")

    def certify(
        self, *, name: str = "127.0.0.1", until: str = "+1h", options: tuple[str, ...] = ("-h",)
    ) -> None:
        """Sign the server's key; it shows that from its next start on."""
        named = ("-n", name) if name else ()
        keygen("-s", self.authority, "-I", "host", *options, *named, "-V", f"-2h:{until}", f"{self.key}.pub")

    def access(self, *lines: str) -> Access:
        """Return how it is reached, with ``lines`` in the file of known hosts."""
        known = self.folder / "known"
        known.write_text("".join(f"{line}\n" for line in lines))
        server = self.server
        return Access("127.0.0.1", server.port, server.user, known, key_file=server.key_file)

    def line(self, patterns: str = "127.0.0.*", mark: str = "@cert-authority", of: Path | None = None) -> str:
        """Return a line of a file of known hosts."""
        public = Path(f"{of or self.authority}.pub").read_text()
        return f"{mark} {patterns} {public}".strip()


@pytest.fixture(params=KINDS)
def certified(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Certified]:
    made = Certified(tmp_path / "host", request.param)
    made.server.start()
    yield made
    made.server.stop()


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Certified]:
    made = Certified(tmp_path / "host", "ed25519")
    yield made
    made.server.stop()


def log_in(access: Access) -> None:
    host = SshHost("bench", access)
    try:
        assert host.run(["true"]).exit_code == 0
    finally:
        host.close()


def ssh_logs_in(access: Access) -> bool:
    """Ask OpenSSH's own client."""
    options = {
        "UserKnownHostsFile": access.known_hosts,
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "IdentitiesOnly": "yes",
        "BatchMode": "yes",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    argv = ["ssh", "-F", "/dev/null", *words, "-i", str(access.key_file), "-p", str(access.port)]
    done = subprocess.run([*argv, f"{access.user}@{access.address}", "true"], capture_output=True, timeout=30)
    return done.returncode == 0


def test_a_host_that_an_authority_on_file_has_signed_is_taken(certified: Certified) -> None:
    access = certified.access("other.example ssh-ed25519 AAAA", certified.line())
    log_in(access)
    assert ssh_logs_in(access)


@pytest.mark.parametrize(
    ("patterns", "taken"),
    [
        ("127.0.0.1", True),
        ("*", True),
        ("10.*,127.0.?.1", True),
        ("*,!127.0.0.1", True),  # whose own name has its port
        ("*,!*127.0.0.1*", False),
        ("10.10.7.*", False),
        ("[127.0.0.1]:{port}", True),
        ("[127.0.0.1]:1", False),
    ],
)
def test_an_authority_vouches_for_the_hosts_that_its_line_names(
    one: Certified, patterns: str, taken: bool
) -> None:
    """As OpenSSH's own client has it."""
    one.server.start()
    access = one.access(one.line(patterns.format(port=one.server.port)))
    assert ssh_logs_in(access) is taken
    if taken:
        log_in(access)
        return
    with pytest.raises(InfrastructureError, match=f"is not in {access.known_hosts}"):
        log_in(access)


def test_an_authority_that_is_another_one_is_told(one: Certified, tmp_path: Path) -> None:
    one.server.start()
    keygen("-t", "ed25519", "-N", "", "-f", tmp_path / "other")
    with pytest.raises(InfrastructureError, match="and no @cert-authority on file is that"):
        log_in(one.access(one.line(of=tmp_path / "other")))


@pytest.mark.parametrize(
    ("signed", "why"),
    [
        ({"name": "other.example"}, r"its certificate is for other\.example, and not for 127\.0\.0\.1"),
        ({"name": ""}, "its certificate is for nobody by name"),
        ({"until": "-1h"}, "its certificate holds from .* to .*, and not now"),
        ({"options": ()}, "its certificate is one of a user"),
    ],
    ids=["another host's", "nobody's", "over", "a user's"],
)
def test_a_certificate_that_does_not_hold_is_told(one: Certified, signed: dict[str, str], why: str) -> None:
    one.certify(**signed)  # type: ignore[arg-type]
    one.server.start()
    with pytest.raises(InfrastructureError, match=f"is not taken for itself: {why}") as told:
        log_in(one.access(one.line()))
    assert "@cert-authority" in told.value.hint


@pytest.mark.parametrize(("hashed", "taken"), [("rsa-sha2-256", True), ("ssh-rsa", False)])
def test_what_an_authority_signed_with_sha_1_is_not_taken(one: Certified, hashed: str, taken: bool) -> None:
    """As by OpenSSH's own client (ssh_config(5), CASignatureAlgorithms)."""
    one.authority = one.folder / "rsa_authority"
    keygen("-t", "rsa", "-N", "", "-f", one.authority)
    one.certify(options=("-h", "-t", hashed))
    one.server.start()
    access = one.access(one.line())
    assert ssh_logs_in(access) is taken
    if taken:
        log_in(access)
        return
    with pytest.raises(
        InfrastructureError, match="its certificate is signed with ssh-rsa, which is not taken"
    ):
        log_in(access)


def test_a_key_on_file_is_taken_whatever_its_certificate_is_worth(one: Certified) -> None:
    one.certify(until="-1h")
    one.server.start()
    own = f"[127.0.0.1]:{one.server.port} {Path(f'{one.key}.pub').read_text()}"
    access = one.access(one.line(), own)
    log_in(access)
    assert ssh_logs_in(access)


def test_what_is_revoked_is_refused_whoever_vouches_for_it(one: Certified) -> None:
    one.server.start()
    own = f"[127.0.0.1]:{one.server.port} {Path(f'{one.key}.pub').read_text()}"
    revoked_key = one.access(one.line(), own, one.line("*", "@revoked", of=one.key))
    with pytest.raises(InfrastructureError, match="its key is revoked"):
        log_in(revoked_key)
    assert not ssh_logs_in(revoked_key)
    revoked_authority = one.access(one.line(), one.line("*", "@revoked"))
    with pytest.raises(InfrastructureError, match=r"the authority SHA256:.* of its certificate is revoked"):
        log_in(revoked_authority)
    assert not ssh_logs_in(revoked_authority)


def test_a_certificate_that_was_altered_is_not_taken(one: Certified) -> None:
    """No OpenSSH server shows such a one: it is given to what decides, as a handshake would."""
    one.certify(name="127.0.0.9")
    data = base64.b64decode(Path(f"{one.key}-cert.pub").read_text().split()[1])
    access = one.access(one.line("*"))

    def shown(certificate: bytes, address: str) -> None:
        key = paramiko.Ed25519Key(msg=paramiko.Message(certificate))
        trust = HostTrust(replace(access, address=address))
        trust.missing_host_key(paramiko.SSHClient(), address, key)

    shown(data, "127.0.0.9")
    assert data.count(b"127.0.0.9") == 1
    with pytest.raises(NotTrustedError, match="its certificate cannot be verified"):
        shown(data.replace(b"127.0.0.9", b"127.0.0.1"), "127.0.0.1")


def test_a_jump_host_may_have_one_too(one: Certified, openssh: OpenSsh, access: Access) -> None:
    one.server.start()
    log_in(replace(access, jump=Jump("bastion", one.access(one.line()))))


def test_lines_of_authorities() -> None:
    text = "# none\n@cert-authority *.lab,!bad.lab ssh-ed25519 AAAA comment\n@cert-authority broken\n"
    assert authorities(text) == [HostAuthority(("*.lab", "!bad.lab"), HostKey("ssh-ed25519", "AAAA"))]
    (one,) = authorities(text)
    assert [one.vouches_for(name) for name in ("a.lab", "A.LAB", "bad.lab", "lab", "a.lab.example")] == [
        *(True, True, False, False, False)
    ]
