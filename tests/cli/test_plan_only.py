"""`hil run --plan-only`: the list that is complete, as programs read it; and that nothing was touched."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Project

PLAN = """
    def test_one(flash):
        flash("cancel-A-csk0", unchanged(source=DOC))
        flash.reset()
"""


def test_the_plan_as_json(project: Project) -> None:
    project.write(PLAN)
    ended = project.hil("run", "test_plan.py", "--plan-only", "-o", "json", "--device", "one")
    assert ended.code == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert (told["schema"], told["complete"], told["lab"]) == ("hil-plan/1", True, "small")
    (scenario,) = told["scenarios"]
    (step,) = scenario["steps"]
    assert (scenario["device"], step["image"]) == ("one/card0", "cancel-A-csk0")
    assert step["effect"] == "cancels CSK 0 of SR: cannot be undone"
    assert (step["irreversible"], step["decision"], step["size"]) == (["key-cancellation"], "permitted", 1152)
    assert told["wear"] == [{"card": "one/card0", "updates": 1, "more": False}]
    assert not (project.folder / "reports").exists()
    project.assert_nothing_left()
    nothing = project.hil("run", "test_plan.py", "--plan-only", "-k", "no-such-scenario")
    assert (nothing.code, nothing.stdout) == (2, "") and "No scenario matches" in nothing.stderr
