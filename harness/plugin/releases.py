"""Which release and defects the emulated systems of a scenario have: by its marker, or by options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.errors import ConfigurationError

if TYPE_CHECKING:
    import pytest
    from _pytest.nodes import Node

    from harness.lab.releases import Release

RELEASE = "hil_release"
MARKER_LINE = (
    "hil_release(name, defects=(), corrected_defects=()): what the emulated systems of the scenario are, "
    "unless --hil-release says it; real ones are what they are"
)
_HINT = "Such as hil_release('corrected', defects=('old-flag-kept',))."


def add_options(group: pytest.OptionGroup) -> None:
    """Add ``--hil-release``, ``--hil-defect`` and ``--hil-without-defect``."""
    group.addoption(
        "--hil-release", metavar="NAME", help="the release of emulated systems, such as stx-8 or corrected"
    )
    for option, help_text in (
        ("--hil-defect", "a known defect that emulated systems have besides; may be given several times"),
        ("--hil-without-defect", "a known defect that they have not; may be given several times"),
    ):
        group.addoption(option, metavar="NAME", action="append", default=[], help=help_text)


def release_of_run(config: pytest.Config) -> Release:
    """Return what the options say. :raises ConfigurationError: there is no such release or defect."""
    from harness.lab.releases import Release

    said = Release(
        config.getoption("hil_release"),
        tuple(config.getoption("hil_defect")),
        tuple(config.getoption("hil_without_defect")),
    )
    said.check()
    return said


def release_of(node: Node) -> Release:
    """Return what the marker of a test says, with the last word of the options.

    :raises ConfigurationError: there is no such release or defect, or the marker says something else.
    """
    from harness.lab.releases import Release

    marker = node.get_closest_marker(RELEASE)
    if marker is None:
        return release_of_run(node.config)
    names = {key: marker.kwargs.get(key, ()) for key in ("defects", "corrected_defects")}
    if (
        len(marker.args) != 1
        or not marker.kwargs.keys() <= names.keys()
        or any(isinstance(said, str) or not isinstance(said, Sequence) for said in names.values())
    ):
        raise ConfigurationError(
            f"{node.nodeid}: the marker {RELEASE} names one release, and lists of defects.", hint=_HINT
        )
    said = Release(str(marker.args[0]), tuple(names["defects"]), tuple(names["corrected_defects"]))
    try:
        said.check()
    except ConfigurationError as error:
        raise ConfigurationError(f"{node.nodeid}: {RELEASE}: {error.message}", hint=error.hint) from None
    return said.then(release_of_run(node.config))
