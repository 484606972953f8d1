"""The reproductions of defects state what the list of defects predicts, and nothing of it without them."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from harness.lab.known_defects import known_defect, known_defects

PROJECT = Path(__file__).parents[2]
#: Defect -> what its reproduction states with it, and without it.
Stated = dict[str, tuple[Any, Any]]


def stated() -> Stated:
    path = PROJECT / "testplans/reproductions/test_device_images.py"
    spec = importlib.util.spec_from_file_location("reproductions_of_device_images", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Stated = {}
    for name, test in vars(module).items():
        for mark in getattr(test, "pytestmark", ()) if name.startswith("test_") else ():
            if mark.name != "parametrize" or mark.args[0] != "system":
                continue  # a circumstance of the host, and no defect of the system
            with_it, without = mark.args[1]
            release, expects = with_it.marks
            (defect,) = release.kwargs["defects"]
            assert release.args == without.marks[0].args == ("corrected",)
            assert not without.marks[0].kwargs
            assert defect not in found, f"{defect} is reproduced twice"
            found[defect] = expects.kwargs, without.marks[1].kwargs
    return found


STATED = stated()


def words(expects: Any) -> set[tuple[str, str]]:
    """Return what a marker states that is not as it should be, with the reporter of each."""
    outcome = expects.get("outcome", "AS_INTENDED")
    said = {("", outcome)} - {("", "AS_INTENDED")}
    return said | set(expects.get("verdicts", {}).items())


@pytest.mark.parametrize("defect", STATED)
def test_what_is_stated_is_what_the_defect_predicts(defect: str) -> None:
    with_it, without = map(words, STATED[defect])
    assert known_defect(defect)["predicts"] in {kind for _, kind in with_it - without}
    assert not [kind for _, kind in without if kind == known_defect(defect)["predicts"]]


def test_every_defect_of_a_system_is_reproduced() -> None:
    assert {defect["name"] for defect in known_defects(kind="system")} == set(STATED)
