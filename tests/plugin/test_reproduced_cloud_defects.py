"""The reproductions of dcmanager's defects state what the list of defects predicts, with the defect alone."""

import importlib.util
from pathlib import Path

import pytest

from harness.lab.known_defects import known_defect, known_defects

PROJECT = Path(__file__).parents[2]


def stated():
    """Return defect -> what is stated with it, and without it: pairs of reporter and verdict, or outcome."""
    path = PROJECT / "testplans/reproductions/test_distributed_cloud.py"
    spec = importlib.util.spec_from_file_location("reproductions_of_clouds", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {}
    for name, test in vars(module).items():
        for mark in getattr(test, "pytestmark", ()) if name.startswith("test_") else ():
            with_it, without = mark.args[1]
            assert without.id == "corrected"
            found[with_it.id] = (_marks(with_it), _marks(without))
    return found


def _marks(param):
    release, expects = param.marks
    assert release.args == ("corrected",)
    said = {("outcome", expects.kwargs.get("outcome", "AS_INTENDED"))}
    return set(release.kwargs["defects"]), said | set(expects.kwargs.get("verdicts", {}).items())


STATED = stated()


@pytest.mark.parametrize("defect", STATED)
def test_what_is_stated_is_what_the_defect_predicts(defect: str) -> None:
    (defects, said), (others, besides) = STATED[defect]
    assert defects - others == {defect}, "the clouds differ in the defect alone"
    predicted = known_defect(defect)["predicts"]
    assert predicted in {word for _, word in said - besides}, "it is not stated of the cloud without it"


def test_every_defect_of_dcmanager_is_reproduced() -> None:
    from harness.emulator.distributed_cloud.known import CLOUD_DEFECTS

    own = {d.name for d in CLOUD_DEFECTS}
    assert own == set(STATED)
    assert own <= {defect["name"] for defect in known_defects(None, None)}
