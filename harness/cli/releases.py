"""Options that say which release emulated systems are, and which known defects they have; with completion."""

from __future__ import annotations

from typing import Annotated

import typer


def release_names() -> list[str]:
    """Return the releases, for completion."""
    from harness.lab.known_defects import known_releases

    return known_releases()


def defect_names() -> list[str]:
    """Return the known defects, for completion."""
    from harness.lab.known_defects import known_defects

    return [defect["name"] for defect in known_defects()]


ReleaseOption = Annotated[
    str | None,
    typer.Option(
        "--release", metavar="NAME", help="Emulated systems are this.", autocompletion=release_names
    ),
]
DefectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--defect",
        metavar="NAME",
        help="Emulated systems have this known defect besides; may be repeated.",
        autocompletion=defect_names,
    ),
]
WithoutDefectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--without-defect",
        metavar="NAME",
        help="Emulated systems have not this known defect; may be repeated.",
        autocompletion=defect_names,
    ),
]


def release_arguments(release: str | None, defects: list[str] | None, without: list[str] | None) -> list[str]:
    """Return what pytest is told of the options.

    :raises ConfigurationError: there is no such release or defect; the hint has the nearest.
    """
    from harness.lab.releases import Release

    Release(release, tuple(defects or ()), tuple(without or ())).check()
    return [
        *([f"--hil-release={release}"] if release else []),
        *(f"--hil-defect={name}" for name in defects or ()),
        *(f"--hil-without-defect={name}" for name in without or ()),
    ]
