"""A small model of the control plane's conductor: when it installs the registry's certificate."""

from __future__ import annotations

from collections.abc import Callable

#: While an application is in one of these, its images are brought into the registry by the framework
#: itself, and a conductor since 2023-03 defers the certificate (fact sheet of StarlingX, section 7.2).
DOWNLOADING = frozenset({"restore-requested", "applying"})
#: All that sysinv has for an application (sysinv/common/constants.py).
STATES = (
    *("uploading", "upload-failed", "uploaded", "applying", "apply-failed", "applied", "inactive"),
    *("removing", "remove-failed", "updating", "recovering", "missing", "restore-requested"),
)


class Conductor:
    """What upstream's commit message says of the conductor, and no more of it; it is a model, not StarlingX.

    "Consider the condition for deferral to be the present of apps that will have the images downloaded by
    the framework part of restore/upgrade procedure." And: "seems deferrals will be forgotten and not
    attempted after a sysinv-conductor restart." (second field report)

    :param install: puts new keys and certificates in place and restarts registry and token service.
    :param defers: False: as before that commit, it installs whenever it is asked to.
    """

    def __init__(self, install: Callable[[], object], *, defers: bool) -> None:
        self._install = install
        self.defers = defers
        self._deferred = False
        #: Application -> its state; kept in the database, so a restart does not lose it.
        self.applications: dict[str, str] = {}

    def install_certificate(self) -> str:
        """Take the request to install a certificate, and return in words what became of it."""
        busy = sorted(name for name, state in self.applications.items() if state in DOWNLOADING)
        if self.defers and busy:
            self._deferred = True
            return f"deferred: {', '.join(f'{name} is {self.applications[name]}' for name in busy)}"
        self._deferred = False
        self._install()
        return "installed: the registry was restarted, then the token service"

    def audit(self) -> str:
        """Do what was deferred, as the periodic audit does; return in words what became of it."""
        return self.install_certificate() if self._deferred else "nothing is deferred"

    def restart(self) -> None:
        """Forget what is kept in memory only: that something is deferred."""
        self._deferred = False
