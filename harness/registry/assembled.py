"""A registry with its token service and certificate authority, put together as a lab has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from harness.errors import InfrastructureError
from harness.registry.configuration import RegistrySettings
from harness.registry.folder import TemporaryFolder
from harness.registry.process import ProcessRegistry, find_registry
from harness.registry.service import How, Restart
from harness.registry.store import LocalStore
from harness.registry.tls import LabAuthority, pem
from harness.registry.token_service import Account, TokenService
from harness.registry.tokens import Algorithm, KeyGeneration, KeyRing
from harness.registry.truth_probe import TruthProbe
from harness.registry.wire import Endpoint, Minted

Service = Literal["registry", "tokens"]

#: Who may do everything, as StarlingX's sysinv may; the password is of labs only.
ACCOUNT = "sysinv"
PASSWORD = "lab-only"


#: Makes a registry in a folder, with settings.
RegistryMaker = Callable[[Path, RegistrySettings], ProcessRegistry]


def as_process(program: Path) -> RegistryMaker:
    """Return what makes a registry that is a plain process of ``program``."""
    return lambda folder, settings: ProcessRegistry(folder, settings, program=program)


class RegistryLab:
    """A certificate authority, a token service and a registry that trusts it, on loopback.

    :param folder: where everything is kept; a temporary one that goes with it where none is given.
    :param settings: of the registry; certificate and tokens are filled in.
    :param guarded: whether the registry asks for tokens; else everybody may do everything.
    :param program: the registry's program.
    :raises InfrastructureError: the folder cannot be filled, such as on a full disk.
    :raises BlockedError: the program is not here and cannot be got.
    """

    def __init__(
        self,
        folder: Path | None = None,
        settings: RegistrySettings | None = None,
        *,
        accounts: Mapping[str, Account] | None = None,
        algorithm: Algorithm = "ES256",
        tls: bool = True,
        guarded: bool = True,
        program: Path | None = None,
        make: RegistryMaker | None = None,
    ) -> None:
        self._guarded = guarded
        make = make or as_process(program or find_registry())
        self._temporary: TemporaryFolder | None = None
        if folder is None:
            self._temporary = TemporaryFolder("hil-registry-")
            folder = self._temporary.path
        self.folder = folder
        settings = settings or RegistrySettings()
        try:
            self.authority = LabAuthority(self.folder / "tls")
            self.keys = KeyRing(self.folder / "keys", algorithm)
            self.tokens = TokenService(
                self.keys,
                accounts or {ACCOUNT: Account(PASSWORD)},
                tls=self.authority.issue("token") if tls else None,
                address=settings.address,
            )
            identity = self.authority.issue("registry") if tls else None
            self._settings = replace(settings, tls=identity)
            self.registry = make(self.folder / "registry", self._settings)
        except BaseException as error:
            if self._temporary:
                self._temporary.close()
            if isinstance(error, OSError):
                raise InfrastructureError(
                    f"The folder of the registry cannot be filled: {error.filename or self.folder}: "
                    f"{error.strerror}.",
                    hint="Temporary files are kept where TMPDIR says.",
                ) from None
            raise

    def __enter__(self) -> RegistryLab:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self, *, realm: str = "") -> None:
        """Start the token service, where it does not run yet, then the registry.

        :param realm: the URL at which clients are told to get tokens; by default the service's own.
        :raises InfrastructureError: one of them does not start.
        """
        if not self.tokens.runs:
            self.tokens.start()
        trust = self.tokens.trust(realm=realm) if self._guarded else None
        self.registry.settings = replace(self._settings, tokens=trust)
        self.registry.start()

    @property
    def endpoint(self) -> Endpoint:
        """Where the registry answers."""
        return self.registry.endpoint

    @property
    def insider(self) -> Minted:
        """Gets into the registry with the key that it trusts now, whatever the token service does."""
        return Minted(
            lambda service, scope: self.tokens.mint(ACCOUNT, scope.split(), generation=self.trusted)
        )

    @property
    def probe(self) -> TruthProbe:
        """Reads the truth of images, whatever state tokens are in."""
        return TruthProbe(self.registry, LocalStore(Path(self.registry.storage)), self.insider)

    @property
    def trusted(self) -> KeyGeneration:
        """The newest generation of keys that the registry read when it started."""
        read = self.registry.bundle_read
        known = [each for each in self.keys.generations if pem(each.certificate) in read]
        return known[-1] if known else self.keys.installed

    def rotate(
        self,
        order: Sequence[Service] = ("registry", "tokens"),
        *,
        how: How = "TERM",
        held: str = "",
    ) -> Restart | None:
        """Put a new token key and a new certificate in place and restart services in this order.

        One that is not in ``order`` goes on with what it has. The second field report's order is
        registry first: until the token service follows, fresh tokens are still signed with the old key.

        :returns: the registry's restart; None where it was not restarted.
        """
        self.keys.rotate()
        if self._settings.tls is not None:
            self.authority.issue("registry")
        done = None
        for service in order:
            if service == "registry":
                done = self.registry.restart(how, held=held)
            else:
                self.tokens.restart()
        return done

    def close(self) -> None:
        """End everything; may be called twice."""
        self.registry.close()
        self.tokens.close()
        if self._temporary:
            self._temporary.close()
