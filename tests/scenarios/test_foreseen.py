"""What the text of a scenario tells of its acts, and that whatever it does not tell is said to be unknown."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from harness.plugin import steps  # noqa: F401 -- it knows every step
from harness.scenarios.driver_needs import require_update_attributes
from harness.scenarios.files import read_steps
from harness.scenarios.foreseen import ACTING, UNRESOLVED, Act, foreseen_of_function, foreseen_of_steps
from harness.scenarios.steps import STEPS

ANY: Any = None
IMAGE = "A/csk1"


def foreseen(function: Callable[..., Any], fixtures: dict[str, Any] | None = None, **values: Any) -> Any:
    return foreseen_of_function(function, values, fixtures or {})


# -- what is known ------------------------------------------------------------------------------------


def plain(flash, cell, image):
    flash("A/csk0", ANY)
    flash.reset()
    flash(cell.image, ANY, activate=False)
    flash(image, ANY)
    flash(IMAGE, ANY)


def by_the_driver(card, images, faults):
    require_update_attributes(card)
    faults.arm("start", "busy")
    before = card.truth().bitstream_id
    card.flash(images["unsigned"].data, "unsigned", None)
    card.upload(images["A/csk0"].data, "A/csk0", None)
    assert card.truth().bitstream_id == before
    card.reset()


def in_places(flash, cell):
    with pytest.raises(AssertionError):
        flash("A/csk0", ANY)
    if cell:
        flash("A/csk1", ANY)
    for _ in range(3):
        flash("unsigned", ANY)


def test_calls_that_are_known_are_listed_in_order() -> None:
    found = foreseen(plain, cell=SimpleNamespace(image="root-key-A"), image="cancel-A-csk0")
    names = ["A/csk0", "root-key-A", "cancel-A-csk0", "A/csk1"]
    assert [act.image for act in found.acts] == names
    assert set(found.acts) == {Act(name, "flash") for name in names}
    assert found.unknown == ()


def test_the_driver_itself_is_known_too() -> None:
    found = foreseen(by_the_driver)
    assert found.acts == (Act("unsigned", "driver"), Act("A/csk0", "driver"))
    assert found.unknown == ()


def test_what_may_be_done_never_or_often_says_so() -> None:
    found = foreseen(in_places, cell=1)
    assert found.acts == (
        Act("A/csk0", "flash"),
        Act("A/csk1", "flash", sure=False),
        Act("unsigned", "flash", sure=False, often=True),
    )


# -- what is not --------------------------------------------------------------------------------------


def helper(flash: Any) -> None:
    flash("root-key-A", ANY)


def handed_on(flash):
    helper(flash)


def renamed(flash):
    other = flash
    other("root-key-A", ANY)


def method_kept(card):
    act = card.flash
    act(b"", "x", None)


def through_the_fixture(flash):
    flash.card.flash(b"", "x", None)


def by_reflection(card):
    card.__class__.flash(card, b"", "x", None)


def from_the_frame(flash):
    locals()["flash"]("root-key-A", ANY)


def in_a_closure(flash):
    def act(way):
        way("root-key-A", ANY)

    act(flash)


def in_a_container(flash):
    for act in [flash]:
        act("root-key-A", ANY)


def raw_host(host):
    host.run(["true"])


def by_request(request):
    request.getfixturevalue("flash")("root-key-A", ANY)


@pytest.mark.parametrize(
    "function",
    [
        handed_on,
        renamed,
        method_kept,
        through_the_fixture,
        by_reflection,
        from_the_frame,
        in_a_closure,
        in_a_container,
        raw_host,
        by_request,
    ],
)
def test_every_other_use_of_what_acts_is_unknown(function: Callable[..., Any]) -> None:
    assert foreseen(function).unknown


def computed(flash, image):
    for image in ("root-key-A", "unsigned"):
        flash(image, ANY)


def shadowed(flash):
    IMAGE = str(1)
    flash(IMAGE, ANY)


def composed(flash):
    flash("root-" + "key-A", ANY)


@pytest.mark.parametrize("function", [computed, shadowed, composed])
def test_an_image_that_is_not_known_is_not_guessed(function: Callable[..., Any]) -> None:
    found = foreseen(function, image="A/csk0")
    assert found.unknown == (UNRESOLVED,) and found.acts == ()


def prepared(keyed, flash):
    flash("A/csk0", ANY)


def test_fixtures_of_the_project_that_may_act_are_unknown() -> None:
    def keyed(flash: Any) -> None: ...

    def harmless(tmp_path: Any) -> None: ...

    def own_flash() -> None: ...

    assert "keyed is the scenario's own" in foreseen(prepared, {"keyed": keyed}).unknown[0]
    assert foreseen(prepared, {"other": harmless, "flash": None}).unknown == ()
    assert foreseen(prepared, {"flash": own_flash}).unknown


def control_plane(system):
    image = system.upload("root-key-A")
    system.apply(image)
    system.update()


def test_what_a_control_plane_writes_is_never_said_to_be_known() -> None:
    found = foreseen(control_plane)
    assert found.acts == (Act("root-key-A", "system"),)
    assert "control plane writes to cards" in found.unknown[0]


def test_a_text_that_cannot_be_read_is_unknown() -> None:
    made = eval("lambda flash: flash('root-key-A', None)")
    assert foreseen(made).unknown


# -- scenario files -----------------------------------------------------------------------------------


def test_steps_of_files_are_known() -> None:
    calls = read_steps(
        [{"flash": "root-key-A", "promise": "lands"}, "reset", {"flash": "A/csk0", "promise": "lands"}], set()
    )
    assert foreseen_of_steps(calls).acts == (Act("root-key-A", "flash"), Act("A/csk0", "flash"))
    assert foreseen_of_steps(calls).unknown == ()


def test_steps_within_steps_are_perhaps() -> None:
    calls = read_steps([{"attempt": [{"upload": "root-key-A"}, "update"]}], set())
    found = foreseen_of_steps(calls)
    assert found.acts == (Act("root-key-A", "system", sure=False),)
    assert "writes to cards what is owed" in found.unknown[0]


def test_what_is_known_of_steps_is_of_steps_that_there_are() -> None:
    """A new step of a fixture that acts is unknown until somebody says what it does."""
    from harness.scenarios import foreseen as module

    known = module._MILD_STEPS | module._WRITE_LATER | {"flash", "upload"}
    acting = {name for name, step in STEPS.items() if step.fixture in ACTING}
    assert known <= {*acting}, "steps that there are not any more"
