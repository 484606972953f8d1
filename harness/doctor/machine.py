"""Checks of the machine that the harness runs on: Python, packages, programs, disk, databases."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.doctor.model import Part
from harness.errors import BlockedError, HarnessError
from harness.health.checks import Check, bad, failed, ok, warn
from harness.packages import installed, tools_folder
from harness.store.opening import HEAD, missing_file, version_of

if TYPE_CHECKING:
    from harness.inventory.model import Lab

_DISTRIBUTION: Final = "hil-harness"
_PYTHON: Final = (3, 11)
#: Bytes. A run of the regression leaves some 100 MB; below the second nothing can be recorded for long.
_PLENTY, _LITTLE = 1 << 30, 64 << 20
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")


def machine(lab: Lab, reports: Path, leases: str, index: str | None) -> Part:
    """Return what is found of this machine.

    :param reports: where runs are kept. :param leases: the URL of leases and health.
    :param index: that of the index; None: there is none.
    """
    checks = [_python(), *_packages(), _account(), _disk(reports), *_programs(lab)]
    return Part("machine", "this machine", (*checks, *_databases(leases, index)))


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _PYTHON:
        return bad("python", version, "Install Python 3.11 or newer, and set up again: make setup")
    return ok("python", f"Python {version}")


def _packages() -> Iterator[Check]:
    """Yield the packages that are missing, or of a version that does not do; extras are not asked for."""
    from packaging.requirements import Requirement

    wrong = []
    try:
        stated = metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        yield bad("packages", f"{_DISTRIBUTION} is not installed", "Set it up: make setup")
        return
    for needed in map(Requirement, stated):
        if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
            continue
        try:
            found = metadata.version(needed.name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{needed.name} is missing")
            continue
        if not needed.specifier.contains(found, prereleases=True):
            wrong.append(f"{needed.name} is {found}, and {needed.specifier} is needed")
    if wrong:
        yield bad("packages", "; ".join(wrong), "Install what the lock file has: make setup")
    else:
        yield ok("packages", "packages complete")


def _account() -> Check:
    if os.geteuid() == 0:
        return ok("account", "root")
    hint = "Run `hil` as root for scenarios that go through a Docker engine, and for mounted hosts."
    return ok("account", "not root", hint)


def _disk(reports: Path) -> Check:
    place = reports.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    finding = f"{reports} has {free >> 20} MiB free"
    hint = "Make room: hil history prune --days 30; or keep runs elsewhere: --reports"
    if free < _LITTLE:
        return bad("disk", finding, hint)
    return warn("disk", finding, hint) if free < _PLENTY else ok("disk", finding)


def _programs(lab: Lab) -> Iterator[Check]:
    """Yield the programs that scenarios of the lab may ask for. What is missing blocks those alone."""
    emulated = [entry for entry in lab.registries.values() if entry.emulated is not None]
    if emulated:
        yield _program("docker-registry", "the registries of this lab")
    if lab.registries:
        yield _program("skopeo", "pushes by skopeo")
        yield _engine(needed=any(e.emulated and e.emulated.service == "container" for e in emulated))
    if any(map(installed, _BROWSERS)):
        yield ok("browser", "a browser for PDF")
    else:
        yield ok("browser", "no browser for the PDF of statements", "sudo apt-get install chromium")


def _program(name: str, what: str) -> Check:
    if installed(name) is not None or (tools_folder() / name / "root").is_dir():
        return ok(name, name)
    hint = f"Got from the distribution's archive when it is needed, or now: sudo apt-get install {name}"
    return warn(name, f"{name} is missing: {what} need it", hint)


def _engine(*, needed: bool) -> Check:
    from harness.registry.engines.machine import MachineEngine
    from harness.registry.engines.private import find_engine

    try:
        return ok("docker engine", f"a private engine, by {find_engine(install=False)}")
    except BlockedError as missing:
        try:
            engine = MachineEngine()
        except HarnessError:
            finding = f"no Docker engine: {missing.message}"
            return (bad if needed else warn)("docker engine", finding, missing.hint)
        engine.close()
        return ok("docker engine", f"the machine's own Docker engine, at {engine.url}")


def _databases(leases: str, index: str | None) -> Iterator[Check]:
    same = leases == index
    yield _database("leases, health and index" if same else "leases and health", leases)
    if index is None:
        yield ok("index", "no index of runs", "HIL_STORE names one: sqlite:///FILE or postgresql://...")
    elif not same:
        yield _database("index", index)


def _database(name: str, url: str) -> Check:
    try:
        if missing_file(url) is not None:
            return ok("database", f"{name}: made when it is first needed")
        found = version_of(url)
    except HarnessError as error:
        return failed("database", error)
    if found > HEAD:
        hint = "Update the harness on this machine."
        return bad("database", f"{name}: tables of version {found}, and this harness knows {HEAD}", hint)
    if found < HEAD:
        finding = f"{name}: tables of version {found or 'none'}; the next run brings them to {HEAD}"
        return ok("database", finding)
    return ok("database", f"{name}: tables of version {found}")
