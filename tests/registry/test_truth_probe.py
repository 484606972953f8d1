"""The whole truth of images in a registry with tokens: caches are seen through, tokens are no obstacle."""

from pathlib import Path

import pytest
from support.raw_push import RawRegistry

from harness.errors import InfrastructureError
from harness.registry.assembled import RegistryLab
from harness.registry.images import ImageRecipe, make_image, sized_layers
from harness.registry.reference import parse_reference
from harness.registry.store import LocalStore
from harness.registry.truth import ANYTHING, Expected, TruthState
from harness.registry.truth_probe import AFTER_RESTART, TruthProbe

IMAGE = make_image(ImageRecipe(sized_layers(2, 4000)))
OTHER = make_image(ImageRecipe(sized_layers(1, 4000), "other"))
REFERENCE = parse_reference("a/b:v1")


def layer_link(lab: RegistryLab) -> Path:
    repository = Path(lab.registry.storage, "docker/registry/v2/repositories/a/b")
    return repository / "_layers/sha256" / IMAGE.layers[0].digest[7:] / "link"


def test_three_ways_agree_on_what_is_whole(lab: RegistryLab, pusher: RawRegistry) -> None:
    pusher.push("a/b", "v1", IMAGE)
    found = lab.probe.image(REFERENCE, Expected(IMAGE.digest))
    assert (found.state, found.agrees) == (TruthState.COMPLETE, True)
    assert [(each.source, each.moment) for each in found.truths] == [
        ("api", ""),
        ("store", ""),
        ("api", AFTER_RESTART),
    ]
    assert len(lab.registry.restarts) == 1
    assert len(lab.probe.image(REFERENCE, restart=False).truths) == 2
    assert len(lab.registry.restarts) == 1


@pytest.mark.parametrize("sees_store", [True, False])
def test_a_cache_is_seen_through_by_the_store_or_by_a_restart(
    lab: RegistryLab, pusher: RawRegistry, sees_store: bool
) -> None:
    pusher.push("a/b", "v1", IMAGE)
    layer_link(lab).unlink()
    store = LocalStore(Path(lab.registry.storage)) if sees_store else None
    probe = TruthProbe(lab.registry, store, lab.insider)
    now = probe.image(REFERENCE, restart=False)
    assert now.state is (TruthState.PARTIAL if sees_store else TruthState.COMPLETE)
    found = probe.image(REFERENCE)
    assert found.state is TruthState.PARTIAL
    assert not found.agrees
    assert "the api says COMPLETE" in found.disagreement


def test_many_images_take_one_restart_and_no_token(lab: RegistryLab, pusher: RawRegistry) -> None:
    pusher.push("a/b", "v1", IMAGE)
    pusher.push("a/b", "v2", OTHER)
    lab.rotate(["registry"])
    lab.tokens.behave(deny=401)
    wanted = [
        (REFERENCE, Expected(IMAGE.digest)),
        (parse_reference("a/b:v2"), Expected(IMAGE.digest)),
        (parse_reference("a/b:v3"), ANYTHING),
    ]
    before = len(lab.registry.restarts)
    states = [each.state for each in lab.probe.images(wanted)]
    assert states == [TruthState.COMPLETE, TruthState.WRONG, TruthState.ABSENT]
    assert len(lab.registry.restarts) == before + 1


def test_a_registry_that_is_down_cannot_be_restarted_for_it(lab: RegistryLab, pusher: RawRegistry) -> None:
    pusher.push("a/b", "v1", IMAGE)
    lab.registry.stop()
    found = lab.probe.image(REFERENCE, restart=False)
    assert [each.state for each in found.truths] == [TruthState.UNREADABLE, TruthState.COMPLETE]
    assert found.state is TruthState.UNREADABLE
    with pytest.raises(InfrastructureError, match="does not run"):
        lab.probe.image(REFERENCE)


def test_a_lab_in_a_temporary_folder_goes_with_it(program: Path) -> None:
    with RegistryLab(program=program, tls=False) as lab:
        assert lab.folder.is_dir()
    assert not lab.folder.exists()
    lab.close()


def test_a_lab_that_does_not_start_leaves_nothing(tmp_path: Path) -> None:
    lab = RegistryLab(program=tmp_path / "none")
    with pytest.raises(InfrastructureError, match="ended at once"), lab:
        pass
    assert not lab.tokens.runs
    assert not lab.folder.exists()
