"""The models of explored systems and registries: whatever is done, what they plan is a scenario and holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.images.recipes import load_recipes
from harness.plugin.exploring import registries, systems
from harness.scenarios.card_model import CardModel
from harness.scenarios.files import read_steps
from harness.scenarios.registry_model import Act as RegistryAct
from harness.scenarios.registry_model import RegistryModel
from harness.scenarios.system_model import Act, SystemModel

RECIPES = load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())
EVERY_SYSTEM_ACT = [act for rule in systems.RULES for act in rule]
EVERY_REGISTRY_ACT = [act for rule in registries.RULES for act in rule]


def new_system() -> SystemModel:
    return SystemModel(CardModel(RECIPES, "0000:b2:00.0"))


def played(model: Any, acts: Any) -> tuple[Any, list[Any]]:
    """Return the model after acts, and what a scenario does for them."""
    done: list[Any] = []
    for act in acts:
        chosen = model.chosen(act) if isinstance(act, Act) else act
        if chosen is not None and (plan := model.plan(chosen)):
            model, done = plan.after, [*done, *plan.steps]
    return model, done


# -- systems ----------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(EVERY_SYSTEM_ACT), max_size=60))
def test_what_is_planned_for_a_system_is_a_scenario(acts: list[Act]) -> None:
    _, done = played(new_system(), acts)
    assert len(read_steps(done, set())) == len(done)


@given(st.lists(st.sampled_from(EVERY_SYSTEM_ACT), max_size=60))
def test_a_card_is_owed_only_what_is_applied_to_it_and_as_it_was_promised(acts: list[Act]) -> None:
    """Fact sheet of StarlingX, sections 4.2 and 4.5; the promises are told at the upload."""
    model, _ = played(new_system(), acts)
    reached = {image for image, label in model.ties if not label or label in model.labels}
    assert set(model.states) <= reached <= set(model.promises)
    owners = [
        model.recipes[image].content_type for image in model.states if model.recipes[image].kind == "update"
    ]
    assert len(owners) == len(set(owners)), "one functional image for each part of a card"
    assert sum(model.recipes[image].kind == "root-key" for image in model.states) <= 1
    completed = {image for image, status in model.states.items() if status == "completed"}
    assert all(model.promises[image] for image in completed)


def test_the_life_of_a_key_and_an_image_on_a_system() -> None:
    model, _ = played(new_system(), [Act("key"), Act("apply", "A/csk0"), Act("upload", "B/csk0")])
    assert (model.card.root_in_force, dict(model.states)) == ("A", {"A/csk0": "pending"})
    assert model.promises == {"A/csk0": True, "B/csk0": False}, "another root's image is refused (0x11)"
    model, _ = played(model, [Act("update")])
    assert (model.states["A/csk0"], model.card.running) == ("completed", None)
    model, _ = played(model, [Act("boot")])
    assert model.card.running == "A/csk0"
    assert model.plan(Act("delete", "A/csk0")).steps == [{"refused": [{"delete": "$A-csk0"}]}], "section 4.8"


def test_what_failed_stops_what_follows_on_the_card() -> None:
    """Section 4.7: images are written one by one, keys first; a corrected system goes no further."""
    model, _ = played(new_system(), [Act("key"), Act("apply", "root-key-B"), Act("apply", "A/csk0")])
    assert model.plan(Act("update")) is None, "what was promised of the second would not be so"
    model, _ = played(model, [Act("remove", "A/csk0"), Act("update")])
    assert dict(model.states) == {"root-key-B": "failed"}


# -- registries -------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(EVERY_REGISTRY_ACT), max_size=60))
def test_what_is_planned_for_a_registry_is_a_scenario(acts: list[RegistryAct]) -> None:
    model, done = played(RegistryModel("verified-push"), acts)
    steps = [*done, *model.look(restart=True)]
    assert len(read_steps(steps, set())) == len(steps)


@given(st.lists(st.sampled_from(EVERY_REGISTRY_ACT), max_size=60))
def test_a_tag_has_what_was_pushed_last(acts: list[RegistryAct]) -> None:
    model, last = RegistryModel("verified-push"), dict[tuple[str, str], str]()
    for act in acts:
        plan = model.plan(act)
        if plan is None:
            continue
        model = plan.after
        if act.name in ("push", "copy"):
            _, content, *place = act.words
            last[place[0], place[1]] = content
        elif act.name == "push-disturbed":
            content, *place = act.words[:3]
            last[place[0], place[1]] = content
        elif act.name == "delete":
            gone = {place for place in last if place not in model.tags}
            assert act.words in gone
            assert len({(place[0], last[place]) for place in gone}) == 1, "one manifest of one repository"
            last = {place: content for place, content in last.items() if place not in gone}
    assert {place: found.content for place, found in model.tags.items()} == last
    assert all(last[place] in found.possible for place, found in model.tags.items())


def test_a_manifest_goes_with_all_its_tags_of_that_repository() -> None:
    """OCI distribution specification, Deleting Manifests: by digest; no tag leads to what is not there."""
    acts = [
        RegistryAct("push", ("", "tiny", "explored/one", "v1")),
        RegistryAct("copy", ("explored/one", "tiny", "explored/one", "v2")),
        RegistryAct("copy", ("explored/one", "tiny", "explored/two", "v1")),
        RegistryAct("delete", ("explored/one", "v1")),
    ]
    model, done = played(RegistryModel("verified-push"), acts)
    assert done[-1] == {"delete-image": ["$p1", "$p2"]}
    assert set(model.tags) == {("explored/two", "v1")}


def test_a_push_that_need_not_land_leaves_the_older_image_or_the_new_one() -> None:
    model, _ = played(
        RegistryModel("verified-push"),
        [
            RegistryAct("push", ("", "tiny", "explored/one", "v1")),
            RegistryAct(
                "push-disturbed", ("small", "explored/one", "v1", "before:manifest-put", "read-only")
            ),
        ],
    )
    assert model.tags["explored/one", "v1"].possible == {"tiny", "small"}
    assert model.plan(RegistryAct("delete", ("explored/one", "v1"))) is None


def test_beneath_stale_caches_only_a_client_that_reads_back_is_held_to_its_word() -> None:
    """Fact sheet of the registry, section 5: a push after an online collection is said to be done."""
    model, _ = played(RegistryModel("verified-push"), [RegistryAct("disturb", ("collect-garbage",))])
    place = ("tiny", "explored/one", "v1")
    assert model.plan(RegistryAct("push", ("oci-once", *place))) is None
    assert model.plan(RegistryAct("push", ("", *place))) is not None
    model, _ = played(model, [RegistryAct("disturb", ("restart",))])
    assert model.plan(RegistryAct("push", ("oci-once", *place))) is not None


def test_what_was_collected_beneath_the_caches_is_pushed_again_only_after_a_restart() -> None:
    """Fact sheet of the registry, section 5: DELETE, an online collection, a push: done, and absent."""
    place = ("tiny", "explored/one", "v1")
    again = RegistryAct("push", ("", *place))
    mid_push = RegistryAct("push-disturbed", (*place, "before:manifest-put", "collect-garbage"))
    online = RegistryAct("disturb", ("collect-garbage",))
    deleted, _ = played(RegistryModel("verified-push"), [again, RegistryAct("delete", place[1:])])
    assert deleted.plan(again) is not None
    assert deleted.plan(mid_push) is None, "its manifest is collected before it is put"
    model, _ = played(deleted, [online])
    assert model.plan(again) is None
    assert model.plan(RegistryAct("push-disturbed", (*place, "before:ping", "reset"))) is None
    assert model.plan(RegistryAct("push", ("", "small", *place[1:]))) is not None, "another one is not lost"
    for restart in (
        RegistryAct("disturb", ("restart",)),
        RegistryAct("disturb", ("collect-garbage-restart",)),
    ):
        assert played(model, [restart])[0].plan(again) is not None


def test_what_another_repository_holds_is_not_collected() -> None:
    acts = [
        RegistryAct("push", ("", "tiny", "explored/one", "v1")),
        RegistryAct("push", ("", "tiny", "explored/two", "v1")),
        RegistryAct("delete", ("explored/one", "v1")),
        RegistryAct("disturb", ("collect-garbage",)),
    ]
    model, _ = played(RegistryModel("verified-push"), acts)
    assert model.plan(acts[0]) is not None


def test_a_push_that_may_have_failed_keeps_nothing_from_being_collected() -> None:
    place = ("tiny", "explored/one", "v1")
    acts = [
        RegistryAct("push", ("", *place)),
        RegistryAct("delete", place[1:]),
        RegistryAct("push-disturbed", (*place, "before:manifest-put", "read-only")),
        RegistryAct("disturb", ("collect-garbage",)),
    ]
    model, _ = played(RegistryModel("verified-push"), acts)
    assert model.plan(RegistryAct("push", ("", *place[:2], "v2"))) is None
