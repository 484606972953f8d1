"""Programs of the distribution that a run needs: found, installed, or unpacked without root."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.errors import BlockedError

#: Takes one line for the person who watches: what is being done to the machine, and why.
Say = Callable[[str], None]

_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
#: Where an unpacked package has its programs.
_PROGRAMS = ("usr/bin", "usr/sbin", "bin", "sbin")
_APT_SECONDS = 300.0
#: Where systemd runs; there, installing a package of a service would start it.
_SYSTEMD = Path("/run/systemd/system")
#: The units of packages that do not have one of their own name.
_UNITS = {"docker.io": ("docker.service", "docker.socket", "containerd.service")}


class PackageError(Exception):
    """apt or dpkg could not do what was asked; the text is the last that it said."""


def tools_folder() -> Path:
    """Return where unpacked packages are kept: beside the project's source, else in the user's cache."""
    source = Path(__file__).resolve().parents[1]
    if (source / "pyproject.toml").exists():
        return source / ".tools"
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "hil-harness"


_HEARERS: list[Say] = []


@contextmanager
def heard_by(say: Say) -> Iterator[None]:
    """Have ``say`` told what is done to the machine: a run's standard error is captured."""
    _HEARERS.append(say)
    try:
        yield
    finally:
        _HEARERS.remove(say)


def say_aloud(line: str) -> None:
    """Tell the person in front of the terminal."""
    if _HEARERS:
        _HEARERS[-1](line)
    else:
        print(line, file=sys.stderr, flush=True)


def installed(program: str) -> Path | None:
    """Return where ``program`` is, in PATH or in a folder of system programs; None where it is not."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_FOLDERS}")
    return Path(found) if found else None


def provide(
    program: str,
    package: str,
    *,
    install: bool = True,
    say: Say = say_aloud,
    folder: Path | None = None,
) -> Path:
    """Return the path of ``program``, and get it from the Debian or Ubuntu ``package`` where it is missing.

    In this order: what is in PATH; ``apt-get install``, as root or by a sudo that asks for no password;
    the package and what it needs, unpacked into ``folder`` (by default one of its own in
    :func:`tools_folder`).

    :param install: whether the package may be installed on the machine; else it is only unpacked.
    :raises BlockedError: none of these gives it; the message has the command that helps.
    """
    found = installed(program)
    if found:
        return found
    complaints: list[str] = []
    if install and _root_prefix() is not None:
        try:
            install_packages([package], say=say)
        except PackageError as error:
            complaints.append(f"apt-get install: {error}")
        else:
            found = installed(program)
            if found:
                return found
            complaints.append(f"the package {package} is installed, and {program} is still not in PATH")
    try:
        root = unpacked([package], folder or tools_folder() / package, say=say)
    except PackageError as error:
        complaints.append(f"apt-get download: {error}")
    else:
        found = next((root / part / program for part in _PROGRAMS if (root / part / program).exists()), None)
        if found:
            return found
        complaints.append(f"the package {package} holds no program {program}")
    raise BlockedError(
        f"The program {program} is missing, and it could not be got ({'; '.join(complaints)}).",
        hint=f"Install it:  sudo apt-get install {package}",
    )


def install_packages(packages: Sequence[str], *, say: Say = say_aloud) -> None:
    """Install ``packages`` on this machine, without starting the services that they bring.

    :raises PackageError: apt could not, or nobody here is root.
    """
    prefix = _root_prefix()
    if prefix is None:
        raise PackageError("neither root nor a sudo that asks for no password")
    say(f"Installing {' '.join(packages)} with apt-get {'through sudo' if prefix else 'as root'}.")
    apt = [*prefix, *_ENVIRONMENT, "apt-get", "-o", "DPkg::Lock::Timeout=120"]
    _run([*apt, "update"])
    with _services_kept_down(packages, prefix):
        _run([*apt, "install", "-y", "--no-install-recommends", *packages])


_ENVIRONMENT = ("env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")


@contextmanager
def _services_kept_down(packages: Sequence[str], prefix: Sequence[str]) -> Iterator[None]:
    """Keep the services that a package brings from being started, now and at the next boot."""
    named = [unit for package in packages for unit in _UNITS.get(package, (f"{package}.service",))]
    units = named if _SYSTEMD.exists() else []
    if units:
        _run([*prefix, "systemctl", "mask", *units])
    try:
        yield
    finally:
        if units:
            _run([*prefix, "systemctl", "unmask", *units])
            # A package without a unit of this name has nothing to disable.
            subprocess.run([*prefix, "systemctl", "disable", *units], capture_output=True, check=False)


def _root_prefix() -> tuple[str, ...] | None:
    """Return what makes a command run as root; None where nothing does or there is no apt."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return ()
    if shutil.which("sudo") is None:
        return None
    asked = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False)
    return ("sudo", "-n") if asked.returncode == 0 else None


def unpacked(packages: Sequence[str], folder: Path, *, say: Say = say_aloud) -> Path:
    """Return the root below which ``packages`` are unpacked in ``folder``, once for all processes.

    What they need is unpacked with them where this machine lacks it.

    :raises PackageError: they cannot be fetched or unpacked.
    """
    root = folder / "root"
    if root.is_dir():
        return root
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if root.is_dir():
                return root
            say(f"Unpacking {' '.join(packages)} into {folder}; nothing is installed.")
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                archive = Archive(Path(scratch))
                built = Path(scratch) / "root"
                archive.unpack([*packages, *archive.missing(packages)], built)
                built.rename(root)
    except OSError as error:
        raise PackageError(f"{error.filename or folder}: {error.strerror}") from None
    return root


class Archive:
    """apt with lists and cache in a folder of ours, so that it needs no root and changes nothing."""

    def __init__(self, work: Path) -> None:
        """Fetch the lists of packages. :raises PackageError: they cannot be fetched."""
        self._work = work
        for name in ("lists/partial", "cache/archives/partial", "debs"):
            (work / name).mkdir(parents=True)
        self._apt("update")

    def missing(self, packages: Sequence[str]) -> list[str]:
        """Return what ``packages`` need and this machine has not, without themselves.

        :raises PackageError: apt does not know them.
        """
        try:
            needed = _added(self._simulate(packages))
        except PackageError:
            # What is here from elsewhere may keep them from being installed, and not from being unpacked.
            here = _run(["dpkg-query", "--show", "--showformat=${db:Status-Abbrev} ${Package}\\n"])
            bare = self._simulate(packages, "-o", "Dir::State::status=/dev/null")
            needed = _without_installed(_added(bare), here)
        return [name for name in needed if name not in packages]

    def _simulate(self, packages: Sequence[str], *options: str) -> str:
        return self._apt("--simulate", "--no-install-recommends", *options, "install", *packages)

    def unpack(self, packages: Sequence[str], root: Path) -> None:
        """Unpack ``packages`` below ``root``. :raises PackageError: one cannot be fetched or unpacked."""
        self._apt("download", *packages)
        for deb in sorted((self._work / "debs").glob("*.deb")):
            _run(["dpkg", "-x", str(deb), str(root)])

    def _apt(self, *words: str) -> str:
        options = (
            f"Dir::State::Lists={self._work}/lists",
            f"Dir::Cache={self._work}/cache",
            "Debug::NoLocking=1",
            "APT::Sandbox::User=",
        )
        given = [part for option in options for part in ("-o", option)]
        return _run([*_ENVIRONMENT, "apt-get", *given, *words], folder=self._work / "debs")


def _added(simulated: str) -> list[str]:
    """Return the packages that ``apt-get --simulate install`` says it would add.

    Its lines are ``Inst NAME (VERSION ...)``, and ``Inst NAME [INSTALLED] (VERSION ...)`` for one that is
    here in another version, which does: a C library other than the machine's own would not even load.
    """
    return re.findall(r"^Inst (\S+) \(", simulated, re.MULTILINE)


def _without_installed(packages: Sequence[str], status: str) -> list[str]:
    """Return ``packages`` without those that are installed, by lines ``ii  NAME`` of dpkg-query."""
    here = set(re.findall(r"^.i\s+(\S+)$", status, re.MULTILINE))
    return [name for name in packages if name not in here]


def library_path(root: Path) -> dict[str, str]:
    """Return the variable by which programs unpacked below ``root`` find the libraries there.

    Some packages still bring theirs in ``/lib``. Modules of programs, which are not named lib, are not meant.
    """
    found = (path for part in ("usr/lib", "lib") for path in root.glob(f"{part}/**/lib*.so*"))
    folders = sorted({str(path.parent) for path in found if path.is_file()})
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}


def environment_of(program: Path) -> dict[str, str]:
    """Return what a program of :func:`provide` needs in its environment: nothing where it is installed."""
    folder = tools_folder()
    if not program.is_relative_to(folder):
        return {}
    return library_path(folder / program.relative_to(folder).parts[0] / "root")


def _run(command: Sequence[str], *, folder: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_APT_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise PackageError(f"there is no {error.filename} here") from None
    except subprocess.TimeoutExpired:
        raise PackageError(f"`{' '.join(command[-3:])}` took longer than {_APT_SECONDS:g} s") from None
    if done.returncode != 0:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise PackageError(said[-1] if said else f"`{' '.join(command)[-100:]}` ended with {done.returncode}")
    return done.stdout
